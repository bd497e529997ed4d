#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recipe/accounts.h"
#include "recipe/draft.h"

static void apply(struct draft *draft, const char *lines)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(text) struct text text = TEXT_INIT(65536);
    struct error err = ERROR_INIT;
    struct recipe recipe;

    text_format(&text, "FROM x\n%s", lines);
    if (recipe_read(text.data, text.length, &pool, &recipe, &err) < 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < recipe.count; i++) {
        if (draft_apply(draft, &recipe.steps[i], &err) < 0)
            fail_msg("%s", err.message);
    }
}

static void assert_expands(const struct draft *draft, const char *text, const char *to)
{
    AUTO(text) struct text out = TEXT_INIT(65536);
    struct error err = ERROR_INIT;

    assert_int_equal(draft_expand(draft, text, &out, &err), 0);
    assert_string_equal(text_string(&out), to);
}

static void variables_are_replaced_as_in_a_shell(void **state)
{
    AUTO(draft) struct draft draft = DRAFT_INIT;
    AUTO(text) struct text out = TEXT_INIT(65536);
    struct error err = ERROR_INIT;

    (void) state;
    apply(&draft, "ENV A=1 EMPTY=\n");
    assert_expands(&draft, "$A${A}x", "11x");
    assert_expands(&draft, "$NONE-$", "-$");
    assert_expands(&draft, "${NONE:-b $A} ${A:-b} ${EMPTY:-c}", "b 1 1 c");
    assert_expands(&draft, "${A:+set} ${EMPTY:+set}", "set ");
    assert_expands(&draft, "${NONE:-${A:+${A}2}}", "12");
    assert_expands(&draft, "\\$A '$A' \"$A \\\" \\n\" a\\ b", "$A $A 1 \" \\n a b");
    assert_int_equal(draft_expand(&draft, "${A", &out, &err), -1);
    assert_int_equal(draft_expand(&draft, "${A?x}", &out, &err), -1);
    assert_int_equal(draft_expand(&draft, "'a", &out, &err), -1);
    assert_int_equal(
        draft_expand(&draft, "${N:-${N:-${N:-${N:-${N:-${N:-${N:-${N:-${N:-x}}}}}}}}}", &out, &err),
        -1);
}

static void an_environment_has_each_name_once_and_both_forms(void **state)
{
    AUTO(draft) struct draft draft = DRAFT_INIT;

    (void) state;
    apply(&draft, "ENV A=1 B=\"two words\"\nENV A=2 C=$A\nENV OLD all of  it $A\n");
    assert_string_equal(draft_variable(&draft, "A"), "2");
    assert_string_equal(draft_variable(&draft, "B"), "two words");
    assert_string_equal(draft_variable(&draft, "C"), "1"); /* values of before the step */
    assert_string_equal(draft_variable(&draft, "OLD"), "all of  it 2");
    assert_int_equal(draft.image.by_key[WIRE_IMAGE_ENV].count, 4);
}

static void arguments_are_given_or_have_a_default_and_stay_out_of_the_image(void **state)
{
    static const char *const given[] = {"GIVEN=outside", NULL};
    AUTO(draft) struct draft draft = DRAFT_INIT;

    (void) state;
    draft.given = given;
    apply(&draft, "ARG GIVEN=inside\nARG DEFAULT=$GIVEN.x NOTHING\nENV E=$DEFAULT DEFAULT=env\n");
    assert_expands(&draft, "$GIVEN $NOTHING $E $DEFAULT", "outside  outside.x env");
    assert_null(draft_variable(&draft, "GIVEN"));
}

static void folders_follow_each_other(void **state)
{
    AUTO(draft) struct draft draft = DRAFT_INIT;
    AUTO(text) struct text path = TEXT_INIT(4096);

    (void) state;
    apply(&draft, "ENV D=b\nWORKDIR /a\nWORKDIR ./$D//c/..\n");
    assert_string_equal(wire_image_word(&draft.image, WIRE_IMAGE_WORKDIR), "/a/b");
    draft_path(&draft, "../../../x/", &path);
    assert_string_equal(text_string(&path), "/x");
    text_clear(&path);
    draft_path(&draft, "/", &path);
    assert_string_equal(text_string(&path), "/");
}

static void commands_are_words_or_a_line_for_a_shell(void **state)
{
    AUTO(draft) struct draft draft = DRAFT_INIT;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(wire_image_add(&draft.image, WIRE_IMAGE_CMD, "theirs", &err), 0);
    apply(&draft, "ENTRYPOINT [\"run\", \"$A\"]\n");
    assert_int_equal(draft.image.by_key[WIRE_IMAGE_CMD].count, 0); /* was for another program */
    assert_string_equal(draft.image.by_key[WIRE_IMAGE_ENTRYPOINT].words[1], "$A");
    apply(&draft, "CMD a && b\nENTRYPOINT x\nEXPOSE 80 53/udp\nUSER 5:6\n");
    assert_string_equal(draft.image.by_key[WIRE_IMAGE_CMD].words[2], "a && b");
    assert_string_equal(draft.image.by_key[WIRE_IMAGE_ENTRYPOINT].words[0], "/bin/sh");
    assert_string_equal(draft.image.by_key[WIRE_IMAGE_PORT].words[0], "80/tcp");
    assert_string_equal(wire_image_word(&draft.image, WIRE_IMAGE_USER), "5:6");
}

static void what_an_image_cannot_have_is_refused_with_its_line(void **state)
{
    static const char *const wrong[] = {"USER a b", "EXPOSE http", "EXPOSE 80-90",
                                        "ENV A",    "ENV =x",      "USER ${X?}"};
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        AUTO(draft) struct draft draft = DRAFT_INIT;
        char text[64];
        struct error err = ERROR_INIT;
        struct recipe recipe;

        (void) snprintf(text, sizeof(text), "FROM x\n\n%s\n", wrong[i]);
        assert_int_equal(recipe_read(text, strlen(text), &pool, &recipe, &err), 0);
        assert_int_equal(draft_apply(&draft, &recipe.steps[1], &err), -1);
        if (strncmp(err.message, "line 3: ", 8) != 0)
            fail_msg("%s: %s", wrong[i], err.message);
    }
}

/* A key changes with all that the outcome depends on, and with nothing else. */
static void keys_change_with_what_counts(void **state)
{
    static const uint8_t digest[SHA256_SIZE] = {1}, other[SHA256_SIZE] = {2};
    const struct recipe_step run = {.kind = RECIPE_RUN, .rest = "x", .text = "RUN x", .line = 3};
    const struct recipe_step copy = {.kind = RECIPE_COPY, .rest = "x y"};
    const struct recipe_step owned = {.kind = RECIPE_COPY, .rest = "x y", .owner = "5"};
    AUTO(draft) struct draft draft = DRAFT_INIT;
    char keys[9][DRAFT_STEP_SIZE], again[DRAFT_STEP_SIZE];
    struct recipe_step later = run;

    (void) state;
    draft_key(&draft, &run, NULL, keys[0]);
    draft_key(&draft, NULL, NULL, keys[1]);
    draft_key(&draft, &copy, digest, keys[2]);
    draft_key(&draft, &copy, other, keys[3]);
    draft_key(&draft, &owned, digest, keys[4]);
    apply(&draft, "CMD x\nEXPOSE 1\nENTRYPOINT x\n");
    later.line = 9;
    later.text = "run   x";
    draft_key(&draft, &later, NULL, again);
    assert_string_equal(again, keys[0]);
    apply(&draft, "ENV A=1\n");
    draft_key(&draft, &run, NULL, keys[5]);
    apply(&draft, "ARG B=1\n");
    draft_key(&draft, &run, NULL, keys[6]);
    apply(&draft, "USER 1\n");
    draft_key(&draft, &run, NULL, keys[7]);
    draft.identity = "another folder";
    draft_key(&draft, &run, NULL, keys[8]);
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        assert_int_equal(strlen(keys[i]), DRAFT_STEP_SIZE - 1);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    }
}

static void owners_are_found_in_the_image(void **state)
{
    static const char passwd[] = "root:x:0:0::/root:/bin/sh\nbroken\nwww:x:33:44::/:/\n";
    static const char group[] = "root:x:0:\nstaff:x:50:www\n";
    struct error err = ERROR_INIT;
    uid_t uid;
    gid_t gid;
    static const struct {
        const char *owner;
        uid_t uid;
        gid_t gid;
    } good[] = {{"www", 33, 44},      {"www:staff", 33, 50}, {"33", 33, 44},
                {"1000", 1000, 1000}, {"5:6", 5, 6},         {":staff", 0, 50}};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_int_equal(accounts_find(good[i].owner, passwd, group, &uid, &gid, &err), 0);
        assert_int_equal(uid, good[i].uid);
        assert_int_equal(gid, good[i].gid);
    }
    assert_int_equal(accounts_find("nobody", passwd, group, &uid, &gid, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(accounts_find("www:none", passwd, group, &uid, &gid, &err), -1);
    assert_int_equal(accounts_find("70000", passwd, group, &uid, &gid, &err), -1);
    assert_int_equal(accounts_find(":", passwd, group, &uid, &gid, &err), -1);
}

static void arguments_before_the_base_are_known_again_only_by_name(void **state)
{
    AUTO(draft) struct draft draft = DRAFT_INIT;

    (void) state;
    apply(&draft, "ARG A=1 B=2 C=3\n");
    assert_expands(&draft, "$A$B", "12");
    draft_begin(&draft);
    assert_expands(&draft, "$A$B", "");
    apply(&draft, "ARG A\nARG B=4\n");
    assert_expands(&draft, "$A$B$C", "14");
}

static void the_layers_of_a_build_have_a_limit_together(void **state)
{
    AUTO(draft) struct draft draft = DRAFT_INIT;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(draft_count(&draft, DRAFT_BYTES_MAX - 1, 1, &err), 0);
    assert_int_equal(draft_count(&draft, 2, 1, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_int_equal(draft_count(&draft, UINT64_MAX, 1, &err), -1);
    assert_int_equal(draft_count(&draft, 1, DRAFT_ENTRIES_MAX, &err), -1);
    assert_int_equal(draft_count(&draft, 1, DRAFT_ENTRIES_MAX - 1, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_replaced_as_in_a_shell),
        cmocka_unit_test(an_environment_has_each_name_once_and_both_forms),
        cmocka_unit_test(arguments_are_given_or_have_a_default_and_stay_out_of_the_image),
        cmocka_unit_test(folders_follow_each_other),
        cmocka_unit_test(commands_are_words_or_a_line_for_a_shell),
        cmocka_unit_test(what_an_image_cannot_have_is_refused_with_its_line),
        cmocka_unit_test(keys_change_with_what_counts),
        cmocka_unit_test(arguments_before_the_base_are_known_again_only_by_name),
        cmocka_unit_test(the_layers_of_a_build_have_a_limit_together),
        cmocka_unit_test(owners_are_found_in_the_image),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
