#include <string.h>

#include "programs/burrow/root_program.h"
#include "sys/sys_test.h"

#define TEST_PATH_SIZE (SCRATCH_SIZE + 64)

static struct error err;

static void make_folder(const char *scratch, const char *name, char ret_path[static TEST_PATH_SIZE])
{
    (void) snprintf(ret_path, TEST_PATH_SIZE, "%s/%s", scratch, name);
    assert_int_equal(mkdir(ret_path, 0755), 0);
}

static void make_program(const char *folder, const char *text, mode_t mode)
{
    char path[TEST_PATH_SIZE + 32];
    FILE *file;

    (void) snprintf(path, sizeof(path), "%s/" LAUNCHER_PROGRAM, folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void expect_in(const char *found, const char *folder)
{
    assert_int_equal(strncmp(found, folder, strlen(folder)), 0);
    assert_string_equal(found + strlen(folder), "/" LAUNCHER_PROGRAM);
}

static void the_one_beside_us_comes_first(void **state)
{
    char scratch[SCRATCH_SIZE], ours[TEST_PATH_SIZE], other[TEST_PATH_SIZE];
    char self[TEST_PATH_SIZE + 8], path[3 * TEST_PATH_SIZE], found[PATH_MAX];

    (void) state;
    make_scratch(scratch);
    make_folder(scratch, "ours", ours);
    make_folder(scratch, "other", other);
    (void) snprintf(self, sizeof(self), "%s/burrow", ours);
    (void) snprintf(path, sizeof(path), "/nonexistent::%s:%s", ours, other);
    assert_int_equal(root_program_find(LAUNCHER_PROGRAM, self, path, found, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    make_program(other, "#!/bin/true\n", 0755);
    assert_int_equal(root_program_find(LAUNCHER_PROGRAM, self, path, found, &err), 0);
    expect_in(found, other);
    /* One that cannot be run is none. */
    make_program(ours, "#!/bin/true\n", 0644);
    assert_int_equal(root_program_find(LAUNCHER_PROGRAM, self, path, found, &err), 0);
    expect_in(found, other);
    make_program(ours, "#!/bin/true\n", 0755);
    assert_int_equal(root_program_find(LAUNCHER_PROGRAM, self, path, found, &err), 0);
    expect_in(found, ours);
    remove_scratch(scratch);
}

static void the_working_directory_is_never_searched(void **state)
{
    static const char *const paths[] = {"", ":", ".", "folder", ":/nonexistent:", NULL};
    char scratch[SCRATCH_SIZE], folder[TEST_PATH_SIZE], found[PATH_MAX], before[PATH_MAX];

    (void) state;
    make_scratch(scratch);
    make_folder(scratch, "folder", folder);
    make_program(scratch, "#!/bin/true\n", 0755);
    make_program(folder, "#!/bin/true\n", 0755);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(scratch), 0);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
        assert_int_equal(
            root_program_find(LAUNCHER_PROGRAM, "/nonexistent/burrow", paths[i], found, &err), -1);
    assert_int_equal(chdir(before), 0);
    remove_scratch(scratch);
}

/* In a child: PATH leads to a launcher that answers with what it was given. */
static void become_program(void)
{
    static const char *const words[] = {"verb", "a b", "", NULL};
    char scratch[] = "/tmp/burrow-launcher-XXXXXX", program[64];
    FILE *file;
    int status;
    pid_t pid;

    CHECK(mkdtemp(scratch) != NULL);
    (void) snprintf(program, sizeof(program), "%s/" LAUNCHER_PROGRAM, scratch);
    file = fopen(program, "we");
    CHECK(file != NULL);
    CHECK(fputs("#!/bin/sh\n[ $# = 3 ] && [ \"$1\" = verb ] && [ \"$2\" = 'a b' ] && [ -z \"$3\" ] "
                "&& exit 7\n",
                file) >= 0);
    CHECK_EQUAL(fclose(file), 0);
    CHECK_EQUAL(chmod(program, 0755), 0);
    CHECK_EQUAL(setenv("PATH", scratch, 1), 0);
    pid = fork();
    if (pid == 0) {
        (void) root_program_exec(LAUNCHER_PROGRAM, words, NULL);
        _exit(1);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    (void) unlink(program);
    (void) rmdir(scratch);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 7);
}

static void all_words_reach_the_program(void **state)
{
    (void) state;
    run_in_child(become_program, "fork");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_beside_us_comes_first),
        cmocka_unit_test(the_working_directory_is_never_searched),
        cmocka_unit_test(all_words_reach_the_program),
    };

    return cmocka_run_group_tests_name("root_program", tests, NULL, NULL);
}
