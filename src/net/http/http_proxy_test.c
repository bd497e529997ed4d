#include "net/http/http_proxy.h"
#include "net/http/http_testing.h"

/* A client of raw bytes on one side, an upstream of raw bytes on the other. */
struct bench {
    struct web web; /* first: the context of requests */
    struct http_origin *origin;
    struct http_proxy_options proxy;
    int listener;
    bool closed;
};

static void pass_on(struct http_request *request)
{
    struct bench *bench = request->context;

    http_proxy(request, bench->origin, &bench->proxy);
}

static int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));
    char text[SYS_ADDRESS_TEXT_SIZE];
    struct sys_address address;

    web_init(&bench->web);
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    bench->listener = sys_socket_listen(&address, 16, 0);
    assert_true(bench->listener >= 0);
    assert_int_equal(sys_socket_local_address(bench->listener, &address), 0);
    sys_address_format(&address, text);
    bench->origin = http_origin_new(&bench->web.loop, text, NULL, NULL);
    assert_non_null(bench->origin);
    *state = bench;
    return 0;
}

static void origin_closed(struct http_origin *origin, void *data)
{
    (void) origin;
    ((struct bench *) data)->closed = true;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    http_origin_close(bench->origin, origin_closed, bench);
    TURN_UNTIL(&bench->web.loop, bench->closed);
    web_done(&bench->web);
    (void) fd_close(bench->listener);
    test_free(bench);
    return 0;
}

static struct raw client(struct bench *bench, const char *bytes)
{
    static struct http_mount nothing = {.name = "nothing"};
    struct raw raw;

    if (!bench->web.server) {
        bench->web.options.fallback = pass_on;
        bench->web.options.fallback_context = bench;
        web_serve(&bench->web, &nothing);
    }
    raw = raw_connect(bench->web.port);
    raw_send(&raw, &bench->web.loop, bytes);
    return raw;
}

static struct raw upstream(struct bench *bench)
{
    int fd = -EAGAIN;

    TURN_UNTIL(&bench->web.loop, (fd = sys_socket_accept(bench->listener, NULL)) != -EAGAIN);
    assert_true(fd >= 0);
    return raw_take(fd);
}

#define HEARD(bench, raw, text) TURN_UNTIL(&(bench)->web.loop, raw_has((raw), (text)))
#define SAY(bench, raw, text)   raw_send((raw), &(bench)->web.loop, (text))
#define HOST                    "Host: a.test\r\n"

/* --- heads ---------------------------------------------------------------------------------- */

static void request_headers_pass_in_order_but_those_of_one_hop(void **state)
{
    static const char expected[] = "GET /x?y=1 HTTP/1.1\r\n"
                                   "Host: a.test\r\n"
                                   "X-b: 1\r\n"
                                   "x-A: 2\r\n"
                                   "X-b: 3\r\n"
                                   "Cookie: c\r\n"
                                   "X-Forwarded-For: 127.0.0.1\r\n"
                                   "X-Forwarded-Proto: http\r\n"
                                   "X-Forwarded-Host: a.test\r\n"
                                   "\r\n";
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /x?y=1 HTTP/1.1\r\n" HOST "X-b: 1\r\n"
                                   "Connection: close, X-Secret\r\n"
                                   "x-A: 2\r\nX-b: 3\r\nX-Secret: s\r\nKeep-Alive: 5\r\n"
                                   "TE: trailers\r\nTrailer: x\r\nProxy-Authorization: p\r\n"
                                   "Proxy-Connection: x\r\nUpgrade: h2c\r\n"
                                   "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\n"
                                   "X-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\n"
                                   "Cookie: c\r\n\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    assert_string_equal(text_string(&peer.got), expected);
    raw_close(&raw);
    raw_close(&peer);
}

static void a_reply_gives_no_orders_to_a_server_in_front_of_us(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer,
        "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /internal/secret\r\n"
        "x-accel-expires: 9999\r\nX-ACCEL-Buffering: yes\r\n"
        "X-Sendfile: /etc/shadow\r\nX-Sendfile2: /etc/shadow 0-\r\n"
        "X-LIGHTTPD-send-file: /etc/shadow\r\nX-Reproxy-URL: http://inside/\r\n"
        "X-LiteSpeed-Location: /internal\r\nX-Accelerated: yes\r\n"
        "Content-Type: text/html\r\nContent-Length: 0\r\n\r\n");
    HEARD(bench, &raw, "\r\n\r\n");
    assert_true(raw_has(&raw, "\r\nX-Accelerated: yes\r\n"));
    assert_null(strcasestr(text_string(&raw.got), "x-accel-"));
    assert_null(strcasestr(text_string(&raw.got), "send"));
    assert_null(strcasestr(text_string(&raw.got), "internal"));
    assert_false(raw_has(&raw, "http://inside/"));
    raw_close(&raw);
    raw_close(&peer);
}

static void a_stream_of_events_is_not_held_back_in_front_of_us(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
        "X-Accel-Buffering: yes\r\nContent-Length: 0\r\n\r\n");
    HEARD(bench, &raw, "\r\n\r\n");
    assert_int_equal(raw_count(&raw, "X-Accel-Buffering: "), 1);
    assert_true(raw_has(&raw, "\r\nX-Accel-Buffering: no\r\n"));
    raw_close(&raw);
    raw_close(&peer);
}

static void who_asked_may_be_told_by_the_caller(void **state)
{
    struct bench *bench = *state;
    struct raw raw, peer;

    bench->proxy.client = "5.6.7.8";
    bench->proxy.is_secure = true;
    raw = client(bench, "GET / HTTP/1.1\r\n" HOST "X-Forwarded-For: 1.2.3.4\r\n"
                        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: real.test\r\n\r\n");
    peer = upstream(bench);
    HEARD(bench, &peer, "\r\n\r\n");
    assert_true(raw_has(&peer, "\r\nX-Forwarded-For: 5.6.7.8\r\n"));
    assert_true(raw_has(&peer, "\r\nX-Forwarded-Proto: https\r\n"));
    assert_null(strstr(text_string(&peer.got), "1.2.3.4"));
    assert_null(strstr(text_string(&peer.got), "real.test"));
    raw_close(&raw);
    raw_close(&peer);
}

static bool pass_all_but_secret(const struct http_header *header)
{
    return strcasecmp(header->name, "x-secret") != 0;
}

static void target_host_and_headers_may_be_replaced(void **state)
{
    struct bench *bench = *state;
    struct raw raw, peer;

    bench->proxy = (struct http_proxy_options){.target = "/other",
                                               .host = "b.test",
                                               .pass_request_header = pass_all_but_secret,
                                               .pass_reply_header = pass_all_but_secret};
    raw = client(bench, "GET /x HTTP/1.1\r\n" HOST "X-Secret: s\r\nX-Open: o\r\n\r\n");
    peer = upstream(bench);
    HEARD(bench, &peer, "\r\n\r\n");
    assert_true(raw_has(&peer, "GET /other HTTP/1.1\r\n") && raw_has(&peer, "Host: b.test\r\n"));
    assert_true(raw_has(&peer, "X-Open") && !raw_has(&peer, "X-Secret"));
    assert_int_equal(raw_count(&peer, "\r\nHost:"), 1);
    SAY(bench, &peer, "HTTP/1.1 200 OK\r\nx-secret: s\r\nX-Fine: f\r\nContent-Length: 0\r\n\r\n");
    HEARD(bench, &raw, "X-Fine: f\r\n");
    assert_false(raw_has(&raw, "x-secret"));
    raw_close(&raw);
    raw_close(&peer);
}

static void an_absolute_target_becomes_a_path(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET http://b.test/x?y HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    assert_true(raw_has(&peer, "GET /x?y HTTP/1.1\r\n"));
    assert_true(raw_has(&peer, "\r\nX-Forwarded-Host: b.test\r\n"));
    raw_close(&raw);
    raw_close(&peer);
}

static void replies_pass_in_order_but_what_is_of_one_hop(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);
    const char *first;

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer,
        "HTTP/1.1 207 Multi\r\nB: 1\r\nConnection: X-Hop\r\nA: 2\r\nX-Hop: h\r\nB: 3\r\n"
        "Date: then\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    HEARD(bench, &raw, "\r\n\r\n3\r\none\r\n"); /* not held back until it is complete */
    first = strstr(text_string(&raw.got), "B: 1\r\nA: 2\r\nB: 3\r\nDate: then\r\n");
    assert_non_null(first);
    assert_true(raw_has(&raw, "HTTP/1.1 207 ") && !raw_has(&raw, "X-Hop"));
    assert_int_equal(raw_count(&raw, "Date: "), 1);
    SAY(bench, &peer, "3\r\ntwo\r\n0\r\n\r\n");
    HEARD(bench, &raw, "3\r\ntwo\r\n0\r\n\r\n");
    raw_close(&raw);
    raw_close(&peer);
}

static void replies_keep_their_length_and_connections_are_kept(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /1 HTTP/1.1\r\n" HOST "\r\nHEAD /2 HTTP/1.1\r\n" HOST
                                   "\r\nGET /3 HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "GET /1 ");
    SAY(bench, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
    HEARD(bench, &peer, "HEAD /2 ");
    SAY(bench, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
    HEARD(bench, &peer, "GET /3 ");
    SAY(bench, &peer, "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n");
    HEARD(bench, &raw, "HTTP/1.1 304 ");
    assert_true(raw_has(&raw, "Content-Length: 5\r\n") && raw_has(&raw, "first"));
    assert_true(raw_has(&raw, "Content-Length: 6\r\n"));
    assert_int_equal(sys_socket_accept(bench->listener, NULL), -EAGAIN);
    raw_close(&raw);
    raw_close(&peer);
}

/* --- bodies --------------------------------------------------------------------------------- */

static void request_bodies_pass_with_their_framing(void **state)
{
    static const struct {
        const char *sent, *framing, *body;
    } rows[] = {
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "\r\nContent-Length: 5\r\n",
         "\r\n\r\nhello"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n"
         "\r\n",
         "\r\nTransfer-Encoding: chunked\r\n", "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "\r\nContent-Length: 0\r\n",
         "\r\n\r\n"},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct raw raw = client(bench, rows[i].sent);
        struct raw peer = upstream(bench);

        HEARD(bench, &peer, rows[i].body);
        assert_true(raw_has(&peer, rows[i].framing));
        assert_int_equal(
            raw_count(&peer, "\r\nContent-Length") + raw_count(&peer, "\r\nTransfer-Encoding"), 1);
        SAY(bench, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone");
        HEARD(bench, &raw, "done");
        raw_close(&raw);
        raw_close(&peer);
    }
}

static void large_bodies_pass_both_ways(void **state)
{
    enum { LENGTH = 6000000 };
    struct bench *bench = *state;
    AUTO(free) char *bytes = mem_alloc(LENGTH);
    struct raw raw = client(bench, "PUT / HTTP/1.1\r\n" HOST "Content-Length: 6000000\r\n\r\n");
    struct raw peer = upstream(bench);
    const char *body;

    testing_fill(bytes, LENGTH, 0);
    for (size_t at = 0; at < LENGTH; at += 100000) {
        raw_send_bytes(&raw, &bench->web.loop, bytes + at, 100000);
        if (at > 3000000)
            raw_read(&peer); /* slow at first */
    }
    TURN_UNTIL(&bench->web.loop, (raw_read(&peer), peer.got.length > LENGTH));
    body = memmem(peer.got.data, peer.got.length, "\r\n\r\n", 4);
    TURN_UNTIL(&bench->web.loop,
               (raw_read(&peer), peer.got.data + peer.got.length - body == LENGTH + 4));
    body = memmem(peer.got.data, peer.got.length, "\r\n\r\n", 4);
    assert_memory_equal(body + 4, bytes, LENGTH);
    SAY(bench, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 6000000\r\n\r\n");
    for (size_t at = 0; at < LENGTH; at += 100000) {
        raw_send_bytes(&peer, &bench->web.loop, bytes + at, 100000);
        if (at > 3000000)
            raw_read(&raw);
    }
    TURN_UNTIL(&bench->web.loop, (raw_read(&raw), raw.got.length > LENGTH));
    body = memmem(raw.got.data, raw.got.length, "\r\n\r\n", 4);
    assert_int_equal(raw.got.data + raw.got.length - body, LENGTH + 4);
    assert_memory_equal(body + 4, bytes, LENGTH);
    raw_close(&raw);
    raw_close(&peer);
}

/* --- trouble -------------------------------------------------------------------------------- */

static void a_failure_before_the_head_is_answered(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, "garbage\r\n\r\n");
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    raw_close(&raw);
    raw_close(&peer);
    bench->listener = fd_close(bench->listener);
    raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    raw_close(&raw);
}

static void a_failure_after_the_head_cuts_the_reply(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    HEARD(bench, &raw, "one");
    raw_close(&peer);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&raw));
    assert_false(raw_has(&raw, "0\r\n\r\n")); /* the client sees that it is incomplete */
    assert_int_equal(raw_count(&raw, "HTTP/1.1"), 1);
    raw_close(&raw);
}

static void a_failure_during_an_upload_is_answered(void **state)
{
    struct bench *bench = *state;
    AUTO(free) char *bytes = mem_alloc(1000000);
    struct raw raw = client(bench, "PUT / HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
    struct raw peer = upstream(bench);

    (void) !send(raw.fd, bytes, 100000, MSG_NOSIGNAL);
    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, "HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n");
    HEARD(bench, &raw, "HTTP/1.1 507 ");
    raw_close(&raw);
    raw_close(&peer);
    TURN_UNTIL(&bench->web.loop, http_server_connections(bench->web.server) == 0);
}

static void a_client_that_leaves_takes_the_upstream_request_with_it(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET / HTTP/1.1\r\n" HOST "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&peer));
    assert_int_equal(http_origin_connections(bench->origin), 0);
    raw_close(&peer);
}

/* --- tunnels -------------------------------------------------------------------------------- */

#define UPGRADE "Connection: Upgrade\r\nUpgrade: test\r\n"
#define SWITCH  "HTTP/1.1 101 Switching\r\n" UPGRADE "X-Extra: yes\r\n\r\n"

static void an_upgrade_becomes_a_tunnel(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /ws HTTP/1.1\r\n" HOST UPGRADE "\r\nclient early,");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    assert_true(raw_has(&peer, "\r\nUpgrade: test\r\n"));
    assert_true(raw_has(&peer, "\r\nConnection: Upgrade\r\n"));
    assert_false(raw_has(&peer, "early")); /* not before the peer agrees */
    SAY(bench, &peer, SWITCH "peer early,");
    HEARD(bench, &raw, "\r\n\r\npeer early,");
    assert_true(raw_has(&raw, "HTTP/1.1 101 ") && raw_has(&raw, "\r\nX-Extra: yes\r\n"));
    assert_true(raw_has(&raw, "\r\nUpgrade: test\r\n"));
    HEARD(bench, &peer, "\r\n\r\nclient early,");
    SAY(bench, &raw, "client late");
    SAY(bench, &peer, "peer late");
    HEARD(bench, &raw, "peer early,peer late");
    HEARD(bench, &peer, "client early,client late");
    raw_close(&raw);
    raw_close(&peer);
    TURN_UNTIL(&bench->web.loop, http_server_connections(bench->web.server) == 0);
}

static void a_refused_upgrade_is_an_ordinary_reply(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /ws HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
    HEARD(bench, &raw, "\r\n\r\nno");
    SAY(bench, &raw, "GET /next HTTP/1.1\r\n" HOST "\r\n");
    HEARD(bench, &peer, "GET /next ");
    raw_close(&raw);
    raw_close(&peer);
}

static void an_upgrade_without_a_name_is_refused(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /ws HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, "HTTP/1.1 101 Switching\r\n\r\n");
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    TURN_UNTIL(&bench->web.loop, raw_is_over(&peer));
    raw_close(&raw);
    raw_close(&peer);
}

static void a_tunnel_passes_each_end_on(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /ws HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, SWITCH);
    HEARD(bench, &raw, "\r\n\r\n");
    SAY(bench, &raw, "last of client");
    assert_int_equal(shutdown(raw.fd, SHUT_WR), 0);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&peer));
    assert_true(raw_has(&peer, "last of client"));
    SAY(bench, &peer, "still talking"); /* the other half lives on */
    HEARD(bench, &raw, "still talking");
    raw_close(&peer);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&raw));
    assert_int_equal(raw.error, 0);
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, http_server_connections(bench->web.server) == 0);
}

/* One side sends more than the other takes: it is stopped, and nothing is lost. */
static void a_tunnel_waits_for_its_slower_side(void **state)
{
    enum { LENGTH = 30000000 };
    struct bench *bench = *state;
    AUTO(free) char *bytes = mem_alloc(LENGTH);
    struct raw raw = client(bench, "GET /ws HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    struct raw peer = upstream(bench);
    size_t sent = 0;
    int idle = 0;

    testing_fill(bytes, LENGTH, 0);
    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, SWITCH);
    HEARD(bench, &raw, "\r\n\r\n");
    while (idle < 10) { /* until nothing moves any more */
        ssize_t part = send(raw.fd, bytes + sent, LENGTH - sent, MSG_NOSIGNAL);

        idle = part > 0 ? 0 : idle + 1;
        sent += part > 0 ? (size_t) part : 0;
        testing_turn(&bench->web.loop);
    }
    assert_true(sent < LENGTH);
    text_clear(&peer.got);
    while (peer.got.length < LENGTH) {
        ssize_t part = send(raw.fd, bytes + sent, LENGTH - sent, MSG_NOSIGNAL);

        sent += part > 0 ? (size_t) part : 0;
        raw_read(&peer);
        assert_false(peer.ended);
        (void) uv_run(&bench->web.loop.uv, UV_RUN_NOWAIT);
    }
    assert_memory_equal(peer.got.data, bytes, LENGTH);
    raw_close(&raw);
    raw_close(&peer);
}

static void draining_cuts_tunnels(void **state)
{
    struct bench *bench = *state;
    struct raw raw = client(bench, "GET /ws HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    struct raw peer = upstream(bench);

    HEARD(bench, &peer, "\r\n\r\n");
    SAY(bench, &peer, SWITCH);
    HEARD(bench, &raw, "\r\n\r\n");
    http_server_drain(bench->web.server, 60000, web_drained, &bench->web);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&raw) && raw_is_over(&peer));
    TURN_UNTIL(&bench->web.loop, bench->web.drained);
    raw_close(&raw);
    raw_close(&peer);
}

#define PROXY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(request_headers_pass_in_order_but_those_of_one_hop),
        PROXY_TEST(a_reply_gives_no_orders_to_a_server_in_front_of_us),
        PROXY_TEST(a_stream_of_events_is_not_held_back_in_front_of_us),
        PROXY_TEST(who_asked_may_be_told_by_the_caller),
        PROXY_TEST(target_host_and_headers_may_be_replaced),
        PROXY_TEST(an_absolute_target_becomes_a_path),
        PROXY_TEST(replies_pass_in_order_but_what_is_of_one_hop),
        PROXY_TEST(replies_keep_their_length_and_connections_are_kept),
        PROXY_TEST(request_bodies_pass_with_their_framing),
        PROXY_TEST(large_bodies_pass_both_ways),
        PROXY_TEST(a_failure_before_the_head_is_answered),
        PROXY_TEST(a_failure_after_the_head_cuts_the_reply),
        PROXY_TEST(a_failure_during_an_upload_is_answered),
        PROXY_TEST(a_client_that_leaves_takes_the_upstream_request_with_it),
        PROXY_TEST(an_upgrade_becomes_a_tunnel),
        PROXY_TEST(a_refused_upgrade_is_an_ordinary_reply),
        PROXY_TEST(an_upgrade_without_a_name_is_refused),
        PROXY_TEST(a_tunnel_passes_each_end_on),
        PROXY_TEST(a_tunnel_waits_for_its_slower_side),
        PROXY_TEST(draining_cuts_tunnels),
    };

    return cmocka_run_group_tests_name("http_proxy", tests, NULL, NULL);
}
