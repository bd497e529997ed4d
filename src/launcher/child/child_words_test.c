#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/child/child_words.h"

static void check_harmless(const char *bytes, const char *wanted)
{
    /* Whole, and byte by byte: the state is kept between them. */
    for (size_t step = strlen(bytes); step > 0; step = step > 1 ? 1 : 0) {
        struct child_words words = {.matched = 0};
        char made[256];
        size_t length = 0;

        for (size_t at = 0; at < strlen(bytes); at += step)
            length += child_words_make_harmless(&words, bytes + at, step, made + length);
        made[length] = '\0';
        assert_string_equal(made, wanted);
    }
}

static void only_what_a_progress_bar_needs_reaches_the_terminal(void **state)
{
    (void) state;
    check_harmless("layer 1 of 2\n", "layer 1 of 2\n");
    check_harmless("\r\033[Kdebian [==>  ]", "\r\033[Kdebian [==>  ]");
    check_harmless("\033[2J\033]0;title\a", "?2J?]0;title?");
    check_harmless("\033\033[K", "?\033[K");
    check_harmless("\033[\033[K", "?\033[K");
    check_harmless("\xc2\x9b"
                   "31m\t\x7f",
                   "??31m??");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_a_progress_bar_needs_reaches_the_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
