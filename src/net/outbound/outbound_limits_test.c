/* What must not work: forbidden addresses, peers that are too slow, too big, malformed or not who
 * they say, and calls that make no sense. */
#include "net/outbound/outbound_test_kit.h"

#define RAW(name, text)                                                                            \
    {                                                                                              \
        .path = (name), .raw = (text), .raw_length = sizeof(text) - 1                              \
    }

static bool serve_hello(struct kit_exchange *exchange)
{
    return kit_reply(exchange, "", "hello", 5);
}

/* Until the client goes away. */
static bool stall(struct kit_exchange *exchange)
{
    char c;

    (void) kit_read(exchange, &c, 1);
    return false;
}

static bool serve_half(struct kit_exchange *exchange)
{
    (void) kit_say(exchange, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    return stall(exchange);
}

static bool serve_many_headers(struct kit_exchange *exchange)
{
    (void) kit_say(exchange, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < OUTBOUND_HEADERS_MAX; i++)
        (void) kit_say(exchange, "A: b\r\n");
    return kit_say(exchange, "Content-Length: 0\r\n\r\n");
}

static bool serve_endless_headers(struct kit_exchange *exchange)
{
    (void) kit_say(exchange, "HTTP/1.1 200 OK\r\n");
    while (kit_say(exchange, "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"))
        ;
    return false;
}

static bool serve_endless_interim(struct kit_exchange *exchange)
{
    while (kit_say(exchange, "HTTP/1.1 102 Processing\r\n\r\n"))
        ;
    return false;
}

static bool serve_endless_body(struct kit_exchange *exchange)
{
    (void) kit_say(exchange, "HTTP/1.1 200 OK\r\n\r\n");
    while (kit_say(exchange, "0123456789abcdef"))
        ;
    return false;
}

static bool serve_downgrade(struct kit_exchange *exchange)
{
    return kit_say(exchange, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                             "Content-Length: 0\r\n\r\n");
}

static const struct kit_route routes[] = {
    {.path = "/hello", .serve = serve_hello},
    {.path = "/stall", .serve = stall},
    {.path = "/half", .serve = serve_half},
    {.path = "/many-headers", .serve = serve_many_headers},
    {.path = "/endless-headers", .serve = serve_endless_headers},
    {.path = "/endless-interim", .serve = serve_endless_interim},
    {.path = "/endless-body", .serve = serve_endless_body},
    {.path = "/downgrade", .serve = serve_downgrade},
    RAW("/announced", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"),
    RAW("/nothing", ""),
    RAW("/garbage", "SSH-2.0-OpenSSH_9.2\r\n"),
    RAW("/version", "HTTP/7.5 200 OK\r\n\r\n"),
    RAW("/no-colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"),
    RAW("/blank-name", "HTTP/1.1 200 OK\r\nX Y: z\r\n\r\n"),
    RAW("/space-colon", "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx"),
    RAW("/folded", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 0\r\n\r\n"),
    RAW("/nul", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n"),
    RAW("/bare-cr", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"),
    RAW("/two-lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
    RAW("/odd-length", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx"),
    RAW("/cut-head", "HTTP/1.1 200 OK\r\nContent-Le"),
    RAW("/cut-body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
    RAW("/bad-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    RAW("/cut-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"),
    RAW("/switched", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nraw"),
    {.path = NULL},
};

static int set_up(void **state)
{
    *state = kit_new(routes);
    return 0;
}

static void forbidden_addresses_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *url;
        const char *reason;
    } rows[] = {
        {"http://127.0.0.1:%u/", "GET http://127.0.0.1:%u: 127.0.0.1 is loopback"},
        {"http://[::1]:%u/", "GET http://[::1]:%u: ::1 is loopback"},
        {"http://localhost:%u/", "is loopback"},
        {"http://foo.localhost:%u/", "is loopback"},
        {"http://0.0.0.0:%u/", "reaches this machine"},
        {"http://[::ffff:127.0.0.1]:%u/", "IPv4-mapped"},
        {"http://169.254.169.254:%u/latest/meta-data", "link-local (cloud metadata)"},
        {"https://10.0.0.1:%u/", "GET https://10.0.0.1:%u: 10.0.0.1 is private"},
    };
    struct kit *kit = *state;
    struct outbound *usual = kit->outbound;
    unsigned int port = kit->server->port;

    kit->outbound = kit_client(kit, (struct outbound_settings){.ca_file = NULL}, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;
        AUTO(text) struct text url = TEXT_INIT(256);
        AUTO(text) struct text reason = TEXT_INIT(256);

        for (const char *at = rows[i].url; *at; at++) {
            if (*at == '%')
                text_format(&url, "%u", port), at++;
            else
                text_append_char(&url, *at);
        }
        for (const char *at = rows[i].reason; *at; at++) {
            if (*at == '%')
                text_format(&reason, "%u", port), at++;
            else
                text_append_char(&reason, *at);
        }
        probe_run(kit, &probe, (struct outbound_call){.url = text_string(&url)});
        assert_failed(&probe, ERR_FORBIDDEN, text_string(&reason));
    }
    assert_int_equal(atomic_load(&kit->server->connection_count), 0);
    outbound_close(kit->outbound, NULL, NULL);
    kit->outbound = usual;
}

static void the_environment_names_no_proxy(void **state)
{
    struct probe probe = PROBE_INIT;

    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
    probe_run(*state, &probe, (struct outbound_call){.url = "/hello"});
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(unsetenv("ALL_PROXY"), 0);
    assert_done(&probe, 200);
    text_done(&probe.body);
}

static void a_closed_port_is_told_with_the_errno(void **state)
{
    struct probe probe = PROBE_INIT;

    probe_run(*state, &probe, (struct outbound_call){.url = "http://127.0.0.1:1/"});
    assert_failed(&probe, ERR_UPSTREAM, "cannot connect: Connection refused");
    assert_int_equal(probe.err.system, ECONNREFUSED);
}

static void sizes_are_capped(void **state)
{
    static const struct {
        const char *url;
        struct outbound_limits limits;
        const char *reason;
        unsigned int heads;
    } rows[] = {
        {"/endless-headers", {.head_max = 1000}, "head is over the limit", 0},
        {"/endless-headers", {.head_max = OUTBOUND_NO_LIMIT}, "too many headers", 0},
        {"/endless-interim", {.head_max = 5000}, "head is over the limit", 0},
        {"/many-headers", {.head_max = 0}, "too many headers", 0},
        {"/endless-body", {.body_max = 1000}, "body is over the limit", 1},
        {"/announced", {.body_max = 1000}, "body is over the limit", 0},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;

        probe_run(*state, &probe,
                  (struct outbound_call){.url = rows[i].url, .limits = rows[i].limits});
        assert_failed(&probe, ERR_UPSTREAM, rows[i].reason);
        assert_int_equal(probe.err.system, EMSGSIZE);
        assert_int_equal(probe.heads, rows[i].heads);
        assert_true(probe.received <= 1000);
        text_done(&probe.body);
    }
}

static void malformed_responses_are_refused(void **state)
{
    static const struct {
        const char *url;
        const char *reason;
    } rows[] = {
        {"/nothing", "without an answer"},
        {"/garbage", "not HTTP"},
        {"/version", "not HTTP"},
        {"/no-colon", "not valid HTTP"},
        {"/blank-name", "malformed header"},
        {"/space-colon", "malformed header"},
        {"/folded", "malformed header"},
        {"/nul", "not valid HTTP"},
        {"/bare-cr", "malformed header"},
        {"/two-lengths", "length is malformed"},
        {"/odd-length", "length is malformed"},
        {"/cut-head", "ended too early"},
        {"/cut-body", "ended too early"},
        {"/bad-chunk", ""},
        {"/cut-chunk", "ended too early"},
        {"/switched", "unasked"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;

        probe_run(*state, &probe, (struct outbound_call){.url = rows[i].url});
        if (probe.err.code == ERR_NONE)
            fail_msg("%s was taken", rows[i].url);
        assert_failed(&probe, ERR_UPSTREAM, rows[i].reason);
        text_done(&probe.body);
    }
}

static void slow_peers_are_given_up(void **state)
{
    static const struct {
        const char *url;
        struct outbound_limits limits;
        const char *reason;
        unsigned int heads;
    } rows[] = {
        {"/stall", {.total_ms = 100}, "not done after 100 ms", 0},
        {"/stall", {.idle_ms = 100}, "silent for 100 ms", 0},
        {"/half", {.total_ms = 500}, "not done after 500 ms", 1},
        {"/half", {.idle_ms = 400}, "silent for 400 ms", 1},
        {"/endless-body",
         {.total_ms = 500, .idle_ms = 400, .body_max = OUTBOUND_NO_LIMIT},
         "not done after 500 ms",
         1},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;

        probe_run(*state, &probe,
                  (struct outbound_call){.url = rows[i].url, .limits = rows[i].limits});
        assert_failed(&probe, ERR_UPSTREAM_TIMEOUT, rows[i].reason);
        assert_int_equal(probe.heads, rows[i].heads);
        text_done(&probe.body);
    }
}

static void waiting_in_the_queue_counts_towards_the_total(void **state)
{
    struct kit *kit = *state;
    struct outbound *usual = kit->outbound;
    struct probe first = PROBE_INIT, second = PROBE_INIT;

    kit->outbound = kit_client(kit, (struct outbound_settings){.active_max = 1}, "127.0.0.1");
    assert_int_equal(
        probe_start(kit, &first,
                    (struct outbound_call){.url = "/stall", .limits = {.total_ms = 1000}}, NULL),
        0);
    probe_run(kit, &second,
              (struct outbound_call){.url = "/hello", .limits = {.total_ms = 100, .idle_ms = 10}});
    assert_failed(&first, ERR_UPSTREAM_TIMEOUT, "1000 ms");
    assert_failed(&second, ERR_UPSTREAM_TIMEOUT, "not done after 100 ms");
    assert_int_equal(atomic_load(&kit->server->request_count), 1);
    outbound_close(kit->outbound, NULL, NULL);
    kit->outbound = usual;
}

static void resume_late(uv_timer_t *timer)
{
    struct probe *probe = timer->data;

    outbound_resume(probe->request);
}

static void our_own_pause_is_not_the_peers_silence(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;

    kit_call_later(kit, 3000, resume_late, &probe);
    probe.pause_at_head = true;
    probe_run(kit, &probe, (struct outbound_call){.url = "/hello", .limits = {.idle_ms = 1000}});
    assert_done(&probe, 200);
    assert_string_equal(text_string(&probe.body), "hello");
    text_done(&probe.body);
}

/* A listener whose queue is full answers no SYN. */
static void connecting_has_its_own_limit(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fillers[8];
    socklen_t length = sizeof(address);
    struct probe probe = PROBE_INIT;
    char url[64];

    assert_int_equal(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
    for (size_t i = 0; i < ARRAY_COUNT(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void) connect(fillers[i], (struct sockaddr *) &address, sizeof(address));
    }
    (void) snprintf(url, sizeof(url), "http://127.0.0.1:%u/",
                    (unsigned int) ntohs(address.sin_port));
    probe_run(*state, &probe, (struct outbound_call){.url = url, .limits = {.connect_ms = 150}});
    assert_failed(&probe, ERR_UPSTREAM_TIMEOUT, "no connection in time");
    for (size_t i = 0; i < ARRAY_COUNT(fillers); i++)
        (void) close(fillers[i]);
    (void) close(listener);
}

static void calls_that_make_no_sense_are_refused(void **state)
{
    static const struct outbound_header split = {"X", "a\r\nHost: b"}, unnamed = {"", "x"};
    static const struct outbound_header spaced = {"X Y", "x"}, host = {"hOST", "x"};
    static const struct outbound_header length = {"Content-Length", "1"};
    static const struct {
        struct outbound_call call;
        enum err_code code;
        const char *reason;
    } rows[] = {
        {{.url = "ftp://a/"}, ERR_INVALID, "begin with"},
        {{.url = "unix:/run/x"}, ERR_INVALID, "http or https"},
        {{.url = "ws://a/"}, ERR_INVALID, "http or https"},
        {{.url = "http://user:geheim@a/"}, ERR_INVALID, "user name"},
        {{.url = "http://2130706433/"}, ERR_INVALID, "IPv4"},
        {{.url = "/hello", .method = "G T"}, ERR_INVALID, "method"},
        {{.url = "/hello", .method = ""}, ERR_INVALID, "method"},
        {{.url = "/hello", .method = "CONNECT"}, ERR_INVALID, "CONNECT"},
        {{.url = "/hello", .headers = &split, .header_count = 1}, ERR_INVALID, "control"},
        {{.url = "/hello", .headers = &unnamed, .header_count = 1}, ERR_INVALID, "name"},
        {{.url = "/hello", .headers = &spaced, .header_count = 1}, ERR_INVALID, "name"},
        {{.url = "/hello", .headers = &host, .header_count = 1}, ERR_INVALID, "host is set"},
        {{.url = "/hello", .headers = &length, .header_count = 1}, ERR_INVALID, "itself"},
        {{.url = "/hello", .headers = &split, .header_count = 257}, ERR_INVALID, "256"},
        {{.url = "/hello", .method = "HEAD", .body = "x", .body_length = 1}, ERR_INVALID, "HEAD"},
        {{.url = "/hello", .body_streamed = true, .body = "x"}, ERR_INVALID, "streamed"},
        {{.url = "/hello", .body = "", .body_length = OUTBOUND_SENT_BODY_MAX + 1},
         ERR_TOO_LARGE,
         "stream it"},
        {{.url = "/hello", .unix_socket = "relative"}, ERR_INVALID, "begin with '/'"},
        {{.url = "/hello", .unix_socket = "/x"}, ERR_FORBIDDEN, "unix"},
    };
    struct kit *kit = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = ERROR_INIT;
        struct probe probe = PROBE_INIT;

        assert_int_equal(probe_start(kit, &probe, rows[i].call, &err), -1);
        if (err.code != rows[i].code || !strstr(err.message, rows[i].reason))
            fail_msg("row %zu: %s", i, err.message);
        assert_null(strstr(err.message, "geheim"));
    }
    loop_run(&kit->loop);
    assert_int_equal(atomic_load(&kit->server->request_count), 0);
}

static void secrets_stay_out_of_error_texts(void **state)
{
    static const struct outbound_header headers[] = {{"Authorization", "Bearer geheim"}};
    static const char *const urls[] = {"/nul?token=geheim", "http://127.0.0.1:1/geheim",
                                       "http://10.1.1.1/geheim?geheim", "/cut-body?geheim"};

    for (size_t i = 0; i < ARRAY_COUNT(urls); i++) {
        struct probe probe = PROBE_INIT;

        probe_run(*state, &probe,
                  (struct outbound_call){.url = urls[i], .headers = headers, .header_count = 1});
        assert_int_not_equal(probe.err.code, ERR_NONE);
        assert_null(strstr(probe.err.message, "geheim"));
        text_done(&probe.body);
    }
}

struct tls_peer {
    char folder[32];
    char ca[64];
    struct kit_server *server;
    struct outbound *usual;
    struct kit *kit;
};

static void tls_begin(struct tls_peer *peer, struct kit *kit, bool trusted)
{
    *peer = (struct tls_peer){.folder = "/tmp/outbound-test-XXXXXX", .kit = kit};
    assert_non_null(mkdtemp(peer->folder));
    (void) snprintf(peer->ca, sizeof(peer->ca), "%s/ca.pem", peer->folder);
    peer->server = kit_server_start(routes, NULL, kit_tls_new(peer->ca));
    peer->usual = kit->outbound;
    kit->outbound = kit_client(
        kit, (struct outbound_settings){.ca_file = trusted ? peer->ca : NULL}, "127.0.0.0/8");
}

static void tls_end(struct tls_peer *peer)
{
    outbound_close(peer->kit->outbound, NULL, NULL);
    peer->kit->outbound = peer->usual;
    loop_run(&peer->kit->loop);
    kit_server_stop(peer->server);
    assert_int_equal(unlink(peer->ca), 0);
    assert_int_equal(rmdir(peer->folder), 0);
}

static void tls_get(struct tls_peer *peer, struct probe *probe, const char *host, const char *path)
{
    char url[128];

    (void) snprintf(url, sizeof(url), "https://%s:%u%s", host, (unsigned int) peer->server->port,
                    path);
    probe_run(peer->kit, probe, (struct outbound_call){.url = url, .limits = {.redirects = 2}});
}

static void certificates_are_verified(void **state)
{
    struct probe unknown = PROBE_INIT, known = PROBE_INIT, other = PROBE_INIT;
    struct tls_peer peer;

    tls_begin(&peer, *state, false);
    tls_get(&peer, &unknown, "127.0.0.1", "/hello");
    assert_failed(&unknown, ERR_UPSTREAM, "not trusted: SSL certificate problem: self");
    tls_end(&peer);

    tls_begin(&peer, *state, true);
    tls_get(&peer, &known, "127.0.0.1", "/hello");
    assert_done(&known, 200);
    assert_string_equal(text_string(&known.body), "hello");
    text_done(&known.body);
    /* The same peer under a name that its certificate does not have. */
    tls_get(&peer, &other, "localhost", "/hello");
    assert_failed(&other, ERR_UPSTREAM, "not trusted");
    tls_end(&peer);
}

static void a_redirect_never_leaves_tls(void **state)
{
    struct probe probe = PROBE_INIT;
    struct tls_peer peer;

    tls_begin(&peer, *state, true);
    tls_get(&peer, &probe, "127.0.0.1", "/downgrade");
    assert_failed(&probe, ERR_FORBIDDEN, "from https to http");
    assert_int_equal(probe.heads, 0);
    tls_end(&peer);
}

static void a_plain_peer_behind_https_fails_cleanly(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;
    char url[64];

    (void) snprintf(url, sizeof(url), "https://127.0.0.1:%u/hello",
                    (unsigned int) kit->server->port);
    probe_run(kit, &probe,
              (struct outbound_call){.url = url, .limits = {.total_ms = 2000, .connect_ms = 300}});
    assert_int_equal(probe.dones, 1);
    assert_int_not_equal(probe.err.code, ERR_NONE);
}

static void a_useless_ca_file_is_told_at_start(void **state)
{
    struct kit *kit = *state;
    struct outbound_settings settings = {.ca_file = "/dev/null"};
    struct outbound *outbound;
    struct error err = ERROR_INIT;

    assert_int_equal(outbound_new(&kit->loop, &settings, &outbound, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "/dev/null"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forbidden_addresses_are_refused_with_the_reason),
        TEST(the_environment_names_no_proxy),
        TEST(a_closed_port_is_told_with_the_errno),
        TEST(sizes_are_capped),
        TEST(malformed_responses_are_refused),
        TEST(slow_peers_are_given_up),
        TEST(waiting_in_the_queue_counts_towards_the_total),
        TEST(our_own_pause_is_not_the_peers_silence),
        TEST(connecting_has_its_own_limit),
        TEST(calls_that_make_no_sense_are_refused),
        TEST(secrets_stay_out_of_error_texts),
        TEST(certificates_are_verified),
        TEST(a_redirect_never_leaves_tls),
        TEST(a_plain_peer_behind_https_fails_cleanly),
        TEST(a_useless_ca_file_is_told_at_start),
    };

    return cmocka_run_group_tests(tests, kit_begin, kit_end);
}
