#include <sys/sysmacros.h>

#include "base/fault.h"
#define POOL_PATH "/tmp/big/opened-pool"

#include "launcher/disk/disk_pool_test_kit.h"
#include "sys/file/sys_btrfs.h"
#include "sys/file/sys_lock.h"
#include "sys/file/sys_loop.h"

#define IMAGE_PATH POOL_PATH "/sparse.btrfs"
#define STORE_PATH POOL_PATH "/store"

static const struct disk_pool_options auto_pool = {.size = 512 * MEGABYTE,
                                                   .reserve = 16 * MEGABYTE};

static int count_mounts(const char *place)
{
    AUTO(free) char *line = NULL;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char needle[256];
    size_t size = 0;
    int count = 0;

    CHECK(mounts != NULL);
    (void) snprintf(needle, sizeof(needle), " %s ", place);
    while (getline(&line, &size, mounts) > 0)
        count += strstr(line, needle) != NULL;
    (void) fclose(mounts);
    return count;
}

/* How many loop devices hold the file: two would be the end of it. */
static int count_devices(void)
{
    struct stat status;
    int count = 0;

    CHECK_EQUAL(stat(IMAGE_PATH, &status), 0);
    for (int i = 0; i < 64; i++) {
        char path[64], text[256] = "";
        AUTO(close) int fd = -EBADF;

        (void) snprintf(path, sizeof(path), "/sys/block/loop%d/loop/backing_file", i);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
            /* The name is as seen from the reader's namespaces, which hold ours. */
            count += strstr(text, "opened-pool/sparse.btrfs") != NULL;
    }
    return count;
}

/* Whoever else looks for loop devices at this moment holds them all open for an instant, and one
 * that is held is cleared a moment later. */
static void wait_for_devices(int count)
{
    for (int i = 0; i < 500 && count_devices() != count; i++)
        (void) usleep(10000);
    CHECK_EQUAL(count_devices(), count);
}

static void make_a_pool(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct statvfs flags;
    struct statfs filesystem;
    struct stat status;

    enter_pool_place();
    (void) umask(077);
    pool = open_pool(&auto_pool);
    if (disk_pool_kind(pool) == DISK_POOL_PLAIN)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_LOOP);
    CHECK_EQUAL(strcmp(disk_pool_kind_text(DISK_POOL_LOOP), "loop"), 0);
    CHECK(disk_pool_is_limited(pool));
    CHECK(strstr(disk_pool_reason(pool), "limits") == NULL);
    CHECK_EQUAL(statvfs(STORE_PATH, &flags), 0);
    CHECK_EQUAL(flags.f_flag & (ST_NOSUID | ST_NODEV | ST_NOATIME),
                ST_NOSUID | ST_NODEV | ST_NOATIME);
    CHECK_EQUAL(statfs(STORE_PATH, &filesystem), 0);
    CHECK_EQUAL(filesystem.f_type, BTRFS_SUPER_MAGIC);
    CHECK_EQUAL(stat(POOL_PATH, &status), 0);
    CHECK_EQUAL(status.st_mode, S_IFDIR | 0700);
    CHECK_EQUAL(stat(IMAGE_PATH, &status), 0);
    CHECK_EQUAL(status.st_mode, S_IFREG | 0600);
    CHECK_EQUAL(status.st_size, 512 * MEGABYTE);
    CHECK((uint64_t) status.st_blocks * 512 < 64 * MEGABYTE);
    CHECK_EQUAL(access(IMAGE_PATH ".new", F_OK), -1);
}

static void a_new_pool_is_mounted_private_and_limited(void **state)
{
    (void) state;
    run_in_child(make_a_pool, NEEDS_POOL);
}

/* Open it, make a disk, tell its id, and die or stay. */
static pid_t start_opener(int ids, int stay, bool own_mounts)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        struct disk_pool *pool;
        struct id id;
        char byte;

        if (own_mounts)
            CHECK_EQUAL(unshare(CLONE_NEWNS), 0);
        pool = open_pool(&small_pool);
        id = make_disk(pool, 0);
        CHECK_EQUAL(write(ids, &id, sizeof(id)), sizeof(id));
        if (stay >= 0)
            CHECK_EQUAL(read(stay, &byte, 1), 0);
        (void) kill(getpid(), SIGKILL);
    }
    return pid;
}

static struct id next_id(int ids)
{
    struct id id;

    CHECK_EQUAL(read(ids, &id, sizeof(id)), sizeof(id));
    return id;
}

static void survive_a_crash(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    int ids[2], status;
    struct id first, second;
    pid_t pid;

    enter_pool_place();
    CHECK_EQUAL(pipe2(ids, O_CLOEXEC), 0);
    /* Dies and leaves the mount behind. */
    pid = start_opener(ids[1], -1, false);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    first = next_id(ids[0]);
    CHECK_EQUAL(count_mounts(STORE_PATH), 1);
    pool = open_pool(&small_pool);
    CHECK_EQUAL(count_mounts(STORE_PATH), 1);
    CHECK_EQUAL(count_devices(), 1);
    CHECK_OK(disk_pool_adopt(pool, &first, &test_error));
    CHECK_OK(disk_pool_unmount(TAKE_PTR(pool), &test_error));
    CHECK_EQUAL(count_mounts(STORE_PATH), 0);
    /* Dies, and its mounts and the loop device with it. */
    pid = start_opener(ids[1], -1, true);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    second = next_id(ids[0]);
    CHECK_EQUAL(count_mounts(STORE_PATH), 0);
    pool = open_pool(&small_pool);
    CHECK_OK(disk_pool_adopt(pool, &first, &test_error));
    CHECK_OK(disk_pool_adopt(pool, &second, &test_error));
    CHECK_EQUAL(count_devices(), 1);
}

static void a_pool_is_found_again_after_a_crash(void **state)
{
    (void) state;
    run_in_child(survive_a_crash, NEEDS_POOL);
}

/* Another mount namespace has it mounted, as the service and a command line may be. */
static void share_across_namespaces(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    int ids[2], stay[2], status;
    struct id theirs;
    pid_t pid;

    enter_pool_place();
    CHECK_EQUAL(pipe2(ids, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(stay, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        (void) close(stay[1]);
        pid = start_opener(ids[1], stay[0], true);
        CHECK_EQUAL(waitpid(pid, &status, 0), pid);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    }
    (void) close(ids[1]);
    if (read(ids[0], &theirs, sizeof(theirs)) != sizeof(theirs))
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(count_mounts(STORE_PATH), 0);
    pool = open_pool(&small_pool);
    CHECK_EQUAL(count_devices(), 1);
    CHECK_OK(disk_pool_adopt(pool, &theirs, &test_error));
    CHECK_OK(disk_pool_unmount(TAKE_PTR(pool), &test_error));
    CHECK_EQUAL(count_devices(), 1);
    (void) close(stay[1]);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(status, 0);
}

static void openers_in_two_mount_namespaces_share_one_device(void **state)
{
    (void) state;
    run_in_child(share_across_namespaces, NEEDS_POOL);
}

#define OPENERS 6

static void open_all_at_once(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(free) struct id *list = NULL;
    pid_t openers[OPENERS];
    int ids[2], stay[2], status;
    size_t count;

    enter_pool_place();
    CHECK_EQUAL(pipe2(ids, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(stay, O_CLOEXEC), 0);
    for (int i = 0; i < OPENERS; i++) {
        openers[i] = start_opener(ids[1], -1, false);
        CHECK(openers[i] > 0);
    }
    for (int i = 0; i < OPENERS; i++) {
        CHECK_EQUAL(waitpid(openers[i], &status, 0), openers[i]);
        if (WIFEXITED(status))
            _exit(WEXITSTATUS(status));
    }
    CHECK_EQUAL(count_mounts(STORE_PATH), 1);
    CHECK_EQUAL(count_devices(), 1);
    pool = open_pool(&small_pool);
    CHECK_OK(disk_pool_list(pool, DISK_POOL_DISKS, &list, &count, &test_error));
    CHECK_EQUAL(count, OPENERS);
}

static void openers_that_race_make_one_pool(void **state)
{
    (void) state;
    run_in_child(open_all_at_once, NEEDS_POOL);
}

static void unmount_beside_another(void)
{
    AUTO(disk_pool) struct disk_pool *first = NULL, *second = NULL;
    struct id id;

    enter_pool_place();
    first = open_pool(&small_pool);
    second = open_pool(&small_pool);
    id = make_disk(first, 0);
    CHECK_OK(disk_pool_unmount(TAKE_PTR(first), &test_error));
    CHECK_OK(disk_pool_adopt(second, &id, &test_error));
    CHECK_EQUAL(count_mounts(STORE_PATH), 1);
    CHECK_OK(disk_pool_unmount(TAKE_PTR(second), &test_error));
    CHECK_EQUAL(count_mounts(STORE_PATH), 0);
    wait_for_devices(0);
}

static void the_last_one_to_leave_unmounts(void **state)
{
    (void) state;
    run_in_child(unmount_beside_another, NEEDS_POOL);
}

/* What the machine may lack, hidden behind something useless. */

static void hide_mkfs(void)
{
    if (access("/usr/sbin/mkfs.btrfs", F_OK) == 0)
        CHECK_EQUAL(sys_mount_path_bind("/dev/null", "/usr/sbin/mkfs.btrfs", 0, false), 0);
}

static void show_mkfs(void)
{
    (void) sys_mount_unmount("/usr/sbin/mkfs.btrfs", 0);
}

static void hide_loop_devices(void)
{
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "tmpfs", "/dev", 0, NULL), 0);
    CHECK_EQUAL(mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)), 0);
    CHECK_EQUAL(mknod("/dev/loop-control", S_IFREG | 0600, 0), 0);
}

static void show_loop_devices(void)
{
    CHECK_EQUAL(sys_mount_unmount("/dev", 0), 0);
}

static void fall_back_without(void (*hide)(void), void (*show)(void))
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct disk_usage usage;
    struct stat status;
    struct id id, other = id_new();

    enter_pool_place();
    hide();
    CHECK_EQUAL(disk_pool_open(POOL_PATH, &small_pool, &pool, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_UNAVAILABLE);
    (void) unlink(IMAGE_PATH);
    CHECK_OK(disk_pool_open(POOL_PATH, &auto_pool, &pool, &test_error));
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_PLAIN);
    CHECK(!disk_pool_is_limited(pool));
    CHECK(strstr(disk_pool_reason(pool), "limits") != NULL);
    CHECK(strstr(disk_pool_reason(pool), "loop") || strstr(disk_pool_reason(pool), "mkfs"));
    CHECK_EQUAL(access(IMAGE_PATH, F_OK), -1);
    id = make_disk(pool, 32 * MEGABYTE);
    CHECK_OK(disk_pool_snapshot(pool, &id, &other, NULL, &test_error));
    CHECK_OK(disk_pool_delete_snapshot(pool, &other, &test_error));
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(disk_pool_usage(pool, DISK_POOL_DISKS, &id, &usage, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_IMPLEMENTED);
    CHECK_EQUAL(disk_pool_usage(pool, DISK_POOL_DISKS, &other, &usage, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    disk_pool_free(TAKE_PTR(pool));
    /* The machine has it all again, but the disks are where they are. */
    show();
    CHECK_OK(disk_pool_open(POOL_PATH, &auto_pool, &pool, &test_error));
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_PLAIN);
    CHECK_OK(disk_pool_delete(pool, &id, &test_error));
    CHECK_OK(disk_pool_create(pool, &id, 0, &test_error));
    CHECK_OK(disk_pool_delete(pool, &id, &test_error));
    CHECK_EQUAL(stat(STORE_PATH "/trash", &status), 0);
    CHECK_EQUAL(status.st_nlink, 4);
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(stat(STORE_PATH "/trash", &status), 0);
    CHECK_EQUAL(status.st_nlink, 2);
    CHECK_OK(disk_pool_unmount(TAKE_PTR(pool), &test_error));
}

static void fall_back_without_loop(void)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;

    fall_back_without(hide_loop_devices, show_loop_devices);
    /* Empty and unmounted: another kind is tried again. */
    pool = open_pool(&small_pool);
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_LOOP);
}

static void fall_back_without_mkfs(void)
{
    fall_back_without(hide_mkfs, show_mkfs);
}

static void without_loop_devices_folders_serve(void **state)
{
    (void) state;
    run_in_child(fall_back_without_loop, NEEDS_POOL);
}

static void without_mkfs_folders_serve(void **state)
{
    (void) state;
    run_in_child(fall_back_without_mkfs, NEEDS_MOUNTS);
}

/* A pool whose file is damaged must not turn into an empty one. */
static void damage_the_file(void)
{
    struct disk_pool *pool = NULL;
    struct id id;
    AUTO(close) int image = -EBADF;
    char zeros[4096] = "";

    enter_pool_place();
    pool = open_pool(&auto_pool);
    if (disk_pool_kind(pool) == DISK_POOL_PLAIN)
        _exit(CHILD_UNABLE);
    id = make_disk(pool, 0);
    CHECK_OK(disk_pool_unmount(pool, &test_error));
    image = open(IMAGE_PATH, O_RDWR | O_CLOEXEC);
    CHECK_EQUAL(pwrite(image, zeros, sizeof(zeros), 65536), sizeof(zeros));
    CHECK_EQUAL(fsync(image), 0);
    CHECK_EQUAL(disk_pool_open(POOL_PATH, &auto_pool, &pool, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_UNAVAILABLE);
    CHECK_EQUAL(access(IMAGE_PATH, F_OK), 0);
    CHECK_EQUAL(access(STORE_PATH "/disks", F_OK), -1);
    (void) id;
}

static void a_damaged_pool_is_an_error_and_not_an_empty_pool(void **state)
{
    (void) state;
    run_in_child(damage_the_file, NEEDS_POOL);
}

static void grow_a_pool(void)
{
    struct disk_pool_options larger = small_pool, smaller = small_pool;
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct disk_pool_space space;

    enter_pool_place();
    larger.size = 1024 * MEGABYTE + 5;
    smaller.size = 256 * MEGABYTE;
    pool = open_pool(&small_pool);
    disk_pool_free(TAKE_PTR(pool));
    pool = open_pool(&larger);
    CHECK_OK(disk_pool_space(pool, &space, &test_error));
    CHECK_EQUAL(space.size, 1024 * MEGABYTE);
    disk_pool_free(TAKE_PTR(pool));
    pool = open_pool(&smaller);
    CHECK_OK(disk_pool_space(pool, &space, &test_error));
    CHECK_EQUAL(space.size, 1024 * MEGABYTE);
    CHECK(strstr(disk_pool_reason(pool), "only grows") != NULL);
    disk_pool_free(TAKE_PTR(pool));
    smaller.size = DISK_POOL_SIZE_MIN - 1;
    CHECK_EQUAL(disk_pool_open("/tmp/big/other", &smaller, &pool, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
    CHECK_EQUAL(disk_pool_open("relative", &smaller, &pool, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
}

static void a_pool_grows_and_never_shrinks(void **state)
{
    (void) state;
    run_in_child(grow_a_pool, NEEDS_POOL);
}

static void reserve_all_of_it(void)
{
    struct disk_pool_options options = small_pool;
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    struct stat status;
    uint64_t bytes = 1;
    int error;

    enter_pool_place();
    options.allocate = true;
    pool = open_pool(&options);
    CHECK_EQUAL(write_file(AT_FDCWD, STORE_PATH "/file", 32 * MEGABYTE, &error), 32 * MEGABYTE);
    CHECK_EQUAL(unlink(STORE_PATH "/file"), 0);
    CHECK_OK(disk_pool_trim(pool, &bytes, &test_error));
    CHECK_EQUAL(bytes, 0);
    CHECK_EQUAL(stat(POOL_PATH "/allocated.btrfs", &status), 0);
    CHECK((uint64_t) status.st_blocks * 512 >= 512 * MEGABYTE);
    disk_pool_free(TAKE_PTR(pool));
    /* A later opener that does not know finds it all the same. */
    pool = open_pool(&small_pool);
    CHECK_EQUAL(access(IMAGE_PATH, F_OK), -1);
}

static void an_allocated_file_keeps_its_blocks(void **state)
{
    (void) state;
    run_in_child(reserve_all_of_it, NEEDS_POOL);
}

/* A pool's own filesystem stands for a host on btrfs. */
static void live_on_btrfs(void)
{
    AUTO(disk_pool) struct disk_pool *outer = NULL, *pool = NULL;
    AUTO(close) int top = -EBADF;
    struct disk_usage usage;
    struct statvfs flags;
    struct id id;

    enter_pool_place();
    outer = open_pool(&small_pool);
    CHECK_OK(disk_pool_open(STORE_PATH "/inner", &auto_pool, &pool, &test_error));
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_FOLDER);
    CHECK(disk_pool_is_limited(pool));
    CHECK_EQUAL(statvfs(STORE_PATH "/inner/store", &flags), 0);
    CHECK_EQUAL(flags.f_flag & (ST_NOSUID | ST_NODEV), ST_NOSUID | ST_NODEV);
    id = make_disk(pool, 32 * MEGABYTE);
    /* Nothing is known of it before the first commit. */
    CHECK_OK(disk_pool_usage(pool, DISK_POOL_DISKS, &id, &usage, &test_error));
    top = open(STORE_PATH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(sys_btrfs_sync(top), 0);
    CHECK_OK(disk_pool_usage(pool, DISK_POOL_DISKS, &id, &usage, &test_error));
    CHECK_EQUAL(usage.limit, 32 * MEGABYTE);
    CHECK_OK(disk_pool_unmount(TAKE_PTR(pool), &test_error));
    CHECK_EQUAL(count_mounts(STORE_PATH "/inner/store"), 0);
    CHECK_OK(disk_pool_open(STORE_PATH "/inner", &small_pool, &pool, &test_error));
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_FOLDER);
    CHECK_OK(disk_pool_delete(pool, &id, &test_error));
}

static void on_btrfs_with_quota_no_file_is_needed(void **state)
{
    (void) state;
    run_in_child(live_on_btrfs, NEEDS_POOL);
}

/* Without quota the host's filesystem is left as it is, unless somebody asks. */
static void leave_the_host_alone(void)
{
    struct disk_pool_options folder = {.kind = DISK_POOL_FOLDER, .reserve = 16 * MEGABYTE};
    AUTO(disk_pool) struct disk_pool *outer = NULL, *pool = NULL;
    AUTO(close) int top = -EBADF;

    enter_pool_place();
    outer = open_pool(&small_pool);
    top = open(STORE_PATH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(sys_btrfs_disable_quota(top), 0);
    CHECK_OK(disk_pool_open(STORE_PATH "/inner", &auto_pool, &pool, &test_error));
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_LOOP);
    CHECK_EQUAL(sys_btrfs_quota(top), SYS_BTRFS_QUOTA_OFF);
    disk_pool_free(TAKE_PTR(pool));
    CHECK_OK(disk_pool_open(STORE_PATH "/asked", &folder, &pool, &test_error));
    CHECK_EQUAL(disk_pool_kind(pool), DISK_POOL_FOLDER);
    CHECK(sys_btrfs_quota(top) != SYS_BTRFS_QUOTA_OFF);
    disk_pool_free(TAKE_PTR(pool));
    CHECK_EQUAL(disk_pool_open("/tmp/big/not-btrfs", &folder, &pool, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_UNAVAILABLE);
}

static void quota_of_the_host_is_turned_on_only_when_asked(void **state)
{
    (void) state;
    run_in_child(leave_the_host_alone, NEEDS_POOL);
}

/* Let every system call fail once: the pool opens or says why, nothing leaks, and the next attempt
 * finds no wreckage. */
static void fail_everywhere(void)
{
    struct disk_pool *pool = NULL;
    int before, nth;
    bool hit = true;

    enter_pool_place();
    pool = open_pool(&small_pool);
    CHECK_OK(disk_pool_unmount(pool, &test_error));
    before = count_descriptors();
    for (nth = 1; hit; nth++) {
        int r;

        if (nth % 2)
            (void) unlink(IMAGE_PATH);
        fault_arm(FAULT_SYSTEM_CALL, (unsigned int) nth, EIO);
        r = disk_pool_open(POOL_PATH, &small_pool, &pool, &test_error);
        hit = fault_disarm(FAULT_SYSTEM_CALL);
        CHECK(r == 0 || test_error.message[0]);
        if (r == 0)
            disk_pool_free(pool);
        CHECK_EQUAL(count_descriptors(), before);
        /* Nothing is at work any more, or the next attempt would share its file with it. */
        CHECK_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
        CHECK_OK(disk_pool_open(POOL_PATH, &small_pool, &pool, &test_error));
        CHECK_EQUAL(count_mounts(STORE_PATH), 1);
        wait_for_devices(1);
        CHECK_OK(disk_pool_unmount(pool, &test_error));
    }
    CHECK(nth > 20);
}

static void a_failing_call_leaves_no_wreckage(void **state)
{
    (void) state;
    run_in_child(fail_everywhere, NEEDS_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_pool_is_mounted_private_and_limited),
        cmocka_unit_test(a_pool_is_found_again_after_a_crash),
        cmocka_unit_test(openers_in_two_mount_namespaces_share_one_device),
        cmocka_unit_test(openers_that_race_make_one_pool),
        cmocka_unit_test(the_last_one_to_leave_unmounts),
        cmocka_unit_test(without_loop_devices_folders_serve),
        cmocka_unit_test(without_mkfs_folders_serve),
        cmocka_unit_test(a_damaged_pool_is_an_error_and_not_an_empty_pool),
        cmocka_unit_test(a_pool_grows_and_never_shrinks),
        cmocka_unit_test(an_allocated_file_keeps_its_blocks),
        cmocka_unit_test(on_btrfs_with_quota_no_file_is_needed),
        cmocka_unit_test(quota_of_the_host_is_turned_on_only_when_asked),
        cmocka_unit_test(a_failing_call_leaves_no_wreckage),
    };

    return cmocka_run_group_tests_name("disk_pool_open", tests, NULL, NULL);
}
