#include "launcher/disk/disk_pool_test_kit.h"
#include "launcher/root_test_kit.h"
#include "sys/file/sys_btrfs.h"

static void use_a_disk(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(disk) struct disk disk = DISK_INIT;
    AUTO(free) struct id *ids = NULL;
    struct disk_usage usage;
    struct stat status;
    struct id id;
    size_t count;

    enter_pool_place();
    pool = open_pool(&small_pool);
    id = make_disk(pool, 32 * MEGABYTE);
    CHECK_EQUAL(disk_pool_create(pool, &id, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_CONFLICT);
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK(is_close_on_exec(disk.folder) && is_close_on_exec(disk.upper));
    CHECK_EQUAL(fstat(disk.upper, &status), 0);
    CHECK_EQUAL(status.st_mode, S_IFDIR | 0755);
    CHECK_EQUAL(fstat(disk.work, &status), 0);
    CHECK_EQUAL(status.st_mode, S_IFDIR | 0700);
    CHECK_OK(disk_pool_list(pool, DISK_POOL_DISKS, &ids, &count, &test_error));
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(strcmp(ids[0].text, id.text), 0);
    CHECK_EQUAL(sys_btrfs_sync(disk.folder), 0);
    CHECK_OK(disk_pool_usage(pool, DISK_POOL_DISKS, &id, &usage, &test_error));
    CHECK_EQUAL(usage.limit, 32 * MEGABYTE);
    CHECK(usage.used > 0 && usage.used < MEGABYTE);
    CHECK_OK(disk_pool_set_limit(pool, &id, 0, &test_error));
    CHECK_EQUAL(sys_btrfs_sync(disk.folder), 0);
    CHECK_OK(disk_pool_usage(pool, DISK_POOL_DISKS, &id, &usage, &test_error));
    CHECK_EQUAL(usage.limit, 0);
    CHECK_OK(disk_pool_delete(pool, &id, &test_error));
    CHECK_EQUAL(disk_pool_delete(pool, &id, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK_EQUAL(disk_pool_open_disk(pool, &id, &disk, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
}

static void a_disk_is_made_measured_limited_and_deleted(void **state)
{
    (void) state;
    run_in_child(use_a_disk, NEEDS_POOL);
}

static void ask_nonsense(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct id id = id_new(), bad = {.text = "../../../../../../../../x"}, unterminated;
    struct disk_usage usage;

    enter_pool_place();
    pool = open_pool(&small_pool);
    memset(unterminated.text, 'a', sizeof(unterminated.text));
    CHECK_EQUAL(disk_pool_create(pool, &bad, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
    CHECK_EQUAL(disk_pool_delete(pool, &unterminated, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
    CHECK_EQUAL(disk_pool_create(pool, &id, DISK_LIMIT_MIN - 1, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
    CHECK_EQUAL(disk_pool_usage(pool, DISK_POOL_DISKS, &id, &usage, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK_EQUAL(disk_pool_adopt(pool, &id, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK_EQUAL(disk_pool_fork(pool, DISK_POOL_DISKS, &id, &id, 0, NULL, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK_EQUAL(disk_pool_fork(pool, DISK_POOL_SNAPSHOTS, &bad, &id, 0, NULL, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
}

static void names_and_limits_are_checked(void **state)
{
    (void) state;
    run_in_child(ask_nonsense, NEEDS_POOL);
}

/* As after a crash between two steps of create. */
static void complete_half_a_disk(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(close) int disks = -EBADF;
    AUTO(disk) struct disk disk = DISK_INIT;
    struct id id = id_new();

    enter_pool_place();
    pool = open_pool(&small_pool);
    disks = open(POOL_PATH "/store/disks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(sys_btrfs_create(disks, id.text, 0), 0);
    CHECK_EQUAL(disk_pool_open_disk(pool, &id, &disk, &test_error), -1);
    CHECK_OK(disk_pool_adopt(pool, &id, &test_error));
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
}

static void adoption_completes_half_a_disk(void **state)
{
    (void) state;
    run_in_child(complete_half_a_disk, NEEDS_POOL);
}

struct inside {
    int user_namespace;
    int lower;
    int disk;
};

/* In the sandbox's root: fill the disk, then do what people do when a disk is full. */
static void fill_inside(void *context)
{
    struct inside *inside = context;
    uint64_t written, count = 0;
    int error = 0;
    char name[32];

    enter_test_user_namespace(inside->user_namespace);
    mount_test_overlay(inside->lower, inside->disk);
    pivot_test_root();
    CHECK_EQUAL(access("/from-the-image", F_OK), 0);
    CHECK_EQUAL(write_file(AT_FDCWD, "/mine", 100, &error), 100);
    written = write_file(AT_FDCWD, "/big", 128 * MEGABYTE, &error);
    CHECK(error == EDQUOT || error == ENOSPC);
    CHECK(written > 20 * MEGABYTE && written < 32 * MEGABYTE);
    /* Small things, until nothing fits any more. */
    do {
        (void) snprintf(name, sizeof(name), "/small-%llu", (unsigned long long) count++);
        (void) write_file(AT_FDCWD, name, 3000, &error);
    } while (error == 0 && count < 100000);
    CHECK(error == EDQUOT || error == ENOSPC);
    CHECK_EQUAL(unlink("/mine"), 0);
    CHECK_EQUAL(unlink("/big"), 0);
    sync();
    /* Hiding a file of the image takes a little space, so it comes after. */
    CHECK_EQUAL(unlink("/from-the-image"), 0);
    CHECK_EQUAL(write_file(AT_FDCWD, "/again", 16 * MEGABYTE, &error), 16 * MEGABYTE);
    CHECK_EQUAL(error, 0);
}

static void fill_a_disk(const struct disk_pool_options *options)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(close) int folder = -EBADF, file = -EBADF;
    struct inside inside;
    struct stat status;
    struct id id, other;
    int error = 0;

    pool = open_pool(options);
    id = make_disk(pool, 32 * MEGABYTE);
    other = make_disk(pool, 32 * MEGABYTE);
    CHECK_EQUAL(mkdir("/tmp/big/image", 0755), 0);
    file = open("/tmp/big/image/from-the-image", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    folder = open("/tmp/big/image", O_PATH | O_DIRECTORY | O_CLOEXEC);
    inside.user_namespace = make_test_user_namespace();
    inside.lower = make_test_lower(folder, inside.user_namespace);
    CHECK_OK(disk_pool_mount_disk(pool, DISK_POOL_DISKS, &id, NULL, inside.user_namespace,
                                  &inside.disk, &test_error));
    run_forked(fill_inside, &inside);
    /* The image is untouched, ids on disk are those of the inside, neighbours have their share. */
    CHECK_EQUAL(access("/tmp/big/image/from-the-image", F_OK), 0);
    folder = fd_close(folder);
    folder = open(POOL_PATH "/store/disks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(fchdir(folder), 0);
    CHECK_EQUAL(chdir(id.text), 0);
    CHECK_EQUAL(stat("u/again", &status), 0);
    CHECK_EQUAL(status.st_uid, 0);
    CHECK_EQUAL(fchdir(folder), 0);
    CHECK_EQUAL(chdir(other.text), 0);
    CHECK_EQUAL(write_file(AT_FDCWD, "u/mine", 24 * MEGABYTE, &error), 24 * MEGABYTE);
    CHECK_EQUAL(error, 0);
}

static void fill_with_simple_quota(void)
{
    enter_pool_place();
    fill_a_disk(&small_pool);
}

static void a_full_disk_says_so_and_can_be_emptied(void **state)
{
    (void) state;
    run_in_child(fill_with_simple_quota, NEEDS_POOL "; " NEEDS_ROOT);
}

/* A pool that was made by Linux 6.1: qgroups, which later kernels go on using. */
static void fill_with_qgroups(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(close) int top = -EBADF;

    enter_pool_place();
    /* The first opener turned the simple kind on; start again as the older kernel would have. */
    pool = open_pool(&small_pool);
    top = open(POOL_PATH "/store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(sys_btrfs_disable_quota(top), 0);
    CHECK_EQUAL(sys_btrfs_enable_quota(top, SYS_BTRFS_QUOTA_GROUPS), 0);
    disk_pool_free(TAKE_PTR(pool));
    fill_a_disk(&small_pool);
    pool = open_pool(&small_pool);
    CHECK_EQUAL(strcmp(disk_pool_quota_text(pool), "qgroups"), 0);
}

static void a_pool_with_qgroups_limits_alike(void **state)
{
    (void) state;
    run_in_child(fill_with_qgroups, NEEDS_POOL "; " NEEDS_ROOT);
}

static void run_short_of_space(void)
{
    struct disk_pool_options options = small_pool;
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct id id = id_new(), other = id_new();
    struct disk_pool_space space;

    enter_pool_place();
    options.reserve = 4096 * MEGABYTE;
    pool = open_pool(&options);
    CHECK_OK(disk_pool_space(pool, &space, &test_error));
    CHECK(space.size == 512 * MEGABYTE && !space.is_read_only);
    CHECK(space.free < space.size && space.beneath_free > space.free);
    CHECK_EQUAL(disk_pool_create(pool, &id, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NO_SPACE);
    disk_pool_free(TAKE_PTR(pool));
    /* More than lies beneath, less than the pool claims to have. */
    options.reserve = 256 * MEGABYTE;
    pool = open_pool(&options);
    CHECK_OK(disk_pool_create(pool, &id, 0, &test_error));
    {
        AUTO(close) int file = open("/tmp/big/filler", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        CHECK_EQUAL(posix_fallocate(file, 0, 1800 << 20), 0);
    }
    CHECK_EQUAL(disk_pool_create(pool, &other, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NO_SPACE);
    CHECK(strstr(test_error.message, "beneath") != NULL);
    CHECK_EQUAL(disk_pool_fork(pool, DISK_POOL_DISKS, &id, &other, 0, NULL, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NO_SPACE);
    CHECK_EQUAL(disk_pool_snapshot(pool, &id, &other, NULL, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NO_SPACE);
    CHECK_OK(disk_pool_delete(pool, &id, &test_error));
}

static void nothing_is_made_below_the_reserve(void **state)
{
    (void) state;
    run_in_child(run_short_of_space, NEEDS_POOL);
}

static void clean_and_trim(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(close) int top = -EBADF;
    uint64_t record, bytes = 0;
    unsigned int dropped;
    struct id living;

    enter_pool_place();
    pool = open_pool(&small_pool);
    top = open(POOL_PATH "/store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    living = make_disk(pool, 0);
    for (int i = 0; i < 10; i++) {
        struct id id = make_disk(pool, 32 * MEGABYTE);

        CHECK_OK(disk_pool_delete(pool, &id, &test_error));
    }
    /* Their blocks are freed in the background, some commits later. */
    for (int i = 0; i < 300; i++) {
        CHECK_EQUAL(sys_btrfs_sync(top), 0);
        CHECK_OK(disk_pool_clean(pool, 4, &dropped, &test_error));
        CHECK(dropped <= 4);
        if (sys_btrfs_next_record(top, 257, &record) == -ENOENT)
            break;
        (void) usleep(20000);
    }
    CHECK_EQUAL(sys_btrfs_next_record(top, 257, &record), -ENOENT);
    CHECK_EQUAL(sys_btrfs_next_record(top, 256, &record), 0);
    CHECK_OK(disk_pool_adopt(pool, &living, &test_error));
    CHECK_OK(disk_pool_trim(pool, &bytes, &test_error));
    CHECK(bytes > 64 * MEGABYTE);
}

static void dead_records_are_cleaned_and_blocks_given_back(void **state)
{
    (void) state;
    run_in_child(clean_and_trim, NEEDS_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_is_made_measured_limited_and_deleted),
        cmocka_unit_test(names_and_limits_are_checked),
        cmocka_unit_test(adoption_completes_half_a_disk),
        cmocka_unit_test(a_full_disk_says_so_and_can_be_emptied),
        cmocka_unit_test(a_pool_with_qgroups_limits_alike),
        cmocka_unit_test(nothing_is_made_below_the_reserve),
        cmocka_unit_test(dead_records_are_cleaned_and_blocks_given_back),
    };

    return cmocka_run_group_tests_name("disk_pool", tests, NULL, NULL);
}
