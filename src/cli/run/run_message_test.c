#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "cli/run/run_message.h"
/* After the headers it needs. */
#include <cmocka.h>

static void assert_written(struct text *text, const char *expected)
{
    assert_string_equal(text_string(text), expected);
    text_clear(text);
}

static void requests_are_written(void **state)
{
    static const char *const words[] = {"ls", "a \"b\"", "", NULL};
    static const struct run_variable variables[] = {{"A", "1"}, {"B", ""}};
    struct run_message_request request = {.command = words};
    AUTO(text) struct text text = TEXT_INIT(4096);

    (void) state;
    assert_int_equal(run_message_write_request(&request, &text, NULL), 0);
    assert_written(&text, "{\"argv\":[\"ls\",\"a \\\"b\\\"\",\"\"]}");
    request = (struct run_message_request){
        .command = words + 2,
        .directory = "/x",
        .variables = variables,
        .variable_count = 2,
        .timeout_ms = 5,
        .columns = 80,
        .rows = 24,
        .terminal_name = "vt100",
    };
    assert_int_equal(run_message_write_request(&request, &text, NULL), 0);
    assert_written(&text, "{\"argv\":[\"\"],\"cwd\":\"/x\",\"timeout\":5,"
                          "\"env\":{\"A\":\"1\",\"B\":\"\"},"
                          "\"terminal\":{\"columns\":80,\"rows\":24,\"name\":\"vt100\"}}");
}

static void a_request_that_is_too_long_is_refused(void **state)
{
    static const char *const words[] = {"a rather long word", NULL};
    struct run_message_request request = {.command = words};
    struct text text = TEXT_INIT(8);
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(run_message_write_request(&request, &text, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    text_done(&text);
}

static void orders_are_written(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(4096);

    (void) state;
    run_message_write_resize(3, 4, &text);
    assert_written(&text, "{\"type\":\"resize\",\"columns\":3,\"rows\":4}");
    run_message_write_signal(SIGINT, &text);
    assert_written(&text, "{\"type\":\"signal\",\"signal\":\"INT\"}");
    run_message_write_signal(40, &text);
    assert_written(&text, "");
    run_message_write_eof(&text);
    assert_written(&text, "{\"type\":\"eof\"}");
    run_message_write_close(RUN_MESSAGE_STDERR, &text);
    assert_written(&text, "{\"type\":\"close\",\"channel\":2}");
}

static int read_text(const char *text, struct run_message *ret_message)
{
    return run_message_read(text, strlen(text), ret_message, NULL);
}

static void endings_become_statuses(void **state)
{
    static const struct {
        const char *text;
        enum run_ending ending;
        int status;
    } cases[] = {
        {"{\"type\":\"exit\",\"code\":0}", RUN_ENDED_STATUS, 0},
        {"{\"type\":\"exit\",\"code\":255}", RUN_ENDED_STATUS, 255},
        {"{\"type\":\"exit\",\"signal\":\"KILL\"}", RUN_ENDED_SIGNAL, 137},
        {"{\"type\":\"exit\",\"signal\":\"INT\"}", RUN_ENDED_SIGNAL, 130},
        {"{\"type\":\"exit\",\"signal\":\"34\"}", RUN_ENDED_SIGNAL, 162},
        {"{\"type\":\"exit\",\"signal\":\"KILL\",\"timedOut\":true}", RUN_ENDED_TIME, 124},
        {"{\"type\":\"exit\",\"timedOut\":true}", RUN_ENDED_TIME, 124},
        {"{\"type\":\"error\",\"stage\":\"program\",\"errno\":\"ENOENT\"}", RUN_ENDED_NO_PROGRAM,
         127},
        {"{\"type\":\"error\",\"stage\":\"program\",\"errno\":\"EACCES\"}", RUN_ENDED_NOT_STARTED,
         126},
        {"{\"type\":\"error\",\"stage\":\"directory\",\"errno\":\"ENOENT\"}", RUN_ENDED_FAILURE,
         125},
        {"{\"type\":\"error\"}", RUN_ENDED_FAILURE, 125},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct run_message message;

        assert_int_equal(read_text(cases[i].text, &message), 0);
        assert_int_equal(message.type, RUN_MESSAGE_ENDED);
        assert_int_equal(message.outcome.ending, cases[i].ending);
        assert_int_equal(run_outcome_status(&message.outcome), cases[i].status);
    }
}

static void other_messages_are_read(void **state)
{
    struct run_message message;

    (void) state;
    assert_int_equal(read_text("{\"type\":\"started\",\"pid\":3}", &message), 0);
    assert_int_equal(message.type, RUN_MESSAGE_STARTED);
    assert_int_equal(read_text("{\"type\":\"window\",\"bytes\":65536}", &message), 0);
    assert_int_equal(message.type, RUN_MESSAGE_WINDOW_GROWS);
    assert_int_equal(message.bytes, 65536);
    assert_int_equal(read_text("{\"type\":\"closed\",\"channel\":0}", &message), 0);
    assert_int_equal(message.type, RUN_MESSAGE_INPUT_CLOSED);
}

static void what_no_agent_says_is_an_error(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"type\":\"dance\"}",
        "{\"type\":\"exit\"}",
        "{\"type\":\"exit\",\"code\":256}",
        "{\"type\":\"exit\",\"code\":-1}",
        "{\"type\":\"exit\",\"signal\":\"NONE\"}",
        "{\"type\":\"exit\",\"signal\":\"65\"}",
        "{\"type\":\"window\",\"bytes\":0}",
        "{\"type\":\"window\",\"bytes\":99999999999}",
        "{\"type\":\"window\"}",
        "{\"type\":7}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct run_message message;
        struct error err = ERROR_INIT;

        if (run_message_read(texts[i], strlen(texts[i]), &message, &err) == 0)
            fail_msg("accepted: %s", texts[i]);
        assert_int_equal(err.code, ERR_UPSTREAM);
    }
}

static void texts_from_inside_are_made_printable(void **state)
{
    struct run_message message;

    (void) state;
    assert_int_equal(
        read_text("{\"type\":\"error\",\"message\":\"a\\u001b[2Jb\\nc\\u00e4\"}", &message), 0);
    assert_string_equal(message.outcome.text, "a?[2Jb?c??");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_written),
        cmocka_unit_test(a_request_that_is_too_long_is_refused),
        cmocka_unit_test(orders_are_written),
        cmocka_unit_test(endings_become_statuses),
        cmocka_unit_test(other_messages_are_read),
        cmocka_unit_test(what_no_agent_says_is_an_error),
        cmocka_unit_test(texts_from_inside_are_made_printable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
