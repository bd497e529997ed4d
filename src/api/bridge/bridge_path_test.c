#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/bridge/bridge_internal.h"

static void paths_inside_are_made_plain(void **state)
{
    static const struct {
        const char *path, *resolved;
    } rows[] = {
        {"/workspace", "/workspace"},
        {"/workspace/", "/workspace"},
        {"/workspace/a", "/workspace/a"},
        {"a", "/workspace/a"},
        {"", "/workspace"},
        {".", "/workspace"},
        {"./a//b/./c/", "/workspace/a/b/c"},
        {"a/../b", "/workspace/b"},
        {"../workspace/x", "/workspace/x"},
        {"../../../workspace/x", "/workspace/x"},
        {"/etc/../workspace/a", "/workspace/a"},
        {"//workspace//a", "/workspace/a"},
        {"/workspace/...", "/workspace/..."},
        {"/workspace/..a", "/workspace/..a"},
        {"/workspace/a b\n", "/workspace/a b\n"},
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_string_equal(bridge_path_resolve(&pool, rows[i].path), rows[i].resolved);
}

static void paths_that_lead_out_are_refused(void **state)
{
    static const char *const paths[] = {
        "/",          "/etc/passwd", "..",          "../x", "/workspace/..", "/workspace/../etc",
        "/workspac",  "/workspaces", "/workspacex", "/..",  "a/../..",       "/workspace/a/../../b",
        "/Workspace",
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
        assert_null(bridge_path_resolve(&pool, paths[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_inside_are_made_plain),
        cmocka_unit_test(paths_that_lead_out_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
