#include "keeper/tree/tree_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "json/name_escape.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/tree_walk.h"

struct listing {
    struct output *output;
    struct attributes attributes;
    struct text scratch;
    char target[PATH_MAX + 1]; /* of a link */
    size_t target_length;
    uint64_t entries;
};

static const struct {
    mode_t format;
    const char *text;
} types[] = {
    {S_IFREG, "file"},    {S_IFDIR, "folder"},    {S_IFLNK, "link"},  {S_IFIFO, "fifo"},
    {S_IFSOCK, "socket"}, {S_IFCHR, "character"}, {S_IFBLK, "block"},
};

const char *tree_list_type(mode_t mode)
{
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if ((mode & S_IFMT) == types[i].format)
            return types[i].text;
    return "unknown";
}

static void add_escaped(struct listing *list, struct json_writer *json, const char *key,
                        const char *bytes, size_t length)
{
    text_clear(&list->scratch);
    name_escape(&list->scratch, bytes, length);
    json_key(json, key);
    json_put_bytes(json, text_string(&list->scratch), list->scratch.length);
}

static void add_place(struct listing *list, struct json_writer *json, const struct tree_step *step)
{
    if (step->depth == 0) {
        json_add_text(json, "path", ".");
    } else if (step->path_length <= TREE_LIST_PATH_MAX) {
        add_escaped(list, json, "path", step->path, step->path_length);
    } else {
        output_add_count(json, "depth", step->depth);
        add_escaped(list, json, "name", step->name, strlen(step->name));
    }
}

static void add_status(struct json_writer *json, const struct stat *status)
{
    char mode[8];

    (void) snprintf(mode, sizeof(mode), "%04o", (unsigned int) (status->st_mode & 07777));
    json_add_text(json, "type", tree_list_type(status->st_mode));
    json_add_text(json, "mode", mode);
    output_add_count(json, "uid", status->st_uid);
    output_add_count(json, "gid", status->st_gid);
    if (S_ISREG(status->st_mode) || S_ISLNK(status->st_mode))
        json_add_integer(json, "size", status->st_size);
    if (!S_ISDIR(status->st_mode))
        output_add_count(json, "links", status->st_nlink);
    json_add_integer(json, "mtime", status->st_mtim.tv_sec);
    json_add_integer(json, "mtime_ns", status->st_mtim.tv_nsec);
    if (S_ISCHR(status->st_mode) || S_ISBLK(status->st_mode)) {
        json_key(json, "device");
        json_begin_array(json);
        json_put_integer(json, major(status->st_rdev));
        json_put_integer(json, minor(status->st_rdev));
        json_end_array(json);
    }
}

static void add_attributes(struct listing *list, struct json_writer *json)
{
    json_key(json, "attributes");
    json_begin_array(json);
    for (size_t i = 0; i < list->attributes.count; i++) {
        text_clear(&list->scratch);
        name_escape(&list->scratch, list->attributes.names[i], strlen(list->attributes.names[i]));
        json_put_bytes(json, text_string(&list->scratch), list->scratch.length);
    }
    json_end_array(json);
}

/* All that can fail, before the line begins: a line is whole or absent. */
static int look_at(struct listing *list, const struct tree_step *step)
{
    ssize_t length = 0;

    if (S_ISLNK(step->status.st_mode))
        length = readlinkat(step->folder, step->at, list->target, sizeof(list->target));
    if (length < 0)
        return -errno;
    if (length == (ssize_t) sizeof(list->target))
        return -ENAMETOOLONG;
    list->target_length = (size_t) length;
    return attributes_list(&list->attributes, step->folder, step->at);
}

static int tell(struct listing *list, const struct tree_step *step, struct error *err)
{
    struct json_writer json;
    int result = look_at(list, step);

    if (result < 0)
        return tree_step_error(step, result, "look at", err);
    output_begin(list->output, &json);
    add_place(list, &json, step);
    add_status(&json, &step->status);
    if (S_ISLNK(step->status.st_mode))
        add_escaped(list, &json, "target", list->target, list->target_length);
    add_attributes(list, &json);
    output_end(list->output, &json);
    list->entries++;
    if (list->output->error)
        return error_set(err, ERR_CANCELLED, list->output->error, "write the list");
    return 0;
}

static int walk_all(struct listing *list, int folder, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(folder);
    struct tree_step step;

    for (;;) {
        if (tree_walk_next(walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            return 0;
        if (step.event != TREE_LEAVE && tell(list, &step, err) < 0)
            return -1;
    }
}

int tree_list(int folder, struct output *output, struct error *err)
{
    struct listing list = {.output = output,
                           .scratch = TEXT_INIT((TREE_LIST_PATH_MAX + 1) * NAME_ESCAPE_FACTOR)};
    struct json_writer json;
    int result;

    attributes_init(&list.attributes);
    result = walk_all(&list, folder, err);
    attributes_done(&list.attributes);
    text_done(&list.scratch);
    if (result < 0)
        return -1;
    output_begin(output, &json);
    output_add_count(&json, "entries", list.entries);
    output_end(output, &json);
    return 0;
}
