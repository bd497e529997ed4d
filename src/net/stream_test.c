#include <signal.h>

#include "net/net_testing.h"
#include "net/stream.h"
#include "net/tls.h"
#include "sys/network/sys_socket.h"

#define HOST "stream.test"

static const char *const files[] = {"certificate.pem", "key.pem"};

struct bench {
    struct loop loop;
    struct testing_folder folder;
    struct tls_context *server;
    struct tls_context *client;
};

static int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));
    AUTO(free) char *certificate = NULL, *key = NULL;

    testing_folder_make(&bench->folder);
    certificate = testing_path(&bench->folder, files[0]);
    key = testing_path(&bench->folder, files[1]);
    testing_certificate(certificate, key, HOST);
    bench->server = tls_context_server(certificate, key, NULL);
    bench->client = tls_context_client(certificate, NULL);
    assert_true(bench->server && bench->client);
    *state = bench;
    return loop_init(&bench->loop, NULL);
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    loop_done(&bench->loop);
    tls_context_free(bench->server);
    tls_context_free(bench->client);
    testing_folder_remove(&bench->folder, files, ARRAY_COUNT(files));
    test_free(bench);
    return 0;
}

/* One end: sends a known series, checks what it gets against the same, counts events. */
struct end {
    struct stream stream;
    uint64_t sent;
    uint64_t got;
    int opened, ended, drained, shut, failed, closed;
    int error;
    bool dawdle;                            /* pause now and then */
    void (*on_some)(struct end *end);       /* optional: in on_data, before anything else */
    void (*on_some_drain)(struct end *end); /* optional */
    uint64_t numbers;
};

static struct end *end_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct end, stream);
}

static void end_closed(struct stream *stream)
{
    end_of(stream)->closed++;
}

static void end_opened(struct stream *stream)
{
    end_of(stream)->opened++;
}

static void end_data(struct stream *stream, const char *bytes, size_t length)
{
    struct end *end = end_of(stream);

    assert_int_equal(end->closed + end->failed + end->ended, 0);
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != testing_byte(end->got + i))
            fail_msg("byte %llu is wrong", (unsigned long long) (end->got + i));
    }
    end->got += length;
    if (end->on_some)
        end->on_some(end);
    else if (end->dawdle && testing_number(&end->numbers) % 4 == 0)
        stream_pause(stream);
}

static void end_ended(struct stream *stream)
{
    end_of(stream)->ended++;
}

static void end_drained(struct stream *stream)
{
    struct end *end = end_of(stream);

    end->drained++;
    if (end->on_some_drain)
        end->on_some_drain(end);
}

static void end_shut(struct stream *stream)
{
    end_of(stream)->shut++;
}

static void end_failed(struct stream *stream, int error)
{
    struct end *end = end_of(stream);

    end->failed++;
    end->error = error;
}

static const struct stream_events end_events = {
    .on_open = end_opened,
    .on_data = end_data,
    .on_end = end_ended,
    .on_drain = end_drained,
    .on_shut = end_shut,
    .on_failure = end_failed,
};

static void end_start(struct end *end, struct bench *bench, int fd, struct tls *tls,
                      bool connecting)
{
    *end = (struct end){.numbers = 7};
    assert_int_equal(stream_init(&end->stream, &bench->loop, fd, tls, connecting, &end_events), 0);
}

static void pair_start(struct end ends[2], struct bench *bench, bool small, bool tls)
{
    int fds[2];

    testing_pair(fds, small);
    end_start(&ends[0], bench, fds[0], tls ? tls_accept(bench->server) : NULL, false);
    end_start(&ends[1], bench, fds[1], tls ? tls_connect(bench->client, HOST) : NULL, false);
}

static void end_write(struct end *end, size_t length)
{
    AUTO(free) char *bytes = mem_alloc(length + 1);

    testing_fill(bytes, length, end->sent);
    end->sent += length;
    stream_write(&end->stream, bytes, length);
}

static void end_close(struct end *end, struct bench *bench)
{
    stream_close(&end->stream, end_closed);
    stream_close(&end->stream, end_closed); /* once is enough */
    TURN_UNTIL(&bench->loop, end->closed);
    assert_int_equal(end->closed, 1);
}

static void pair_close(struct end ends[2], struct bench *bench)
{
    end_close(&ends[0], bench);
    end_close(&ends[1], bench);
}

/* --- bytes ---------------------------------------------------------------------------------- */

#define SERIES ((uint64_t) 400 * 1000)

static void write_some(struct end *end)
{
    static const size_t sizes[] = {1, 10, 300, 5000, 9000, 20000, 70000};
    size_t size = sizes[testing_number(&end->numbers) % ARRAY_COUNT(sizes)];

    if (end->sent >= SERIES || stream_is_full(&end->stream))
        return;
    size = SERIES - end->sent < size ? (size_t) (SERIES - end->sent) : size;
    end_write(end, size);
    if (end->sent == SERIES)
        stream_shut_write(&end->stream);
}

/* Both ends write in random pieces, and pause and resume at random. */
static void move_both_ways(struct bench *bench, bool tls, uint64_t seed)
{
    struct end ends[2];
    int turns = 0;

    pair_start(ends, bench, true, tls);
    for (int i = 0; i < 2; i++) {
        ends[i].dawdle = true;
        ends[i].numbers = seed + (uint64_t) i;
    }
    while (!ends[0].ended || !ends[1].ended) {
        assert_true(++turns < 100000);
        for (int i = 0; i < 2; i++) {
            if (testing_number(&ends[i].numbers) % 2)
                write_some(&ends[i]);
            if (testing_number(&ends[i].numbers) % 3 == 0)
                stream_resume(&ends[i].stream);
            if (ends[i].failed)
                fail_msg("end %d failed with %s", i, strerrorname_np(-ends[i].error));
        }
        (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i].got, SERIES);
        assert_int_equal(ends[i].shut, 1);
        assert_int_equal(ends[i].opened, tls);
        assert_int_equal(ends[i].stream.bytes_received, SERIES);
        assert_int_equal(ends[i].stream.bytes_sent, SERIES);
    }
    pair_close(ends, bench);
}

static void plain_streams_move_every_byte_both_ways(void **state)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        move_both_ways(*state, false, seed * 100);
}

static void tls_streams_move_every_byte_both_ways(void **state)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        move_both_ways(*state, true, seed * 100);
}

/* The kernel took exactly what there was: the next large write meets EAGAIN on an empty queue. */
static void a_write_that_meets_a_full_socket_goes_on_later(void **state)
{
    struct bench *bench = *state;
    char byte = testing_byte(0);
    struct end ends[2];

    pair_start(ends, bench, true, false);
    stream_pause(&ends[1].stream);
    while (write(ends[0].stream.fd, &byte, 1) == 1)
        byte = testing_byte(++ends[0].sent);
    assert_int_equal(errno, EAGAIN);
    end_write(&ends[0], 20000);
    (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(stream_queued(&ends[0].stream), 20000);
    stream_resume(&ends[1].stream);
    TURN_UNTIL(&bench->loop, ends[1].got == ends[0].sent);
    pair_close(ends, bench);
}

static void several_parts_leave_in_order(void **state)
{
    struct bench *bench = *state;
    char bytes[40000];
    struct iovec parts[40];
    struct end ends[2];

    testing_fill(bytes, sizeof(bytes), 0);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        parts[i] = (struct iovec){.iov_base = bytes + i * 1000, .iov_len = 1000};
    pair_start(ends, bench, false, false);
    stream_write_parts(&ends[0].stream, parts, 3);      /* small: queued */
    stream_write_parts(&ends[0].stream, parts + 3, 12); /* large, but behind a queue */
    (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
    stream_write_parts(&ends[0].stream, parts + 15, 25); /* large: goes out at once */
    assert_int_equal(stream_queued(&ends[0].stream), 0);
    TURN_UNTIL(&bench->loop, ends[1].got == sizeof(bytes));
    pair_close(ends, bench);
    pair_start(ends, bench, false, false);
    stream_write_parts(&ends[0].stream, parts, 40); /* more parts than one call takes */
    TURN_UNTIL(&bench->loop, ends[1].got == sizeof(bytes));
    pair_close(ends, bench);
}

/* --- back-pressure -------------------------------------------------------------------------- */

static void a_slow_reader_fills_the_writer_up_and_drains_it(void **state)
{
    struct bench *bench = *state;

    for (int tls = 0; tls < 2; tls++) {
        struct end ends[2];

        pair_start(ends, bench, true, tls);
        stream_pause(&ends[1].stream);
        while (!stream_is_full(&ends[0].stream)) {
            end_write(&ends[0], 30000);
            (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
        }
        assert_in_range(stream_queued(&ends[0].stream), STREAM_HIGH_WATER,
                        STREAM_HIGH_WATER + 30000);
        for (int i = 0; i < 5; i++)
            (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
        assert_int_equal(ends[0].drained, 0);
        assert_int_equal(ends[1].got, 0);
        stream_resume(&ends[1].stream);
        TURN_UNTIL(&bench->loop, ends[0].drained);
        assert_true(stream_queued(&ends[0].stream) <= STREAM_LOW_WATER);
        assert_false(stream_is_full(&ends[0].stream));
        TURN_UNTIL(&bench->loop, ends[1].got == ends[0].sent);
        assert_int_equal(ends[0].drained, 1);
        pair_close(ends, bench);
    }
}

static void a_producer_that_never_stops_fails(void **state)
{
    struct bench *bench = *state;
    AUTO(free) char *bytes = mem_alloc(1024 * 1024);
    struct end ends[2];

    pair_start(ends, bench, true, false);
    stream_pause(&ends[1].stream);
    for (int i = 0; i < 80; i++)
        stream_write(&ends[0].stream, bytes, 1024 * 1024);
    assert_int_equal(ends[0].failed, 0); /* never from inside the call */
    assert_true(stream_queued(&ends[0].stream) <= STREAM_QUEUE_MAX);
    TURN_UNTIL(&bench->loop, ends[0].failed);
    assert_int_equal(ends[0].error, -ENOBUFS);
    stream_write(&ends[0].stream, "x", 1); /* nothing happens */
    pair_close(ends, bench);
    assert_int_equal(ends[0].failed, 1);
}

/* --- ends ----------------------------------------------------------------------------------- */

static void one_end_may_close_its_half(void **state)
{
    struct bench *bench = *state;

    for (int tls = 0; tls < 2; tls++) {
        struct end ends[2];

        pair_start(ends, bench, true, tls);
        end_write(&ends[0], 50000);
        stream_shut_write(&ends[0].stream);
        end_write(&ends[0], 10); /* too late: dropped */
        ends[0].sent -= 10;
        TURN_UNTIL(&bench->loop, ends[1].ended);
        assert_int_equal(ends[1].got, 50000);
        assert_int_equal(ends[0].shut, 1);
        end_write(&ends[1], 60000); /* the other half still works */
        stream_shut_write(&ends[1].stream);
        TURN_UNTIL(&bench->loop, ends[0].ended);
        assert_int_equal(ends[0].got, 60000);
        assert_int_equal(ends[0].failed + ends[1].failed, 0);
        pair_close(ends, bench);
    }
}

static void tcp_pair(int fds[2])
{
    struct sys_address address;
    int listener;

    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    listener = sys_socket_listen(&address, 1, 0);
    assert_true(listener >= 0);
    assert_int_equal(sys_socket_local_address(listener, &address), 0);
    fds[0] = sys_socket_create(&address);
    (void) sys_socket_connect(fds[0], &address);
    do
        fds[1] = sys_socket_accept(listener, NULL);
    while (fds[1] == -EAGAIN);
    assert_true(fds[1] >= 0);
    (void) close(listener);
}

static void a_reset_is_a_failure(void **state)
{
    struct bench *bench = *state;
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    struct end end;
    int fds[2];

    tcp_pair(fds);
    end_start(&end, bench, fds[0], NULL, false);
    testing_turn(&bench->loop);
    assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    (void) close(fds[1]);
    TURN_UNTIL(&bench->loop, end.failed);
    assert_int_equal(end.error, -ECONNRESET);
    assert_int_equal(end.ended, 0);
    end_close(&end, bench);
    assert_int_equal(end.failed, 1);
}

static void writing_to_nobody_is_a_failure(void **state)
{
    struct bench *bench = *state;

    for (int large = 0; large < 2; large++) {
        struct end end;
        int fds[2];

        testing_pair(fds, false);
        end_start(&end, bench, fds[0], NULL, false);
        stream_pause(&end.stream);
        (void) close(fds[1]);
        end_write(&end, large ? 100000 : 10);
        assert_int_equal(end.failed, 0); /* never from inside the call */
        TURN_UNTIL(&bench->loop, end.failed);
        assert_int_equal(end.error, -EPIPE);
        end_close(&end, bench);
    }
}

/* --- closing in the middle ------------------------------------------------------------------ */

static void close_now(struct end *end)
{
    stream_close(&end->stream, end_closed);
}

static void a_stream_may_be_closed_from_its_events(void **state)
{
    struct bench *bench = *state;

    for (int tls = 0; tls < 2; tls++) {
        struct end ends[2];

        pair_start(ends, bench, true, tls);
        ends[1].on_some = close_now;
        end_write(&ends[0], 300000);
        TURN_UNTIL(&bench->loop, ends[1].closed);
        assert_true(ends[1].got > 0);
        end_close(&ends[0], bench);

        pair_start(ends, bench, true, tls);
        ends[0].on_some_drain = close_now;
        while (!stream_is_full(&ends[0].stream))
            end_write(&ends[0], 30000);
        TURN_UNTIL(&bench->loop, ends[0].closed);
        assert_int_equal(ends[0].drained, 1);
        end_close(&ends[1], bench);
    }
}

static void nothing_comes_after_close(void **state)
{
    struct bench *bench = *state;
    struct end ends[2];

    pair_start(ends, bench, false, false);
    stream_pause(&ends[1].stream);
    end_write(&ends[0], 10);
    TURN_UNTIL(&bench->loop, ends[0].stream.bytes_sent == 10);
    stream_close(&ends[1].stream, end_closed); /* the bytes are there, but not wanted any more */
    end_write(&ends[1], 10);
    stream_shut_write(&ends[1].stream);
    stream_resume(&ends[1].stream);
    TURN_UNTIL(&bench->loop, ends[1].closed);
    assert_int_equal(ends[1].got, 0);
    assert_int_equal(ends[1].shut, 0);
    end_close(&ends[0], bench);
}

/* --- connecting ----------------------------------------------------------------------------- */

static void bytes_written_before_the_connection_wait_for_it(void **state)
{
    struct bench *bench = *state;
    struct sys_address address;
    struct end client, server;
    int listener, fd, accepted;

    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    listener = sys_socket_listen(&address, 1, 0);
    assert_int_equal(sys_socket_local_address(listener, &address), 0);
    fd = sys_socket_create(&address);
    (void) sys_socket_connect(fd, &address);
    end_start(&client, bench, fd, NULL, true);
    end_write(&client, 20000);
    stream_shut_write(&client.stream);
    assert_int_equal(stream_queued(&client.stream), 20000);
    TURN_UNTIL(&bench->loop, client.opened);
    accepted = sys_socket_accept(listener, NULL);
    assert_true(accepted >= 0);
    end_start(&server, bench, accepted, NULL, false);
    TURN_UNTIL(&bench->loop, server.ended);
    assert_int_equal(server.got, 20000);
    assert_int_equal(client.opened, 1);
    end_close(&client, bench);
    end_close(&server, bench);
    (void) close(listener);
}

static void a_refused_connection_is_a_failure(void **state)
{
    struct bench *bench = *state;
    struct sys_address address;
    struct end client;
    int listener, fd;

    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    listener = sys_socket_listen(&address, 1, 0);
    assert_int_equal(sys_socket_local_address(listener, &address), 0);
    (void) close(listener);
    fd = sys_socket_create(&address);
    assert_int_equal(sys_socket_connect(fd, &address), -EINPROGRESS);
    end_start(&client, bench, fd, NULL, true);
    end_write(&client, 100);
    TURN_UNTIL(&bench->loop, client.failed);
    assert_int_equal(client.error, -ECONNREFUSED);
    assert_int_equal(client.opened, 0);
    end_close(&client, bench);
}

static void garbage_instead_of_tls_is_a_failure(void **state)
{
    struct bench *bench = *state;
    struct end server;
    int fds[2];

    testing_pair(fds, false);
    end_start(&server, bench, fds[0], tls_accept(bench->server), false);
    assert_int_equal(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    TURN_UNTIL(&bench->loop, server.failed);
    assert_int_equal(server.error, -EPROTO);
    assert_int_equal(server.opened, 0);
    end_close(&server, bench);
    (void) close(fds[1]);
}

static void a_tls_peer_that_vanishes_is_a_failure(void **state)
{
    struct bench *bench = *state;
    struct end ends[2];

    pair_start(ends, bench, false, true);
    TURN_UNTIL(&bench->loop, ends[0].opened && ends[1].opened);
    end_close(&ends[1], bench); /* no close-notify: the end may be forged */
    TURN_UNTIL(&bench->loop, ends[0].failed || ends[0].ended);
    assert_int_equal(ends[0].ended, 0);
    assert_int_equal(ends[0].failed, 1);
    end_close(&ends[0], bench);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(plain_streams_move_every_byte_both_ways),
        STREAM_TEST(tls_streams_move_every_byte_both_ways),
        STREAM_TEST(a_write_that_meets_a_full_socket_goes_on_later),
        STREAM_TEST(several_parts_leave_in_order),
        STREAM_TEST(a_slow_reader_fills_the_writer_up_and_drains_it),
        STREAM_TEST(a_producer_that_never_stops_fails),
        STREAM_TEST(one_end_may_close_its_half),
        STREAM_TEST(a_reset_is_a_failure),
        STREAM_TEST(writing_to_nobody_is_a_failure),
        STREAM_TEST(a_stream_may_be_closed_from_its_events),
        STREAM_TEST(nothing_comes_after_close),
        STREAM_TEST(bytes_written_before_the_connection_wait_for_it),
        STREAM_TEST(a_refused_connection_is_a_failure),
        STREAM_TEST(garbage_instead_of_tls_is_a_failure),
        STREAM_TEST(a_tls_peer_that_vanishes_is_a_failure),
    };

    (void) signal(SIGPIPE, SIG_IGN); /* as every program of ours: OpenSSL writes with write(2) */
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
