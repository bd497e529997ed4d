#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/code/code_language.h"

static void languages_have_many_names(void **state)
{
    static const char *const names[][2] = {
        {"python", "python"}, {"Python3", "python"},  {"javascript", "javascript"},
        {"JS", "javascript"}, {"node", "javascript"}, {"typescript", "typescript"},
        {"ts", "typescript"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_string_equal(code_language_find(names[i][0])->name, names[i][1]);
    assert_string_equal(code_language_find(NULL)->name, "python");
    assert_null(code_language_find("ruby"));
    assert_null(code_language_find(""));
}

static void executors_are_part_of_us(void **state)
{
    (void) state;
    for (int i = 0; i < CODE_INTERPRETERS; i++) {
        const struct code_program *program = code_program_of((enum code_interpreter) i);

        assert_true(program->executor->length > 1000);
        assert_int_equal(strlen(program->executor->text), program->executor->length);
        assert_int_equal(program->executor->text[program->executor->length - 1], '\n');
    }
    assert_non_null(strstr(executor_python.text, "def main():"));
    assert_non_null(strstr(executor_javascript.text, "stripTypes"));
}

static void an_interpreter_is_looked_for_in_the_path(void **state)
{
    const struct code_program program = {.name = "sh"};

    (void) state;
    assert_true(code_program_is_installed(&program, (const char *const[]){"PATH=/bin", NULL}));
    assert_false(code_program_is_installed(&program, (const char *const[]){"PATH=/dev", NULL}));
    assert_false(code_program_is_installed(&program, (const char *const[]){NULL}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages_have_many_names),
        cmocka_unit_test(executors_are_part_of_us),
        cmocka_unit_test(an_interpreter_is_looked_for_in_the_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
