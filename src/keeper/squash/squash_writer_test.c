/* What the writer wrote is read by our reader and held against the tree. What others read and write
 * is tested with their programs: tests/integration/keeper_archive_test.py. */
#include <string.h>
#include <sys/mman.h>

#include "base/encoding/sha256.h"
#include "base/rounds_testing.h"
#include "keeper/squash/squash_image.h"
#include "keeper/squash/squash_writer.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/tree_test_kit.h"

#define DEPTH_MAX 64
#define FILES_MAX 20000

static const struct squash_writer_options plain = {
    .compression = SQUASH_LZ4, .level = 1, .threads = 2, .file_max = UINT64_C(1) << 40};

/* --- writing -------------------------------------------------------------------------------- */

static int write_steps(struct squash_writer *writer, int tree, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(tree);

    for (;;) {
        struct tree_step step;
        int result;

        CHECK_EQUAL(tree_walk_next(walk, &step, err), 0);
        if (step.event == TREE_END)
            return 0;
        if (step.event == TREE_ENTER)
            result = squash_writer_enter(writer, &step, err);
        else if (step.event == TREE_ENTRY)
            result = squash_writer_add(writer, &step, err);
        else
            result = squash_writer_leave(writer, err);
        if (result < 0)
            return -1;
    }
}

static int new_file(void)
{
    int fd = memfd_create("image", MFD_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static struct squash_writer *new_writer(int file, const struct squash_writer_options *options)
{
    struct squash_writer *writer = NULL;
    struct error err = ERROR_INIT;

    if (squash_writer_new(file, options, &writer, &err) < 0)
        fail_msg("%s", err.message);
    return writer;
}

/* An image of the tree; the caller closes it. */
static int write_image(int tree, const struct squash_writer_options *options,
                       struct squash_totals *ret_totals)
{
    int file = new_file();
    AUTO(squash_writer) struct squash_writer *writer = new_writer(file, options);
    struct error err = ERROR_INIT;
    uint64_t size = 0;

    if (write_steps(writer, tree, &err) < 0 || squash_writer_finish(writer, &size, &err) < 0)
        fail_msg("%s", err.message);
    CHECK_EQUAL(size % 4096, 0);
    *ret_totals = *squash_writer_totals(writer);
    return file;
}

/* --- comparing ------------------------------------------------------------------------------ */

struct comparison {
    struct squash_image *image;
    struct squash_folder folders[DEPTH_MAX];
    size_t depth;
    const struct tree_step *step;
    int content; /* of the file that is compared */
    off_t at;
    struct attributes attributes;
    size_t attribute_count;
    ino_t inodes[FILES_MAX]; /* by number */
};

static int same_bytes(void *context, const uint8_t *bytes, size_t length, struct error *err)
{
    struct comparison *comparison = context;
    static uint8_t theirs[1 << 20];

    (void) err;
    CHECK(length <= sizeof(theirs));
    CHECK_EQUAL(sys_file_pread_full(comparison->content, theirs, length, comparison->at), length);
    CHECK_EQUAL(memcmp(bytes, theirs, length), 0);
    comparison->at += (off_t) length;
    return 0;
}

static int same_attribute(void *context, const char *name, const uint8_t *value, size_t length,
                          struct error *err)
{
    struct comparison *comparison = context;
    char theirs[1024];

    (void) err;
    CHECK_EQUAL(fchdir(comparison->step->folder), 0);
    CHECK_EQUAL(lgetxattr(comparison->step->at, name, theirs, sizeof(theirs)), length);
    CHECK_EQUAL(memcmp(theirs, value, length), 0);
    CHECK(strncmp(name, "user.overlay.", 13) != 0);
    comparison->attribute_count++;
    return 0;
}

static void compare_attributes(struct comparison *comparison, const struct squash_inode *inode)
{
    const struct tree_step *step = comparison->step;
    size_t expected = 0;
    struct error err;

    CHECK_EQUAL(attributes_list(&comparison->attributes, step->folder, step->at), 0);
    for (size_t i = 0; i < comparison->attributes.count; i++)
        expected += strncmp(comparison->attributes.names[i], "user.", 5) == 0 &&
                    strncmp(comparison->attributes.names[i], "user.overlay.", 13) != 0;
    comparison->attribute_count = 0;
    CHECK_EQUAL(squash_image_attributes(comparison->image, inode, same_attribute, comparison, &err),
                0);
    CHECK_EQUAL(comparison->attribute_count, expected);
}

static void compare_content(struct comparison *comparison, const struct squash_inode *inode)
{
    const struct tree_step *step = comparison->step;
    AUTO(close) int fd = openat(step->folder, step->at, O_RDONLY | O_CLOEXEC);
    struct error err = ERROR_INIT;

    CHECK(fd >= 0);
    comparison->content = fd;
    comparison->at = 0;
    CHECK_EQUAL(squash_image_content(comparison->image, inode, same_bytes, comparison, &err), 0);
    CHECK_EQUAL(comparison->at, step->status.st_size);
}

static void compare_target(struct comparison *comparison, const struct squash_inode *inode)
{
    const struct tree_step *step = comparison->step;
    char target[SQUASH_TARGET_MAX + 1], theirs[PATH_MAX] = "";
    struct error err;

    CHECK(readlinkat(step->folder, step->at, theirs, sizeof(theirs) - 1) > 0);
    CHECK_EQUAL(squash_image_target(comparison->image, inode, target, &err), 0);
    CHECK_EQUAL(strcmp(target, theirs), 0);
}

/* Names are one file in the image when they are one in the tree. */
static void compare_identity(struct comparison *comparison, const struct squash_inode *inode)
{
    ino_t number = comparison->step->status.st_ino;

    CHECK(inode->number < FILES_MAX);
    for (size_t i = 0; i < FILES_MAX && comparison->step->status.st_nlink > 1; i++)
        CHECK(comparison->inodes[i] != number || i == inode->number);
    CHECK(comparison->inodes[inode->number] == 0 || comparison->inodes[inode->number] == number);
    comparison->inodes[inode->number] = number;
}

static void compare(struct comparison *comparison, const struct squash_inode *inode)
{
    static const mode_t formats[] = {0,       S_IFDIR, S_IFREG, S_IFLNK,
                                     S_IFBLK, S_IFCHR, S_IFIFO, S_IFSOCK};
    const struct stat *status = &comparison->step->status;

    CHECK_EQUAL(formats[inode->type], status->st_mode & S_IFMT);
    CHECK_EQUAL(inode->mode, status->st_mode & 07777);
    CHECK_EQUAL(inode->uid, status->st_uid);
    CHECK_EQUAL(inode->gid, status->st_gid);
    CHECK_EQUAL(inode->mtime, status->st_mtim.tv_sec);
    CHECK_EQUAL(inode->links, status->st_nlink);
    if (S_ISBLK(status->st_mode) || S_ISCHR(status->st_mode))
        CHECK_EQUAL(makedev(inode->device >> 8 & 0xfff,
                            (inode->device & 0xff) | (inode->device >> 12 & ~0xffu)),
                    status->st_rdev);
    if (S_ISREG(status->st_mode))
        compare_content(comparison, inode);
    if (S_ISLNK(status->st_mode))
        compare_target(comparison, inode);
    compare_attributes(comparison, inode);
    if (!S_ISDIR(status->st_mode))
        compare_identity(comparison, inode);
}

/* The inode in the image that belongs to a step of the walk. */
static struct squash_inode inode_of(struct comparison *comparison, const struct tree_step *step)
{
    struct squash_folder *folder = comparison->folders + comparison->depth - (step->depth > 0);
    uint64_t place = squash_image_superblock(comparison->image)->root;
    struct error err = ERROR_INIT;
    struct squash_inode inode;

    if (step->depth) {
        CHECK_EQUAL(squash_folder_next(comparison->image, folder, &err), 1);
        CHECK_EQUAL(strcmp(folder->name, step->name), 0);
        place = folder->place;
    }
    CHECK_EQUAL(squash_image_inode(comparison->image, place, &inode, &err), 0);
    return inode;
}

static void compare_tree(int tree, int file)
{
    struct comparison *comparison = calloc(1, sizeof(*comparison));
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(tree);
    struct error err = ERROR_INIT;
    struct tree_step step;

    attributes_init(&comparison->attributes);
    CHECK_EQUAL(squash_image_new(file, &comparison->image, &err), 0);
    for (;;) {
        CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_END)
            break;
        if (step.event == TREE_LEAVE) {
            comparison->depth--;
            CHECK_EQUAL(squash_folder_next(comparison->image,
                                           &comparison->folders[comparison->depth], &err),
                        0);
            continue;
        }
        struct squash_inode inode = inode_of(comparison, &step);

        comparison->step = &step;
        compare(comparison, &inode);
        if (step.event == TREE_ENTER)
            squash_folder_init(&comparison->folders[comparison->depth++], &inode);
    }
    squash_image_free(comparison->image);
    attributes_done(&comparison->attributes);
    free(comparison);
}

/* --- tests ---------------------------------------------------------------------------------- */

struct scratch {
    char path[SCRATCH_SIZE];
    int tree;
};

static void set_up(struct scratch *scratch)
{
    make_scratch(scratch->path);
    scratch->tree = open_place(AT_FDCWD, scratch->path);
}

static void tear_down(struct scratch *scratch)
{
    CHECK_EQUAL(sys_tree_empty(scratch->tree), 0);
    (void) close(scratch->tree);
    assert_int_equal(rmdir(scratch->path), 0);
}

static void random_trees_come_back_as_they_were(void **state)
{
    static const enum squash_compression kinds[] = {SQUASH_LZ4, SQUASH_ZSTD, SQUASH_GZIP,
                                                    SQUASH_XZ};

    (void) state;
    for (unsigned int seed = 1; seed <= rounds_of(4, 8); seed++) {
        struct squash_writer_options options = plain;
        struct squash_totals totals;
        struct scratch scratch;

        set_up(&scratch);
        grow_tree(scratch.tree, seed, 100);
        options.compression = kinds[seed % ARRAY_COUNT(kinds)];
        options.threads = seed % 4;
        {
            AUTO(close) int file = write_image(scratch.tree, &options, &totals);

            compare_tree(scratch.tree, file);
        }
        tear_down(&scratch);
    }
}

static void digest_of(int file, uint8_t ret_digest[static SHA256_SIZE])
{
    static uint8_t bytes[8 << 20];
    ssize_t got = sys_file_pread_full(file, bytes, sizeof(bytes), 0);

    CHECK(got > 0 && (size_t) got < sizeof(bytes));
    sha256_bytes(bytes, (size_t) got, ret_digest);
}

static void an_archive_does_not_depend_on_threads(void **state)
{
    uint8_t first[SHA256_SIZE], other[SHA256_SIZE];
    struct squash_writer_options options = plain;
    struct squash_totals totals;
    struct scratch scratch;

    (void) state;
    set_up(&scratch);
    grow_tree(scratch.tree, 99, 200);
    for (unsigned int threads = 0; threads < 5; threads++) {
        options.threads = threads;
        AUTO(close) int file = write_image(scratch.tree, &options, &totals);

        digest_of(file, threads ? other : first);
        if (threads)
            assert_memory_equal(first, other, SHA256_SIZE);
    }
    tear_down(&scratch);
}

static void a_folder_of_many_names_comes_back(void **state)
{
    struct squash_totals totals;
    struct scratch scratch;
    char name[64];

    (void) state;
    set_up(&scratch);
    for (int i = 0; i < 6000; i++) {
        (void) snprintf(name, sizeof(name), "a rather long name for a file, number %d", i);
        CHECK_EQUAL(mknodat(scratch.tree, name, S_IFREG | 0600, 0), 0);
    }
    {
        AUTO(close) int file = write_image(scratch.tree, &plain, &totals);

        compare_tree(scratch.tree, file);
        assert_int_equal(totals.files, 6000);
        assert_int_equal(totals.folders, 1);
    }
    tear_down(&scratch);
}

/* The small inode of a folder counts the bytes of its names in 16 bits. */
static void a_folder_at_the_edge_of_the_small_inode_comes_back(void **state)
{
    struct squash_totals totals;
    struct scratch scratch;
    char name[256], last[256] = "z";

    (void) state;
    set_up(&scratch);
    for (int i = 0; i < 314; i++) {
        (void) snprintf(name, sizeof(name), "%0200d", i);
        CHECK_EQUAL(mknodat(scratch.tree, name, S_IFREG | 0600, 0), 0);
    }
    CHECK_EQUAL(mknodat(scratch.tree, last, S_IFREG | 0600, 0), 0);
    for (int length = 120; length < 200; length++) {
        memset(name, 'z', (size_t) length);
        name[length] = '\0';
        CHECK_EQUAL(renameat(scratch.tree, last, scratch.tree, name), 0);
        memcpy(last, name, (size_t) length + 1);
        AUTO(close) int file = write_image(scratch.tree, &plain, &totals);

        compare_tree(scratch.tree, file);
    }
    tear_down(&scratch);
}

static void holes_take_no_place_and_files_may_be_long(void **state)
{
    const off_t length = ((off_t) 5 << 30) + 12345;
    struct squash_totals totals;
    struct scratch scratch;
    struct stat status;

    (void) state;
    set_up(&scratch);
    {
        AUTO(close) int fd = openat(scratch.tree, "long", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        CHECK_EQUAL(ftruncate(fd, length), 0);
        CHECK_EQUAL(sys_file_pwrite_full(fd, "middle", 6, (off_t) 3 << 30), 0);
        CHECK_EQUAL(sys_file_pwrite_full(fd, "end", 3, length - 3), 0);
    }
    AUTO(close) int file = write_image(scratch.tree, &plain, &totals);

    CHECK_EQUAL(fstat(file, &status), 0);
    assert_in_range(status.st_size, 1, 16384);
    assert_true(totals.bytes == (uint64_t) length);
    {
        struct squash_image *image;
        struct squash_inode inode;
        struct squash_folder folder;
        struct error err;

        CHECK_EQUAL(squash_image_new(file, &image, &err), 0);
        CHECK_EQUAL(squash_image_inode(image, squash_image_superblock(image)->root, &inode, &err),
                    0);
        squash_folder_init(&folder, &inode);
        CHECK_EQUAL(squash_folder_next(image, &folder, &err), 1);
        CHECK_EQUAL(squash_image_inode(image, folder.place, &inode, &err), 0);
        assert_true(inode.size == (uint64_t) length);
        squash_image_free(image);
    }
    tear_down(&scratch);
}

static int write_and_fail(int tree, const struct squash_writer_options *options, struct error *err)
{
    AUTO(close) int file = new_file();
    AUTO(squash_writer) struct squash_writer *writer = new_writer(file, options);

    return write_steps(writer, tree, err);
}

static void what_is_too_long_is_refused_by_its_path(void **state)
{
    struct squash_writer_options options = plain;
    struct error err = ERROR_INIT;
    struct scratch scratch;

    (void) state;
    set_up(&scratch);
    make_content(scratch.tree, "first", "small");
    make_content(scratch.tree, "too-long", "more than ten bytes");
    options.file_max = 10;
    assert_int_equal(write_and_fail(scratch.tree, &options, &err), -1);
    assert_non_null(strstr(err.message, "too-long"));
    CHECK_EQUAL(unlinkat(scratch.tree, "too-long", 0), 0);
    grow_chain(scratch.tree, 400);
    assert_int_equal(write_and_fail(scratch.tree, &options, &err), -1);
    assert_int_equal(err.system, ENAMETOOLONG);
    tear_down(&scratch);
}

static void a_file_that_changes_meanwhile_is_named(void **state)
{
    AUTO(close) int file = new_file();
    AUTO(squash_writer) struct squash_writer *writer = new_writer(file, &plain);
    AUTO(tree_walk) struct tree_walk *walk = NULL;
    struct error err = ERROR_INIT;
    struct scratch scratch;
    struct tree_step step;

    (void) state;
    set_up(&scratch);
    make_content(scratch.tree, "moving", "as it was");
    walk = tree_walk_new(scratch.tree);
    CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
    CHECK_EQUAL(squash_writer_enter(writer, &step, &err), 0);
    CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
    {
        AUTO(close) int fd = openat(scratch.tree, "moving", O_WRONLY | O_APPEND | O_CLOEXEC);

        CHECK_EQUAL(sys_file_write_full(fd, "and more", 8), 0);
    }
    assert_int_equal(squash_writer_add(writer, &step, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_non_null(strstr(err.message, "moving"));
    CHECK_EQUAL(unlinkat(scratch.tree, "moving", 0), 0);
    assert_int_equal(squash_writer_add(writer, &step, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    tear_down(&scratch);
}

static void a_full_disk_is_said(void **state)
{
    struct error err = ERROR_INIT;
    struct scratch scratch;

    (void) state;
    set_up(&scratch);
    grow_tree(scratch.tree, 5, 100);
    {
        AUTO(close) int file = open("/dev/full", O_RDWR | O_CLOEXEC);
        AUTO(squash_writer) struct squash_writer *writer = new_writer(file, &plain);
        uint64_t size;
        int result = write_steps(writer, scratch.tree, &err);

        if (result == 0)
            result = squash_writer_finish(writer, &size, &err);
        assert_int_equal(result, -1);
        assert_int_equal(err.code, ERR_NO_SPACE);
    }
    tear_down(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_come_back_as_they_were),
        cmocka_unit_test(an_archive_does_not_depend_on_threads),
        cmocka_unit_test(a_folder_of_many_names_comes_back),
        cmocka_unit_test(a_folder_at_the_edge_of_the_small_inode_comes_back),
        cmocka_unit_test(holes_take_no_place_and_files_may_be_long),
        cmocka_unit_test(what_is_too_long_is_refused_by_its_path),
        cmocka_unit_test(a_file_that_changes_meanwhile_is_named),
        cmocka_unit_test(a_full_disk_is_said),
    };

    return cmocka_run_group_tests_name("squash_writer", tests, NULL, NULL);
}
