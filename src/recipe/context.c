#include "recipe/context.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/format/ignore_pattern.h"
#include "base/format/tar_header.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "recipe/context_ignore.h"
#include "sys/file/sys_file.h"

#define IGNORE_NAME ".dockerignore"
#define CHUNK_SIZE  ((size_t) 128 * 1024)
#define SHOWN_MAX   120
#define NAMES_STEP  64
#define FOLDER_MODE 0755
#define LOOK_EVERY  ((uint64_t) 64 << 20)

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

struct context {
    int folder;                    /* owned */
    struct context_ignore *ignore; /* owned; NULL: none */
};

/* --- opening -------------------------------------------------------------------------------- */

void context_close(struct context *context)
{
    if (!context)
        return;
    (void) fd_close(context->folder);
    context_ignore_free(context->ignore);
    free(context);
}

int context_read(const struct context *context, const char *name, size_t limit, char **ret_bytes,
                 size_t *ret_length, struct error *err)
{
    AUTO(close)
    int file = sys_file_open(context->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    AUTO(free) char *bytes = NULL;
    struct stat status;
    ssize_t got;

    if (file == -ELOOP)
        return error_set(err, ERR_INVALID, 0, "'%s' is a link", name);
    if (file < 0 || fstat(file, &status) < 0)
        return error_set(err, error_code_from_errno(file < 0 ? file : errno),
                         file < 0 ? file : errno, "read '%s'", name);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERR_INVALID, 0, "'%s' is not a file", name);
    bytes = mem_alloc(limit + 2);
    got = sys_file_read_full(file, bytes, limit + 1);
    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read '%s'", name);
    if ((size_t) got > limit)
        return error_set(err, ERR_TOO_LARGE, 0, "'%s' has more than %zu bytes", name, limit);
    bytes[got] = '\0';
    *ret_bytes = TAKE_PTR(bytes);
    *ret_length = (size_t) got;
    return 0;
}

static int read_ignore(struct context *context, struct error *err)
{
    AUTO(free) char *bytes = NULL;
    size_t length = 0;

    if (context_read(context, IGNORE_NAME, CONTEXT_IGNORE_SIZE_MAX, &bytes, &length, err) < 0) {
        if (err->code != ERR_NOT_FOUND)
            return -1;
        error_clear(err);
        return 0;
    }
    context->ignore = context_ignore_read(bytes, length, err);
    return context->ignore ? 0 : error_wrap(err, IGNORE_NAME);
}

struct context *context_open(const char *path, struct error *err)
{
    AUTO(context) struct context *context = mem_alloc(sizeof(*context));

    context->folder = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (context->folder < 0) {
        (void) error_set(err, error_code_from_errno(context->folder), context->folder, "open '%s'",
                         path);
        return NULL;
    }
    return read_ignore(context, err) < 0 ? NULL : TAKE_PTR(context);
}

/* --- names in a folder ---------------------------------------------------------------------- */

struct context_names {
    char **list; /* owned */
    size_t count;
};

static void names_done(struct context_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
}

AUTO_DEFINE(names, struct context_names, names_done);

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *) left, *(char *const *) right);
}

static int read_names(int folder, const char *path, struct context_names *names, struct error *err)
{
    int fd = sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!entries) {
        (void) fd_close(fd);
        return error_set(err, ERR_INTERNAL, fd < 0 ? fd : errno, "list '%.*s'", SHOWN_MAX, path);
    }
    while ((entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (names->count == CONTEXT_NAMES_MAX)
            return error_set(err, ERR_TOO_LARGE, 0, "too many files in '%.*s'", SHOWN_MAX, path);
        if (names->count % NAMES_STEP == 0)
            names->list =
                mem_resize(names->list, (names->count + NAMES_STEP) * sizeof(*names->list));
        names->list[names->count++] = mem_copy_text(entry->d_name);
    }
    if (names->count)
        qsort(names->list, names->count, sizeof(*names->list), compare_names);
    return 0;
}

/* --- one entry ------------------------------------------------------------------------------ */

struct copying {
    const struct context *context;
    const struct context_order *order;
    struct sha256 sha;
    struct context_result result;
    size_t sources; /* that were found */
    char *chunk;    /* owned */
    uint64_t written, look;
    struct error *err;
};

/* Now and then: what is copied is somebody's, the disk is everybody's. */
static bool has_room(struct copying *copying, size_t length)
{
    copying->written += length;
    if (copying->order->archive < 0 || copying->written < copying->look)
        return true;
    copying->look = copying->written + LOOK_EVERY;
    return sys_file_has_room(copying->order->archive, CONTEXT_FREE_MIN);
}

static int write_bytes(struct copying *copying, const void *bytes, size_t length)
{
    int r = has_room(copying, length) ? 0 : -ENOSPC;

    if (r == 0 && copying->order->archive >= 0)
        r = sys_file_write_full(copying->order->archive, bytes, length);
    return r < 0 ? error_set(copying->err, error_code_from_errno(r), r, "write the archive") : 0;
}

static int write_zeros(struct copying *copying, size_t length)
{
    memset(copying->chunk, 0, length);
    return write_bytes(copying, copying->chunk, length);
}

static char *context_join(const char *folder, const char *name)
{
    AUTO(text) struct text path = TEXT_INIT(2 * TAR_PATH_MAX);

    text_format(&path, "%s%s%s", folder, *folder ? "/" : "", name);
    return text_take(&path);
}

/* `to`: its path in the archive; `own`: the one that counts for the digest. */
static int begin_entry(struct copying *copying, const struct stat *status, char type,
                       const char *to, const char *own, const char *link)
{
    AUTO(text) struct text header = TEXT_INIT(TAR_HEADER_MAX);
    AUTO(free) char *path = context_join(copying->order->below ? copying->order->below : "", to);
    char mode[32];
    const struct tar_entry entry = {
        .type = type,
        .path = path,
        .link = link,
        .size = type == TAR_FILE ? (uint64_t) status->st_size : 0,
        .mode = status->st_mode & 07777,
        .uid = copying->order->uid,
        .gid = copying->order->gid,
        .mtime = status->st_mtim,
    };

    if (strlen(path) > TAR_PATH_MAX || strlen(link) > TAR_PATH_MAX)
        return error_set(copying->err, ERR_INVALID, 0, "'%.*s' is too long", SHOWN_MAX, to);
    if (++copying->result.entries > CONTEXT_ENTRIES_MAX)
        return error_set(copying->err, ERR_TOO_LARGE, 0, "more than %zu files",
                         CONTEXT_ENTRIES_MAX);
    (void) snprintf(mode, sizeof(mode), "%c%04o %llu", type, (unsigned int) entry.mode,
                    (unsigned long long) entry.size);
    sha256_add(&copying->sha, mode, strlen(mode) + 1);
    sha256_add(&copying->sha, own, strlen(own) + 1);
    sha256_add(&copying->sha, link, strlen(link) + 1);
    tar_header_append(&header, &entry);
    return write_bytes(copying, header.data, header.length);
}

static int copy_content(struct copying *copying, int file, uint64_t size, const char *path)
{
    for (uint64_t left = size; left > 0;) {
        size_t wanted = left < CHUNK_SIZE ? (size_t) left : CHUNK_SIZE;
        ssize_t got = sys_file_read_full(file, copying->chunk, wanted);

        if (got != (ssize_t) wanted)
            return error_set(copying->err, ERR_CONFLICT, got < 0 ? (int) got : 0,
                             "'%.*s' changed meanwhile", SHOWN_MAX, path);
        sha256_add(&copying->sha, copying->chunk, wanted);
        if (write_bytes(copying, copying->chunk, wanted) < 0)
            return -1;
        left -= wanted;
    }
    return write_zeros(copying, tar_padding(size));
}

static int copy_file(struct copying *copying, int folder, const char *name, const char *path,
                     const char *to, const char *own)
{
    AUTO(close) int file = sys_file_open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat status;

    if (file < 0 || fstat(file, &status) < 0)
        return error_set(copying->err, ERR_INTERNAL, file < 0 ? file : errno, "open '%.*s'",
                         SHOWN_MAX, path);
    if (!S_ISREG(status.st_mode))
        return error_set(copying->err, ERR_CONFLICT, 0, "'%.*s' changed meanwhile", SHOWN_MAX,
                         path);
    if (begin_entry(copying, &status, TAR_FILE, to, own, "") < 0)
        return -1;
    return copy_content(copying, file, (uint64_t) status.st_size, path);
}

static int context_copy_link(struct copying *copying, int folder, const char *name,
                             const char *path, const struct stat *status, const char *to,
                             const char *own)
{
    AUTO(free) char *target = mem_alloc(TAR_PATH_MAX + 2);
    ssize_t length = readlinkat(folder, name, target, TAR_PATH_MAX + 1);

    if (length < 0)
        return error_set(copying->err, ERR_CONFLICT, errno, "'%.*s'", SHOWN_MAX, path);
    return begin_entry(copying, status, TAR_LINK, to, own, target);
}

/* --- trees ---------------------------------------------------------------------------------- */

static int copy_folder(struct copying *copying, int folder, const char *path, const char *to,
                       int depth);

/* Something in a folder; `own` is where it goes when nothing else is said. */
static int context_copy_entry(struct copying *copying, int folder, const char *name,
                              const char *path, const char *to, const char *own, int depth)
{
    bool is_ignored = context_ignore_matches(copying->context->ignore, path);
    struct stat status;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_set(copying->err, ERR_CONFLICT, errno, "'%.*s'", SHOWN_MAX, path);
    if (S_ISDIR(status.st_mode)) {
        AUTO(close) int inner = -EBADF;

        if (is_ignored && !context_ignore_has_exceptions(copying->context->ignore))
            return 0;
        inner = sys_file_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (inner < 0)
            return error_set(copying->err, ERR_INTERNAL, inner, "open '%.*s'", SHOWN_MAX, path);
        if (!is_ignored && begin_entry(copying, &status, TAR_FOLDER, to, own, "") < 0)
            return -1;
        return copy_folder(copying, inner, path, to, depth + 1);
    }
    if (is_ignored)
        return 0;
    if (S_ISLNK(status.st_mode))
        return context_copy_link(copying, folder, name, path, &status, to, own);
    if (S_ISREG(status.st_mode))
        return copy_file(copying, folder, name, path, to, own);
    return error_set(copying->err, ERR_INVALID, 0, "'%.*s' is not a file, folder or link",
                     SHOWN_MAX, path);
}

/* All that is in it, to the folder `to` of the archive. */
static int copy_folder(struct copying *copying, int folder, const char *path, const char *to,
                       int depth)
{
    AUTO(names) struct context_names names = {.count = 0};

    if (depth > CONTEXT_DEPTH_MAX)
        return error_set(copying->err, ERR_TOO_LARGE, 0, "folders within folders, more than %d",
                         CONTEXT_DEPTH_MAX);
    if (read_names(folder, path, &names, copying->err) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        AUTO(free) char *inner = context_join(path, names.list[i]);
        AUTO(free) char *place = context_join(to, names.list[i]);

        if (context_copy_entry(copying, folder, names.list[i], inner, place, place, depth) < 0)
            return -1;
    }
    return 0;
}

/* The folders that get all of it: of the archive, and not of what is copied. */
static int make_folders(struct copying *copying)
{
    const char *below = copying->order->below ? copying->order->below : "";

    for (size_t end = 0; below[end]; end += below[end] == '/') {
        AUTO(text) struct text header = TEXT_INIT(TAR_HEADER_MAX);
        AUTO(free) char *path = mem_copy_bytes(below, end += strcspn(below + end, "/"));
        const struct tar_entry entry = {
            .type = TAR_FOLDER,
            .path = path,
            .link = "",
            .mode = FOLDER_MODE,
            .uid = copying->order->uid,
            .gid = copying->order->gid,
            .mtime = {.tv_sec = time(NULL)},
        };

        if (end > TAR_PATH_MAX)
            return error_set(copying->err, ERR_INVALID, 0, "'%.*s' is too long", SHOWN_MAX, below);
        tar_header_append(&header, &entry);
        if (write_bytes(copying, header.data, header.length) < 0)
            return -1;
    }
    return 0;
}

/* --- sources -------------------------------------------------------------------------------- */

static int copy_source_folder(struct copying *copying, int folder, const char *name,
                              const char *path)
{
    AUTO(close) int inner = sys_file_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

    if (inner < 0)
        return error_set(copying->err, ERR_INTERNAL, inner, "open '%.*s'", SHOWN_MAX, path);
    return copy_folder(copying, inner, path, "", 0);
}

/* A source that was found: a folder's content, or one file under its name. One that is left out,
 * with all that is in it, was not found. */
static int copy_source(struct copying *copying, int folder, const char *name, const char *path)
{
    const char *wanted = copying->order->name;
    size_t before = copying->result.entries;
    struct stat status;
    bool is_folder;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_set(copying->err, ERR_CONFLICT, errno, "'%.*s'", SHOWN_MAX, path);
    is_folder = S_ISDIR(status.st_mode);
    if ((is_folder ? copy_source_folder(copying, folder, name, path)
                   : context_copy_entry(copying, folder, name, path, wanted ? wanted : name, name,
                                        0)) < 0)
        return -1;
    if (copying->result.entries == before && context_ignore_matches(copying->context->ignore, path))
        return 0;
    copying->sources++;
    copying->result.is_one_file &= !is_folder;
    return 0;
}

static int find_source(struct copying *copying, int folder, const char *path, const char *rest);

/* One name of a source, the last or one on the way. */
static int take_name(struct copying *copying, int folder, const char *path, const char *name,
                     const char *rest)
{
    AUTO(free) char *inner = context_join(path, name);
    AUTO(close) int next = -EBADF;

    if (!*rest) {
        /* In a folder that is left out something may be taken all the same. */
        if (context_ignore_matches(copying->context->ignore, inner) &&
            !context_ignore_has_exceptions(copying->context->ignore))
            return 0;
        return copy_source(copying, folder, name, inner);
    }
    next = sys_file_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return next < 0 ? 0 : find_source(copying, next, inner, rest);
}

static bool exists(int folder, const char *name)
{
    struct stat status;

    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The first name of `rest` in this folder, with all that follows it. */
static int find_source(struct copying *copying, int folder, const char *path, const char *rest)
{
    AUTO(names) struct context_names names = {.count = 0};
    AUTO(ignore_pattern) struct ignore_pattern pattern = {.count = 0};
    size_t length = strcspn(rest, "/");
    AUTO(free) char *first = mem_copy_bytes(rest, length);

    rest += length + strspn(rest + length, "/");
    if (exists(folder, first))
        return take_name(copying, folder, path, first, rest);
    if (ignore_pattern_read(first, length, IGNORE_DOCKER, &pattern) < 0)
        return error_set(copying->err, ERR_INVALID, 0, "'%.*s' is not a pattern", SHOWN_MAX, first);
    if (pattern.is_literal)
        return 0;
    if (read_names(folder, path, &names, copying->err) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        if (ignore_pattern_matches(&pattern, names.list[i], strlen(names.list[i])) &&
            take_name(copying, folder, path, names.list[i], rest) < 0)
            return -1;
    }
    return 0;
}

/* A source as it is used: without empty and "." steps. NULL: it leads out. */
static char *plain_path(const char *source)
{
    AUTO(free) char *path = mem_copy_text(source);

    return path_relative(path, path) < 0 || strlen(path) > TAR_PATH_MAX ? NULL : TAKE_PTR(path);
}

static int copy_named(struct copying *copying, const char *source)
{
    AUTO(free) char *path = plain_path(source);
    size_t before = copying->sources;
    int r;

    if (!path)
        return error_set(copying->err, ERR_INVALID, 0, "'%.*s' leads out of the context", SHOWN_MAX,
                         source);
    if (!*path) {
        copying->sources++;
        copying->result.is_one_file = false;
        return copy_folder(copying, copying->context->folder, "", "", 0);
    }
    r = find_source(copying, copying->context->folder, "", path);
    if (r == 0 && copying->sources == before)
        return error_set(copying->err, ERR_NOT_FOUND, 0, "there is no '%.*s' in the context",
                         SHOWN_MAX, source);
    return r;
}

int context_copy(const struct context *context, const struct context_order *order,
                 struct context_result *ret_result, struct error *err)
{
    AUTO(free) char *chunk = mem_alloc(CHUNK_SIZE);
    struct copying copying = {.context = context,
                              .order = order,
                              .result = {.is_one_file = true},
                              .chunk = chunk,
                              .err = err};

    sha256_init(&copying.sha);
    if (make_folders(&copying) < 0)
        return -1;
    for (size_t i = 0; i < order->count; i++) {
        if (copy_named(&copying, order->sources[i]) < 0)
            return -1;
    }
    copying.result.is_one_file &= copying.sources == 1;
    if (write_zeros(&copying, TAR_END_SIZE) < 0)
        return -1;
    sha256_finish(&copying.sha, copying.result.digest);
    *ret_result = copying.result;
    return 0;
}
