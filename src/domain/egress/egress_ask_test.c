/* Ways out, questions, budgets and rows, with a broker that only remembers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/egress/egress_testing.h"
#include "domain/identity/owner.h"

static struct fake_broker fake;

static const char plain_policy[] = "{\"default\":\"deny\",\"rules\":[],\"models\":{\"anthropic\":"
                                   "{\"credential\":\"key\",\"api\":\"anthropic\"}},\"budget\":{}}";

static int egress_setup(void **state)
{
    struct world *world = world_new(NULL);

    fake_broker_init(&fake, world);
    world_open(world);
    (void) put_credential(world, "key", "{\"kind\":\"anthropic\",\"value\":\"sk-secret\"}");
    *state = world;
    return 0;
}

static struct sandbox *make_with(struct world *world, const char *name, const char *policy,
                                 const char *task)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = mem_copy_text(name);
    spec.egress = mem_copy_text(policy);
    if (task)
        sandbox_pairs_set(&spec.labels, "task", task);
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    return told.sandbox;
}

static struct sandbox *make(struct world *world, const char *name)
{
    return make_with(world, name, plain_policy, NULL);
}

/* --- ways out -------------------------------------------------------------------------------- */

static void a_way_out_is_open_before_anything_runs_and_closed_with_the_processes(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "one");

    assert_int_equal(fake.opened, 1);
    assert_true(fake.outlets[0].is_open);
    assert_non_null(strstr(world->environment, "http://127.66.0.1:8790/anthropic"));
    assert_non_null(strstr(world->environment, "burrow-anthropic"));
    assert_null(strstr(world->environment, "sk-secret"));
    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    assert_true(fake.outlets[0].is_open);
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(fake.opened, 1);
    do_ask(world, sandbox_stop, sandbox);
    assert_false(fake.outlets[0].is_open);
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(fake.opened, 2);
    do_ask(world, sandbox_destroy, sandbox);
    assert_int_equal(fake.closed, 2);
}

static void a_sandbox_without_a_policy_has_none_and_costs_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "plain");
    struct egress_asked asked;

    assert_int_equal(fake.opened, 0);
    assert_int_equal(world->asked_environment, 0);
    asked = ask_model(world, sandbox);
    assert_int_equal(asked.verdict, BROKER_DENY);
    assert_string_equal(asked.type, "egress_denied");
}

static void what_cannot_be_opened_is_not_made(void **state)
{
    struct world *world = *state;
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.egress = mem_copy_text(plain_policy);
    fake.refuses = true;
    told = ask_create(world, &world->caller, &spec);
    assert_true(told.failed);
    assert_non_null(strstr(told.failure.message, "way out"));
}

static void a_variable_of_its_own_is_not_touched(void **state)
{
    struct world *world = *state;
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.egress = mem_copy_text(plain_policy);
    sandbox_pairs_set(&spec.environment, "ANTHROPIC_API_KEY", "mine");
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    assert_non_null(strstr(world->environment, "\"ANTHROPIC_API_KEY\":\"mine\""));
    assert_null(strstr(world->environment, "burrow-anthropic"));
}

static struct told change_policy(struct world *world, struct sandbox *sandbox, const char *policy)
{
    AUTO(sandbox_change)
    struct sandbox_change change = {.fields = SPEC_BIT(egress), .spec = SANDBOX_SPEC_INIT};

    change.spec.egress = policy ? mem_copy_text(policy) : NULL;
    return ask_update(world, sandbox, &change);
}

static void a_policy_is_changed_live(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "live");
    struct told told = change_policy(world, sandbox, plain_policy);

    expect_ok(&told);
    assert_int_equal(fake.opened, 1);
    told = change_policy(
        world, sandbox, "{\"rules\":[{\"host\":\"a.test\",\"credential\":\"key\"}],\"models\":{}}");
    expect_ok(&told);
    assert_int_equal(fake.opened, 1);
    assert_int_equal(fake.changes, 1);
    assert_int_equal(fake.cuts, 1);
    assert_int_equal(ask_model(world, sandbox).verdict, BROKER_DENY);
    /* Other listeners are another outlet. */
    told = change_policy(world, sandbox,
                         "{\"rules\":[{\"host\":\"db\",\"port\":1,\"protocol\":\"tcp\"}]}");
    expect_ok(&told);
    assert_int_equal(fake.opened, 2);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(fake.outlets[1].forwards, 1);
    told = change_policy(world, sandbox, NULL);
    expect_ok(&told);
    assert_int_equal(fake.closed, 2);
    assert_null(sandbox->spec.egress);
}

static void an_authority_is_kept_and_found_again(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_with(
        world, "signed", "{\"rules\":[{\"host\":\"a.test\",\"credential\":\"key\"}]}", NULL);
    struct id id = sandbox->id;

    assert_int_equal(fake.outlets[0].intercepted, 1);
    assert_false(fake.outlets[0].had_authority);
    world_close(world);
    world->provider = NULL;
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_FROZEN, NULL);
    world_open(world);
    world_wait(world);
    assert_int_equal(fake.opened, 2);
    assert_true(fake.outlets[1].had_authority);
    assert_true(fake.outlets[1].is_open);
}

/* --- questions ------------------------------------------------------------------------------- */

static void the_secret_is_put_in_and_where_it_goes(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "asks");
    struct broker_ask ask = model_ask(sandbox);
    struct egress_asked asked = ask_anything(world, &ask);

    assert_int_equal(asked.verdict, BROKER_PASS);
    assert_string_equal(asked.header, "x-api-key: sk-secret");
    assert_string_equal(asked.base, "https://api.anthropic.com");
    assert_int_equal(asked.format, BROKER_ANTHROPIC);
    assert_false(asked.may_be_local);
    end_model(world, sandbox, &asked, NULL);
    ask.path = "/messages";
    asked = ask_anything(world, &ask);
    assert_string_equal(asked.base, "https://api.anthropic.com/v1");
    end_model(world, sandbox, &asked, NULL);
}

static void what_is_for_something_else_is_refused_and_told(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "labels");
    struct broker_ask ask = model_ask(sandbox);
    struct egress_asked asked;
    char *events;

    ask.placeholder = "burrow-openai";
    asked = ask_anything(world, &ask);
    assert_int_equal(asked.code, ERR_FORBIDDEN);
    asked = ask_anything(world, &ask);
    ask.placeholder = NULL;
    ask.path = "/v1/files";
    asked = ask_anything(world, &ask);
    assert_int_equal(asked.code, ERR_NOT_FOUND);
    assert_string_equal(asked.type, "not_found_error");
    world_wait(world);
    events = world_events(world, &sandbox->id);
    assert_non_null(strstr(events, "egress.violation"));
    assert_non_null(strstr(events, "egress.denied"));
    /* The same again is told once. */
    assert_null(strstr(strstr(events, "egress.violation") + 1, "egress.violation"));
    free(events);
}

static void a_credential_goes_to_its_own_hosts_only(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_with(
        world, "hosts",
        "{\"rules\":[{\"host\":\"evil.test\",\"credential\":\"key\"},"
        "{\"host\":\"api.anthropic.com\",\"credential\":\"key\"},"
        "{\"host\":\"gone.test\",\"credential\":\"nothing\"}],"
        "\"models\":{\"anthropic\":{\"credential\":\"key\",\"base\":\"https://evil.test\"}}}",
        NULL);
    struct broker_ask ask = {.sandbox = sandbox->id,
                             .way = BROKER_REQUEST,
                             .host = "evil.test",
                             .port = 443,
                             .method = "GET",
                             .path = "/"};
    struct egress_asked asked = ask_anything(world, &ask);

    assert_int_equal(asked.code, ERR_FORBIDDEN);
    assert_non_null(strstr(asked.message, "not for host evil.test"));
    ask.host = "gone.test";
    asked = ask_anything(world, &ask);
    assert_non_null(strstr(asked.message, "no credential 'nothing'"));
    asked = ask_model(world, sandbox);
    assert_non_null(strstr(asked.message, "not for host evil.test"));
    /* A host of an API leads to what models are asked by, metered. */
    ask.host = "api.anthropic.com";
    assert_int_equal(ask_anything(world, &ask).code, ERR_NOT_FOUND);
    ask.method = "POST";
    ask.path = "/v1/messages";
    asked = ask_anything(world, &ask);
    assert_int_equal(asked.verdict, BROKER_PASS);
    assert_int_equal(asked.format, BROKER_ANTHROPIC);
    end_model(world, sandbox, &asked, NULL);
}

static void when_a_credential_goes_what_is_open_with_it_is_cut(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "cut");
    struct egress_asked gone = {.times = 0};

    egress_credential_delete(world->domain, &world->caller, "key", note_credential, &gone);
    TURN_UNTIL(&world->loop, gone.times);
    assert_int_equal(gone.code, ERR_NONE);
    assert_int_equal(fake.cuts, 1);
    assert_int_equal(ask_model(world, sandbox).verdict, BROKER_DENY);
}

/* --- budgets and rows ------------------------------------------------------------------------ */

static void what_was_used_is_in_rows_by_its_end_and_while_it_goes_on(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_with(world, "spends", plain_policy, "t1");
    struct broker_usage usage = usage_of(100, 10, "model");
    struct egress_asked asked = ask_model(world, sandbox);
    struct usage_told told;

    assert_true(egress_used(world->domain, asked.number, BROKER_ANTHROPIC, &usage));
    world_pass(world, 2);
    told = look_at_usage(world, EGRESS_BY_MODEL);
    assert_string_equal(told.key, "model");
    assert_int_equal(told.first.requests, 1);
    assert_int_equal(told.first.partial, 1);
    assert_int_equal(told.first.tokens.input, 100);
    usage = usage_of(100, 50, "model");
    end_model(world, sandbox, &asked, &usage);
    world_wait(world);
    told = look_at_usage(world, EGRESS_BY_TASK);
    assert_string_equal(told.key, "t1");
    assert_int_equal(told.first.partial, 0);
    assert_int_equal(told.first.tokens.output, 50);
    assert_int_equal(told.first.micros, 100 * 1 + 50 * 2);
    assert_int_equal(told.first.unpriced, 0);
}

static void rows_outlast_the_sandbox_and_the_daemon(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "outlasted");
    struct broker_usage usage = usage_of(7, 3, "nobody-knows");
    struct egress_asked asked = ask_model(world, sandbox);
    struct usage_told told;

    end_model(world, sandbox, &asked, &usage);
    world_wait(world);
    do_ask(world, sandbox_destroy, sandbox);
    world_close(world);
    world_open(world);
    told = look_at_usage(world, EGRESS_BY_MODEL);
    assert_string_equal(told.key, "nobody-knows");
    assert_int_equal(told.first.unpriced, 1);
    assert_int_equal(told.first.micros, 0);
    assert_int_equal(told.first.tokens.input, 7);
}

static const char small_policy[] =
    "{\"models\":{\"anthropic\":\"key\"},\"budget\":{\"tokensPerDay\":100}}";

static void a_budget_is_not_passed_by_more_than_one_request(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_with(world, "budget", small_policy, NULL);
    struct broker_usage usage = usage_of(50, 0, "model");
    struct egress_asked first = ask_model(world, sandbox), second = ask_model(world, sandbox);

    assert_int_equal(first.verdict, BROKER_PASS);
    assert_int_equal(second.code, ERR_QUOTA);
    assert_non_null(strstr(second.message, "held by requests under way"));
    assert_true(egress_used(world->domain, first.number, BROKER_ANTHROPIC, &usage));
    usage = usage_of(50, 50, "model");
    assert_false(egress_used(world->domain, first.number, BROKER_ANTHROPIC, &usage));
    end_model(world, sandbox, &first, &usage);
    second = ask_model(world, sandbox);
    assert_int_equal(second.code, ERR_QUOTA);
    assert_string_equal(second.type, "budget_exceeded");
    /* A day later there is a new one. */
    clock_manual_advance(&world->clock, UINT64_C(86400000));
    first = ask_model(world, sandbox);
    assert_int_equal(first.verdict, BROKER_PASS);
    end_model(world, sandbox, &first, NULL);
}

static void a_budget_goes_on_after_a_restart_and_is_shared_by_a_task(void **state)
{
    struct world *world = *state;
    static const char shared[] =
        "{\"models\":{\"anthropic\":\"key\"},\"taskBudget\":{\"tokensPerDay\":"
        "100}}";
    struct sandbox *sandbox = make_with(world, "first", shared, "t"), *other;
    struct broker_usage usage = usage_of(200, 0, "model");
    struct egress_asked asked = ask_model(world, sandbox);

    end_model(world, sandbox, &asked, &usage);
    world_wait(world);
    world_close(world);
    world_open(world);
    other = make_with(world, "second", shared, "t");
    asked = ask_model(world, other);
    assert_int_equal(asked.code, ERR_QUOTA);
    assert_non_null(strstr(asked.message, "budget of this task"));
    other = make_with(world, "third", shared, "u");
    asked = ask_model(world, other);
    assert_int_equal(asked.verdict, BROKER_PASS);
    end_model(world, other, &asked, NULL);
}

static void note_done(void *context, const struct error *failure)
{
    struct egress_asked *asked = context;

    asked->times++;
    asked->code = failure ? failure->code : ERR_NONE;
}

static void an_owner_has_a_budget_that_administrators_set(void **state)
{
    struct world *world = *state;
    struct egress_owner_spec spec = {.has_budget = true, .budget = {.micros_per_day = 100}};
    struct egress_asked asked = {.times = 0};
    struct broker_usage usage = usage_of(1000, 0, "dear");
    struct caller admin = world->caller;
    struct sandbox *sandbox;

    egress_owner_put(world->domain, &world->caller, &spec, note_done, &asked);
    TURN_UNTIL(&world->loop, asked.times);
    assert_int_equal(asked.code, ERR_FORBIDDEN);
    admin.scope = CALLER_ADMIN;
    spec.has_policy = true;
    spec.policy = plain_policy;
    asked.times = 0;
    egress_owner_put(world->domain, &admin, &spec, note_done, &asked);
    TURN_UNTIL(&world->loop, asked.times);
    assert_int_equal(asked.code, ERR_NONE);
    sandbox = world_create(world, "by-default");
    assert_string_equal(sandbox->spec.egress, plain_policy);
    asked = ask_model(world, sandbox);
    assert_int_equal(asked.verdict, BROKER_PASS);
    end_model(world, sandbox, &asked, &usage);
    asked = ask_model(world, sandbox);
    assert_int_equal(asked.code, ERR_QUOTA);
    assert_non_null(strstr(asked.message, "budget of this owner"));
}

static void what_a_reply_tells_is_not_believed_without_bounds(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "liar");
    struct usage_told told;

    for (int i = 0; i < 200; i++) {
        char model[32];
        struct broker_usage usage;
        struct egress_asked asked = ask_model(world, sandbox);

        (void) snprintf(model, sizeof(model), "m\x01%d", i);
        usage = usage_of(UINT64_MAX, UINT64_MAX, model);
        end_model(world, sandbox, &asked, &usage);
    }
    world_pass(world, 10);
    told = look_at_usage(world, EGRESS_BY_MODEL);
    assert_in_range(told.count, 1, 66);
    assert_in_range(told.first.tokens.input, 1, EGRESS_TOKENS_MAX * 200);
    assert_null(strchr(told.key, '\x01'));
}

static void a_store_that_fails_loses_no_cost(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "unkept");
    struct broker_usage usage = usage_of(9, 0, "model");
    struct egress_asked asked = ask_model(world, sandbox);

    world->refuse_all = true;
    end_model(world, sandbox, &asked, &usage);
    world_pass(world, 2);
    world->refuse_all = false;
    world_pass(world, 2);
    assert_int_equal(look_at_usage(world, EGRESS_BY_MODEL).first.tokens.input, 9);
}

static void a_flood_is_counted_and_not_told_one_by_one(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "flood");
    struct domain_counters before, after;

    domain_counters(world->domain, &before);
    for (int i = 0; i < 3000; i++) {
        struct egress_asked asked = ask_model(world, sandbox);

        end_model(world, sandbox, &asked, NULL);
    }
    world_wait(world);
    domain_counters(world->domain, &after);
    assert_in_range(after.events - before.events, 100, 300);
    world_pass(world, 3);
    assert_int_equal(look_at_usage(world, EGRESS_BY_ROUTE).first.requests, 3000);
}

static void the_end_of_the_domain_does_not_wait_for_requests(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make(world, "open");
    struct egress_asked asked = ask_model(world, sandbox);

    assert_int_equal(asked.verdict, BROKER_PASS);
    world_close(world);
    assert_false(fake.outlets[0].is_open);
    world_open(world);
}

#define EGRESS_TEST(name) cmocka_unit_test_setup_teardown(name, egress_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EGRESS_TEST(a_way_out_is_open_before_anything_runs_and_closed_with_the_processes),
        EGRESS_TEST(a_sandbox_without_a_policy_has_none_and_costs_nothing),
        EGRESS_TEST(what_cannot_be_opened_is_not_made),
        EGRESS_TEST(a_variable_of_its_own_is_not_touched),
        EGRESS_TEST(a_policy_is_changed_live),
        EGRESS_TEST(an_authority_is_kept_and_found_again),
        EGRESS_TEST(the_secret_is_put_in_and_where_it_goes),
        EGRESS_TEST(what_is_for_something_else_is_refused_and_told),
        EGRESS_TEST(a_credential_goes_to_its_own_hosts_only),
        EGRESS_TEST(when_a_credential_goes_what_is_open_with_it_is_cut),
        EGRESS_TEST(what_was_used_is_in_rows_by_its_end_and_while_it_goes_on),
        EGRESS_TEST(rows_outlast_the_sandbox_and_the_daemon),
        EGRESS_TEST(a_budget_is_not_passed_by_more_than_one_request),
        EGRESS_TEST(a_budget_goes_on_after_a_restart_and_is_shared_by_a_task),
        EGRESS_TEST(an_owner_has_a_budget_that_administrators_set),
        EGRESS_TEST(what_a_reply_tells_is_not_believed_without_bounds),
        EGRESS_TEST(a_store_that_fails_loses_no_cost),
        EGRESS_TEST(a_flood_is_counted_and_not_told_one_by_one),
        EGRESS_TEST(the_end_of_the_domain_does_not_wait_for_requests),
    };

    return cmocka_run_group_tests_name("egress_ask", tests, NULL, NULL);
}
