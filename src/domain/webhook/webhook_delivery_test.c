#include "domain/webhook/webhook_testing.h"

/* --- from the log to the receiver ------------------------------------------------------------ */

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

/* --- nothing lost, nothing doubled ----------------------------------------------------------- */

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

/* --- retention ------------------------------------------------------------------------------- */

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

/* Two in each millisecond: a page never ends between them, and the pages together have all. */
static void the_log_has_pages(void **state)
{
    struct world *world = *state;
    struct webhook *webhook = make(world, "test.one");
    struct told_log log;

    for (int i = 1; i <= 6; i++) {
        make_event(world, i);
        TURN_UNTIL(&world->loop, read_log(world, webhook).count == (size_t) i);
        if (i % 2 == 0)
            clock_manual_advance(&world->clock, 1);
    }
    log = read_log_page(world, webhook, INT64_MAX, 3);
    assert_int_equal(log.count, 2);
    log = read_log_page(world, webhook, log.next_before_ms, 3);
    assert_int_equal(log.count, 2);
    log = read_log_page(world, webhook, log.next_before_ms, 3);
    assert_int_equal(log.count, 2);
    assert_int_equal(log.next_before_ms, 0);
    assert_int_equal(read_log_page(world, webhook, INT64_MAX, 7).next_before_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_event_becomes_one_delivery),
        WORLD_TEST(a_webhook_is_told_only_what_it_wants),
        WORLD_TEST(deliveries_go_one_at_a_time_in_the_order_of_the_log),
        WORLD_TEST(one_that_failed_is_tried_later_and_others_pass_it),
        WORLD_TEST(after_the_last_attempt_it_has_failed),
        WORLD_TEST(the_log_has_pages),
        WORLD_TEST(what_the_sender_says_is_kept_short_and_printable),
        WORLD_TEST(what_waits_is_there_after_a_restart_in_its_order),
        WORLD_TEST(events_from_while_nobody_followed_are_told_later),
        WORLD_TEST(a_later_event_does_not_hide_one_that_was_refused),
        cmocka_unit_test(one_far_behind_goes_on_with_what_is_left),
        WORLD_TEST(a_clock_that_was_wrong_does_not_hold_a_delivery_for_ever),
        WORLD_TEST(what_the_daemon_gave_up_is_no_attempt),
        WORLD_TEST(an_owner_cannot_keep_all_senders_busy),
        cmocka_unit_test(old_deliveries_go_and_those_that_wait_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
