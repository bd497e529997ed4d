#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/access/access.h"
#include "api/http/openapi.h"
#include "base/auto.h"

static void handle(struct http_request *request)
{
    (void) request;
}

static const struct http_route first_routes[] = {
    {"GET", "/things/{id}", handle, "Read \"one\"", .access = ACCESS_PUBLIC},
    {"POST", "/things", handle, "Make one", .request_schema = "{\"type\":\"object\"}"},
};

static const struct http_route second_routes[] = {
    {"DELETE", "/things/{id}", handle, "Remove one", .access = ACCESS_ADMIN},
    {"PUT", "/files/{id}/{path...}", handle, "Write a file", .reply_type = "text/plain"},
    {"GET", "/shell/{id}", handle, "A shell", .parameters = "{\"name\":\"a\"},{\"name\":\"b\"}",
     .replies = "{\"101\":{\"description\":\"a WebSocket\"}}"},
};

static const struct http_mount mounts[] = {
    {.name = "first", .routes = first_routes, .route_count = ARRAY_COUNT(first_routes)},
    {.name = "second",
     .routes = second_routes,
     .route_count = ARRAY_COUNT(second_routes),
     .error_schema = "{\"type\":\"string\"}"},
};

static json_t *document(void)
{
    AUTO(text) struct text out = TEXT_INIT(1 << 20);
    json_t *parsed;

    assert_int_equal(openapi_write(mounts, ARRAY_COUNT(mounts), "Title", "1.2.3", &out), 0);
    parsed = json_loads(text_string(&out), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(parsed);
    return parsed;
}

static void methods_of_one_path_share_an_item_across_dialects(void **state)
{
    json_t *root = document();
    json_t *paths = json_object_get(root, "paths");
    json_t *item = json_object_get(paths, "/things/{id}");

    (void) state;
    assert_int_equal(json_object_size(paths), 4);
    assert_int_equal(json_object_size(item), 2);
    assert_string_equal(json_string_value(json_array_get(
                            json_object_get(json_object_get(item, "delete"), "tags"), 0)),
                        "second");
    assert_string_equal(json_string_value(json_object_get(json_object_get(item, "get"), "summary")),
                        "Read \"one\"");
    json_decref(root);
}

static void parameters_and_the_rest_of_a_path_are_named(void **state)
{
    json_t *root = document();
    json_t *item = json_object_get(json_object_get(root, "paths"), "/files/{id}/{path}");
    json_t *parameters = json_object_get(json_object_get(item, "put"), "parameters");

    (void) state;
    assert_int_equal(json_array_size(parameters), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(parameters, 1), "name")),
                        "path");
    json_decref(root);
}

static void a_row_may_say_more_about_parameters_and_answers(void **state)
{
    json_t *root = document();
    json_t *item = json_object_get(json_object_get(root, "paths"), "/shell/{id}");
    json_t *operation = json_object_get(item, "get");
    json_t *parameters = json_object_get(operation, "parameters");

    (void) state;
    assert_int_equal(json_array_size(parameters), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(parameters, 2), "name")),
                        "b");
    assert_int_equal(json_object_size(json_object_get(operation, "responses")), 1);
    assert_non_null(json_object_get(json_object_get(operation, "responses"), "101"));
    json_decref(root);
}

static const char *error_type(json_t *root, const char *path, const char *method)
{
    json_t *operation =
        json_object_get(json_object_get(json_object_get(root, "paths"), path), method);
    json_t *reply = json_object_get(json_object_get(operation, "responses"), "default");
    json_t *content = json_object_get(json_object_get(reply, "content"), "application/json");

    return json_string_value(json_object_get(json_object_get(content, "schema"), "type"));
}

static void a_dialect_may_have_errors_of_its_own_shape(void **state)
{
    json_t *root = document();

    (void) state;
    assert_string_equal(error_type(root, "/files/{id}/{path}", "put"), "string");
    assert_null(error_type(root, "/things", "post")); /* a reference to ours */
    json_decref(root);
}

static void only_public_routes_lift_the_key(void **state)
{
    json_t *root = document();
    json_t *item = json_object_get(json_object_get(root, "paths"), "/things/{id}");
    json_t *security = json_object_get(json_object_get(item, "get"), "security");

    (void) state;
    assert_non_null(security);
    assert_int_equal(json_array_size(security), 0);
    assert_null(json_object_get(json_object_get(item, "delete"), "security"));
    assert_int_equal(json_array_size(json_object_get(root, "security")), 1);
    json_decref(root);
}

static void a_text_too_small_is_said(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(64);

    (void) state;
    assert_true(openapi_write(mounts, ARRAY_COUNT(mounts), "Title", "1", &out) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_of_one_path_share_an_item_across_dialects),
        cmocka_unit_test(parameters_and_the_rest_of_a_path_are_named),
        cmocka_unit_test(a_row_may_say_more_about_parameters_and_answers),
        cmocka_unit_test(a_dialect_may_have_errors_of_its_own_shape),
        cmocka_unit_test(only_public_routes_lift_the_key),
        cmocka_unit_test(a_text_too_small_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
