#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_test.h"
#include "agent/exec/process_tree.h"
#include "base/auto.h"

static void the_parent_is_found_behind_any_name(void **state)
{
    static const struct {
        const char *text;
        pid_t parent; /* 0: refused */
    } rows[] = {
        {"1 (a) S 7 1 1", 7},
        {"1 (a) b (c)) Z 123 1", 123},
        {"1 (x\n) S 5 1) R 9 1", 9},
        {"1 (a) S x 1", 0},
        {"1 (a) S 7", 0},
        {"1 a S 7 1", 0},
        {"", 0},
        {"1 (a) S 99999999999 1", 0},
        {"1 (a)", 0},
        {"1 (a) ", 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        pid_t parent = 0;
        char status;
        int r = process_tree_parse_stat(rows[i].text, &status, &parent);

        assert_int_equal(r, rows[i].parent ? 0 : -EINVAL);
        assert_int_equal(parent, rows[i].parent);
    }
}

/* A child with a grandchild in a session of its own, whose parent has ended: a daemon. Writes a
 * byte once all are there. */
static void make_daemon(int ready)
{
    pid_t middle = fork();

    if (middle == 0) {
        if (fork() == 0) {
            (void) setsid();
            (void) !write(ready, "d", 1);
            for (;;)
                (void) pause();
        }
        _exit(0);
    }
    (void) waitpid(middle, NULL, 0);
}

static _Noreturn void be_root(int ready, int go)
{
    char byte;
    int status = 0;
    pid_t child;

    (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
    make_daemon(ready);
    child = fork();
    if (child == 0) {
        (void) !write(ready, "c", 1);
        for (;;)
            (void) pause();
    }
    (void) !read(go, &byte, 1);
    /* Two living descendants, the child and the daemon. */
    if (process_tree_signal(getpid(), SIGKILL) != 2)
        _exit(1);
    for (int i = 0; i < 2; i++) {
        if (waitpid(-1, &status, 0) < 0 || !WIFSIGNALED(status))
            _exit(2);
    }
    _exit(waitpid(-1, &status, 0) < 0 && errno == ECHILD ? 0 : 3);
}

static void daemons_are_found_and_strangers_are_spared(void **state)
{
    int ready[2], go[2], status = 0;
    pid_t root, stranger;
    char byte;

    (void) state;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    stranger = fork();
    if (stranger == 0)
        for (;;)
            (void) pause();
    root = fork();
    if (root == 0)
        be_root(ready[1], go[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(waitpid(root, &status, 0), root);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
    assert_int_equal(kill(stranger, SIGKILL), 0);
    assert_int_equal(waitpid(stranger, &status, 0), stranger);
    for (int i = 0; i < 2; i++) {
        (void) close(ready[i]);
        (void) close(go[i]);
    }
}

static void a_process_without_children_has_no_tree(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void) state;
    if (child == 0)
        _exit(process_tree_signal(getpid(), SIGKILL) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parent_is_found_behind_any_name),
        cmocka_unit_test(daemons_are_found_and_strangers_are_spared),
        cmocka_unit_test(a_process_without_children_has_no_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
