#include <string.h>

#include "agent/agent_test.h"
#include "agent/command/execute_request.h"
#include "json/json_read.h"

struct reading {
    struct pool pool;
    json_t *body;
    struct execute_request request;
    struct api_error error;
    int result;
};

static void read_json(struct reading *reading, const char *text)
{
    *reading = (struct reading){.error = API_ERROR_INIT};
    reading->body = json_read(text, strlen(text), NULL, NULL);
    assert_non_null(reading->body);
    reading->result =
        execute_request_read(reading->body, &reading->pool, &reading->request, &reading->error);
}

static void reading_done(struct reading *reading)
{
    json_decref(reading->body);
    pool_done(&reading->pool);
    api_error_done(&reading->error);
}

static void all_fields_are_read(void **state)
{
    struct reading reading;
    const struct execute_request *request = &reading.request;

    (void) state;
    read_json(&reading, "{\"command\":\"ls\",\"sessionId\":\"s\",\"timeoutMs\":500,\"cwd\":\"/x\","
                        "\"env\":{\"A\":\"1\",\"N\":null,\"B\":\"\"},\"stdin\":\"aGk=\","
                        "\"stdinEncoding\":\"base64\",\"encoding\":\"base64\",\"origin\":\"x\"}");
    assert_int_equal(reading.result, 0);
    assert_string_equal(request->command, "ls");
    assert_null(request->arguments);
    assert_string_equal(request->directory, "/x");
    assert_int_equal(request->timeout_ms, 500);
    assert_int_equal(request->variables.count, 2);
    assert_string_equal(request->variables.changes[0].name, "A");
    assert_string_equal(request->variables.changes[1].text, "");
    assert_int_equal(request->input_length, 2);
    assert_memory_equal(request->input, "hi", 2);
    assert_true(request->base64);
    assert_false(request->background);
    reading_done(&reading);
}

static void nulls_and_absent_fields_are_defaults(void **state)
{
    struct reading reading;

    (void) state;
    read_json(&reading, "{\"command\":\"ls\",\"sessionId\":null,\"timeoutMs\":null,\"env\":null,"
                        "\"cwd\":\"\"}");
    assert_int_equal(reading.result, 0);
    assert_null(reading.request.directory);
    assert_null(reading.request.input);
    assert_int_equal(reading.request.timeout_ms, 0);
    assert_int_equal(reading.request.variables.count, 0);
    reading_done(&reading);
}

static void argv_stands_in_for_a_command(void **state)
{
    struct reading reading;

    (void) state;
    read_json(&reading, "{\"argv\":[\"printf\",\"%s\",\"a b\",\"\"]}");
    assert_int_equal(reading.result, 0);
    assert_string_equal(reading.request.arguments[2], "a b");
    assert_string_equal(reading.request.arguments[3], "");
    assert_null(reading.request.arguments[4]);
    assert_string_equal(reading.request.command, "printf %s a b ");
    reading_done(&reading);
}

static void wrong_requests_name_their_field(void **state)
{
    static const struct {
        const char *text;
        enum api_code code;
        const char *in_message;
    } rows[] = {
        {"{}", API_VALIDATION_FAILED, "command"},
        {"[]", API_VALIDATION_FAILED, "body"},
        {"{\"command\":5}", API_VALIDATION_FAILED, "command"},
        {"{\"command\":\"\"}", API_INVALID_COMMAND, "empty"},
        {"{\"command\":\" \\n\"}", API_INVALID_COMMAND, "empty"},
        {"{\"argv\":[]}", API_INVALID_COMMAND, "argv"},
        {"{\"argv\":[\"\"]}", API_INVALID_COMMAND, "argv"},
        {"{\"argv\":[1]}", API_VALIDATION_FAILED, "argv"},
        {"{\"command\":\"a\",\"env\":[]}", API_VALIDATION_FAILED, "env"},
        {"{\"command\":\"a\",\"env\":{\"A\":1}}", API_VALIDATION_FAILED, "env"},
        {"{\"command\":\"a\",\"env\":{\"A B\":\"1\"}}", API_VALIDATION_FAILED, "env"},
        {"{\"command\":\"a\",\"timeoutMs\":-1}", API_VALIDATION_FAILED, "timeoutMs"},
        {"{\"command\":\"a\",\"timeoutMs\":1.5}", API_VALIDATION_FAILED, "timeoutMs"},
        {"{\"command\":\"a\",\"encoding\":\"latin1\"}", API_VALIDATION_FAILED, "encoding"},
        {"{\"command\":\"a\",\"stdin\":\"?\",\"stdinEncoding\":\"base64\"}", API_VALIDATION_FAILED,
         "stdin"},
        {"{\"command\":\"a\",\"background\":1}", API_VALIDATION_FAILED, "background"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct reading reading;

        read_json(&reading, rows[i].text);
        assert_int_equal(reading.result, -1);
        assert_int_equal(reading.error.code, rows[i].code);
        assert_non_null(strstr(reading.error.message, rows[i].in_message));
        reading_done(&reading);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_are_read),
        cmocka_unit_test(nulls_and_absent_fields_are_defaults),
        cmocka_unit_test(argv_stands_in_for_a_command),
        cmocka_unit_test(wrong_requests_name_their_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
