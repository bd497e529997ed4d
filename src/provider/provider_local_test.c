/* The provider `local` on a played launcher: the contract, and opening. */
#include "provider/launcher_testing.h"
#include "provider/provider_contract.h"

static struct provider *make_with_stock(struct contract *contract)
{
    return make_played(contract, 3);
}

static struct provider *make_feeble(struct contract *contract)
{
    struct provider *provider = make_played(contract, 0);

    played(contract)->features = 0;
    played(contract)->enforced = 0;
    return provider;
}

static struct provider *make_late(struct contract *contract)
{
    struct provider *provider = make_played(contract, 0);

    played(contract)->exits_late = true;
    return provider;
}

static const struct contract_backend with_stock = {
    .make = make_with_stock, .kill = kill_played, .done = done_played};
static const struct contract_backend feeble = {
    .make = make_feeble, .kill = kill_played, .done = done_played};
static const struct contract_backend late = {
    .make = make_late, .kill = kill_played, .done = done_played};

static void what_the_launcher_can_do_is_told(void **state)
{
    struct contract *contract = *state;

    assert_true(can(contract, PROVIDER_FREEZE));
    assert_true(can(contract, PROVIDER_NAT));
    assert_false(can(contract, PROVIDER_OOM));
    assert_int_equal(provider_enforced(contract->provider), LIMIT_BIT(PIDS));
}

static void opening_takes_over_what_is_there(void **state)
{
    static const struct {
        enum run_state is;
        enum run_state seen;
    } pairs[] = {
        {RUN_STATE_RUNNING, RUN_STATE_RUNNING},
        {RUN_STATE_FROZEN, RUN_STATE_FROZEN},
        {RUN_STATE_STOPPED, RUN_STATE_STOPPED},
        {RUN_STATE_BROKEN, RUN_STATE_BROKEN},
    };
    struct contract *contract = contract_new(*state);
    struct id ids[ARRAY_COUNT(pairs)];
    struct reply reply;

    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        ids[i] = id_new();
        (void) play_add(played(contract), &ids[i], pairs[i].is);
    }
    reply = contract_open(contract);
    expect_ok(&reply);
    reply = ask_list(contract);
    assert_int_equal(reply.count, ARRAY_COUNT(pairs));
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++)
        expect_state(contract, &ids[i], pairs[i].seen);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ADOPT], 2);
    contract_free(contract);
}

/* A daemon before us asked for the end of it, and is gone: it has its disk, or is gone, too. */
static void what_is_being_stopped_is_waited_for(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id id = id_new();
    struct reply reply;

    (void) play_add(played(contract), &id, RUN_STATE_STOPPING);
    played(contract)->settles_at = 4;
    reply = contract_open(contract);
    expect_ok(&reply);
    expect_state(contract, &id, RUN_STATE_STOPPED);
    assert_true(played(contract)->asked[WIRE_MESSAGE_LIST] >= 4);
    contract_free(contract);
}

/* More than a page, and more than there can be open requests. */
static void many_sandboxes_are_taken_over(void **state)
{
    struct contract *contract = contract_new(*state);
    struct reply reply;

    for (int i = 0; i < 700; i++) {
        struct id id = id_new();

        (void) play_add(played(contract), &id, RUN_STATE_RUNNING);
    }
    reply = contract_open(contract);
    expect_ok(&reply);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ADOPT], 700);
    for (size_t i = 0; i < 700; i++) {
        reply = ask_stats(contract, &played(contract)->sandboxes[i].entry.id);
        expect_ok(&reply);
    }
    contract_free(contract);
}

static void what_cannot_be_taken_over_is_broken(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id id = id_new();
    struct reply reply;

    (void) play_add(played(contract), &id, RUN_STATE_RUNNING);
    played(contract)->fail[WIRE_MESSAGE_ADOPT] = ERR_INTERNAL;
    reply = contract_open(contract);
    expect_ok(&reply);
    expect_state(contract, &id, RUN_STATE_BROKEN);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    assert_int_equal(played(contract)->count, 0);
    contract_free(contract);
}

static void what_went_in_the_meantime_is_forgotten(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id id = id_new();
    struct reply reply;

    (void) play_add(played(contract), &id, RUN_STATE_RUNNING);
    played(contract)->fail[WIRE_MESSAGE_ADOPT] = ERR_NOT_FOUND;
    reply = contract_open(contract);
    expect_ok(&reply);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
    contract_free(contract);
}

static void exits_of_earlier_times_are_told_once(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id ended = id_new(), runs = id_new();
    struct reply reply;

    (void) play_add(played(contract), &ended, RUN_STATE_STOPPED);
    (void) play_add(played(contract), &runs, RUN_STATE_RUNNING);
    reply = contract_open(contract);
    expect_ok(&reply);
    play_tell_exit(played(contract), &ended, ENDED_UNKNOWN, 0);
    play_tell_exit(played(contract), &ended, ENDED_UNKNOWN, 0);
    play_exit(played(contract), &runs);
    TURN_UNTIL(&contract->loop, contract->exit_count == 2);
    turn_for(contract, 2);
    assert_int_equal(contract->exit_count, 2);
    assert_string_equal(contract->exits[0].id.text, ended.text);
    assert_int_equal(contract->exits[0].ending.kind, ENDED_UNKNOWN);
    contract_free(contract);
}

static void endings_are_translated(void **state)
{
    static const struct {
        enum ending_kind kind;
        enum ending_kind told;
        uint8_t value;
    } pairs[] = {{ENDED_STATUS, ENDED_STATUS, 3},
                 {ENDED_SIGNAL, ENDED_SIGNAL, 11},
                 {ENDED_OOM, ENDED_OOM, 0},
                 {ENDED_UNKNOWN, ENDED_UNKNOWN, 0}};
    struct contract *contract = *state;

    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        struct id id = new_sandbox(contract);

        play_tell_exit(played(contract), &id, pairs[i].kind, pairs[i].value);
        TURN_UNTIL(&contract->loop, contract->exit_count == i + 1);
        assert_int_equal(contract->exits[i].ending.kind, pairs[i].told);
        assert_int_equal(contract->exits[i].ending.value, pairs[i].value);
    }
}

static void the_spec_becomes_the_plan(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct network_rule rule = {.allow = true,
                                .to = {.address = 0x0a000000, .bits = 8},
                                .protocol = NETWORK_TCP,
                                .ports = {.first = 80, .last = 90}};
    struct provider_bind bind = {.source = "tools", .place = "/opt/tools"};
    struct provider_spec spec = {.id = id,
                                 .hostname = "demo",
                                 .image = "debian",
                                 .limits = {.memory_bytes = 1 << 20, .cpu_millis = 250},
                                 .network = NETWORK_NAT,
                                 .rules = &rule,
                                 .rule_count = 1,
                                 .binds = &bind,
                                 .bind_count = 1};
    struct reply reply = ask_create(contract, &spec);
    const struct wire_plan *plan;

    expect_ok(&reply);
    plan = &play_find(played(contract), &id)->plan;
    assert_string_equal(plan->hostname, "demo");
    assert_string_equal(plan->image, "debian");
    assert_int_equal(plan->limits.memory_bytes, 1 << 20);
    assert_int_equal(plan->limits.cpu_millis, 250);
    assert_int_equal(plan->network, NETWORK_NAT);
    assert_int_equal(plan->rules.items[0].ports.last, 90);
    assert_string_equal(plan->binds.items[0].place, "/opt/tools");
    assert_int_equal(plan->flags, 0);
}

static void changed_limits_reach_the_launcher(void **state)
{
    struct contract *contract = *state;
    struct limits limits = {.memory_bytes = 7 << 20, .pids = 9, .files = 12};
    struct id id = new_sandbox(contract);
    struct reply reply = ask_limits(contract, &id, &limits);

    expect_ok(&reply);
    assert_int_equal(played(contract)->limits.memory_bytes, 7 << 20);
    assert_int_equal(played(contract)->limits.pids, 9);
    assert_int_equal(played(contract)->limits.files, 12);
}

static void stopping_keeps_the_disk(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply = ask_plain(contract, provider_stop, &id);

    expect_ok(&reply);
    assert_int_equal(played(contract)->last_kill.kill.scope, WIRE_KILL_PROCESSES);
    reply = ask_start(contract, &id);
    expect_ok(&reply);
    assert_int_equal(play_find(played(contract), &id)->plan.flags,
                     WIRE_BIT(WIRE_PLAN_EXISTING_DISK));
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    assert_int_equal(played(contract)->last_kill.kill.scope, WIRE_KILL_EVERYTHING);
}

static void jobs_reach_the_launcher_as_they_are(void **state)
{
    struct contract *contract = *state;
    const struct wire_keeper_job *asked = &played(contract)->last_job;
    struct id snapshot = id_new(), target = id_new();
    struct disk_ref disk = {.set = DISK_OF_SNAPSHOT, .id = snapshot};
    struct reply reply;

    play_add_snapshot(played(contract), &snapshot);
    reply = ask_whole_job(contract, (struct provider_disk_job){.kind = DISK_JOB_SCAN, .on = disk});
    expect_ok(&reply);
    assert_int_equal(asked->job, DISK_JOB_SCAN);
    assert_int_equal(asked->on.set, DISK_OF_SNAPSHOT);
    assert_string_equal(asked->on.id.text, snapshot.text);
    assert_string_equal(asked->image, "host"); /* the provider's default */
    reply = ask_whole_job(
        contract, (struct provider_disk_job){.kind = DISK_JOB_READ, .on = disk, .image = "debian"});
    expect_ok(&reply);
    assert_string_equal(asked->image, "debian");
    reply = ask_whole_job(contract, (struct provider_disk_job){.kind = DISK_JOB_UNPACK,
                                                               .target = target,
                                                               .disk_bytes = 64 << 20});
    expect_ok(&reply);
    assert_string_equal(asked->target.text, target.text);
    assert_int_equal(asked->disk_bytes, 64 << 20);
    expect_state(contract, &target, RUN_STATE_STOPPED);
    played(contract)->job_status = 1;
    target = id_new();
    reply = ask_whole_job(
        contract, (struct provider_disk_job){.kind = DISK_JOB_COPY, .on = disk, .target = target});
    expect_ok(&reply);
    assert_int_equal(reply.ending.value, 1);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 1);
}

static void snapshots_reach_the_launcher_as_they_are(void **state)
{
    struct contract *contract = *state;
    struct played_launcher *launcher = played(contract);
    struct id id = new_sandbox(contract), snapshot = id_new(), fork = id_new();
    struct provider_spec spec = spec_of(contract, &fork);
    struct reply reply = ask_snapshot(contract, &id, &snapshot, true);

    expect_ok(&reply);
    assert_int_equal(reply.snapshot.pause_us, 100);
    assert_int_equal(reply.snapshot.took_us, 2000);
    assert_true(launcher->last_snapshot.freeze);
    assert_string_equal(launcher->last_snapshot.id.text, id.text);
    spec.origin = (struct disk_ref){DISK_OF_SNAPSHOT, snapshot};
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_string_equal(play_find(launcher, &fork)->plan.origin.id.text, snapshot.text);
    assert_int_equal(play_find(launcher, &fork)->plan.origin.set, DISK_OF_SNAPSHOT);
    reply = ask_plain(contract, provider_stop, &id);
    expect_ok(&reply);
    reply = ask_roll_back(contract, &id, &snapshot);
    expect_ok(&reply);
    assert_string_equal(launcher->last_roll_back.snapshot.text, snapshot.text);
    reply = ask_usage(contract, DISK_OF_SNAPSHOT, &snapshot);
    expect_ok(&reply);
    assert_int_equal(reply.bytes, 4096);
}

static void many_snapshots_come_in_pages(void **state)
{
    struct contract *contract = *state;
    struct played_launcher *launcher = played(contract);
    struct reply reply;

    for (size_t i = 0; i < PLAYED_SNAPSHOTS_MAX; i++) {
        struct id id = id_new();

        play_add_snapshot(launcher, &id);
    }
    reply = ask_snapshots(contract);
    expect_ok(&reply);
    assert_int_equal(reply.count, PLAYED_SNAPSHOTS_MAX);
    for (size_t i = 0; i < reply.count; i++)
        assert_string_equal(reply.ids[i].text, launcher->snapshots[i].text);
    assert_int_equal(launcher->asked[WIRE_MESSAGE_LIST_SNAPSHOTS], 4);
    launcher->fail[WIRE_MESSAGE_LIST_SNAPSHOTS] = ERR_INTERNAL;
    reply = ask_snapshots(contract);
    expect_code(&reply, ERR_INTERNAL);
}

#define OWN_TEST(name)                                                                             \
    {                                                                                              \
#name, name, NULL, NULL, (void *) &played_backend                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS(&played_backend),
        CONTRACT_TESTS(&with_stock),
        CONTRACT_TEST(what_it_cannot_do_is_not_implemented, &feeble),
        CONTRACT_TEST(limits_that_do_not_hold_are_told, &feeble),
        CONTRACT_TEST(an_exit_is_told_once, &late),
        CONTRACT_TEST(an_end_that_was_asked_for_is_not_told, &late),
        CONTRACT_TEST(a_stopped_sandbox_starts_again, &late),
        CONTRACT_TEST(a_destroyed_sandbox_is_unknown, &late),
        CONTRACT_TEST(what_the_launcher_can_do_is_told, &played_backend),
        CONTRACT_TEST(endings_are_translated, &played_backend),
        CONTRACT_TEST(the_spec_becomes_the_plan, &played_backend),
        CONTRACT_TEST(changed_limits_reach_the_launcher, &played_backend),
        CONTRACT_TEST(stopping_keeps_the_disk, &played_backend),
        CONTRACT_TEST(jobs_reach_the_launcher_as_they_are, &played_backend),
        CONTRACT_TEST(snapshots_reach_the_launcher_as_they_are, &played_backend),
        CONTRACT_TEST(many_snapshots_come_in_pages, &played_backend),
        OWN_TEST(opening_takes_over_what_is_there),
        OWN_TEST(what_is_being_stopped_is_waited_for),
        OWN_TEST(many_sandboxes_are_taken_over),
        OWN_TEST(what_cannot_be_taken_over_is_broken),
        OWN_TEST(what_went_in_the_meantime_is_forgotten),
        OWN_TEST(exits_of_earlier_times_are_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
