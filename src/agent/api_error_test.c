#include <jansson.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/api_error.h"

static json_t *written(const struct api_error *error)
{
    AUTO(text) struct text body = TEXT_INIT(65536);
    struct clock_manual clock;
    json_t *value;

    clock_manual_init(&clock, 0);
    api_error_write(error, &clock.clock, &body);
    value = json_loads(text_string(&body), 0, NULL);
    assert_non_null(value);
    return value;
}

static const char *text_of(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void the_body_has_the_shape_clients_expect(void **state)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    json_t *body;

    (void) state;
    error.operation = "file.read";
    error.suggestion = "look elsewhere";
    assert_int_equal(api_error_set(&error, API_FILE_NOT_FOUND, "no '%s'", "x"), -1);
    body = written(&error);
    assert_string_equal(text_of(body, "code"), "FILE_NOT_FOUND");
    assert_string_equal(text_of(body, "message"), "no 'x'");
    assert_string_equal(text_of(body, "operation"), "file.read");
    assert_string_equal(text_of(body, "suggestion"), "look elsewhere");
    assert_string_equal(text_of(body, "timestamp"), "1970-01-01T00:00:00.000Z");
    assert_int_equal(json_integer_value(json_object_get(body, "httpStatus")), 404);
    assert_int_equal(json_object_size(json_object_get(body, "context")), 0);
    json_decref(body);
}

static void what_is_not_set_is_left_out(void **state)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    json_t *body;

    (void) state;
    api_error_fill(&error, API_INTERNAL_ERROR, "x");
    body = written(&error);
    assert_null(json_object_get(body, "operation"));
    assert_null(json_object_get(body, "suggestion"));
    assert_true(json_is_object(json_object_get(body, "context")));
    json_decref(body);
}

static void a_field_becomes_a_validation_error(void **state)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    json_t *body, *first;

    (void) state;
    assert_int_equal(api_error_field(&error, "cwd", "is \"odd\""), -1);
    body = written(&error);
    first =
        json_array_get(json_object_get(json_object_get(body, "context"), "validationErrors"), 0);
    assert_string_equal(text_of(body, "code"), "VALIDATION_FAILED");
    assert_int_equal(json_integer_value(json_object_get(body, "httpStatus")), 400);
    assert_string_equal(text_of(first, "field"), "cwd");
    assert_string_equal(text_of(first, "message"), "is \"odd\"");
    assert_non_null(text_of(first, "code"));
    json_decref(body);
}

/* Statuses of the specification, one per group and those that clients act upon. */
static void codes_have_their_statuses(void **state)
{
    static const struct {
        enum api_code code;
        const char *text;
        int status;
    } rows[] = {
        {API_PROCESS_NOT_FOUND, "PROCESS_NOT_FOUND", 404},
        {API_INVALID_COMMAND, "INVALID_COMMAND", 400},
        {API_GIT_AUTH_FAILED, "GIT_AUTH_FAILED", 401},
        {API_READ_ONLY, "READ_ONLY", 403},
        {API_PROCESS_READY_TIMEOUT, "PROCESS_READY_TIMEOUT", 408},
        {API_SESSION_ALREADY_EXISTS, "SESSION_ALREADY_EXISTS", 409},
        {API_SESSION_TERMINATED, "SESSION_TERMINATED", 410},
        {API_FILE_TOO_LARGE, "FILE_TOO_LARGE", 413},
        {API_COMMAND_EXECUTION_ERROR, "COMMAND_EXECUTION_ERROR", 500},
        {API_PYTHON_NOT_AVAILABLE, "PYTHON_NOT_AVAILABLE", 501},
        {API_GIT_NETWORK_ERROR, "GIT_NETWORK_ERROR", 502},
        {API_CONTAINER_UNAVAILABLE, "CONTAINER_UNAVAILABLE", 503},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_string_equal(api_code_text(rows[i].code), rows[i].text);
        assert_int_equal(api_code_status(rows[i].code), rows[i].status);
    }
    for (int code = 0; code < API_CODE_COUNT; code++)
        assert_in_range(api_code_status((enum api_code) code), 400, 503);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_body_has_the_shape_clients_expect),
        cmocka_unit_test(what_is_not_set_is_left_out),
        cmocka_unit_test(a_field_becomes_a_validation_error),
        cmocka_unit_test(codes_have_their_statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
