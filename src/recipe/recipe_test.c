#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recipe/recipe.h"

struct read {
    struct pool pool;
    struct recipe recipe;
};

static void take(struct read *read, const char *text)
{
    struct error err = ERROR_INIT;

    read->pool = (struct pool) POOL_INIT;
    if (recipe_read(text, strlen(text), &read->pool, &read->recipe, &err) < 0)
        fail_msg("%s: %s", text, err.message);
}

static void assert_refused(const char *text, const char *why)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    struct recipe recipe;

    assert_int_equal(recipe_read(text, strlen(text), &pool, &recipe, &err), -1);
    if (!strstr(err.message, why))
        fail_msg("'%s' does not say '%s'", err.message, why);
}

static void steps_come_in_order_with_their_lines(void **state)
{
    struct read read;

    (void) state;
    take(&read, "\xef\xbb\xbf# syntax=docker/dockerfile:1\r\nfrom debian AS x\r\n\r\n  # no\r\n"
                "RUN a \\\r\n  # between\r\n\r\n   && b\r\nExpose 80 53/udp\r\n");
    assert_int_equal(read.recipe.count, 3);
    assert_int_equal(read.recipe.steps[0].kind, RECIPE_FROM);
    assert_string_equal(read.recipe.steps[0].words[0], "debian");
    assert_int_equal(read.recipe.steps[0].line, 2);
    assert_int_equal(read.recipe.steps[1].kind, RECIPE_RUN);
    assert_int_equal(read.recipe.steps[1].line, 5);
    assert_string_equal(read.recipe.steps[1].rest, "a    && b");
    assert_int_equal(read.recipe.steps[2].line, 9);
    assert_int_equal(read.recipe.steps[2].word_count, 2);
    pool_done(&read.pool);
}

static void json_arrays_are_words_and_tests_of_the_shell_are_not(void **state)
{
    struct read read;

    (void) state;
    take(&read, "FROM a\nRUN [\"x\", \"a b\"]\nRUN [ -f /x ] && y\nCMD []\n"
                "COPY [\"a b\", \"c\"]\nENTRYPOINT x \"y");
    assert_true(read.recipe.steps[1].is_json);
    assert_string_equal(read.recipe.steps[1].words[1], "a b");
    assert_false(read.recipe.steps[2].is_json);
    assert_string_equal(read.recipe.steps[2].rest, "[ -f /x ] && y");
    assert_true(read.recipe.steps[3].is_json);
    assert_int_equal(read.recipe.steps[3].word_count, 0);
    assert_string_equal(read.recipe.steps[4].words[0], "a b");
    assert_string_equal(read.recipe.steps[5].rest, "x \"y");
    pool_done(&read.pool);
}

static void the_owner_of_a_copy_is_an_option(void **state)
{
    struct read read;

    (void) state;
    take(&read, "FROM a\nCOPY --chown=www-data:33  a b/ \"c d\"");
    assert_string_equal(read.recipe.steps[1].owner, "www-data:33");
    assert_int_equal(read.recipe.steps[1].word_count, 3);
    assert_string_equal(read.recipe.steps[1].words[2], "\"c d\"");
    pool_done(&read.pool);
}

static void everything_else_is_refused_with_its_line(void **state)
{
    (void) state;
    assert_refused("", "it is empty");
    assert_refused("# only\n", "there is no FROM");
    assert_refused("ARG A=1\n", "there is no FROM");
    assert_refused("RUN x\n", "line 1: RUN before FROM");
    assert_refused("FROM a\n\nHEALTHCHECK x\n", "line 3: 'HEALTHCHECK' is not one");
    assert_refused("FROM a\nADD x y\n", "line 2: 'ADD' is not one");
    assert_refused("FROM a\nFROM b\n", "line 2: a second FROM");
    assert_refused("FROM --platform=x a\n", "line 1: FROM has no option '--platform=x'");
    assert_refused("FROM a\nCOPY --from=b c d\n", "line 2: COPY has no option '--from=b'");
    assert_refused("FROM a\nRUN --mount=type=cache x\n", "line 2: RUN has no option");
    assert_refused("FROM a\nRUN <<EOF\nx\nEOF\n", "line 2: here-documents");
    assert_refused("FROM a\nCOPY <<EOF /x\n", "line 2: here-documents");
    assert_refused("FROM a\nCOPY x\n", "line 2: COPY needs something to copy and a place");
    assert_refused("FROM a\nCOPY [\"x\", 1]\n", "line 2: this is not a JSON array of texts");
    assert_refused("FROM a\nCOPY \"x y\n", "line 2: a quote has no end");
    assert_refused("FROM a\nRUN []\n", "line 2: RUN needs a program");
    assert_refused("FROM a\nUSER\n", "line 2: USER needs more words");
    assert_refused("FROM a b\n", "line 1: FROM takes the name");
    assert_refused("# escape=`\nFROM a\n", "another escape character");
    assert_refused("FROM a\nRUN \xff\n", "it is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_come_in_order_with_their_lines),
        cmocka_unit_test(json_arrays_are_words_and_tests_of_the_shell_are_not),
        cmocka_unit_test(the_owner_of_a_copy_is_an_option),
        cmocka_unit_test(everything_else_is_refused_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
