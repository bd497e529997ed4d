/* A whole launcher, by its protocol: what a daemon may ask, and what it gets. */
#include "launcher/launcher_test_kit.h"

static struct wire_message about(enum wire_number number, const struct id *id)
{
    struct wire_message message = {.number = number};

    message.freeze.id = *id; /* every body that is only a target looks the same */
    return message;
}

/* --- life ------------------------------------------------------------------------------------ */

static void a_sandbox_is_made_listed_and_destroyed(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    enum run_state seen;
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    assert_true(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(seen, RUN_STATE_RUNNING);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    kit_kill(kit, &plan.id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_false(kit_is_listed(kit, &plan.id, &seen));
    kit_wait_for_exit(kit, 1);
    assert_string_equal(kit->exits[0].id.text, plan.id.text);
    assert_int_equal(kit->exits[0].ending.kind, ENDED_SIGNAL);
    assert_int_equal(kit->exits[0].ending.value, SIGKILL);
    kit_kill(kit, &plan.id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    assert_int_equal(kit_stop(kit), 0);
}

static void a_stopped_one_keeps_its_disk_and_starts_again(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    enum run_state seen;
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    kit_kill(kit, &plan.id, WIRE_KILL_PROCESSES, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_true(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(seen, RUN_STATE_STOPPED);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT); /* it has a disk */
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    kit_create(kit, &plan);
    assert_true(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(seen, RUN_STATE_RUNNING);
    kit_kill(kit, &plan.id, WIRE_KILL_PROCESSES, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    kit_kill(kit, &plan.id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_false(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(kit_stop(kit), 0);
}

static void one_in_stock_is_assigned_once(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    enum run_state seen;
    struct kit_answer answer;
    struct wire_message freeze;

    NEEDS_LAUNCHER(kit);
    plan.flags = WIRE_BIT(WIRE_PLAN_POOLED);
    kit_create(kit, &plan);
    assert_true(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(seen, RUN_STATE_POOLED);
    freeze = about(WIRE_MESSAGE_FREEZE, &plan.id);
    kit_ask(kit, &freeze, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    plan.flags = 0;
    plan.limits.memory_bytes = 128 * KIT_MEGABYTE;
    kit_ask_plan(kit, WIRE_MESSAGE_ASSIGN, &plan, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
    assert_int_equal(answer.message.sandbox.entry.state, RUN_STATE_RUNNING);
    kit_ask_plan(kit, WIRE_MESSAGE_ASSIGN, &plan, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    assert_int_equal(kit_stop(kit), 0);
}

static void a_frozen_one_thaws_and_can_be_killed(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message freeze = about(WIRE_MESSAGE_FREEZE, &plan.id);
    struct wire_message thaw = about(WIRE_MESSAGE_THAW, &plan.id);
    enum run_state seen;
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    kit_ask(kit, &freeze, &answer);
    if (answer.has_failed && answer.failure.code == ERR_NOT_IMPLEMENTED) {
        assert_int_equal(kit_stop(kit), 0);
        (void) printf("# skip: a freezer\n");
        skip();
    }
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_true(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(seen, RUN_STATE_FROZEN);
    kit_ask(kit, &thaw, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_true(kit_is_listed(kit, &plan.id, &seen));
    assert_int_equal(seen, RUN_STATE_RUNNING);
    kit_ask(kit, &freeze, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    kit_kill(kit, &plan.id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_int_equal(kit_stop(kit), 0);
}

/* --- a running one --------------------------------------------------------------------------- */

static void limits_change_and_statistics_tell(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message limits = {.number = WIRE_MESSAGE_LIMITS};
    struct wire_message stats = about(WIRE_MESSAGE_STATS, &plan.id);
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    limits.limits = (struct wire_set_limits){plan.id, plan.limits};
    limits.limits.limits.memory_bytes = 512 * KIT_MEGABYTE;
    kit_ask(kit, &limits, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    limits.limits.limits.memory_bytes = 1;
    kit_ask(kit, &limits, &answer);
    kit_expect_failure(&answer, ERR_INVALID);
    kit_ask(kit, &stats, &answer);
    kit_expect(&answer, WIRE_MESSAGE_STATS_READ);
    assert_true(answer.message.stats_read.known);
    if (answer.message.stats_read.known & STATS_BIT(PIDS))
        assert_true(answer.message.stats_read.pids >= 1);
    assert_int_equal(kit_stop(kit), 0);
}

static void sockets_are_inside_the_sandbox(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message ask = {.number = WIRE_MESSAGE_SOCKETS};
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    ask.sockets = (struct wire_sockets){plan.id, WIRE_SOCKET_IPV4, 3};
    kit_ask(kit, &ask, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SOCKETS_MADE);
    assert_int_equal(answer.fd_count, 3);
    for (size_t i = 0; i < answer.fd_count; i++) {
        int type = 0;
        socklen_t size = sizeof(type);

        assert_int_equal(getsockopt(answer.fds[i], SOL_SOCKET, SO_TYPE, &type, &size), 0);
        assert_int_equal(type, SOCK_STREAM);
        (void) close(answer.fds[i]);
    }
    ask.sockets.id = id_new();
    kit_ask(kit, &ask, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    assert_int_equal(kit_stop(kit), 0);
}

/* Run a job on a disk and read what it wrote. */
static void run_job(struct kit *kit, const struct wire_keeper_job *job, struct kit_answer *answer,
                    char *ret_output, size_t size)
{
    struct wire_message request = {.number = WIRE_MESSAGE_KEEPER_JOB, .keeper_job = *job};
    AUTO(close) int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int ends[2];
    ssize_t got;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    kit_send(kit, &request, (const int[]){input, ends[1], input}, 3, answer);
    kit_wait(kit, answer);
    (void) close(ends[1]);
    got = read(ends[0], ret_output, size - 1);
    ret_output[got > 0 ? got : 0] = '\0';
    (void) close(ends[0]);
}

static void a_keeper_works_on_the_disk_of_a_stopped_one(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_keeper_job job = {.on.id = plan.id, .job = DISK_JOB_MEASURE};
    enum run_state seen;
    struct kit_answer answer;
    char output[4096];

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect_failure(&answer, ERR_CONFLICT);
    kit_kill(kit, &plan.id, WIRE_KILL_PROCESSES, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect(&answer, WIRE_MESSAGE_JOB_ENDED);
    assert_int_equal(answer.message.job_ended.ending.kind, ENDED_STATUS);
    assert_int_equal(answer.message.job_ended.ending.value, 0);
    assert_int_equal(output[0], '{');
    job.job = DISK_JOB_COPY;
    job.target = id_new();
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect(&answer, WIRE_MESSAGE_JOB_ENDED);
    assert_true(kit_is_listed(kit, &job.target, &seen));
    assert_int_equal(seen, RUN_STATE_STOPPED);
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect_failure(&answer, ERR_CONFLICT); /* and the first copy is still there */
    assert_true(kit_is_listed(kit, &job.target, &seen));
    plan.id = job.target; /* the copy is a disk like any other */
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    kit_create(kit, &plan);
    job = (struct wire_keeper_job){.on.id = id_new(), .job = DISK_JOB_LIST};
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    assert_int_equal(kit_stop(kit), 0);
}

/* More than run at once: those wait, and each gets its answer. */
static void more_jobs_than_keepers_wait_for_their_turn(void **state)
{
    enum { MANY = 20 };
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    struct wire_message request = {.number = WIRE_MESSAGE_KEEPER_JOB,
                                   .keeper_job = {.job = DISK_JOB_LIST}};
    struct wire_message create = {.number = WIRE_MESSAGE_CREATE};
    AUTO(close) int null = open("/dev/null", O_RDWR | O_CLOEXEC), sealed = -EBADF;
    struct kit_answer answers[MANY], answer;
    struct error err = ERROR_INIT;

    NEEDS_LAUNCHER(kit);
    kit_create(kit, &plan);
    kit_kill(kit, &plan.id, WIRE_KILL_PROCESSES, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    request.keeper_job.on.id = plan.id;
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    assert_int_equal(wire_plan_seal(&plan, &sealed, &err), 0); /* takes time that jobs would use */
    for (size_t i = 0; i < MANY; i++)
        kit_send(kit, &request, (const int[]){null, null, null}, 3, &answers[i]);
    kit_send(kit, &create, &sealed, 1, &answer);
    kit_wait(kit, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT); /* its disk is being read */
    for (size_t i = 0; i < MANY; i++) {
        kit_wait(kit, &answers[i]);
        kit_expect(&answers[i], WIRE_MESSAGE_JOB_ENDED);
        assert_int_equal(answers[i].message.job_ended.ending.value, 0);
    }
    kit_create(kit, &plan);
    assert_int_equal(kit_stop(kit), 0);
}

/* A new disk of a layer that is none: nothing is left of it. */
static void a_job_that_fails_takes_its_new_disk_along(void **state)
{
    struct kit *kit = *state;
    struct wire_keeper_job job = {.job = DISK_JOB_UNPACK, .target = id_new()};
    enum run_state seen;
    struct kit_answer answer;
    char output[4096];

    NEEDS_LAUNCHER(kit);
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect(&answer, WIRE_MESSAGE_JOB_ENDED);
    assert_int_equal(answer.message.job_ended.ending.value, 1);
    assert_memory_equal(output, "{\"error\":", 9);
    assert_false(kit_is_listed(kit, &job.target, &seen));
    job = (struct wire_keeper_job){.job = DISK_JOB_UNARCHIVE}; /* without any disk */
    run_job(kit, &job, &answer, output, sizeof(output));
    kit_expect(&answer, WIRE_MESSAGE_JOB_ENDED);
    assert_int_equal(answer.message.job_ended.ending.value, 1);
    assert_int_equal(kit_stop(kit), 0);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void wrong_plans_are_refused_and_leave_nothing(void **state)
{
    struct kit *kit = *state;
    struct wire_plan plan = kit_plan();
    enum run_state seen;
    struct kit_answer answer;

    NEEDS_LAUNCHER(kit);
    (void) snprintf(plan.image, sizeof(plan.image), "nowhere");
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    assert_false(kit_is_listed(kit, &plan.id, &seen));
    plan = kit_plan();
    plan.limits.memory_bytes = 4096;
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_INVALID);
    plan = kit_plan();
    plan.limits.disk_bytes = 4096;
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_INVALID);
    plan = kit_plan();
    plan.binds.count = 1;
    plan.binds.items[0] = (struct wire_bind){.source = "nothing", .place = "/data"};
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    plan = kit_plan();
    plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    plan = kit_plan();
    kit_create(kit, &plan); /* and it goes on */
    assert_int_equal(kit_stop(kit), 0);
}

static void many_at_once_all_come_and_all_go(void **state)
{
    enum { MANY = 24 };
    struct kit *kit = *state;
    struct wire_plan plans[MANY];
    struct kit_answer answers[MANY];
    size_t exits = 0;

    NEEDS_LAUNCHER(kit);
    for (size_t i = 0; i < MANY; i++) {
        plans[i] = kit_plan();
        kit_send_plan(kit, WIRE_MESSAGE_CREATE, &plans[i], &answers[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        kit_wait(kit, &answers[i]);
        kit_expect(&answers[i], WIRE_MESSAGE_SANDBOX);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(answers[i].message.sandbox.uid_first,
                                 answers[j].message.sandbox.uid_first);
    }
    for (size_t i = 0; i < MANY; i += 2) {
        struct kit_answer answer;

        kit_kill(kit, &plans[i].id, WIRE_KILL_EVERYTHING, &answer);
        kit_expect(&answer, WIRE_MESSAGE_DONE);
        exits++;
    }
    kit_wait_for_exit(kit, exits);
    assert_int_equal(kit_stop(kit), 0); /* the others go with the conversation */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(a_sandbox_is_made_listed_and_destroyed),
        KIT_TEST(a_stopped_one_keeps_its_disk_and_starts_again),
        KIT_TEST(one_in_stock_is_assigned_once),
        KIT_TEST(a_frozen_one_thaws_and_can_be_killed),
        KIT_TEST(limits_change_and_statistics_tell),
        KIT_TEST(sockets_are_inside_the_sandbox),
        KIT_TEST(a_keeper_works_on_the_disk_of_a_stopped_one),
        KIT_TEST(more_jobs_than_keepers_wait_for_their_turn),
        KIT_TEST(a_job_that_fails_takes_its_new_disk_along),
        KIT_TEST(wrong_plans_are_refused_and_leave_nothing),
        KIT_TEST(many_at_once_all_come_and_all_go),
    };

    orphans_adopt();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
