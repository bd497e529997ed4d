#include "domain/webhook/webhook_testing.h"

/* --- stopped and deleted --------------------------------------------------------------------- */

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

/* --- whose they are, and what they may be ---------------------------------------------------- */

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

    for (uint64_t i = 0; i < share_rows[SHARE_WEBHOOKS].of_one; i++)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(one_that_is_stopped_goes_on_from_there),
        WORLD_TEST(a_change_that_is_not_kept_changes_nothing),
        WORLD_TEST(stopping_one_while_it_keeps_something_doubles_nothing),
        WORLD_TEST(one_that_is_deleted_while_it_is_sent_is_gone_afterwards),
        WORLD_TEST(one_may_be_deleted_at_any_moment),
        WORLD_TEST(another_owner_is_not_told_and_sees_none),
        WORLD_TEST(a_bad_wish_is_refused_with_its_field),
        WORLD_TEST(one_that_was_not_kept_is_not_there),
        WORLD_TEST(there_is_a_limit_of_webhooks),
        WORLD_TEST(secrets_are_random_and_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
