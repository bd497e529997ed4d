#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/transport/call_websocket_message.h"
#include "json/json_read.h"

struct trial {
    struct pool pool;
    json_t *root;
    struct call_websocket_message message;
    struct call_websocket_fault fault;
};

static int read_text(struct trial *trial, const char *text)
{
    *trial = (struct trial){.pool = POOL_INIT};
    return call_websocket_read(text, strlen(text), &trial->pool, &trial->root, &trial->message,
                               &trial->fault);
}

static void trial_done(struct trial *trial)
{
    json_decref(trial->root);
    pool_done(&trial->pool);
}

static void a_request_is_read_whole(void **state)
{
    struct trial trial;
    const struct call_websocket_message *message = &trial.message;

    (void) state;
    assert_int_equal(read_text(&trial,
                               "{\"type\":\"request\",\"id\":\"7\",\"method\":\"POST\","
                               "\"path\":\"/api/read?session=a\",\"body\":{\"path\":\"/x\"},"
                               "\"headers\":{\"X-Session-Id\":\"b\"},\"other\":1}"),
                     0);
    assert_int_equal(message->type, CALL_WEBSOCKET_REQUEST);
    assert_string_equal(message->id, "7");
    assert_string_equal(message->method, "POST");
    assert_true(url_span_equals(message->target.path, "/api/read"));
    assert_true(url_span_equals(message->target.query, "session=a"));
    assert_string_equal(json_string_value(json_object_get(message->body, "path")), "/x");
    assert_string_equal(call_websocket_header(message, "x-session-id"), "b");
    assert_null(call_websocket_header(message, "cookie"));
    trial_done(&trial);
}

static void body_and_headers_may_be_missing_or_null(void **state)
{
    static const char *const texts[] = {
        "{\"type\":\"request\",\"id\":\"\",\"method\":\"GET\",\"path\":\"/\"}",
        "{\"type\":\"request\",\"id\":\"\",\"method\":\"GET\",\"path\":\"/\",\"body\":null,"
        "\"headers\":null}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct trial trial;

        assert_int_equal(read_text(&trial, texts[i]), 0);
        assert_null(trial.message.body);
        assert_null(trial.message.headers);
        assert_null(call_websocket_header(&trial.message, "x-session-id"));
        trial_done(&trial);
    }
}

static void paths_are_escaped_and_fragments_left_out(void **state)
{
    struct trial trial;

    (void) state;
    assert_int_equal(read_text(&trial, "{\"type\":\"request\",\"id\":\"1\",\"method\":\"GET\","
                                       "\"path\":\"/a b/\\u00e9%20{}?q=\\\"<\\u0001#no\"}"),
                     0);
    assert_true(url_span_equals(trial.message.target.path, "/a%20b/%C3%A9%20%7B%7D"));
    assert_true(url_span_equals(trial.message.target.query, "q=%22%3C%01"));
    trial_done(&trial);
}

static void a_cancel_needs_only_an_id(void **state)
{
    struct trial trial;

    (void) state;
    assert_int_equal(read_text(&trial, "{\"type\":\"cancel\",\"id\":\"9\"}"), 0);
    assert_int_equal(trial.message.type, CALL_WEBSOCKET_CANCEL);
    assert_string_equal(trial.message.id, "9");
    trial_done(&trial);
}

static void faults_carry_the_id_as_soon_as_it_is_known(void **state)
{
    static const struct {
        const char *text, *code, *id;
    } cases[] = {
        {"", CALL_WEBSOCKET_PARSE_ERROR, NULL},
        {"{\"id\":\"1\"", CALL_WEBSOCKET_PARSE_ERROR, NULL},
        {"[1]", CALL_WEBSOCKET_INVALID_REQUEST, NULL},
        {"{\"type\":\"cancel\"}", CALL_WEBSOCKET_INVALID_REQUEST, NULL},
        {"{\"type\":\"cancel\",\"id\":null}", CALL_WEBSOCKET_INVALID_REQUEST, NULL},
        {"{\"id\":\"1\"}", CALL_WEBSOCKET_INVALID_REQUEST, "1"},
        {"{\"id\":\"1\",\"type\":\"response\"}", CALL_WEBSOCKET_INVALID_REQUEST, "1"},
        {"{\"id\":\"1\",\"type\":\"request\",\"method\":\"GET\",\"path\":\"*\"}",
         CALL_WEBSOCKET_INVALID_REQUEST, "1"},
        {"{\"id\":\"1\",\"type\":\"request\",\"method\":\"GET\",\"path\":\"http://a/\"}",
         CALL_WEBSOCKET_INVALID_REQUEST, "1"},
        {"{\"id\":\"1\",\"type\":\"request\",\"method\":\"GETGETGETGETGETGET\",\"path\":\"/\"}",
         CALL_WEBSOCKET_INVALID_REQUEST, "1"},
        {"{\"id\":\"1\",\"type\":\"request\",\"method\":\"GET\",\"path\":\"/%2\"}",
         CALL_WEBSOCKET_INVALID_REQUEST, "1"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct trial trial;

        assert_int_equal(read_text(&trial, cases[i].text), -1);
        assert_string_equal(trial.fault.code, cases[i].code);
        assert_int_equal(trial.fault.status, 400);
        assert_true(trial.fault.message[0]);
        if (cases[i].id)
            assert_string_equal(trial.fault.id, cases[i].id);
        else
            assert_null(trial.fault.id);
        trial_done(&trial);
    }
}

static void answers_are_json(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    struct call_websocket_fault fault = {
        .code = CALL_WEBSOCKET_STREAM_ERROR, .status = 500, .id = "\"", .message = "broke"};

    (void) state;
    call_websocket_write_head(&out, "a\"b", 404, true);
    text_append(&out, "{}}");
    assert_string_equal(out.data,
                        "{\"type\":\"response\",\"id\":\"a\\\"b\",\"status\":404,\"done\":true,"
                        "\"body\":{}}");
    text_clear(&out);
    call_websocket_write_head(&out, "1", 200, false);
    text_append(&out, "}");
    assert_string_equal(out.data,
                        "{\"type\":\"response\",\"id\":\"1\",\"status\":200,\"done\":true}");
    text_clear(&out);
    assert_int_equal(call_websocket_write_stream(&out, "1", NULL, "{\"a\":\"\n\"}", 9), 0);
    assert_string_equal(out.data, "{\"type\":\"stream\",\"id\":\"1\","
                                  "\"data\":\"{\\\"a\\\":\\\"\\n\\\"}\"}");
    text_clear(&out);
    assert_int_equal(call_websocket_write_stream(&out, "1", "bytes", "AA==", 4), 0);
    assert_string_equal(out.data, "{\"type\":\"stream\",\"id\":\"1\",\"event\":\"bytes\","
                                  "\"data\":\"AA==\"}");
    text_clear(&out);
    call_websocket_write_error(&out, &fault);
    assert_string_equal(out.data, "{\"type\":\"error\",\"id\":\"\\\"\",\"code\":\"STREAM_ERROR\","
                                  "\"message\":\"broke\",\"status\":500}");
}

static void an_event_that_does_not_fit_is_reported(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(64);
    char data[100] = {0};

    (void) state;
    assert_int_equal(call_websocket_write_stream(&out, "1", NULL, data, sizeof(data)), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_whole),
        cmocka_unit_test(body_and_headers_may_be_missing_or_null),
        cmocka_unit_test(paths_are_escaped_and_fragments_left_out),
        cmocka_unit_test(a_cancel_needs_only_an_id),
        cmocka_unit_test(faults_carry_the_id_as_soon_as_it_is_known),
        cmocka_unit_test(answers_are_json),
        cmocka_unit_test(an_event_that_does_not_fit_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
