#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "programs/burrow/data_folder.h"

#define PATH_SIZE 64

static int make_parent(void **state)
{
    char *path = malloc(PATH_SIZE);

    (void) snprintf(path, PATH_SIZE, "/tmp/data_folder_test.XXXXXX");
    *state = path;
    return mkdtemp(path) ? 0 : -1;
}

static int remove_parent(void **state)
{
    static const char *const names[] = {"d/keys/admin", "d/keys", "d/version", "d/lock", "d", ""};
    char path[PATH_SIZE * 2];

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", (const char *) *state, names[i]);
        (void) remove(path);
    }
    free(*state);
    return 0;
}

static const char *below(void **state, const char *name)
{
    static char path[PATH_SIZE * 2];

    (void) snprintf(path, sizeof(path), "%s/%s", (const char *) *state, name);
    return path;
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static void write_version(void **state, const char *text)
{
    int fd = open(below(state, "d/version"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void) close(fd);
}

static void a_new_folder_is_private_and_marked(void **state)
{
    AUTO(data_folder) struct data_folder folder = DATA_FOLDER_INIT;

    assert_int_equal(data_folder_open(&folder, below(state, "d"), NULL), 0);
    assert_int_equal(mode_of(below(state, "d")), 0700);
    assert_int_equal(mode_of(below(state, "d/version")), 0600);
}

static void a_second_daemon_is_refused_until_the_first_is_gone(void **state)
{
    struct data_folder first = DATA_FOLDER_INIT;
    AUTO(data_folder) struct data_folder second = DATA_FOLDER_INIT;
    struct error err = ERROR_INIT;

    assert_int_equal(data_folder_open(&first, below(state, "d"), NULL), 0);
    assert_int_equal(data_folder_open(&second, below(state, "d"), &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    data_folder_done(&second);
    data_folder_done(&first);
    assert_int_equal(data_folder_open(&second, below(state, "d"), NULL), 0);
}

static void a_newer_or_foreign_version_is_refused_and_kept(void **state)
{
    static const char *const wrong[] = {"2\n", "999999\n", "hello\n", "", "-1\n"};

    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct data_folder folder = DATA_FOLDER_INIT;
        struct error err = ERROR_INIT;

        assert_int_equal(data_folder_open(&folder, below(state, "d"), NULL), 0);
        data_folder_done(&folder);
        write_version(state, wrong[i]);
        assert_int_equal(data_folder_open(&folder, below(state, "d"), &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        data_folder_done(&folder);
        write_version(state, "1\n");
    }
}

static void the_key_is_made_once_and_kept_private(void **state)
{
    AUTO(data_folder) struct data_folder folder = DATA_FOLDER_INIT;
    AUTO(free) char *first = NULL;
    AUTO(free) char *second = NULL;
    bool is_new = false;

    assert_int_equal(data_folder_open(&folder, below(state, "d"), NULL), 0);
    assert_int_equal(data_folder_admin_key(&folder, &first, &is_new, NULL), 0);
    assert_true(is_new);
    assert_int_equal(strlen(first), strlen("burrow_") + 64);
    assert_int_equal(mode_of(below(state, "d/keys/admin")), 0600);
    assert_int_equal(data_folder_admin_key(&folder, &second, &is_new, NULL), 0);
    assert_false(is_new);
    assert_string_equal(first, second);
}

static void a_key_file_without_a_key_is_refused(void **state)
{
    /* Long enough, but nothing would know it for a key of ours. */
    static const char foreign[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    AUTO(data_folder) struct data_folder folder = DATA_FOLDER_INIT;
    AUTO(free) char *key = NULL;
    struct error err = ERROR_INIT;
    bool is_new;
    int fd;

    assert_int_equal(data_folder_open(&folder, below(state, "d"), NULL), 0);
    assert_int_equal(mkdir(below(state, "d/keys"), 0700), 0);
    fd = open(below(state, "d/keys/admin"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(data_folder_admin_key(&folder, &key, &is_new, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(write(fd, foreign, strlen(foreign)), strlen(foreign));
    (void) close(fd);
    assert_int_equal(data_folder_admin_key(&folder, &key, &is_new, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_folder_is_private_and_marked, make_parent,
                                        remove_parent),
        cmocka_unit_test_setup_teardown(a_second_daemon_is_refused_until_the_first_is_gone,
                                        make_parent, remove_parent),
        cmocka_unit_test_setup_teardown(a_newer_or_foreign_version_is_refused_and_kept, make_parent,
                                        remove_parent),
        cmocka_unit_test_setup_teardown(the_key_is_made_once_and_kept_private, make_parent,
                                        remove_parent),
        cmocka_unit_test_setup_teardown(a_key_file_without_a_key_is_refused, make_parent,
                                        remove_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
