#include <sys/xattr.h>

#include "base/format/tar_header.h"
#include "keeper/image/image_tree.h"
#include "keeper/tree/tree_test_kit.h"
#include "sys/file/sys_tree.h"

#define PLENTY                                                                                     \
    {                                                                                              \
        .bytes = 1 << 20, .entries = 1000, .free = 0                                               \
    }

static char place[] = "/tmp/burrow-image-tree-XXXXXX";
static int top = -EBADF;

static int set_up(void **state)
{
    (void) state;
    (void) snprintf(place, sizeof(place), "/tmp/burrow-image-tree-XXXXXX");
    top = mkdtemp(place) ? open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    (void) umask(0);
    return top < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = sys_tree_delete(parent, strrchr(place, '/') + 1);

    (void) state;
    (void) close(parent);
    (void) close(top);
    return r;
}

static void add(struct text *tar, char type, const char *path, const char *more)
{
    const struct tar_entry entry = {
        .type = type,
        .path = path,
        .link = type == TAR_LINK || type == TAR_HARD_LINK ? more : "",
        .size = type == TAR_FILE ? strlen(more) : 0,
        .mode = type == TAR_FOLDER ? 0755 : 0640,
        .uid = 1,
        .gid = 2,
        .mtime = {.tv_sec = 1000},
    };
    static const char zeros[TAR_BLOCK];

    tar_header_append(tar, &entry);
    if (type == TAR_FILE) {
        text_append(tar, more);
        text_append_bytes(tar, zeros, tar_padding(entry.size));
    }
}

/* Bytes one by one when `step` is 1. */
static int unpack(struct text *tar, size_t step, const struct image_limits *limits,
                  struct image_counts *counts, struct error *err)
{
    AUTO(image_tree) struct image_tree *tree = image_tree_new(top, limits, counts);
    static const char zeros[TAR_END_SIZE];

    text_append_bytes(tar, zeros, sizeof(zeros));
    for (size_t at = 0; at < tar->length; at += step) {
        size_t part = tar->length - at < step ? tar->length - at : step;

        if (image_tree_feed(tree, tar->data + at, part, err) < 0)
            return -1;
    }
    return image_tree_finish(tree, err);
}

static bool is_gone(const char *name)
{
    struct stat status;

    return fstatat(top, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(status.st_mode) &&
           status.st_rdev == 0;
}

static bool is_opaque(const char *name)
{
    char path[128], value;

    (void) snprintf(path, sizeof(path), "%s/%s", place, name);
    return lgetxattr(path, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

static void marks_become_what_overlay_knows(void **state)
{
    AUTO(text) struct text tar = TEXT_INIT(1 << 20);
    struct image_limits limits = PLENTY;
    struct image_counts counts = {0};
    struct error err = ERROR_INIT;
    struct stat status;

    (void) state;
    add(&tar, TAR_FILE, "a/.wh.file", "");
    add(&tar, TAR_FILE, "a/b/.wh..wh..opq", "ignored");
    add(&tar, TAR_FILE, ".wh..wh.aufs", "");
    /* Gone and made again: what lay in it below stays gone. */
    add(&tar, TAR_FILE, ".wh.again", "");
    add(&tar, TAR_FOLDER, "again", "");
    add(&tar, TAR_FOLDER, "before", "");
    add(&tar, TAR_FILE, ".wh.before", "");
    add(&tar, TAR_FILE, ".wh.both", "");
    add(&tar, TAR_FILE, "both", "x");
    add(&tar, TAR_FILE, "kept", "x");
    add(&tar, TAR_FILE, ".wh.kept", "");
    if (unpack(&tar, 1, &limits, &counts, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(is_gone("a/file"));
    assert_false(is_opaque("a"));
    assert_true(is_opaque("a/b"));
    assert_true(is_opaque("again"));
    assert_true(is_opaque("before"));
    assert_int_equal(fstatat(top, "both", &status, 0), 0);
    assert_int_equal(status.st_size, 1);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(fstatat(top, "kept", &status, 0), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(fstatat(top, ".wh..wh.aufs", &status, 0), -1);
    assert_int_equal(counts.entries, 13);
}

static void files_have_owner_mode_and_time_and_later_ones_win(void **state)
{
    AUTO(text) struct text tar = TEXT_INIT(1 << 20);
    struct image_limits limits = PLENTY;
    struct image_counts counts = {0};
    struct error err = ERROR_INIT;
    struct stat status, other;

    (void) state;
    add(&tar, TAR_FILE, "/abs/file", "12345");
    add(&tar, TAR_HARD_LINK, "second", "abs/file");
    add(&tar, TAR_HARD_LINK, "second", "abs/file");
    add(&tar, TAR_LINK, "link", "/etc/../../passwd");
    add(&tar, TAR_PIPE, "pipe", "");
    add(&tar, TAR_FOLDER, "was", "");
    add(&tar, TAR_FILE, "was/in", "x");
    add(&tar, TAR_FILE, "was", "file now");
    add(&tar, TAR_FILE, "turned", "x");
    add(&tar, TAR_FOLDER, "turned", "");
    add(&tar, TAR_FILE, "turned/in", "x");
    if (unpack(&tar, 100, &limits, &counts, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(fstatat(top, "abs/file", &status, 0), 0);
    assert_int_equal(fstatat(top, "second", &other, 0), 0);
    assert_int_equal(status.st_ino, other.st_ino);
    assert_int_equal(status.st_uid, 1);
    assert_int_equal(status.st_gid, 2);
    assert_int_equal(status.st_mode, S_IFREG | 0640);
    assert_int_equal(status.st_mtime, 1000);
    assert_int_equal(fstatat(top, "link", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(fstatat(top, "was", &status, 0), 0);
    assert_int_equal(status.st_size, strlen("file now"));
    assert_int_equal(fstatat(top, "turned/in", &status, 0), 0);
    assert_int_equal(counts.bytes, 5 + 1 + 8 + 1 + 1);
}

static void bombs_are_stopped_by_each_limit(void **state)
{
    static const struct {
        struct image_limits limits;
        enum err_code code;
    } cases[] = {
        {{.bytes = 9, .entries = 10}, ERR_TOO_LARGE},
        {{.bytes = 15, .entries = 10}, ERR_TOO_LARGE},
        {{.bytes = 100, .entries = 1}, ERR_TOO_LARGE},
        {{.bytes = 100, .entries = 10, .free = UINT64_MAX}, ERR_NO_SPACE},
        {{.bytes = 20, .entries = 2}, ERR_NONE},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(text) struct text tar = TEXT_INIT(1 << 20);
        struct image_counts counts = {0};
        struct error err = ERROR_INIT;
        int r;

        add(&tar, TAR_FILE, "a", "1234567890");
        add(&tar, TAR_FILE, "b", "1234567890");
        r = unpack(&tar, 512, &cases[i].limits, &counts, &err);
        assert_int_equal(r, cases[i].code == ERR_NONE ? 0 : -1);
        assert_int_equal(err.code, cases[i].code);
    }
}

/* Files without a byte, and folders that no entry names, take room on a disk all the same. */
static void empty_files_and_unnamed_folders_are_limited_too(void **state)
{
    static const struct {
        const char *path;
        struct image_limits limits;
        enum err_code code;
    } cases[] = {
        {"a/b/c/d/e", {.bytes = 100, .entries = 3}, ERR_TOO_LARGE},
        {"f/g/h/i/j", {.bytes = 100, .entries = 5}, ERR_NONE},
        {"k", {.bytes = 100, .entries = 10, .free = UINT64_MAX}, ERR_NO_SPACE},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(text) struct text tar = TEXT_INIT(1 << 20);
        struct image_counts counts = {0};
        struct error err = ERROR_INIT;

        add(&tar, TAR_FILE, cases[i].path, "");
        (void) unpack(&tar, 512, &cases[i].limits, &counts, &err);
        assert_int_equal(err.code, cases[i].code);
    }
}

static void what_is_cut_off_is_refused_and_nothing_at_all_is_an_empty_layer(void **state)
{
    struct image_limits limits = PLENTY;
    struct image_counts counts = {0};
    AUTO(text) struct text tar = TEXT_INIT(1 << 20);
    AUTO(image_tree) struct image_tree *empty = image_tree_new(top, &limits, &counts);
    AUTO(image_tree) struct image_tree *cut = image_tree_new(top, &limits, &counts);
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(image_tree_finish(empty, &err), 0);
    add(&tar, TAR_FILE, "a", "1234567890");
    assert_int_equal(image_tree_feed(cut, tar.data, 515, &err), 0);
    assert_int_equal(image_tree_finish(cut, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(marks_become_what_overlay_knows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_have_owner_mode_and_time_and_later_ones_win, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(bombs_are_stopped_by_each_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(empty_files_and_unnamed_folders_are_limited_too, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_cut_off_is_refused_and_nothing_at_all_is_an_empty_layer, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("image_tree", tests, NULL, NULL);
}
