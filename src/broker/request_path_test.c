#include "broker/broker_testing.h"
#include "broker/request_path.h"

static void a_path_has_one_form(void **state)
{
    static const char *const rows[][2] = {
        {"/a/b", "/a/b"},
        {"/", "/"},
        {"/a/./b/", "/a/b/"},
        {"/a/../b", "/b"},
        {"/a/b/..", "/a/"},
        {"/../../a", "/a"},
        {"/a/%2e%2e/b", "/b"},
        {"/a/%2E/b", "/a/b"},
        {"/%61%2d%7e", "/a-~"},
        {"/a%2fb", "/a%2Fb"},
        {"/a%20b", "/a%20b"},
        {"//a//b", "//a//b"},
        {"/...", "/..."},
        {"/a..b/.c", "/a..b/.c"},
        {"/group%2Fproject/x", "/group%2Fproject/x"},
        {"/..", "/"},
        {"/.", "/"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        const char *path = NULL;

        assert_int_equal(
            request_path_read(url_span(rows[i][0], strlen(rows[i][0])), &pool, &path, NULL), 0);
        assert_string_equal(path, rows[i][1]);
    }
}

static void a_path_of_two_readings_is_refused(void **state)
{
    static const char *const rows[] = {
        "",          "a",         "/a/..%2fb",     "/a/..%5cb",
        "/a/..\\b",  "/a\\..\\b", "/%252e%252e/b", "/%25252e%25252e/b",
        "/a/..;/b",  "/a/.;x/b",  "/a%00",         "/a%2500b",
        "/a%0d%0ab", "/a%7f",     "/%zz",          "/%",
        "/%2",       "/..%2f",    "/%2e%2e%2fb",   "/a/%5c..%5c",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        const char *path = NULL;

        if (request_path_read(url_span(rows[i], strlen(rows[i])), &pool, &path, NULL) == 0)
            fail_msg("'%s' was taken as '%s'", rows[i], path);
    }
}

static void a_route_is_the_first_segment(void **state)
{
    static const char *const rows[][3] = {
        {"/anthropic/v1/messages", "anthropic", "/v1/messages"},
        {"/a-b_2", "a-b_2", "/"},
        {"/a/", "a", "/"},
        {"/", NULL, NULL},
        {"//a", NULL, NULL},
        {"/A/b", NULL, NULL},
        {"/a%20/b", NULL, NULL},
        {"/favicon.ico", NULL, NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        const char *route = NULL, *rest = NULL;
        int r = request_path_route(rows[i][0], &pool, &route, &rest, NULL);

        assert_int_equal(r, rows[i][1] ? 0 : -1);
        if (r == 0) {
            assert_string_equal(route, rows[i][1]);
            assert_string_equal(rest, rows[i][2]);
        }
    }
}

static void a_parameter_is_taken_out_or_put_in(void **state)
{
    static const char *const rows[][3] = {
        {"a=b&key=x&c", NULL, "a=b&c"},
        {"key=x", NULL, NULL},
        {"%6bey=x&k%65y=y&a", NULL, "a"},
        {"key=x&a=b&key=y", "se cret", "key=se%20cret&a=b"},
        {"a=%", NULL, "a=%"},
        {"%zz=a&b", NULL, "b"},
        {"", "v", "key=v"},
        {"keys=1", "v", "keys=1&key=v"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        const char *query =
            request_query_edit(url_span(rows[i][0], strlen(rows[i][0])), "key", rows[i][1], &pool);

        if (!rows[i][2])
            assert_null(query);
        else
            assert_string_equal(query, rows[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_has_one_form),
        cmocka_unit_test(a_path_of_two_readings_is_refused),
        cmocka_unit_test(a_route_is_the_first_segment),
        cmocka_unit_test(a_parameter_is_taken_out_or_put_in),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
