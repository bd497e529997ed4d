#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/image/debian_bar.h"

#define CLEAR    "\r\033[K"
#define TEXT_MAX ((size_t) 16 * 1024)

static void check_shown(struct debian_bar *bar, const char *said, const char *wanted)
{
    AUTO(text) struct text out = TEXT_INIT(TEXT_MAX);

    debian_bar_take(bar, said, strlen(said), 21500, &out);
    assert_string_equal(text_string(&out), wanted);
}

static void check_end(struct debian_bar *bar, const char *wanted)
{
    AUTO(text) struct text out = TEXT_INIT(TEXT_MAX);

    debian_bar_end(bar, &out);
    assert_string_equal(text_string(&out), wanted);
}

static void its_steps_move_the_bar(void **state)
{
    struct debian_bar bar = {.columns = 80};

    (void) state;
    check_shown(&bar, "I: finding correct signed-by value...\n", "");
    check_shown(&bar, "I: downloading pack", "");
    check_shown(&bar, "ages with apt...\n",
                CLEAR "[=>                  ]  step 2 of 8  downloading packages  21 s");
    check_shown(&bar, "", CLEAR "[=>                  ]  step 2 of 8  downloading packages  21 s");
    check_shown(&bar, "I: extracting archives...\nI: removing tempdir /var/tmp/x...\n",
                CLEAR "[===================>]  step 8 of 8  removing tempdir  21 s");
    check_shown(&bar, "I: extracting archives...\n",
                CLEAR "[===================>]  step 8 of 8  removing tempdir  21 s");
    check_end(&bar, CLEAR);
}

static void what_went_wrong_stays_on_the_screen(void **state)
{
    struct debian_bar bar = {.columns = 30};

    (void) state;
    check_shown(&bar, "W: careful\n", CLEAR "W: careful\n");
    check_shown(&bar, "I: extracting archives...\nE: no such package\n",
                CLEAR "E: no such package\n" CLEAR "[======>             ]  step ");
    check_shown(&bar, "the last word", CLEAR "[======>             ]  step ");
    check_end(&bar, CLEAR "the last word\n" CLEAR);
}

static void a_line_without_end_is_shown_in_pieces(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(TEXT_MAX);
    struct debian_bar bar = {.columns = 80};
    char said[3 * DEBIAN_BAR_LINE_MAX];

    (void) state;
    memset(said, 'x', sizeof(said));
    debian_bar_take(&bar, said, sizeof(said), 0, &out);
    debian_bar_end(&bar, &out);
    said[DEBIAN_BAR_LINE_MAX - 1] = '\0';
    assert_int_equal(strncmp(text_string(&out), CLEAR, strlen(CLEAR)), 0);
    assert_int_equal(strncmp(text_string(&out) + strlen(CLEAR), said, strlen(said)), 0);
    assert_int_equal(out.length, 3 * DEBIAN_BAR_LINE_MAX + 4 * strlen(CLEAR "\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_steps_move_the_bar),
        cmocka_unit_test(what_went_wrong_stays_on_the_screen),
        cmocka_unit_test(a_line_without_end_is_shown_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
