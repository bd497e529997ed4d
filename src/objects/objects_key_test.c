#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "objects/objects_key.h"

static void a_key_has_a_path(void **state)
{
    static const char *const cases[][2] = {
        {"a", "a"},
        {"backups/x/data.sqsh", "backups/x/data.sqsh"},
        {"a//b/", "a/%/b/%"},
        {"/", "%/%"},
        {"", "%"},
        {".", "%2E"},
        {"..", "%2E."},
        {"a..b/.git", "a..b/%2Egit"},
        {"50%", "50%25"},
        {"%2E", "%252E"},
        {"line\nline\x7f", "line%0Aline%7F"},
        {"\xc3\xa4 +~=", "\xc3\xa4 +~="},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char path[OBJECTS_PATH_SIZE];

        objects_key_path(cases[i][0], path);
        assert_string_equal(path, cases[i][1]);
    }
}

static void long_segments_go_on_in_folders(void **state)
{
    char key[OBJECTS_KEY_MAX + 1], path[OBJECTS_PATH_SIZE], part[OBJECTS_PART_SIZE];
    bool goes_on = false;

    (void) state;
    memset(key, 'x', sizeof(key) - 1);
    key[450] = '\0';
    objects_key_path(key, path);
    assert_int_equal(strlen(path), 450 + 2 * strlen("%_/"));
    assert_memory_equal(path + 200, "%_/", 3);
    assert_memory_equal(path + 403, "%_/", 3);
    path[202] = '\0';
    assert_int_equal(objects_key_part(path, part, &goes_on), 200);
    assert_true(goes_on);
    key[200] = '\0';
    objects_key_path(key, path);
    assert_string_equal(path, key);
    assert_int_equal(objects_key_part(path, part, &goes_on), 200);
    assert_false(goes_on);
}

static void the_longest_keys_have_room(void **state)
{
    static const char fills[] = {'x', '%', '/', '.', '\x01'};

    (void) state;
    for (size_t i = 0; i < sizeof(fills); i++) {
        char key[OBJECTS_KEY_MAX + 1], path[OBJECTS_PATH_SIZE];

        memset(key, fills[i], OBJECTS_KEY_MAX);
        key[OBJECTS_KEY_MAX] = '\0';
        memset(path, '!', sizeof(path));
        objects_key_path(key, path);
        assert_true(strlen(path) < sizeof(path));
        for (const char *name = path; name; name = strchr(name, '/')) {
            name += *name == '/';
            assert_in_range(strcspn(name, "/"), 1, 255);
            assert_int_not_equal(*name, '.');
        }
    }
}

static void a_part_comes_back(void **state)
{
    static const struct {
        const char *name, *part;
    } cases[] = {
        {"a", "a"}, {"%", ""}, {"%2E", "."}, {"%2E.", ".."}, {"50%25", "50%"}, {"a%0A", "a\n"},
    };
    char part[OBJECTS_PART_SIZE];
    bool goes_on = true;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(objects_key_part(cases[i].name, part, &goes_on), strlen(cases[i].part));
        assert_string_equal(part, cases[i].part);
        assert_false(goes_on);
    }
}

static void names_that_we_never_write_are_refused(void **state)
{
    static const char *const names[] = {
        "",    ".",   "..",   ".tmp", ".burrow-0123456789abcdef.tmp",
        "%4",  "%41", "%2e",  "a%2E", "%00",
        "%2F", "%zz", "a%",   "%%",   "a%_",
        "%_",  "a\n", "a%_b",
    };
    char part[OBJECTS_PART_SIZE], longer[300];
    bool goes_on;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (objects_key_part(names[i], part, &goes_on) != -EINVAL)
            fail_msg("'%s' was taken", names[i]);
    }
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(objects_key_part(longer, part, &goes_on), -EINVAL);
    longer[201] = '\0';
    assert_int_equal(objects_key_part(longer, part, &goes_on), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_a_path),
        cmocka_unit_test(long_segments_go_on_in_folders),
        cmocka_unit_test(the_longest_keys_have_room),
        cmocka_unit_test(a_part_comes_back),
        cmocka_unit_test(names_that_we_never_write_are_refused),
    };

    return cmocka_run_group_tests_name("objects_key", tests, NULL, NULL);
}
