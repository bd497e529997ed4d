/* For tests of layers only: trees packed into files, unpacked, changed at random and compared. */
#pragma once

#include <signal.h>
#include <sys/mman.h>

#include "json/json_read.h"
#include "keeper/layer/layer_pack.h"
#include "keeper/layer/layer_unpack.h"
#include "keeper/tree/tree_copy.h"
#include "keeper/tree/tree_list.h"
#include "keeper/tree/tree_test_kit.h"
#include "keeper/tree/tree_walk.h"

#define LAYER_ID_SIZE 65
#define PATHS_MAX     1000

/* Folders to work in, all empty at first. */
struct place_set {
    char path[SCRATCH_SIZE];
    int top;                                   /* owned */
    int older, newer, target, further, copied; /* owned */
};

static inline void place_set_init(struct place_set *set)
{
    make_scratch_in(SCRATCH_USUAL, set->path); /* as disks are, except in enter_memory */
    set->top = open_place(AT_FDCWD, set->path);
    set->older = make_place(set->top, "older");
    set->newer = make_place(set->top, "newer");
    set->target = make_place(set->top, "target");
    set->further = make_place(set->top, "further");
    set->copied = make_place(set->top, "copied");
}

static inline void place_set_done(struct place_set *set)
{
    (void) close(set->older);
    (void) close(set->newer);
    (void) close(set->target);
    (void) close(set->further);
    (void) close(set->copied);
    CHECK_EQUAL(chdir("/"), 0);
    CHECK_EQUAL(sys_tree_empty(set->top), 0);
    (void) close(set->top);
    CHECK_EQUAL(rmdir(set->path), 0);
}

/* In a child: a /tmp of its own in memory, where making a file takes no disk. */
static inline void enter_memory(void)
{
    enter_private_mounts();
    CHECK_EQUAL(syscall(SYS_mount, "tmpfs", "/tmp", "tmpfs", 0, "size=64M"), 0);
    CHECK_EQUAL(chdir("/tmp"), 0);
}

/* A file in memory that grows. */
static inline int make_memory(void)
{
    int fd = memfd_create("layer", MFD_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

/* A member of the object "layer" in what a job said. The caller drops the object. */
static inline json_t *said_layer(const char *said)
{
    AUTO(json) json_t *value = json_read(said, strlen(said), NULL, NULL);
    json_t *layer = json_object_get(value, "layer");

    CHECK(layer != NULL);
    return json_incref(layer);
}

/* Pack into a new file, which is returned and stands at its beginning. */
static inline int pack_layer(int tree, int base, char ret_id[static LAYER_ID_SIZE])
{
    struct error err = ERROR_INIT;
    int file = make_memory();
    AUTO(free)
    char *said =
        SAID(layer_pack(TREE_OF(tree), base < 0 ? NULL : TREE_OF(base), file, output, &err));
    AUTO(json) json_t *layer = NULL;

    if (said_result < 0)
        print_error("pack: %s\n", err.message);
    CHECK_EQUAL(said_result, 0);
    layer = said_layer(said);
    (void) snprintf(ret_id, LAYER_ID_SIZE, "%s", json_string_value(json_object_get(layer, "id")));
    CHECK_EQUAL(json_integer_value(json_object_get(layer, "size")), lseek(file, 0, SEEK_CUR));
    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
    return file;
}

/* Unpack a file from its beginning; the id that this tells must be the same. */
static inline void unpack_layer(int target, int file, const char *id)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    AUTO(json) json_t *layer = NULL;

    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
    said = SAID(layer_unpack(target, file, output, &err));
    if (said_result < 0)
        print_error("unpack: %s\n", err.message);
    CHECK_EQUAL(said_result, 0);
    layer = said_layer(said);
    CHECK(strcmp(json_string_value(json_object_get(layer, "id")), id) == 0);
}

/* --- the same tree? ------------------------------------------------------------------------- */

/* Without the counts of names of a whiteout: layers do not keep which of them are one file. */
static inline void drop_links(char *line)
{
    char *from = strstr(line, "\"links\":"), *to = from ? strchr(from, ',') : NULL;

    if (strstr(line, "\"type\":\"character\"") && to)
        memmove(from, to + 1, strlen(to + 1) + 1);
}

/* What a layer keeps of a tree, as lines: no sockets, no devices. */
static inline void list_kept(int folder, struct text *kept)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = SAID(tree_list(folder, output, &err));
    char *rest = said, *line;

    CHECK_EQUAL(said_result, 0);
    while ((line = strsep(&rest, "\n")) && *line) {
        if (strstr(line, "\"type\":\"socket\"") || strstr(line, "\"type\":\"block\"") ||
            strncmp(line, "{\"entries\"", strlen("{\"entries\"")) == 0)
            continue;
        drop_links(line);
        text_append(kept, line);
        text_append(kept, "\n");
    }
}

static inline void check_same_list(int left, int right)
{
    AUTO(text) struct text first = TEXT_INIT(SAID_MAX), second = TEXT_INIT(SAID_MAX);

    list_kept(left, &first);
    list_kept(right, &second);
    if (strcmp(text_string(&first), text_string(&second)) != 0) {
        size_t at = 0;

        while (first.data[at] == second.data[at])
            at++;
        at = at > 300 ? at - 300 : 0;
        print_error("one:   %.600s\n\nother: %.600s\n", first.data + at, second.data + at);
    }
    CHECK(strcmp(text_string(&first), text_string(&second)) == 0);
}

static inline bool is_same_content(int left, int right, const char *path)
{
    AUTO(free) char *first = NULL, *second = NULL;
    size_t first_length, second_length;

    CHECK_EQUAL(sys_file_read_all(left, path, SAID_MAX, &first, &first_length), 0);
    CHECK_EQUAL(sys_file_read_all(right, path, SAID_MAX, &second, &second_length), 0);
    return first_length == second_length && memcmp(first, second, first_length) == 0;
}

/* The first inode with several names that the other tree has under the same names. */
static inline void check_same_inodes(int left, int right, const char *path, const char *other)
{
    struct stat a, b, c, d;

    CHECK_EQUAL(fstatat(left, path, &a, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQUAL(fstatat(left, other, &b, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQUAL(fstatat(right, path, &c, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQUAL(fstatat(right, other, &d, AT_SYMLINK_NOFOLLOW), 0);
    if (S_ISCHR(a.st_mode))
        return;
    CHECK_EQUAL(a.st_ino == b.st_ino, c.st_ino == d.st_ino);
}

/* Everything that a layer keeps is the same in both. */
static inline void check_same_tree(int left, int right)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(left);
    AUTO(free) char *other = NULL;
    struct error err = ERROR_INIT;
    struct tree_step step;

    check_same_list(left, right);
    for (;;) {
        CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_END)
            return;
        if (S_ISSOCK(step.status.st_mode) || S_ISBLK(step.status.st_mode) || step.depth == 0)
            continue;
        if (S_ISREG(step.status.st_mode))
            CHECK(is_same_content(left, right, step.path));
        if (S_ISREG(step.status.st_mode) || step.event == TREE_ENTER)
            check_same_attributes(left, right, step.path);
        if (step.event != TREE_ENTRY || step.status.st_nlink < 2)
            continue;
        if (other)
            check_same_inodes(left, right, step.path, other);
        free(other);
        other = strdup(step.path);
    }
}

/* --- changing a tree at random -------------------------------------------------------------- */

struct paths {
    char *items[PATHS_MAX]; /* owned */
    size_t count;
};

static inline void paths_read(struct paths *paths, int top)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(top);
    struct error err = ERROR_INIT;
    struct tree_step step;

    paths->count = 0;
    for (;;) {
        CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_END)
            return;
        if (step.event != TREE_LEAVE && step.depth > 0 && paths->count < PATHS_MAX)
            paths->items[paths->count++] = strdup(step.path);
    }
}

static inline void paths_done(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    paths->count = 0;
}

/* The folder that `path` lies in, and its name there. */
static inline int open_above_path(int top, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    AUTO(free) char *above = slash ? strndup(path, (size_t) (slash - path)) : strdup(".");

    *ret_name = slash ? slash + 1 : path;
    return open_place(top, above);
}

static inline void change_delete(struct grower *grower, int folder, const char *name,
                                 const struct stat *status)
{
    (void) grower;
    (void) status;
    CHECK_EQUAL(sys_tree_delete(folder, name), 0);
}

static inline void change_replace(struct grower *grower, int folder, const char *name,
                                  const struct stat *status)
{
    change_delete(grower, folder, name, status);
    grower->budget = 5;
    if (number_below(&grower->numbers, 2))
        random_folder(grower, folder, name, 3);
    else if (number_below(&grower->numbers, 2))
        random_file(grower, folder, name);
    else if (number_below(&grower->numbers, 2))
        random_link(grower, folder, name);
    else
        CHECK_EQUAL(mknodat(folder, name, S_IFCHR, 0), 0);
}

/* One byte, with size and time as they were: the change that times do not tell. */
static inline void change_byte(struct grower *grower, int folder, const char *name,
                               const struct stat *status)
{
    struct timespec times[] = {status->st_atim, status->st_mtim};
    AUTO(close) int fd = -EBADF;
    uint8_t byte = 0;
    off_t at;

    if (!S_ISREG(status->st_mode) || status->st_size == 0)
        return;
    fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0);
    at = (off_t) number_below(&grower->numbers, (uint64_t) status->st_size);
    CHECK_EQUAL(pread(fd, &byte, 1, at), 1);
    byte ^= 0x41;
    CHECK_EQUAL(pwrite(fd, &byte, 1, at), 1);
    CHECK_EQUAL(fchmod(fd, status->st_mode & 07777), 0);
    CHECK_EQUAL(futimens(fd, times), 0);
}

static inline void change_size(struct grower *grower, int folder, const char *name,
                               const struct stat *status)
{
    AUTO(close) int fd = -EBADF;

    if (!S_ISREG(status->st_mode))
        return;
    fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQUAL(ftruncate(fd, (off_t) number_below(&grower->numbers, 20000)), 0);
}

static inline void change_status(struct grower *grower, int folder, const char *name,
                                 const struct stat *status)
{
    random_status(grower, folder, name, status->st_mode & S_IFMT);
}

static inline void change_attributes(struct grower *grower, int folder, const char *name,
                                     const struct stat *status)
{
    char names[8192];
    ssize_t length;

    (void) status;
    CHECK_EQUAL(fchdir(folder), 0);
    length = llistxattr(name, names, sizeof(names));
    if (length > 0 && number_below(&grower->numbers, 2))
        CHECK_EQUAL(lremovexattr(name, names), 0);
    else
        random_attributes(grower, folder, name);
}

static inline void change_add_name(struct grower *grower, int folder, const char *name,
                                   const struct stat *status)
{
    char other[NAME_MAX + 1];

    random_name(&grower->numbers, other);
    if (S_ISDIR(status->st_mode) || linkat(folder, name, grower->top, other, 0) < 0)
        return; /* the name is taken, or there is nothing to link: then nothing changes */
}

static inline void change_name(struct grower *grower, int folder, const char *name,
                               const struct stat *status)
{
    char other[NAME_MAX + 1];

    (void) status;
    random_name(&grower->numbers, other);
    if (faccessat(grower->top, other, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        (void) renameat(folder, name, grower->top, other);
}

static inline void change_add(struct grower *grower, int folder, const char *name,
                              const struct stat *status)
{
    (void) name;
    (void) status;
    grower->budget = 3;
    random_entries(grower, folder, 5);
}

/* Change about `count` things. */
static inline void change_tree(int top, uint64_t seed, int count)
{
    static void (*const changes[])(struct grower *, int, const char *, const struct stat *) = {
        change_delete,     change_replace,  change_byte, change_size, change_status,
        change_attributes, change_add_name, change_name, change_add};
    struct grower grower = {
        .numbers = {seed * 11400714819323198485u + 1}, .top = top, .is_root = !geteuid()};
    struct paths paths;

    (void) umask(0);
    paths_read(&paths, top);
    for (int i = 0; i < count && paths.count; i++) {
        const char *path = paths.items[number_below(&grower.numbers, paths.count)], *name;
        AUTO(close) int folder = -EBADF;
        struct stat status;

        /* It may have gone with an earlier change. */
        if (fstatat(top, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        folder = open_above_path(top, path, &name);
        changes[number_below(&grower.numbers, ARRAY_COUNT(changes))](&grower, folder, name,
                                                                     &status);
    }
    paths_done(&paths);
}

/* A tree with the same content as another, in files of its own. */
static inline void copy_tree(int from, int to)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = SAID(tree_copy(TREE_OF(from), to, output, &err));

    CHECK(said != NULL);
    CHECK_EQUAL(said_result, 0);
}
