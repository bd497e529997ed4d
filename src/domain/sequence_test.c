/* The runner of sequences: order, failures, what is left out, and the end, which comes once. */
#include "domain/domain_testing.h"
#include "domain/sequence.h"

struct trip {
    struct sequence sequence;
    struct domain *domain;
    struct id id;
    struct text done; /* "one two ": the steps that were started */
    const char *fails;
    bool is_short; /* the second step is left out */
    int ended;
    struct error failure;
};

static void trip_step(struct trip *trip, const char *name)
{
    struct error failure = ERROR_INIT;

    text_format(&trip->done, "%s ", name);
    (void) error_set(&failure, ERR_CONFLICT, 0, "no way");
    sequence_next(&trip->sequence, trip->fails && strcmp(trip->fails, name) == 0 ? &failure : NULL);
}

static void trip_one(void *context)
{
    trip_step(context, "one");
}

static void trip_two(void *context)
{
    trip_step(context, "two");
}

static void trip_three(void *context)
{
    trip_step(context, "three");
}

static bool trip_is_long(const void *context)
{
    return !((const struct trip *) context)->is_short;
}

static void trip_end(void *context, const struct error *failure)
{
    struct trip *trip = context;

    trip->ended++;
    if (failure)
        trip->failure = *failure;
}

static const struct sequence_step trip_steps[] = {
    {"go there", .start = trip_one},
    {"look around", trip_two, .when = trip_is_long, .on_failure = SEQUENCE_WARNS},
    {"come back", trip_three, .also_closing = true},
    {.text = NULL},
};

static const struct sequence_table trip_table = {"trip", trip_steps, trip_end};

static void expect_trip(struct world *world, const char *fails, bool is_short, const char *done,
                        const char *message)
{
    struct trip trip = {.done = TEXT_INIT(100), .fails = fails, .is_short = is_short};

    sequence_begin(&trip.sequence, world->domain, &trip_table, &trip.id, &trip);
    assert_int_equal(trip.ended, 1);
    assert_string_equal(text_string(&trip.done), done);
    assert_string_equal(trip.failure.message, message);
    assert_int_equal(trip.failure.code,
                     *message ? fails ? ERR_CONFLICT : ERR_UNAVAILABLE : ERR_NONE);
    text_done(&trip.done);
}

static void steps_follow_each_other_and_the_end_comes_once(void **state)
{
    expect_trip(*state, NULL, false, "one two three ", "");
    expect_trip(*state, NULL, true, "one three ", "");
}

static void a_failure_ends_it_and_says_which_step_it_was(void **state)
{
    expect_trip(*state, "one", false, "one ", "go there: no way");
    expect_trip(*state, "three", false, "one two three ", "come back: no way");
}

static void what_it_can_do_without_does_not_end_it(void **state)
{
    expect_trip(*state, "two", false, "one two three ", "");
}

static void nothing_is_started_while_the_domain_closes(void **state)
{
    struct world *world = *state;
    struct trip trip = {.done = TEXT_INIT(100)};

    world->domain->stage = DOMAIN_CLOSING;
    sequence_begin(&trip.sequence, world->domain, &trip_table, &trip.id, &trip);
    assert_int_equal(trip.ended, 1);
    assert_int_equal(trip.failure.code, ERR_UNAVAILABLE);
    assert_string_equal(text_string(&trip.done), "");
    trip.sequence.step = &trip_steps[1]; /* it closes during the second: what must be is done */
    trip.ended = 0;
    sequence_next(&trip.sequence, NULL);
    assert_int_equal(trip.ended, 1);
    assert_string_equal(text_string(&trip.done), "three ");
    text_done(&trip.done);
    world->domain->stage = DOMAIN_OPEN;
}

static void it_can_be_printed(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(500);

    (void) state;
    sequence_print(&trip_table, &text);
    assert_string_equal(text_string(&text), "trip:\n"
                                            "    go there\n"
                                            "    look around, if need be, if it can\n"
                                            "    come back\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_follow_each_other_and_the_end_comes_once, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_failure_ends_it_and_says_which_step_it_was, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_it_can_do_without_does_not_end_it, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(nothing_is_started_while_the_domain_closes, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(it_can_be_printed, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
