#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/code/code_frame.h"
#include "base/memory.h"

static int read_frame(const char *line, struct code_frame *frame)
{
    return code_frame_read(line, strlen(line), frame);
}

static void expect_event(const char *line, const char *expected)
{
    AUTO(code_frame) struct code_frame frame = {.type = CODE_FRAME_END};
    AUTO(text) struct text event = TEXT_INIT(CODE_EVENT_MAX);

    assert_int_equal(read_frame(line, &frame), 0);
    assert_int_equal(code_frame_write_event(&frame, NULL, NULL, &event), 0);
    assert_string_equal(text_string(&event), expected);
}

static void every_type_is_read(void **state)
{
    static const struct {
        const char *line;
        enum code_frame_type type;
    } cases[] = {
        {"{\"type\":\"ready\",\"pid\":71}", CODE_FRAME_READY},
        {"{\"type\":\"failed\",\"errno\":2}", CODE_FRAME_FAILED},
        {"{\"type\":\"result\"}", CODE_FRAME_RESULT},
        {"{\"type\":\"error\"}", CODE_FRAME_ERROR},
        {"{\"type\":\"end\"}", CODE_FRAME_END},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(code_frame) struct code_frame frame = {.type = CODE_FRAME_TYPES};

        assert_int_equal(read_frame(cases[i].line, &frame), 0);
        assert_int_equal(frame.type, cases[i].type);
        assert_int_equal(frame.pid, frame.type == CODE_FRAME_READY ? 71 : 0);
        assert_int_equal(frame.error, frame.type == CODE_FRAME_FAILED ? -2 : 0);
    }
}

static void what_is_no_frame_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "x",
        "[]",
        "{}",
        "5",
        "{\"type\":5}",
        "{\"type\":\"other\"}",
        "{\"type\":\"end\"} x",
        "{\"type\":\"end\"",
        "{\"type\":\"ready\"}",
        "{\"type\":\"ready\",\"pid\":1}",
        "{\"type\":\"ready\",\"pid\":-5}",
        "{\"type\":\"ready\",\"pid\":4294967297}",
        "{\"type\":\"ready\",\"pid\":\"71\"}",
        "{\"type\":\"failed\",\"errno\":0}",
        "{\"type\":\"failed\",\"errno\":-2}",
        "{\"type\":\"failed\",\"errno\":99999}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct code_frame frame;

        assert_int_equal(read_frame(lines[i], &frame), -EBADMSG);
    }
}

static void a_result_keeps_known_forms_only(void **state)
{
    (void) state;
    expect_event("{\"type\":\"result\",\"text\":\"2\",\"html\":\"<b>\",\"other\":1,\"png\":5,"
                 "\"json\":{\"a\":[1]},\"metadata\":{\"m\":1}}",
                 "{\"type\":\"result\",\"text\":\"2\",\"html\":\"<b>\",\"json\":{\"a\":[1]},"
                 "\"metadata\":{\"m\":1}}");
    expect_event("{\"type\":\"result\",\"metadata\":[]}", "{\"type\":\"result\",\"metadata\":{}}");
}

static void an_error_always_has_its_fields(void **state)
{
    (void) state;
    expect_event(
        "{\"type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"a\",5,\"b\"]}",
        "{\"type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"a\",\"b\"]}");
    expect_event("{\"type\":\"error\",\"ename\":{},\"traceback\":\"x\"}",
                 "{\"type\":\"error\",\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]}");
}

static void an_event_has_no_line_breaks(void **state)
{
    (void) state;
    expect_event("{\"type\":\"result\",\"text\":\"a\\nb\"}",
                 "{\"type\":\"result\",\"text\":\"a\\nb\",\"metadata\":{}}");
}

static void a_reason_from_outside_replaces_the_codes_own(void **state)
{
    AUTO(code_frame) struct code_frame frame = {.type = CODE_FRAME_END};
    AUTO(text) struct text event = TEXT_INIT(CODE_EVENT_MAX);

    (void) state;
    assert_int_equal(read_frame("{\"type\":\"error\",\"ename\":\"KeyboardInterrupt\","
                                "\"traceback\":[\"t\"]}",
                                &frame),
                     0);
    assert_int_equal(code_frame_write_event(&frame, "TimeoutError", "late", &event), 0);
    assert_string_equal(text_string(&event), "{\"type\":\"error\",\"ename\":\"TimeoutError\","
                                             "\"evalue\":\"late\",\"traceback\":[\"t\"]}");
    text_clear(&event);
    assert_int_equal(code_frame_write_error("E", "v", &event), 0);
    assert_string_equal(text_string(&event),
                        "{\"type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[]}");
}

static void a_line_that_is_too_long_is_refused(void **state)
{
    size_t length = CODE_FRAME_MAX + 64;
    AUTO(free) char *line = mem_alloc(length + 1);
    struct code_frame frame;

    (void) state;
    (void) snprintf(line, length + 1, "%-*s", (int) length, "{\"type\":\"end\"}");
    assert_int_equal(code_frame_read(line, length, &frame), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(a_result_keeps_known_forms_only),
        cmocka_unit_test(an_error_always_has_its_fields),
        cmocka_unit_test(an_event_has_no_line_breaks),
        cmocka_unit_test(a_reason_from_outside_replaces_the_codes_own),
        cmocka_unit_test(a_line_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
