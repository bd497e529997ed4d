/* For tests of the keeper only: trees as a hostile sandbox might leave them, and what jobs say. */
#pragma once

#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/text.h"
#include "keeper/output.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
#include "sys/sys_test.h"

#define TREE_NAME_MAX 32

/* Numbers that look random and are the same in every run (xorshift). */
struct numbers {
    uint64_t state; /* not 0 */
};

static inline uint64_t number_below(struct numbers *numbers, uint64_t limit)
{
    numbers->state ^= numbers->state << 13;
    numbers->state ^= numbers->state >> 7;
    numbers->state ^= numbers->state << 17;
    return numbers->state % limit;
}

static inline int open_place(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static inline int make_place(int folder, const char *name)
{
    CHECK_EQUAL(mkdirat(folder, name, 0700), 0);
    return open_place(folder, name);
}

static inline void make_content(int folder, const char *name, const char *content)
{
    AUTO(close) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQUAL(sys_file_write_full(fd, content, strlen(content)), 0);
}

/* --- a random tree -------------------------------------------------------------------------- */

struct grower {
    struct numbers numbers;
    int top;
    int budget;  /* entries still to make */
    int several; /* files at the top that get further names */
    bool is_root;
};

static inline void random_name(struct numbers *numbers, char ret_name[static NAME_MAX + 1])
{
    static const char *const odd[] = {"\n", "-rf",      "...",  "..a", " ",
                                      "\\", "\xff\xfe", "a\nb", "\""};
    size_t length = 1 + number_below(numbers, number_below(numbers, 20) ? 24 : NAME_MAX);

    if (number_below(numbers, 5) == 0) {
        (void) snprintf(ret_name, NAME_MAX + 1, "%s", odd[number_below(numbers, ARRAY_COUNT(odd))]);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        char c = (char) (1 + number_below(numbers, 255));

        ret_name[i] = c == '/' || c == '.' ? 'x' : c;
    }
    ret_name[length] = '\0';
}

static inline void random_attributes(struct grower *grower, int folder, const char *name)
{
    char value[600];

    CHECK_EQUAL(fchdir(folder), 0);
    while (number_below(&grower->numbers, 3) == 0) {
        char attribute[40];
        size_t length = number_below(&grower->numbers, sizeof(value));

        memset(value, (int) number_below(&grower->numbers, 256), sizeof(value));
        (void) snprintf(attribute, sizeof(attribute), "user.a%d",
                        (int) number_below(&grower->numbers, 100));
        /* Not every filesystem has them: then there is nothing to copy. */
        (void) lsetxattr(name, attribute, value, length, 0);
    }
    if (number_below(&grower->numbers, 4) == 0)
        (void) lsetxattr(name, "user.overlay.opaque", "y", 1, 0);
}

/* Owner, mode, times of something that is complete otherwise. */
static inline void random_status(struct grower *grower, int folder, const char *name, mode_t format)
{
    struct numbers *numbers = &grower->numbers;
    mode_t mode = (mode_t) number_below(numbers, 010000);
    struct timespec times[2];

    for (int i = 0; i < 2; i++)
        times[i] = (struct timespec){.tv_sec = (time_t) number_below(numbers, UINT32_MAX),
                                     .tv_nsec = (long) number_below(numbers, 1000000000)};
    if (grower->is_root)
        CHECK_EQUAL(fchownat(folder, name, (uid_t) number_below(numbers, 65536),
                             (gid_t) number_below(numbers, 65536), AT_SYMLINK_NOFOLLOW),
                    0);
    else
        mode |= 0700;
    if (format != S_IFLNK && format != S_IFCHR)
        CHECK_EQUAL(fchmodat(folder, name, mode, 0), 0);
    CHECK_EQUAL(utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Pieces of content with holes between them. */
static inline void random_file(struct grower *grower, int folder, const char *name)
{
    AUTO(close) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char piece[5000];
    off_t at = 0;

    CHECK(fd >= 0);
    for (uint64_t i = number_below(&grower->numbers, 4); i > 0; i--) {
        size_t length = number_below(&grower->numbers, sizeof(piece));

        memset(piece, (int) number_below(&grower->numbers, 256), sizeof(piece));
        at += (off_t) number_below(&grower->numbers, 3) * 100000;
        CHECK_EQUAL(sys_file_pwrite_full(fd, piece, length, at), 0);
        at += (off_t) length;
    }
    if (number_below(&grower->numbers, 4) == 0)
        CHECK_EQUAL(ftruncate(fd, at + (off_t) number_below(&grower->numbers, 1 << 20)), 0);
}

static inline void random_link(struct grower *grower, int folder, const char *name)
{
    static const char *const targets[] = {"/",    "..",   "../../..", "/etc/passwd",
                                          "\xff", "loop", "."};
    char target[NAME_MAX + 1];

    random_name(&grower->numbers, target);
    CHECK_EQUAL(symlinkat(number_below(&grower->numbers, 2)
                              ? target
                              : targets[number_below(&grower->numbers, ARRAY_COUNT(targets))],
                          folder, name),
                0);
}

static inline void random_entries(struct grower *grower, int folder, int depth);

static inline void random_folder(struct grower *grower, int folder, const char *name, int depth)
{
    AUTO(close) int inside = make_place(folder, name);

    random_entries(grower, inside, depth + 1);
}

/* A further name of an earlier file; its status is that of the first. */
static inline void random_hard_link(struct grower *grower, int folder, const char *name)
{
    char first[TREE_NAME_MAX];

    if (grower->several == 0)
        return;
    (void) snprintf(first, sizeof(first), "several%d",
                    (int) number_below(&grower->numbers, (uint64_t) grower->several));
    CHECK_EQUAL(linkat(grower->top, first, folder, name, 0), 0);
}

static inline void random_entry(struct grower *grower, int folder, int depth)
{
    static const mode_t formats[] = {S_IFREG, S_IFREG, S_IFREG, S_IFDIR,  S_IFDIR, S_IFDIR,
                                     S_IFLNK, S_IFIFO, S_IFCHR, S_IFSOCK, S_IFBLK, 0};
    mode_t format = formats[number_below(&grower->numbers, ARRAY_COUNT(formats))];
    char name[NAME_MAX + 1];

    random_name(&grower->numbers, name);
    if (faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    if (format == S_IFBLK && !grower->is_root)
        return;
    grower->budget--;
    if (format == 0) {
        random_hard_link(grower, folder, name);
        return;
    }
    if (format == S_IFREG)
        random_file(grower, folder, name);
    else if (format == S_IFDIR)
        random_folder(grower, folder, name, depth);
    else if (format == S_IFLNK)
        random_link(grower, folder, name);
    else
        CHECK_EQUAL(mknodat(folder, name, format | 0600, format == S_IFBLK ? makedev(7, 999) : 0),
                    0);
    random_attributes(grower, folder, name);
    random_status(grower, folder, name, format);
}

static inline void random_entries(struct grower *grower, int folder, int depth)
{
    while (grower->budget > 0 && number_below(&grower->numbers, depth > 6 ? 2 : 12))
        random_entry(grower, folder, depth);
}

/* Fill `top` with about `budget` entries of all kinds. */
static inline void grow_tree(int top, uint64_t seed, int budget)
{
    struct grower grower = {
        .numbers = {seed * 2654435761u + 1}, .top = top, .budget = budget, .is_root = !geteuid()};
    char name[TREE_NAME_MAX];

    (void) umask(0);
    for (int i = 0; i < 3; i++) {
        (void) snprintf(name, sizeof(name), "several%d", i);
        if (i == 1)
            CHECK_EQUAL(mknodat(top, name, S_IFCHR, 0), 0); /* overlay links its whiteouts */
        else
            random_file(&grower, top, name);
        random_attributes(&grower, top, name);
        random_status(&grower, top, name, i == 1 ? S_IFCHR : S_IFREG);
        grower.several++;
    }
    while (grower.budget > 0)
        random_entry(&grower, top, 0);
    random_attributes(&grower, top, ".");
    random_status(&grower, top, ".", S_IFDIR);
}

/* A chain of folders so deep that no path could name its end. */
static inline void grow_chain(int top, int depth)
{
    AUTO(close) int at = open_place(top, ".");

    for (int i = 0; i < depth; i++) {
        int next = make_place(at, "dddddddddd");

        (void) close(at);
        at = next;
    }
}

/* What `path` has in one tree, it has in the other. Changes the working directory. */
static inline void check_same_attributes(int left, int right, const char *path)
{
    char names[8192], first[1024], second[1024];
    ssize_t length;

    CHECK_EQUAL(fchdir(left), 0);
    length = llistxattr(path, names, sizeof(names));
    for (ssize_t at = 0; at < length; at += (ssize_t) strlen(names + at) + 1) {
        ssize_t size;

        CHECK_EQUAL(fchdir(left), 0);
        size = lgetxattr(path, names + at, first, sizeof(first));
        CHECK(size >= 0);
        CHECK_EQUAL(fchdir(right), 0);
        CHECK_EQUAL(lgetxattr(path, names + at, second, sizeof(second)), size);
        CHECK(memcmp(first, second, (size_t) size) == 0);
    }
}

/* --- what a job says ------------------------------------------------------------------------ */

#define SAID_MAX ((size_t) 64 << 20)

/* Run a job's function with an output of its own; returns all it wrote. The caller frees it. */
#define SAID(call)                                                                                 \
    ({                                                                                             \
        struct output *output = malloc(sizeof(*output));                                           \
        char said_path[] = "/tmp/burrow-test-XXXXXX";                                              \
        int said_fd = mkostemp(said_path, O_CLOEXEC);                                              \
                                                                                                   \
        CHECK(output != NULL && said_fd >= 0);                                                     \
        output_init(output, said_fd);                                                              \
        said_result = (call);                                                                      \
        CHECK_EQUAL(output_flush(output), 0);                                                      \
        free(output);                                                                              \
        said_take(said_fd, said_path);                                                             \
    })

static int said_result __attribute__((unused));

static inline char *said_take(int fd, const char *path)
{
    char *text = NULL;
    size_t length;

    (void) close(fd);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, path, SAID_MAX, &text, &length), 0);
    CHECK_EQUAL(unlink(path), 0);
    return text;
}
