#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/verb/verb.h"
/* After the headers it needs. */
#include <cmocka.h>

#define WORDS_MAX 32
#define PAGE_MAX  ((size_t) 64 * 1024)

static const struct verb_option make_options[] = {
    {"memory", 'm', "SIZE", "how much", false},
    {"env", 'e', "NAME=TEXT", "a variable", true},
    {"quiet", 'q', NULL, "say nothing", false},
    {"follow", 'f', NULL, "go on", false},
    {NULL, 0, NULL, NULL, false},
};

static int run_nothing(struct verb_call *call)
{
    (void) call;
    return 0;
}

static const struct verb verb_make = {
    .name = "make",
    .summary = "Make one",
    .arguments = "[NAME]",
    .options = make_options,
    .details = ".dots and 'quotes' at the start\n- and a \\backslash",
    .examples = "  burrow make it",
    .words_max = 1,
    .run = run_nothing,
};

static const struct verb verb_do = {
    .name = "do",
    .summary = "Do [it]: now",
    .arguments = "NAME COMMAND",
    .options = make_options,
    .words_min = 1,
    .words_max = 1,
    .stops_at_word = 1,
    .takes_sandboxes = true,
    .run = run_nothing,
};

static const struct verb verb_key_make = {
    .name = "key make", .summary = "Make a key", .arguments = "", .run = run_nothing};
static const struct verb verb_key_show = {.name = "key show",
                                          .summary = "Show it",
                                          .arguments = "",
                                          .is_local = true,
                                          .run = run_nothing};

static const struct verb *const verbs[] = {&verb_make, &verb_do, &verb_key_make, &verb_key_show,
                                           NULL};
static const struct verb_table table = {"burrow", "Sandboxes", verbs};

struct reading {
    char *line;
    char *words[WORDS_MAX];
    int count;
    struct verb_call call;
    struct error err;
    int result;
};

static void split(struct reading *reading, const char *line)
{
    char *rest;

    *reading = (struct reading){.line = strdup(line)};
    rest = reading->line;
    while (rest && *rest && reading->count < WORDS_MAX - 1)
        reading->words[reading->count++] = strsep(&rest, " ");
}

static void read_line(struct reading *reading, const struct verb *verb, const char *line)
{
    split(reading, line);
    reading->result =
        verb_read(verb, reading->count, reading->words, &reading->call, &reading->err);
}

static void reading_done(struct reading *reading)
{
    verb_call_done(&reading->call);
    free(reading->line);
}

static void refuses(const struct verb *verb, const char *line, const char *message)
{
    struct reading reading;

    read_line(&reading, verb, line);
    assert_int_equal(reading.result, -1);
    assert_int_equal(reading.err.code, ERR_INVALID);
    if (!strstr(reading.err.message, message))
        fail_msg("'%s' does not say '%s'", reading.err.message, message);
    reading_done(&reading);
}

/* --- options --------------------------------------------------------------------------------- */

static void options_are_read_in_every_spelling(void **state)
{
    static const char *const lines[] = {"--memory 1G a", "--memory=1G a", "-m 1G a", "-m1G a",
                                        "a -qm1G"};
    struct reading reading;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        read_line(&reading, &verb_make, lines[i]);
        assert_int_equal(reading.result, 0);
        assert_string_equal(verb_value(&reading.call, "memory"), "1G");
        assert_int_equal(reading.call.word_count, 1);
        assert_string_equal(reading.call.words[0], "a");
        reading_done(&reading);
    }
}

static void the_last_of_an_option_counts_and_repeatable_ones_all_do(void **state)
{
    const char *const *values;
    struct reading reading;
    size_t count;

    (void) state;
    read_line(&reading, &verb_make, "-m1 -m2 -eA=1 --env B=2 -e C=");
    assert_int_equal(reading.result, 0);
    assert_string_equal(verb_value(&reading.call, "memory"), "2");
    values = verb_values(&reading.call, "env", &count);
    assert_int_equal(count, 3);
    assert_string_equal(values[0], "A=1");
    assert_string_equal(values[2], "C=");
    assert_false(verb_flag(&reading.call, "quiet"));
    reading_done(&reading);
}

static void more_repeats_than_there_is_room_for_are_refused(void **state)
{
    char *words[VERB_REPEATS_MAX + 1], word[] = "-eA=1";
    struct error err = ERROR_INIT;
    struct verb_call call;

    (void) state;
    for (size_t i = 0; i <= VERB_REPEATS_MAX; i++)
        words[i] = word;
    assert_int_equal(verb_read(&verb_make, VERB_REPEATS_MAX, words, &call, &err), 0);
    verb_call_done(&call);
    assert_int_equal(verb_read(&verb_make, VERB_REPEATS_MAX + 1, words, &call, &err), -1);
    verb_call_done(&call);
}

static void wrong_words_are_refused_with_what_is_right(void **state)
{
    (void) state;
    refuses(&verb_make, "--memroy 1G", "did you mean --memory?");
    refuses(&verb_make, "--zebra", "make has no option --zebra");
    refuses(&verb_make, "-x", "no option -x");
    refuses(&verb_make, "--memory", "--memory needs a value: SIZE");
    refuses(&verb_make, "--quiet=yes", "takes no value");
    refuses(&verb_make, "a b", "'b' is too much");
    refuses(&verb_do, "", "do needs more: do NAME COMMAND");
    refuses(&verb_key_show, "--json", "no option --json");
}

static void a_command_keeps_its_own_options(void **state)
{
    static const char *const lines[] = {"-q box ls -l -q", "box -q -- ls -l -q"};
    struct reading reading;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        read_line(&reading, &verb_do, lines[i]);
        assert_int_equal(reading.result, 0);
        assert_true(verb_flag(&reading.call, "quiet"));
        assert_int_equal(reading.call.command_count, 3);
        assert_string_equal(reading.call.command[1], "-l");
        assert_string_equal(reading.call.command[2], "-q");
        assert_null(reading.call.command[3]);
        reading_done(&reading);
    }
}

static void a_lone_dash_is_a_word(void **state)
{
    struct reading reading;

    (void) state;
    read_line(&reading, &verb_make, "-");
    assert_int_equal(reading.result, 0);
    assert_string_equal(reading.call.words[0], "-");
    reading_done(&reading);
}

static void help_needs_no_other_word(void **state)
{
    struct reading reading;

    (void) state;
    read_line(&reading, &verb_do, "-h");
    assert_int_equal(reading.result, 0);
    assert_true(reading.call.wants_help);
    reading_done(&reading);
}

/* --- names ----------------------------------------------------------------------------------- */

static void finds(const char *line, const struct verb *expected, int used_expected)
{
    struct error err = ERROR_INIT;
    struct reading reading;
    int used = 0;

    split(&reading, line);
    assert_ptr_equal(verb_find(&table, reading.count, reading.words, &used, &err), expected);
    assert_int_equal(used, used_expected);
    free(reading.line);
}

static void finds_none(const char *line, const char *message)
{
    struct error err = ERROR_INIT;
    struct reading reading;
    int used;

    split(&reading, line);
    assert_null(verb_find(&table, reading.count, reading.words, &used, &err));
    if (!strstr(err.message, message))
        fail_msg("'%s' does not say '%s'", err.message, message);
    free(reading.line);
}

static void verbs_are_found_by_one_or_two_words(void **state)
{
    (void) state;
    finds("make a", &verb_make, 1);
    finds("key make a", &verb_key_make, 2);
    finds("key show", &verb_key_show, 2);
    finds_none("mkae", "did you mean 'make'?");
    finds_none("key", "key what? One of: make, show");
    finds_none("key mkae", "One of: make, show");
    finds_none("elephant", "burrow --help lists them");
    finds_none("", "say what to do");
}

/* --- documents ------------------------------------------------------------------------------- */

static void contains(void (*write)(const struct verb_table *table, struct text *out),
                     const char *text)
{
    AUTO(text) struct text out = TEXT_INIT(PAGE_MAX);

    write(&table, &out);
    assert_false(out.overflowed);
    if (!strstr(text_string(&out), text))
        fail_msg("'%s' is not in:\n%s", text, text_string(&out));
}

static void every_document_has_every_verb(void **state)
{
    (void) state;
    contains(verb_write_usage, "  key show         Show it\n");
    contains(verb_write_bash, "-W \"make do key\"");
    contains(verb_write_bash, "key) halves=\"make show\" ;;");
    contains(verb_write_bash,
             "\"do \"*) flags=\" --memory --env --quiet --follow --json --url --key --help\"; "
             "names=1 ;;");
    contains(verb_write_bash, "\"key show \"*) flags=\" --help\" ;;");
    contains(verb_write_zsh, "'do:Do \\[it\\]\\: now'");
    contains(verb_write_zsh, "key) (( CURRENT == 3 )) && { compadd -- make show; return; } ;;");
    contains(verb_write_man, ".SS burrow key show");
    contains(verb_write_man, "\\fB\\-m\\fR, \\fB\\-\\-memory\\fR \\fISIZE\\fR\nhow much\n");
}

static void what_roff_takes_for_its_own_is_escaped(void **state)
{
    (void) state;
    contains(verb_write_man, "\n\\&.dots and 'quotes' at the start\n\\- and a \\ebackslash\n");
}

static void help_shows_options_common_ones_and_examples(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(PAGE_MAX);

    (void) state;
    verb_write_help(&table, &verb_make, &out);
    assert_non_null(strstr(text_string(&out), "usage: burrow make [OPTION...] [NAME]\n"));
    assert_non_null(strstr(text_string(&out), "  -m, --memory SIZE"));
    assert_non_null(strstr(text_string(&out), "      --json "));
    assert_non_null(strstr(text_string(&out), "Examples:\n  burrow make it\n"));
    text_clear(&out);
    verb_write_help(&table, &verb_key_show, &out);
    assert_null(strstr(text_string(&out), "--json"));
}

static void a_verb_of_too_many_options_is_refused(void **state)
{
    static struct verb_option many[VERB_OPTIONS_MAX + 1];
    const struct verb verb = {.name = "many", .options = many};
    struct verb_call call = {.verb = NULL};
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < VERB_OPTIONS_MAX; i++)
        many[i] = (struct verb_option){.name = "same"};
    assert_int_equal(verb_read(&verb, 0, NULL, &call, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read_in_every_spelling),
        cmocka_unit_test(the_last_of_an_option_counts_and_repeatable_ones_all_do),
        cmocka_unit_test(more_repeats_than_there_is_room_for_are_refused),
        cmocka_unit_test(wrong_words_are_refused_with_what_is_right),
        cmocka_unit_test(a_command_keeps_its_own_options),
        cmocka_unit_test(a_lone_dash_is_a_word),
        cmocka_unit_test(help_needs_no_other_word),
        cmocka_unit_test(verbs_are_found_by_one_or_two_words),
        cmocka_unit_test(every_document_has_every_verb),
        cmocka_unit_test(what_roff_takes_for_its_own_is_escaped),
        cmocka_unit_test(help_shows_options_common_ones_and_examples),
        cmocka_unit_test(a_verb_of_too_many_options_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
