#include "api/agentpod/agentpod_webhook.h"
#include "domain/remote_event.h"
#include "net/http/http_testing.h"

#define TOKEN "a-service-token-of-some-length"

struct bench {
    struct web web;
    struct http_mount mount;
    struct agentpod_webhook webhook;
    struct text kept;
    bool fails;
};

static struct bench *the_bench;

/* The domain of this test. */
void remote_event_keep(struct domain *domain, const struct remote_event *event,
                       remote_event_done *done, void *context)
{
    struct error full = ERROR_INIT;

    (void) domain;
    text_format(&the_bench->kept, "%s sandbox=%s owner=%s activity=%d %s\n", event->name,
                event->sandbox ? event->sandbox : "-", event->owner ? event->owner : "-",
                event->is_activity, event->data);
    (void) error_set(&full, ERR_NO_SPACE, 0, "the disk is full");
    done(context, the_bench->fails ? &full : NULL);
}

static int setup_with(void **state, const char *token)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));

    the_bench = bench;
    bench->kept = (struct text) TEXT_INIT(RAW_MAX);
    web_init(&bench->web);
    assert_int_equal(agentpod_webhook_init(&bench->webhook, NULL, token, NULL), 0);
    bench->mount = agentpod_webhook_mount(&bench->webhook);
    web_serve(&bench->web, &bench->mount);
    bench->mount.context = &bench->webhook;
    *state = bench;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, TOKEN);
}

static int setup_without_token(void **state)
{
    return setup_with(state, "");
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    web_done(&bench->web);
    text_done(&bench->kept);
    test_free(bench);
    return 0;
}

/* Post it, and wait for this in the answer. */
static void expect(struct bench *bench, const char *authorization, const char *body,
                   const char *status, const char *answer)
{
    struct raw raw = raw_connect(bench->web.port);
    AUTO(text) struct text request = TEXT_INIT(RAW_MAX);

    text_format(&request,
                "POST /api/v2/cloudflare/webhook HTTP/1.1\r\nHost: a.test\r\n%sContent-Length: "
                "%zu\r\n\r\n%s",
                authorization, strlen(body), body);
    raw_send(&raw, &bench->web.loop, text_string(&request));
    TURN_UNTIL(&bench->web.loop, raw_has(&raw, answer));
    assert_true(raw_has(&raw, status));
    raw_close(&raw);
}

#define WITH_TOKEN "Authorization: Bearer " TOKEN "\r\n"
#define WOKEN      "{\"event\":\"sandbox.woken\",\"data\":{},\"timestamp\":\"t\"}"

static void an_event_is_kept_and_acknowledged(void **state)
{
    struct bench *bench = *state;

    expect(bench, WITH_TOKEN,
           "{\"event\":\"session.message\",\"data\":{\"sandboxId\":\"s\",\"userId\":\"u\","
           "\"sessionId\":\"ses_1\",\"durationMs\":12.5,\"result\":{\"a\":[1]},\"other\":1},"
           "\"timestamp\":\"2026-01-01T00:00:00Z\"}",
           "HTTP/1.1 200 ", "\r\n\r\n{\"received\":true}");
    assert_string_equal(
        text_string(&bench->kept),
        "session.message sandbox=s owner=u activity=1 {\"sandboxId\":\"s\",\"userId\":\"u\","
        "\"sessionId\":\"ses_1\",\"durationMs\":12.5,\"result\":{\"a\":[1]},\"timestamp\":"
        "\"2026-01-01T00:00:00Z\"}\n");
}

static void only_the_service_token_opens_it(void **state)
{
    static const char *const others[] = {
        "",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer " TOKEN "x\r\n",
        "Authorization: Bearer a-service-token-of-some-lengt\r\n",
        "Authorization: Basic " TOKEN "\r\n",
        "Authorization: " TOKEN "\r\n",
        "Cookie: burrow_session=" TOKEN "\r\n",
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        expect(bench, others[i], WOKEN, "HTTP/1.1 401 ", "{\"error\":\"Unauthorized\",");
    assert_int_equal(bench->kept.length, 0);
}

static void without_a_token_nobody_gets_in(void **state)
{
    struct bench *bench = *state;

    expect(bench, WITH_TOKEN, WOKEN, "HTTP/1.1 401 ", "Unauthorized");
    expect(bench, "Authorization: Bearer \r\n", WOKEN, "HTTP/1.1 401 ", "Unauthorized");
}

static void bodies_that_are_not_right_are_told_as_issues(void **state)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "nonsense",
        "[]",
        "{\"event\":\"sandbox.stolen\",\"data\":{},\"timestamp\":\"t\"}",
        "{\"event\":\"sandbox.woken\",\"timestamp\":\"t\"}",
        "{\"event\":\"sandbox.woken\",\"data\":[],\"timestamp\":\"t\"}",
        "{\"event\":\"sandbox.woken\",\"data\":{}}",
        "{\"event\":\"sandbox.woken\",\"data\":{},\"timestamp\":5}",
        "{\"event\":\"sandbox.woken\",\"data\":{\"sandboxId\":5},\"timestamp\":\"t\"}",
        "{\"event\":\"sandbox.woken\",\"data\":{\"durationMs\":\"5\"},\"timestamp\":\"t\"}",
        "{\"event\":\"sandbox.woken\",\"data\":{\"result\":5},\"timestamp\":\"t\"}",
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++)
        expect(bench, WITH_TOKEN, bodies[i], "HTTP/1.1 400 ", "\"name\":\"ZodError\"}}");
    assert_int_equal(bench->kept.length, 0);
}

static void a_large_result_is_left_out_and_the_event_kept(void **state)
{
    struct bench *bench = *state;
    AUTO(text) struct text body = TEXT_INIT(RAW_MAX);

    text_append(&body, "{\"event\":\"workflow.execution.completed\",\"timestamp\":\"t\",\"data\":{"
                       "\"executionId\":\"e\",\"result\":{\"x\":\"");
    for (int i = 0; i < 3000; i++)
        text_append_char(&body, 'x');
    text_append(&body, "\"}}}");
    expect(bench, WITH_TOKEN, text_string(&body), "HTTP/1.1 200 ", "{\"received\":true}");
    assert_non_null(strstr(text_string(&bench->kept),
                           "{\"executionId\":\"e\",\"resultLeftOut\":true,\"timestamp\":\"t\"}"));
}

static void what_cannot_be_kept_is_not_acknowledged(void **state)
{
    struct bench *bench = *state;

    bench->fails = true;
    expect(bench, WITH_TOKEN, WOKEN, "HTTP/1.1 507 ", "{\"error\":\"Webhook processing failed\",");
}

static void a_short_token_is_refused(void **state)
{
    struct agentpod_webhook webhook;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(agentpod_webhook_init(&webhook, NULL, "short", &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(agentpod_webhook_init(&webhook, NULL, NULL, &err), 0);
    assert_false(webhook.has_token);
}

#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH_TEST(an_event_is_kept_and_acknowledged),
        BENCH_TEST(only_the_service_token_opens_it),
        cmocka_unit_test_setup_teardown(without_a_token_nobody_gets_in, setup_without_token,
                                        teardown),
        BENCH_TEST(bodies_that_are_not_right_are_told_as_issues),
        BENCH_TEST(a_large_result_is_left_out_and_the_event_kept),
        BENCH_TEST(what_cannot_be_kept_is_not_acknowledged),
        cmocka_unit_test(a_short_token_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
