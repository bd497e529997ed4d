#include "keeper/tree/tree_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "json/name_escape.h"
#include "keeper/tree/tree_list.h"
#include "keeper/tree/tree_walk.h"
#include "keeper/view_folder.h"
#include "sys/file/sys_file.h"

#define BUFFER_SIZE ((size_t) 256 << 10)

struct exclude {
    char name[NAME_MAX + 1];
};

struct scan {
    struct output *output;
    int folder;               /* owned */
    struct exclude *excludes; /* owned */
    size_t exclude_count;
    int64_t limit_files, limit_bytes;
    uint64_t files, folders, links, others, bytes, skipped, too_long;
    struct text scratch;
    char target[PATH_MAX];
    size_t target_length;
    uint8_t digest[SHA256_SIZE];
    uint8_t *buffer; /* owned */
};

/* --- options -------------------------------------------------------------------------------- */

static int read_excludes(struct scan *scan, const struct json_place *options, struct error *err)
{
    AUTO(text) struct text name = TEXT_INIT(NAME_MAX);
    struct json_place list;
    size_t count;

    if (json_field_array(options, "excludes", JSON_OPTIONAL, &list, err) < 0)
        return -1;
    count = list.value ? json_array_size(list.value) : 0;
    if (count > TREE_SCAN_EXCLUDES)
        return json_refuse_field(options, "excludes", "a list of at most 1000 names", err);
    scan->excludes = mem_alloc_array(count + 1, sizeof(*scan->excludes));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list.value, i);

        text_clear(&name);
        if (!json_is_string(item) ||
            !name_unescape(&name, json_string_value(item), json_string_length(item)) ||
            name.overflowed || name.length == 0)
            return json_refuse_field(options, "excludes", "a list of escaped names", err);
        (void) snprintf(scan->excludes[i].name, sizeof(scan->excludes[i].name), "%s",
                        text_string(&name));
    }
    scan->exclude_count = count;
    return 0;
}

static int read_options(struct scan *scan, int view, int options, struct error *err)
{
    static const char *const known[] = {"folder", "excludes", "limitFiles", "limitBytes"};
    AUTO(free) char *bytes = mem_alloc(TREE_SCAN_OPTIONS_MAX + 1);
    ssize_t length = sys_file_read_full(options, bytes, TREE_SCAN_OPTIONS_MAX + 1);
    const struct json_limits limits = {
        .size = TREE_SCAN_OPTIONS_MAX, .depth = 4, .values = 2 * TREE_SCAN_EXCLUDES};
    AUTO(json) json_t *value = NULL;
    struct json_place root;

    if (length < 0)
        return error_set(err, error_code_from_errno((int) length), (int) length,
                         "read the options");
    value = json_read(bytes, (size_t) length, &limits, err);
    if (!value || json_root_object(value, &root, err) < 0 ||
        json_known_fields(&root, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_integer(&root, "limitFiles", JSON_OPTIONAL, 0, INT64_MAX, &scan->limit_files,
                           err) < 0 ||
        json_field_integer(&root, "limitBytes", JSON_OPTIONAL, 0, INT64_MAX, &scan->limit_bytes,
                           err) < 0 ||
        read_excludes(scan, &root, err) < 0)
        return -1;
    scan->folder = view_folder_open(view, &root, err);
    return scan->folder < 0 ? -1 : 0;
}

/* --- entries -------------------------------------------------------------------------------- */

static bool is_excluded(const struct scan *scan, const char *name)
{
    for (size_t i = 0; i < scan->exclude_count; i++)
        if (strcmp(scan->excludes[i].name, name) == 0)
            return true;
    return false;
}

static int sum_file(struct scan *scan, const struct tree_step *step)
{
    AUTO(close)
    int fd = sys_file_open(step->folder, step->at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    uint64_t left = (uint64_t) step->status.st_size;
    struct sha256 sum;

    if (fd < 0)
        return fd;
    sha256_init(&sum);
    while (left) {
        size_t wanted = left < BUFFER_SIZE ? (size_t) left : BUFFER_SIZE;
        ssize_t got = sys_file_read_full(fd, scan->buffer, wanted);

        if (got < 0)
            return (int) got;
        if ((size_t) got != wanted)
            return -ESTALE; /* somebody writes to it */
        sha256_add(&sum, scan->buffer, wanted);
        left -= wanted;
    }
    sha256_finish(&sum, scan->digest);
    return 0;
}

static int read_target(struct scan *scan, const struct tree_step *step)
{
    ssize_t length = readlinkat(step->folder, step->at, scan->target, sizeof(scan->target));

    if (length < 0)
        return -errno;
    if (length == (ssize_t) sizeof(scan->target))
        return -ENAMETOOLONG;
    scan->target_length = (size_t) length;
    return 0;
}

/* Count it; a limit is met before the work is done. */
static int count(struct scan *scan, const struct stat *status, struct error *err)
{
    mode_t mode = status->st_mode;

    *(S_ISREG(mode)   ? &scan->files
      : S_ISDIR(mode) ? &scan->folders
      : S_ISLNK(mode) ? &scan->links
                      : &scan->others) += 1;
    if (scan->files + scan->folders + scan->links + scan->others > (uint64_t) scan->limit_files)
        return error_set(err, ERR_TOO_LARGE, 0, "there are more than %lld entries",
                         (long long) scan->limit_files);
    if (S_ISREG(mode))
        scan->bytes += (uint64_t) status->st_size;
    if (scan->bytes > (uint64_t) scan->limit_bytes)
        return error_set(err, ERR_TOO_LARGE, 0, "there are more than %lld bytes",
                         (long long) scan->limit_bytes);
    return 0;
}

static void add_escaped(struct scan *scan, struct json_writer *json, const char *key,
                        const char *bytes, size_t length)
{
    text_clear(&scan->scratch);
    name_escape(&scan->scratch, bytes, length);
    json_key(json, key);
    json_put_bytes(json, text_string(&scan->scratch), scan->scratch.length);
}

static void tell(struct scan *scan, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    char mode[8], digest[HEX_TEXT_SIZE(SHA256_SIZE)];
    struct json_writer json;

    (void) snprintf(mode, sizeof(mode), "%04o", (unsigned int) (status->st_mode & 07777));
    output_begin(scan->output, &json);
    add_escaped(scan, &json, "path", step->depth ? step->path : ".",
                step->depth ? step->path_length : 1);
    json_add_text(&json, "type", tree_list_type(status->st_mode));
    json_add_text(&json, "mode", mode);
    json_add_integer(&json, "mtime", status->st_mtim.tv_sec);
    json_add_integer(&json, "mtime_ns", status->st_mtim.tv_nsec);
    if (S_ISREG(status->st_mode)) {
        (void) hex_encode(scan->digest, SHA256_SIZE, digest);
        json_add_integer(&json, "size", status->st_size);
        json_add_text(&json, "sha256", digest);
    } else if (S_ISLNK(status->st_mode)) {
        add_escaped(scan, &json, "target", scan->target, scan->target_length);
    }
    output_end(scan->output, &json);
}

static int see(struct scan *scan, const struct tree_step *step, struct error *err)
{
    int result = 0;

    if (count(scan, &step->status, err) < 0)
        return -1;
    if (S_ISREG(step->status.st_mode))
        result = sum_file(scan, step);
    else if (S_ISLNK(step->status.st_mode))
        result = read_target(scan, step);
    if (result < 0)
        return tree_step_error(step, result, "read", err);
    tell(scan, step);
    if (scan->output->error)
        return error_set(err, ERR_CANCELLED, scan->output->error, "write the list");
    return 0;
}

static int walk(struct scan *scan, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *tree_walk = tree_walk_new(scan->folder);
    struct tree_step step;

    for (;;) {
        bool is_out, is_long;

        if (tree_walk_next(tree_walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            return 0;
        if (step.event == TREE_LEAVE)
            continue;
        is_out = step.depth > 0 && is_excluded(scan, step.name);
        is_long = step.path_length > TREE_LIST_PATH_MAX;
        scan->skipped += is_out;
        scan->too_long += !is_out && is_long;
        if (!is_out && !is_long && see(scan, &step, err) < 0)
            return -1;
        if (is_out || is_long)
            tree_walk_skip(tree_walk);
    }
}

static void report(const struct scan *scan)
{
    struct json_writer json;

    output_begin(scan->output, &json);
    json_key(&json, "scanned");
    json_begin_object(&json);
    output_add_count(&json, "files", scan->files);
    output_add_count(&json, "folders", scan->folders);
    output_add_count(&json, "links", scan->links);
    output_add_count(&json, "others", scan->others);
    output_add_count(&json, "bytes", scan->bytes);
    output_add_count(&json, "skipped", scan->skipped);
    output_add_count(&json, "too_long", scan->too_long);
    json_end_object(&json);
    output_end(scan->output, &json);
}

int tree_scan(int view, int options, struct output *output, struct error *err)
{
    struct scan scan = {.output = output,
                        .folder = -EBADF,
                        .limit_files = INT64_MAX,
                        .limit_bytes = INT64_MAX,
                        .scratch = TEXT_INIT((TREE_LIST_PATH_MAX + 1) * NAME_ESCAPE_FACTOR)};
    int result;

    scan.buffer = mem_alloc(BUFFER_SIZE);
    result = read_options(&scan, view, options, err);
    if (result == 0)
        result = walk(&scan, err);
    if (result == 0)
        report(&scan);
    (void) fd_close(scan.folder);
    free(scan.excludes);
    free(scan.buffer);
    text_done(&scan.scratch);
    return result;
}
