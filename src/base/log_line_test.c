#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/encoding/utf8.h"
#include "base/id.h"
#include "base/log_line.h"
#include "base/memory.h"

struct shown {
    char got[LOG_LINE_MAX + 1];
    size_t length;
};

static void show(struct shown *shown, enum log_format format, enum log_level level,
                 const char *message, const struct log_field *fields, size_t count)
{
    /* Exactly as large as promised, so that a sanitizer sees one byte too many. */
    AUTO(free) char *line = mem_alloc(LOG_LINE_MAX);

    shown->length =
        log_line_format(format, line, "2026-11-15T20:18:28.123Z", level, message, fields, count);
    assert_true(shown->length > 0 && shown->length <= LOG_LINE_MAX);
    memcpy(shown->got, line, shown->length);
    shown->got[shown->length] = '\0';
}

#define SHOW(shown, message, ...)                                                                  \
    show((shown), LOG_FORMAT_JSON, LOG_LEVEL_INFO, (message),                                      \
         (const struct log_field[]){{.type = LOG_FIELD_NONE}, ##__VA_ARGS__},                      \
         ARRAY_COUNT(((const struct log_field[]){{.type = LOG_FIELD_NONE}, ##__VA_ARGS__})))

AUTO_DEFINE_PTR(json, json_t, json_decref);

/* The line as a reader of the log sees it: one object, one newline, at its end. */
static json_t *parse(const struct shown *shown)
{
    json_error_t failure;
    json_t *line;

    assert_ptr_equal(strchr(shown->got, '\n'), shown->got + shown->length - 1);
    line = json_loadb(shown->got, shown->length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &failure);
    if (!line)
        fail_msg("%s in %s", failure.text, shown->got);
    return line;
}

static const char *text_of(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));

    assert_non_null(text);
    return text;
}

static void a_line_has_the_documented_form(void **state)
{
    struct shown shown;

    (void) state;
    SHOW(&shown, "sandbox created", log_text("sandbox", "abc"), log_number("ms", 3),
         log_boolean("cold", true), log_text("absent", NULL), log_bytes("part", "xyz", 2));
    assert_string_equal(shown.got, "{\"time\":\"2026-11-15T20:18:28.123Z\",\"level\":\"info\","
                                   "\"message\":\"sandbox created\",\"sandbox\":\"abc\","
                                   "\"ms\":3,\"cold\":true,\"part\":\"xy\"}\n");
    show(&shown, LOG_FORMAT_JSON, LOG_LEVEL_DEBUG, "no fields", NULL, 0);
    assert_string_equal(shown.got, "{\"time\":\"2026-11-15T20:18:28.123Z\",\"level\":\"debug\","
                                   "\"message\":\"no fields\"}\n");
}

static void numbers_keep_all_their_digits(void **state)
{
    struct shown shown;
    AUTO(json) json_t *line = NULL;

    (void) state;
    SHOW(&shown, "numbers", log_number("low", INT64_MIN), log_number("high", INT64_MAX),
         log_boolean("no", false));
    line = parse(&shown);
    assert_true(json_integer_value(json_object_get(line, "low")) == INT64_MIN);
    assert_true(json_integer_value(json_object_get(line, "high")) == INT64_MAX);
    assert_true(json_is_false(json_object_get(line, "no")));
}

static void every_ascii_character_comes_back(void **state)
{
    struct shown shown;

    (void) state;
    for (int c = 1; c < 128; c++) {
        const char value[] = {'a', (char) c, 'b', 'c', 'd', 'e', 'f', 'g', 'h', (char) c, '\0'};
        AUTO(json) json_t *line = NULL;

        SHOW(&shown, value, log_text("value", value));
        line = parse(&shown);
        assert_string_equal(text_of(line, "message"), value);
        assert_string_equal(text_of(line, "value"), value);
        for (size_t i = 0; i + 1 < shown.length; i++)
            assert_true(shown.got[i] >= 0x20 && shown.got[i] < 0x7f);
    }
}

static void a_value_cannot_forge_a_line(void **state)
{
    static const char forged[] = "x\"}\n{\"time\":\"now\",\"level\":\"error\",\"message\":\"lie";
    struct shown shown;
    AUTO(json) json_t *line = NULL;

    (void) state;
    SHOW(&shown, "request", log_text("path", forged), log_bytes("nul", "a\0b", 3));
    line = parse(&shown);
    assert_string_equal(text_of(line, "path"), forged);
    assert_string_equal(text_of(line, "level"), "info");
    assert_non_null(strstr(shown.got, "a\\u0000b"));
}

static void hidden_controls_are_escaped_and_letters_are_not(void **state)
{
    /* Arrays, because compilers and linters warn of such characters in string literals. */
    static const char override[] = {'\xe2', '\x80', '\xae', '\0'};
    static const char isolate[] = {'\xe2', '\x81', '\xa6', '\0'};
    AUTO(json) json_t *line = NULL;
    struct shown shown;

    (void) state;
    SHOW(&shown, "r\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x87", log_text("csi", "\xc2\x9b[2J"),
         log_text("separator", "\xe2\x80\xa8"), log_text("override", override),
         log_text("isolate", isolate));
    line = parse(&shown);
    assert_string_equal(text_of(line, "override"), override);
    assert_non_null(strstr(shown.got, "r\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x87"));
    assert_non_null(strstr(shown.got, "\\u009b[2J"));
    assert_non_null(strstr(shown.got, "\\u2028"));
    assert_non_null(strstr(shown.got, "\\u202e"));
    assert_non_null(strstr(shown.got, "\\u2066"));
}

static void invalid_bytes_become_replacement_characters(void **state)
{
    struct shown shown;
    AUTO(json) json_t *line = NULL;

    (void) state;
    SHOW(&shown, "bytes", log_text("value", "a\xff\xc0\x80z\xe2\x82"));
    line = parse(&shown);
    assert_string_equal(text_of(line, "value"),
                        "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
}

static void random_bytes_never_break_a_line(void **state)
{
    struct shown shown;

    (void) state;
    for (int round = 0; round < 500; round++) {
        AUTO(json) json_t *line = NULL;
        char bytes[64];

        random_bytes(bytes, sizeof(bytes));
        SHOW(&shown, "random", log_bytes("value", bytes, (size_t) round % sizeof(bytes)));
        line = parse(&shown);
        assert_true(utf8_is_valid(shown.got, shown.length));
    }
}

static void fields_that_name_a_secret_are_hidden(void **state)
{
    static const char *const secret[] = {
        "authorization", "Authorization", "proxy-authorization", "cookie",
        "Set-Cookie",    "password",      "db_password",         "secret",
        "appSecret",     "token",         "access_token",        "key",
        "API_KEY",       "apiKey",
    };
    static const char *const open_names[] = {
        "tokens", "keys", "path", "keyboard", "n", "", "ey", "method", "agent", "request",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(secret); i++) {
        struct shown shown;
        AUTO(json) json_t *line = NULL;

        SHOW(&shown, "login", log_text(secret[i], "hunter2"), log_number("n", 1));
        line = parse(&shown);
        assert_string_equal(text_of(line, secret[i]), "[hidden]");
        assert_null(strstr(shown.got, "hunter2"));
    }
    for (size_t i = 0; i < ARRAY_COUNT(open_names); i++)
        assert_false(log_line_hides(open_names[i], strlen(open_names[i])));
}

static void secret_numbers_are_hidden_too(void **state)
{
    struct shown shown;
    AUTO(json) json_t *line = NULL;

    (void) state;
    SHOW(&shown, "login", log_number("pin_secret", 4711));
    line = parse(&shown);
    assert_string_equal(text_of(line, "pin_secret"), "[hidden]");
}

/* Every length of value that makes a line just fit or just not. */
static void long_lines_are_cut_and_stay_json(void **state)
{
    static const char *const fills[] = {"x", "\n", "\xff", "\xe2\x82\xac", "\xc2\x9b"};
    struct shown shown;
    char value[LOG_LINE_MAX + 64];

    (void) state;
    for (size_t fill = 0; fill < ARRAY_COUNT(fills); fill++) {
        size_t size = strlen(fills[fill]);

        for (size_t i = 0; i + size < sizeof(value); i += size)
            memcpy(value + i, fills[fill], size);
        for (size_t length = LOG_LINE_MAX / 6 - 200; length <= sizeof(value); length += 61) {
            AUTO(json) json_t *line = NULL;

            SHOW(&shown, "long", log_bytes("value", value, length - length % size),
                 log_number("number", 12345678), log_text("last", "abcdef"));
            line = parse(&shown);
            assert_true(shown.length <= LOG_LINE_MAX);
            /* either everything is there or the line says that it is not */
            assert_int_equal(json_is_true(json_object_get(line, "cut")),
                             json_object_get(line, "last") == NULL ||
                                 strcmp(text_of(line, "last"), "abcdef") != 0);
        }
    }
}

static void the_edge_of_the_line_is_safe_for_every_kind_of_field(void **state)
{
    struct shown shown;
    char value[LOG_LINE_MAX];
    int cut = 0;

    (void) state;
    memset(value, 'v', sizeof(value));
    for (size_t length = LOG_LINE_MAX - 250; length < LOG_LINE_MAX; length++) {
        AUTO(json) json_t *line = NULL;

        SHOW(&shown, "m", log_bytes("value", value, length), log_number("number", INT64_MIN),
             log_boolean("boolean", false), log_text("token", "t"), log_text("text", "\x01\x02"),
             log_number("end", 1));
        line = parse(&shown);
        assert_true(shown.length <= LOG_LINE_MAX);
        cut += json_is_true(json_object_get(line, "cut"));
        assert_int_equal(json_is_true(json_object_get(line, "cut")),
                         !json_is_integer(json_object_get(line, "end")));
    }
    assert_true(cut > 50 && cut < 250);
}

static void a_long_message_is_cut_too(void **state)
{
    struct shown shown;
    AUTO(json) json_t *line = NULL;
    AUTO(free) char *message = mem_alloc(2 * LOG_LINE_MAX);

    (void) state;
    memset(message, 'm', 2 * LOG_LINE_MAX - 1);
    SHOW(&shown, message, log_number("n", 1));
    line = parse(&shown);
    assert_true(json_is_true(json_object_get(line, "cut")));
    assert_non_null(strstr(shown.got, "mmm...\",\"cut\":true}\n"));
}

static void long_lines_on_a_terminal_are_cut(void **state)
{
    struct shown shown;
    char value[2 * LOG_LINE_MAX] = "";
    const struct log_field field = log_bytes("value", value, sizeof(value));

    (void) state;
    memset(value, 'x', sizeof(value));
    show(&shown, LOG_FORMAT_TEXT, LOG_LEVEL_INFO, "m", &field, 1);
    assert_true(shown.length > LOG_LINE_MAX - 64);
    assert_string_equal(shown.got + shown.length - 6, "x ...\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_documented_form),
        cmocka_unit_test(numbers_keep_all_their_digits),
        cmocka_unit_test(every_ascii_character_comes_back),
        cmocka_unit_test(a_value_cannot_forge_a_line),
        cmocka_unit_test(hidden_controls_are_escaped_and_letters_are_not),
        cmocka_unit_test(invalid_bytes_become_replacement_characters),
        cmocka_unit_test(random_bytes_never_break_a_line),
        cmocka_unit_test(fields_that_name_a_secret_are_hidden),
        cmocka_unit_test(secret_numbers_are_hidden_too),
        cmocka_unit_test(long_lines_are_cut_and_stay_json),
        cmocka_unit_test(the_edge_of_the_line_is_safe_for_every_kind_of_field),
        cmocka_unit_test(a_long_message_is_cut_too),
        cmocka_unit_test(long_lines_on_a_terminal_are_cut),
    };

    return cmocka_run_group_tests_name("log_line", tests, NULL, NULL);
}
