#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_test.h"
#include "agent/exec/program.h"
#include "base/auto.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_signal.h"

static char folder[] = "/tmp/burrow-test-XXXXXX";

static void write_script(const char *name, const char *content, mode_t mode)
{
    char path[128];
    int fd;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static int make_folder(void **state)
{
    (void) state;
    /* What whoever runs the tests left open, a worker would have closed. */
    if (!mkdtemp(folder) || sys_close_range(3, ~0u, true) < 0)
        return -1;
    write_script("plain", "echo from a script without an interpreter line\n", 0755);
    write_script("data", "echo never\n", 0644);
    return 0;
}

static int remove_folder(void **state)
{
    char path[128];

    (void) state;
    (void) snprintf(path, sizeof(path), "%s/plain", folder);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/data", folder);
    (void) unlink(path);
    return rmdir(folder);
}

/* Run a launch with stdout and stderr in one pipe; returns the wait status. */
static int run(const struct launch *launch, char *ret_output, size_t size)
{
    int ends[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC), status = -1;
    _Atomic pid_t note = 0;
    size_t length = 0;
    ssize_t got;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = program_start(launch, (const int[]){null, ends[1], ends[1], -1}, NULL, &note);
    assert_int_equal(note, pid < 0 ? 0 : pid);
    (void) close(ends[1]);
    (void) close(null);
    while (pid > 0 && length < size - 1 &&
           (got = read(ends[0], ret_output + length, size - 1 - length)) > 0)
        length += (size_t) got;
    ret_output[length] = '\0';
    (void) close(ends[0]);
    if (pid < 0)
        return pid;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_program_is_found_along_the_path(void **state)
{
    char path[256], file[256], expected[256];

    (void) state;
    (void) snprintf(path, sizeof(path), "/nonexistent:%s:/bin", folder);
    (void) snprintf(expected, sizeof(expected), "%s/plain", folder);
    assert_int_equal(program_find("plain", path, file, sizeof(file)), 0);
    assert_string_equal(file, expected);
    assert_int_equal(program_find("data", path, file, sizeof(file)), -ENOENT);
    assert_int_equal(program_find("/no/such", path, file, sizeof(file)), 0);
    assert_string_equal(file, "/no/such");
    assert_int_equal(program_find("/too/long/for/it", path, file, 8), -ENAMETOOLONG);
}

static void words_run_without_a_shell_as_a_shell_would_run_them(void **state)
{
    static const char *const words[] = {"/bin/sh", "-c", "echo $SHLVL $PWD $_", NULL};
    static const char *const environment[] = {"SHLVL=4", "PATH=/bin:/usr/bin", NULL};
    const struct launch launch = {
        .arguments = words, .shell_command = "unused", .environment = environment};
    char output[256], expected[256];
    char *here = getcwd(NULL, 0);

    (void) state;
    assert_int_equal(run(&launch, output, sizeof(output)), 0);
    (void) snprintf(expected, sizeof(expected), "4 %s", here);
    assert_int_equal(strncmp(output, expected, strlen(expected)), 0);
    free(here);
}

static void what_cannot_be_executed_goes_to_the_shell(void **state)
{
    char script[128], output[512];
    const char *words[] = {script, NULL};
    static const char *const environment[] = {"PATH=/bin:/usr/bin", NULL};
    struct launch launch = {
        .arguments = words, .shell_command = script, .environment = environment};

    (void) state;
    (void) snprintf(script, sizeof(script), "%s/plain", folder);
    assert_int_equal(run(&launch, output, sizeof(output)), 0);
    assert_string_equal(output, "from a script without an interpreter line\n");
    (void) snprintf(script, sizeof(script), "%s/missing", folder);
    assert_int_equal(WEXITSTATUS(run(&launch, output, sizeof(output))), 127);
    assert_non_null(strstr(output, "missing"));
    (void) snprintf(script, sizeof(script), "%s/data", folder);
    assert_int_equal(WEXITSTATUS(run(&launch, output, sizeof(output))), 126);
}

static void without_a_shell_command_the_failure_is_told(void **state)
{
    static const char *const words[] = {"/no/such/program", NULL};
    const struct launch launch = {.arguments = words};
    char output[16];

    (void) state;
    assert_int_equal(run(&launch, output, sizeof(output)), -ENOENT);
}

static void a_program_starts_with_a_clean_slate(void **state)
{
    static const char *const environment[] = {"PATH=/bin:/usr/bin", NULL};
    const struct launch launch = {
        .shell_command =
            "grep -E 'SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '; "
            "kill -PIPE $$",
        .environment = environment};
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    char output[512];
    int status = run(&launch, output, sizeof(output));

    (void) state;
    (void) signal(SIGPIPE, before);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGPIPE);
    assert_non_null(strstr(output, "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(output, "SigIgn:\t0000000000000000"));
    assert_non_null(strstr(output, "0 1 2 3 ")); /* the last is the folder that ls reads */
    assert_null(strstr(output, "2 3 4 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_found_along_the_path),
        cmocka_unit_test(words_run_without_a_shell_as_a_shell_would_run_them),
        cmocka_unit_test(what_cannot_be_executed_goes_to_the_shell),
        cmocka_unit_test(without_a_shell_command_the_failure_is_told),
        cmocka_unit_test(a_program_starts_with_a_clean_slate),
    };

    /* As the agent does at its start: who runs tests may ignore something, like nohup does. */
    if (sys_signal_reset() < 0)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
