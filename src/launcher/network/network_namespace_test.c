#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "launcher/network/network_namespace.h"
#include "sys/network/sys_netlink.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

#define NEEDS_ROOT "root with network namespaces"

/* Our own namespace, apart from the host's. */
static int enter_home(void)
{
    int home;

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    home = sys_namespace_open(0, "net");
    CHECK(home >= 0);
    return home;
}

static ino_t own_number(void)
{
    AUTO(close) int own = sys_namespace_open(0, "net");
    struct stat stat;

    CHECK_EQUAL(fstat(own, &stat), 0);
    return stat.st_ino;
}

/* As a sandbox does: in a process of its own, which ends. */
static void use_network(int home, int network, void (*run)(void))
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended;
    pid_t pid;

    CHECK_EQUAL(network_namespace_enter(network), 0);
    pid = sys_clone(&how);
    CHECK(pid >= 0);
    if (pid == 0) {
        run();
        _exit(0);
    }
    network_namespace_return(home);
    CHECK_EQUAL(sys_process_wait(pidfd, 10000, &ended), 0);
    if (ended.value == CHILD_UNABLE)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 0);
}

static struct sockaddr_in at(const char *address, uint16_t port)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};

    CHECK_EQUAL(inet_pton(AF_INET, address, &there.sin_addr), 1);
    return there;
}

static void connect_to_itself(void)
{
    struct sockaddr_in there = at("127.0.0.1", 8080);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_EQUAL(bind(listener, (struct sockaddr *) &there, sizeof(there)), 0);
    CHECK_EQUAL(listen(listener, 1), 0);
    CHECK_EQUAL(connect(fd, (struct sockaddr *) &there, sizeof(there)), 0);
}

/* Root of a user namespace of its own, as in a sandbox, with all capabilities. */
static void try_rights(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    struct in_addr address = {.s_addr = htonl(0x0a000001)};
    struct sockaddr_in there = at("0.0.0.0", 80);

    CHECK_EQUAL(unshare(CLONE_NEWUSER), 0);
    CHECK_EQUAL(sys_netlink_open(&netlink), 0);
    CHECK_EQUAL(sys_netlink_set_up(&netlink, 1, false), -EPERM);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, 1, address, 32), -EPERM);
    CHECK_EQUAL(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), -1);
    CHECK_EQUAL(errno, EPERM);
    /* A port below 1024, though. */
    CHECK_EQUAL(bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *) &there, sizeof(there)),
                0);
}

static void make_and_try(void)
{
    int home = enter_home(), network = -EBADF;
    ino_t before = own_number();

    CHECK_EQUAL(network_namespace_make(home, &network), 0);
    CHECK(is_close_on_exec(network));
    CHECK(own_number() == before);
    use_network(home, network, try_rights);
    use_network(home, network, connect_to_itself);
}

static void root_of_a_sandbox_has_no_rights_in_it(void **state)
{
    (void) state;
    run_in_child(make_and_try, NEEDS_ROOT);
}

/* One attempt in a process of its own: failing to come home ends the process, as it should. False:
 * there is no nth call. */
static bool fails_in_order(int home, unsigned int nth)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        int network = -EBADF, before = count_descriptors(), result;
        ino_t number = own_number();

        fault_arm(FAULT_SYSTEM_CALL, nth, EIO);
        result = network_namespace_make(home, &network);
        if (!fault_disarm(FAULT_SYSTEM_CALL)) {
            CHECK_EQUAL(result, 0);
            _exit(1);
        }
        CHECK_EQUAL(result, -EIO);
        CHECK_EQUAL(network, -EBADF);
        CHECK(own_number() == number);
        CHECK_EQUAL(count_descriptors(), before);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return true;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 0;
}

static void fail_everywhere(void)
{
    int home = enter_home();
    unsigned int nth = 1;

    while (fails_in_order(home, nth))
        CHECK(++nth < 100);
    CHECK(nth > 5);
}

static void a_failure_leaves_nothing_and_nobody_there(void **state)
{
    (void) state;
    run_in_child(fail_everywhere, NEEDS_ROOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_of_a_sandbox_has_no_rights_in_it),
        cmocka_unit_test(a_failure_leaves_nothing_and_nobody_there),
    };

    return cmocka_run_group_tests_name("network_namespace", tests, NULL, NULL);
}
