/* In a user namespace of the test's own, as a sandbox has one. */
#include <arpa/inet.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "launcher/wall/capability.h"
#include "launcher/wall/capability_test_kit.h"
#include "sys/file/sys_file.h"

#define SOME_USER 1000

static void confine(void)
{
    CHECK_EQUAL(sys_process_set_no_new_privileges(), 0);
    CHECK_EQUAL(capability_confine(capability_kept()), 0);
}

static void sets_are_as_in_the_table(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    confine();
    for (unsigned int number = 0; number < 64; number++) {
        int held = prctl(PR_CAPBSET_READ, number, 0, 0, 0);

        if (held < 0)
            break;
        CHECK_EQUAL(held, (capability_kept() >> number) & 1);
        CHECK_EQUAL(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, number, 0, 0), 0);
    }
    CHECK_EQUAL(syscall(SYS_capget, &header, sets), 0);
    for (unsigned int word = 0; word < _LINUX_CAPABILITY_U32S_3; word++) {
        CHECK_EQUAL(sets[word].permitted, (uint32_t) (capability_kept() >> (32 * word)));
        CHECK_EQUAL(sets[word].effective, sets[word].permitted);
        CHECK_EQUAL(sets[word].inheritable, 0);
    }
    CHECK_EQUAL(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), 0);
}

static void in_namespace_sets(void)
{
    run_as_namespace_root(sets_are_as_in_the_table);
}

static void the_sets_are_those_of_the_table(void **state)
{
    (void) state;
    run_in_child(in_namespace_sets, NEEDS_USER_NAMESPACES);
}

static pid_t start_other_user(void)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    CHECK_EQUAL(syscall(SYS_setresuid, SOME_USER, SOME_USER, SOME_USER), 0);
    for (;;)
        (void) pause();
}

static void kept_ones_work(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
    AUTO(close) int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    AUTO(close) int file = -EBADF;
    int status;
    pid_t other;

    confine();
    file = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    CHECK_EQUAL(fchown(file, SOME_USER, SOME_USER), 0);
    CHECK_EQUAL(fchmod(file, 0), 0); /* fowner */
    CHECK_EQUAL(access("file", R_OK | W_OK), 0);
    CHECK_EQUAL(bind(server, (struct sockaddr *) &address, sizeof(address)), 0);
    other = start_other_user();
    while (kill(other, SIGKILL) < 0)
        CHECK_EQUAL(errno, EINTR);
    CHECK_EQUAL(waitpid(other, &status, 0), other);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQUAL(mkfifo("pipe", 0600), 0);
    CHECK_EQUAL(chroot("/tmp"), 0);
}

static void in_namespace_kept(void)
{
    run_as_namespace_root(kept_ones_work);
}

static void what_is_kept_works(void **state)
{
    (void) state;
    run_in_child(in_namespace_kept, NEEDS_USER_NAMESPACES);
}

static void try_what_is_gone(bool allowed)
{
    int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

    CHECK_EQUAL(raw >= 0, allowed);
    CHECK_EQUAL(mkdir("target", 0700), 0);
    CHECK_EQUAL(mount("tmpfs", "target", "tmpfs", 0, NULL) == 0, allowed);
    CHECK_EQUAL(unshare(CLONE_NEWUTS) == 0, allowed);
    (void) close(raw);
}

static void others_work_before_and_not_after(void)
{
    try_what_is_gone(true);
    CHECK_EQUAL(umount("target"), 0);
    CHECK_EQUAL(rmdir("target"), 0);
    confine();
    try_what_is_gone(false);
}

static void in_namespace_gone(void)
{
    run_as_namespace_root(others_work_before_and_not_after);
}

static void what_is_dropped_is_gone(void **state)
{
    (void) state;
    run_in_child(in_namespace_gone, NEEDS_USER_NAMESPACES);
}

#define OUTPUT_MAX 4096

/* What `path` with these arguments writes, run as `user`. */
static void read_output(const char *path, char *const arguments[], uid_t user,
                        char ret_output[static OUTPUT_MAX])
{
    int ends[2], status;
    ssize_t length;
    pid_t pid;

    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQUAL(syscall(SYS_setresgid, user, user, user), 0);
        CHECK_EQUAL(syscall(SYS_setresuid, user, user, user), 0);
        CHECK_EQUAL(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
        (void) execv(path, arguments);
        _exit(127);
    }
    (void) close(ends[1]);
    length = sys_file_read_full(ends[0], ret_output, OUTPUT_MAX - 1);
    CHECK(length >= 0);
    ret_output[length] = '\0';
    (void) close(ends[0]);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(status, 0);
}

static void check_status_line(const char *status, const char *name, uint64_t bits)
{
    char line[64];

    (void) snprintf(line, sizeof(line), "%s:\t%016llx\n", name, (unsigned long long) bits);
    if (!strstr(status, line))
        (void) fprintf(stderr, "no %s in:\n%s", line, status);
    CHECK(strstr(status, line) != NULL);
}

static void exec_gains_nothing(void)
{
    char *show[] = {(char *) "cat", (char *) "/proc/self/status", NULL};
    char output[OUTPUT_MAX];

    confine();
    read_output("/bin/cat", show, 0, output);
    check_status_line(output, "CapEff", capability_kept());
    check_status_line(output, "CapPrm", capability_kept());
    check_status_line(output, "CapBnd", capability_kept());
    check_status_line(output, "CapInh", 0);
    check_status_line(output, "CapAmb", 0);
    read_output("/bin/cat", show, SOME_USER, output);
    check_status_line(output, "CapEff", 0);
    check_status_line(output, "CapPrm", 0);
    check_status_line(output, "CapBnd", capability_kept());
}

static void in_namespace_exec(void)
{
    run_as_namespace_root(exec_gains_nothing);
}

static void nothing_comes_back_by_exec(void **state)
{
    (void) state;
    run_in_child(in_namespace_exec, NEEDS_USER_NAMESPACES);
}

#define PROGRAM_MAX (2 << 20)

static void copy_as_setuid(const char *from, const char *to)
{
    AUTO(free) char *bytes = NULL;
    AUTO(close) int fd = -EBADF;
    size_t length;

    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, from, PROGRAM_MAX, &bytes, &length), 0);
    fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    CHECK(fd >= 0);
    CHECK_EQUAL(sys_file_write_full(fd, bytes, length), 0);
    CHECK_EQUAL(fchmod(fd, 04755), 0);
}

static void setuid_gains_only_without_no_new_privs(void)
{
    char *arguments[] = {(char *) "id", (char *) "-u", NULL};
    char output[OUTPUT_MAX];

    copy_as_setuid("/usr/bin/id", "id");
    read_output("/tmp/id", arguments, SOME_USER, output);
    CHECK_EQUAL(strcmp(output, "0\n"), 0);
    confine();
    read_output("/tmp/id", arguments, SOME_USER, output);
    CHECK_EQUAL(strcmp(output, "1000\n"), 0);
}

static void in_namespace_setuid(void)
{
    run_as_namespace_root(setuid_gains_only_without_no_new_privs);
}

static void setuid_programs_gain_nothing(void **state)
{
    (void) state;
    run_in_child(in_namespace_setuid, NEEDS_USER_NAMESPACES);
}

static void confine_without_the_right(void)
{
    if (geteuid() != 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(syscall(SYS_setresuid, 65534, 65534, 65534), 0);
    CHECK_EQUAL(capability_confine(capability_kept()), -EPERM);
}

static void a_bounding_set_that_would_stay_is_an_error(void **state)
{
    (void) state;
    run_in_child(confine_without_the_right, "root");
}

static void the_table_is_complete_and_small(void **state)
{
    static const char *const gone[] = {"sys_ptrace", "sys_nice", "sys_resource", "sys_admin",
                                       "net_admin",  "net_raw",  "mknod",        "setfcap",
                                       "sys_module", "bpf",      "sys_boot",     "dac_read_search"};
    size_t count;
    const struct capability_row *rows = capability_rows(&count);

    (void) state;
    assert_int_equal(count, CAP_LAST_CAP + 1);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].number, i);
        assert_true(strlen(rows[i].reason) > 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(gone); i++) {
        assert_true(capability_bit(gone[i]) != 0);
        assert_true(!(capability_kept() & capability_bit(gone[i])));
    }
    assert_int_equal(__builtin_popcountll(capability_kept()), 10);
    assert_true(capability_bit("fly") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete_and_small),
        cmocka_unit_test(the_sets_are_those_of_the_table),
        cmocka_unit_test(what_is_kept_works),
        cmocka_unit_test(what_is_dropped_is_gone),
        cmocka_unit_test(nothing_comes_back_by_exec),
        cmocka_unit_test(setuid_programs_gain_nothing),
        cmocka_unit_test(a_bounding_set_that_would_stay_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
