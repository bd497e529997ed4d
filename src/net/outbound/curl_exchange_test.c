/* What every exchange with the outside does: heads and bodies both ways, and what must not work:
 * forbidden addresses, peers that are too slow, too big, malformed or not who they say. */
#include "net/outbound/outbound_test_kit.h"

#define RAW(name, text)                                                                            \
    {                                                                                              \
        .path = (name), .raw = (text), .raw_length = sizeof(text) - 1                              \
    }

static bool serve_hello(struct kit_exchange *exchange)
{
    return kit_reply(exchange, "X-Kind:  greeting \r\nX-Empty:\r\n", "hello", 5);
}

static bool serve_echo(struct kit_exchange *exchange)
{
    if (!kit_read_body(exchange))
        return false;
    return kit_reply(exchange, "", text_string(&exchange->body), exchange->body.length);
}

/* Like echo, but the second request is not answered: its connection closes. */
static bool serve_once(struct kit_exchange *exchange)
{
    static atomic_uint requests;

    if (atomic_fetch_add(&requests, 1) % 3 != 1)
        return serve_echo(exchange);
    (void) kit_read_body(exchange);
    return false;
}

static bool serve_head(struct kit_exchange *exchange)
{
    return kit_say(exchange, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
}

/* Interim heads, chunks and a trailer. */
static bool serve_elaborate(struct kit_exchange *exchange)
{
    return kit_say(exchange, "HTTP/1.1 100 Continue\r\n\r\n"
                             "HTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\n"
                             "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n");
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

static bool serve_long_headers(struct kit_exchange *exchange)
{
    static const char blanks[8192] = {[0 ... 8190] = 'b'};

    (void) kit_say(exchange, "HTTP/1.1 200 OK\r\n");
    while (kit_say(exchange, "A: ") && kit_say(exchange, blanks) && kit_say(exchange, "\r\n"))
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

static const struct kit_route routes[] = {
    {.path = "/hello", .serve = serve_hello},
    {.path = "/echo", .serve = serve_echo},
    {.path = "/once", .serve = serve_once},
    {.path = "/head", .serve = serve_head},
    {.path = "/elaborate", .serve = serve_elaborate},
    {.path = "/stall", .serve = stall},
    {.path = "/half", .serve = serve_half},
    {.path = "/many-headers", .serve = serve_many_headers},
    {.path = "/endless-headers", .serve = serve_endless_headers},
    {.path = "/long-headers", .serve = serve_long_headers},
    {.path = "/endless-interim", .serve = serve_endless_interim},
    {.path = "/endless-body", .serve = serve_endless_body},
    RAW("/moved", "HTTP/1.1 302 Found\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n"),
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

/* --- what works ------------------------------------------------------------------------------ */

static void an_answer_has_head_and_body(void **state)
{
    struct kit *kit = *state;
    char value[64];

    (void) kit_get(kit, "/hello?a=b");
    assert_answered(kit, 200, "hello");
    assert_string_equal(outbound_answer_header(&kit->answer, "x-kind"), "greeting");
    assert_string_equal(outbound_answer_header(&kit->answer, "x-empty"), "");
    assert_null(outbound_answer_header(&kit->answer, "x-other"));
    assert_memory_equal(kit_last_head(kit->server), "GET /hello?a=b HTTP/1.1\r\n", 25);
    assert_null(kit_header(kit_last_head(kit->server), "cookie", value, sizeof(value)));
    assert_null(kit_header(kit_last_head(kit->server), "accept-encoding", value, sizeof(value)));
    (void) kit_get(kit, "/moved");
    assert_answered(kit, 302, "");
    assert_null(outbound_answer_header(&kit->answer, "x-kind")); /* nothing of the one before */
}

static void paths_are_sent_as_they_are(void **state)
{
    struct kit *kit = *state;

    (void) kit_get(kit, "/a/../b/./%2e%2E//c?x=%2f&y=[1]");
    assert_answered(kit, 404, "");
    assert_memory_equal(kit_last_head(kit->server),
                        "GET /a/../b/./%2e%2E//c?x=%2f&y=[1] HTTP/1.1\r\n", 46);
}

static void interim_heads_and_trailers_are_not_told(void **state)
{
    struct kit *kit = *state;

    (void) kit_get(kit, "/elaborate");
    assert_answered(kit, 201, "abcde");
    assert_int_equal(kit->answer.header_count, 1);
}

static void a_head_request_has_no_body_and_no_limit_of_it(void **state)
{
    struct kit *kit = *state;

    (void) kit_ask(kit, (struct outbound_request){.method = "HEAD", .url = "/head"});
    assert_answered(kit, 200, "");
    assert_string_equal(outbound_answer_header(&kit->answer, "content-length"), "99999999999");
}

static void bytes_are_sent_with_their_length_and_nothing_made_up(void **state)
{
    struct kit *kit = *state;
    const struct outbound_header headers[] = {{"X-One", "1"}, {"X-Empty", ""}};
    const struct outbound_body body = {.bytes = "some\0bytes", .length = 10};
    char value[64];

    (void) kit_ask(kit, (struct outbound_request){.method = "POST",
                                                  .url = "/echo",
                                                  .headers = headers,
                                                  .header_count = ARRAY_COUNT(headers),
                                                  .body = &body});
    assert_int_equal(kit->answer.body.length, 10);
    assert_memory_equal(kit->answer.body.data, "some\0bytes", 10);
    assert_string_equal(
        kit_header(kit_last_head(kit->server), "content-length", value, sizeof(value)), "10");
    assert_string_equal(kit_header(kit_last_head(kit->server), "x-one", value, sizeof(value)), "1");
    assert_string_equal(kit_header(kit_last_head(kit->server), "x-empty", value, sizeof(value)),
                        "");
    assert_null(kit_header(kit_last_head(kit->server), "content-type", value, sizeof(value)));
    assert_null(kit_header(kit_last_head(kit->server), "expect", value, sizeof(value)));
}

static void an_empty_body_says_so(void **state)
{
    struct kit *kit = *state;
    const struct outbound_body body = {.bytes = ""};
    char value[64];

    (void) kit_ask(kit, (struct outbound_request){.method = "POST", .url = "/echo", .body = &body});
    assert_answered(kit, 200, "");
    assert_string_equal(
        kit_header(kit_last_head(kit->server), "content-length", value, sizeof(value)), "0");
    assert_null(kit_header(kit_last_head(kit->server), "transfer-encoding", value, sizeof(value)));
}

static void other_methods_go_out_as_named(void **state)
{
    struct kit *kit = *state;

    (void) kit_ask(kit, (struct outbound_request){.method = "DELETE", .url = "/hello"});
    assert_answered(kit, 200, "hello");
    assert_memory_equal(kit_last_head(kit->server), "DELETE /hello HTTP/1.1\r\n", 24);
}

/* The part of a file, again on another connection when the one that was kept turns out dead. */
static void a_part_of_a_file_is_sent_and_sent_again(void **state)
{
    struct kit *kit = *state;
    FILE *file = tmpfile();
    const struct outbound_body body = {.fd = fileno(file), .offset = 3, .length = 4};
    const struct outbound_body longer = {.fd = fileno(file), .offset = 3, .length = 40};
    const struct outbound_request request = {.method = "PUT", .url = "/once", .body = &body};

    assert_true(fputs("123part789", file) >= 0 && fflush(file) == 0);
    (void) kit_ask(kit, request);
    assert_answered(kit, 200, "part");
    (void) kit_ask(kit, request);
    assert_answered(kit, 200, "part");
    assert_int_equal(atomic_load(&kit->server->request_count), 3);
    assert_int_equal(
        kit_ask(kit, (struct outbound_request){.method = "PUT", .url = "/echo", .body = &longer}),
        -1);
    assert_error(&kit->err, ERR_INTERNAL, "became shorter");
    (void) fclose(file);
}

static void connections_are_kept(void **state)
{
    struct kit *kit = *state;

    for (int i = 0; i < 3; i++) {
        (void) kit_get(kit, "/hello");
        assert_answered(kit, 200, "hello");
    }
    assert_int_equal(atomic_load(&kit->server->connection_count), 1);
}

/* --- callbacks ------------------------------------------------------------------------------- */

enum moment { MOMENT_NONE, MOMENT_HEAD, MOMENT_BYTES, MOMENT_PROGRESS };

struct caller {
    enum moment stop_at;
    unsigned int heads;
    size_t bytes;
};

static int caller_stop(const struct caller *caller, enum moment moment, struct error *err)
{
    return caller->stop_at == moment ? error_set(err, ERR_NO_SPACE, 0, "the caller is full") : 0;
}

static int caller_head(void *context, const struct outbound_answer *answer, struct error *err)
{
    struct caller *caller = context;

    assert_int_equal(answer->status, 200);
    caller->heads++;
    return caller_stop(caller, MOMENT_HEAD, err);
}

static int caller_bytes(void *context, const void *bytes, size_t length, struct error *err)
{
    struct caller *caller = context;

    assert_int_equal(caller->heads, 1);
    assert_memory_equal(bytes, &"hello"[caller->bytes], length);
    caller->bytes += length;
    return caller_stop(caller, MOMENT_BYTES, err);
}

static int caller_progress(void *context, uint64_t received, uint64_t sent, struct error *err)
{
    (void) received;
    assert_int_equal(sent, 0);
    return caller_stop(context, MOMENT_PROGRESS, err);
}

static struct caller caller_ask(struct kit *kit, const char *url, enum moment stop_at)
{
    struct caller caller = {.stop_at = stop_at};

    (void) kit_ask(kit, (struct outbound_request){.url = url,
                                                  .on_head = caller_head,
                                                  .on_bytes = caller_bytes,
                                                  .on_progress = caller_progress,
                                                  .context = &caller});
    return caller;
}

static void a_caller_gets_the_bytes_of_a_success_and_can_end_it(void **state)
{
    struct kit *kit = *state;
    struct caller caller = caller_ask(kit, "/hello", MOMENT_NONE);

    assert_answered(kit, 200, "");
    assert_int_equal(caller.bytes, 5);
    caller = caller_ask(kit, "/nothing-here", MOMENT_NONE);
    assert_answered(kit, 404, "");
    assert_int_equal(caller.heads, 0);
    for (enum moment moment = MOMENT_HEAD; moment <= MOMENT_PROGRESS; moment++) {
        (void) caller_ask(kit, moment == MOMENT_PROGRESS ? "/stall" : "/hello", moment);
        assert_error(&kit->err, ERR_NO_SPACE, "the caller is full");
        assert_true(kit->answer.stopped_by_caller);
        assert_false(outbound_may_retry(&kit->answer, &kit->err));
    }
}

/* --- what must not work ---------------------------------------------------------------------- */

static void put_port(const char *text, unsigned int port, struct text *out)
{
    text_clear(out);
    for (; *text; text++) {
        if (*text == '%')
            text_format(out, "%u", port), text++;
        else
            text_append_char(out, *text);
    }
}

static void forbidden_addresses_are_refused_with_the_reason(void **state)
{
    static const struct address_rules none = {.count = 0};
    static const struct {
        const char *url;
        const char *reason;
    } rows[] = {
        {"http://127.0.0.1:%u/", "127.0.0.1 is loopback"},
        {"http://[::1]:%u/", "::1 is loopback"},
        {"http://localhost:%u/", "is loopback"},
        {"http://foo.localhost:%u/", "is loopback"},
        {"http://0.0.0.0:%u/", "reaches this machine"},
        {"http://[::ffff:127.0.0.1]:%u/", "IPv4-mapped"},
        {"http://169.254.169.254:%u/latest/meta-data", "link-local (cloud metadata)"},
        {"https://10.0.0.1:%u/", "10.0.0.1 is private"},
    };
    struct kit *kit = *state;
    AUTO(text) struct text url = TEXT_INIT(256);

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        put_port(rows[i].url, kit->server->port, &url);
        assert_int_equal(
            kit_ask(kit, (struct outbound_request){.url = text_string(&url), .rules = &none}), -1);
        assert_error(&kit->err, ERR_FORBIDDEN, rows[i].reason);
    }
    assert_int_equal(atomic_load(&kit->server->connection_count), 0);
}

/* curl resolves no .onion: nobody has to be asked for a name that leads nowhere. */
static void strangers_cannot_tell_where_a_name_leads(void **state)
{
    static const struct address_rules none = {.count = 0};
    static const char *const urls[] = {"http://127.0.0.1:%u/", "http://localhost:%u/",
                                       "http://10.0.0.1:%u/", "http://nowhere.onion:%u/"};
    struct kit *kit = *state;
    AUTO(text) struct text url = TEXT_INIT(256);

    for (size_t i = 0; i < ARRAY_COUNT(urls); i++) {
        put_port(urls[i], kit->server->port, &url);
        assert_int_equal(
            kit_ask(kit, (struct outbound_request){.url = text_string(&url), .rules = &none}), -1);
        (void) error_wrap(&kit->err, "https://theirs.example");
        outbound_hide_address(&kit->err);
        assert_int_equal(kit->err.code, ERR_FORBIDDEN);
        assert_string_equal(kit->err.message, "the host has no public address");
    }
}

static void the_environment_names_no_proxy(void **state)
{
    struct kit *kit = *state;

    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
    (void) kit_get(kit, "/hello");
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(unsetenv("ALL_PROXY"), 0);
    assert_answered(kit, 200, "hello");
}

static void a_closed_port_is_told_with_the_errno(void **state)
{
    struct kit *kit = *state;

    assert_int_equal(kit_get(kit, "http://127.0.0.1:1/"), -1);
    assert_error(&kit->err, ERR_UNAVAILABLE, "cannot connect: Connection refused");
    assert_int_equal(kit->err.system, ECONNREFUSED);
    assert_true(outbound_may_retry(&kit->answer, &kit->err));
}

static void sizes_are_capped(void **state)
{
    static const struct {
        const char *url;
        const char *reason;
    } rows[] = {
        {"/endless-headers", "too many headers"},       {"/long-headers", "head is over the limit"},
        {"/endless-interim", "head is over the limit"}, {"/many-headers", "too many headers"},
        {"/endless-body", "longer than it may be"},
    };
    struct kit *kit = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        kit->answer.body.maximum = 1000;
        assert_int_equal(kit_get(kit, rows[i].url), -1);
        assert_error(&kit->err, ERR_UPSTREAM, rows[i].reason);
        assert_int_equal(kit->err.system, EMSGSIZE);
        assert_true(kit->answer.body.length <= 1000);
    }
}

static void malformed_answers_are_refused(void **state)
{
    static const struct {
        const char *url;
        enum err_code code;
        const char *reason;
    } rows[] = {
        {"/nothing", ERR_UNAVAILABLE, "without an answer"},
        {"/garbage", ERR_UPSTREAM, "not HTTP"},
        {"/version", ERR_UPSTREAM, "not HTTP"},
        {"/no-colon", ERR_UPSTREAM, "not valid HTTP"},
        {"/blank-name", ERR_UPSTREAM, "malformed header"},
        {"/space-colon", ERR_UPSTREAM, "malformed header"},
        {"/folded", ERR_UPSTREAM, "malformed header"},
        {"/nul", ERR_UPSTREAM, "not valid HTTP"},
        {"/bare-cr", ERR_UPSTREAM, "malformed header"},
        {"/two-lengths", ERR_UPSTREAM, "length is malformed"},
        {"/odd-length", ERR_UPSTREAM, "length is malformed"},
        {"/cut-head", ERR_UNAVAILABLE, "ended too early"},
        {"/cut-body", ERR_UNAVAILABLE, "ended too early"},
        {"/bad-chunk", ERR_UNAVAILABLE, "while receiving"},
        {"/cut-chunk", ERR_UNAVAILABLE, "ended too early"},
        {"/switched", ERR_UPSTREAM, "unasked"},
    };

    struct kit *kit = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (kit_get(kit, rows[i].url) == 0)
            fail_msg("%s was taken", rows[i].url);
        /* A connection that breaks is worth another try; nonsense is not. */
        assert_error(&kit->err, rows[i].code, rows[i].reason);
    }
}

static void slow_peers_are_given_up(void **state)
{
    static const struct {
        struct outbound_request request;
        int status;
        const char *reason;
    } rows[] = {
        {{.url = "/stall", .total_ms = 100}, 0, "too slow: Operation timed out after 1"},
        {{.url = "/half", .total_ms = 500}, 200, "too slow: Operation timed out after 5"},
        {{.url = "/half", .idle_ms = 900}, 200, "the last 1 seconds"},
    };
    struct kit *kit = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(kit_ask(kit, rows[i].request), -1);
        assert_error(&kit->err, ERR_UPSTREAM_TIMEOUT, rows[i].reason);
        assert_int_equal(kit->answer.status, rows[i].status);
    }
}

/* A listener whose queue is full answers no SYN. */
static void connecting_has_its_own_limit(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fillers[8];
    socklen_t length = sizeof(address);
    struct kit *kit = *state;
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
    assert_int_equal(kit_ask(kit, (struct outbound_request){.url = url, .connect_ms = 150}), -1);
    assert_error(&kit->err, ERR_UPSTREAM_TIMEOUT, "too slow: ");
    for (size_t i = 0; i < ARRAY_COUNT(fillers); i++)
        (void) close(fillers[i]);
    (void) close(listener);
}

static void headers_cannot_hold_others(void **state)
{
    static const struct outbound_header headers[] = {{"X", "a\r\nHost: b"}};
    struct kit *kit = *state;

    assert_int_equal(
        kit_ask(kit,
                (struct outbound_request){.url = "/hello", .headers = headers, .header_count = 1}),
        -1);
    assert_error(&kit->err, ERR_INVALID, "control");
    assert_int_equal(atomic_load(&kit->server->request_count), 0);
}

static void a_url_from_a_stranger_is_read_strictly(void **state)
{
    static const struct {
        const char *url;
        const char *reason;
    } rows[] = {
        {"ftp://a/", "begin with"},     {"unix:/run/x", "http or https"},
        {"ws://a/", "http or https"},   {"http://user:geheim@a/", "user name"},
        {"http://2130706433/", "IPv4"},
    };
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *text;
    struct url url;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = ERROR_INIT;

        assert_int_equal(outbound_url_read(rows[i].url, &pool, &text, &url, &err), -1);
        assert_error(&err, ERR_INVALID, rows[i].reason);
        assert_null(strstr(err.message, "geheim"));
    }
    assert_int_equal(outbound_url_read("HTTP://EXAMPLE.org:80/A?b#c", &pool, &text, &url, NULL), 0);
    assert_string_equal(text, "http://example.org/A?b");
}

static void secrets_stay_out_of_error_texts(void **state)
{
    static const struct outbound_header headers[] = {{"Authorization", "Bearer geheim"}};
    static const char *const urls[] = {"/nul?token=geheim", "http://127.0.0.1:1/geheim",
                                       "http://10.1.1.1/geheim?geheim", "/cut-body?geheim"};
    struct kit *kit = *state;

    for (size_t i = 0; i < ARRAY_COUNT(urls); i++) {
        assert_int_equal(kit_ask(kit, (struct outbound_request){.url = urls[i],
                                                                .headers = headers,
                                                                .header_count = 1}),
                         -1);
        assert_null(strstr(kit->err.message, "geheim"));
    }
}

/* --- TLS ------------------------------------------------------------------------------------- */

struct tls_peer {
    char folder[32];
    char ca[64];
    struct kit_server *server;
};

static void tls_begin(struct tls_peer *peer)
{
    *peer = (struct tls_peer){.folder = "/tmp/outbound-test-XXXXXX"};
    assert_non_null(mkdtemp(peer->folder));
    (void) snprintf(peer->ca, sizeof(peer->ca), "%s/ca.pem", peer->folder);
    peer->server = kit_server_start(routes, kit_tls_new(peer->ca));
}

static void tls_end(struct tls_peer *peer)
{
    kit_server_stop(peer->server);
    assert_int_equal(unlink(peer->ca), 0);
    assert_int_equal(rmdir(peer->folder), 0);
}

static int tls_get(struct tls_peer *peer, struct kit *kit, const char *host, const char *ca_file)
{
    char url[128];

    (void) snprintf(url, sizeof(url), "https://%s:%u/hello", host,
                    (unsigned int) peer->server->port);
    return kit_ask(kit, (struct outbound_request){.url = url, .ca_file = ca_file});
}

static void certificates_are_verified(void **state)
{
    struct kit *kit = *state;
    struct tls_peer peer;

    tls_begin(&peer);
    assert_int_equal(tls_get(&peer, kit, "127.0.0.1", NULL), -1);
    assert_error(&kit->err, ERR_UPSTREAM, "not trusted: SSL certificate problem: self");
    assert_int_equal(tls_get(&peer, kit, "127.0.0.1", "/dev/null"), -1);
    assert_error(&kit->err, ERR_INVALID, "file of trusted certificates");
    (void) tls_get(&peer, kit, "127.0.0.1", peer.ca);
    assert_answered(kit, 200, "hello");
    /* The same peer under a name that its certificate does not have. */
    assert_int_equal(tls_get(&peer, kit, "localhost", peer.ca), -1);
    assert_error(&kit->err, ERR_UPSTREAM, "not trusted");
    tls_end(&peer);
}

static void a_plain_peer_behind_https_fails_cleanly(void **state)
{
    struct kit *kit = *state;
    char url[64];

    (void) snprintf(url, sizeof(url), "https://127.0.0.1:%u/hello",
                    (unsigned int) kit->server->port);
    assert_int_equal(
        kit_ask(kit, (struct outbound_request){.url = url, .total_ms = 2000, .connect_ms = 300}),
        -1);
    assert_int_not_equal(kit->err.code, ERR_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_has_head_and_body),
        TEST(paths_are_sent_as_they_are),
        TEST(interim_heads_and_trailers_are_not_told),
        TEST(a_head_request_has_no_body_and_no_limit_of_it),
        TEST(bytes_are_sent_with_their_length_and_nothing_made_up),
        TEST(an_empty_body_says_so),
        TEST(other_methods_go_out_as_named),
        TEST(a_part_of_a_file_is_sent_and_sent_again),
        TEST(connections_are_kept),
        TEST(a_caller_gets_the_bytes_of_a_success_and_can_end_it),
        TEST(forbidden_addresses_are_refused_with_the_reason),
        TEST(strangers_cannot_tell_where_a_name_leads),
        TEST(the_environment_names_no_proxy),
        TEST(a_closed_port_is_told_with_the_errno),
        TEST(sizes_are_capped),
        TEST(malformed_answers_are_refused),
        TEST(slow_peers_are_given_up),
        TEST(connecting_has_its_own_limit),
        TEST(headers_cannot_hold_others),
        TEST(a_url_from_a_stranger_is_read_strictly),
        TEST(secrets_stay_out_of_error_texts),
        TEST(certificates_are_verified),
        TEST(a_plain_peer_behind_https_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, kit_begin, kit_end);
}
