#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"
#include "sys/sys_test.h"

#define BACKLOG 8

struct fixture {
    char path[SCRATCH_SIZE];
    struct sys_address address; /* unix, in the scratch directory */
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    char text[SCRATCH_SIZE + 16];

    make_scratch(fixture->path);
    (void) snprintf(text, sizeof(text), "unix:%s/socket", fixture->path);
    assert_int_equal(sys_address_parse(text, &fixture->address), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    fault_disarm(FAULT_SYSTEM_CALL);
    remove_scratch(fixture->path);
    free(fixture);
    return 0;
}

static bool is_nonblocking(int fd)
{
    return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

/* Connect, accept, and send a byte each way. */
static void check_conversation(int listener, const struct sys_address *address)
{
    AUTO(close) int client = sys_socket_create(address), server = -EBADF;
    struct sys_address peer;
    char byte = 0;
    int result;

    assert_true(client >= 0);
    assert_true(is_close_on_exec(client) && is_nonblocking(client));
    assert_int_equal(sys_socket_accept(listener, NULL), -EAGAIN);
    result = sys_socket_connect(client, address);
    assert_true(result == 0 || result == -EINPROGRESS);
    assert_int_equal(sys_file_poll(client, POLLOUT, 10000) & POLLERR, 0);
    assert_int_equal(sys_socket_error(client), 0);
    assert_int_equal(sys_file_poll(listener, POLLIN, 10000), POLLIN);
    server = sys_socket_accept(listener, &peer);
    assert_true(server >= 0);
    assert_true(is_close_on_exec(server) && is_nonblocking(server));
    assert_int_equal(peer.any.sa_family, address->any.sa_family);
    assert_int_equal(send(server, "a", 1, 0), 1);
    assert_int_equal(sys_file_poll(client, POLLIN, 10000), POLLIN);
    assert_int_equal(recv(client, &byte, 1, 0), 1);
    assert_int_equal(byte, 'a');
}

static void check_tcp(const char *text)
{
    AUTO(close) int listener = -EBADF, fd = -EBADF;
    struct sys_address address, local, peer;
    char local_text[SYS_ADDRESS_TEXT_SIZE], peer_text[SYS_ADDRESS_TEXT_SIZE];
    socklen_t length = sizeof(int);
    int nodelay = 0;

    assert_int_equal(sys_address_parse(text, &address), 0);
    listener = sys_socket_listen(&address, BACKLOG, 0);
    if (listener == -EADDRNOTAVAIL || listener == -EAFNOSUPPORT)
        skip_without("this address family on loopback");
    assert_true(listener >= 0);
    assert_true(is_close_on_exec(listener) && is_nonblocking(listener));
    assert_int_equal(sys_socket_local_address(listener, &local), 0);
    check_conversation(listener, &local);
    assert_int_equal(sys_socket_listen(&local, BACKLOG, 0), -EADDRINUSE);
    fd = sys_socket_create(&local);
    assert_true(sys_socket_connect(fd, &local) == -EINPROGRESS);
    assert_int_equal(sys_socket_set_nodelay(fd, true), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &length), 0);
    assert_true(nodelay);
    assert_int_equal(sys_file_poll(fd, POLLOUT, 10000), POLLOUT);
    assert_int_equal(sys_socket_peer_address(fd, &peer), 0);
    sys_address_format(&local, local_text);
    sys_address_format(&peer, peer_text);
    assert_string_equal(local_text, peer_text);
}

static void tcp_listens_accepts_and_connects(void **state)
{
    (void) state;
    check_tcp("127.0.0.1:0");
}

static void tcp_over_ipv6_too(void **state)
{
    (void) state;
    check_tcp("[::1]:0");
}

static void a_refused_connection_is_told(void **state)
{
    AUTO(close) int listener = -EBADF, fd = -EBADF;
    struct sys_address address, local;
    int result;

    (void) state;
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    listener = sys_socket_listen(&address, BACKLOG, 0);
    assert_int_equal(sys_socket_local_address(listener, &local), 0);
    listener = fd_close(listener);
    fd = sys_socket_create(&local);
    result = sys_socket_connect(fd, &local);
    if (result == -EINPROGRESS) {
        assert_true(sys_file_poll(fd, POLLOUT, 10000) > 0);
        result = sys_socket_error(fd);
    }
    assert_int_equal(result, -ECONNREFUSED);
}

static void a_unix_socket_gets_exactly_its_mode(void **state)
{
    struct fixture *fixture = *state;
    static const mode_t modes[] = {0600, 0660, 0777};

    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        mode_t before = umask(i == 2 ? 077 : 0);
        AUTO(close) int listener = sys_socket_listen(&fixture->address, BACKLOG, modes[i]);
        struct stat status;

        umask(before);
        assert_true(listener >= 0);
        assert_int_equal(stat(fixture->address.local.sun_path, &status), 0);
        assert_int_equal(status.st_mode & 07777, modes[i]);
        check_conversation(listener, &fixture->address);
    }
}

static void a_live_socket_is_not_stolen(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int listener = sys_socket_listen(&fixture->address, BACKLOG, 0600);

    assert_true(listener >= 0);
    assert_int_equal(sys_socket_listen(&fixture->address, BACKLOG, 0600), -EADDRINUSE);
    /* The probe left a connection that is closed already. */
    fd_close(sys_socket_accept(listener, NULL));
    check_conversation(listener, &fixture->address);
}

static void a_live_socket_with_a_full_queue_is_not_stolen(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int listener = sys_socket_listen(&fixture->address, 0, 0600);
    AUTO(close) int first = sys_socket_create(&fixture->address);
    AUTO(close) int second = sys_socket_create(&fixture->address);

    assert_true(listener >= 0);
    assert_int_equal(sys_socket_connect(first, &fixture->address), 0);
    assert_int_equal(sys_socket_connect(second, &fixture->address), -EAGAIN);
    assert_int_equal(sys_socket_listen(&fixture->address, BACKLOG, 0600), -EADDRINUSE);
    assert_int_equal(access(fixture->address.local.sun_path, F_OK), 0);
}

static void a_dead_socket_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int listener = sys_socket_listen(&fixture->address, BACKLOG, 0600);

    listener = fd_close(listener);
    assert_int_equal(access(fixture->address.local.sun_path, F_OK), 0);
    listener = sys_socket_listen(&fixture->address, BACKLOG, 0600);
    assert_true(listener >= 0);
    check_conversation(listener, &fixture->address);
}

static void what_is_no_socket_is_never_removed(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close)
    int fd = open(fixture->address.local.sun_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat status;

    assert_true(fd >= 0);
    assert_int_equal(sys_socket_listen(&fixture->address, BACKLOG, 0600), -EADDRINUSE);
    assert_int_equal(stat(fixture->address.local.sun_path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(unlink(fixture->address.local.sun_path), 0);
    assert_int_equal(symlink("elsewhere", fixture->address.local.sun_path), 0);
    assert_int_equal(sys_socket_listen(&fixture->address, BACKLOG, 0600), -EADDRINUSE);
    assert_int_equal(lstat(fixture->address.local.sun_path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
}

/* One of many that start at once: tell the result, and keep what was won until killed. */
static _Noreturn void compete(const struct sys_address *address, int go, int results)
{
    char byte = 0;
    int fd;

    (void) !read(go, &byte, 1); /* ends when the parent closes the other end */
    fd = sys_socket_listen(address, BACKLOG, 0600);
    byte = fd >= 0 ? 'w' : fd == -EADDRINUSE ? 'l' : 'e';
    CHECK_EQUAL(write(results, &byte, 1), 1);
    for (;;)
        pause();
}

static void only_one_of_many_wins_a_dead_socket(void **state)
{
    struct fixture *fixture = *state;
    int go[2], results[2], winners = 0, losers = 0;
    pid_t pids[6];

    fd_close(sys_socket_listen(&fixture->address, BACKLOG, 0600));
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    assert_int_equal(pipe2(results, O_CLOEXEC), 0);
    for (size_t i = 0; i < ARRAY_COUNT(pids); i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(go[1]);
            compete(&fixture->address, go[0], results[1]);
        }
    }
    close(go[0]);
    close(go[1]);
    for (size_t i = 0; i < ARRAY_COUNT(pids); i++) {
        char byte = 0;

        if (sys_file_poll(results[0], POLLIN, 10000) > 0)
            (void) !read(results[0], &byte, 1);
        winners += byte == 'w';
        losers += byte == 'l';
    }
    for (size_t i = 0; i < ARRAY_COUNT(pids); i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
    close(results[0]);
    close(results[1]);
    assert_int_equal(winners, 1);
    assert_int_equal(losers, ARRAY_COUNT(pids) - 1);
}

static void a_locked_directory_is_given_up_on(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int directory = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(flock(directory, LOCK_EX), 0);
    assert_int_equal(sys_socket_listen(&fixture->address, BACKLOG, 0600), -EADDRINUSE);
    assert_int_equal(access(fixture->address.local.sun_path, F_OK), -1);
}

static void failures_leave_neither_file_nor_descriptor(void **state)
{
    struct fixture *fixture = *state;
    int before = count_descriptors();
    bool reached = true;

    for (unsigned int call = 1; reached; call++) {
        int fd;

        fault_arm(FAULT_SYSTEM_CALL, call, EIO);
        fd = sys_socket_listen(&fixture->address, BACKLOG, 0600);
        reached = fault_disarm(FAULT_SYSTEM_CALL);
        if (reached) {
            assert_int_equal(fd, -EIO);
            assert_int_equal(access(fixture->address.local.sun_path, F_OK), -1);
        } else {
            assert_true(fd >= 0 && call > 3);
            fd_close(fd);
        }
        assert_int_equal(count_descriptors(), before);
    }
}

static void dead_connections_are_skipped(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int listener = sys_socket_listen(&fixture->address, BACKLOG, 0600);

    fault_arm(FAULT_SYSTEM_CALL, 1, ECONNABORTED);
    assert_int_equal(sys_socket_accept(listener, NULL), -EAGAIN);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    fault_arm(FAULT_SYSTEM_CALL, 1, EMFILE);
    assert_int_equal(sys_socket_accept(listener, NULL), -EMFILE);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
}

#define UNIX_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void a_socket_that_is_there_can_listen(void **state)
{
    struct sys_address address;
    int fd;

    (void) state;
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    fd = sys_socket_create(&address);
    assert_true(fd >= 0);
    assert_int_equal(sys_socket_listen_on(fd, &address, 4), 0);
    assert_int_equal(sys_socket_local_address(fd, &address), 0);
    check_conversation(fd, &address);
    (void) close(fd);
}

static void our_own_addresses_are_known(void **state)
{
    static const struct {
        const char *address;
        bool is_own;
    } rows[] = {
        {"127.0.0.1:1", true},  {"127.9.9.9:1", true},      {"[::1]:1", true},
        {"192.0.2.1:1", false}, {"[2001:db8::1]:1", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct sys_address address;

        assert_int_equal(sys_address_parse(rows[i].address, &address), 0);
        assert_int_equal(sys_socket_is_own(&address), rows[i].is_own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_listens_accepts_and_connects),
        cmocka_unit_test(tcp_over_ipv6_too),
        cmocka_unit_test(a_refused_connection_is_told),
        UNIX_TEST(a_unix_socket_gets_exactly_its_mode),
        UNIX_TEST(a_live_socket_is_not_stolen),
        UNIX_TEST(a_live_socket_with_a_full_queue_is_not_stolen),
        UNIX_TEST(a_dead_socket_is_replaced),
        UNIX_TEST(what_is_no_socket_is_never_removed),
        UNIX_TEST(only_one_of_many_wins_a_dead_socket),
        UNIX_TEST(a_locked_directory_is_given_up_on),
        UNIX_TEST(failures_leave_neither_file_nor_descriptor),
        UNIX_TEST(dead_connections_are_skipped),
        cmocka_unit_test(a_socket_that_is_there_can_listen),
        cmocka_unit_test(our_own_addresses_are_known),
    };

    return cmocka_run_group_tests_name("sys_socket", tests, NULL, NULL);
}
