#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "net/http/http_route.h"

#define TABLE(label, rows)                                                                         \
    {                                                                                              \
        .name = (label), .routes = (rows), .route_count = ARRAY_COUNT(rows)                        \
    }

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/", .summary = "root"},
    {.method = "GET", .pattern = "/a/b", .summary = "literal"},
    {.method = "GET", .pattern = "/a/{x}", .summary = "name"},
    {.method = "PUT", .pattern = "/a/{x}", .summary = "put name"},
    {.method = "GET", .pattern = "/a/{rest...}", .summary = "rest"},
    {.method = "GET", .pattern = "/a/b/c/d", .summary = "deep literal"},
    {.method = "GET", .pattern = "/{x}/b/{y}/e", .summary = "deep names"},
    {.method = "POST", .pattern = "/post/{id}", .summary = "post"},
    {.method = "HEAD", .pattern = "/own", .summary = "own head"},
    {.method = "GET", .pattern = "/own", .summary = "own get"},
    {.method = "GET", .pattern = "/slash/", .summary = "with slash"},
    {.method = "PUT", .pattern = "/files/{path...}", .summary = "files"},
};

static const struct http_mount table = TABLE("table", routes);

struct answer {
    struct pool pool;
    struct http_match match;
    const char *allowed;
    struct error error;
    const char *summary; /* NULL: nothing matched */
};

static void ask(const char *method, const char *path, struct answer *answer)
{
    AUTO(http_router) struct http_router *router = http_router_new();
    struct error error;

    *answer = (struct answer){.pool = POOL_INIT};
    assert_int_equal(http_router_mount(router, &table, &error), 0);
    if (http_router_match(router, method, url_span(path, strlen(path)), &answer->pool,
                          &answer->match, &answer->allowed, &answer->error) == 0)
        answer->summary = answer->match.route->summary;
}

static void expect_route(const char *method, const char *path, const char *summary)
{
    struct answer answer;

    ask(method, path, &answer);
    if (!answer.summary)
        fail_msg("%s %s: %s", method, path, answer.error.message);
    assert_string_equal(answer.summary, summary);
    assert_ptr_equal(answer.match.mount, &table);
    pool_done(&answer.pool);
}

static void expect_parameter(const char *method, const char *path, const char *name,
                             const char *value)
{
    struct answer answer;

    ask(method, path, &answer);
    assert_non_null(answer.summary);
    assert_string_equal(http_match_get(&answer.match, name), value);
    assert_null(http_match_get(&answer.match, "nonsense"));
    pool_done(&answer.pool);
}

static void expect_error(const char *method, const char *path, enum err_code code,
                         const char *allowed)
{
    struct answer answer;

    ask(method, path, &answer);
    assert_null(answer.summary);
    assert_int_equal(answer.error.code, code);
    if (allowed)
        assert_string_equal(answer.allowed, allowed);
    else
        assert_null(answer.allowed);
    if (code == ERR_METHOD)
        assert_ptr_equal(answer.match.mount, &table);
    else
        assert_null(answer.match.mount);
    pool_done(&answer.pool);
}

static void literals_win_over_names_over_rests(void **state)
{
    (void) state;
    expect_route("GET", "/a/b", "literal");
    expect_route("GET", "/a/z", "name");
    expect_route("GET", "/a/z/y", "rest");
    expect_route("GET", "/a/b/y", "rest");
    expect_route("GET", "/a/b/c/d", "deep literal");
}

static void a_wrong_turn_is_taken_back(void **state)
{
    (void) state;
    expect_route("GET", "/z/b/c/e", "deep names");
    expect_parameter("GET", "/z/b/c/e", "y", "c");
    expect_route("GET", "/a/b/c/e", "rest"); /* below /a the rest is nearer than {x}/b/{y}/e */
    expect_route("PUT", "/a/b", "put name"); /* the literal has no PUT */
}

static void the_root_is_a_path(void **state)
{
    (void) state;
    expect_route("GET", "/", "root");
    expect_error("GET", "//", ERR_NOT_FOUND, NULL);
    expect_error("POST", "/", ERR_METHOD, "GET, HEAD");
    expect_error("OPTIONS", "*", ERR_NOT_FOUND, NULL); /* not the root */
    expect_error("GET", "*", ERR_NOT_FOUND, NULL);
}

static void a_slash_at_the_end_is_another_path(void **state)
{
    (void) state;
    expect_route("GET", "/slash/", "with slash");
    expect_error("GET", "/slash", ERR_NOT_FOUND, NULL);
    expect_error("GET", "/slash//", ERR_NOT_FOUND, NULL);
    expect_error("POST", "/post/", ERR_NOT_FOUND, NULL); /* {id} is never empty */
    expect_error("GET", "/own/", ERR_NOT_FOUND, NULL);
}

static void a_rest_may_be_empty_but_its_slash_is_needed(void **state)
{
    (void) state;
    expect_parameter("PUT", "/files/", "path", "");
    expect_parameter("PUT", "/files/x", "path", "x");
    expect_parameter("PUT", "/files/x//y/", "path", "x//y/");
    expect_error("PUT", "/files", ERR_NOT_FOUND, NULL);
}

static void segments_are_decoded_before_they_are_compared(void **state)
{
    (void) state;
    expect_route("GET", "/%61/%62", "literal");
    expect_parameter("PUT", "/a/b%2Fc", "x", "b/c"); /* an escaped slash does not split */
    expect_parameter("PUT", "/a/%c3%a9+%20", "x", "\xc3\xa9+ ");
    expect_parameter("PUT", "/a/%252F", "x", "%2F"); /* once, not twice */
    expect_parameter("PUT", "/files/a%2Fb/c", "path", "a/b/c");
    expect_parameter("PUT", "/files/%2e%2e/x", "path", "../x");
}

static void broken_escapes_are_refused(void **state)
{
    (void) state;
    expect_error("GET", "/a/%", ERR_INVALID, NULL);
    expect_error("GET", "/a/%2", ERR_INVALID, NULL);
    expect_error("GET", "/a/%zz", ERR_INVALID, NULL);
    expect_error("GET", "/a/%00", ERR_INVALID, NULL);
    expect_error("GET", "/nowhere/%gg", ERR_INVALID, NULL);
}

static void other_methods_are_told_what_is_allowed(void **state)
{
    (void) state;
    expect_error("GET", "/post/1", ERR_METHOD, "POST");
    expect_error("HEAD", "/post/1", ERR_METHOD, "POST");
    expect_error("DELETE", "/a/z", ERR_METHOD, "PUT, GET, HEAD");
    expect_error("get", "/a/b", ERR_METHOD, "GET, HEAD"); /* methods have a case */
    expect_error("GET", "/nowhere", ERR_NOT_FOUND, NULL);
}

static void head_is_answered_by_get_unless_it_has_a_row(void **state)
{
    (void) state;
    expect_route("HEAD", "/a/b", "literal");
    expect_route("HEAD", "/own", "own head");
    expect_route("GET", "/own", "own get");
}

static void too_many_segments_are_not_found(void **state)
{
    char path[2 * (HTTP_SEGMENTS_MAX + 1) + 1];

    (void) state;
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 2 ? 'a' : '/';
    path[sizeof(path) - 1] = '\0';
    expect_error("GET", path, ERR_NOT_FOUND, NULL);
    path[sizeof(path) - 3] = '\0';
    expect_route("GET", path, "rest");
}

static void expect_refused(const struct http_mount *first, const struct http_mount *second,
                           enum err_code code, const char *part)
{
    AUTO(http_router) struct http_router *router = http_router_new();
    struct error error = ERROR_INIT;
    int r = http_router_mount(router, first, &error);

    if (r == 0 && second)
        r = http_router_mount(router, second, &error);
    assert_int_equal(r, -1);
    assert_int_equal(error.code, code);
    if (!strstr(error.message, part))
        fail_msg("'%s' does not say '%s'", error.message, part);
}

static void rows_of_two_tables_may_not_collide(void **state)
{
    static const struct http_route first[] = {{.method = "GET", .pattern = "/x/{id}"},
                                              {.method = "GET", .pattern = "/y/{rest...}"}};
    static const struct http_route same[] = {{.method = "GET", .pattern = "/x/{other}"}};
    static const struct http_route rest[] = {{.method = "GET", .pattern = "/y/{z...}"}};
    static const struct http_route fine[] = {{.method = "PUT", .pattern = "/x/{id}"},
                                             {.method = "GET", .pattern = "/x/id"},
                                             {.method = "GET", .pattern = "/y/{one}"}};
    static const struct http_mount one = TABLE("one", first), two = TABLE("two", same);
    static const struct http_mount three = TABLE("three", rest), four = TABLE("four", fine);
    AUTO(http_router) struct http_router *router = http_router_new();

    (void) state;
    expect_refused(&one, &two, ERR_CONFLICT,
                   "/x/{other} of two is already taken by /x/{id} of one");
    expect_refused(&one, &three, ERR_CONFLICT, "/y/{z...}");
    expect_refused(&one, &one, ERR_CONFLICT, "mount one");
    assert_int_equal(http_router_mount(router, &one, NULL), 0);
    assert_int_equal(http_router_mount(router, &four, NULL), 0);
}

static void malformed_patterns_are_refused(void **state)
{
    static const char *const patterns[] = {
        "",      "x",     "x/y",       "/{",       "/{}",    "/{x",
        "/a{x}", "/{x}b", "/{x...}/y", "/{x...}/", "/{...}", "/{1}/{2}/{3}/{4}/{5}/{6}/{7}/{8}/{9}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
        struct http_route row = {.method = "GET", .pattern = patterns[i]};
        struct http_mount mount = {.name = "bad", .routes = &row, .route_count = 1};
        AUTO(http_router) struct http_router *router = http_router_new();
        struct error error = ERROR_INIT;

        if (http_router_mount(router, &mount, &error) == 0)
            fail_msg("'%s' was mounted", patterns[i]);
        assert_int_equal(error.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literals_win_over_names_over_rests),
        cmocka_unit_test(a_wrong_turn_is_taken_back),
        cmocka_unit_test(the_root_is_a_path),
        cmocka_unit_test(a_slash_at_the_end_is_another_path),
        cmocka_unit_test(a_rest_may_be_empty_but_its_slash_is_needed),
        cmocka_unit_test(segments_are_decoded_before_they_are_compared),
        cmocka_unit_test(broken_escapes_are_refused),
        cmocka_unit_test(other_methods_are_told_what_is_allowed),
        cmocka_unit_test(head_is_answered_by_get_unless_it_has_a_row),
        cmocka_unit_test(too_many_segments_are_not_found),
        cmocka_unit_test(rows_of_two_tables_may_not_collide),
        cmocka_unit_test(malformed_patterns_are_refused),
    };

    return cmocka_run_group_tests_name("http_route", tests, NULL, NULL);
}
