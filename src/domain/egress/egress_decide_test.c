#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/egress/egress_decide.h"

static struct egress_policy policy;

static const char rules[] =
    "{\"rules\":[{\"host\":\"api.test\",\"credential\":\"key\",\"methods\":[\"GET\"],\"paths\":[\"/"
    "a/**\"]},"
    "{\"host\":\"api.test\",\"methods\":[\"GET\"],\"paths\":[\"/b/**\"]},"
    "{\"host\":\"*.open.test\"},{\"host\":\"db.test\",\"port\":5432,\"protocol\":\"tcp\"},"
    "{\"host\":\"odd.test\",\"port\":8443}],"
    "\"models\":{\"anthropic\":\"k\",\"openai\":\"k\",\"google\":\"k\","
    "\"mine\":{\"api\":\"none\",\"base\":\"https://x.test\",\"paths\":[\"/ask/**\"]}}}";

static int setup(void **state)
{
    (void) state;
    return egress_policy_parse(rules, strlen(rules), &policy, NULL);
}

static int teardown(void **state)
{
    (void) state;
    egress_policy_done(&policy);
    return 0;
}

/* --- routes ---------------------------------------------------------------------------------- */

static struct egress_verdict of_route(const char *route, const char *method, const char *path)
{
    const struct broker_ask ask = {
        .way = BROKER_ROUTE, .route = route, .method = method, .path = path};
    struct egress_verdict verdict;

    egress_decide(&policy, &ask, &verdict);
    return verdict;
}

static void routes_lead_to_what_models_are_asked_by(void **state)
{
    static const struct {
        const char *route, *method, *path;
        enum broker_format format;
    } rows[] = {
        {"anthropic", "POST", "/v1/messages", BROKER_ANTHROPIC},
        {"anthropic", "POST", "/messages", BROKER_ANTHROPIC},
        {"anthropic", "POST", "/v1/messages/count_tokens", BROKER_UNMETERED},
        {"anthropic", "GET", "/v1/models", BROKER_UNMETERED},
        {"openai", "POST", "/v1/responses", BROKER_OPENAI_RESPONSES},
        {"openai", "POST", "/chat/completions", BROKER_OPENAI_CHAT},
        {"openai", "POST", "/v1/embeddings", BROKER_OPENAI_OTHER},
        {"openai", "GET", "/v1/models/gpt-5", BROKER_UNMETERED},
        {"google", "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent", BROKER_GOOGLE},
        {"google", "POST", "/models/x:countTokens", BROKER_UNMETERED},
        {"mine", "PUT", "/ask/anything", BROKER_UNMETERED},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct egress_verdict verdict = of_route(rows[i].route, rows[i].method, rows[i].path);

        if (verdict.verdict != BROKER_PASS || verdict.format != rows[i].format)
            fail_msg("%s %s: %s", rows[i].route, rows[i].path, verdict.message);
        assert_string_equal(verdict.route->name, rows[i].route);
    }
}

static void and_to_nothing_else(void **state)
{
    static const struct {
        const char *route, *method, *path;
        enum err_code code;
    } rows[] = {
        {"anthropic", "GET", "/v1/messages", ERR_NOT_FOUND},
        {"anthropic", "POST", "/v1/files", ERR_NOT_FOUND},
        {"anthropic", "POST", "/v1/messages/batches", ERR_NOT_FOUND},
        {"anthropic", "POST", "/v1/messages/", ERR_NOT_FOUND},
        {"anthropic", "POST", "/v2/messages", ERR_NOT_FOUND},
        {"anthropic", "POST", "/v1/v1/messages", ERR_NOT_FOUND},
        {"anthropic", "POST", "/v1/responses", ERR_NOT_FOUND},
        {"openai", "POST", "/v1/fine_tuning/jobs", ERR_NOT_FOUND},
        {"openai", "DELETE", "/v1/models/x", ERR_NOT_FOUND},
        {"google", "POST", "/models/x:batchEmbedContents", ERR_NOT_FOUND},
        {"google", "POST", "/models/a/b:generateContent", ERR_NOT_FOUND},
        {"google", "POST", "/models/:generateContent", ERR_NOT_FOUND},
        {"mine", "GET", "/other", ERR_NOT_FOUND},
        {"nothing", "GET", "/", ERR_FORBIDDEN},
        {"anthropic", "POST", "/v1/messages%2f..%2ffiles", ERR_FORBIDDEN},
        {"anthropic", "POST", "/v1//messages", ERR_FORBIDDEN},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct egress_verdict verdict = of_route(rows[i].route, rows[i].method, rows[i].path);

        if (verdict.verdict != BROKER_DENY || verdict.code != rows[i].code)
            fail_msg("%s %s: verdict %d, code %d", rows[i].route, rows[i].path, verdict.verdict,
                     verdict.code);
        assert_true(*verdict.message && *verdict.reason);
    }
}

static void websockets_of_models_are_told_to_come_without(void **state)
{
    const struct broker_ask ask = {.way = BROKER_ROUTE,
                                   .route = "openai",
                                   .method = "GET",
                                   .path = "/v1/responses",
                                   .is_upgrade = true};
    struct egress_verdict verdict;

    (void) state;
    egress_decide(&policy, &ask, &verdict);
    assert_int_equal(verdict.code, ERR_UPGRADE_REQUIRED);
    assert_false(verdict.is_violation);
}

/* --- hosts ----------------------------------------------------------------------------------- */

static struct egress_verdict of_host(enum broker_way way, const char *host, uint16_t port,
                                     const char *method, const char *path)
{
    const struct broker_ask ask = {
        .way = way, .host = host, .port = port, .method = method, .path = path};
    struct egress_verdict verdict;

    egress_decide(&policy, &ask, &verdict);
    return verdict;
}

static void connections_are_tunnelled_looked_into_or_refused(void **state)
{
    static const struct {
        const char *host;
        uint16_t port;
        enum broker_verdict verdict;
    } rows[] = {
        {"api.test", 443, BROKER_INTERCEPT}, {"api.test", 8443, BROKER_DENY},
        {"a.open.test", 443, BROKER_TUNNEL}, {"open.test", 443, BROKER_DENY},
        {"odd.test", 8443, BROKER_TUNNEL},   {"odd.test", 443, BROKER_DENY},
        {"db.test", 5432, BROKER_DENY},      {"other.test", 443, BROKER_DENY},
        {"127.0.0.1", 443, BROKER_DENY},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct egress_verdict verdict =
            of_host(BROKER_CONNECT, rows[i].host, rows[i].port, NULL, NULL);

        if (verdict.verdict != rows[i].verdict)
            fail_msg("%s:%u: %d", rows[i].host, rows[i].port, verdict.verdict);
    }
    assert_int_equal(of_host(BROKER_TCP, "db.test", 5432, NULL, NULL).verdict, BROKER_TUNNEL);
    assert_int_equal(of_host(BROKER_TCP, "db.test", 22, NULL, NULL).verdict, BROKER_DENY);
    assert_int_equal(of_host(BROKER_TCP, "odd.test", 8443, NULL, NULL).verdict, BROKER_DENY);
}

static void requests_are_matched_one_by_one(void **state)
{
    struct egress_verdict verdict = of_host(BROKER_REQUEST, "api.test", 443, "GET", "/a/b");

    (void) state;
    assert_int_equal(verdict.verdict, BROKER_PASS);
    assert_string_equal(verdict.rule->credential, "key");
    verdict = of_host(BROKER_REQUEST, "api.test", 443, "GET", "/b/c");
    assert_int_equal(verdict.verdict, BROKER_PASS);
    assert_null(verdict.rule->credential);
    assert_int_equal(of_host(BROKER_REQUEST, "api.test", 443, "POST", "/a/b").verdict, BROKER_DENY);
    assert_int_equal(of_host(BROKER_REQUEST, "api.test", 443, "GET", "/c").verdict, BROKER_DENY);
    verdict = of_host(BROKER_REQUEST, "api.test", 443, "GET", "/a/..%2Fb");
    assert_true(verdict.is_violation);
    assert_int_equal(of_host(BROKER_HTTP, "a.open.test", 80, "GET", "/x//y").verdict, BROKER_PASS);
    assert_int_equal(of_host(BROKER_HTTP, "a.open.test", 81, "GET", "/").verdict, BROKER_DENY);
}

static void what_is_not_named_is_tunnelled_only_when_the_policy_says_so(void **state)
{
    static const char open_rules[] = "{\"default\":\"allow\"}";
    AUTO(egress_policy) struct egress_policy open = EGRESS_POLICY_INIT;
    struct broker_ask ask = {.way = BROKER_CONNECT, .host = "any.test", .port = 443};
    struct egress_verdict verdict;

    (void) state;
    assert_int_equal(egress_policy_parse(open_rules, strlen(open_rules), &open, NULL), 0);
    egress_decide(&open, &ask, &verdict);
    assert_int_equal(verdict.verdict, BROKER_TUNNEL);
    ask.port = 25;
    egress_decide(&open, &ask, &verdict);
    assert_int_equal(verdict.verdict, BROKER_DENY);
}

/* --- labels ---------------------------------------------------------------------------------- */

static void a_label_is_for_one_place(void **state)
{
    (void) state;
    assert_true(
        egress_label_fits(&policy, "burrow-anthropic", "anthropic", "k", EGRESS_API_ANTHROPIC));
    assert_false(
        egress_label_fits(&policy, "burrow-openai", "anthropic", "k", EGRESS_API_ANTHROPIC));
    assert_false(egress_label_fits(&policy, "burrow-", "anthropic", "k", EGRESS_API_ANTHROPIC));
    assert_true(egress_label_fits(&policy, "sk-mine", "anthropic", "k", EGRESS_API_ANTHROPIC));
    /* A host with a credential: by its name, its API, or a route that has the same. */
    assert_true(egress_label_fits(&policy, "burrow-key", NULL, "key", EGRESS_API_NONE));
    assert_true(egress_label_fits(&policy, "burrow-openai", NULL, "key", EGRESS_API_OPENAI));
    assert_true(egress_label_fits(&policy, "burrow-google", NULL, "k", EGRESS_API_NONE));
    assert_false(egress_label_fits(&policy, "burrow-google", NULL, "key", EGRESS_API_NONE));
    assert_false(egress_label_fits(&policy, "burrow-key", NULL, NULL, EGRESS_API_NONE));
    /* A key of our own API is nobody's business. */
    assert_false(egress_label_fits(&policy, "burrow_abc", "anthropic", "k", EGRESS_API_ANTHROPIC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_lead_to_what_models_are_asked_by),
        cmocka_unit_test(and_to_nothing_else),
        cmocka_unit_test(websockets_of_models_are_told_to_come_without),
        cmocka_unit_test(connections_are_tunnelled_looked_into_or_refused),
        cmocka_unit_test(requests_are_matched_one_by_one),
        cmocka_unit_test(what_is_not_named_is_tunnelled_only_when_the_policy_says_so),
        cmocka_unit_test(a_label_is_for_one_place),
    };

    return cmocka_run_group_tests_name("egress_decide", tests, setup, teardown);
}
