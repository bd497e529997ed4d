#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/bridge/bridge_internal.h"
#include "base/id.h"

static void fill(char *name, size_t length)
{
    memset(name, 'a', length);
    name[length] = '\0';
}

static void sandboxes_are_named_in_base32(void **state)
{
    char name[200];

    (void) state;
    assert_true(bridge_name_is_sandbox("a"));
    assert_true(bridge_name_is_sandbox("mfrggzdfmy2tqnrzgezdgnbv"));
    assert_true(bridge_name_is_sandbox(id_new().text));
    fill(name, 128);
    assert_true(bridge_name_is_sandbox(name));
    fill(name, 129);
    assert_false(bridge_name_is_sandbox(name));
    assert_false(bridge_name_is_sandbox(""));
    assert_false(bridge_name_is_sandbox("A"));
    assert_false(bridge_name_is_sandbox("a1"));
    assert_false(bridge_name_is_sandbox("a8"));
    assert_false(bridge_name_is_sandbox("a-b"));
    assert_false(bridge_name_is_sandbox("a/b"));
    assert_false(bridge_name_is_sandbox("a\n"));
}

static void sessions_have_no_parent(void **state)
{
    char name[200];

    (void) state;
    assert_true(bridge_name_is_session("My-session_1.0"));
    fill(name, 128);
    assert_true(bridge_name_is_session(name));
    fill(name, 129);
    assert_false(bridge_name_is_session(name));
    assert_false(bridge_name_is_session(""));
    assert_false(bridge_name_is_session(".."));
    assert_false(bridge_name_is_session("a..b"));
    assert_false(bridge_name_is_session("a/b"));
    assert_false(bridge_name_is_session("a b"));
    assert_false(bridge_name_is_session("\xc3\xa9"));
}

static void tunnels_are_named_by_a_label(void **state)
{
    char name[80];

    (void) state;
    assert_true(bridge_name_is_tunnel("app"));
    assert_true(bridge_name_is_tunnel("a-1"));
    assert_true(bridge_name_is_tunnel("0"));
    fill(name, 63);
    assert_true(bridge_name_is_tunnel(name));
    fill(name, 64);
    assert_false(bridge_name_is_tunnel(name));
    assert_false(bridge_name_is_tunnel(""));
    assert_false(bridge_name_is_tunnel("-a"));
    assert_false(bridge_name_is_tunnel("a-"));
    assert_false(bridge_name_is_tunnel("a.b"));
    assert_false(bridge_name_is_tunnel("App"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sandboxes_are_named_in_base32),
        cmocka_unit_test(sessions_have_no_parent),
        cmocka_unit_test(tunnels_are_named_by_a_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
