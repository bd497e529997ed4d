#include <signal.h>
#include <string.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"
#include "sys/process/sys_spawn.h"
#include "sys/sys_test.h"

#define OUTPUT_MAX 8192

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    fault_disarm(FAULT_SYSTEM_CALL);
    return 0;
}

/* Run a shell command with the settings of `base`, its output in `ret_output`. */
static int run_shell(const struct sys_spawn *base, const char *command, char ret_output[OUTPUT_MAX])
{
    const char *arguments[] = {"sh", "-c", command, NULL};
    struct sys_spawn_descriptor descriptors[SYS_SPAWN_DESCRIPTORS_MAX];
    AUTO(close) int pidfd = -EBADF;
    struct sys_exit ended;
    ssize_t length;
    struct sys_spawn how = *base;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    if (base->descriptor_count)
        memcpy(descriptors, base->descriptors, base->descriptor_count * sizeof(descriptors[0]));
    descriptors[how.descriptor_count++] = (struct sys_spawn_descriptor){ends[1], 1};
    how.descriptors = descriptors;
    how.path = "/bin/sh";
    how.arguments = arguments;
    pidfd = sys_spawn(&how, NULL);
    close(ends[1]);
    assert_true(pidfd >= 0);
    assert_true(is_close_on_exec(pidfd));
    length = sys_file_read_full(ends[0], ret_output, OUTPUT_MAX - 1);
    close(ends[0]);
    assert_true(length >= 0);
    ret_output[length] = '\0';
    assert_int_equal(sys_process_wait(pidfd, 10000, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_STATUS);
    return ended.value;
}

static void exit_status_and_output_come_back(void **state)
{
    struct sys_spawn how = {0};
    char output[OUTPUT_MAX];

    (void) state;
    assert_int_equal(run_shell(&how, "echo hello; exit 42", output), 42);
    assert_string_equal(output, "hello\n");
}

static void only_the_named_environment_is_seen(void **state)
{
    static const char *const environment[] = {"NAME=value with space", NULL};
    struct sys_spawn how = {.environment = environment}, bare = {0};
    char output[OUTPUT_MAX];

    (void) state;
    assert_int_equal(setenv("BURROW_TEST_SECRET", "leaked", 1), 0);
    assert_int_equal(run_shell(&how, "echo $NAME; echo $BURROW_TEST_SECRET", output), 0);
    assert_string_equal(output, "value with space\n\n");
    assert_int_equal(run_shell(&bare, "echo $NAME$BURROW_TEST_SECRET", output), 0);
    assert_string_equal(output, "\n");
}

static void the_directory_is_entered(void **state)
{
    struct sys_spawn how = {.directory = "/etc"},
                     wrong = {.path = "/bin/sh",
                              .arguments = (const char *const[]){"sh", NULL},
                              .directory = "/does/not/exist"};
    char output[OUTPUT_MAX];

    (void) state;
    assert_int_equal(run_shell(&how, "pwd", output), 0);
    assert_string_equal(output, "/etc\n");
    assert_int_equal(sys_spawn(&wrong, NULL), -ENOENT);
}

static void nothing_else_leaks_into_the_program(void **state)
{
    static const unsigned int modes[] = {0, SYS_FEATURE_BIT(SYS_FEATURE_CLOSE_RANGE)};
    int leak = open("/dev/null", O_RDONLY); /* on purpose without O_CLOEXEC */
    int high = fcntl(leak, F_DUPFD, 500);

    (void) state;
    if (access("/proc/self/fd", R_OK) < 0)
        skip_without("/proc");
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        struct sys_spawn how = {0};
        char output[OUTPUT_MAX];

        sys_feature_pretend(modes[i]);
        /* The glob itself opens one more, which is gone when the names are used. */
        assert_int_equal(
            run_shell(&how, "for f in /proc/self/fd/*; do if [ -e $f ]; then echo $f; fi; done",
                      output),
            0);
        assert_string_equal(output, "/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2\n");
    }
    close(leak);
    close(high);
}

/* 5 and 6 exchanged, and 0 from a descriptor that is itself a target. */
static void descriptors_may_overlap_in_any_order(void **state)
{
    struct sys_spawn how = {0};
    struct sys_spawn_descriptor descriptors[3];
    char output[OUTPUT_MAX], command[128];
    int first[2], second[2];

    (void) state;
    assert_int_equal(pipe2(first, O_CLOEXEC), 0);
    assert_int_equal(pipe2(second, O_CLOEXEC), 0);
    assert_int_equal(write(first[1], "first\n", 6), 6);
    assert_int_equal(write(second[1], "second\n", 7), 7);
    close(first[1]);
    close(second[1]);
    descriptors[0] = (struct sys_spawn_descriptor){first[0], second[0]};
    descriptors[1] = (struct sys_spawn_descriptor){second[0], first[0]};
    descriptors[2] = (struct sys_spawn_descriptor){first[0], 0};
    how.descriptors = descriptors;
    how.descriptor_count = 3;
    (void) snprintf(command, sizeof(command), "read a <&%d; read b; echo $a; echo \"$b\"",
                    first[0]);
    assert_int_equal(run_shell(&how, command, output), 0);
    assert_string_equal(output, "second\nfirst\n");
    close(first[0]);
    close(second[0]);
}

static void a_failed_exec_is_told_and_leaves_no_child(void **state)
{
    static const struct {
        const char *path;
        int result;
    } cases[] = {{"/does/not/exist", -ENOENT}, {"/etc", -EACCES}, {"/etc/passwd", -EACCES}};
    int before = count_descriptors();

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sys_spawn how = {.path = cases[i].path,
                                .arguments = (const char *const[]){"x", NULL}};
        pid_t pid = -7;

        assert_int_equal(sys_spawn(&how, &pid), cases[i].result);
        assert_int_equal(pid, -7);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    assert_int_equal(count_descriptors(), before);
}

static void every_injected_failure_is_told_and_leaves_no_child(void **state)
{
    int before = count_descriptors();
    unsigned int calls = 0;
    int pidfd = -EIO;

    (void) state;
    while (pidfd == -EIO) {
        struct sys_spawn how = {.path = "/bin/sh",
                                .arguments = (const char *const[]){"sh", "-c", "exit 0", NULL}};

        fault_arm(FAULT_SYSTEM_CALL, ++calls, EIO);
        pidfd = sys_spawn(&how, NULL);
        fault_disarm(FAULT_SYSTEM_CALL);
        if (pidfd < 0)
            assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    assert_true(pidfd >= 0);
    assert_true(calls > 2);
    fd_close(pidfd);
    assert_true(waitpid(-1, NULL, 0) > 0);
    assert_int_equal(count_descriptors(), before);
}

static void wrong_descriptors_are_refused(void **state)
{
    static const struct sys_spawn_descriptor twice[] = {{0, 1}, {2, 1}}, negative[] = {{-1, 1}},
                                             low[] = {{0, -1}}, high[] = {{0, 1 << 20}};
    static const struct {
        const struct sys_spawn_descriptor *list;
        size_t count;
    } cases[] = {
        {twice, 2}, {negative, 1}, {low, 1}, {high, 1}, {NULL, SYS_SPAWN_DESCRIPTORS_MAX + 1}};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sys_spawn how = {.path = "/bin/sh",
                                .arguments = (const char *const[]){"sh", NULL},
                                .descriptors = cases[i].list,
                                .descriptor_count = cases[i].count};

        assert_int_equal(sys_spawn(&how, NULL), -EINVAL);
    }
}

static void signals_and_session_start_fresh(void **state)
{
    struct sys_spawn how = {.new_session = true};
    char output[OUTPUT_MAX];
    sigset_t before;

    (void) state;
    if (access("/proc/self/status", R_OK) < 0)
        skip_without("/proc");
    assert_int_equal(sys_signal_ignore(SIGUSR1), 0);
    assert_int_equal(sys_signal_block_all(&before), 0);
    assert_int_equal(run_shell(&how,
                               "while read -r k v; do case $k in SigBlk:|SigIgn:) echo $v;; esac; "
                               "done </proc/self/status; read -r p c s pp g sid r </proc/$$/stat; "
                               "[ $sid = $$ ]",
                               output),
                     0);
    assert_int_equal(sys_signal_restore(&before), 0);
    (void) signal(SIGUSR1, SIG_DFL);
    assert_string_equal(output, "0000000000000000\n0000000000000000\n");
}

/* Nobody of this machine, root of its own, and the mounts it makes are its own. */
static void a_program_can_be_root_of_ids_of_its_own(void **state)
{
    const struct sys_id_range ids = {.outside = 2000000, .count = 65536};
    struct sys_spawn how = {.root_of = &ids, .own_processes = true, .parent_signal = SIGKILL};
    char output[OUTPUT_MAX];

    (void) state;
    if (geteuid() != 0) {
        (void) printf("# skip: root\n");
        skip();
    }
    assert_int_equal(run_shell(&how,
                               "id -u; id -G; echo $$; cat /proc/self/uid_map | tr -s ' '; "
                               "mount -t tmpfs x /mnt && echo mounted; "
                               "grep NoNewPrivs /proc/self/status",
                               output),
                     0);
    assert_string_equal(output, "0\n0\n1\n 0 2000000 65536\nmounted\nNoNewPrivs:\t1\n");
    how.root_of = &(const struct sys_id_range){.outside = 2000000, .count = 0};
    how.path = "/bin/true";
    how.arguments = (const char *const[]){"true", NULL};
    assert_true(sys_spawn(&how, NULL) < 0); /* ids that cannot be */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void what_it_starts_ends_with_it(void **state)
{
    struct sys_spawn how = {.own_processes = true, .parent_signal = SIGKILL};
    char output[OUTPUT_MAX];

    (void) state;
    if (geteuid() != 0)
        skip_without("root");
    /* The output ends when nobody can write to it any more. */
    assert_int_equal(run_shell(&how, "sleep 1000 & echo $$; exit 3", output), 3);
    assert_string_equal(output, "1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(exit_status_and_output_come_back, reset),
        cmocka_unit_test_teardown(only_the_named_environment_is_seen, reset),
        cmocka_unit_test_teardown(the_directory_is_entered, reset),
        cmocka_unit_test_teardown(nothing_else_leaks_into_the_program, reset),
        cmocka_unit_test_teardown(descriptors_may_overlap_in_any_order, reset),
        cmocka_unit_test_teardown(a_failed_exec_is_told_and_leaves_no_child, reset),
        cmocka_unit_test_teardown(every_injected_failure_is_told_and_leaves_no_child, reset),
        cmocka_unit_test_teardown(wrong_descriptors_are_refused, reset),
        cmocka_unit_test_teardown(signals_and_session_start_fresh, reset),
        cmocka_unit_test_teardown(a_program_can_be_root_of_ids_of_its_own, reset),
        cmocka_unit_test_teardown(what_it_starts_ends_with_it, reset),
    };

    return cmocka_run_group_tests_name("sys_spawn", tests, NULL, NULL);
}
