#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/copy/copy_place.h"

/* After the headers it needs. */
#include <cmocka.h>

static void reads(const char *word, enum copy_kind kind, const char *sandbox, const char *path)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct copy_place place;

    copy_place_read(word, &pool, &place);
    assert_int_equal(place.kind, kind);
    assert_string_equal(place.path, path);
    if (sandbox)
        assert_string_equal(place.sandbox, sandbox);
    else
        assert_null(place.sandbox);
}

static void the_first_colon_names_a_sandbox_unless_a_slash_comes_before(void **state)
{
    (void) state;
    reads("demo:/etc/hosts", COPY_THERE, "demo", "/etc/hosts");
    reads("demo:", COPY_THERE, "demo", "");
    reads("demo:a:b", COPY_THERE, "demo", "a:b");
    reads("./demo:a", COPY_HERE, NULL, "./demo:a");
    reads("a/b:c", COPY_HERE, NULL, "a/b:c");
    reads("file", COPY_HERE, NULL, "file");
    reads(":x", COPY_HERE, NULL, ":x");
    reads("-", COPY_STREAM, NULL, "-");
}

static void resolves(const char *path, const char *expected)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    assert_string_equal(copy_place_resolve("/workspace", path, &pool), expected);
}

static void a_relative_path_begins_in_the_folder(void **state)
{
    (void) state;
    resolves("", "/workspace");
    resolves("a/b", "/workspace/a/b");
    resolves("a/b//", "/workspace/a/b");
    resolves("/etc", "/etc");
    resolves("/", "/");
    resolves("///", "/");
    resolves("src/.", "/workspace/src");
    resolves(".", "/workspace");
    resolves("/.", "/");
}

static void a_path_may_say_that_it_is_a_folder_or_its_content(void **state)
{
    (void) state;
    assert_true(copy_place_is_folder(""));
    assert_true(copy_place_is_folder("a/"));
    assert_true(copy_place_is_folder("."));
    assert_true(copy_place_is_folder("a/.."));
    assert_false(copy_place_is_folder("a"));
    assert_false(copy_place_is_folder("a."));
    assert_true(copy_place_is_content("a/."));
    assert_true(copy_place_is_content("."));
    assert_false(copy_place_is_content("a/.."));
    assert_false(copy_place_is_content("a."));
}

static void the_last_name_is_found_and_joined(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    assert_string_equal(copy_place_name("/a/b", &pool), "b");
    assert_string_equal(copy_place_name("/a/b//", &pool), "b");
    assert_string_equal(copy_place_name("b", &pool), "b");
    assert_string_equal(copy_place_name("/", &pool), "");
    assert_string_equal(copy_place_name("", &pool), "");
    assert_string_equal(copy_place_name("a/..", &pool), "");
    assert_string_equal(copy_place_join("/", "a", &pool), "/a");
    assert_string_equal(copy_place_join("b//", "a", &pool), "b/a");
    assert_string_equal(copy_place_join("b", "", &pool), "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_colon_names_a_sandbox_unless_a_slash_comes_before),
        cmocka_unit_test(a_relative_path_begins_in_the_folder),
        cmocka_unit_test(a_path_may_say_that_it_is_a_folder_or_its_content),
        cmocka_unit_test(the_last_name_is_found_and_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
