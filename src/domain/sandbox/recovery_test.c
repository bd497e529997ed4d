#include "base/log.h"
#include "domain/domain_testing.h"
#include "domain/sandbox/new_disks.h"
#include "domain/sandbox/recovery.h"
#include "domain/sandbox/sandbox_wish.h"

/* One sandbox in a lasting state, and the domain closed. */
static struct id leave_one(struct world *world, enum sandbox_status status)
{
    struct sandbox *sandbox;
    struct id id;
    struct told told;

    world->fake.missing = status == SANDBOX_HIBERNATED ? PROVIDER_FREEZE : 0;
    world_open(world);
    sandbox = world_create(world, NULL);
    if (status == SANDBOX_FROZEN || status == SANDBOX_HIBERNATED)
        do_ask(world, sandbox_sleep, sandbox);
    if (status == SANDBOX_STOPPED)
        do_ask(world, sandbox_stop, sandbox);
    if (status == SANDBOX_ERROR) {
        provider_fake_fail_next(world->provider, PROVIDER_CALL_STOP, ERR_NOT_FOUND);
        told = ask(world, sandbox_stop, sandbox);
        expect_code(&told, ERR_GONE);
        world_wait(world);
    }
    assert_int_equal(sandbox->status, status);
    world_pass(world, NEW_DISKS_EVERY_S); /* a disk that is gone is damage from now on */
    assert_false(sandbox->is_disk_new);
    id = sandbox->id;
    world_close(world);
    world->fake.missing = 0;
    return id;
}

static const enum sandbox_status lasting[] = {SANDBOX_RUNNING, SANDBOX_FROZEN, SANDBOX_HIBERNATED,
                                              SANDBOX_STOPPED, SANDBOX_ERROR};

/* What the sandbox is after a restart, per row and what the provider has. The fake shows one that is
 * stopping as broken, so that is left out. */
#define FOUND(running, frozen, stopped, broken, absent)                                            \
    {                                                                                              \
        [RUN_STATE_RUNNING] = (running), [RUN_STATE_FROZEN] = (frozen),                            \
        [RUN_STATE_STOPPED] = (stopped), [RUN_STATE_BROKEN] = (broken),                            \
        [RUN_STATE_ABSENT] = (absent),                                                             \
    }
static const enum sandbox_status after[ARRAY_COUNT(lasting)][RUN_STATE_COUNT] = {
    FOUND(SANDBOX_RUNNING, SANDBOX_FROZEN, SANDBOX_STOPPED, SANDBOX_ERROR, SANDBOX_ERROR),
    FOUND(SANDBOX_RUNNING, SANDBOX_FROZEN, SANDBOX_HIBERNATED, SANDBOX_ERROR, SANDBOX_ERROR),
    FOUND(SANDBOX_RUNNING, SANDBOX_FROZEN, SANDBOX_HIBERNATED, SANDBOX_ERROR, SANDBOX_ERROR),
    FOUND(SANDBOX_RUNNING, SANDBOX_FROZEN, SANDBOX_STOPPED, SANDBOX_ERROR, SANDBOX_ERROR),
    FOUND(SANDBOX_ERROR, SANDBOX_ERROR, SANDBOX_ERROR, SANDBOX_ERROR, SANDBOX_ERROR),
};

static void recover_one(size_t row, enum run_state state)
{
    struct world *world = world_new(NULL);
    struct id id = leave_one(world, lasting[row]);
    int resumed = world->asked_resume;
    struct sandbox *sandbox;

    world_make_provider(world);
    if (state != RUN_STATE_ABSENT)
        provider_fake_add(world->provider, &id, state, NULL);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_non_null(sandbox);
    if (sandbox->status != after[row][state])
        fail_msg("a row that says %s, a provider in state %u: %s",
                 sandbox_status_text(lasting[row]), state, sandbox_status_text(sandbox->status));
    /* Whatever a daemon that died told its agent. */
    assert_int_equal(world->asked_resume - resumed, sandbox->status == SANDBOX_RUNNING);
    world_pass(world, 1);
    expect_row(world, &id, sandbox_status_text(sandbox->status));
    do_ask(world, sandbox_destroy, sandbox);
    assert_int_equal(world_provider(world).count, 0);
    world_free(world);
}

static void the_table_is_what_happens(void **state)
{
    static const enum run_state found[] = {RUN_STATE_RUNNING, RUN_STATE_FROZEN, RUN_STATE_STOPPED,
                                           RUN_STATE_BROKEN, RUN_STATE_ABSENT};

    (void) state;
    for (size_t row = 0; row < ARRAY_COUNT(lasting); row++)
        for (size_t i = 0; i < ARRAY_COUNT(found); i++)
            recover_one(row, found[i]);
}

static void one_that_is_stopping_is_as_good_as_stopped(void **state)
{
    (void) state;
    for (int status = 0; status < SANDBOX_STATUS_COUNT; status++)
        assert_int_equal(recovery_action((enum sandbox_status) status, RUN_STATE_STOPPING),
                         recovery_action((enum sandbox_status) status, RUN_STATE_STOPPED));
}

static void what_has_no_row_is_taken_down(void **state)
{
    struct world *world = world_new(NULL);
    struct id kept = leave_one(world, SANDBOX_RUNNING), stranger = id_new();

    (void) state;
    world_make_provider(world);
    provider_fake_add(world->provider, &kept, RUN_STATE_RUNNING, NULL);
    provider_fake_add(world->provider, &stranger, RUN_STATE_RUNNING, NULL);
    world_open(world);
    TURN_UNTIL(&world->loop, world_provider(world).count == 1);
    assert_int_equal(world_state(world, &kept), RUN_STATE_RUNNING);
    expect_events(world, &kept, "sandbox.created");
    world_free(world);
}

static void what_is_found_keeps_its_name_owner_and_spec(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox;
    struct told told;
    struct id id;

    (void) state;
    world_open(world);
    spec.name = (char *) "demo";
    spec.keep_alive = true;
    told = ask_create(world, &world->caller, &spec);
    id = told.sandbox->id;
    world_close(world);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, "demo", NULL);
    assert_non_null(sandbox);
    assert_string_equal(sandbox->id.text, id.text);
    assert_true(sandbox->spec.keep_alive);
    assert_string_equal(sandbox->owner.text, world->caller.owner.text);
    told = ask_create(world, &world->caller, &spec);
    assert_false(told.is_new);
    use_once(world, sandbox);
    world_free(world);
}

static void how_it_ended_meanwhile_is_told(void **state)
{
    struct world *world = world_new(NULL);
    struct ending ending = {.kind = ENDED_STATUS, .value = 3};
    struct id id = leave_one(world, SANDBOX_RUNNING);
    struct sandbox *sandbox;

    (void) state;
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_STOPPED, &ending);
    world_open(world);
    world_pass(world, 2);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_string_equal(sandbox->reason, "ended with status 3");
    assert_string_equal(world_row(world, &id).reason, "ended with status 3");
    use_once(world, sandbox);
    world_free(world);
}

static void an_end_that_nobody_tells_is_unknown(void **state)
{
    struct world *world = world_new(NULL);
    struct id id = leave_one(world, SANDBOX_RUNNING);
    struct sandbox *sandbox;

    (void) state;
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_STOPPED, NULL);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_string_equal(sandbox->reason, "ended, nobody knows how");
    world_pass(world, 1);
    expect_events(world, &id, "sandbox.created sandbox.stopped");
    world_free(world);
}

static void a_stop_that_was_asked_for_stays_one(void **state)
{
    struct world *world = world_new(NULL);
    struct id id = leave_one(world, SANDBOX_STOPPED);
    struct told_use use;

    (void) state;
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_STOPPED, NULL);
    world_open(world);
    use_begin(world, sandbox_find(world->domain, &world->caller, id.text, NULL), &use, 0);
    assert_int_equal(use.failure.code, ERR_CONFLICT);
    world_free(world);
}

static void sessions_survive_a_restart(void **state)
{
    struct world *world = world_new(NULL);
    struct id id;

    (void) state;
    world->saved = "{\"sessions\":[7]}";
    id = leave_one(world, SANDBOX_HIBERNATED);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_STOPPED, NULL);
    world_open(world);
    use_once(world, sandbox_find(world->domain, &world->caller, id.text, NULL));
    assert_string_equal(world->restored, "{\"sessions\":[7]}");
    world_free(world);
}

/* Left in the middle of a sleep that ends processes, when the row has its sessions. */
static struct id leave_half_asleep(struct world *world, bool is_frozen)
{
    struct told told = {.times = 0};
    struct sandbox *sandbox;
    struct id id;

    world->saved = "{\"sessions\":[7]}";
    world->fake.missing = is_frozen ? 0 : PROVIDER_FREEZE;
    world_open(world);
    sandbox = world_create(world, NULL);
    id = sandbox->id;
    if (is_frozen)
        do_ask(world, sandbox_sleep, sandbox);
    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, true);
    if (is_frozen)
        wish_begin_anyway(wish_make(world->domain, NULL, sandbox, SANDBOX_ACTION_SLEEP,
                                    sandbox_act_hibernate, NULL, NULL));
    else
        sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &told);
    TURN_UNTIL(&world->loop, strcmp(world_row(world, &id).inside, world->saved) == 0);
    expect_row(world, &id, is_frozen ? "frozen" : "running");
    world_close(world);
    world->fake.missing = 0;
    world_make_provider(world);
    return id;
}

static void sessions_survive_a_sleep_that_is_cut_short(void **state)
{
    (void) state;
    for (int is_frozen = 0; is_frozen < 2; is_frozen++) {
        struct world *world = world_new(NULL);
        struct id id = leave_half_asleep(world, is_frozen);
        struct sandbox *sandbox;

        provider_fake_add(world->provider, &id, RUN_STATE_STOPPED, NULL);
        world_open(world);
        sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
        assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
        use_once(world, sandbox);
        assert_string_equal(world->restored, "{\"sessions\":[7]}");
        world_free(world);
    }
}

/* They are in its agent, and those of the row must not come back some time later. */
static void one_that_goes_on_needs_no_saved_sessions(void **state)
{
    (void) state;
    for (int is_frozen = 0; is_frozen < 2; is_frozen++) {
        struct world *world = world_new(NULL);
        struct id id = leave_half_asleep(world, is_frozen);
        struct sandbox *sandbox;

        provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
        world_open(world);
        sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
        assert_int_equal(sandbox->status, SANDBOX_RUNNING);
        assert_null(sandbox->inside);
        assert_null(world->restored);
        world_pass(world, 2);
        assert_string_equal(world_row(world, &id).inside, "(null)");
        world_free(world);
    }
}

static void sessions_survive_a_wake_that_is_cut_short(void **state)
{
    struct world *world = world_new(NULL);
    struct id id;

    (void) state;
    world->saved = "{\"sessions\":[7]}";
    id = leave_one(world, SANDBOX_HIBERNATED);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    world_open(world);
    world_wait(world);
    assert_string_equal(world->restored, "{\"sessions\":[7]}");
    world_pass(world, 2);
    assert_string_equal(world_row(world, &id).inside, "(null)");
    world_free(world);
}

static void the_age_of_a_run_goes_on(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox;
    struct id id;

    (void) state;
    world_open(world);
    spec.sleep_after_ms = 0;
    spec.max_runtime_ms = 60000;
    id = ask_create(world, &world->caller, &spec).sandbox->id;
    world_close(world);
    clock_manual_advance(&world->clock, 50000);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    world_pass(world, 9);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
    world_free(world);
}

static void without_a_provider_nobody_knows(void **state)
{
    struct world *world = world_new(NULL);
    struct id id = leave_one(world, SANDBOX_RUNNING);
    struct sandbox *sandbox;

    (void) state;
    world_open_as_is(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_int_equal(sandbox->status, SANDBOX_UNKNOWN);
    world_pass(world, 2);
    expect_row(world, &id, "running"); /* what is not known is not written down */
    world_free(world);
}

/* --- lines ------------------------------------------------------------------------------------ */

struct lines {
    int recovered;
    struct text all;
};

static void on_line(void *data, const char *message, const char *line, size_t length)
{
    struct lines *lines = data;

    lines->recovered += strcmp(message, "sandbox recovered") == 0;
    text_append_bytes(&lines->all, line, length);
}

static void a_line_per_sandbox_says_what_was_found_and_done(void **state)
{
    struct world *world = world_new(NULL);
    struct lines lines = {.all = TEXT_INIT(64 * 1024)};
    AUTO(close) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    AUTO(log) struct log *log = log_new(null, LOG_FORMAT_JSON, LOG_LEVEL_INFO, &world->clock.clock);
    struct id gone, stranger = id_new();

    (void) state;
    (void) leave_one(world, SANDBOX_RUNNING);
    gone = leave_one(world, SANDBOX_RUNNING);
    log_listen(log, on_line, &lines);
    world->options.log = log;
    world_make_provider(world);
    provider_fake_add(world->provider, &stranger, RUN_STATE_FROZEN, NULL);
    world_open(world);
    assert_int_equal(lines.recovered, 3);
    assert_non_null(strstr(lines.all.data, gone.text));
    assert_non_null(strstr(lines.all.data, stranger.text));
    assert_non_null(strstr(lines.all.data, "it is gone"));
    assert_non_null(strstr(lines.all.data, "taken down"));
    world_free(world);
    text_done(&lines.all);
}

static void many_rows_are_read(void **state)
{
    struct world *world = world_new(NULL);
    size_t counts[SANDBOX_STATUS_COUNT];
    static struct told told[1203];
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    size_t left = ARRAY_COUNT(told);

    (void) state;
    world_open(world);
    memset(told, 0, sizeof(told));
    for (size_t i = 0; i < ARRAY_COUNT(told); i++)
        sandbox_create(world->domain, &world->caller, &spec, on_created, &told[i]);
    for (; left; left--)
        TURN_UNTIL(&world->loop, told[left - 1].times);
    world_pass(world, NEW_DISKS_EVERY_S);
    for (left = ARRAY_COUNT(told); left; left--)
        TURN_UNTIL(&world->loop, !told[left - 1].sandbox->is_disk_new);
    world_wait(world);
    world_close(world);
    world_open(world); /* the provider has none: all are lost */
    sandbox_count(world->domain, &world->caller.owner, counts);
    assert_int_equal(counts[SANDBOX_ERROR], ARRAY_COUNT(told));
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_what_happens),
        cmocka_unit_test(one_that_is_stopping_is_as_good_as_stopped),
        cmocka_unit_test(what_has_no_row_is_taken_down),
        cmocka_unit_test(what_is_found_keeps_its_name_owner_and_spec),
        cmocka_unit_test(how_it_ended_meanwhile_is_told),
        cmocka_unit_test(an_end_that_nobody_tells_is_unknown),
        cmocka_unit_test(a_stop_that_was_asked_for_stays_one),
        cmocka_unit_test(sessions_survive_a_restart),
        cmocka_unit_test(sessions_survive_a_sleep_that_is_cut_short),
        cmocka_unit_test(one_that_goes_on_needs_no_saved_sessions),
        cmocka_unit_test(sessions_survive_a_wake_that_is_cut_short),
        cmocka_unit_test(the_age_of_a_run_goes_on),
        cmocka_unit_test(without_a_provider_nobody_knows),
        cmocka_unit_test(a_line_per_sandbox_says_what_was_found_and_done),
        cmocka_unit_test(many_rows_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
