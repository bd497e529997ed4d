#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/terminal/terminal_frames.h"
#include "base/encoding/utf8.h"
#include "json/json_read.h"

#define FRAME_MAX ((size_t) 64 * 1024)

/* The data of the output frame, which must be the only thing in `frame`; "" for no frame. */
static void add_data(struct text *seen, const struct text *frame)
{
    AUTO(json) json_t *value = NULL;
    const struct json_limits limits = {.size = FRAME_MAX, .depth = 4, .values = 16, .nul = true};
    json_t *data;

    if (!frame->length)
        return;
    value = json_read(frame->data, frame->length, &limits, NULL);
    assert_non_null(value);
    assert_string_equal(json_string_value(json_object_get(value, "type")), "output");
    data = json_object_get(value, "data");
    assert_true(json_string_length(data) > 0);
    text_append_bytes(seen, json_string_value(data), json_string_length(data));
}

/* What a client sees when the bytes arrive in pieces of `step`, the end included. */
static struct text seen_in_pieces(const char *bytes, size_t length, size_t step)
{
    struct terminal_frames frames = {.carried = 0};
    struct text seen = TEXT_INIT(FRAME_MAX);

    for (size_t at = 0; at < length; at += step) {
        AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

        terminal_frames_output(&frames, bytes + at, length - at < step ? length - at : step,
                               &frame);
        add_data(&seen, &frame);
    }
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);
    terminal_frames_flush(&frames, &frame);
    add_data(&seen, &frame);
    return seen;
}

static void assert_same_however_cut(const char *bytes, size_t length)
{
    AUTO(text) struct text whole = seen_in_pieces(bytes, length, length);

    for (size_t step = 1; step < length; step++) {
        AUTO(text) struct text seen = seen_in_pieces(bytes, length, step);

        assert_int_equal(seen.length, whole.length);
        assert_memory_equal(text_string(&seen), text_string(&whole), whole.length);
    }
}

static void a_character_in_two_pieces_arrives_whole(void **state)
{
    static const char sentence[] = "gr\xc3\xbc\xc3\x9f dich \xe2\x82\xac \xf0\x9f\x98\x80!";
    struct terminal_frames frames = {.carried = 0};
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);
    AUTO(text) struct text seen = seen_in_pieces(sentence, strlen(sentence), 1);

    (void) state;
    assert_string_equal(text_string(&seen), sentence);
    assert_same_however_cut(sentence, strlen(sentence));
    terminal_frames_output(&frames, "\xe2\x82", 2, &frame);
    assert_int_equal(frame.length, 0);
    terminal_frames_output(&frames, "\xac", 1, &frame);
    assert_string_equal(text_string(&frame), "{\"type\":\"output\",\"data\":\"\xe2\x82\xac\"}");
}

static void broken_bytes_become_replacements_the_same_however_cut(void **state)
{
    static const char *const cases[] = {
        "a\xff"
        "b",
        "\x80\x80\xbf",
        "\xe2\x82"
        "A",
        "\xf0\x9f\xc3\xbc",
        "\xed\xa0\x80",
        "\xc0\xaf",
        "x\xf4\x90\x80\x80y",
        "\xf0\x9f\x98",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_same_however_cut(cases[i], strlen(cases[i]));
}

static void random_bytes_are_the_same_however_cut(void **state)
{
    static const unsigned char letters[] = {'a',  0x00, 0x1b, 0x80, 0xbf, 0xc3, 0xe2,
                                            0x82, 0xac, 0xf0, 0x9f, 0x98, 0xed, 0xff};
    uint32_t random = 20261116;
    char bytes[40];

    (void) state;
    for (int round = 0; round < 300; round++) {
        size_t length = 1 + (size_t) round % sizeof(bytes);

        for (size_t i = 0; i < length; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = (char) letters[(random >> 16) % sizeof(letters)];
        }
        assert_same_however_cut(bytes, length);
    }
}

static void the_longest_frame_has_room(void **state)
{
    struct terminal_frames frames = {.carried = 3,
                                     .carry = {(char) 0xf0, (char) 0x9f, (char) 0x98}};
    char bytes[1000];
    AUTO(text) struct text frame = TEXT_INIT(TERMINAL_FRAMES_OUTPUT_MAX(sizeof(bytes)));

    (void) state;
    memset(bytes, 0x1b, sizeof(bytes));
    terminal_frames_output(&frames, bytes, sizeof(bytes), &frame);
    assert_false(frame.overflowed);
    assert_int_equal(frame.data[frame.length - 1], '}');
}

static void input_keeps_every_byte(void **state)
{
    static const char message[] = "{\"type\":\"input\",\"data\":\"a\\u0000\\u0003\xc3\xbc\"}";
    AUTO(terminal_frame) struct terminal_frame frame = {.document = NULL};

    (void) state;
    assert_int_equal(terminal_frame_read(message, strlen(message), &frame, NULL), 0);
    assert_int_equal(frame.kind, TERMINAL_FRAME_INPUT);
    assert_int_equal(frame.length, 5);
    assert_memory_equal(frame.data, "a\0\3\xc3\xbc", 5);
}

static void a_resize_has_two_sizes(void **state)
{
    static const char message[] = "{\"type\":\"resize\",\"cols\":120,\"rows\":40}";
    AUTO(terminal_frame) struct terminal_frame frame = {.document = NULL};

    (void) state;
    assert_int_equal(terminal_frame_read(message, strlen(message), &frame, NULL), 0);
    assert_int_equal(frame.kind, TERMINAL_FRAME_RESIZE);
    assert_int_equal(frame.columns, 120);
    assert_int_equal(frame.rows, 40);
}

static void frames_that_are_none_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "ls",
        "[]",
        "{}",
        "{\"type\":1}",
        "{\"type\":\"kill\"}",
        "{\"type\":\"input\"}",
        "{\"type\":\"input\",\"data\":7}",
        "{\"type\":\"resize\",\"cols\":80}",
        "{\"type\":\"resize\",\"cols\":0,\"rows\":24}",
        "{\"type\":\"resize\",\"cols\":80,\"rows\":-1}",
        "{\"type\":\"resize\",\"cols\":80,\"rows\":4097}",
        "{\"type\":\"resize\",\"cols\":80.5,\"rows\":24}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct terminal_frame frame = {.document = NULL};
        struct error err = ERROR_INIT;

        assert_int_equal(terminal_frame_read(cases[i], strlen(cases[i]), &frame, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(frame.document);
    }
}

static void the_agents_control_messages_are_translated(void **state)
{
    static const struct {
        const char *message, *frame;
        enum terminal_control control;
    } cases[] = {
        {"{\"type\":\"ready\"}", "", TERMINAL_CONTROL_READY},
        {"{\"type\":\"exit\",\"code\":3}", "{\"type\":\"exit\",\"code\":3}", TERMINAL_CONTROL_EXIT},
        {"{\"type\":\"exit\",\"code\":137,\"signal\":\"SIGKILL\"}",
         "{\"type\":\"exit\",\"code\":137,\"signal\":\"SIGKILL\"}", TERMINAL_CONTROL_EXIT},
        {"{\"type\":\"exit\",\"code\":null}", "{\"type\":\"exit\",\"code\":null}",
         TERMINAL_CONTROL_EXIT},
        {"{\"type\":\"error\",\"message\":\"no\",\"secret\":1}",
         "{\"type\":\"error\",\"message\":\"no\"}", TERMINAL_CONTROL_OTHER},
        {"{\"type\":\"error\",\"message\":[]}",
         "{\"type\":\"error\",\"message\":\"the terminal failed\"}", TERMINAL_CONTROL_OTHER},
        {"{\"type\":\"skipped\",\"bytes\":9}", "{\"type\":\"skipped\",\"bytes\":9}",
         TERMINAL_CONTROL_OTHER},
        {"{\"type\":\"new\"}", "", TERMINAL_CONTROL_OTHER},
        {"nonsense", "", TERMINAL_CONTROL_OTHER},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

        assert_int_equal(
            terminal_frames_control(cases[i].message, strlen(cases[i].message), &frame),
            cases[i].control);
        assert_string_equal(text_string(&frame), cases[i].frame);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_in_two_pieces_arrives_whole),
        cmocka_unit_test(broken_bytes_become_replacements_the_same_however_cut),
        cmocka_unit_test(random_bytes_are_the_same_however_cut),
        cmocka_unit_test(the_longest_frame_has_room),
        cmocka_unit_test(input_keeps_every_byte),
        cmocka_unit_test(a_resize_has_two_sizes),
        cmocka_unit_test(frames_that_are_none_are_refused),
        cmocka_unit_test(the_agents_control_messages_are_translated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
