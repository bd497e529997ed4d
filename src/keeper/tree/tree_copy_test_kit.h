/* For tests of tree_copy.h only: a tree and its copy, and whether they are the same. */
#pragma once

#include "keeper/tree/tree_list.h"
#include "keeper/tree/tree_test_kit.h"
#include "keeper/tree/tree_walk.h"

#define CONTENT_MAX ((size_t) 4 << 20)

/* A tree and the place for its copy. */
struct pair {
    char path[SCRATCH_SIZE];
    int source, target; /* owned */
};

static inline void pair_init_in(const char *parent, struct pair *pair)
{
    AUTO(close) int top = -EBADF;

    make_scratch_in(parent, pair->path);
    top = open_place(AT_FDCWD, pair->path);
    pair->source = make_place(top, "source");
    pair->target = make_place(top, "target");
}

static inline void pair_init(struct pair *pair)
{
    pair_init_in(scratch_parent(), pair);
}

static inline void pair_done(struct pair *pair)
{
    AUTO(close) int top = open_place(AT_FDCWD, pair->path);

    (void) close(pair->source);
    (void) close(pair->target);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(rmdir(pair->path), 0);
}

/* The lines of a list that a copy is to have as well: no sockets, no devices, no counts. */
static inline void keep_copied(const char *said, struct text *kept)
{
    while (*said) {
        const char *end = strchr(said, '\n');
        size_t length = (size_t) (end - said) + 1;
        AUTO(free) char *line = strndup(said, length);

        if (!strstr(line, "\"type\":\"socket\"") && !strstr(line, "\"type\":\"block\"") &&
            strncmp(line, "{\"entries\"", strlen("{\"entries\"")) != 0)
            text_append(kept, line);
        said = end + 1;
    }
}

static inline void list_copied(int folder, struct text *kept)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = SAID(tree_list(folder, output, &err));

    assert_int_equal(said_result, 0);
    keep_copied(said, kept);
}

static inline void check_same_file(int source, int target, const char *path)
{
    AUTO(free) char *left = NULL, *right = NULL;
    size_t left_length, right_length;
    struct stat left_status, right_status;

    assert_int_equal(sys_file_read_all(source, path, CONTENT_MAX, &left, &left_length), 0);
    assert_int_equal(sys_file_read_all(target, path, CONTENT_MAX, &right, &right_length), 0);
    assert_int_equal(left_length, right_length);
    assert_memory_equal(left, right, left_length);
    assert_int_equal(fstatat(source, path, &left_status, 0), 0);
    assert_int_equal(fstatat(target, path, &right_status, 0), 0);
    /* Holes stayed holes, give or take the filesystem's own pages. */
    assert_true(right_status.st_blocks <= left_status.st_blocks + 64);
}

static inline void check_same_content(const struct pair *pair)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(pair->source);
    struct error err = ERROR_INIT;
    struct tree_step step;

    for (;;) {
        assert_int_equal(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_END)
            return;
        if (S_ISREG(step.status.st_mode))
            check_same_file(pair->source, pair->target, step.path);
        if (S_ISREG(step.status.st_mode) || (step.event == TREE_ENTER && step.depth > 0))
            check_same_attributes(pair->source, pair->target, step.path);
    }
}

/* Neither has more than the other. */
static inline void check_same(const struct pair *pair)
{
    AUTO(text) struct text source = TEXT_INIT(SAID_MAX), target = TEXT_INIT(SAID_MAX);
    const struct pair swapped = {.source = pair->target, .target = pair->source};

    list_copied(pair->source, &source);
    list_copied(pair->target, &target);
    assert_string_equal(text_string(&source), text_string(&target));
    check_same_content(pair);
    check_same_content(&swapped);
}
