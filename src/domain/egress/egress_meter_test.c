#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/egress/egress_meter.h"

#define DAY 86400000

static const struct egress_budget tokens_budget = {.tokens_per_day = 1000};
static const struct egress_budget money_budget = {.micros_per_day = 1000};
static const struct egress_budget minute_budget = {.requests_per_minute = 3};
static const struct egress_budget none;

static void requests_of_a_minute_are_never_more_than_it_says(void **state)
{
    struct egress_meter meter = {.day_ms = 0};
    struct egress_hold hold;

    (void) state;
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(egress_meter_check(&meter, &minute_budget, 0, 100 + i, 0, 0),
                         EGRESS_WITHIN);
        egress_meter_begin(&meter, 0, 100 + i, 0, 0, &hold);
    }
    assert_int_equal(egress_meter_check(&meter, &minute_budget, 0, 103, 0, 0), EGRESS_MINUTE);
    assert_int_equal(egress_meter_check(&meter, &minute_budget, 0, 159, 0, 0), EGRESS_MINUTE);
    /* The first of them is a minute ago. */
    assert_int_equal(egress_meter_check(&meter, &minute_budget, 0, 160, 0, 0), EGRESS_WITHIN);
    egress_meter_begin(&meter, 0, 160, 0, 0, &hold);
    assert_int_equal(egress_meter_check(&meter, &minute_budget, 0, 160, 0, 0), EGRESS_MINUTE);
    assert_int_equal(egress_meter_check(&meter, &minute_budget, 0, 100000, 0, 0), EGRESS_WITHIN);
    assert_int_equal(egress_meter_check(&meter, &none, 0, 160, 0, 0), EGRESS_WITHIN);
}

static void what_is_under_way_holds_its_part(void **state)
{
    struct egress_meter meter = {.day_ms = 0};
    struct egress_hold one, other;

    (void) state;
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 600, 0), EGRESS_WITHIN);
    egress_meter_begin(&meter, 0, 1, 600, 0, &one);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 600, 0), EGRESS_HELD_TOKENS);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 400, 0), EGRESS_WITHIN);
    egress_meter_begin(&meter, 0, 1, 400, 0, &other);
    assert_true(egress_meter_use(&meter, &tokens_budget, 0, 100, 0, &one));
    assert_int_equal(meter.held_tokens, 900);
    egress_meter_end(&meter, &one);
    assert_int_equal(meter.held_tokens, 400);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 500, 0), EGRESS_WITHIN);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 501, 0), EGRESS_HELD_TOKENS);
    egress_meter_end(&meter, &other);
    egress_meter_end(&meter, &other); /* again means nothing */
    assert_int_equal(meter.held_tokens, 0);
    assert_int_equal(meter.under_way, 0);
}

static void the_last_one_goes_alone_and_is_cut_when_it_is_used_up(void **state)
{
    struct egress_meter meter = {.day_ms = 0};
    struct egress_hold hold;

    (void) state;
    egress_meter_add(&meter, 0, 990, 0);
    /* Its estimate does not fit, and it is the only one. */
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 8000, 0), EGRESS_WITHIN);
    egress_meter_begin(&meter, 0, 1, 8000, 0, &hold);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 1, 0), EGRESS_HELD_TOKENS);
    assert_true(egress_meter_use(&meter, &tokens_budget, 0, 9, 0, &hold));
    assert_false(egress_meter_use(&meter, &tokens_budget, 0, 1, 0, &hold));
    egress_meter_end(&meter, &hold);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 1, 0), EGRESS_DAY_TOKENS);
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, 0, 1, 0, 0), EGRESS_WITHIN);
}

static void money_is_held_as_tokens_are(void **state)
{
    struct egress_meter meter = {.day_ms = 0};
    struct egress_hold hold;

    (void) state;
    egress_meter_begin(&meter, 0, 1, 10, 900, &hold);
    assert_int_equal(egress_meter_check(&meter, &money_budget, 0, 1, 10, 101), EGRESS_HELD_COST);
    assert_false(egress_meter_use(&meter, &money_budget, 0, 10, 1000, &hold));
    egress_meter_end(&meter, &hold);
    assert_int_equal(meter.held_micros, 0);
    assert_int_equal(egress_meter_check(&meter, &money_budget, 0, 1, 10, 1), EGRESS_DAY_COST);
}

static void a_new_day_begins_with_nothing_but_what_is_held(void **state)
{
    struct egress_meter meter = {.day_ms = 0};
    struct egress_hold hold;

    (void) state;
    egress_meter_begin(&meter, 0, 1, 500, 0, &hold);
    assert_false(egress_meter_use(&meter, &tokens_budget, 0, 1000, 0, &hold));
    assert_int_equal(egress_meter_check(&meter, &tokens_budget, DAY, 1, 600, 0), EGRESS_WITHIN);
    assert_int_equal(meter.tokens, 0);
    egress_meter_end(&meter, &hold);
}

/* Whatever is asked and told, in any order: what passes a budget is at most what one request used
 * that was let go last. */
static void no_order_passes_a_budget_by_more_than_one_request(void **state)
{
    enum { REQUESTS = 8, ROUNDS = 20000, LARGEST = 300 };
    uint64_t random = 42;
    struct egress_meter meter = {.day_ms = 0};
    struct egress_hold holds[REQUESTS] = {{.tokens = 0}};
    uint64_t left[REQUESTS] = {0};
    uint64_t most = 0;

    (void) state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t i;
        uint64_t amount;

        random = random * 6364136223846793005u + 1442695040888963407u;
        i = (random >> 33) % REQUESTS;
        amount = 1 + (random >> 40) % LARGEST;
        if (!holds[i].is_held) {
            /* Estimates are not too small here, as they are not for well-known requests. */
            if (egress_meter_check(&meter, &tokens_budget, 0, 1, LARGEST, 0) != EGRESS_WITHIN)
                continue;
            egress_meter_begin(&meter, 0, 1, LARGEST, 0, &holds[i]);
            left[i] = amount;
        } else {
            uint64_t used = left[i] < 50 ? left[i] : 50;
            bool goes_on = egress_meter_use(&meter, &tokens_budget, 0, used, 0, &holds[i]);

            left[i] -= used;
            if (!goes_on || !left[i])
                egress_meter_end(&meter, &holds[i]);
        }
        most = meter.tokens > most ? meter.tokens : most;
    }
    assert_true(most >= tokens_budget.tokens_per_day);
    assert_true(most < tokens_budget.tokens_per_day + LARGEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_a_minute_are_never_more_than_it_says),
        cmocka_unit_test(what_is_under_way_holds_its_part),
        cmocka_unit_test(the_last_one_goes_alone_and_is_cut_when_it_is_used_up),
        cmocka_unit_test(money_is_held_as_tokens_are),
        cmocka_unit_test(a_new_day_begins_with_nothing_but_what_is_held),
        cmocka_unit_test(no_order_passes_a_budget_by_more_than_one_request),
    };

    return cmocka_run_group_tests_name("egress_meter", tests, NULL, NULL);
}
