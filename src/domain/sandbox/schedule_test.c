#include "base/memory.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/schedule.h"
#include "net/net_testing.h"

#define COUNT 200

static void sandboxes_come_out_in_the_order_of_their_times(void **state)
{
    AUTO(free) struct sandbox *sandboxes = mem_alloc_array(COUNT, sizeof(*sandboxes));
    struct schedule schedule = {.count = 0};
    uint64_t seed = 1, last = 0, now = 1000;
    struct sandbox *popped;
    size_t count = 0;

    (void) state;
    for (size_t i = 0; i < COUNT; i++)
        schedule_add(&schedule, &sandboxes[i], testing_number(&seed) % 1000);
    while ((popped = schedule_pop(&schedule, now))) {
        assert_true(popped->look_ns >= last);
        assert_int_equal(popped->place, 0);
        last = popped->look_ns;
        count++;
    }
    assert_int_equal(count, COUNT);
    schedule_done(&schedule);
}

static void sooner_counts_and_later_does_not(void **state)
{
    struct sandbox sandbox = {.place = 0};
    struct schedule schedule = {.count = 0};

    (void) state;
    schedule_add(&schedule, &sandbox, 50);
    schedule_add(&schedule, &sandbox, 80);
    assert_null(schedule_pop(&schedule, 49));
    assert_int_equal(sandbox.look_ns, 50);
    schedule_add(&schedule, &sandbox, 20);
    assert_int_equal(schedule.count, 1);
    assert_ptr_equal(schedule_pop(&schedule, 20), &sandbox);
    assert_null(schedule_pop(&schedule, UINT64_MAX));
    schedule_done(&schedule);
}

/* The model: a plain search for the smallest. */
static struct sandbox *smallest(struct sandbox *sandboxes)
{
    struct sandbox *found = NULL;

    for (size_t i = 0; i < COUNT; i++)
        if (sandboxes[i].place && (!found || sandboxes[i].look_ns < found->look_ns))
            found = &sandboxes[i];
    return found;
}

static void whatever_is_done_the_next_is_the_smallest(void **state)
{
    AUTO(free) struct sandbox *sandboxes = mem_alloc_array(COUNT, sizeof(*sandboxes));
    struct schedule schedule = {.count = 0};
    uint64_t seed = 7;

    (void) state;
    for (int step = 0; step < 20000; step++) {
        struct sandbox *sandbox = &sandboxes[testing_number(&seed) % COUNT];
        uint32_t what = testing_number(&seed) % 4;

        if (what < 2) {
            schedule_add(&schedule, sandbox, testing_number(&seed) % 5000);
        } else if (what == 2) {
            schedule_remove(&schedule, sandbox);
            assert_int_equal(sandbox->place, 0);
        } else {
            struct sandbox *expected = smallest(sandboxes);
            struct sandbox *popped = schedule_pop(&schedule, UINT64_MAX);

            assert_int_equal(popped != NULL, expected != NULL);
            if (popped)
                assert_int_equal(popped->look_ns, expected->look_ns);
        }
        for (size_t i = 0; step % 1000 == 0 && i < schedule.count; i++)
            assert_int_equal(schedule.items[i]->place, i + 1);
    }
    schedule_done(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sandboxes_come_out_in_the_order_of_their_times),
        cmocka_unit_test(sooner_counts_and_later_does_not),
        cmocka_unit_test(whatever_is_done_the_next_is_the_smallest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
