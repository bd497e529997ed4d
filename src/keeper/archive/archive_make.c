#include "keeper/archive/archive_make.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "keeper/archive/archive_options.h"
#include "keeper/archive/archive_progress.h"
#include "keeper/archive/ignore_rules.h"
#include "keeper/squash/squash_format.h"
#include "keeper/squash/squash_writer.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

#define HASH_PIECE ((size_t) 1 << 20)

struct making {
    const struct archive_options *options;
    int view, folder;
    struct squash_writer *writer;
    struct ignore_rules *rules;
    struct text path; /* of a step, as the rules want it */
    size_t prefix;    /* of `path`: what lies before the archived folder */
    uint64_t ignored;
    struct archive_progress progress;
};

/* --- the folder ----------------------------------------------------------------------------- */

static int open_folder(int view, const char *path, int *ret_folder, struct error *err)
{
    int fd = sys_open_in_root(view, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);

    if (fd == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no folder '%s'", path);
    if (fd == -ENOTDIR || fd == -ELOOP)
        return error_set(err, ERR_INVALID, 0, "'%s' is no folder", path);
    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "open '%s'", path);
    *ret_folder = fd;
    return 0;
}

/* Enter the folder above whose path ends at `length`, for its rules. */
static int enter_above(struct making *making, size_t length, size_t top, struct error *err)
{
    AUTO(free) char *path = mem_copy_bytes(making->options->folder, length);
    AUTO(close) int folder = -EBADF;
    const char *relative = path + top;

    if (open_folder(making->view, length ? path : "/", &folder, err) < 0)
        return -1;
    return ignore_rules_enter(making->rules, folder, relative + strspn(relative, "/"), err);
}

/* The length of the path of the nearest folder above that is a work tree. */
static int find_work_tree(const struct making *making, size_t *ret_length, struct error *err)
{
    AUTO(free) char *path = mem_copy_text(making->options->folder);

    for (char *slash; (slash = strrchr(path, '/'));) {
        AUTO(close) int folder = -EBADF;

        *slash = '\0';
        if (slash[1] == '\0')
            continue; /* a slash at the end */
        if (open_folder(making->view, path[0] ? path : "/", &folder, err) < 0)
            return -1;
        if (ignore_rules_is_work_tree(folder)) {
            *ret_length = (size_t) (slash - path);
            return 1;
        }
    }
    return 0;
}

/* A folder inside of a work tree is under the rules of all folders from its top down. */
static int enter_work_tree(struct making *making, struct error *err)
{
    const char *path = making->options->folder;
    size_t top = 0, length;
    int found;

    if (!making->options->gitignore || ignore_rules_is_work_tree(making->folder))
        return 0;
    found = find_work_tree(making, &top, err);
    if (found <= 0)
        return found;
    for (length = top; path[length + strspn(path + length, "/")];) {
        if (enter_above(making, length, top, err) < 0)
            return -1;
        length += strspn(path + length, "/");
        length += strcspn(path + length, "/");
    }
    path += top + strspn(path + top, "/");
    text_append_bytes(&making->path, path, strlen(path));
    while (making->path.length && making->path.data[making->path.length - 1] == '/')
        making->path.data[--making->path.length] = '\0';
    making->prefix = making->path.length;
    return 0;
}

/* --- the walk ------------------------------------------------------------------------------- */

/* The step's path below where the rules begin. */
static const char *rules_path(struct making *making, const struct tree_step *step)
{
    making->path.length = making->prefix;
    if (making->prefix && step->path_length)
        text_append_char(&making->path, '/');
    text_append_bytes(&making->path, step->path, step->path_length + 1);
    making->path.length--; /* the NUL was one of the bytes */
    return text_string(&making->path);
}

static bool is_ignored(struct making *making, const struct tree_step *step)
{
    return step->depth > 0 && step->path_length <= SQUASH_PATH_MAX &&
           ignore_rules_match(making->rules, rules_path(making, step), step->event == TREE_ENTER);
}

static int enter(struct making *making, const struct tree_step *step, struct error *err)
{
    if (squash_writer_enter(making->writer, step, err) < 0 ||
        ignore_rules_enter(making->rules, step->folder, rules_path(making, step), err) < 0)
        return -1;
    if (step->depth == 0)
        ignore_rules_begin(making->rules);
    return 0;
}

static int leave(struct making *making, struct error *err)
{
    ignore_rules_leave(making->rules);
    return squash_writer_leave(making->writer, err);
}

static int walk_all(struct making *making, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(making->folder);
    const struct squash_totals *totals = squash_writer_totals(making->writer);
    bool is_skipped = false; /* the folder entered last */

    for (;;) {
        struct tree_step step;
        int result = 0;

        if (tree_walk_next(walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            return 0;
        if (step.event == TREE_LEAVE) {
            result = is_skipped ? 0 : leave(making, err);
            is_skipped = false;
        } else if (is_ignored(making, &step)) {
            making->ignored++;
            is_skipped = step.event == TREE_ENTER;
            tree_walk_skip(walk);
        } else if (step.event == TREE_ENTER) {
            result = enter(making, &step, err);
        } else {
            result = squash_writer_add(making->writer, &step, err);
        }
        if (result < 0 ||
            archive_progress_tell(&making->progress, totals->files, totals->bytes, err) < 0)
            return -1;
    }
}

/* --- the end -------------------------------------------------------------------------------- */

/* Its beginning was written last, so it is read again. */
static int hash_file(int file, uint64_t size, char ret_hex[static HEX_TEXT_SIZE(SHA256_SIZE)],
                     struct error *err)
{
    AUTO(free) uint8_t *piece = mem_alloc(HASH_PIECE);
    uint8_t digest[SHA256_SIZE];
    struct sha256 sha;

    sha256_init(&sha);
    for (uint64_t at = 0; at < size;) {
        ssize_t got = sys_file_pread_full(file, piece, HASH_PIECE, (off_t) at);

        if (got <= 0)
            return error_set(err, ERR_INTERNAL, (int) got, "read the archive again");
        sha256_add(&sha, piece, (size_t) got);
        at += (uint64_t) got;
    }
    sha256_finish(&sha, digest);
    (void) hex_encode(digest, sizeof(digest), ret_hex);
    return 0;
}

static int finish(struct making *making, int file, struct output *output, struct error *err)
{
    const struct squash_totals *totals = squash_writer_totals(making->writer);
    char hex[HEX_TEXT_SIZE(SHA256_SIZE)];
    struct json_writer json;
    uint64_t size;

    if (squash_writer_finish(making->writer, &size, err) < 0 || hash_file(file, size, hex, err) < 0)
        return -1;
    output_begin(output, &json);
    json_key(&json, "archived");
    json_begin_object(&json);
    output_add_count(&json, "files", totals->files);
    output_add_count(&json, "folders", totals->folders);
    output_add_count(&json, "bytes", totals->bytes);
    output_add_count(&json, "size", size);
    json_add_text(&json, "sha256", hex);
    output_add_count(&json, "ignored", making->ignored);
    output_add_count(&json, "attributes_left_out", totals->attributes_left_out);
    output_add_count(&json, "times_changed", totals->times_changed);
    json_end_object(&json);
    output_end(output, &json);
    return 0;
}

static int make(struct making *making, int file, struct output *output, struct error *err)
{
    for (size_t i = 0; i < making->options->excludes.count; i++)
        if (ignore_rules_exclude(making->rules, making->options->excludes.items[i], err) < 0)
            return -1;
    archive_progress_init(&making->progress, output);
    if (enter_work_tree(making, err) < 0 || walk_all(making, err) < 0)
        return -1;
    return finish(making, file, output, err);
}

int archive_make(int view, int options, int file, struct output *output, struct error *err)
{
    AUTO(archive_options) struct archive_options read;
    AUTO(close) int folder = -EBADF;
    AUTO(squash_writer) struct squash_writer *writer = NULL;
    AUTO(ignore_rules) struct ignore_rules *rules = NULL;
    struct making making = {.options = &read, .view = view};
    struct squash_writer_options writing;
    int result;

    if (archive_options_read(options, &read, err) < 0 ||
        open_folder(view, read.folder, &folder, err) < 0)
        return -1;
    writing = (struct squash_writer_options){
        .compression = read.codec->compression,
        .level = (int) read.level,
        .threads = (unsigned int) read.threads,
        .file_max = ARCHIVE_FILE_MAX,
    };
    if (squash_writer_new(file, &writing, &writer, err) < 0)
        return -1;
    rules = ignore_rules_new(read.gitignore);
    making.folder = folder;
    making.writer = writer;
    making.rules = rules;
    making.path = (struct text) TEXT_INIT(2 * (SQUASH_PATH_MAX + 2));
    result = make(&making, file, output, err);
    text_done(&making.path);
    return result;
}
