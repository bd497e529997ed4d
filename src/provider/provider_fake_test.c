#include <signal.h>

#include "provider/provider_contract.h"
#include "provider/provider_fake.h"

static struct provider *make_fake(struct contract *contract)
{
    struct provider_fake_options options = {.loop = &contract->loop, .agents = "/run/agents"};

    return provider_fake_new(&options);
}

/* One that can do as little as possible. */
static struct provider *make_feeble(struct contract *contract)
{
    struct provider_fake_options options = {
        .loop = &contract->loop, .missing = UINT32_MAX, .unenforced = LIMIT_BIT(MEMORY)};

    return provider_fake_new(&options);
}

static struct provider *make_choosy(struct contract *contract)
{
    struct provider_fake_options options = {.loop = &contract->loop, .chooses_ids = true};

    return provider_fake_new(&options);
}

static void kill_fake(struct contract *contract, const struct id *id)
{
    struct ending ending = {.kind = ENDED_SIGNAL, .value = SIGKILL};

    provider_fake_exit(contract->provider, id, &ending);
    /* Told twice by whoever tells us: still told once. */
    provider_fake_exit(contract->provider, id, &ending);
}

static void done_fake(struct contract *contract)
{
    (void) contract;
}

static const struct contract_backend fake = {
    .make = make_fake, .kill = kill_fake, .done = done_fake};
static const struct contract_backend feeble = {
    .make = make_feeble, .kill = kill_fake, .done = done_fake};
static const struct contract_backend choosy = {
    .make = make_choosy, .kill = kill_fake, .done = done_fake};

static void a_call_fails_when_told_to(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply;

    provider_fake_fail_next(contract->provider, PROVIDER_CALL_CREATE, ERR_NO_SPACE);
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_NO_SPACE);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    provider_fake_fail_next(contract->provider, PROVIDER_CALL_FREEZE, ERR_INTERNAL);
    reply = ask_plain(contract, provider_freeze, &id);
    expect_code(&reply, ERR_INTERNAL);
    expect_state(contract, &id, RUN_STATE_RUNNING);
    provider_fake_fail_next(contract->provider, PROVIDER_CALL_SOCKETS, ERR_INTERNAL);
    reply = ask_sockets(contract, &id, 2);
    expect_code(&reply, ERR_INTERNAL);
}

static void an_exit_during_a_stop_that_fails_is_told(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply = {.times = 0};

    provider_fake_hold(contract->provider, PROVIDER_CALL_STOP, true);
    provider_stop(contract->provider, &id, on_done, &reply);
    kill_fake(contract, &id);
    turn_for(contract, 2);
    assert_int_equal(contract->exit_count, 0);
    expect_state(contract, &id, RUN_STATE_STOPPING);
    provider_fake_fail_next(contract->provider, PROVIDER_CALL_STOP, ERR_INTERNAL);
    provider_fake_hold(contract->provider, PROVIDER_CALL_STOP, false);
    assert_int_equal(reply.times, 1);
    assert_int_equal(contract->exit_count, 1);
    expect_state(contract, &id, RUN_STATE_STOPPED);
}

static void losing_the_provider_fails_what_is_open(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply held = {.times = 0}, after;

    provider_fake_hold(contract->provider, PROVIDER_CALL_DESTROY, true);
    provider_destroy(contract->provider, &id, on_done, &held);
    turn_for(contract, 2);
    assert_int_equal(held.times, 0);
    provider_fake_lose(contract->provider, "the moon fell down");
    TURN_UNTIL(&contract->loop, contract->losses);
    assert_int_equal(held.times, 1);
    expect_code(&held, ERR_UNAVAILABLE);
    assert_non_null(strstr(contract->loss.message, "the moon"));
    after = ask_list(contract);
    expect_code(&after, ERR_UNAVAILABLE);
    assert_non_null(strstr(after.failure.message, "the moon"));
    assert_int_equal(contract->losses, 1);
}

static void closing_fails_what_is_held(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply held = {.times = 0};

    provider_fake_hold(contract->provider, PROVIDER_CALL_DESTROY, true);
    provider_destroy(contract->provider, &id, on_done, &held);
    turn_for(contract, 1);
    contract_close(contract);
    assert_int_equal(held.times, 1);
    expect_code(&held, ERR_UNAVAILABLE);
}

static void sandboxes_of_earlier_times_are_taken_over(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id runs = id_new(), ended = id_new(), broken = id_new();
    struct ending ending = {.kind = ENDED_STATUS, .value = 3};
    struct reply reply;

    provider_fake_add(contract->provider, &runs, RUN_STATE_RUNNING, NULL);
    provider_fake_add(contract->provider, &ended, RUN_STATE_STOPPED, &ending);
    provider_fake_add(contract->provider, &broken, RUN_STATE_BROKEN, NULL);
    reply = contract_open(contract);
    expect_ok(&reply);
    TURN_UNTIL(&contract->loop, contract->exit_count);
    assert_string_equal(contract->exits[0].id.text, ended.text);
    assert_int_equal(contract->exits[0].ending.value, 3);
    expect_state(contract, &runs, RUN_STATE_RUNNING);
    expect_state(contract, &ended, RUN_STATE_STOPPED);
    expect_state(contract, &broken, RUN_STATE_BROKEN);
    reply = ask_plain(contract, provider_freeze, &broken);
    expect_code(&reply, ERR_CONFLICT);
    reply = ask_plain(contract, provider_destroy, &broken);
    expect_ok(&reply);
    contract_free(contract);
}

static void an_id_may_be_the_providers(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new(), kept = new_sandbox(contract);
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply;

    spec.keep_id = false;
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_string_not_equal(reply.sandbox.id.text, id.text);
    expect_state(contract, &reply.sandbox.id, RUN_STATE_RUNNING);
    expect_state(contract, &kept, RUN_STATE_RUNNING);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_code(&reply, ERR_NOT_FOUND);
}

static void limits_are_remembered(void **state)
{
    struct contract *contract = *state;
    struct limits limits = {.pids = 7};
    struct id id = new_sandbox(contract);
    struct reply reply = ask_limits(contract, &id, &limits);

    expect_ok(&reply);
    assert_int_equal(provider_fake_limits(contract->provider, &id)->pids, 7);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    assert_null(provider_fake_limits(contract->provider, &id));
}

static void jobs_write_what_they_are_told_to(void **state)
{
    static const struct provider_fake_job lines = {
        .report = "{\"added\":\"a\"}\n", .data = "bytes", .size = 5};
    static const struct provider_fake_job failing = {.failure = ERR_NO_SPACE};
    struct contract *contract = *state;
    struct provider_disk_job job = {.kind = DISK_JOB_PACK,
                                    .on = {.set = DISK_OF_SANDBOX, .id = new_sandbox(contract)},
                                    .input = -EBADF};
    struct reply reply = ask_plain(contract, provider_stop, &job.on.id);
    int report[2], data[2];
    char got[256] = "";

    expect_ok(&reply);
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    assert_int_equal(pipe2(data, O_CLOEXEC), 0);
    job.output = report[1];
    job.data = data[1];
    provider_fake_set_job(contract->provider, DISK_JOB_PACK, &lines);
    reply = (struct reply){.times = 0};
    provider_run_disk_job(contract->provider, &job, on_job, &reply);
    await(contract, &reply);
    expect_ok(&reply);
    assert_int_equal(read(report[0], got, sizeof(got)), strlen(lines.report));
    assert_memory_equal(got, lines.report, strlen(lines.report));
    assert_int_equal(read(data[0], got, sizeof(got)), 5);
    provider_fake_set_job(contract->provider, DISK_JOB_PACK, &failing);
    reply = (struct reply){.times = 0};
    provider_run_disk_job(contract->provider, &job, on_job, &reply);
    await(contract, &reply);
    expect_ok(&reply);
    assert_int_equal(reply.ending.value, 1);
    memset(got, 0, sizeof(got));
    assert_true(read(report[0], got, sizeof(got) - 1) > 0);
    assert_non_null(strstr(got, "{\"error\":{\"code\":\"no_space\""));
    for (int i = 0; i < 2; i++) {
        (void) close(report[i]);
        (void) close(data[i]);
    }
}

static void a_target_is_there_when_the_job_succeeded(void **state)
{
    static const struct provider_fake_job failing = {.failure = ERR_NO_SPACE}, fine = {0};
    struct contract *contract = *state;
    struct id running = new_sandbox(contract), target = id_new();
    struct provider_disk_job job = {.kind = DISK_JOB_UNPACK, .target = target};
    struct reply reply;

    provider_fake_set_job(contract->provider, DISK_JOB_UNPACK, &failing);
    reply = ask_whole_job(contract, job);
    expect_ok(&reply);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 1);
    provider_fake_set_job(contract->provider, DISK_JOB_UNPACK, &fine);
    reply = ask_whole_job(contract, job);
    expect_ok(&reply);
    expect_state(contract, &target, RUN_STATE_STOPPED);
    reply = ask_whole_job(contract, job); /* the next layer */
    expect_ok(&reply);
    provider_fake_set_job(contract->provider, DISK_JOB_UNPACK, &failing);
    reply = ask_whole_job(contract, job);
    expect_ok(&reply);
    expect_state(contract, &target, RUN_STATE_STOPPED); /* half filled, but it was there before */
    job.target = running;
    reply = ask_whole_job(contract, job);
    expect_code(&reply, ERR_CONFLICT);
    expect_state(contract, &running, RUN_STATE_RUNNING);
}

int main(void)
{
    const struct CMUnitTest as_fake[] = {
        CONTRACT_TESTS(&fake),
        CONTRACT_TEST(a_call_fails_when_told_to, &fake),
        CONTRACT_TEST(an_exit_during_a_stop_that_fails_is_told, &fake),
        CONTRACT_TEST(losing_the_provider_fails_what_is_open, &fake),
        CONTRACT_TEST(closing_fails_what_is_held, &fake),
        CONTRACT_TEST(limits_are_remembered, &fake),
        CONTRACT_TEST(jobs_write_what_they_are_told_to, &fake),
        CONTRACT_TEST(a_target_is_there_when_the_job_succeeded, &fake),
        CONTRACT_TEST(an_id_may_be_the_providers, &choosy),
        CONTRACT_TEST(what_it_cannot_do_is_not_implemented, &feeble),
        CONTRACT_TEST(unknown_ids_are_not_found, &feeble),
        CONTRACT_TEST(a_destroyed_sandbox_is_unknown, &feeble),
        CONTRACT_TEST(limits_that_do_not_hold_are_told, &feeble),
        {"sandboxes_of_earlier_times_are_taken_over", sandboxes_of_earlier_times_are_taken_over,
         NULL, NULL, (void *) &fake},
    };

    return cmocka_run_group_tests(as_fake, NULL, NULL);
}
