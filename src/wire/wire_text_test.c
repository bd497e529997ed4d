#include "wire/wire_testing.h"

struct text_case {
    const char *text;
    bool holds;
};

static void names_follow_their_rule(void **state)
{
    static const struct text_case cases[] = {
        {"a", true},      {"0", true},         {"demo", true},   {"python-3.11_slim", true},
        {"", false},      {".hidden", false},  {"-flag", false}, {"_x", false},
        {"Upper", false}, {"a/b", false},      {"..", false},    {"a b", false},
        {"a\n", false},   {"\xc3\xa9", false}, {"a\x7f", false},
    };
    char longest[WIRE_NAME_MAX + 2];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (wire_text_is_name(cases[i].text) != cases[i].holds)
            fail_msg("'%s'", cases[i].text);
    memset(longest, 'a', sizeof(longest));
    longest[WIRE_NAME_MAX] = '\0';
    assert_true(wire_text_is_name(longest));
    longest[WIRE_NAME_MAX] = 'a';
    longest[WIRE_NAME_MAX + 1] = '\0';
    assert_false(wire_text_is_name(longest));
}

static void paths_have_one_spelling(void **state)
{
    static const struct text_case cases[] = {
        {"/a", true},         {"/workspace", true}, {"/a/b/c", true}, {"/a b/...", true},
        {"/.hidden", true},   {"/a/..b", true},     {"/a/b..", true}, {"", false},
        {"/", false},         {"a", false},         {"a/b", false},   {"//a", false},
        {"/a//b", false},     {"/a/", false},       {"/.", false},    {"/..", false},
        {"/a/../b", false},   {"/a/./b", false},    {"/a/..", false}, {"/a\n", false},
        {"/\xc3\xa9", false},
    };
    char longest[WIRE_PATH_MAX + 2];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (wire_text_is_path(cases[i].text) != cases[i].holds)
            fail_msg("'%s'", cases[i].text);
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[WIRE_PATH_MAX] = '\0';
    assert_true(wire_text_is_path(longest));
    longest[WIRE_PATH_MAX] = 'a';
    longest[WIRE_PATH_MAX + 1] = '\0';
    assert_false(wire_text_is_path(longest));
}

static void printable_is_ascii_without_control_characters(void **state)
{
    (void) state;
    for (int c = 1; c < 256; c++) {
        char text[] = {'a', (char) c, 'b', '\0'};

        assert_int_equal(wire_text_is_printable(text), c >= ' ' && c <= '~');
    }
    assert_true(wire_text_is_printable(""));
}

static void any_text_can_be_made_to_fit(void **state)
{
    char text[8];

    (void) state;
    wire_text_set(text, sizeof(text), "short");
    assert_string_equal(text, "short");
    wire_text_set(text, sizeof(text), "longer than that");
    assert_string_equal(text, "longer ");
    wire_text_set(text, sizeof(text), "\x1b[m\n\xc3\xa9");
    assert_string_equal(text, "?[m???");
    wire_text_set(text, 1, "nothing");
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_follow_their_rule),
        cmocka_unit_test(paths_have_one_spelling),
        cmocka_unit_test(printable_is_ascii_without_control_characters),
        cmocka_unit_test(any_text_can_be_made_to_fit),
    };

    return cmocka_run_group_tests_name("wire_text", tests, NULL, NULL);
}
