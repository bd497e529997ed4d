#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/session/session_script.h"

static void write_command(enum session_dialect dialect, const char *command, const char *directory,
                          struct text *script)
{
    static const struct environment_change changes[] = {{.name = "A", .text = "it's"}};
    const struct session_request request = {.serial = 42,
                                            .command = command,
                                            .directory = directory,
                                            .changes = changes,
                                            .change_count = 1};

    session_script_command(dialect, &request, script);
    assert_false(script->overflowed);
}

/* Behind the line that reads it. */
static const char *frame_of(const struct text *script)
{
    const char *line = strstr(text_string(script), "-rN ");
    const char *frame = strchr(line, '\n') + 1;

    /* And before the line that tells whether the shell is done. */
    assert_int_equal(strtoul(line + strlen("-rN "), NULL, 10), strlen(frame) - 1);
    assert_int_equal(frame[strlen(frame) - 1], '\n');
    return frame;
}

static void bash_gets_a_counted_frame_in_ascii(void **state)
{
    AUTO(text) struct text script = TEXT_INIT(1 << 20);
    char every[256];

    (void) state;
    for (int i = 1; i < 256; i++)
        every[i - 1] = (char) i;
    every[255] = '\0';
    write_command(SESSION_BASH, every, "/a b", &script);
    for (const char *at = frame_of(&script); *at; at++)
        assert_true((*at >= ' ' && *at < 0x7f) || *at == '\n' || *at == '\t');
}

static void quotes_of_a_command_stay_inside(void **state)
{
    AUTO(text) struct text bash = TEXT_INIT(1 << 20);
    AUTO(text) struct text sh = TEXT_INIT(1 << 20);

    (void) state;
    write_command(SESSION_BASH, "echo 'a\\b'\n\xc3\xa4", NULL, &bash);
    assert_non_null(strstr(frame_of(&bash), "A=$'it\\047s' command eval "
                                            "$'echo \\047a\\134b\\047\n\\303\\244' </dev/null"));
    write_command(SESSION_SH, "echo 'a\\b'\n\xc3\xa4", NULL, &sh);
    assert_non_null(strstr(text_string(&sh), "A='it'\\''s' command eval "
                                             "'echo '\\''a\\b'\\''\n\xc3\xa4' </dev/null"));
}

static void the_report_carries_the_serial(void **state)
{
    AUTO(text) struct text script = TEXT_INIT(1 << 20);

    (void) state;
    write_command(SESSION_SH, "true", NULL, &script);
    assert_non_null(strstr(text_string(&script), "command printf '42 %d\\n' $? >&9"));
}

static void a_script_without_room_says_so(void **state)
{
    AUTO(text) struct text script = TEXT_INIT(100);
    const struct session_request request = {.serial = 1, .command = "echo a rather long command"};

    (void) state;
    session_script_command(SESSION_BASH, &request, &script);
    assert_true(script.overflowed);
}

static void functions_are_asked_for_by_name(void **state)
{
    static const char *const names[] = {"f", "-g"};
    AUTO(text) struct text script = TEXT_INIT(1 << 20);

    (void) state;
    session_script_functions(7, names, 2, &script);
    assert_non_null(strstr(frame_of(&script), "declare -f -- $'-g';"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_gets_a_counted_frame_in_ascii),
        cmocka_unit_test(quotes_of_a_command_stay_inside),
        cmocka_unit_test(the_report_carries_the_serial),
        cmocka_unit_test(a_script_without_room_says_so),
        cmocka_unit_test(functions_are_asked_for_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
