#include <signal.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/command/run_request.h"

struct reading {
    struct pool pool;
    json_t *message;
    struct run_request request;
    struct api_error error;
    int result;
};

static void read_json(struct reading *reading, const char *text)
{
    *reading = (struct reading){.error = API_ERROR_INIT};
    reading->message = json_read(text, strlen(text), NULL, NULL);
    assert_non_null(reading->message);
    reading->result =
        run_request_read(reading->message, &reading->pool, &reading->request, &reading->error);
}

static void reading_done(struct reading *reading)
{
    json_decref(reading->message);
    pool_done(&reading->pool);
    api_error_done(&reading->error);
}

static void assert_refused(const char *text)
{
    struct reading reading;

    read_json(&reading, text);
    if (reading.result == 0)
        fail_msg("accepted: %s", text);
    assert_int_equal(reading.error.code, API_VALIDATION_FAILED);
    assert_true(reading.error.message[0]);
    reading_done(&reading);
}

static void all_fields_are_read(void **state)
{
    struct reading reading;
    const struct run_request *request = &reading.request;

    (void) state;
    read_json(&reading, "{\"argv\":[\"ls\",\"\"],\"cwd\":\"/x\",\"timeout\":7,"
                        "\"env\":{\"A\":\"1\",\"N\":null},"
                        "\"terminal\":{\"columns\":80,\"rows\":24,\"name\":\"screen.xterm\"}}");
    assert_int_equal(reading.result, 0);
    assert_string_equal(request->arguments[0], "ls");
    assert_string_equal(request->arguments[1], "");
    assert_null(request->arguments[2]);
    assert_null(request->command);
    assert_string_equal(request->directory, "/x");
    assert_int_equal(request->timeout_ms, 7);
    assert_int_equal(request->variables.count, 2);
    assert_string_equal(request->variables.changes[0].text, "1");
    assert_null(request->variables.changes[1].text);
    assert_true(request->has_terminal);
    assert_int_equal(request->terminal.columns, 80);
    assert_int_equal(request->terminal.rows, 24);
    assert_string_equal(request->terminal_name, "screen.xterm");
    reading_done(&reading);
}

static void what_is_missing_has_its_default(void **state)
{
    struct reading reading;

    (void) state;
    read_json(&reading, "{\"command\":\"a; b\",\"terminal\":null,\"env\":null}");
    assert_int_equal(reading.result, 0);
    assert_null(reading.request.arguments);
    assert_string_equal(reading.request.command, "a; b");
    assert_null(reading.request.directory);
    assert_false(reading.request.has_terminal);
    assert_int_equal(reading.request.timeout_ms, 0);
    assert_int_equal(reading.request.variables.count, 0);
    reading_done(&reading);
    read_json(&reading, "{\"argv\":[\"a\"],\"terminal\":{\"columns\":1,\"rows\":4096}}");
    assert_string_equal(reading.request.terminal_name, "xterm-256color");
    reading_done(&reading);
}

static void what_is_wrong_is_refused(void **state)
{
    (void) state;
    assert_refused("[]");
    assert_refused("{}");
    assert_refused("{\"argv\":[]}");
    assert_refused("{\"argv\":[\"\"]}");
    assert_refused("{\"argv\":[1]}");
    assert_refused("{\"argv\":\"ls\"}");
    assert_refused("{\"argv\":[\"a\"],\"command\":\"a\"}");
    assert_refused("{\"command\":\" \\n\"}");
    assert_refused("{\"argv\":[\"a\"],\"group\":\"root\"}");
    assert_refused("{\"argv\":[\"a\"],\"timeout\":1.5}");
    assert_refused("{\"argv\":[\"a\"],\"env\":{\"1A\":\"\"}}");
    assert_refused("{\"argv\":[\"a\"],\"env\":{\"1A\":null}}");
    assert_refused("{\"argv\":[\"a\"],\"terminal\":{\"columns\":80}}");
    assert_refused("{\"argv\":[\"a\"],\"terminal\":{\"columns\":4097,\"rows\":1}}");
    assert_refused("{\"argv\":[\"a\"],\"terminal\":{\"columns\":1,\"rows\":1,\"name\":\"a/b\"}}");
    assert_refused("{\"argv\":[\"a\"],\"terminal\":{\"columns\":1,\"rows\":1,\"name\":\"\"}}");
    assert_refused("{\"argv\":[\"a\"],\"terminal\":{\"columns\":1,\"rows\":1,\"x\":1}}");
}

static int read_order(const char *text, struct run_order *ret_order)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(json) json_t *message = json_read(text, strlen(text), NULL, NULL);

    assert_non_null(message);
    return run_order_read(message, ret_order, &error);
}

static void orders_are_read(void **state)
{
    struct run_order order;

    (void) state;
    assert_int_equal(read_order("{\"type\":\"resize\",\"columns\":3,\"rows\":2}", &order), 0);
    assert_int_equal(order.type, RUN_ORDER_RESIZE);
    assert_int_equal(order.size.columns, 3);
    assert_int_equal(order.size.rows, 2);
    assert_int_equal(read_order("{\"type\":\"signal\",\"signal\":\"USR2\"}", &order), 0);
    assert_int_equal(order.type, RUN_ORDER_SIGNAL);
    assert_int_equal(order.signal, SIGUSR2);
    assert_int_equal(read_order("{\"type\":\"eof\"}", &order), 0);
    assert_int_equal(order.type, RUN_ORDER_EOF);
    assert_int_equal(read_order("{\"type\":\"close\",\"channel\":2}", &order), 0);
    assert_int_equal(order.type, RUN_ORDER_CLOSE);
    assert_int_equal(order.output, EXEC_STDERR);
}

static void unknown_orders_are_refused(void **state)
{
    struct run_order order;

    (void) state;
    assert_int_equal(read_order("{}", &order), -1);
    assert_int_equal(read_order("{\"type\":\"\"}", &order), -1);
    assert_int_equal(read_order("{\"type\":\"resize\",\"columns\":3}", &order), -1);
    assert_int_equal(read_order("{\"type\":\"signal\"}", &order), -1);
    assert_int_equal(read_order("{\"type\":\"close\",\"channel\":0}", &order), -1);
    assert_int_equal(read_order("{\"type\":\"signal\",\"signal\":\"SIGINT\"}", &order), -1);
    assert_int_equal(read_order("{\"type\":\"signal\",\"signal\":\"\"}", &order), -1);
}

static void signals_have_their_numbers(void **state)
{
    (void) state;
    assert_int_equal(run_signal_number("HUP"), SIGHUP);
    assert_int_equal(run_signal_number("WINCH"), SIGWINCH);
    assert_int_equal(run_signal_number("hup"), 0);
    assert_int_equal(run_signal_number("1"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_are_read),
        cmocka_unit_test(orders_are_read),
        cmocka_unit_test(signals_have_their_numbers),
        cmocka_unit_test(unknown_orders_are_refused),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(what_is_missing_has_its_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
