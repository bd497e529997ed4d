#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/caller.h"

static struct id mine, others, box, other_box, nobody;

static int make_ids(void **state)
{
    (void) state;
    mine = id_new();
    others = id_new();
    box = id_new();
    other_box = id_new();
    return 0;
}

/* scope; sees: own, others', the system's; sees of its own: its box, another box; writes, enters */
static const struct {
    enum caller_scope scope;
    bool own, others, system, box, other_box, writes, enters;
} scopes[] = {
    {CALLER_NOBODY, false, false, false, false, false, false, false},
    {CALLER_PORT, true, false, false, true, false, false, false},
    {CALLER_READ, true, false, false, true, true, false, false},
    {CALLER_SANDBOX, true, false, false, true, false, false, true},
    {CALLER_WRITE, true, false, false, true, true, true, true},
    {CALLER_ADMIN, true, true, true, true, true, true, true},
    {CALLER_SYSTEM, true, true, true, true, true, true, true},
};

static void each_scope_sees_and_does_what_it_may(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(scopes); i++) {
        struct caller caller = {.scope = scopes[i].scope, .owner = mine, .sandbox = box};

        assert_int_equal(caller_sees_owner(&caller, &mine), scopes[i].own);
        assert_int_equal(caller_sees_owner(&caller, &others), scopes[i].others);
        assert_int_equal(caller_sees_owner(&caller, &nobody), scopes[i].system);
        assert_int_equal(caller_sees_sandbox(&caller, &mine, &box), scopes[i].box);
        assert_int_equal(caller_sees_sandbox(&caller, &mine, &other_box), scopes[i].other_box);
        assert_int_equal(caller_sees_sandbox(&caller, &others, &box), scopes[i].others);
        assert_int_equal(caller_may_write(&caller), scopes[i].writes);
        assert_int_equal(caller_may_enter(&caller), scopes[i].enters);
    }
}

static void a_caller_without_an_owner_does_not_see_what_has_none(void **state)
{
    struct caller caller = {.scope = CALLER_WRITE};

    (void) state;
    assert_false(caller_sees_owner(&caller, &nobody));
}

static void the_system_sees_everything(void **state)
{
    struct caller caller = caller_system();

    (void) state;
    assert_true(caller_sees_sandbox(&caller, &others, &box));
    assert_string_equal(caller.owner.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_scope_sees_and_does_what_it_may),
        cmocka_unit_test(a_caller_without_an_owner_does_not_see_what_has_none),
        cmocka_unit_test(the_system_sees_everything),
    };

    return cmocka_run_group_tests(tests, make_ids, NULL);
}
