#include <string.h>

#include "launcher/launcher_look.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

#define OURS   "namespace-of-ours"
#define THEIRS "namespace-of-theirs"

static int proc; /* a folder that looks like /proc */

static void put(const char *path, const char *bytes, size_t length)
{
    assert_int_equal(sys_file_replace(proc, path, bytes, length, 0600), 0);
}

/* A process of that name in a namespace, with NUL-ended words. */
static void add(const char *pid, const char *name, const char *namespace, const char *words,
                size_t length)
{
    char path[64];

    assert_int_equal(mkdirat(proc, pid, 0700), 0);
    (void) snprintf(path, sizeof(path), "%s/ns", pid);
    assert_int_equal(mkdirat(proc, path, 0700), 0);
    (void) snprintf(path, sizeof(path), "%s/ns/user", pid);
    assert_int_equal(linkat(proc, namespace, proc, path, 0), 0);
    (void) snprintf(path, sizeof(path), "%s/comm", pid);
    put(path, name, strlen(name));
    (void) snprintf(path, sizeof(path), "%s/cmdline", pid);
    put(path, words, length);
}

#define ADD(pid, name, namespace, words) add(pid, name, namespace, words, sizeof(words))

static void only_a_launcher_of_ours_on_that_folder_is_found(void **state)
{
    char folder[SCRATCH_SIZE];

    (void) state;
    make_scratch(folder);
    proc = sys_file_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY, 0);
    assert_true(proc >= 0);
    put(OURS, "", 0);
    put(THEIRS, "", 0);
    ADD("self", "test\n", OURS, "test");
    ADD("10", "burrow-launcher\n", THEIRS, "burrow-launcher\0serve\0--data\0/d");
    ADD("11", "burrow\n", OURS, "burrow\0serve\0--data\0/d");
    ADD("12", "burrow-launcher\n", OURS, "burrow-launcher\0hold");
    ADD("13", "burrow-launcher\n", OURS, "burrow-launcher\0doctor\0--data\0/d");
    ADD("14", "burrow-launcher\n", OURS, "burrow-launcher\0serve\0--data\0/other\0--run\0/d");
    assert_false(launcher_look_is(proc, "10"));
    assert_false(launcher_look_is(proc, "11"));
    assert_true(launcher_look_is(proc, "12"));
    assert_false(launcher_look_is(proc, "15"));
    assert_int_equal(launcher_look_find(proc, "/d"), 0);
    ADD("15", "burrow-launcher\n", OURS, "burrow-launcher\0serve\0--data\0/d\0--run\0/r");
    assert_int_equal(launcher_look_find(proc, "/d"), 15);
    assert_int_equal(launcher_look_find(proc, "/other"), 14);
    (void) close(proc);
    remove_scratch(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_launcher_of_ours_on_that_folder_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
