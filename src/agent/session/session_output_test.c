#include <stdlib.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/session/session_output.h"

struct heard {
    struct text all;
    size_t calls;
    size_t unfinished; /* calls that did not end with a newline */
};

static void hear(void *context, const char *bytes, size_t length)
{
    struct heard *heard = context;

    assert_true(length > 0);
    assert_null(memchr(bytes, '\0', length));
    text_append_bytes(&heard->all, bytes, length);
    heard->calls++;
    heard->unfinished += bytes[length - 1] != '\n';
}

static void trim_text(const char *bytes, size_t length, size_t step, struct heard *heard)
{
    struct session_trim trim = {.newline = false};

    for (size_t at = 0; at < length; at += step)
        session_trim_feed(&trim, bytes + at, length - at < step ? length - at : step, hear, heard);
}

static void lines_of(const char *bytes, size_t length, size_t step, struct heard *heard)
{
    struct session_lines lines = SESSION_LINES_INIT;

    for (size_t at = 0; at < length; at += step)
        session_lines_feed(&lines, bytes + at, length - at < step ? length - at : step, hear,
                           heard);
    session_lines_end(&lines, hear, heard);
    session_lines_done(&lines);
}

static void exactly_one_newline_is_taken_from_the_end(void **state)
{
    static const char *const rows[][2] = {
        {"hi\n", "hi"}, {"a\n\n", "a\n"}, {"a", "a"}, {"\n", ""}, {"", ""}, {"\na\n", "\na"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t step = 1; step < 5; step++) {
            struct heard heard = {.all = TEXT_INIT(1 << 16)};

            trim_text(rows[i][0], strlen(rows[i][0]), step, &heard);
            assert_string_equal(text_string(&heard.all), rows[i][1]);
            text_done(&heard.all);
        }
    }
}

static void nuls_are_dropped(void **state)
{
    struct heard trimmed = {.all = TEXT_INIT(1 << 16)}, lines = {.all = TEXT_INIT(1 << 16)};

    (void) state;
    trim_text("a\0b\n\0", 5, 5, &trimmed);
    assert_string_equal(text_string(&trimmed.all), "ab");
    lines_of("a\0b\n\0c", 6, 6, &lines);
    assert_string_equal(text_string(&lines.all), "ab\nc\n");
    assert_int_equal(lines.calls, 2);
    text_done(&trimmed.all);
    text_done(&lines.all);
}

static void every_line_comes_by_itself_and_whole(void **state)
{
    static const char text[] = "one\n\nthree\nfour";

    (void) state;
    for (size_t step = 1; step < sizeof(text); step++) {
        struct heard heard = {.all = TEXT_INIT(1 << 16)};

        lines_of(text, sizeof(text) - 1, step, &heard);
        assert_string_equal(text_string(&heard.all), "one\n\nthree\nfour\n");
        assert_int_equal(heard.calls, 4);
        assert_int_equal(heard.unfinished, 0);
        text_done(&heard.all);
    }
}

static void a_line_without_end_is_passed_on_in_pieces(void **state)
{
    size_t length = 5 * SESSION_LINE_MAX;
    char *text = malloc(length);
    struct heard heard = {.all = TEXT_INIT(1 << 20)};

    (void) state;
    memset(text, 'x', length);
    lines_of(text, length, 10000, &heard);
    assert_int_equal(heard.all.length, length + 1);
    assert_true(heard.calls > 4);
    text_done(&heard.all);
    free(text);
}

/* However the bytes are cut, all of them arrive, and lines stay whole. */
static void any_pieces_make_the_same_text(void **state)
{
    size_t length = 200000;
    char *text = malloc(length);

    (void) state;
    for (size_t i = 0; i < length; i++)
        text[i] = (char) ((i * 7919) % 61 == 0 ? '\n' : 'a' + (int) (i % 26));
    text[length - 1] = '\n';
    for (size_t step = 1; step < length; step = step * 3 + 1) {
        struct heard trimmed = {.all = TEXT_INIT(1 << 20)}, lines = {.all = TEXT_INIT(1 << 20)};

        trim_text(text, length, step, &trimmed);
        lines_of(text, length, step, &lines);
        assert_int_equal(trimmed.all.length, length - 1);
        assert_memory_equal(trimmed.all.data, text, length - 1);
        assert_int_equal(lines.all.length, length);
        assert_memory_equal(lines.all.data, text, length);
        assert_int_equal(lines.unfinished, 0);
        text_done(&trimmed.all);
        text_done(&lines.all);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_one_newline_is_taken_from_the_end),
        cmocka_unit_test(nuls_are_dropped),
        cmocka_unit_test(every_line_comes_by_itself_and_whole),
        cmocka_unit_test(a_line_without_end_is_passed_on_in_pieces),
        cmocka_unit_test(any_pieces_make_the_same_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
