#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/client/client.h"
#include "cli/client/credentials.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
/* After the headers it needs. */
#include <cmocka.h>

struct home {
    char folder[64];
    struct pool pool;
    struct credentials found;
};

static int set_up(void **state)
{
    struct home *home = calloc(1, sizeof(*home));

    (void) snprintf(home->folder, sizeof(home->folder), "/tmp/burrow-credentials-XXXXXX");
    assert_non_null(mkdtemp(home->folder));
    (void) setenv("HOME", home->folder, 1);
    (void) setenv("BURROW_DATA", home->folder, 1);
    (void) unsetenv("BURROW_URL");
    (void) unsetenv("BURROW_API_KEY");
    *state = home;
    return 0;
}

static int tear_down(void **state)
{
    struct home *home = *state;
    AUTO(close) int parent = sys_file_open(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY, 0);

    assert_int_equal(sys_tree_delete(parent, home->folder + strlen("/tmp/")), 0);
    pool_done(&home->pool);
    free(home);
    return 0;
}

static void find(struct home *home, const char *url, const char *key)
{
    credentials_find(&home->pool, url, key, &home->found);
}

/* A file in the home folder. */
static void write_file(struct home *home, const char *folder, const char *name, const char *text)
{
    char path[256];

    (void) snprintf(path, sizeof(path), "%s/%s", home->folder, folder);
    assert_int_equal(sys_file_make_directories(AT_FDCWD, path, 0700), 0);
    (void) snprintf(path, sizeof(path), "%s/%s/%s", home->folder, folder, name);
    assert_int_equal(sys_file_replace(AT_FDCWD, path, text, strlen(text), 0600), 0);
}

static void without_anything_there_is_the_default_and_no_key(void **state)
{
    struct home *home = *state;

    find(home, NULL, NULL);
    assert_string_equal(home->found.url, CLIENT_URL_DEFAULT);
    assert_null(home->found.key);
}

static void what_is_given_wins_over_variables_over_the_file(void **state)
{
    struct home *home = *state;

    write_file(home, ".config/burrow", "credentials", "url = http://file\nkey = from-file\n");
    find(home, NULL, NULL);
    assert_string_equal(home->found.url, "http://file");
    assert_string_equal(home->found.key, "from-file");
    (void) setenv("BURROW_URL", "http://variable", 1);
    (void) setenv("BURROW_API_KEY", "from-variable", 1);
    find(home, NULL, NULL);
    assert_string_equal(home->found.url, "http://variable");
    assert_string_equal(home->found.key, "from-variable");
    find(home, "http://given", "given");
    assert_string_equal(home->found.url, "http://given");
    assert_string_equal(home->found.key, "given");
}

static void what_was_kept_is_found_again_and_nobody_else_can_read_it(void **state)
{
    struct home *home = *state;
    struct error err = ERROR_INIT;
    struct stat status;
    char path[256];

    assert_int_equal(credentials_keep("http://kept:1", "secret", &err), 0);
    (void) snprintf(path, sizeof(path), "%s/.config/burrow/credentials", home->folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    find(home, NULL, NULL);
    assert_string_equal(home->found.url, "http://kept:1");
    assert_string_equal(home->found.key, "secret");
}

static void a_file_that_others_can_read_is_not_used(void **state)
{
    struct home *home = *state;
    char path[256];

    write_file(home, ".config/burrow", "credentials", "key = secret\n");
    (void) snprintf(path, sizeof(path), "%s/.config/burrow/credentials", home->folder);
    assert_int_equal(chmod(path, 0644), 0);
    find(home, NULL, NULL);
    assert_null(home->found.key);
}

static void lines_may_have_blanks_and_others_are_ignored(void **state)
{
    struct home *home = *state;

    write_file(home, ".config/burrow", "credentials",
               "# mine\nkeyring = no\n  key=  secret \t\r\nurl =\n\nurl: no\n");
    find(home, NULL, NULL);
    assert_string_equal(home->found.key, "secret");
    assert_string_equal(home->found.url, CLIENT_URL_DEFAULT);
}

static void beside_the_daemon_the_administrators_key_is_found(void **state)
{
    struct home *home = *state;

    write_file(home, "daemon/keys", "admin", "burrow_admin\n");
    find(home, NULL, NULL);
    assert_string_equal(home->found.key, "burrow_admin");
}

static void a_stored_key_is_shown_to_no_other_daemon(void **state)
{
    static const char *const strangers[] = {
        "http://evil",
        "http://file.evil",
        "https://127.0.0.1.evil",
        "http://localhost.evil:8787",
        "http://localhost:x@evil/",
    };
    struct home *home = *state;

    write_file(home, "daemon/keys", "admin", "burrow_admin\n");
    write_file(home, ".config/burrow", "credentials", "url = http://file/\nkey = from-file\n");
    for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
        find(home, strangers[i], NULL);
        assert_null(home->found.key);
    }
    find(home, "http://file", NULL);
    assert_string_equal(home->found.key, "from-file");
    find(home, "http://127.0.0.1:99", NULL);
    assert_string_equal(home->found.key, "burrow_admin");
    find(home, "http://[::1]:99", NULL);
    assert_string_equal(home->found.key, "burrow_admin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(without_anything_there_is_the_default_and_no_key),
        TEST(what_is_given_wins_over_variables_over_the_file),
        TEST(what_was_kept_is_found_again_and_nobody_else_can_read_it),
        TEST(a_file_that_others_can_read_is_not_used),
        TEST(lines_may_have_blanks_and_others_are_ignored),
        TEST(beside_the_daemon_the_administrators_key_is_found),
        TEST(a_stored_key_is_shown_to_no_other_daemon),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
