/* Of snapshots, forks and roll backs, in a pool of btrfs. */
#include <dirent.h>
#include <sys/wait.h>

#include "base/crash_point.h"
#include "launcher/disk/disk_pool_internal.h"
#include "launcher/disk/disk_pool_test_kit.h"
#include "launcher/root_test_kit.h"
#include "sys/file/sys_btrfs.h"

static void snapshot_and_fork(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(disk) struct disk disk = DISK_INIT;
    AUTO(free) struct id *ids = NULL;
    struct id id, snapshot = id_new(), forked = id_new(), direct = id_new();
    int error = 0;
    size_t count;

    enter_pool_place();
    pool = open_pool(&small_pool);
    id = make_disk(pool, 64 * MEGABYTE);
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(write_file(disk.folder, "u/file", MEGABYTE, &error), MEGABYTE);
    /* What overlay leaves behind when it was mounted volatile. */
    CHECK_EQUAL(mkdirat(disk.folder, "w/work", 0), 0);
    CHECK_EQUAL(mkdirat(disk.folder, "w/work/incompat", 0), 0);
    CHECK_EQUAL(mkdirat(disk.folder, "w/work/incompat/volatile", 0), 0);
    CHECK_OK(disk_pool_snapshot(pool, &id, &snapshot, NULL, &test_error));
    CHECK_EQUAL(disk_pool_snapshot(pool, &id, &snapshot, NULL, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_CONFLICT);
    CHECK_EQUAL(unlinkat(disk.folder, "u/file", 0), 0);
    CHECK_OK(disk_pool_fork(pool, DISK_POOL_SNAPSHOTS, &snapshot, &forked, 32 * MEGABYTE, NULL,
                            &test_error));
    CHECK_OK(disk_pool_fork(pool, DISK_POOL_DISKS, &id, &direct, 0, NULL, &test_error));
    CHECK_EQUAL(disk_pool_fork(pool, DISK_POOL_SNAPSHOTS, &snapshot, &direct, 0, NULL, &test_error),
                -1);
    CHECK_EQUAL(test_error.code, ERR_CONFLICT);
    disk_done(&disk);
    CHECK_OK(disk_pool_open_disk(pool, &forked, &disk, &test_error));
    CHECK_EQUAL(faccessat(disk.upper, "file", F_OK, 0), 0);
    CHECK_EQUAL(faccessat(disk.work, "work", F_OK, 0), -1);
    (void) write_file(disk.folder, "u/more", 64 * MEGABYTE, &error);
    CHECK_EQUAL(error, EDQUOT);
    disk_done(&disk);
    CHECK_OK(disk_pool_open_disk(pool, &direct, &disk, &test_error));
    CHECK_EQUAL(faccessat(disk.upper, "file", F_OK, 0), -1);
    CHECK_OK(disk_pool_list(pool, DISK_POOL_SNAPSHOTS, &ids, &count, &test_error));
    CHECK_EQUAL(count, 1);
    CHECK_OK(disk_pool_delete_snapshot(pool, &snapshot, &test_error));
    CHECK_OK(disk_pool_delete(pool, &id, &test_error));
    CHECK_EQUAL(faccessat(disk.folder, "u", F_OK, 0), 0);
}

static void snapshots_keep_and_forks_go_their_own_way(void **state)
{
    (void) state;
    run_in_child(snapshot_and_fork, NEEDS_POOL);
}

/* A snapshot is one: nothing can be written to it. */
static void check_is_read_only(struct disk_pool *pool, const struct id *snapshot)
{
    char path[160];

    (void) pool;
    (void) snprintf(path, sizeof(path), POOL_PATH "/store/snapshots/%s/d/u/more", snapshot->text);
    CHECK_EQUAL(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644), -1);
    CHECK_EQUAL(errno, EROFS);
}

static void go_back(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(disk) struct disk disk = DISK_INIT;
    struct id id, other = id_new(), snapshot = id_new();
    struct disk_usage usage;
    int error = 0;

    enter_pool_place();
    pool = open_pool(&small_pool);
    id = make_disk(pool, 64 * MEGABYTE);
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(write_file(disk.folder, "u/old", MEGABYTE, &error), MEGABYTE);
    CHECK_OK(disk_pool_snapshot(pool, &id, &snapshot, NULL, &test_error));
    check_is_read_only(pool, &snapshot);
    CHECK_EQUAL(unlinkat(disk.folder, "u/old", 0), 0);
    CHECK_EQUAL(write_file(disk.folder, "u/new", MEGABYTE, &error), MEGABYTE);
    CHECK_EQUAL(mkdirat(disk.folder, "w/work", 0), 0);
    disk_done(&disk);
    CHECK_EQUAL(disk_pool_roll_back(pool, &id, &other, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK_EQUAL(disk_pool_roll_back(pool, &other, &snapshot, 0, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK_OK(disk_pool_roll_back(pool, &id, &snapshot, 32 * MEGABYTE, &test_error));
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(faccessat(disk.upper, "old", F_OK, 0), 0);
    CHECK_EQUAL(faccessat(disk.upper, "new", F_OK, 0), -1);
    CHECK_EQUAL(faccessat(disk.work, "work", F_OK, 0), -1);
    (void) write_file(disk.folder, "u/more", 64 * MEGABYTE, &error);
    CHECK_EQUAL(error, EDQUOT);
    CHECK_OK(disk_pool_usage(pool, DISK_POOL_SNAPSHOTS, &snapshot, &usage, &test_error));
    CHECK_EQUAL(disk_pool_usage(pool, DISK_POOL_SNAPSHOTS, &other, &usage, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    CHECK(disk_pool_has(pool, DISK_POOL_SNAPSHOTS, &snapshot));
    CHECK_OK(disk_pool_delete_snapshot(pool, &snapshot, &test_error));
    CHECK(!disk_pool_has(pool, DISK_POOL_SNAPSHOTS, &snapshot));
    CHECK_EQUAL(disk_pool_delete_snapshot(pool, &snapshot, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
}

static void a_disk_goes_back_to_a_snapshot(void **state)
{
    (void) state;
    run_in_child(go_back, NEEDS_POOL);
}

/* With a descriptor that can be asked about the filesystem and cannot sync it. */
static void fail_to_go_back(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(disk) struct disk disk = DISK_INIT;
    AUTO(free) struct id *ids = NULL;
    struct id id, snapshot = id_new();
    size_t count = 1;
    int store;

    enter_pool_place();
    pool = open_pool(&small_pool);
    id = make_disk(pool, 0);
    CHECK_OK(disk_pool_snapshot(pool, &id, &snapshot, NULL, &test_error));
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(mkdirat(disk.upper, "later", 0755), 0);
    disk_done(&disk);
    store = pool->store;
    pool->store = open(POOL_PATH "/store", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(pool->store >= 0);
    CHECK_EQUAL(disk_pool_sync_contents(pool, &test_error), -1);
    CHECK_EQUAL(test_error.system, EBADF);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(disk_pool_roll_back(pool, &id, &snapshot, 0, &test_error), -1);
        CHECK_EQUAL(test_error.system, EBADF); /* not that one is under way */
        CHECK_OK(disk_pool_list(pool, DISK_POOL_UNFINISHED, &ids, &count, &test_error));
        CHECK_EQUAL(count, 0);
    }
    (void) fd_close(pool->store);
    pool->store = store;
    CHECK_OK(disk_pool_sync_contents(pool, &test_error));
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(faccessat(disk.upper, "later", F_OK, 0), 0);
    disk_done(&disk);
    CHECK_OK(disk_pool_roll_back(pool, &id, &snapshot, 0, &test_error));
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(faccessat(disk.upper, "later", F_OK, 0), -1);
}

static void a_roll_back_that_is_not_on_disk_is_taken_back(void **state)
{
    (void) state;
    run_in_child(fail_to_go_back, NEEDS_POOL);
}

enum copy { COPY_SNAPSHOT, COPY_FORK, COPY_ROLL_BACK };

/* In a process of its own, which dies at the point. */
static void die_at(const char *point, enum copy copy, const struct id *id, const struct id *from,
                   const struct id *to)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        struct disk_pool *pool = open_pool(&small_pool);

        crash_point_arm(point);
        if (copy == COPY_SNAPSHOT)
            (void) disk_pool_snapshot(pool, id, to, NULL, NULL);
        else if (copy == COPY_FORK)
            (void) disk_pool_fork(pool, DISK_POOL_SNAPSHOTS, from, to, 0, NULL, NULL);
        else
            (void) disk_pool_roll_back(pool, id, from, 0, NULL);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
}

static unsigned int count_names(const char *path)
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

static void die_everywhere(void)
{
    static const struct {
        const char *point;
        enum copy copy;
        bool is_made;
    } deaths[] = {
        {"launcher.snapshot.copied", COPY_SNAPSHOT, false},
        {"launcher.snapshot.placed", COPY_SNAPSHOT, true},
        {"launcher.fork.copied", COPY_FORK, false},
        {"launcher.fork.placed", COPY_FORK, true},
        {"launcher.roll_back.copied", COPY_ROLL_BACK, false},
        {"launcher.roll_back.exchanged", COPY_ROLL_BACK, true},
    };
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct id id, snapshot = id_new();
    AUTO(disk) struct disk disk = DISK_INIT;

    enter_pool_place();
    pool = open_pool(&small_pool);
    id = make_disk(pool, 0);
    CHECK_OK(disk_pool_snapshot(pool, &id, &snapshot, NULL, &test_error));
    for (size_t i = 0; i < ARRAY_COUNT(deaths); i++) {
        enum disk_pool_set set =
            deaths[i].copy == COPY_SNAPSHOT ? DISK_POOL_SNAPSHOTS : DISK_POOL_DISKS;
        struct id to = id_new();

        CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
        CHECK(mkdirat(disk.folder, "u/present", 0755) == 0 || errno == EEXIST);
        disk_done(&disk);
        die_at(deaths[i].point, deaths[i].copy, &id, &snapshot, &to);
        if (deaths[i].copy == COPY_ROLL_BACK) {
            CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
            CHECK_EQUAL(faccessat(disk.upper, "present", F_OK, 0) == 0, !deaths[i].is_made);
            disk_done(&disk);
        } else {
            CHECK_EQUAL(disk_pool_has(pool, set, &to), deaths[i].is_made);
        }
        CHECK_EQUAL(count_names(POOL_PATH "/store/unfinished"), 2);
        /* The next one to open it deletes what the dead left, and nobody else's. */
        {
            AUTO(disk_pool) struct disk_pool *next = open_pool(&small_pool);

            CHECK_EQUAL(count_names(POOL_PATH "/store/unfinished"), 2);
            CHECK_OK(disk_pool_adopt(next, &id, &test_error));
        }
        CHECK_EQUAL(count_names(POOL_PATH "/store/unfinished"), 1);
    }
}

static void a_copy_is_whole_or_not_there(void **state)
{
    (void) state;
    run_in_child(die_everywhere, NEEDS_POOL);
}

/* What a power cut leaves of a fork that was answered: the copy, without the rename. */
static void mount_again(void)
{
    static const struct {
        const char *point;
        enum copy copy;
        bool is_placed;
    } deaths[] = {
        {"launcher.fork.copied", COPY_FORK, true},
        {"launcher.snapshot.copied", COPY_SNAPSHOT, false},
        {"launcher.roll_back.copied", COPY_ROLL_BACK, false},
    };
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(disk) struct disk disk = DISK_INIT;
    struct id id, snapshot = id_new();

    enter_pool_place();
    pool = open_pool(&small_pool);
    id = make_disk(pool, 0);
    CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
    CHECK_EQUAL(mkdirat(disk.folder, "w/theirs", 0755), 0);
    CHECK_OK(disk_pool_snapshot(pool, &id, &snapshot, NULL, &test_error));
    CHECK_EQUAL(mkdirat(disk.folder, "u/present", 0755), 0);
    disk_done(&disk);
    for (size_t i = 0; i < ARRAY_COUNT(deaths); i++) {
        struct id to = id_new();

        die_at(deaths[i].point, deaths[i].copy, &id, &snapshot, &to);
        CHECK_OK(disk_pool_unmount(TAKE_PTR(pool), &test_error));
        pool = open_pool(&small_pool);
        CHECK_EQUAL(disk_pool_has(pool, DISK_POOL_DISKS, &to), deaths[i].is_placed);
        CHECK(!disk_pool_has(pool, DISK_POOL_SNAPSHOTS, &to));
        CHECK_EQUAL(count_names(POOL_PATH "/store/unfinished"), 1);
        CHECK_OK(disk_pool_open_disk(pool, &id, &disk, &test_error));
        CHECK_EQUAL(faccessat(disk.upper, "present", F_OK, 0), 0);
        disk_done(&disk);
        if (!deaths[i].is_placed)
            continue;
        CHECK_OK(disk_pool_open_disk(pool, &to, &disk, &test_error));
        CHECK(faccessat(disk.work, "theirs", F_OK, 0) < 0);
        disk_done(&disk);
    }
}

static void a_fork_that_lost_its_place_with_the_power_gets_it_back(void **state)
{
    (void) state;
    run_in_child(mount_again, NEEDS_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_keep_and_forks_go_their_own_way),
        cmocka_unit_test(a_disk_goes_back_to_a_snapshot),
        cmocka_unit_test(a_roll_back_that_is_not_on_disk_is_taken_back),
        cmocka_unit_test(a_copy_is_whole_or_not_there),
        cmocka_unit_test(a_fork_that_lost_its_place_with_the_power_gets_it_back),
    };

    return cmocka_run_group_tests_name("disk_pool_copy", tests, NULL, NULL);
}
