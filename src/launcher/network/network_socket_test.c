#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "launcher/network/network.h"
#include "launcher/network/network_socket.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_namespace.h"
#include "sys/sys_test.h"

#define NEEDS_ROOT "root with network namespaces"

/* Nobody in particular. */
#define DAEMON 54321

static void make_sockets(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(8080)};
    AUTO(close) int home = -EBADF, inside = -EBADF, listener = -EBADF;
    struct rlimit few = {.rlim_cur = 20, .rlim_max = 20};
    int fds[NETWORK_SOCKETS_MAX];
    struct error err = ERROR_INIT;
    int before;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    home = sys_namespace_open(0, "net");
    CHECK_EQUAL(unshare(CLONE_NEWNET), 0);
    inside = sys_namespace_open(0, "net");
    CHECK_EQUAL(network_loopback_up(), 0);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
    CHECK_EQUAL(listen(listener, NETWORK_SOCKETS_MAX), 0);
    CHECK_EQUAL(sys_namespace_enter(home, CLONE_NEWNET), 0);
    CHECK_EQUAL(network_sockets(inside, home, AF_INET, fds, NETWORK_SOCKETS_MAX, &err), 0);
    for (int i = 0; i < NETWORK_SOCKETS_MAX; i++) {
        CHECK(is_close_on_exec(fds[i]));
        CHECK(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        (void) connect(fds[i], (struct sockaddr *) &address, sizeof(address));
        CHECK_EQUAL(sys_file_poll(fds[i], POLLOUT, 1000), POLLOUT);
        (void) close(fds[i]);
    }
    /* At home nobody listens there, so we are at home again. */
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(fds[0], (struct sockaddr *) &address, sizeof(address)), -1);
    CHECK_EQUAL(errno, ENETUNREACH);
    CHECK_EQUAL(network_sockets(inside, home, AF_INET, fds, NETWORK_SOCKETS_MAX + 1, &err), -1);
    CHECK_EQUAL(err.code, ERR_INVALID);
    CHECK_EQUAL(network_sockets(listener, home, AF_INET, fds, 1, &err), -1);
    before = count_descriptors();
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQUAL(network_sockets(inside, home, AF_INET, fds, NETWORK_SOCKETS_MAX, &err), -1);
    CHECK_EQUAL(count_descriptors(), before);
}

static void sockets_reach_the_inside_of_a_sandbox(void **state)
{
    (void) state;
    run_in_child(make_sockets, NEEDS_ROOT);
}

/* Connect as the given user: 0 or -errno. */
static int connect_as(uid_t user, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pid_t pid = fork();
    int status;

    CHECK(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    CHECK(pid >= 0);
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK_EQUAL(setgid(user), 0);
        CHECK_EQUAL(setuid(user), 0);
        _exit(connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? errno : 0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void listen_for_daemon(void)
{
    AUTO(close) int folder = -EBADF, fd = -EBADF;
    struct id id = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    const char *path = "/tmp/agents/aaaaaaaaaaaaaaaaaaaaaaaaaa.sock";
    struct error err = ERROR_INIT;
    struct stat status;
    mode_t mask = umask(0022);

    (void) umask(mask);
    enter_private_mounts();
    CHECK_EQUAL(network_agent_folder("/tmp/agents", DAEMON, DAEMON, &folder, &err), 0);
    CHECK(is_close_on_exec(folder));
    CHECK_EQUAL(fstat(folder, &status), 0);
    CHECK_EQUAL(status.st_uid, DAEMON);
    CHECK_EQUAL(status.st_mode & 07777, 0700);
    CHECK_EQUAL(network_agent_listen(folder, DAEMON, DAEMON, &id, &fd, &err), 0);
    CHECK(is_close_on_exec(fd));
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK_EQUAL(stat(path, &status), 0);
    CHECK_EQUAL(status.st_uid, DAEMON);
    CHECK_EQUAL(status.st_gid, DAEMON);
    CHECK_EQUAL(status.st_mode & 07777, 0600);
    CHECK_EQUAL(connect_as(DAEMON, path), 0);
    CHECK_EQUAL(connect_as(DAEMON + 1, path), -EACCES);
    /* A dead agent's file is replaced; rights and mask are ours again. */
    fd = fd_close(fd);
    CHECK_EQUAL(connect_as(DAEMON, path), -ECONNREFUSED);
    CHECK_EQUAL(network_agent_listen(folder, DAEMON, DAEMON, &id, &fd, &err), 0);
    CHECK_EQUAL(connect_as(DAEMON, path), 0);
    CHECK_EQUAL(umask(mask), mask);
    CHECK_EQUAL(mkdir("/tmp/ours", 0700), 0);
    CHECK_EQUAL(stat("/tmp/ours", &status), 0);
    CHECK_EQUAL(status.st_uid, 0);
    CHECK_EQUAL(network_agent_remove(folder, DAEMON, DAEMON, &id, &err), 0);
    CHECK_EQUAL(network_agent_remove(folder, DAEMON, DAEMON, &id, &err), 0);
    CHECK_EQUAL(access(path, F_OK), -1);
}

static void only_the_daemon_connects_to_an_agent(void **state)
{
    (void) state;
    run_in_child(listen_for_daemon, NEEDS_ROOT " and mounts");
}

/* The daemon was taken over and plays with its folder. */
static void resist_daemon(void)
{
    AUTO(close) int folder = -EBADF, elsewhere = -EBADF;
    struct id id = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct error err = ERROR_INIT;
    struct stat status;
    int fd = -EBADF;

    enter_private_mounts();
    CHECK_EQUAL(network_agent_folder("/tmp/agents", DAEMON, DAEMON, &folder, &err), 0);
    CHECK_EQUAL(mkdir("/tmp/secret", 0755), 0);
    CHECK_EQUAL(close(creat("/tmp/secret/file", 0600)), 0);
    /* A link where the socket goes: the link is replaced, not followed. */
    CHECK_EQUAL(symlink("/tmp/secret/file", "/tmp/agents/aaaaaaaaaaaaaaaaaaaaaaaaaa.sock"), 0);
    CHECK_EQUAL(network_agent_listen(folder, DAEMON, DAEMON, &id, &fd, &err), 0);
    (void) close(fd);
    CHECK_EQUAL(stat("/tmp/secret/file", &status), 0);
    CHECK(S_ISREG(status.st_mode) && status.st_uid == 0);
    /* A folder is in the way: an error, and nothing is removed. */
    CHECK_EQUAL(unlink("/tmp/agents/aaaaaaaaaaaaaaaaaaaaaaaaaa.sock"), 0);
    CHECK_EQUAL(mkdir("/tmp/agents/aaaaaaaaaaaaaaaaaaaaaaaaaa.sock", 0700), 0);
    CHECK_EQUAL(network_agent_listen(folder, DAEMON, DAEMON, &id, &fd, &err), -1);
    /* In root's folder the daemon's rights are not enough, though we are root. */
    elsewhere = sys_file_open(AT_FDCWD, "/tmp/secret", O_RDONLY | O_DIRECTORY, 0);
    CHECK_EQUAL(network_agent_listen(elsewhere, DAEMON, DAEMON, &id, &fd, &err), -1);
    CHECK_EQUAL(err.system, EACCES);
    /* The folder itself: a link, or somebody else's. */
    CHECK_EQUAL(symlink("/tmp/secret", "/tmp/link"), 0);
    CHECK_EQUAL(network_agent_folder("/tmp/link", DAEMON, DAEMON, &fd, &err), -1);
    CHECK_EQUAL(mkdir("/tmp/other", 0700), 0);
    CHECK_EQUAL(chown("/tmp/other", DAEMON + 1, DAEMON + 1), 0);
    CHECK_EQUAL(network_agent_folder("/tmp/other", DAEMON, DAEMON, &fd, &err), -1);
    CHECK_EQUAL(err.code, ERR_CONFLICT);
}

static void a_hostile_daemon_gains_nothing_in_its_folder(void **state)
{
    (void) state;
    run_in_child(resist_daemon, NEEDS_ROOT " and mounts");
}

/* Paths of sockets end at 107 bytes, those of folders do not. */
static void listen_deep(void)
{
    AUTO(close) int folder = -EBADF, fd = -EBADF;
    struct id id = id_new();
    struct error err = ERROR_INIT;
    char path[256] = "/tmp";

    enter_private_mounts();
    for (int i = 0; i < 6; i++) {
        size_t length = strlen(path);

        (void) snprintf(path + length, sizeof(path) - length, "/a-folder-with-a-long-name-%d", i);
        CHECK_EQUAL(mkdir(path, 0755), 0);
    }
    CHECK_EQUAL(rmdir(path), 0);
    CHECK_EQUAL(network_agent_folder(path, DAEMON, DAEMON, &folder, &err), 0);
    CHECK_EQUAL(network_agent_listen(folder, DAEMON, DAEMON, &id, &fd, &err), 0);
}

static void the_folder_may_have_a_long_path(void **state)
{
    (void) state;
    run_in_child(listen_deep, NEEDS_ROOT " and mounts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_reach_the_inside_of_a_sandbox),
        cmocka_unit_test(only_the_daemon_connects_to_an_agent),
        cmocka_unit_test(a_hostile_daemon_gains_nothing_in_its_folder),
        cmocka_unit_test(the_folder_may_have_a_long_path),
    };

    return cmocka_run_group_tests_name("network_socket", tests, NULL, NULL);
}
