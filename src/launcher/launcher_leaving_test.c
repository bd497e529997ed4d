/* What is gone leaves nothing, and neither does a launcher: networks, groups, folders, disks. */
#include <dirent.h>
#include <fts.h>
#include <glob.h>

#include "launcher/cgroup/cgroup_file.h"
#include "launcher/helper/janitor.h"
#include "launcher/launcher_test_kit.h"

/* As descriptors of namespaces are called in /proc: "net:[4026532281]". */
static void name_network(pid_t pid, char ret_name[static 64])
{
    char path[64];
    ssize_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", (int) pid);
    length = readlink(path, ret_name, 63);
    assert_true(length > 0);
    ret_name[length] = '\0';
}

static bool holds(pid_t pid, const char *name)
{
    char pattern[64];
    glob_t found;
    bool is_seen = false;

    (void) snprintf(pattern, sizeof(pattern), "/proc/%d/fd/*", (int) pid);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return false; /* it is gone */
    for (size_t i = 0; i < found.gl_pathc && !is_seen; i++) {
        char link[64];
        ssize_t length = readlink(found.gl_pathv[i], link, sizeof(link) - 1); /* may be gone */

        if (length > 0) {
            link[length] = '\0';
            is_seen = strcmp(link, name) == 0;
        }
    }
    globfree(&found);
    return is_seen;
}

/* By the launcher or a child of it, the janitor for one. Others on this machine may by now hold a
 * network of the same number. */
static bool is_held(const struct kit *kit, const char *name)
{
    AUTO(free) char *children = NULL;
    bool is_seen = holds(kit->launcher, name);
    char path[64], *end;
    size_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) kit->launcher,
                    (int) kit->launcher);
    assert_int_equal(sys_file_read_all(AT_FDCWD, path, 1 << 20, &children, &length), 0);
    for (char *at = children; strtol(at, &end, 10) > 0; at = end)
        is_seen = is_seen || holds((pid_t) strtol(at, NULL, 10), name);
    return is_seen;
}

/* From then on it is nobody else's, even if nobody ever calls. */
static void reach(struct kit *kit, const struct id *id)
{
    struct wire_message ask = {.number = WIRE_MESSAGE_SOCKETS};
    struct kit_answer answer;

    ask.sockets = (struct wire_sockets){*id, WIRE_SOCKET_IPV4, 1};
    kit_ask(kit, &ask, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SOCKETS_MADE);
    (void) close(answer.fds[0]);
}

static void who_is_gone_has_left_its_network(void **state)
{
    enum { SOME = 4 };
    struct kit *kit = *state;
    char names[SOME][64];

    NEEDS_LAUNCHER(kit);
    for (size_t i = 0; i < SOME; i++) {
        struct wire_plan plan = kit_plan();
        struct kit_answer answer;

        kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
        kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
        name_network((pid_t) answer.message.sandbox.entry.pid, names[i]);
        reach(kit, &plan.id);
        kit_kill(kit, &plan.id, WIRE_KILL_EVERYTHING, &answer);
        kit_expect(&answer, WIRE_MESSAGE_DONE);
    }
    kit_wait_for_exit(kit, SOME);
    for (size_t i = 0; i < SOME; i++)
        assert_false(is_held(kit, names[i]));
    assert_int_equal(kit_stop(kit), 0);
}

/* The networks that the launcher holds, by name. */
static size_t list_networks(pid_t pid, char ret_names[static 8][64])
{
    char pattern[64];
    glob_t found;
    size_t count = 0;

    (void) snprintf(pattern, sizeof(pattern), "/proc/%d/fd/*", (int) pid);
    assert_int_equal(glob(pattern, GLOB_NOSORT, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && count < 8; i++) {
        char name[64];
        ssize_t length = readlink(found.gl_pathv[i], name, sizeof(name) - 1);

        name[length < 0 ? 0 : length] = '\0';
        if (strncmp(name, "net:", 4) == 0)
            memcpy(ret_names[count++], name, sizeof(name));
    }
    globfree(&found);
    return count;
}

/* One is made when the last start is over; the next sandbox is the first to have it. */
static void a_network_that_was_made_in_advance_is_the_next_ones(void **state)
{
    struct kit *kit = *state;
    char before[8][64], names[8][64], theirs[2][64];
    size_t count_before, count = 0;

    NEEDS_LAUNCHER(kit);
    count_before = list_networks(kit->launcher, before);
    for (size_t i = 0; i < 2; i++) {
        struct wire_plan plan = kit_plan();
        struct kit_answer answer;
        bool was_held = false;

        kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
        kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
        name_network((pid_t) answer.message.sandbox.entry.pid, theirs[i]);
        for (size_t k = 0; k < count; k++)
            was_held = was_held || strcmp(names[k], theirs[i]) == 0;
        assert_int_equal(was_held, i > 0);
        assert_false(holds(kit->launcher, theirs[i])); /* it is the sandbox's alone */
        for (int turn = 0; turn < 100 && count <= count_before; turn++) {
            kit_turn(kit, 20);
            count = list_networks(kit->launcher, names);
        }
        assert_int_equal(count, count_before + 1);
    }
    assert_string_not_equal(theirs[0], theirs[1]);
    assert_int_equal(kit_stop(kit), 0);
}

/* How many of the launchers' folders are in the run folder. */
static size_t count_instances(const struct kit *kit)
{
    char path[96];
    DIR *directory;
    const struct dirent *entry;
    size_t count = 0;

    (void) snprintf(path, sizeof(path), "%s/run", kit->folder);
    directory = opendir(path);
    assert_non_null(directory);
    while ((entry = readdir(directory)))
        count += strncmp(entry->d_name, "once-", 5) == 0;
    (void) closedir(directory);
    return count;
}

static void what_a_killed_launcher_left_goes_with_the_next(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plans[] = {kit_plan(), kit_plan()};
    enum run_state seen;
    struct kit_answer answer;
    pid_t inside;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plans[0]);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plans[1], &answer);
    kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
    inside = (pid_t) answer.message.sandbox.entry.pid;
    assert_int_equal(kill(inside, 0), 0);
    assert_int_equal(kill(kit->launcher, SIGKILL), 0);
    assert_true(WIFSIGNALED(kit_stop(kit)));
    assert_int_equal(count_instances(kit), 1);
    kit_start(kit);
    assert_int_equal(count_instances(kit), 1); /* its own */
    assert_false(kit_is_listed(kit, &plans[0].id, &seen));
    assert_false(kit_is_listed(kit, &plans[1].id, &seen));
    assert_int_equal(kit_stop(kit), 0);
    assert_int_equal(count_instances(kit), 0);
}

static void a_pool_that_takes_no_writes_holds_nobody_up(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    enum run_state seen;
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    kit_set_pool_read_only(kit, true);
    plan.id = id_new();
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_UNAVAILABLE);
    assert_int_equal(kit_stop(kit), 0);
    assert_int_equal(count_instances(kit), 1); /* what could not be deleted is not forgotten */
    /* It unmounted the pool, as nobody else used it: the next one mounts it anew. */
    kit_start(kit);
    assert_int_equal(count_instances(kit), 1);
    assert_false(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(kit_stop(kit), 0);
    assert_int_equal(count_instances(kit), 0);
}

/* Of its group, as the kernel has it. */
static uint64_t process_limit_of(const struct kit *kit, const struct id *id)
{
    char top[] = "/sys/fs/cgroup";
    char *paths[] = {top, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    const FTSENT *entry;
    uint64_t limit = 0;

    assert_non_null(walk);
    while (limit == 0 && (entry = fts_read(walk))) {
        char path[PATH_MAX];

        if (entry->fts_info != FTS_D || !strstr(entry->fts_path, kit->cgroup) ||
            strcmp(entry->fts_name, id->text) != 0)
            continue;
        (void) snprintf(path, sizeof(path), "%.*s/pids.max", (int) entry->fts_pathlen,
                        entry->fts_path);
        (void) cgroup_file_number(AT_FDCWD, path, &limit); /* not in every hierarchy */
    }
    (void) fts_close(walk);
    return limit;
}

static void change_process_limit(struct kit *kit, struct wire_plan *plan, uint32_t limit)
{
    struct wire_message message = {.number = WIRE_MESSAGE_LIMITS};
    struct kit_answer answer;

    message.limits = (struct wire_set_limits){plan->id, plan->limits};
    message.limits.limits.pids = limit;
    kit_ask(kit, &message, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static void assign_with_process_limit(struct kit *kit, struct wire_plan *plan, uint32_t limit)
{
    struct kit_answer answer;

    plan->flags = 0;
    plan->limits.pids = limit;
    kit_ask_plan(kit, WIRE_MESSAGE_ASSIGN, plan, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
}

static void limits_that_were_changed_do_not_reach_the_next(void **state)
{
    struct kit *kit = *state;

    NEEDS_LAUNCHER(kit);
    for (int i = 0; i < 6; i++) {
        struct wire_plan plan = kit_plan();
        struct kit_answer answer;

        plan.limits.pids = 40;
        plan.flags = i % 2 ? WIRE_BIT(WIRE_PLAN_POOLED) : 0;
        kit_create(kit, &plan);
        assert_int_equal(process_limit_of(kit, &plan.id), 40);
        if (i % 2)
            assign_with_process_limit(kit, &plan, 60);
        else
            change_process_limit(kit, &plan, 60);
        assert_int_equal(process_limit_of(kit, &plan.id), 60);
        kit_kill(kit, &plan.id, WIRE_KILL_EVERYTHING, &answer);
        kit_turn(kit, JANITOR_LINGER_MS + 300);
    }
    assert_int_equal(kit_stop(kit), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(who_is_gone_has_left_its_network),
        KIT_TEST(a_network_that_was_made_in_advance_is_the_next_ones),
        KIT_TEST(what_a_killed_launcher_left_goes_with_the_next),
        KIT_TEST(limits_that_were_changed_do_not_reach_the_next),
        KIT_TEST(a_pool_that_takes_no_writes_holds_nobody_up),
    };

    orphans_adopt();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
