/* Plain pools: what disks and snapshots share. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/crash_point.h"
#include "launcher/disk/disk_pool_internal.h"
#include "launcher/disk/disk_pool_test_kit.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"

#define MOVED_COPIES 200

static struct disk_pool *open_plain(void)
{
    static const struct disk_pool_options options = {.kind = DISK_POOL_PLAIN, .reserve = MEGABYTE};

    return open_pool(&options);
}

static int open_upper(struct disk_pool *pool, const struct id *id)
{
    AUTO(disk) struct disk disk = DISK_INIT;
    int fd;

    CHECK_OK(disk_pool_open_disk(pool, id, &disk, &test_error));
    fd = sys_file_open(disk.folder, DISK_UPPER, O_RDONLY | O_DIRECTORY, 0);
    CHECK(fd >= 0);
    return fd;
}

static void put_file(struct disk_pool *pool, const struct id *id, const char *name)
{
    AUTO(close) int upper = open_upper(pool, id);

    CHECK_EQUAL(sys_file_replace(upper, name, name, strlen(name), 0644), 0);
}

/* How many layers have it, the upper folder included. */
static int count_file(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                      const char *name)
{
    AUTO(close) int folder = disk_pool_open_entry(pool, set, id);
    char path[128];
    struct disk_stack stack;
    int count = 0;

    CHECK(folder >= 0);
    CHECK_EQUAL(disk_pool_read_stack(folder, &stack), 0);
    (void) snprintf(path, sizeof(path), DISK_UPPER "/%s", name);
    count += faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    for (size_t i = 0; i < stack.count; i++) {
        (void) snprintf(path, sizeof(path), "%s/" DISK_UPPER "/%s", stack.layers[i].text, name);
        count += faccessat(pool->layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return count;
}

static size_t count_layers(struct disk_pool *pool)
{
    AUTO(close) int fd = sys_file_open(pool->layers, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fdopendir(fd);
    const struct dirent *entry;
    size_t count = 0;

    CHECK(entries != NULL);
    while ((entry = readdir(entries)))
        count += id_is_valid(entry->d_name);
    fd = -EBADF;
    (void) closedir(entries);
    return count;
}

static void share_and_collect(void)
{
    struct id box = id_new(), first = id_new(), second = id_new(), fork = id_new();
    struct disk_pool *pool;
    struct stat status;
    int upper;

    enter_pool_place();
    pool = open_plain();
    CHECK_OK(disk_pool_create(pool, &box, 0, &test_error));
    put_file(pool, &box, "one");
    upper = open_upper(pool, &box);
    CHECK_EQUAL(fchmod(upper, 0751), 0);
    upper = fd_close(upper);
    CHECK_OK(disk_pool_snapshot(pool, &box, &first, NULL, &test_error));
    CHECK_EQUAL(disk_pool_height(pool, DISK_POOL_DISKS, &box), 1);
    upper = open_upper(pool, &box);
    CHECK_EQUAL(fstat(upper, &status), 0);
    CHECK_EQUAL(status.st_mode & 07777, 0751);
    upper = fd_close(upper);

    /* What did not change needs no layer of its own. */
    CHECK_OK(disk_pool_snapshot(pool, &box, &second, NULL, &test_error));
    CHECK_EQUAL(disk_pool_height(pool, DISK_POOL_SNAPSHOTS, &second), 1);
    CHECK_EQUAL(count_layers(pool), 1);
    CHECK_EQUAL(disk_pool_snapshot(pool, &box, &second, NULL, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_CONFLICT);

    put_file(pool, &box, "two");
    CHECK_OK(disk_pool_fork(pool, DISK_POOL_DISKS, &box, &fork, 0, NULL, &test_error));
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &fork, "one"), 1);
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &fork, "two"), 1);
    CHECK_EQUAL(count_file(pool, DISK_POOL_SNAPSHOTS, &first, "two"), 0);
    CHECK_OK(disk_pool_roll_back(pool, &box, &first, 0, &test_error));
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &box, "one"), 1);
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &box, "two"), 0);

    /* Nothing goes that somebody has, everything else does. */
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(count_layers(pool), 2);
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &fork, "two"), 1);
    CHECK_OK(disk_pool_delete(pool, &fork, &test_error));
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(count_layers(pool), 1);
    CHECK_OK(disk_pool_delete_snapshot(pool, &first, &test_error));
    CHECK_OK(disk_pool_delete(pool, &box, &test_error));
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(count_file(pool, DISK_POOL_SNAPSHOTS, &second, "one"), 1);
    CHECK_OK(disk_pool_delete_snapshot(pool, &second, &test_error));
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(count_layers(pool), 0);
    disk_pool_free(pool);
}

static void layers_are_shared_and_go_with_the_last_who_has_them(void **state)
{
    (void) state;
    run_in_child(share_and_collect, NEEDS_POOL);
}

static void pile_up(void)
{
    struct id box = id_new(), last = id_new();
    struct disk_pool *pool;

    enter_pool_place();
    pool = open_plain();
    CHECK_OK(disk_pool_create(pool, &box, 0, &test_error));
    for (int i = 0; i < DISK_LAYERS_MAX; i++) {
        struct id snapshot = id_new();

        put_file(pool, &box, snapshot.text);
        CHECK_OK(disk_pool_snapshot(pool, &box, &snapshot, NULL, &test_error));
    }
    CHECK_EQUAL(disk_pool_height(pool, DISK_POOL_DISKS, &box), DISK_LAYERS_MAX);
    put_file(pool, &box, "more");
    CHECK_EQUAL(disk_pool_snapshot(pool, &box, &last, NULL, &test_error), -1);
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &box, "more"), 1);
    CHECK(!disk_pool_has(pool, DISK_POOL_SNAPSHOTS, &last));
    disk_pool_free(pool);
}

static void a_stack_has_a_greatest_height(void **state)
{
    (void) state;
    run_in_child(pile_up, NEEDS_POOL);
}

/* With a descriptor that can be asked about the filesystem and cannot sync it. */
static void fail_to_sync(void)
{
    struct id box = id_new(), snapshot = id_new();
    struct disk_pool *pool;
    int store;

    enter_pool_place();
    pool = open_plain();
    CHECK_OK(disk_pool_create(pool, &box, 0, &test_error));
    CHECK_OK(disk_pool_snapshot(pool, &box, &snapshot, NULL, &test_error));
    put_file(pool, &box, "later");
    store = pool->store;
    pool->store = sys_file_open(store, ".", O_PATH | O_DIRECTORY, 0);
    CHECK(pool->store >= 0);
    CHECK_EQUAL(disk_pool_roll_back(pool, &box, &snapshot, 0, &test_error), -1);
    CHECK_EQUAL(test_error.system, EBADF);
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &box, "later"), 1);
    CHECK_EQUAL(disk_pool_roll_back(pool, &box, &snapshot, 0, &test_error), -1);
    CHECK_EQUAL(test_error.system, EBADF); /* not that one is under way */
    (void) fd_close(pool->store);
    pool->store = store;
    CHECK_OK(disk_pool_roll_back(pool, &box, &snapshot, 0, &test_error));
    CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &box, "later"), 0);
    disk_pool_free(pool);
}

static void a_roll_back_that_is_not_on_disk_is_taken_back(void **state)
{
    (void) state;
    run_in_child(fail_to_sync, NEEDS_POOL);
}

/* Collects again and again, and counts how often. */
static _Noreturn void collect_for_ever(atomic_uint *passes)
{
    struct disk_pool *pool = open_plain();

    for (;;) {
        disk_pool_collect(pool);
        atomic_fetch_add(passes, 1);
        (void) sched_yield();
    }
}

/* Until a pass that began after this was called is over. */
static void await_pass(atomic_uint *passes)
{
    unsigned int before = atomic_load(passes);

    while (atomic_load(passes) - before < 2)
        (void) sched_yield();
}

/* A copy which alone names a layer, and which changes its place at any time of a pass. */
static void move_a_copy(struct disk_pool *pool, atomic_uint *passes, unsigned int when_us)
{
    struct id box = id_new(), first = id_new(), copy = id_new();

    CHECK_OK(disk_pool_create(pool, &box, 0, &test_error));
    put_file(pool, &box, "whole");
    CHECK_OK(disk_pool_snapshot(pool, &box, &first, NULL, &test_error));
    CHECK_OK(disk_pool_begin_copy(pool, &copy, &test_error));
    CHECK_OK(disk_pool_begin_layers(pool, DISK_POOL_DISKS, &box, &copy, &test_error));
    await_pass(passes);
    CHECK_OK(disk_pool_delete(pool, &box, &test_error));
    CHECK_OK(disk_pool_delete_snapshot(pool, &first, &test_error));
    (void) usleep(when_us);
    CHECK_OK(disk_pool_place_copy(pool, &copy, DISK_POOL_SNAPSHOTS, false, &test_error));
    await_pass(passes);
    CHECK_EQUAL(count_file(pool, DISK_POOL_SNAPSHOTS, &copy, "whole"), 1);
    CHECK_OK(disk_pool_delete_snapshot(pool, &copy, &test_error));
}

static void collect_beside_copies(void)
{
    atomic_uint *passes =
        mmap(NULL, sizeof(*passes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct disk_pool *pool;
    pid_t collector;

    CHECK(passes != MAP_FAILED);
    enter_pool_place();
    pool = open_plain();
    collector = fork();
    CHECK(collector >= 0);
    if (collector == 0) {
        (void) sys_process_die_with_parent(SIGKILL, getppid());
        collect_for_ever(passes);
    }
    for (unsigned int i = 0; i < MOVED_COPIES; i++)
        move_a_copy(pool, passes, i % 10 * 10);
    CHECK_EQUAL(kill(collector, SIGKILL), 0);
    CHECK_EQUAL(waitpid(collector, NULL, 0), collector);
    disk_pool_free(pool);
}

static void a_copy_that_moves_while_others_collect_keeps_its_layers(void **state)
{
    (void) state;
    run_in_child(collect_beside_copies, NEEDS_POOL);
}

static void damage_a_list(void)
{
    static const char *const lists[] = {"x", "\n", "0123456789\n"};
    struct id box = id_new(), other = id_new(), first = id_new(), second = id_new();
    AUTO(close) int folder = -EBADF;
    struct disk_pool *pool;
    struct disk_stack stack;

    enter_pool_place();
    pool = open_plain();
    CHECK_OK(disk_pool_create(pool, &box, 0, &test_error));
    CHECK_OK(disk_pool_create(pool, &other, 0, &test_error));
    put_file(pool, &box, "one");
    CHECK_OK(disk_pool_snapshot(pool, &box, &first, NULL, &test_error));
    folder = disk_pool_open_entry(pool, DISK_POOL_DISKS, &box);
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        CHECK_EQUAL(sys_file_replace(folder, "l", lists[i], strlen(lists[i]), 0600), 0);
        CHECK(disk_pool_read_stack(folder, &stack) < 0);
        CHECK_EQUAL(disk_pool_snapshot(pool, &box, &second, NULL, &test_error), -1);
    }
    /* Whose layers they are is not known any more: all stay. */
    CHECK_OK(disk_pool_delete_snapshot(pool, &first, &test_error));
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(count_layers(pool), 1);
    CHECK_OK(disk_pool_delete(pool, &box, &test_error));
    CHECK_OK(disk_pool_empty_trash(pool, &test_error));
    CHECK_EQUAL(count_layers(pool), 0);
    disk_pool_free(pool);
}

static void a_damaged_list_costs_no_layer(void **state)
{
    (void) state;
    run_in_child(damage_a_list, NEEDS_POOL);
}

static void die_sharing(const char *point, const struct id *box, const struct id *first)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        struct disk_pool *pool = open_plain();

        crash_point_arm(point);
        (void) disk_pool_snapshot(pool, box, first, NULL, &test_error);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
}

static void die_at_each_step(void)
{
    static const char *const points[] = {
        "launcher.plain_seal.listed",
        "launcher.plain_seal.moved",
        "launcher.plain_share.made",
        "launcher.plain_share.placed",
    };

    enter_pool_place();
    for (size_t i = 0; i < ARRAY_COUNT(points); i++) {
        struct id box = id_new(), first = id_new(), again = id_new();
        struct disk_pool *pool = open_plain();

        CHECK_OK(disk_pool_create(pool, &box, 0, &test_error));
        put_file(pool, &box, "whole");
        disk_pool_free(pool);
        die_sharing(points[i], &box, &first);
        pool = open_plain();
        CHECK_OK(disk_pool_adopt(pool, &box, &test_error));
        CHECK_OK(disk_pool_empty_trash(pool, &test_error));
        CHECK_EQUAL(count_file(pool, DISK_POOL_DISKS, &box, "whole"), 1);
        CHECK_EQUAL(disk_pool_has(pool, DISK_POOL_SNAPSHOTS, &first), i == ARRAY_COUNT(points) - 1);
        CHECK_OK(disk_pool_snapshot(pool, &box, &again, NULL, &test_error));
        CHECK_EQUAL(count_file(pool, DISK_POOL_SNAPSHOTS, &again, "whole"), 1);
        CHECK_OK(disk_pool_delete(pool, &box, &test_error));
        CHECK_OK(disk_pool_delete_snapshot(pool, &again, &test_error));
        (void) disk_pool_delete_snapshot(pool, &first, NULL);
        CHECK_OK(disk_pool_empty_trash(pool, &test_error));
        CHECK_EQUAL(count_layers(pool), 0);
        disk_pool_free(pool);
    }
}

static void a_death_between_any_two_steps_changes_no_disk(void **state)
{
    (void) state;
    run_in_child(die_at_each_step, NEEDS_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_shared_and_go_with_the_last_who_has_them),
        cmocka_unit_test(a_stack_has_a_greatest_height),
        cmocka_unit_test(a_roll_back_that_is_not_on_disk_is_taken_back),
        cmocka_unit_test(a_copy_that_moves_while_others_collect_keeps_its_layers),
        cmocka_unit_test(a_damaged_list_costs_no_layer),
        cmocka_unit_test(a_death_between_any_two_steps_changes_no_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
