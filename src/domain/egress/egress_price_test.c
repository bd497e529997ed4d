#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/egress/egress_price.h"

static const struct egress_prices no_own;

static void patterns_have_stars(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        {"a*", "abc", true},
        {"a*", "a", true},
        {"a*c", "abcbc", true},
        {"a*c", "abcb", false},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"a*b*c", "aXbYbZc", true},
        {"abc", "abc", true},
        {"abc", "ab", false},
        {"*-mini*", "gpt-5-mini-1", true},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (egress_pattern_fits(rows[i].pattern, rows[i].text) != rows[i].fits)
            fail_msg("%s %s", rows[i].pattern, rows[i].text);
}

static void the_first_pattern_that_fits_counts(void **state)
{
    (void) state;
    assert_int_equal(egress_price_find(&no_own, "claude-opus-4-1-20250805")->input, 15000000);
    assert_int_equal(egress_price_find(&no_own, "claude-opus-4-5-20251101")->input, 5000000);
    assert_int_equal(egress_price_find(&no_own, "gpt-5.1-mini")->input, 250000);
    assert_int_equal(egress_price_find(&no_own, "gpt-5.1-codex")->input, 1250000);
    assert_int_equal(egress_price_find(&no_own, "anthropic/claude-sonnet-4")->output, 15000000);
    assert_null(egress_price_find(&no_own, "scripted"));
    assert_null(egress_price_find(&no_own, ""));
}

static void costs_are_exact_and_rounded_up(void **state)
{
    const struct egress_tokens tokens = {
        .input = 1000, .output = 10, .reasoning = 5, .cache_read = 100, .cache_write = 4};
    const struct egress_tokens one = {.cache_read = 1};
    struct egress_cost cost = egress_cost_of(&no_own, "claude-sonnet-4-5", &tokens);

    (void) state;
    /* 1000 * 3 + 15 * 15 + 100 * 0.3 + 4 * 3.75 */
    assert_true(cost.is_known);
    assert_int_equal(cost.micros, 3270);
    assert_int_equal(cost.counted, 3270);
    assert_int_equal(egress_cost_of(&no_own, "claude-sonnet-4-5", &one).micros, 1);
}

static void what_is_not_known_costs_null_and_counts_as_the_dearest(void **state)
{
    const struct egress_tokens tokens = {.input = 1000000, .output = 1000000};
    struct egress_cost cost = egress_cost_of(&no_own, "nobody-knows", &tokens);

    (void) state;
    assert_false(cost.is_known);
    assert_int_equal(cost.micros, 0);
    assert_int_equal(cost.counted, 20000000 + 120000000);
}

static void an_operators_own_come_first(void **state)
{
    struct egress_prices prices;
    struct error err = ERROR_INIT;
    static const char *const bad[] = {"x",          "x=1",    "=1/2",     "x=1/2/3/4/5",
                                      "x=a/b",      "x=-1/2", "x=1/2,,y", "x=1/99999999999999",
                                      "x=1/2/3/4,y"};

    (void) state;
    assert_int_equal(
        egress_prices_read("claude-sonnet-*=1/2,mine*=0.5/1.5/0.05/0.6", &prices, &err), 0);
    assert_int_equal(egress_price_find(&prices, "claude-sonnet-4")->input, 1000000);
    assert_int_equal(egress_price_find(&prices, "claude-sonnet-4")->cache_read, 1000000);
    assert_int_equal(egress_price_find(&prices, "mine-2")->cache_write, 600000);
    assert_int_equal(egress_price_find(&prices, "gpt-4o")->input, 2500000);
    egress_prices_done(&prices);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (egress_prices_read(bad[i], &prices, &err) == 0)
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(err.code, ERR_INVALID);
    }
    assert_int_equal(egress_prices_read(NULL, &prices, &err), 0);
    egress_prices_done(&prices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_have_stars),
        cmocka_unit_test(the_first_pattern_that_fits_counts),
        cmocka_unit_test(costs_are_exact_and_rounded_up),
        cmocka_unit_test(what_is_not_known_costs_null_and_counts_as_the_dearest),
        cmocka_unit_test(an_operators_own_come_first),
    };

    return cmocka_run_group_tests_name("egress_price", tests, NULL, NULL);
}
