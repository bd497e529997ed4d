#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/cgroup/cgroup_weight.h"
#include "launcher/residents/owner_weight.h"

#define MANY 480

static struct owner_use uses[1024];
static size_t count;

static struct id owner_of(uint8_t number)
{
    uint8_t bytes[ID_RANDOM_SIZE] = {number};

    return id_from_bytes(bytes);
}

static void add(uint8_t owner, size_t sandboxes, uint64_t used_us)
{
    for (size_t i = 0; i < sandboxes; i++)
        uses[count++] = (struct owner_use){
            .owner = owner_of(owner), .used_us = used_us, .weight = CGROUP_WEIGHT_FULL};
}

/* The sum of the new weights of an owner's sandboxes that use anything. */
static unsigned int busy_weight(uint8_t owner)
{
    struct id id = owner_of(owner);
    unsigned int sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(uses[i].owner.text, id.text) == 0 && uses[i].used_us)
            sum += uses[i].new_weight;
    }
    return sum;
}

static void take_new_weights(void)
{
    for (size_t i = 0; i < count; i++)
        uses[i].weight = uses[i].new_weight;
}

static int begin(void **state)
{
    (void) state;
    count = 0;
    return 0;
}

static void nobody_is_no_trouble(void **state)
{
    (void) state;
    owner_weight_divide(uses, 0);
}

static void many_sandboxes_of_one_owner_are_one_part(void **state)
{
    (void) state;
    add(1, MANY, 4000);
    add(2, 1, 80000);
    owner_weight_divide(uses, count);
    assert_int_equal(busy_weight(2), CGROUP_WEIGHT_FULL);
    assert_in_range(busy_weight(1), CGROUP_WEIGHT_FULL * 9 / 10, CGROUP_WEIGHT_FULL * 11 / 10);
}

static void owners_are_told_apart_in_any_order(void **state)
{
    (void) state;
    for (uint8_t i = 0; i < 40; i++)
        add(i % 2 ? 1 : 2, 1, i % 2 || i == 0 ? 50000 : 0);
    owner_weight_divide(uses, count);
    assert_int_equal(busy_weight(2), CGROUP_WEIGHT_FULL);
    assert_int_equal(busy_weight(1), CGROUP_WEIGHT_FULL);
}

static void one_that_is_busy_beside_many_that_sleep_keeps_its_weight(void **state)
{
    (void) state;
    add(1, MANY, 200);
    add(1, 1, 900000);
    add(2, 1, 900000);
    owner_weight_divide(uses, count);
    for (size_t i = 0; i < count; i++)
        assert_true(uses[i].new_weight > CGROUP_WEIGHT_FULL * 3 / 4);
}

static void who_uses_little_has_the_full_weight(void **state)
{
    (void) state;
    add(1, 100, 200); /* 20 ms of 2 s */
    add(2, 1, 1000000);
    add(3, 1, 1000000);
    owner_weight_divide(uses, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(uses[i].new_weight, CGROUP_WEIGHT_FULL);
}

static void a_weight_falls_at_once_and_rises_slowly(void **state)
{
    unsigned int turns = 0;

    (void) state;
    add(1, 64, 20000);
    add(2, 1, 500000);
    owner_weight_divide(uses, count);
    take_new_weights();
    assert_in_range(busy_weight(1), CGROUP_WEIGHT_FULL * 9 / 10, CGROUP_WEIGHT_FULL * 11 / 10);
    for (size_t i = 0; i < count; i++)
        uses[i].used_us = strcmp(uses[i].owner.text, owner_of(1).text) == 0 ? 0 : 500000;
    do {
        unsigned int before = uses[0].weight;

        owner_weight_divide(uses, count);
        assert_true(uses[0].new_weight <= 2 * before + 2);
        take_new_weights();
        turns++;
    } while (uses[0].weight < CGROUP_WEIGHT_FULL && turns < 100);
    assert_in_range(turns, 5, 10);
}

static void small_changes_are_left_alone(void **state)
{
    (void) state;
    add(1, 10, 50000);
    add(2, 1, 500000);
    owner_weight_divide(uses, count);
    take_new_weights();
    uses[0].used_us += 5000;
    owner_weight_divide(uses, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(uses[i].new_weight, uses[i].weight);
}

static void thousands_keep_some_weight(void **state)
{
    (void) state;
    add(1, 1023, 1000);
    add(2, 1, 1);
    owner_weight_divide(uses, count);
    for (size_t i = 0; i < count; i++)
        assert_in_range(uses[i].new_weight, 1, CGROUP_WEIGHT_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_is_no_trouble, begin),
        cmocka_unit_test_setup(many_sandboxes_of_one_owner_are_one_part, begin),
        cmocka_unit_test_setup(owners_are_told_apart_in_any_order, begin),
        cmocka_unit_test_setup(one_that_is_busy_beside_many_that_sleep_keeps_its_weight, begin),
        cmocka_unit_test_setup(who_uses_little_has_the_full_weight, begin),
        cmocka_unit_test_setup(a_weight_falls_at_once_and_rises_slowly, begin),
        cmocka_unit_test_setup(small_changes_are_left_alone, begin),
        cmocka_unit_test_setup(thousands_keep_some_weight, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
