#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/sys_test.h"
#include "wire/wire_channel.h"
#include "wire/wire_testing.h"

struct pair {
    int before; /* descriptors open */
    struct wire_channel ours, peer;
};

static void start(struct pair *pair)
{
    struct error err = ERROR_INIT;
    int ends[2];

    pair->before = count_descriptors();
    assert_int_equal(sys_socket_pair(SOCK_SEQPACKET, ends), 0);
    assert_ok(wire_channel_init(&pair->ours, ends[0], &err), &err);
    assert_ok(wire_channel_init(&pair->peer, ends[1], &err), &err);
    pair->ours.version = pair->peer.version = WIRE_VERSION_MAX;
}

static void finish(struct pair *pair)
{
    wire_channel_done(&pair->ours);
    wire_channel_done(&pair->peer);
    wire_channel_done(&pair->peer);
    assert_int_equal(count_descriptors(), pair->before);
}

static const struct wire_message create = {.number = WIRE_MESSAGE_CREATE, .request = 5};
static const struct wire_message list = {.number = WIRE_MESSAGE_LIST, .request = 6};

static void messages_and_descriptors_arrive(void **state)
{
    struct pair pair;
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct stat sent, got;
    int fd;

    (void) state;
    start(&pair);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 0);
    assert_ok(wire_channel_send(&pair.ours, &create, &fd, 1, &err), &err);
    assert_ok(wire_channel_send(&pair.ours, &list, NULL, 0, &err), &err);
    assert_false(wire_channel_is_waiting(&pair.ours));
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 1);
    assert_int_equal(incoming.message.number, WIRE_MESSAGE_CREATE);
    assert_true(incoming.message.request == 5);
    assert_int_equal(incoming.fd_count, 1);
    assert_true(is_close_on_exec(incoming.fds[0]));
    assert_int_equal(fstat(fd, &sent), 0);
    assert_int_equal(fstat(incoming.fds[0], &got), 0);
    assert_true(sent.st_ino == got.st_ino && sent.st_rdev == got.st_rdev);
    wire_incoming_done(&incoming);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 1);
    assert_int_equal(incoming.message.number, WIRE_MESSAGE_LIST);
    assert_int_equal(incoming.fd_count, 0);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 0);
    close(fd);
    finish(&pair);
}

static void taken_descriptors_stay_open(void **state)
{
    AUTO(wire_incoming) struct wire_incoming incoming = {.fd_count = 0};
    struct pair pair;
    struct error err = ERROR_INIT;
    int fd = 2, taken;

    (void) state;
    start(&pair);
    assert_ok(wire_channel_send(&pair.ours, &create, &fd, 1, &err), &err);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 1);
    taken = TAKE_FD(incoming.fds[0]);
    wire_incoming_done(&incoming);
    assert_true(is_close_on_exec(taken));
    close(taken);
    finish(&pair);
}

static void a_wrong_number_of_descriptors_is_not_sent(void **state)
{
    struct pair pair;
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    int fds[2] = {2, 2}, closed = 900;

    (void) state;
    start(&pair);
    assert_int_equal(wire_channel_send(&pair.ours, &create, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(wire_channel_send(&pair.ours, &create, fds, 2, &err), -1);
    assert_int_equal(wire_channel_send(&pair.ours, &list, fds, 1, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(wire_channel_send(&pair.ours, &create, &closed, 1, &err), -1);
    assert_int_equal(err.system, EBADF);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 0);
    finish(&pair);
}

/* A peer that does not use our sender. */
static void send_raw(const struct wire_channel *channel, const void *bytes, size_t length,
                     size_t fd_count)
{
    static _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
    struct iovec part = {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count) {
        const struct cmsghdr header = {.cmsg_len = CMSG_LEN(sizeof(int) * fd_count),
                                       .cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS};

        memcpy(control, &header, sizeof(header));
        for (size_t i = 0; i < fd_count; i++)
            memcpy(control + CMSG_LEN(sizeof(int) * i), &(int){2}, sizeof(int));
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    }
    assert_int_equal(sendmsg(channel->fd, &message, MSG_NOSIGNAL), length);
}

static void a_wrong_number_of_descriptors_is_refused_and_closed(void **state)
{
    static const struct {
        const struct wire_message *message;
        size_t count;
    } cases[] = {
        {&create, 0},  {&create, 2},   {&create, 32}, {&create, 33}, {&create, 64},
        {&create, 65}, {&create, 253}, {&list, 1},    {&list, 32},   {&list, 253},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct pair pair;
        struct wire_incoming incoming;
        struct wire_packet packet;
        struct error err = ERROR_INIT;
        int open_before;

        start(&pair);
        open_before = count_descriptors();
        assert_ok(wire_message_encode(cases[i].message, WIRE_VERSION_MAX, &packet, &err), &err);
        send_raw(&pair.ours, packet.bytes, packet.length, cases[i].count);
        assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(incoming.fd_count, 0);
        assert_int_equal(count_descriptors(), open_before);
        finish(&pair);
    }
}

static void bytes_that_are_no_message_are_refused_with_their_descriptors(void **state)
{
    static const char long_packet[WIRE_PACKET_MAX + 1];
    static const struct {
        size_t length;
        enum err_code code;
    } cases[] = {
        {1, ERR_INVALID},
        {WIRE_HEADER_SIZE - 1, ERR_INVALID},
        {WIRE_HEADER_SIZE, ERR_NOT_IMPLEMENTED},
        {WIRE_PACKET_MAX, ERR_NOT_IMPLEMENTED},
        {WIRE_PACKET_MAX + 1, ERR_INVALID},
        /* An empty packet looks like the end, but descriptors can come with it. */
        {0, ERR_GONE},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct pair pair;
        struct wire_incoming incoming;
        struct error err = ERROR_INIT;
        int open_before;

        start(&pair);
        open_before = count_descriptors();
        send_raw(&pair.ours, long_packet, cases[i].length, 3);
        assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), -1);
        assert_int_equal(err.code, cases[i].code);
        assert_int_equal(incoming.fd_count, 0);
        assert_int_equal(count_descriptors(), open_before);
        finish(&pair);
    }
}

static void announced_descriptors_must_come(void **state)
{
    const struct wire_message made = {
        .number = WIRE_MESSAGE_SOCKETS_MADE, .request = 1, .sockets_made = {.count = 3}};
    const int fds[4] = {2, 2, 2, 2};
    struct pair pair;
    struct wire_incoming incoming;
    struct wire_packet packet;
    struct error err = ERROR_INIT;

    (void) state;
    start(&pair);
    assert_int_equal(wire_channel_send(&pair.ours, &made, fds, 4, &err), -1);
    assert_ok(wire_channel_send(&pair.ours, &made, fds, 3, &err), &err);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 1);
    assert_int_equal(incoming.fd_count, 3);
    wire_incoming_done(&incoming);
    assert_ok(wire_message_encode(&made, 1, &packet, &err), &err);
    send_raw(&pair.ours, packet.bytes, packet.length, 2);
    assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), -1);
    finish(&pair);
}

static void run_out_of_descriptors(void)
{
    struct wire_channel channel;
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct rlimit limit;
    const int fd = 2;
    int ends[2], before;

    CHECK_EQUAL(sys_socket_pair(SOCK_SEQPACKET, ends), 0);
    CHECK_EQUAL(wire_channel_init(&channel, ends[0], &err), 0);
    channel.version = 1;
    CHECK_EQUAL(wire_channel_send(&channel, &create, &fd, 1, &err), 0);
    channel.fd = ends[1];
    before = count_descriptors();
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t) ends[1] + 1;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQUAL(wire_channel_receive(&channel, &incoming, &err), -1);
    CHECK_EQUAL(incoming.fd_count, 0);
    CHECK_EQUAL(count_descriptors(), before);
}

static void a_full_table_loses_the_message_and_nothing_else(void **state)
{
    (void) state;
    run_in_child(run_out_of_descriptors, "");
}

/* Requests with rising numbers until the socket is full and `more` of them wait. */
static uint64_t fill_up(struct wire_channel *channel, size_t more)
{
    struct wire_message message = create;
    struct error err = ERROR_INIT;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    message.request = 0;
    while (channel->waiting_count < more) {
        message.request++;
        assert_ok(wire_channel_send(channel, &message, &fd, 1, &err), &err);
    }
    close(fd);
    return message.request;
}

static void what_does_not_fit_waits_in_order(void **state)
{
    struct pair pair;
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    uint64_t sent, received = 0;

    (void) state;
    start(&pair);
    sent = fill_up(&pair.ours, 20);
    assert_true(sent > 20);
    while (received < sent) {
        assert_ok(wire_channel_flush(&pair.ours, &err), &err);
        assert_int_equal(wire_channel_receive(&pair.peer, &incoming, &err), 1);
        assert_true(incoming.message.request == ++received);
        assert_int_equal(incoming.fd_count, 1);
        wire_incoming_done(&incoming);
    }
    assert_false(wire_channel_is_waiting(&pair.ours));
    finish(&pair);
}

static void what_waits_has_a_limit_and_is_closed_at_the_end(void **state)
{
    struct pair pair;
    struct error err = ERROR_INIT;

    (void) state;
    start(&pair);
    (void) fill_up(&pair.ours, 3);
    pair.ours.waiting_count += WIRE_WAITING_MAX - 3;
    assert_int_equal(wire_channel_send(&pair.ours, &list, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    pair.ours.waiting_count -= WIRE_WAITING_MAX - 3;
    finish(&pair);
}

static void keep_without_descriptors(void)
{
    struct wire_channel channel;
    struct error err = ERROR_INIT;
    struct rlimit limit;
    const int fd = 2;
    int ends[2], before;

    CHECK_EQUAL(sys_socket_pair(SOCK_SEQPACKET, ends), 0);
    CHECK_EQUAL(wire_channel_init(&channel, ends[0], &err), 0);
    channel.version = 1;
    while (!wire_channel_is_waiting(&channel))
        CHECK_EQUAL(wire_channel_send(&channel, &create, &fd, 1, &err), 0);
    before = count_descriptors();
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t) ends[1] + 1;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQUAL(wire_channel_send(&channel, &create, &fd, 1, &err), -1);
    CHECK_EQUAL(err.code, ERR_UNAVAILABLE);
    CHECK_EQUAL(channel.waiting_count, 1);
    CHECK_EQUAL(count_descriptors(), before);
}

static void a_message_that_cannot_be_kept_leaves_nothing(void **state)
{
    (void) state;
    run_in_child(keep_without_descriptors, "");
}

static void a_peer_that_is_gone_is_noticed(void **state)
{
    struct pair pair;
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;

    (void) state;
    start(&pair);
    assert_ok(wire_channel_send(&pair.peer, &list, NULL, 0, &err), &err);
    (void) fill_up(&pair.ours, 1);
    wire_channel_done(&pair.peer);
    /* What was sent before is still there, unless the peer left something unread. */
    assert_int_equal(wire_channel_send(&pair.ours, &list, NULL, 0, &err), 0);
    assert_int_equal(wire_channel_flush(&pair.ours, &err), -1);
    assert_int_equal(err.code, ERR_GONE);
    while (wire_channel_receive(&pair.ours, &incoming, &err) > 0)
        wire_incoming_done(&incoming);
    assert_int_equal(err.code, ERR_GONE);
    wire_channel_done(&pair.ours);
    assert_int_equal(count_descriptors(), pair.before);
}

static void what_is_no_socket_is_refused(void **state)
{
    struct wire_channel channel;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(wire_channel_init(&channel, -1, &err), -1);
    assert_int_equal(channel.fd, -EBADF);
    wire_channel_done(&channel);
}

static void nothing_blocks(void **state)
{
    struct pair pair;

    (void) state;
    start(&pair);
    assert_true(fcntl(pair.ours.fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(pair.peer.fd, F_GETFL) & O_NONBLOCK);
    finish(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_and_descriptors_arrive),
        cmocka_unit_test(taken_descriptors_stay_open),
        cmocka_unit_test(a_wrong_number_of_descriptors_is_not_sent),
        cmocka_unit_test(a_wrong_number_of_descriptors_is_refused_and_closed),
        cmocka_unit_test(bytes_that_are_no_message_are_refused_with_their_descriptors),
        cmocka_unit_test(announced_descriptors_must_come),
        cmocka_unit_test(a_full_table_loses_the_message_and_nothing_else),
        cmocka_unit_test(what_does_not_fit_waits_in_order),
        cmocka_unit_test(what_waits_has_a_limit_and_is_closed_at_the_end),
        cmocka_unit_test(a_message_that_cannot_be_kept_leaves_nothing),
        cmocka_unit_test(a_peer_that_is_gone_is_noticed),
        cmocka_unit_test(what_is_no_socket_is_refused),
        cmocka_unit_test(nothing_blocks),
    };

    return cmocka_run_group_tests_name("wire_channel", tests, NULL, NULL);
}
