/* Disks that are used again: nothing of the one before may be seen in them. */
#include <dirent.h>
#include <sys/xattr.h>

#include "launcher/disk/disk_pool_test_kit.h"
#include "sys/file/sys_btrfs.h"

static uint64_t number_of(const struct id *id)
{
    struct sys_btrfs_subvolume subvolume;
    AUTO(close) int folder = -EBADF;
    char path[128];

    (void) snprintf(path, sizeof(path), POOL_PATH "/store/disks/%s", id->text);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(folder >= 0);
    CHECK_EQUAL(sys_btrfs_inspect(folder, &subvolume), 0);
    return subvolume.number;
}

static unsigned int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    unsigned int count = 0;

    CHECK(folder != NULL);
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    (void) closedir(folder);
    return count;
}

static unsigned int count_spares(void)
{
    return count_entries(POOL_PATH "/store/spares");
}

static void leave_files(const struct id *id, unsigned int count)
{
    char path[160];
    int error;

    for (unsigned int i = 0; i < count; i++) {
        (void) snprintf(path, sizeof(path), POOL_PATH "/store/disks/%s/u/file-%u", id->text, i);
        (void) write_file(AT_FDCWD, path, 5000, &error);
        CHECK_EQUAL(error, 0);
    }
}

/* What overlay leaves when it is not unmounted in order. */
static void leave_work(const struct id *id)
{
    static const char *const folders[] = {"work", "work/incompat", "index"};
    char path[160];

    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        (void) snprintf(path, sizeof(path), POOL_PATH "/store/disks/%s/w/%s", id->text, folders[i]);
        CHECK_EQUAL(mkdir(path, 0755), 0);
    }
}

static void use_again(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct id first, second;
    struct disk_usage usage;
    struct stat status;
    uint64_t number;
    char path[160];

    enter_pool_place();
    pool = open_pool(&small_pool);
    first = make_disk(pool, 32 * MEGABYTE);
    number = number_of(&first);
    leave_files(&first, 20);
    leave_work(&first);
    (void) snprintf(path, sizeof(path), POOL_PATH "/store/disks/%s/u", first.text);
    CHECK_EQUAL(chmod(path, 0777), 0);
    CHECK_EQUAL(chown(path, 1000, 1000), 0);
    CHECK_EQUAL(setxattr(path, "user.mark", "x", 1, 0), 0);
    CHECK_OK(disk_pool_retire(pool, &first, &test_error));
    CHECK_EQUAL(count_spares(), 1);
    CHECK_EQUAL(disk_pool_adopt(pool, &first, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);

    second = make_disk(pool, 48 * MEGABYTE);
    CHECK_EQUAL(count_spares(), 0);
    CHECK_EQUAL(number_of(&second), number);
    (void) snprintf(path, sizeof(path), POOL_PATH "/store/disks/%s/u", second.text);
    CHECK_EQUAL(count_entries(path), 0);
    CHECK_EQUAL(stat(path, &status), 0);
    CHECK_EQUAL(status.st_mode, (mode_t) (S_IFDIR | 0755));
    CHECK_EQUAL(status.st_uid, 0U);
    CHECK_EQUAL(listxattr(path, NULL, 0), 0);
    (void) snprintf(path, sizeof(path), POOL_PATH "/store/disks/%s/w", second.text);
    CHECK_EQUAL(count_entries(path), 0);
    CHECK_EQUAL(stat(path, &status), 0);
    CHECK_EQUAL(status.st_mode, (mode_t) (S_IFDIR | 0700));
    CHECK_OK(disk_pool_usage(pool, DISK_POOL_DISKS, &second, &usage, &test_error));
    CHECK_EQUAL(usage.limit, 48 * MEGABYTE);
}

static void a_little_used_disk_is_used_again_and_looks_new(void **state)
{
    (void) state;
    run_in_child(use_again, NEEDS_POOL);
}

static void retire_what_is_no_spare(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct id full, copied, source, target = id_new(), snapshot = id_new(), unknown = id_new();

    enter_pool_place();
    pool = open_pool(&small_pool);
    full = make_disk(pool, 0);
    leave_files(&full, DISK_POOL_SPARE_FILES + 1);
    CHECK_OK(disk_pool_retire(pool, &full, &test_error));
    copied = make_disk(pool, 0);
    CHECK_OK(disk_pool_snapshot(pool, &copied, &snapshot, NULL, &test_error));
    CHECK_OK(disk_pool_retire(pool, &copied, &test_error));
    source = make_disk(pool, 0);
    CHECK_OK(disk_pool_fork(pool, DISK_POOL_DISKS, &source, &target, 0, NULL, &test_error));
    CHECK_OK(disk_pool_retire(pool, &source, &test_error));
    CHECK_OK(disk_pool_retire(pool, &target, &test_error));
    CHECK_EQUAL(count_spares(), 0);
    CHECK_EQUAL(disk_pool_retire(pool, &unknown, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
}

static void full_and_copied_disks_are_deleted(void **state)
{
    (void) state;
    run_in_child(retire_what_is_no_spare, NEEDS_POOL);
}

static void retire_many(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(disk_pool) struct disk_pool *other = NULL;
    struct id ids[DISK_POOL_SPARES_MAX + 8], taken;

    enter_pool_place();
    pool = open_pool(&small_pool);
    other = open_pool(&small_pool);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        ids[i] = make_disk(pool, 0);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        CHECK_OK(disk_pool_retire(other, &ids[i], &test_error));
    CHECK_EQUAL(count_spares(), DISK_POOL_SPARES_MAX);
    /* Each looks at the names once, so both try the same ones. */
    for (unsigned int i = 0; i < DISK_POOL_SPARES_MAX + 2; i++)
        taken = make_disk(i % 2 ? pool : other, 0);
    CHECK_EQUAL(count_spares(), 0);
    CHECK_EQUAL(disk_pool_create(pool, &taken, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_CONFLICT);
}

static void spares_have_a_bound_and_go_to_one_taker(void **state)
{
    (void) state;
    run_in_child(retire_many, NEEDS_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_little_used_disk_is_used_again_and_looks_new),
        cmocka_unit_test(full_and_copied_disks_are_deleted),
        cmocka_unit_test(spares_have_a_bound_and_go_to_one_taker),
    };

    return cmocka_run_group_tests_name("disk_pool_spare", tests, NULL, NULL);
}
