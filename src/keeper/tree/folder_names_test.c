#include <string.h>

#include "keeper/tree/folder_names.h"
#include "sys/sys_test.h"

static void make_file(int folder, const char *name)
{
    AUTO(close) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

static int open_scratch(char ret_path[static SCRATCH_SIZE])
{
    int fd;

    make_scratch(ret_path);
    fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void names_come_in_the_order_of_their_bytes(void **state)
{
    static const char *const ordered[] = {"\n", " ", "...",      "A",   "a",
                                          "aa", "b", "\xc3\xa4", "\xff"};
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    char path[SCRATCH_SIZE];
    AUTO(close) int folder = open_scratch(path);

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(ordered); i++)
        make_file(folder, ordered[(i * 4 + 2) % ARRAY_COUNT(ordered)]);
    assert_int_equal(folder_names_read(&names, folder, "", FOLDER_NAMES_MIN), 0);
    for (size_t i = 0; i < ARRAY_COUNT(ordered); i++)
        assert_string_equal(folder_names_next(&names), ordered[i]);
    assert_null(folder_names_next(&names));
    assert_false(names.more);
    assert_int_equal(folder_names_read(&names, folder, "aa", FOLDER_NAMES_MIN), 0);
    assert_string_equal(folder_names_next(&names), "b");
    remove_scratch(path);
}

/* However small the piece: every name once, in order, and never more memory than allowed. */
static void a_large_folder_is_read_in_pieces(void **state)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    char path[SCRATCH_SIZE], name[NAME_MAX + 1], last[NAME_MAX + 1] = "";
    AUTO(close) int folder = open_scratch(path);
    int seen = 0, readings = 0;

    (void) state;
    for (unsigned int i = 0; i < 1000; i++) {
        (void) snprintf(
            name, sizeof(name), "%u%.*s", i * 7919 % 1000, (int) (i % 200),
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        make_file(folder, name);
    }
    do {
        const char *next;

        assert_int_equal(folder_names_read(&names, folder, last, 2048), 0);
        assert_true(folder_names_size(&names) <= 2048);
        readings++;
        while ((next = folder_names_next(&names))) {
            assert_true(strcmp(next, last) > 0);
            (void) snprintf(last, sizeof(last), "%s", next);
            seen++;
        }
    } while (names.more);
    assert_int_equal(seen, 1000);
    assert_true(readings > 10);
    remove_scratch(path);
}

static void what_is_no_folder_is_an_error(void **state)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    AUTO(close) int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void) state;
    assert_int_equal(folder_names_read(&names, file, "", FOLDER_NAMES_MIN), -ENOTDIR);
    assert_null(folder_names_next(&names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_in_the_order_of_their_bytes),
        cmocka_unit_test(a_large_folder_is_read_in_pieces),
        cmocka_unit_test(what_is_no_folder_is_an_error),
    };

    return cmocka_run_group_tests_name("folder_names", tests, NULL, NULL);
}
