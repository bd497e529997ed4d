/* Behind the real walls, in a child: calls are made, and refused. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "programs/burrow/daemon_walls.h"
#include "sys/sys_test.h"

#define REFUSED(call, expected) CHECK((call) == -1 && errno == (expected))

static void raise_walls(bool core_dumps)
{
    struct error err = ERROR_INIT;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    _exit(CHILD_UNABLE);
#endif
    CHECK_EQUAL(daemon_walls_raise(core_dumps, &err), 0);
}

static void make_refused_calls(void)
{
    char program[] = "/bin/true";
    char *const words[] = {program, NULL};
    char byte = 0;
    struct iovec piece = {&byte, 1};
    union bpf_attr attributes = {.map_type = BPF_MAP_TYPE_ARRAY};

    raise_walls(false);
    REFUSED(execve(program, words, NULL), EPERM);
    REFUSED(syscall(SYS_execveat, -1, program, words, NULL, 0), EPERM);
    REFUSED(fork(), EPERM);
    REFUSED(syscall(SYS_vfork), EPERM);
    REFUSED(syscall(SYS_clone3, NULL, 0), ENOSYS);
    REFUSED(unshare(CLONE_NEWUSER), EPERM);
    REFUSED(setns(-1, 0), EPERM);
    REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM);
    REFUSED(syscall(SYS_process_vm_readv, getpid(), &piece, 1, &piece, 1, 0), EPERM);
    REFUSED(syscall(SYS_pidfd_getfd, -1, 0, 0), EPERM);
    REFUSED(mount("none", "/", "tmpfs", 0, NULL), EPERM);
    REFUSED(umount2("/", 0), EPERM);
    REFUSED(chroot("/"), EPERM);
    REFUSED(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)), EPERM);
    REFUSED(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS);
    REFUSED(syscall(SYS_userfaultfd, 0), EPERM);
    REFUSED(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0), EPERM);
    REFUSED(syscall(SYS_open_by_handle_at, -1, NULL, 0), EPERM);
    REFUSED(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT);
    REFUSED(socket(AF_NETLINK, SOCK_RAW, 12), EAFNOSUPPORT);
    REFUSED(ioctl(STDIN_FILENO, TIOCSTI, "x"), EPERM);
    REFUSED(syscall(SYS_reboot, 0, 0, 0, NULL), EPERM);
}

static void calls_that_a_daemon_never_makes_are_refused(void **state)
{
    (void) state;
    run_in_child(make_refused_calls, "the filter");
}

static void *run_thread(void *argument)
{
    /* Threads are behind the same walls. */
    *(bool *) argument = unshare(CLONE_NEWUSER) == -1 && errno == EPERM;
    return NULL;
}

static void make_usual_calls(void)
{
    bool is_refused = false;
    pthread_t thread;
    int fd;

    raise_walls(false);
    CHECK_EQUAL(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    CHECK_EQUAL(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, run_thread, &is_refused), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK(is_refused);
    for (int family = 0; family < 3; family++) {
        static const int families[] = {AF_UNIX, AF_INET, AF_NETLINK};

        fd = socket(families[family], SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0);
        CHECK_EQUAL(close(fd), 0);
    }
    fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
}

static void threads_sockets_and_files_are_not(void **state)
{
    (void) state;
    run_in_child(make_usual_calls, "the filter");
}

static void allow_cores(void)
{
    raise_walls(true);
    CHECK_EQUAL(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
    REFUSED(unshare(CLONE_NEWUSER), EPERM);
}

static void cores_are_left_when_they_are_wanted(void **state)
{
    (void) state;
    run_in_child(allow_cores, "the filter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_a_daemon_never_makes_are_refused),
        cmocka_unit_test(threads_sockets_and_files_are_not),
        cmocka_unit_test(cores_are_left_when_they_are_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
