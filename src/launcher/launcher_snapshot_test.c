/* Snapshots, forks and going back, by the protocol of a whole launcher, on both kinds of pool. */
#include <dirent.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "launcher/disk_pool.h"
#include "launcher/launcher_test_kit.h"
#include "sys/sys_tree.h"

#define STORE_SIZE 128

static bool can_run(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void) printf("# skip: programs without sanitizers, which the walls do not let run\n");
    return false;
#endif
    if (geteuid() == 0)
        return true;
    (void) printf("# skip: root, to start a launcher\n");
    return false;
}

static int set_up(void **state)
{
    struct kit *kit = calloc(1, sizeof(*kit));

    *state = kit;
    if (!can_run())
        return 0;
    kit_make(kit);
    kit_start(kit);
    return 0;
}

/* A pool that holds disks without a filesystem of its own is a plain one, and stays so. */
static int set_up_plain(void **state)
{
    static const char *const parts[] = {"data", "data/pool", "data/pool/store",
                                        "data/pool/store/disks", NULL};
    struct kit *kit = calloc(1, sizeof(*kit));
    struct id other = id_new();
    char path[STORE_SIZE];

    *state = kit;
    if (!can_run())
        return 0;
    kit_make(kit);
    for (size_t i = 0; parts[i]; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", kit->folder, parts[i]);
        assert_int_equal(mkdir(path, i == 0 ? 0755 : 0700), 0);
    }
    (void) snprintf(path, sizeof(path), "%s/data/pool/store/disks/%s", kit->folder, other.text);
    assert_int_equal(mkdir(path, 0755), 0);
    kit_start(kit);
    return 0;
}

static int tear_down(void **state)
{
    struct kit *kit = *state;

    if (kit->launcher)
        kit_remove(kit);
    free(kit);
    return 0;
}

#define NEEDS_LAUNCHER(kit)                                                                        \
    do {                                                                                           \
        if (!(kit)->launcher)                                                                      \
            skip();                                                                                \
    } while (0)

/* --- disks, from outside --------------------------------------------------------------------- */

static const char *in_store(const struct kit *kit, const char *set, const struct id *id,
                            const char *file)
{
    static char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/data/pool/store/%s/%s%s", kit->folder, set,
                    id ? id->text : "", file);
    return path;
}

/* A name of a disk or snapshot where it is: in its upper folder or in a layer beneath. */
static const char *in_stack(const struct kit *kit, const char *set, const struct id *id,
                            const char *name)
{
    AUTO(free) char *list = NULL;
    char file[64], *at, *layer;
    struct stat status;
    size_t length;

    (void) snprintf(file, sizeof(file), "/u/%s", name);
    if (lstat(in_store(kit, set, id, file), &status) == 0 ||
        sys_file_read_all(AT_FDCWD, in_store(kit, set, id, "/l"), 4096, &list, &length) < 0)
        return in_store(kit, set, id, file);
    at = list;
    while ((layer = strsep(&at, "\n")) && *layer) {
        struct id layer_id;

        (void) snprintf(layer_id.text, sizeof(layer_id.text), "%s", layer);
        if (lstat(in_store(kit, "layers", &layer_id, file), &status) == 0)
            return in_store(kit, "layers", &layer_id, file);
    }
    return in_store(kit, set, id, file);
}

static void write_text(const struct kit *kit, const struct id *id, const char *name,
                       const char *text)
{
    char file[64];

    (void) snprintf(file, sizeof(file), "/u/%s", name);
    assert_int_equal(
        sys_file_replace(AT_FDCWD, in_store(kit, "disks", id, file), text, strlen(text), 0644), 0);
}

/* "" when there is no such file. */
static const char *text_of(const struct kit *kit, const struct id *id, const char *name)
{
    static char text[64];
    ssize_t got = 0;
    int fd = open(in_stack(kit, "disks", id, name), O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        got = read(fd, text, sizeof(text) - 1);
    (void) fd_close(fd);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static size_t count_in(const struct kit *kit, const char *set)
{
    DIR *folder = opendir(in_store(kit, set, NULL, ""));
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        count += id_is_valid(entry->d_name);
    (void) closedir(folder);
    return count;
}

/* Copies that are being made, by whomever. */
static size_t count_unfinished(const struct kit *kit)
{
    DIR *folder = opendir(in_store(kit, "unfinished", NULL, ""));
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char set[64];

        (void) snprintf(set, sizeof(set), "unfinished/%.32s", entry->d_name);
        if (id_is_valid(entry->d_name))
            count += count_in(kit, set);
    }
    (void) closedir(folder);
    return count;
}

/* --- questions ------------------------------------------------------------------------------- */

static void ask_snapshot(struct kit *kit, const struct id *id, const struct id *snapshot,
                         bool freeze, struct kit_answer *answer)
{
    struct wire_message request = {.number = WIRE_MESSAGE_SNAPSHOT,
                                   .snapshot = {*id, *snapshot, freeze}};

    kit_ask(kit, &request, answer);
}

static struct wire_snapshot_made snapshot(struct kit *kit, const struct id *id,
                                          const struct id *snapshot_id, bool freeze)
{
    struct kit_answer answer;

    ask_snapshot(kit, id, snapshot_id, freeze, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SNAPSHOT_MADE);
    return answer.message.snapshot_made;
}

static void ask_roll_back(struct kit *kit, const struct id *id, const struct id *snapshot_id,
                          struct kit_answer *answer)
{
    struct wire_message request = {.number = WIRE_MESSAGE_ROLL_BACK,
                                   .roll_back = {*id, *snapshot_id, 64 * KIT_MEGABYTE}};

    kit_ask(kit, &request, answer);
}

static void delete_snapshot(struct kit *kit, const struct id *snapshot_id)
{
    struct wire_message request = {.number = WIRE_MESSAGE_DELETE_SNAPSHOT,
                                   .delete_snapshot = {*snapshot_id}};
    struct kit_answer answer;

    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static size_t count_snapshots(struct kit *kit)
{
    struct wire_message request = {.number = WIRE_MESSAGE_LIST_SNAPSHOTS};
    struct kit_answer answer;

    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SNAPSHOTS_LISTED);
    assert_false(answer.message.snapshots_listed.more);
    return answer.message.snapshots_listed.names.count;
}

static struct wire_plan fork_plan(enum wire_disk_set set, const struct id *origin)
{
    struct wire_plan plan = kit_plan();

    plan.origin = (struct wire_disk){set, *origin};
    return plan;
}

static void stop(struct kit *kit, const struct id *id)
{
    struct kit_answer answer;

    kit_kill(kit, id, WIRE_KILL_PROCESSES, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static void destroy(struct kit *kit, const struct id *id)
{
    struct kit_answer answer;

    kit_kill(kit, id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static enum wire_sandbox_state state_of(struct kit *kit, const struct id *id)
{
    struct wire_message request = {.number = WIRE_MESSAGE_LIST};
    struct kit_answer answer;

    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_LISTED);
    for (size_t i = 0; i < answer.message.listed.entries.count; i++) {
        if (strcmp(answer.message.listed.entries.items[i].id.text, id->text) == 0)
            return answer.message.listed.entries.items[i].state;
    }
    return WIRE_SANDBOX_BROKEN;
}

/* --- what they promise ----------------------------------------------------------------------- */

static void forks_begin_with_what_was_there(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), from_snapshot, from_sandbox;
    struct id first = id_new();
    struct wire_snapshot_made made;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    write_text(kit, &plan.id, "note", "before");
    made = snapshot(kit, &plan.id, &first, true);
    assert_true(made.pause_us > 0 && made.took_us >= made.pause_us);
    assert_int_equal(state_of(kit, &plan.id), WIRE_SANDBOX_RUNNING);
    write_text(kit, &plan.id, "note", "after");
    from_snapshot = fork_plan(WIRE_DISK_OF_SNAPSHOT, &first);
    from_sandbox = fork_plan(WIRE_DISK_OF_SANDBOX, &plan.id);
    kit_create(kit, &from_snapshot);
    kit_create(kit, &from_sandbox);
    assert_int_equal(state_of(kit, &from_snapshot.id), WIRE_SANDBOX_RUNNING);
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
    from_snapshot.origin = (struct wire_disk){.set = WIRE_DISK_OF_SANDBOX};
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
    fork = fork_plan(WIRE_DISK_OF_SANDBOX, &plan.id);
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
        forks[i] = i % 2 ? fork_plan(WIRE_DISK_OF_SNAPSHOT, &first)
                         : fork_plan(WIRE_DISK_OF_SANDBOX, &plan.id);
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
    assert_int_equal(state_of(kit, &plan.id), WIRE_SANDBOX_RUNNING);
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
    assert_int_equal(state_of(kit, &plan.id), WIRE_SANDBOX_FROZEN);
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
        assert_int_equal(state_of(kit, &plan.id),
                         frozen ? WIRE_SANDBOX_FROZEN : WIRE_SANDBOX_RUNNING);
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
    fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &unknown);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    fork = fork_plan(WIRE_DISK_OF_SANDBOX, &unknown);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &first);
    fork.id = plan.id;
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    usage.disk_usage.disk = (struct wire_disk){WIRE_DISK_OF_SNAPSHOT, unknown};
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

/* --- deaths ---------------------------------------------------------------------------------- */

/* Everything that works for the launcher without being a sandbox. */
static void kill_helpers(const struct kit *kit)
{
    AUTO(free) char *text = NULL;
    char path[96];
    char *at, *word;
    size_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) kit->launcher,
                    (int) kit->launcher);
    assert_int_equal(sys_file_read_all(AT_FDCWD, path, 65536, &text, &length), 0);
    at = text;
    while ((word = strsep(&at, " \n")) && *word)
        assert_int_equal(kill((pid_t) strtol(word, NULL, 10), SIGKILL), 0);
}

static void a_porter_that_dies_is_replaced(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan(), fork;
    struct id first = id_new(), second = id_new();
    struct wire_snapshot_made made;
    struct kit_answer answer;
    struct wire_message request;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    write_text(kit, &plan.id, "note", "kept");
    stop(kit, &plan.id);
    (void) snapshot(kit, &plan.id, &first, false);
    kill_helpers(kit);
    made = snapshot(kit, &plan.id, &second, false);
    /* Also in the middle of it. */
    request =
        (struct wire_message){.number = WIRE_MESSAGE_ROLL_BACK, .roll_back = {plan.id, first, 0}};
    kit_send(kit, &request, NULL, 0, &answer);
    kill_helpers(kit);
    kit_wait(kit, &answer);
    /* A keeper that is killed, in a plain pool, is a failure that changes nothing. */
    if (answer.has_failed)
        kit_expect_failure(&answer, ERR_INTERNAL);
    assert_true(!answer.has_failed || made.is_copied);
    assert_string_equal(text_of(kit, &plan.id, "note"), "kept");
    fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &second);
    kit_create(kit, &fork);
    assert_string_equal(text_of(kit, &fork.id, "note"), "kept");
    assert_int_equal(kit_stop(kit), 0);
}

static void start_with_crash_point(struct kit *kit, const char *name)
{
    assert_int_equal(setenv("BURROW_CRASH_POINT", name, 1), 0);
    kit_start(kit);
    assert_int_equal(unsetenv("BURROW_CRASH_POINT"), 0);
}

static bool is_dead(const struct kit *kit)
{
    siginfo_t over = {.si_pid = 0};

    assert_int_equal(waitid(P_PID, (id_t) kit->launcher, &over, WEXITED | WNOHANG | WNOWAIT), 0);
    return over.si_pid != 0;
}

/* Ask, and wait for the answer or the launcher's end. */
static void ask_until_it_dies(struct kit *kit, struct wire_message *request, const int *fds,
                              size_t count)
{
    struct kit_answer answer = {.has_come = false};
    struct wire_answer whom = {kit_note, &answer};
    struct wire_incoming incoming;

    if (is_dead(kit) ||
        wire_conversation_ask(&kit->conversation, request, fds, count, whom, NULL) < 0)
        return;
    while (!answer.has_come && !is_dead(kit)) {
        struct pollfd wait = {.fd = kit->conversation.channel.fd, .events = POLLIN};

        (void) poll(&wait, 1, 10);
        (void) wire_conversation_flush(&kit->conversation, NULL);
        while (wire_conversation_receive(&kit->conversation, &incoming, NULL) == WIRE_MESSAGE)
            wire_incoming_done(&incoming);
    }
}

/* A snapshot, a fork and a step back; one of them is the launcher's last. */
static void copy_until_it_dies(struct kit *kit, const struct wire_plan *plan)
{
    struct id first = id_new();
    struct wire_plan fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &first);
    AUTO(close) int file = -EBADF;
    struct wire_message requests[] = {
        {.number = WIRE_MESSAGE_SNAPSHOT, .snapshot = {plan->id, first, true}},
        {.number = WIRE_MESSAGE_CREATE},
        {.number = WIRE_MESSAGE_KILL, .kill = {plan->id, WIRE_KILL_PROCESSES}},
        {.number = WIRE_MESSAGE_ROLL_BACK, .roll_back = {plan->id, first, 0}},
    };

    assert_int_equal(wire_plan_seal(&fork, &file, NULL), 0);
    for (size_t i = 0; i < ARRAY_COUNT(requests); i++)
        ask_until_it_dies(kit, &requests[i], &file, requests[i].number == WIRE_MESSAGE_CREATE);
}

/* As when the power goes, at every moment that matters: the sandbox's disk is the old one or the
 * new one, what was half made is gone with the next launcher, and so is everything else. */
static void die_at_each(struct kit *kit, const char *const *points, size_t others)
{
    assert_int_equal(kit_stop(kit), 0);
    for (size_t i = 0; points[i]; i++) {
        struct wire_plan plan = kit_plan();
        int status;

        start_with_crash_point(kit, points[i]);
        kit_create(kit, &plan);
        write_text(kit, &plan.id, "note", "whole");
        copy_until_it_dies(kit, &plan);
        status = kit_stop(kit);
        if (!WIFSIGNALED(status))
            fail_msg("%s was never reached", points[i]);
        assert_string_equal(text_of(kit, &plan.id, "note"), "whole");
        kit_start(kit);
        assert_int_equal(count_in(kit, "disks"), others);
        assert_int_equal(count_in(kit, "snapshots"), 0);
        assert_int_equal(count_unfinished(kit), 0);
        assert_int_equal(kit_stop(kit), 0);
    }
}

static void a_death_at_any_moment_leaves_one_whole_disk(void **state)
{
    static const char *const points[] = {
        "launcher.hold.frozen",         "launcher.snapshot.copied",
        "launcher.snapshot.placed",     "launcher.fork.copied",
        "launcher.fork.placed",         "launcher.roll_back.copied",
        "launcher.roll_back.exchanged", NULL,
    };

    NEEDS_LAUNCHER((struct kit *) *state);
    die_at_each(*state, points, 0);
}

static void a_death_at_any_moment_leaves_one_whole_plain_disk(void **state)
{
    static const char *const points[] = {
        "launcher.hold.frozen",        "launcher.plain_copy.ready",
        "launcher.plain_copy.held",    "launcher.plain_seal.listed",
        "launcher.plain_seal.moved",   "launcher.plain_share.made",
        "launcher.plain_share.placed", NULL,
    };

    NEEDS_LAUNCHER((struct kit *) *state);
    die_at_each(*state, points, 1);
}

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
    struct wire_snapshot_made made;
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
    assert_int_equal(state_of(kit, &plan.id), WIRE_SANDBOX_RUNNING);
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
        struct wire_snapshot_made made;

        (void) snprintf(name, sizeof(name), "file%d", i);
        write_text(kit, &plan.id, name, name);
        last = id_new();
        made = snapshot(kit, &plan.id, &last, true);
        assert_int_equal(made.is_copied, i == DISK_LAYERS_MAX);
        assert_int_equal(made.pause_us, 0);
    }
    assert_int_equal(count_in(kit, "layers"), DISK_LAYERS_MAX);
    fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &last);
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
    fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &first);
    kit_create(kit, &fork);
    assert_string_equal(text_of(kit, &fork.id, "note"), "left");
    assert_int_equal(kit_stop(kit), 0);
}

static void set_read_only(const struct kit *kit, bool is_read_only)
{
    char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/data/pool/store", kit->folder);
    assert_int_equal(mount(NULL, path, NULL, MS_REMOUNT | (is_read_only ? MS_RDONLY : 0), NULL), 0);
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
    set_read_only(kit, true);
    fork = fork_plan(WIRE_DISK_OF_SNAPSHOT, &first);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &fork, &answer);
    kit_expect_failure(&answer, ERR_UNAVAILABLE);
    set_read_only(kit, false);
    kit_create(kit, &fork);
    assert_int_equal(count_in(kit, "disks"), 2);
    assert_int_equal(kit_stop(kit), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define PLAIN(name)                                                                                \
    {                                                                                              \
        "plain: " #name, name, set_up_plain, tear_down, NULL                                       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forks_begin_with_what_was_there),
        TEST(a_disk_goes_back_and_starts_again),
        TEST(whiteouts_survive),
        TEST(many_forks_at_once_all_boot),
        TEST(one_that_was_frozen_stays_frozen),
        TEST(a_freeze_that_comes_meanwhile_stays),
        TEST(what_cannot_be_is_refused),
        TEST(a_pool_that_is_read_only_refuses_forks),
        TEST(half_a_disk_is_completed),
        TEST(a_porter_that_dies_is_replaced),
        TEST(a_death_at_any_moment_leaves_one_whole_disk),
        PLAIN(forks_begin_with_what_was_there),
        PLAIN(a_disk_goes_back_and_starts_again),
        PLAIN(whiteouts_survive),
        PLAIN(many_forks_at_once_all_boot),
        PLAIN(one_that_was_frozen_stays_frozen),
        PLAIN(a_freeze_that_comes_meanwhile_stays),
        PLAIN(a_porter_that_dies_is_replaced),
        PLAIN(a_death_at_any_moment_leaves_one_whole_plain_disk),
        PLAIN(a_running_disk_is_copied_while_it_runs),
        PLAIN(a_sandbox_may_end_while_it_is_copied),
        PLAIN(a_stopped_disk_is_shared_until_its_stack_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
