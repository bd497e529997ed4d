/* Snapshots, forks and going back, by the protocol of a whole launcher, on both kinds of pool. */
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "launcher/disk/disk_pool.h"
#include "launcher/launcher_snapshot_test_kit.h"

/* --- what they promise ----------------------------------------------------------------------- */

static void forks_begin_with_what_was_there(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), from_snapshot, from_sandbox;
    struct id first = id_new();
    struct snapshot_made made;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    write_text(kit, &plan.id, "note", "before");
    made = snapshot(kit, &plan.id, &first, true);
    assert_true(made.pause_us > 0 && made.took_us >= made.pause_us);
    assert_int_equal(state_of(kit, &plan.id), RUN_STATE_RUNNING);
    write_text(kit, &plan.id, "note", "after");
    from_snapshot = fork_plan(DISK_OF_SNAPSHOT, &first);
    from_sandbox = fork_plan(DISK_OF_SANDBOX, &plan.id);
    kit_create(kit, &from_snapshot);
    kit_create(kit, &from_sandbox);
    assert_int_equal(state_of(kit, &from_snapshot.id), RUN_STATE_RUNNING);
    assert_string_equal(text_of(kit, &from_snapshot.id, "note"), "before");
    assert_string_equal(text_of(kit, &from_sandbox.id, "note"), "after");
    write_text(kit, &from_snapshot.id, "note", "its own");
    assert_string_equal(text_of(kit, &plan.id, "note"), "after");
    /* Each stands for itself: neither the origin nor the snapshot is needed any more. */
    destroy(kit, &plan.id);
    assert_int_equal(count_snapshots(kit), 1);
    delete_snapshot(kit, &first);
    delete_snapshot(kit, &first); /* what is not there is deleted */
    assert_int_equal(count_snapshots(kit), 0);
    stop(kit, &from_snapshot.id);
    from_snapshot.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    from_snapshot.origin = (struct disk_ref){.set = DISK_OF_SANDBOX};
    kit_create(kit, &from_snapshot);
    assert_string_equal(text_of(kit, &from_snapshot.id, "note"), "its own");
    assert_int_equal(kit_stop(kit), 0);
}

static void a_disk_goes_back_and_starts_again(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct id then = id_new(), unknown = id_new();
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    write_text(kit, &plan.id, "note", "then");
    (void) snapshot(kit, &plan.id, &then, false);
    ask_roll_back(kit, &plan.id, &then, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    stop(kit, &plan.id);
    write_text(kit, &plan.id, "note", "now");
    write_text(kit, &plan.id, "more", "now");
    ask_roll_back(kit, &plan.id, &unknown, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    assert_string_equal(text_of(kit, &plan.id, "note"), "now");
    for (int i = 0; i < 2; i++) {
        ask_roll_back(kit, &plan.id, &then, &answer);
        kit_expect(&answer, WIRE_MESSAGE_DONE);
        assert_string_equal(text_of(kit, &plan.id, "note"), "then");
        assert_string_equal(text_of(kit, &plan.id, "more"), "");
        write_text(kit, &plan.id, "note", "again");
    }
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    kit_create(kit, &plan);
    assert_string_equal(text_of(kit, &plan.id, "note"), "again");
    ask_roll_back(kit, &unknown, &then, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    assert_int_equal(kit_stop(kit), 0);
}

/* What was deleted stays deleted. */
static void whiteouts_survive(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), fork;
    struct stat status;
    char value[2] = "";

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    stop(kit, &plan.id);
    assert_int_equal(
        mknod(in_store(kit, "disks", &plan.id, "/u/gone"), S_IFCHR | 0600, makedev(0, 0)), 0);
    assert_int_equal(mkdir(in_store(kit, "disks", &plan.id, "/u/anew"), 0755), 0);
    assert_int_equal(
        setxattr(in_store(kit, "disks", &plan.id, "/u/anew"), "user.overlay.opaque", "y", 1, 0), 0);
    fork = fork_plan(DISK_OF_SANDBOX, &plan.id);
    kit_create(kit, &fork);
    assert_int_equal(lstat(in_stack(kit, "disks", &fork.id, "gone"), &status), 0);
    assert_true(S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0));
    assert_int_equal(getxattr(in_stack(kit, "disks", &fork.id, "anew"), "user.overlay.opaque",
                              value, sizeof(value)),
                     1);
    assert_int_equal(value[0], 'y');
    assert_int_equal(kit_stop(kit), 0);
}

static void many_forks_at_once_all_boot(void **state)
{
    enum { MANY = 20 };
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), forks[MANY];
    struct kit_answer answers[MANY];
    struct id first = id_new();

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    write_text(kit, &plan.id, "note", "shared");
    (void) snapshot(kit, &plan.id, &first, true);
    for (size_t i = 0; i < MANY; i++) {
        forks[i] =
            i % 2 ? fork_plan(DISK_OF_SNAPSHOT, &first) : fork_plan(DISK_OF_SANDBOX, &plan.id);
        kit_send_plan(kit, WIRE_MESSAGE_CREATE, &forks[i], &answers[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        kit_wait(kit, &answers[i]);
        kit_expect(&answers[i], WIRE_MESSAGE_SANDBOX);
        assert_string_equal(text_of(kit, &forks[i].id, "note"), "shared");
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(answers[i].message.sandbox.uid_first,
                                 answers[j].message.sandbox.uid_first);
    }
    assert_int_equal(state_of(kit, &plan.id), RUN_STATE_RUNNING);
    assert_int_equal(kit_stop(kit), 0);
}

/* --- states ---------------------------------------------------------------------------------- */

static void one_that_was_frozen_stays_frozen(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message freeze = {.number = WIRE_MESSAGE_FREEZE, .freeze.id = plan.id};
    struct wire_message reclaim = {.number = WIRE_MESSAGE_RECLAIM, .reclaim.id = plan.id};
    struct id first = id_new(), second = id_new();
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    kit_ask(kit, &freeze, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_int_equal(snapshot(kit, &plan.id, &first, true).pause_us, 0);
    assert_int_equal(state_of(kit, &plan.id), RUN_STATE_FROZEN);
    kit_ask(kit, &reclaim, &answer);
    if (answer.has_failed)
        kit_expect_failure(&answer, ERR_NOT_IMPLEMENTED); /* a host without swap */
    stop(kit, &plan.id);
    assert_int_equal(snapshot(kit, &plan.id, &second, true).pause_us, 0);
    assert_int_equal(count_snapshots(kit), 2);
    assert_int_equal(kit_stop(kit), 0);
    assert_int_equal(kit->exit_count, 1);
}

static void a_freeze_that_comes_meanwhile_stays(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message freeze = {.number = WIRE_MESSAGE_FREEZE, .freeze.id = plan.id};
    struct wire_message thaw = {.number = WIRE_MESSAGE_THAW, .thaw.id = plan.id};
    struct kit_answer answers[3];

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    for (int i = 0; i < 4; i++) {
        struct wire_message request = {.number = WIRE_MESSAGE_SNAPSHOT,
                                       .snapshot = {plan.id, id_new(), true}};
        bool frozen = i % 2 == 0;

        kit_send(kit, &request, NULL, 0, &answers[0]);
        kit_send(kit, &freeze, NULL, 0, &answers[1]);
        if (!frozen)
            kit_send(kit, &thaw, NULL, 0, &answers[2]);
        kit_wait(kit, &answers[0]);
        kit_expect(&answers[0], WIRE_MESSAGE_SNAPSHOT_MADE);
        kit_wait(kit, &answers[1]);
        if (!frozen)
            kit_wait(kit, &answers[2]);
        assert_int_equal(state_of(kit, &plan.id), frozen ? RUN_STATE_FROZEN : RUN_STATE_RUNNING);
        kit_ask(kit, &thaw, &answers[2]);
        kit_expect(&answers[2], WIRE_MESSAGE_DONE);
    }
    assert_int_equal(kit_stop(kit), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), fork;
    struct wire_message usage = {.number = WIRE_MESSAGE_DISK_USAGE};
    struct id unknown = id_new(), first = id_new();
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    ask_snapshot(kit, &unknown, &first, false, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    (void) snapshot(kit, &plan.id, &first, false);
    ask_snapshot(kit, &plan.id, &first, false, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    fork = fork_plan(DISK_OF_SNAPSHOT, &unknown);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    fork = fork_plan(DISK_OF_SANDBOX, &unknown);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    fork = fork_plan(DISK_OF_SNAPSHOT, &first);
    fork.id = plan.id;
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    usage.disk_usage.disk = (struct disk_ref){DISK_OF_SNAPSHOT, unknown};
    kit_ask(kit, &usage, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    usage.disk_usage.disk.id = first;
    kit_ask(kit, &usage, &answer);
    if (answer.has_failed)
        kit_expect_failure(&answer, ERR_NOT_IMPLEMENTED); /* a pool that counts nothing */
    else
        kit_expect(&answer, WIRE_MESSAGE_BYTES_COUNTED);
    assert_int_equal(count_snapshots(kit), 1);
    assert_int_equal(count_unfinished(kit), 0);
    assert_int_equal(kit_stop(kit), 0);
}

/* A power cut may come between the making of a disk and of what it holds. */
static void half_a_disk_is_completed(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct id first = id_new();
    AUTO(close) int disk = -EBADF;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    stop(kit, &plan.id);
    disk = open(in_store(kit, "disks", &plan.id, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(sys_tree_delete(disk, "u"), 0);
    assert_int_equal(sys_tree_delete(disk, "w"), 0);
    (void) snapshot(kit, &plan.id, &first, false);
    assert_int_equal(sys_tree_delete(disk, "w"), 0);
    disk = fd_close(disk); /* or the pool could not be unmounted */
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    kit_create(kit, &plan);
    assert_int_equal(kit_stop(kit), 0);
}

/* As after an error of the disk beneath. */
static void a_pool_that_is_read_only_refuses_forks(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), fork;
    struct id first = id_new();
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    (void) snapshot(kit, &plan.id, &first, false);
    stop(kit, &plan.id);
    kit_set_pool_read_only(kit, true);
    fork = fork_plan(DISK_OF_SNAPSHOT, &first);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_UNAVAILABLE);
    kit_set_pool_read_only(kit, false);
    kit_create(kit, &fork);
    assert_int_equal(count_in(kit, "disks"), 2);
    assert_int_equal(kit_stop(kit), 0);
}

/* --- standing still -------------------------------------------------------------------------- */

/* In the porter's folder, where the copy would be made: a name that is taken there is found out
 * when the sandbox stands still already. */
static size_t block_copies(const struct kit *kit, const struct id *id)
{
    DIR *folder = opendir(in_store(kit, "unfinished", NULL, ""));
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char set[64];

        (void) snprintf(set, sizeof(set), "unfinished/%.32s", entry->d_name);
        if (id_is_valid(entry->d_name))
            count += mkdir(in_store(kit, set, id, ""), 0700) == 0;
    }
    (void) closedir(folder);
    return count;
}

static void it_goes_on_when_the_copy_fails(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct id first = id_new(), blocked = id_new();
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    assert_true(snapshot(kit, &plan.id, &first, true).pause_us > 0);
    assert_false(kit_is_still(kit, &plan.id));
    assert_true(block_copies(kit, &blocked) > 0);
    ask_snapshot(kit, &plan.id, &blocked, true, &answer);
    assert_true(answer.has_failed);
    assert_false(kit_is_still(kit, &plan.id));
    assert_int_equal(state_of(kit, &plan.id), RUN_STATE_RUNNING);
    kit_set_pool_read_only(kit, true); /* found out before it stands still */
    blocked = id_new();
    ask_snapshot(kit, &plan.id, &blocked, true, &answer);
    kit_expect_failure(&answer, ERR_UNAVAILABLE);
    kit_set_pool_read_only(kit, false);
    assert_false(kit_is_still(kit, &plan.id));
    assert_int_equal(count_snapshots(kit), 1);
    assert_int_equal(kit_stop(kit), 0);
}

static void one_that_sleeps_sleeps_on(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message freeze = {.number = WIRE_MESSAGE_FREEZE, .freeze.id = plan.id};
    struct wire_message thaw = {.number = WIRE_MESSAGE_THAW, .thaw.id = plan.id};
    struct id ids[] = {id_new(), id_new()};
    struct wire_message request = {.number = WIRE_MESSAGE_SNAPSHOT,
                                   .snapshot = {plan.id, ids[1], true}};
    struct kit_answer answers[2];

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    kit_ask(kit, &freeze, &answers[0]);
    kit_expect(&answers[0], WIRE_MESSAGE_DONE);
    assert_int_equal(snapshot(kit, &plan.id, &ids[0], true).pause_us, 0);
    assert_true(kit_is_still(kit, &plan.id));
    /* Who thaws it meanwhile has it thawed when the copy is there. */
    kit_send(kit, &request, NULL, 0, &answers[0]);
    kit_send(kit, &thaw, NULL, 0, &answers[1]);
    kit_wait(kit, &answers[1]);
    kit_expect(&answers[1], WIRE_MESSAGE_DONE);
    kit_wait(kit, &answers[0]);
    kit_expect(&answers[0], WIRE_MESSAGE_SNAPSHOT_MADE);
    assert_false(kit_is_still(kit, &plan.id));
    assert_int_equal(kit_stop(kit), 0);
}

/* --- plain pools ----------------------------------------------------------------------------- */

/* Until a change now has another time than this file's. */
static void let_age(const char *path)
{
    struct timespec now;
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    do {
        (void) usleep(1000);
        assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 <=
             status.st_ctim.tv_sec * 1000 + status.st_ctim.tv_nsec / 1000000);
}

/* It stands still for what changed, not for all of it. */
static void a_running_disk_is_copied_while_it_runs(void **state)
{
    enum { LARGE = 64 };
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct id first = id_new();
    struct snapshot_made made;
    struct stat status;
    int fd;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    fd = open(in_store(kit, "disks", &plan.id, "/u/large"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; i < LARGE; i++) {
        static const char megabyte[KIT_MEGABYTE] = {1};

        assert_int_equal(sys_file_write_full(fd, megabyte, sizeof(megabyte)), 0);
    }
    assert_int_equal(fd_close(fd), -EBADF);
    let_age(in_store(kit, "disks", &plan.id, "/u/large"));
    write_text(kit, &plan.id, "note", "there");
    made = snapshot(kit, &plan.id, &first, true);
    assert_true(made.is_copied && made.pause_us > 0);
    (void) printf("# of %d ms it stood still for %d\n", (int) (made.took_us / 1000),
                  (int) (made.pause_us / 1000));
    assert_true(made.pause_us < made.took_us / 2);
    assert_int_equal(stat(in_store(kit, "snapshots", &first, "/u/large"), &status), 0);
    assert_int_equal(status.st_size, LARGE * KIT_MEGABYTE);
    assert_int_equal(stat(in_store(kit, "snapshots", &first, "/u/note"), &status), 0);
    assert_int_equal(state_of(kit, &plan.id), RUN_STATE_RUNNING);
    assert_int_equal(kit_stop(kit), 0);
}

/* Layer upon layer, until it is too high: then it is one again. */
static void a_stopped_disk_is_shared_until_its_stack_is_full(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), fork;
    struct id last = id_new();
    char name[16];

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    stop(kit, &plan.id);
    for (int i = 0; i <= DISK_LAYERS_MAX; i++) {
        struct snapshot_made made;

        (void) snprintf(name, sizeof(name), "file%d", i);
        write_text(kit, &plan.id, name, name);
        last = id_new();
        made = snapshot(kit, &plan.id, &last, true);
        assert_int_equal(made.is_copied, i == DISK_LAYERS_MAX);
        assert_int_equal(made.pause_us, 0);
    }
    assert_int_equal(count_in(kit, "layers"), DISK_LAYERS_MAX);
    fork = fork_plan(DISK_OF_SNAPSHOT, &last);
    kit_create(kit, &fork);
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    kit_create(kit, &plan); /* it starts with all of them */
    for (int i = 0; i <= DISK_LAYERS_MAX; i++) {
        (void) snprintf(name, sizeof(name), "file%d", i);
        assert_string_equal(text_of(kit, &fork.id, name), name);
        assert_string_equal(text_of(kit, &plan.id, name), name);
    }
    assert_int_equal(kit_stop(kit), 0);
}

/* What is copied may end meanwhile; the copy has what it left. */
static void a_sandbox_may_end_while_it_is_copied(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), fork;
    struct id first = id_new();
    struct wire_message request = {.number = WIRE_MESSAGE_SNAPSHOT,
                                   .snapshot = {plan.id, first, true}};
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    write_text(kit, &plan.id, "note", "left");
    kit_send(kit, &request, NULL, 0, &answer);
    stop(kit, &plan.id);
    kit_wait(kit, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SNAPSHOT_MADE);
    fork = fork_plan(DISK_OF_SNAPSHOT, &first);
    kit_create(kit, &fork);
    assert_string_equal(text_of(kit, &fork.id, "note"), "left");
    assert_int_equal(kit_stop(kit), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(forks_begin_with_what_was_there),
        KIT_TEST(a_disk_goes_back_and_starts_again),
        KIT_TEST(whiteouts_survive),
        KIT_TEST(many_forks_at_once_all_boot),
        KIT_TEST(one_that_was_frozen_stays_frozen),
        KIT_TEST(a_freeze_that_comes_meanwhile_stays),
        KIT_TEST(what_cannot_be_is_refused),
        KIT_TEST(it_goes_on_when_the_copy_fails),
        KIT_TEST(one_that_sleeps_sleeps_on),
        KIT_TEST(a_sandbox_may_end_while_it_is_copied),
        KIT_TEST(a_pool_that_is_read_only_refuses_forks),
        KIT_TEST(half_a_disk_is_completed),
        PLAIN(forks_begin_with_what_was_there),
        PLAIN(a_disk_goes_back_and_starts_again),
        PLAIN(whiteouts_survive),
        PLAIN(many_forks_at_once_all_boot),
        PLAIN(one_that_was_frozen_stays_frozen),
        PLAIN(a_freeze_that_comes_meanwhile_stays),
        PLAIN(one_that_sleeps_sleeps_on),
        PLAIN_ON_DISK(a_running_disk_is_copied_while_it_runs),
        PLAIN(a_sandbox_may_end_while_it_is_copied),
        PLAIN(a_stopped_disk_is_shared_until_its_stack_is_full),
    };

    orphans_adopt();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
