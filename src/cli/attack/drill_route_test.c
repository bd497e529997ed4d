#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/attack/drill_route.h"
#include "json/json_read.h"
/* After the headers it needs. */
#include <cmocka.h>

static const char document[] =
    "{\"paths\":{"
    "\"/things/{id}/parts/{part}\":{\"get\":{\"tags\":[\"ours\"],\"security\":[]},"
    "\"post\":{\"tags\":[\"ours\"],\"requestBody\":{\"content\":{\"application/json\":{\"schema\":"
    "{\"type\":\"object\",\"required\":[\"name\",\"count\",\"kind\",\"inner\"],\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"count\":{\"type\":\"integer\"},\"left\":{\"type\":\"string\"}"
    ","
    "\"kind\":{\"enum\":[\"one\",\"two\"]},\"inner\":{\"oneOf\":[{\"type\":\"array\"}]}}}}}}}},"
    "\"/burrow/v1/sandboxes/{id}/diff\":{\"get\":{\"tags\":[\"ours\"]}}}}";

struct found {
    struct pool pool;
    size_t count, public_count;
    const char *paths[4], *bodies[4];
    char methods[4][8];
};

static int found_take(void *context, const struct drill_route *route)
{
    static const struct drill_name names[] = {{"id", "a thing"}, {"part", "7"}};
    struct found *found = context;
    size_t at = found->count++;

    found->public_count += route->is_public;
    found->paths[at] = drill_route_path(route, names, ARRAY_COUNT(names), &found->pool);
    found->bodies[at] = drill_route_body(route, &found->pool);
    memcpy(found->methods[at], route->method, sizeof(route->method));
    assert_true(route->has_names);
    assert_string_equal(route->dialect, "ours");
    return 0;
}

static void routes_are_filled_with_names_and_the_smallest_body(void **state)
{
    AUTO(json) json_t *json = json_read(document, sizeof(document) - 1, NULL, NULL);
    struct found found = {.pool = POOL_INIT};

    (void) state;
    assert_non_null(json);
    assert_int_equal(drill_routes_walk(json, found_take, &found), 0);
    assert_int_equal(found.count, 3);
    assert_int_equal(found.public_count, 1);
    assert_string_equal(found.methods[0], "GET");
    assert_string_equal(found.paths[0], "/things/a thing/parts/7");
    assert_null(found.bodies[0]);
    assert_string_equal(found.methods[1], "POST");
    assert_string_equal(found.bodies[1],
                        "{\"name\":\"text\",\"count\":1,\"kind\":\"one\",\"inner\":[]}");
    /* One that says nothing without its query. */
    assert_string_equal(found.paths[2], "/burrow/v1/sandboxes/a thing/diff?from=nosuch");
    pool_done(&found.pool);
}

static int stop(void *context, const struct drill_route *route)
{
    (void) route;
    return ++*(int *) context == 2 ? -1 : 0;
}

static void a_walk_ends_when_it_is_told_to(void **state)
{
    AUTO(json) json_t *json = json_read(document, sizeof(document) - 1, NULL, NULL);
    int visited = 0;

    (void) state;
    assert_int_equal(drill_routes_walk(json, stop, &visited), -1);
    assert_int_equal(visited, 2);
}

static void an_empty_choice_is_a_text(void **state)
{
    static const char text[] = "{\"requestBody\":{\"content\":{\"application/json\":{\"schema\":"
                               "{\"required\":[\"a\"],\"properties\":{\"a\":{\"oneOf\":[]}}}}}}}";
    AUTO(json) json_t *operation = json_read(text, sizeof(text) - 1, NULL, NULL);
    const struct drill_route route = {.method = "PUT", .pattern = "/x", .operation = operation};
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    assert_string_equal(drill_route_body(&route, &pool), "{\"a\":\"text\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_are_filled_with_names_and_the_smallest_body),
        cmocka_unit_test(a_walk_ends_when_it_is_told_to),
        cmocka_unit_test(an_empty_choice_is_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
