/* Deaths in the middle of snapshots, forks and steps back: of those who work for the launcher, and
 * of the launcher itself. */
#include "launcher/launcher_snapshot_test_kit.h"

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
    struct snapshot_made made;
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
    fork = fork_plan(DISK_OF_SNAPSHOT, &second);
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
    struct wire_plan fork = fork_plan(DISK_OF_SNAPSHOT, &first);
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
        kit_hold_store(kit);
        copy_until_it_dies(kit, &plan);
        status = kit_stop(kit);
        if (!WIFSIGNALED(status))
            fail_msg("%s was never reached", points[i]);
        assert_string_equal(text_of(kit, &plan.id, "note"), "whole");
        kit_let_store_go(kit);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(a_porter_that_dies_is_replaced),
        KIT_TEST(a_death_at_any_moment_leaves_one_whole_disk),
        PLAIN(a_porter_that_dies_is_replaced),
        PLAIN(a_death_at_any_moment_leaves_one_whole_plain_disk),
    };

    orphans_adopt();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
