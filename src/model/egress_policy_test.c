#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "model/egress_policy.h"
/* After the headers it needs. */
#include <cmocka.h>

static struct egress_policy policy_of(const char *json)
{
    struct egress_policy policy = EGRESS_POLICY_INIT;
    struct error err = ERROR_INIT;

    if (egress_policy_parse(json, strlen(json), &policy, &err) < 0)
        fail_msg("%s", err.message);
    return policy;
}

static void assert_refused(const char *json, const char *why)
{
    struct egress_policy policy = EGRESS_POLICY_INIT;
    struct error err = ERROR_INIT;

    if (egress_policy_parse(json, strlen(json), &policy, &err) == 0)
        fail_msg("taken: %s", json);
    assert_int_equal(err.code, ERR_INVALID);
    if (!strstr(err.message, why))
        fail_msg("%s: '%s' does not say '%s'", json, err.message, why);
}

static void the_example_is_read_and_written_in_one_form(void **state)
{
    static const char example[] =
        "{\"default\":\"deny\",\"rules\":[{\"host\":\"API.Anthropic.com.\",\"credential\":\"team\"}"
        ","
        "{\"host\":\"github.com\",\"credential\":\"gh-acme\",\"methods\":[\"GET\",\"POST\"],"
        "\"paths\":[\"/acme/web.git/**\"]},{\"host\":\"*.example.org\"},"
        "{\"host\":\"10.1.2.3\",\"port\":5432,\"protocol\":\"tcp\"}],"
        "\"models\":{\"anthropic\":\"team\",\"mine\":{\"api\":\"openai\",\"base\":\"https://x.org/"
        "v1/\"}},"
        "\"budget\":{\"requestsPerMinute\":120,\"tokensPerDay\":2000000,\"costPerDay\":\"5.00\"}}";
    static const char form[] =
        "{\"default\":\"deny\",\"rules\":[{\"host\":\"api.anthropic.com\",\"credential\":\"team\"},"
        "{\"host\":\"github.com\",\"credential\":\"gh-acme\",\"methods\":[\"GET\",\"POST\"],"
        "\"paths\":[\"/acme/web.git/**\"]},{\"host\":\"*.example.org\"},"
        "{\"host\":\"10.1.2.3\",\"port\":5432,\"protocol\":\"tcp\"}],"
        "\"models\":{\"anthropic\":{\"credential\":\"team\",\"api\":\"anthropic\"},"
        "\"mine\":{\"base\":\"https://x.org/v1\",\"api\":\"openai\"}},"
        "\"budget\":{\"requestsPerMinute\":120,\"tokensPerDay\":2000000,\"costPerDay\":\"5.00\"}}";
    AUTO(egress_policy) struct egress_policy policy = policy_of(example), again;
    AUTO(text) struct text text = TEXT_INIT(EGRESS_POLICY_MAX);
    struct json_writer json;

    (void) state;
    json_writer_init_text(&json, &text);
    egress_policy_write(&json, &policy);
    assert_int_equal(json_writer_finish(&json), 0);
    assert_string_equal(text_string(&text), form);
    again = policy_of(form);
    assert_int_equal(again.budget.micros_per_day, 5000000);
    assert_int_equal(again.rules[3].port, 5432);
}

static void what_cannot_be_meant_is_refused_by_name(void **state)
{
    (void) state;
    assert_refused("{\"rules\":[{\"host\":\"*\",\"credential\":\"x\"}]}", "rules[0].credential");
    assert_refused("{\"rules\":[{\"host\":\"*.com\",\"credential\":\"x\"}]}",
                   "rules[0].credential");
    assert_refused("{\"rules\":[{\"host\":\"https://x.org\"}]}", "rules[0].host");
    assert_refused("{\"rules\":[{\"host\":\"x.org:443\"}]}", "rules[0].host");
    assert_refused("{\"rules\":[{\"host\":\"a.*.org\"}]}", "rules[0].host");
    assert_refused("{\"rules\":[{\"host\":\"x..org\"}]}", "rules[0].host");
    assert_refused("{\"rules\":[{\"host\":\"\"}]}", "rules[0].host");
    assert_refused("{\"rules\":[{}]}", "host");
    assert_refused("{\"rules\":[{\"host\":\"x.org\",\"port\":0}]}", "port");
    assert_refused("{\"rules\":[{\"host\":\"x.org\",\"protocol\":\"tcp\"}]}", "protocol");
    assert_refused("{\"rules\":[{\"host\":\"*.x.org\",\"port\":1,\"protocol\":\"tcp\"}]}", "host");
    assert_refused("{\"rules\":[{\"host\":\"x.org\",\"methods\":[\"get\"]}]}", "methods");
    assert_refused("{\"rules\":[{\"host\":\"x.org\",\"paths\":[\"a\"]}]}", "paths");
    assert_refused("{\"rules\":[{\"host\":\"x.org\",\"allow\":true}]}", "allow");
    assert_refused("{\"models\":{\"Anthropic\":\"x\"}}", "models");
    assert_refused("{\"models\":{\"anthropic\":{\"base\":\"https://u:p@x.org\"}}}", "base");
    assert_refused("{\"models\":{\"anthropic\":{\"base\":\"file:///etc\"}}}", "base");
    assert_refused("{\"models\":{\"anthropic\":{\"paths\":[\"/**\"]}}}", "paths");
    assert_refused("{\"models\":{\"mine\":{\"api\":\"other\"}}}", "api");
    assert_refused("{\"budget\":{\"costPerDay\":\"-1\"}}", "costPerDay");
    assert_refused("{\"budget\":{\"costPerDay\":\"1.1234567\"}}", "costPerDay");
    assert_refused("{\"budget\":{\"tokensPerDay\":0}}", "tokensPerDay");
    assert_refused("{\"default\":\"maybe\"}", "default");
    assert_refused("{\"rule\":[]}", "rule");
}

static void hosts_match_exactly_or_by_what_they_end_with(void **state)
{
    (void) state;
    assert_true(egress_host_matches("x.org", "x.org"));
    assert_false(egress_host_matches("x.org", "a.x.org"));
    assert_false(egress_host_matches("x.org", "x.org.evil.com"));
    assert_true(egress_host_matches("*.x.org", "a.x.org"));
    assert_true(egress_host_matches("*.x.org", "a.b.x.org"));
    assert_false(egress_host_matches("*.x.org", "x.org"));
    assert_false(egress_host_matches("*.x.org", "evilx.org"));
    assert_false(egress_host_matches("*.x.org", ".x.or"));
    assert_true(egress_host_matches("*", "anything"));
}

static void the_first_rule_that_matches_counts(void **state)
{
    AUTO(egress_policy)
    struct egress_policy policy = policy_of(
        "{\"rules\":[{\"host\":\"x.org\",\"methods\":[\"GET\"],\"paths\":[\"/a/**\",\"/b\"]},"
        "{\"host\":\"x.org\",\"port\":8443}]}");
    const struct egress_rule *narrow = &policy.rules[0], *other = &policy.rules[1];

    (void) state;
    assert_true(egress_rule_names(narrow, "x.org", 443));
    assert_true(egress_rule_names(narrow, "x.org", 80));
    assert_false(egress_rule_names(narrow, "x.org", 8443));
    assert_true(egress_rule_names(other, "x.org", 8443));
    assert_true(egress_rule_takes(narrow, "GET", "/a/c/d"));
    assert_true(egress_rule_takes(narrow, "GET", "/b"));
    assert_false(egress_rule_takes(narrow, "GET", "/b/c"));
    assert_false(egress_rule_takes(narrow, "GET", "/ab"));
    assert_false(egress_rule_takes(narrow, "POST", "/b"));
    assert_false(egress_rule_takes(narrow, "BREW", "/b"));
    assert_true(egress_rule_takes(other, "BREW", "/anything"));
    assert_true(egress_rule_is_narrow(narrow));
    assert_false(egress_rule_is_narrow(other));
}

static void money_is_exact(void **state)
{
    static const struct {
        const char *text;
        int64_t micros;
        const char *shown;
    } rows[] = {{"5", 5000000, "5.00"},         {"5.00", 5000000, "5.00"},
                {"0.5", 500000, "0.50"},        {"0.000001", 1, "0.000001"},
                {"12.345", 12345000, "12.345"}, {"0", 0, "0.00"}};
    static const char *const bad[] = {"",    ".",         "-1", "1e3",
                                      "1,5", "1.0000000", " 1", "9999999999999"};
    char shown[EGRESS_MONEY_SIZE];
    int64_t micros;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(egress_money_parse(rows[i].text, &micros), 0);
        assert_int_equal(micros, rows[i].micros);
        egress_money_format(micros, shown);
        assert_string_equal(shown, rows[i].shown);
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_true(egress_money_parse(bad[i], &micros) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_read_and_written_in_one_form),
        cmocka_unit_test(what_cannot_be_meant_is_refused_by_name),
        cmocka_unit_test(hosts_match_exactly_or_by_what_they_end_with),
        cmocka_unit_test(the_first_rule_that_matches_counts),
        cmocka_unit_test(money_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
