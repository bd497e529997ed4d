#include "launcher/image/image_pull.c"
#include "sys/sys_test.h"

static struct error err;

static void names_come_from_the_last_part_of_a_reference(void **state)
{
    static const char *const rows[][2] = {
        {"debian", "debian"},
        {"debian:12", "debian"},
        {"ghcr.io/org/my-tool:1.2", "my-tool"},
        {"localhost:5000/a/b", "b"},
        {"https://host:5000/a_b@sha256:00/11", "a_b"},
        {"a/b:tag@sha256:00", "b"},
    };
    static const char *const nameless[] = {"",     "a/",   "Debian",
                                           "a/:1", "host", "docker.io/x/host:1"};
    char name[IMAGE_NAME_MAX + 1], longest[IMAGE_NAME_MAX + 2];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(image_pull_name(rows[i][0], name, &err), 0);
        assert_string_equal(name, rows[i][1]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(nameless); i++) {
        assert_int_equal(image_pull_name(nameless[i], name, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    memset(longest, 'a', sizeof(longest));
    longest[IMAGE_NAME_MAX + 1] = '\0';
    assert_int_equal(image_pull_name(longest, name, &err), -1);
}

static int count_lines(int file)
{
    char bytes[1024];
    ssize_t got = sys_file_pread_full(file, bytes, sizeof(bytes), 0);
    int lines = 0;

    assert_true(got >= 0);
    for (ssize_t i = 0; i < got; i++)
        lines += bytes[i] == '\n';
    return lines;
}

static void only_layers_are_told_of(void **state)
{
    char folder[SCRATCH_SIZE], path[SCRATCH_SIZE + 80];
    const char *const names[] = {
        ".new-1", "note", "0000000000000000000000000000000000000000000000000000000000000001"};

    (void) state;
    make_scratch(folder);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    {
        AUTO(close) int layers = sys_file_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
        AUTO(close) int list = list_layers(layers, &err);

        assert_true(list >= 0);
        assert_int_equal(count_lines(list), 1);
    }
    remove_scratch(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_from_the_last_part_of_a_reference),
        cmocka_unit_test(only_layers_are_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
