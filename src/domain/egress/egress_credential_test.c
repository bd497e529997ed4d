/* Credentials: read, put into requests, kept, renewed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/egress/egress_testing.h"

static struct fake_broker fake;

static int credential_setup(void **state)
{
    struct world *world = world_new(NULL);

    fake_broker_init(&fake, world);
    world_open(world);
    *state = world;
    return 0;
}

static struct egress_credential *read_json(const char *json, struct error *err)
{
    AUTO(json) json_t *read = json_read(json, strlen(json), NULL, NULL);
    struct json_place root = {.value = read};

    assert_non_null(read);
    return egress_credential_read(&root, "name", err);
}

static void assert_proof(const char *json, const char *host, const char *header)
{
    AUTO(egress_credential) struct egress_credential *credential = read_json(json, NULL);
    AUTO(egress_proof) struct egress_proof proof = {.count = 0};
    char text[256];

    assert_non_null(credential);
    egress_credential_prove(credential, host, &proof);
    assert_true(proof.count > 0);
    (void) snprintf(text, sizeof(text), "%s: %s", proof.headers[0].name, proof.headers[0].value);
    assert_string_equal(text, header);
}

static void each_kind_proves_itself_in_its_way(void **state)
{
    (void) state;
    assert_proof(
        "{\"kind\":\"header\",\"header\":\"X-Key\",\"value\":\"v\",\"hosts\":[\"a.test\"]}",
        "a.test", "X-Key: v");
    assert_proof("{\"kind\":\"bearer\",\"value\":\"v\",\"hosts\":[\"a.test\"]}", "a.test",
                 "authorization: Bearer v");
    assert_proof("{\"kind\":\"basic\",\"value\":\"u:p\",\"hosts\":[\"a.test\"]}", "a.test",
                 "authorization: Basic dTpw");
    assert_proof("{\"kind\":\"anthropic\",\"value\":\"sk-ant-api\"}", NULL,
                 "x-api-key: sk-ant-api");
    assert_proof("{\"kind\":\"anthropic\",\"value\":\"sk-ant-oat01\"}", NULL,
                 "authorization: Bearer sk-ant-oat01");
    assert_proof("{\"kind\":\"openai\",\"value\":\"v\",\"account\":\"acc\"}", NULL,
                 "authorization: Bearer v");
    assert_proof("{\"kind\":\"google\",\"value\":\"v\"}", NULL, "x-goog-api-key: v");
    assert_proof("{\"kind\":\"oauth\",\"refreshToken\":\"r\",\"value\":\"v\",\"api\":\"anthropic\","
                 "\"tokenUrl\":\"https://t.test\"}",
                 NULL, "authorization: Bearer v");
}

static void what_makes_no_sense_is_refused_by_name(void **state)
{
    static const struct {
        const char *json, *word;
    } rows[] = {
        {"{\"kind\":\"bearer\",\"value\":\"v\"}", "hosts"},
        {"{\"kind\":\"bearer\",\"hosts\":[\"a.test\"]}", "value"},
        {"{\"kind\":\"bearer\",\"value\":\"a\\r\\nb\",\"hosts\":[\"a.test\"]}", "value"},
        {"{\"kind\":\"bearer\",\"value\":\"\\u00e4\",\"hosts\":[\"a.test\"]}", "value"},
        {"{\"kind\":\"bearer\",\"value\":\"v\",\"hosts\":[\"*\"]}", "hosts"},
        {"{\"kind\":\"bearer\",\"value\":\"v\",\"hosts\":[\"*.com\"]}", "hosts"},
        {"{\"kind\":\"bearer\",\"value\":\"v\",\"hosts\":[\"https://a.test\"]}", "hosts"},
        {"{\"kind\":\"header\",\"value\":\"v\",\"hosts\":[\"a.test\"]}", "header"},
        {"{\"kind\":\"header\",\"header\":\"a b\",\"value\":\"v\",\"hosts\":[\"a.test\"]}",
         "header"},
        {"{\"kind\":\"basic\",\"value\":\"nocolon\",\"hosts\":[\"a.test\"]}", "user:password"},
        {"{\"kind\":\"anthropic\",\"value\":\"v\",\"refreshToken\":\"r\"}", "refreshToken"},
        {"{\"kind\":\"anthropic\",\"value\":\"v\",\"base\":\"file:///x\"}", "base"},
        {"{\"kind\":\"oauth\",\"refreshToken\":\"r\"}", "tokenUrl"},
        {"{\"kind\":\"anthropic\",\"value\":\"v\",\"expiresAt\":\"tomorrow\"}", "expiresAt"},
        {"{\"kind\":\"magic\",\"value\":\"v\"}", "kind"},
        {"{\"kind\":\"anthropic\",\"value\":\"v\",\"key\":\"v\"}", "key"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = ERROR_INIT;

        if (read_json(rows[i].json, &err))
            fail_msg("taken: %s", rows[i].json);
        if (err.code != ERR_INVALID || !strstr(err.message, rows[i].word))
            fail_msg("%s: %s", rows[i].json, err.message);
    }
}

static void a_value_is_shown_to_nobody_and_kept_sealed(void **state)
{
    struct world *world = *state;
    AUTO(text) struct text shown = TEXT_INIT(4096);
    const struct egress_credential *credential;
    struct json_writer json;

    (void) put_credential(world, "one", "{\"kind\":\"anthropic\",\"value\":\"sk-secret\"}");
    world_close(world);
    world_open(world);
    credential = egress_credential_find(world->domain, &world->caller, "one", NULL);
    assert_non_null(credential);
    assert_string_equal(credential->value, "sk-secret");
    json_writer_init_text(&json, &shown);
    egress_credential_write(&json, credential);
    assert_int_equal(json_writer_finish(&json), 0);
    assert_null(strstr(text_string(&shown), "secret"));
    assert_non_null(strstr(text_string(&shown), "api.anthropic.com"));
}

static void others_do_not_see_it(void **state)
{
    struct world *world = *state;
    struct caller other = world->caller, narrow = world->caller;
    struct error err = ERROR_INIT;

    (void) put_credential(world, "mine", "{\"kind\":\"anthropic\",\"value\":\"v\"}");
    other.owner = id_new();
    narrow.scope = CALLER_SANDBOX;
    assert_null(egress_credential_find(world->domain, &other, "mine", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_null(egress_credential_find(world->domain, &narrow, "mine", &err));
}

static void a_store_that_fails_changes_nothing(void **state)
{
    struct world *world = *state;
    struct egress_asked asked;

    (void) put_credential(world, "kept", "{\"kind\":\"anthropic\",\"value\":\"old\"}");
    world->refuse_commit = 1;
    asked = put_credential(world, "kept", "{\"kind\":\"anthropic\",\"value\":\"new\"}");
    assert_int_equal(asked.code, ERR_NO_SPACE);
    assert_string_equal(egress_credential_find(world->domain, &world->caller, "kept", NULL)->value,
                        "old");
    asked = put_credential(world, "kept", "{\"kind\":\"anthropic\",\"value\":\"new\"}");
    assert_int_equal(asked.code, ERR_NONE);
    assert_string_equal(egress_credential_find(world->domain, &world->caller, "kept", NULL)->value,
                        "new");
}

/* --- renewed --------------------------------------------------------------------------------- */

static const char oauth[] = "{\"kind\":\"oauth\",\"refreshToken\":\"r1\",\"api\":\"anthropic\","
                            "\"clientId\":\"c i\",\"tokenUrl\":\"https://t.test/token\"}";

static struct sandbox *make_oauth(struct world *world)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    (void) put_credential(world, "login", oauth);
    spec.egress = mem_copy_text("{\"models\":{\"anthropic\":\"login\"}}");
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    return told.sandbox;
}

static void a_token_is_asked_for_once_and_all_wait_for_it(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_oauth(world);
    struct egress_asked one = {.times = 0}, other = {.times = 0};
    const struct broker_ask ask_one = model_ask(sandbox);
    const struct egress_credential *credential;

    egress_ask(world->domain, &ask_one, asked_answer, &one);
    egress_ask(world->domain, &ask_one, asked_answer, &other);
    world_wait(world);
    assert_int_equal(fake.token_asked, 1);
    assert_int_equal(one.times + other.times, 0);
    assert_string_equal(fake.token_form,
                        "grant_type=refresh_token&refresh_token=r1&client_id=c%20i");
    fake_token_answer(&fake, 200,
                      "{\"access_token\":\"a1\",\"refresh_token\":\"r2\",\"expires_in\":3600}");
    TURN_UNTIL(&world->loop, one.times && other.times);
    assert_string_equal(one.header, "authorization: Bearer a1");
    assert_int_equal(other.verdict, BROKER_PASS);
    credential = egress_credential_find(world->domain, &world->caller, "login", NULL);
    assert_string_equal(credential->refresh_token, "r2");
    end_model(world, sandbox, &one, NULL);
    end_model(world, sandbox, &other, NULL);
}

static void it_is_renewed_five_minutes_early_and_kept_before_it_is_used(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_oauth(world);
    struct egress_asked one = {.times = 0};
    const struct broker_ask wanted = model_ask(sandbox);
    const struct egress_credential *credential;

    egress_ask(world->domain, &wanted, asked_answer, &one);
    world_wait(world);
    fake_token_answer(&fake, 200,
                      "{\"access_token\":\"a1\",\"refresh_token\":\"r2\",\"expires_in\":600}");
    TURN_UNTIL(&world->loop, one.times);
    end_model(world, sandbox, &one, NULL);
    world_pass(world, 200);
    assert_int_equal(fake.token_asked, 1);
    world_pass(world, 120);
    assert_int_equal(fake.token_asked, 2);
    /* What came is not used when it could not be kept. */
    world->refuse_all = true;
    fake_token_answer(&fake, 200,
                      "{\"access_token\":\"a2\",\"refresh_token\":\"r3\",\"expires_in\":600}");
    world_wait(world);
    world->refuse_all = false;
    credential = egress_credential_find(world->domain, &world->caller, "login", NULL);
    assert_string_equal(credential->value, "a1");
    assert_string_equal(credential->refresh_token, "r2");
    assert_non_null(credential->failure);
    world_pass(world, 20);
    assert_int_equal(fake.token_asked, 3);
    fake_token_answer(&fake, 200, "{\"access_token\":\"a3\",\"expires_in\":600}");
    world_wait(world);
    assert_string_equal(credential->value, "a3");
    assert_string_equal(credential->refresh_token, "r2");
    assert_null(credential->failure);
}

static void a_failure_is_told_and_not_tried_again_at_once(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_oauth(world);
    struct egress_asked one = {.times = 0}, other;
    const struct broker_ask wanted = model_ask(sandbox);
    struct id system = {.text = "system"};
    AUTO(free) char *events = NULL;

    egress_ask(world->domain, &wanted, asked_answer, &one);
    world_wait(world);
    fake_token_answer(&fake, 400, "{\"error\":\"invalid_grant\",\"secret\":\"r1\"}");
    TURN_UNTIL(&world->loop, one.times);
    assert_int_equal(one.verdict, BROKER_DENY);
    assert_string_equal(one.type, "credential_not_renewed");
    assert_null(strstr(one.message, "r1"));
    other = ask_model(world, sandbox);
    assert_int_equal(other.verdict, BROKER_DENY);
    assert_int_equal(fake.token_asked, 1);
    world_wait(world);
    events = world_events(world, &system);
    assert_non_null(strstr(events, "credential.renewal_failed"));
    clock_manual_advance(&world->clock, 60000);
    one.times = 0;
    egress_ask(world->domain, &wanted, asked_answer, &one);
    world_wait(world);
    assert_int_equal(fake.token_asked, 2);
    fake_token_answer(&fake, 200, "{\"access_token\":\"bad token\"}");
    TURN_UNTIL(&world->loop, one.times);
    assert_int_equal(one.verdict, BROKER_DENY);
}

static void one_that_goes_meanwhile_is_not_kept_again(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = make_oauth(world);
    struct egress_asked one = {.times = 0}, gone = {.times = 0};
    const struct broker_ask wanted = model_ask(sandbox);

    egress_ask(world->domain, &wanted, asked_answer, &one);
    world_wait(world);
    egress_credential_delete(world->domain, &world->caller, "login", note_credential, &gone);
    TURN_UNTIL(&world->loop, gone.times);
    TURN_UNTIL(&world->loop, one.times);
    assert_int_equal(one.verdict, BROKER_DENY);
    fake_token_answer(&fake, 200, "{\"access_token\":\"a1\"}");
    world_wait(world);
    world_close(world);
    world_open(world);
    assert_null(egress_credential_find(world->domain, &world->caller, "login", NULL));
}

static void an_app_of_github_signs_and_is_given_a_token(void **state)
{
    struct world *world = *state;
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct egress_asked asked = {.times = 0};
    struct broker_ask wanted = {.way = BROKER_REQUEST,
                                .host = "github.com",
                                .port = 443,
                                .method = "GET",
                                .path = "/acme/web.git/info/refs"};
    struct told told;

    (void) put_credential(world, "gh",
                          "{\"kind\":\"github-app\",\"appId\":\"1\",\"installationId\":\"2\","
                          "\"privateKey\":\"-----BEGIN\\nKEY\"}");
    spec.egress = mem_copy_text(
        "{\"rules\":[{\"host\":\"github.com\",\"credential\":\"gh\",\"paths\":[\"/acme/**\"]}]}");
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    wanted.sandbox = told.sandbox->id;
    egress_ask(world->domain, &wanted, asked_answer, &asked);
    world_wait(world);
    assert_string_equal(fake.token_form, "{}");
    fake_token_answer(&fake, 201, "{\"token\":\"ghs_x\",\"expires_at\":\"2100-01-01T00:00:00Z\"}");
    TURN_UNTIL(&world->loop, asked.times);
    /* x-access-token:ghs_x */
    assert_string_equal(asked.header, "authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hzX3g=");
}

#define CREDENTIAL_TEST(name)                                                                      \
    cmocka_unit_test_setup_teardown(name, credential_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_proves_itself_in_its_way),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
        CREDENTIAL_TEST(a_value_is_shown_to_nobody_and_kept_sealed),
        CREDENTIAL_TEST(others_do_not_see_it),
        CREDENTIAL_TEST(a_store_that_fails_changes_nothing),
        CREDENTIAL_TEST(a_token_is_asked_for_once_and_all_wait_for_it),
        CREDENTIAL_TEST(it_is_renewed_five_minutes_early_and_kept_before_it_is_used),
        CREDENTIAL_TEST(a_failure_is_told_and_not_tried_again_at_once),
        CREDENTIAL_TEST(one_that_goes_meanwhile_is_not_kept_again),
        CREDENTIAL_TEST(an_app_of_github_signs_and_is_given_a_token),
    };

    return cmocka_run_group_tests_name("egress_credential", tests, NULL, NULL);
}
