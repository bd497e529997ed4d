#include "domain/domain_testing.h"
#include "domain/webhook.h"
#include "domain/webhook_internal.h"

/* --- calls ----------------------------------------------------------------------------------- */

struct told_webhook {
    int times;
    bool failed;
    struct error failure;
    struct webhook *webhook;
};

static void on_webhook(void *context, const struct error *failure, struct webhook *webhook)
{
    struct told_webhook *told = context;

    told->times++;
    told->failed = failure != NULL;
    told->webhook = webhook;
    if (failure)
        told->failure = *failure;
}

static struct told_webhook ask_webhook(struct world *world, const struct webhook_spec *spec)
{
    struct told_webhook told = {.times = 0};

    webhook_create(world->domain, &world->caller, spec, on_webhook, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

/* One that follows the log already. `type` NULL: it wants all. */
static struct webhook *make(struct world *world, const char *type)
{
    struct webhook_spec spec = {
        .url = "http://there.example/hook", .types = &type, .type_count = type != NULL};
    struct told_webhook told = ask_webhook(world, &spec);

    if (told.failed)
        fail_msg("%s", told.failure.message);
    world_pass(world, 1);
    return told.webhook;
}

static struct told_webhook ask_enable(struct world *world, struct webhook *webhook, bool is_enabled)
{
    struct told_webhook told = {.times = 0};

    webhook_enable(world->domain, &world->caller, webhook, is_enabled, on_webhook, &told);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static void remove_webhook(struct world *world, struct webhook *webhook)
{
    struct told_webhook told = {.times = 0};

    webhook_delete(world->domain, &world->caller, webhook, on_webhook, &told);
    TURN_UNTIL(&world->loop, told.times);
    assert_false(told.failed);
}

/* Events of the owner's, whose names are numbers. */
static void make_events(struct world *world, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        struct store_transaction *change = store_begin(world->store);
        char data[64];

        (void) snprintf(data, sizeof(data), "{\"number\":%d}", i);
        event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
                  data);
        store_commit(change, NULL, NULL);
    }
}

static void tell_one(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    struct world *world = context;

    assert_null(failure);
    event_kept(world->domain, receipt);
}

/* The same, and followers are told. */
static void make_event(struct world *world, int number)
{
    struct store_transaction *change = store_begin(world->store);
    char data[64];

    (void) snprintf(data, sizeof(data), "{\"number\":%d}", number);
    event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
              data);
    store_commit(change, tell_one, world);
    world_wait(world);
}

static int number_of(const struct webhook_delivery *delivery)
{
    const char *at = strstr(delivery->body, "\"number\":");

    assert_non_null(at);
    return (int) strtol(at + 9, NULL, 10);
}

/* Take the next one, which must be this, and say how it went. */
static void expect_next(struct world *world, int number, int status)
{
    struct webhook_delivery *delivery = webhook_take(world->domain);

    if (!delivery)
        fail_msg("nothing is due where %d should be", number);
    assert_int_equal(number_of(delivery), number);
    webhook_sent(world->domain, delivery, status, "as a test said");
    world_wait(world);
}

/* --- the log of deliveries ------------------------------------------------------------------- */

struct told_log {
    int times;
    size_t count;
    struct {
        char state[16], detail[WEBHOOK_DETAIL_MAX + 1];
        int64_t attempts, status;
    } entries[8];
};

static void on_log(void *context, const struct error *failure,
                   const struct webhook_log_entry *entries, size_t count)
{
    struct told_log *log = context;

    assert_null(failure);
    log->times++;
    log->count = count;
    for (size_t i = 0; i < count && i < ARRAY_COUNT(log->entries); i++) {
        (void) snprintf(log->entries[i].state, sizeof(log->entries[i].state), "%s",
                        entries[i].state);
        (void) snprintf(log->entries[i].detail, sizeof(log->entries[i].detail), "%s",
                        entries[i].detail);
        log->entries[i].attempts = entries[i].attempts;
        log->entries[i].status = entries[i].status;
    }
}

static struct told_log read_log(struct world *world, struct webhook *webhook)
{
    struct told_log log = {.times = 0};

    webhook_log(world->domain, webhook, 1000, on_log, &log);
    TURN_UNTIL(&world->loop, log.times);
    return log;
}

/* --- from the log to the receiver ------------------------------------------------------------- */

static void an_event_becomes_one_delivery(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, NULL);
    struct sandbox *sandbox = world_create(world, "demo");
    struct webhook_delivery *delivery;

    world_wait(world);
    delivery = webhook_take(world->domain);
    assert_non_null(delivery);
    assert_string_equal(delivery->type, "sandbox.created");
    assert_non_null(strstr(delivery->body, "\"event\":\"sandbox.created\""));
    assert_non_null(strstr(delivery->body, sandbox->id.text));
    assert_non_null(strstr(delivery->body, "\"timestamp\":\"20"));
    assert_ptr_equal(delivery->webhook, webhook);
    webhook_sent(world->domain, delivery, 204, "answered with 204");
    world_pass(world, 60);
    assert_null(webhook_take(world->domain));
    assert_int_equal(webhook->waiting_count, 0);
}

static void a_webhook_is_told_only_what_it_wants(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "sandbox.del*");
    struct sandbox *sandbox = world_create(world, "demo");

    make_event(world, 1);
    assert_int_equal(webhook->waiting_count, 0);
    do_ask(world, sandbox_destroy, sandbox);
    world_wait(world);
    assert_int_equal(webhook->waiting_count, 1);
}

static void deliveries_go_one_at_a_time_in_the_order_of_the_log(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct webhook_delivery *first;

    make_events(world, 1, 200);
    make_event(world, 201);
    TURN_UNTIL(&world->loop, webhook->is_full);
    assert_int_equal(webhook->waiting_count, WEBHOOK_WAITING_MAX);
    first = webhook_take(world->domain);
    assert_int_equal(number_of(first), 1);
    assert_null(webhook_take(world->domain));
    webhook_sent(world->domain, first, 200, "");
    for (int i = 2; i <= 201; i++) {
        TURN_UNTIL(&world->loop, !list_is_empty(&webhook->waiting));
        TURN_UNTIL(
            &world->loop,
            CONTAINER_OF(list_first(&webhook->waiting), struct webhook_delivery, link)->is_kept);
        expect_next(world, i, 200);
    }
    assert_null(webhook_take(world->domain));
}

static void one_that_failed_is_tried_later_and_others_pass_it(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct told_log log;

    make_event(world, 1);
    make_event(world, 2);
    expect_next(world, 1, 500);
    expect_next(world, 2, 200);
    assert_null(webhook_take(world->domain));
    world_pass(world, 9);
    assert_null(webhook_take(world->domain));
    world_pass(world, 1);
    expect_next(world, 1, 0);
    world_pass(world, 30);
    expect_next(world, 1, 200);
    log = read_log(world, webhook);
    assert_int_equal(log.count, 2);
    assert_string_equal(log.entries[1].state, "delivered");
    assert_string_equal(log.entries[1].detail, "as a test said");
}

static void after_the_last_attempt_it_has_failed(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct told_log log;

    make_event(world, 1);
    for (unsigned int i = 1; i <= WEBHOOK_ATTEMPTS_MAX; i++) {
        expect_next(world, 1, 503);
        clock_manual_advance(&world->clock, (uint64_t) webhook_backoff_ms(i));
    }
    assert_null(webhook_take(world->domain));
    log = read_log(world, webhook);
    assert_int_equal(log.count, 1);
    assert_string_equal(log.entries[0].state, "failed");
    assert_int_equal(log.entries[0].attempts, WEBHOOK_ATTEMPTS_MAX);
    assert_int_equal(log.entries[0].status, 503);
}

static void what_the_sender_says_is_kept_short_and_printable(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    char detail[WEBHOOK_DETAIL_MAX + 50];
    struct webhook_delivery *delivery;
    struct told_log log;

    memset(detail, 'x', sizeof(detail));
    memcpy(detail, "caf\xc3\xa9\n", 6);
    memcpy(detail + WEBHOOK_DETAIL_MAX - 1, "\xc3\xa9", 2);
    detail[sizeof(detail) - 1] = '\0';
    make_event(world, 1);
    delivery = webhook_take(world->domain);
    webhook_sent(world->domain, delivery, 500, detail);
    log = read_log(world, webhook);
    assert_int_equal(log.entries[0].attempts, 1);
    assert_int_equal(strlen(log.entries[0].detail), WEBHOOK_DETAIL_MAX);
    assert_memory_equal(log.entries[0].detail, "caf???x", 7);
}

/* --- nothing lost, nothing doubled ------------------------------------------------------------ */

static void what_waits_is_there_after_a_restart_in_its_order(void **state)
{
    struct world *world = *state;

    (void) make(world, "test.one");
    for (int i = 1; i <= 12; i++)
        make_event(world, i);
    expect_next(world, 1, 200);
    assert_non_null(webhook_take(world->domain)); /* under way when the daemon dies */
    world_close(world);
    world_open(world);
    world_pass(world, 6);
    for (int i = 2; i <= 12; i++)
        expect_next(world, i, 200);
    assert_null(webhook_take(world->domain));
    world_close(world);
    world_open(world);
    world_pass(world, 6);
    assert_null(webhook_take(world->domain));
}

static void events_from_while_nobody_followed_are_told_later(void **state)
{
    struct world *world = *state;

    (void) make(world, "test.one");
    make_event(world, 1);
    expect_next(world, 1, 200);
    make_events(world, 2, 3); /* kept, and then the daemon dies before it looks */
    world_close(world);
    world_open(world);
    world_pass(world, 2);
    for (int i = 2; i <= 4; i++)
        expect_next(world, i, 200);
    assert_null(webhook_take(world->domain));
}

/* The first batch fails, the second would be kept: its cursor must not hide what was lost. */
static void a_later_event_does_not_hide_one_that_was_refused(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct store_transaction *change = store_begin(world->store);

    event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
              "{\"number\":1}");
    store_commit(change, tell_one, world);
    while (!webhook->batch)
        (void) uv_run(&world->loop.uv, UV_RUN_ONCE);
    world->refuse_commit = 1;
    domain_turn(world->domain); /* asks for the batch */
    TURN_UNTIL(&world->loop, !webhook->is_keeping);
    assert_int_equal(world->refuse_commit, 0);
    assert_int_equal(webhook->waiting_count, 0);
    make_event(world, 2);
    make_event(world, 3);
    world_pass(world, 7);
    for (int i = 1; i <= 3; i++)
        expect_next(world, i, 200);
    assert_null(webhook_take(world->domain));
    world_close(world);
    world_open(world);
    world_pass(world, 2);
    assert_null(webhook_take(world->domain));
}

static void one_far_behind_goes_on_with_what_is_left(void **state)
{
    struct world *world = world_new(NULL);
    struct webhook *webhook;

    world->options.event_retention_ms = 3600 * 1000;
    world_open(world);
    *state = world;
    webhook = make(world, "test.one");
    make_event(world, 1);
    expect_next(world, 1, 200);
    assert_false(ask_enable(world, webhook, false).failed);
    make_events(world, 2, 3);
    world_wait(world);
    clock_manual_advance(&world->clock, 3600 * 1000 + 1000);
    make_events(world, 5, 2);
    world_pass(world, 62);
    assert_false(ask_enable(world, webhook, true).failed);
    world_pass(world, 2);
    expect_next(world, 5, 200);
    expect_next(world, 6, 200);
    assert_null(webhook_take(world->domain));
    world_free(world);
}

static void a_clock_that_was_wrong_does_not_hold_a_delivery_for_ever(void **state)
{
    struct world *world = *state;
    struct webhook_delivery *delivery;

    (void) make(world, "test.one");
    clock_manual_advance(&world->clock, UINT64_C(3650) * 24 * 3600 * 1000);
    make_event(world, 1);
    expect_next(world, 1, 500);
    world->clock.wall_ms = WORLD_START_MS;
    delivery = webhook_take(world->domain);
    assert_non_null(delivery);
    webhook_sent(world->domain, delivery, 200, "");
}

/* --- stopped, deleted, given back ------------------------------------------------------------- */

static void one_that_is_stopped_goes_on_from_there(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");

    make_event(world, 1);
    assert_false(ask_enable(world, webhook, false).failed);
    make_event(world, 2);
    world_pass(world, 10);
    assert_null(webhook_take(world->domain));
    assert_false(ask_enable(world, webhook, true).failed);
    world_pass(world, 2);
    expect_next(world, 1, 200);
    expect_next(world, 2, 200);
    assert_null(webhook_take(world->domain));
}

static void a_change_that_is_not_kept_changes_nothing(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");

    world->refuse_commit = 1;
    assert_true(ask_enable(world, webhook, true).failed);
    assert_int_equal(webhook->disabled_ms, 0);
    world->refuse_commit = 1;
    assert_true(ask_enable(world, webhook, false).failed);
    assert_int_equal(webhook->disabled_ms, 0);
    make_event(world, 1);
    expect_next(world, 1, 200);
}

/* Stopped while a batch is on its way: its row must not forget that batch's cursor. */
static void stopping_one_while_it_keeps_something_doubles_nothing(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct webhook *again;
    struct store_transaction *change = store_begin(world->store);
    struct told_webhook told = {.times = 0};
    struct error err;
    char id[ID_SIZE];

    (void) snprintf(id, sizeof(id), "%s", webhook->id.text);
    event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
              "{\"number\":1}");
    store_commit(change, tell_one, world);
    while (!webhook->batch)
        (void) uv_run(&world->loop.uv, UV_RUN_ONCE);
    domain_turn(world->domain); /* as the loop would: the batch is asked for */
    assert_true(webhook->is_keeping);
    webhook_enable(world->domain, &world->caller, webhook, false, on_webhook, &told);
    TURN_UNTIL(&world->loop, told.times);
    world_wait(world);
    world_close(world);
    world_open(world);
    again = webhook_find(world->domain, &world->caller, id, &err);
    assert_non_null(again);
    assert_false(ask_enable(world, again, true).failed);
    world_pass(world, 2);
    expect_next(world, 1, 200);
    assert_null(webhook_take(world->domain));
}

static void one_that_is_deleted_while_it_is_sent_is_gone_afterwards(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct webhook_delivery *delivery;
    struct error err;
    char id[ID_SIZE];

    (void) snprintf(id, sizeof(id), "%s", webhook->id.text);
    make_event(world, 1);
    make_event(world, 2);
    delivery = webhook_take(world->domain);
    remove_webhook(world, webhook);
    assert_null(webhook_find(world->domain, &world->caller, id, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_non_null(delivery->webhook->url); /* still there for its sender */
    webhook_sent(world->domain, delivery, 200, "");
    assert_null(webhook_take(world->domain));
    world_close(world);
    world_open(world);
    world_pass(world, 2);
    assert_null(webhook_take(world->domain));
}

/* In every place of the way: deleted while events come. */
static void one_may_be_deleted_at_any_moment(void **state)
{
    struct world *world = *state;

    for (int turns = 0; turns < 12; turns++) {
        struct webhook *webhook = make(world, "test.one");
        struct store_transaction *change = store_begin(world->store);

        event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
                  "{\"number\":1}");
        store_commit(change, tell_one, world);
        for (int i = 0; i < turns; i++)
            (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
        remove_webhook(world, webhook);
        world_wait(world);
        assert_null(webhook_take(world->domain));
        assert_true(list_is_empty(&world->domain->webhooks->all));
    }
}

static void what_the_daemon_gave_up_is_no_attempt(void **state)
{
    struct world *world = *state;
    struct webhook_delivery *delivery;

    (void) make(world, "test.one");
    make_event(world, 1);
    webhook_give_back(webhook_take(world->domain));
    delivery = webhook_take(world->domain);
    assert_non_null(delivery);
    assert_int_equal(delivery->attempts, 0);
    webhook_sent(world->domain, delivery, 200, "");
}

static void an_owner_cannot_keep_all_senders_busy(void **state)
{
    struct world *world = *state;
    struct webhook_delivery *taken[WEBHOOK_SENDING_PER_OWNER];

    for (size_t i = 0; i < ARRAY_COUNT(taken) + 2; i++)
        (void) make(world, "test.one");
    make_event(world, 1);
    for (size_t i = 0; i < ARRAY_COUNT(taken); i++) {
        taken[i] = webhook_take(world->domain);
        assert_non_null(taken[i]);
    }
    assert_null(webhook_take(world->domain));
    for (size_t i = 0; i < ARRAY_COUNT(taken); i++)
        webhook_sent(world->domain, taken[i], 200, "");
    expect_next(world, 1, 200);
    expect_next(world, 1, 200);
    assert_null(webhook_take(world->domain));
}

/* --- whose they are, and what they may be ------------------------------------------------------
 */

static void another_owner_is_not_told_and_sees_none(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, NULL);
    struct caller eve = {.scope = CALLER_WRITE, .owner = id_new()};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct error err;
    struct told told;

    told = ask_create(world, &eve, &spec);
    expect_ok(&told);
    world_pass(world, 2);
    assert_null(webhook_take(world->domain));
    assert_null(webhook_find(world->domain, &eve, webhook->id.text, &err));
    eve.owner = world->caller.owner;
    eve.scope = CALLER_SANDBOX;
    assert_null(webhook_find(world->domain, &eve, webhook->id.text, &err));
    eve.scope = CALLER_READ;
    assert_ptr_equal(webhook_find(world->domain, &eve, webhook->id.text, &err), webhook);
}

static void a_bad_wish_is_refused_with_its_field(void **state)
{
    struct world *world = *state;
    static const char *const star = "sand*box", *const upper = "Sandbox.created";
    static const struct {
        struct webhook_spec spec;
        const char *field;
    } cases[] = {
        {{.url = NULL}, "'url'"},
        {{.url = "ftp://there"}, "'url'"},
        {{.url = "http://"}, "'url'"},
        {{.url = "http:///path"}, "'url'"},
        {{.url = "http://there/a b"}, "'url'"},
        {{.url = "http://there/\r\nX: y"}, "'url'"},
        {{.url = "http://me:secret@there/"}, "'url'"},
        {{.url = "http://there", .types = &star, .type_count = 1}, "'events[0]'"},
        {{.url = "http://there", .types = &upper, .type_count = 1}, "'events[0]'"},
        {{.url = "http://there", .secret = "short"}, "'secret'"},
        {{.url = "http://there", .bearer = "a\r\nX: y"}, "'bearer'"},
        {{.url = "http://there", .bearer = "caf\xc3\xa9"}, "'bearer'"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct told_webhook told = ask_webhook(world, &cases[i].spec);

        assert_true(told.failed);
        assert_int_equal(told.failure.code, ERR_INVALID);
        assert_non_null(strstr(told.failure.message, cases[i].field));
        assert_null(strstr(told.failure.message, "secret@"));
    }
}

static void one_that_was_not_kept_is_not_there(void **state)
{
    struct world *world = *state;
    struct webhook_spec spec = {.url = "http://there.example/"};
    struct told_webhook told;

    world->refuse_commit = 1;
    told = ask_webhook(world, &spec);
    assert_true(told.failed);
    assert_true(list_is_empty(&world->domain->webhooks->all));
    world_close(world);
    world_open(world);
    assert_true(list_is_empty(&world->domain->webhooks->all));
}

static void there_is_a_limit_of_webhooks(void **state)
{
    struct world *world = *state;
    struct webhook_spec spec = {.url = "http://there.example/"};
    struct told_webhook told;

    for (int i = 0; i < WEBHOOKS_PER_OWNER; i++)
        assert_false(ask_webhook(world, &spec).failed);
    told = ask_webhook(world, &spec);
    assert_true(told.failed);
    assert_int_equal(told.failure.code, ERR_QUOTA);
}

static void secrets_are_random_and_long(void **state)
{
    struct world *world = *state;
    struct webhook *one = make(world, NULL), *two = make(world, NULL);

    assert_int_equal(strlen(one->secret), 64);
    assert_string_not_equal(one->secret, two->secret);
}

/* --- retention ---------------------------------------------------------------------------------
 */

static void old_deliveries_go_and_those_that_wait_stay(void **state)
{
    struct world *world = world_new(NULL);
    struct webhook *webhook;

    world->options.event_retention_ms = 24 * 3600 * 1000;
    world_open(world);
    *state = world;
    webhook = make(world, "test.one");
    for (int i = 1; i <= 3; i++)
        make_event(world, i);
    expect_next(world, 1, 200);
    expect_next(world, 2, 200);
    assert_int_equal(read_log(world, webhook).count, 3);
    clock_manual_advance(&world->clock, 25 * 3600 * 1000);
    world_pass(world, 3);
    TURN_UNTIL(&world->loop, !world->domain->webhooks->old.is_busy);
    assert_int_equal(read_log(world, webhook).count, 1);
    expect_next(world, 3, 200);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_event_becomes_one_delivery),
        WORLD_TEST(a_webhook_is_told_only_what_it_wants),
        WORLD_TEST(deliveries_go_one_at_a_time_in_the_order_of_the_log),
        WORLD_TEST(one_that_failed_is_tried_later_and_others_pass_it),
        WORLD_TEST(after_the_last_attempt_it_has_failed),
        WORLD_TEST(what_the_sender_says_is_kept_short_and_printable),
        WORLD_TEST(what_waits_is_there_after_a_restart_in_its_order),
        WORLD_TEST(events_from_while_nobody_followed_are_told_later),
        WORLD_TEST(a_later_event_does_not_hide_one_that_was_refused),
        cmocka_unit_test(one_far_behind_goes_on_with_what_is_left),
        WORLD_TEST(a_clock_that_was_wrong_does_not_hold_a_delivery_for_ever),
        WORLD_TEST(one_that_is_stopped_goes_on_from_there),
        WORLD_TEST(a_change_that_is_not_kept_changes_nothing),
        WORLD_TEST(stopping_one_while_it_keeps_something_doubles_nothing),
        WORLD_TEST(one_that_is_deleted_while_it_is_sent_is_gone_afterwards),
        WORLD_TEST(one_may_be_deleted_at_any_moment),
        WORLD_TEST(what_the_daemon_gave_up_is_no_attempt),
        WORLD_TEST(an_owner_cannot_keep_all_senders_busy),
        WORLD_TEST(another_owner_is_not_told_and_sees_none),
        WORLD_TEST(a_bad_wish_is_refused_with_its_field),
        WORLD_TEST(one_that_was_not_kept_is_not_there),
        WORLD_TEST(there_is_a_limit_of_webhooks),
        WORLD_TEST(secrets_are_random_and_long),
        cmocka_unit_test(old_deliveries_go_and_those_that_wait_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
