#include <string.h>
#include <sys/resource.h>

#include "base/fault.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/sys_test.h"

static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};

struct pair {
    int ends[2];
};

static struct pair make_pair(int type)
{
    struct pair pair;

    assert_int_equal(sys_socket_pair(type, pair.ends), 0);
    assert_true(is_close_on_exec(pair.ends[0]));
    assert_true(is_close_on_exec(pair.ends[1]));
    return pair;
}

static void close_pair(struct pair *pair)
{
    fd_close(pair->ends[0]);
    fd_close(pair->ends[1]);
}

static void bytes_and_descriptors_arrive_together(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct pair pair = make_pair(types[i]);
        struct stat sent, got;
        int pipes[2], received[4];
        size_t count = 0;
        char data[16] = "";

        assert_int_equal(pipe2(pipes, 0), 0);
        assert_int_equal(sys_fd_pass_send(pair.ends[0], "hello", 5, pipes, 2), 5);
        assert_int_equal(sys_fd_pass_receive(pair.ends[1], data, sizeof(data), received, 4, &count),
                         5);
        assert_string_equal(data, "hello");
        assert_int_equal(count, 2);
        for (size_t j = 0; j < 2; j++) {
            assert_true(is_close_on_exec(received[j]));
            assert_int_not_equal(received[j], pipes[j]);
            assert_int_equal(fstat(pipes[j], &sent), 0);
            assert_int_equal(fstat(received[j], &got), 0);
            assert_true(sent.st_ino == got.st_ino);
            fd_close(received[j]);
            fd_close(pipes[j]);
        }
        close_pair(&pair);
    }
}

static void messages_without_descriptors_pass_too(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct pair pair = make_pair(types[i]);
        size_t count = 9;
        char data[16];

        assert_int_equal(sys_fd_pass_send(pair.ends[0], "x", 1, NULL, 0), 1);
        assert_int_equal(sys_fd_pass_receive(pair.ends[1], data, sizeof(data), NULL, 0, &count), 1);
        assert_int_equal(count, 0);
        close_pair(&pair);
    }
}

static void packets_stay_apart(void **state)
{
    struct pair pair = make_pair(SOCK_SEQPACKET);
    size_t count;
    char data[16];

    (void) state;
    assert_int_equal(sys_fd_pass_send(pair.ends[0], "one", 3, NULL, 0), 3);
    assert_int_equal(sys_fd_pass_send(pair.ends[0], "four", 4, NULL, 0), 4);
    assert_int_equal(sys_fd_pass_receive(pair.ends[1], data, sizeof(data), NULL, 0, &count), 3);
    assert_int_equal(sys_fd_pass_receive(pair.ends[1], data, sizeof(data), NULL, 0, &count), 4);
    close_pair(&pair);
}

static void too_many_descriptors_are_refused_and_closed(void **state)
{
    static const size_t sent[] = {1, 3, SYS_FD_PASS_MAX};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(sent); j++) {
            struct pair pair = make_pair(types[i]);
            int fds[SYS_FD_PASS_MAX], received[SYS_FD_PASS_MAX] = {-7};
            int before = count_descriptors();
            size_t count = 99;
            char byte;

            for (size_t k = 0; k < sent[j]; k++)
                fds[k] = 2;
            assert_int_equal(sys_fd_pass_send(pair.ends[0], "x", 1, fds, sent[j]), 1);
            assert_int_equal(
                sys_fd_pass_receive(pair.ends[1], &byte, 1, received, sent[j] - 1, &count), -E2BIG);
            assert_int_equal(count, 99);
            assert_int_equal(received[0], -7);
            assert_int_equal(count_descriptors(), before);
            close_pair(&pair);
        }
    }
}

/* A peer that does not use our sender and fills a message to the kernel's own limit. */
static void send_many(int socket, size_t count)
{
    static _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
    struct cmsghdr header = {.cmsg_len = CMSG_LEN(sizeof(int) * count),
                             .cmsg_level = SOL_SOCKET,
                             .cmsg_type = SCM_RIGHTS};
    struct iovec part = {.iov_base = (char[]){"x"}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};

    memcpy(control, &header, sizeof(header));
    for (size_t i = 0; i < count; i++) {
        int fd = 2;

        memcpy(control + CMSG_LEN(sizeof(int) * i), &fd, sizeof(fd));
    }
    assert_int_equal(sendmsg(socket, &message, 0), 1);
}

static void cut_control_data_is_refused_and_closed(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct pair pair = make_pair(types[i]);
        int received[SYS_FD_PASS_MAX];
        int before = count_descriptors();
        size_t count;
        char byte;

        send_many(pair.ends[0], 253);
        assert_int_equal(
            sys_fd_pass_receive(pair.ends[1], &byte, 1, received, SYS_FD_PASS_MAX, &count), -E2BIG);
        assert_int_equal(count_descriptors(), before);
        close_pair(&pair);
    }
}

static void run_out_of_descriptors(void)
{
    int ends[2], received[8], fds[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    struct rlimit limit;
    int before;
    size_t count;
    char byte;

    CHECK_EQUAL(sys_socket_pair(SOCK_SEQPACKET, ends), 0);
    CHECK_EQUAL(sys_fd_pass_send(ends[0], "x", 1, fds, 8), 1);
    before = count_descriptors();
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t) ends[1] + 4;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQUAL(sys_fd_pass_receive(ends[1], &byte, 1, received, 8, &count), -E2BIG);
    CHECK_EQUAL(count_descriptors(), before);
}

static void a_full_table_is_refused_not_half_filled(void **state)
{
    (void) state;
    run_in_child(run_out_of_descriptors, "");
}

static void a_longer_packet_is_refused_with_its_descriptors(void **state)
{
    struct pair pair = make_pair(SOCK_SEQPACKET);
    int before = count_descriptors(), fd = 2, received;
    size_t count;
    char data[4];

    (void) state;
    assert_int_equal(sys_fd_pass_send(pair.ends[0], "12345", 5, &fd, 1), 5);
    assert_int_equal(sys_fd_pass_receive(pair.ends[1], data, 4, &received, 1, &count), -EMSGSIZE);
    assert_int_equal(count_descriptors(), before);
    close_pair(&pair);
}

static void a_closed_peer_is_the_end_or_epipe(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct pair pair = make_pair(types[i]);
        size_t count = 1;
        char byte;

        pair.ends[0] = fd_close(pair.ends[0]);
        assert_int_equal(sys_fd_pass_receive(pair.ends[1], &byte, 1, NULL, 0, &count), 0);
        assert_int_equal(count, 0);
        /* Without MSG_NOSIGNAL this would end the test. */
        assert_int_equal(sys_fd_pass_send(pair.ends[1], "x", 1, NULL, 0), -EPIPE);
        close_pair(&pair);
    }
}

static void impossible_requests_are_refused(void **state)
{
    struct pair pair = make_pair(SOCK_SEQPACKET);
    int fds[SYS_FD_PASS_MAX + 1] = {0}, wrong = -1;
    size_t count;
    char byte = 0;

    (void) state;
    assert_int_equal(sys_fd_pass_send(pair.ends[0], "", 0, NULL, 0), -EINVAL);
    assert_int_equal(sys_fd_pass_send(pair.ends[0], &byte, 1, fds, SYS_FD_PASS_MAX + 1), -EINVAL);
    assert_int_equal(sys_fd_pass_send(pair.ends[0], &byte, 1, &wrong, 1), -EBADF);
    assert_int_equal(sys_fd_pass_receive(pair.ends[1], &byte, 0, fds, 1, &count), -EINVAL);
    assert_int_equal(sys_fd_pass_receive(pair.ends[1], &byte, 1, fds, SYS_FD_PASS_MAX + 1, &count),
                     -EINVAL);
    fault_arm(FAULT_SYSTEM_CALL, 1, EINTR);
    assert_int_equal(sys_fd_pass_send(pair.ends[0], &byte, 1, NULL, 0), 1);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    fault_arm(FAULT_SYSTEM_CALL, 1, ECONNRESET);
    assert_int_equal(sys_fd_pass_receive(pair.ends[1], &byte, 1, fds, 1, &count), -ECONNRESET);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    close_pair(&pair);
}

static void the_peer_is_known(void **state)
{
    struct pair pair = make_pair(SOCK_SEQPACKET);
    struct ucred peer;

    (void) state;
    assert_int_equal(sys_fd_pass_peer(pair.ends[0], &peer), 0);
    assert_int_equal(peer.pid, getpid());
    assert_int_equal(peer.uid, geteuid());
    assert_int_equal(peer.gid, getegid());
    assert_int_equal(sys_fd_pass_peer(-1, &peer), -EBADF);
    assert_int_equal(sys_fd_pass_peer(STDIN_FILENO + 900, &peer), -EBADF);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_descriptors_arrive_together),
        cmocka_unit_test(messages_without_descriptors_pass_too),
        cmocka_unit_test(packets_stay_apart),
        cmocka_unit_test(too_many_descriptors_are_refused_and_closed),
        cmocka_unit_test(cut_control_data_is_refused_and_closed),
        cmocka_unit_test(a_full_table_is_refused_not_half_filled),
        cmocka_unit_test(a_longer_packet_is_refused_with_its_descriptors),
        cmocka_unit_test(a_closed_peer_is_the_end_or_epipe),
        cmocka_unit_test(impossible_requests_are_refused),
        cmocka_unit_test(the_peer_is_known),
    };

    return cmocka_run_group_tests_name("sys_fd_pass", tests, NULL, NULL);
}
