/* Connections that a server did not accept itself: what follows a CONNECT, and TLS on it. */
#include <openssl/ssl.h>

#include "net/http/http_testing.h"
#include "net/tls.h"

struct adoption_bench {
    struct web web;
    struct testing_folder folder;
    char *certificate, *key;
    struct tls_context *server_tls, *client_tls;
    struct stream *waiting; /* handed over, until its hello has come */
    struct stream *client;
    struct text heard; /* by the client */
    bool is_open, is_over;
    int left;
    void *left_session;
};

static const char session_name[] = "session";
static const char *const files[] = {"certificate.pem", "key.pem"};

/* --- the server ------------------------------------------------------------------------------- */

/* What came is a part of the handshake: TLS begins with it. */
static void waiting_data(struct stream *stream, const char *bytes, size_t length)
{
    struct adoption_bench *bench = stream->owner;
    struct tls *tls = tls_accept(bench->server_tls);
    const struct http_adoption adoption = {.peer = "here",
                                           .is_tls = true,
                                           .session = (void *) (uintptr_t) session_name,
                                           .pending = ""};

    tls_preload(tls, bytes, length);
    bench->waiting = NULL;
    assert_int_equal(stream_queued(stream), 0);
    assert_int_equal(stream_secure(stream, tls), 0);
    http_server_adopt(bench->web.server, stream, &adoption);
}

static void waiting_over(struct stream *stream)
{
    struct adoption_bench *bench = stream->owner;

    bench->waiting = NULL;
    stream_close(stream, stream_free);
}

static void waiting_failed(struct stream *stream, int error)
{
    (void) error;
    waiting_over(stream);
}

static const struct stream_events waiting_events = {
    .on_data = waiting_data, .on_end = waiting_over, .on_failure = waiting_failed};

static void handle(struct http_request *request)
{
    struct adoption_bench *bench = request->context;
    AUTO(text) struct text pending = TEXT_INIT(65536);

    if (request->target.form == URL_TARGET_AUTHORITY) {
        assert_string_equal(http_request_host(request), "name.test:443");
        bench->waiting = http_reply_connected(request, &pending);
        stream_set_owner(bench->waiting, bench, &waiting_events);
        if (pending.length)
            waiting_data(bench->waiting, text_string(&pending), pending.length);
        return;
    }
    http_reply_text(request, 200, "text/plain",
                    http_request_session(request) ? http_request_session(request) : "none");
}

static http_handler *intercept(struct http_request *request, void *data)
{
    request->context = data;
    return handle;
}

static void left(void *session, void *data)
{
    struct adoption_bench *bench = data;

    bench->left++;
    if (session)
        bench->left_session = session;
}

/* --- the client ------------------------------------------------------------------------------- */

static void client_opened(struct stream *stream)
{
    struct adoption_bench *bench = stream->owner;

    bench->is_open = true;
}

static void client_data(struct stream *stream, const char *bytes, size_t length)
{
    struct adoption_bench *bench = stream->owner;

    text_append_bytes(&bench->heard, bytes, length);
}

static void client_over(struct stream *stream)
{
    struct adoption_bench *bench = stream->owner;

    bench->is_over = true;
}

static void client_failed(struct stream *stream, int error)
{
    (void) error;
    client_over(stream);
}

static const struct stream_events client_events = {.on_open = client_opened,
                                                   .on_data = client_data,
                                                   .on_end = client_over,
                                                   .on_failure = client_failed};

static void client_connect(struct adoption_bench *bench)
{
    struct raw raw = raw_connect(bench->web.port);

    bench->client = mem_alloc(sizeof(*bench->client));
    assert_int_equal(
        stream_init(bench->client, &bench->web.loop, TAKE_FD(raw.fd), NULL, true, &client_events),
        0);
    bench->client->owner = bench;
    raw_close(&raw);
}

static void client_say(struct adoption_bench *bench, const char *text)
{
    stream_write(bench->client, text, strlen(text));
}

#define HEARD(bench, part)                                                                         \
    TURN_UNTIL(&(bench)->web.loop, strstr(text_string(&(bench)->heard), part) != NULL)

/* --- tests ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    struct adoption_bench *bench = test_calloc(1, sizeof(*bench));
    static const struct http_route none[1];
    static struct http_mount mount = {.name = "none", .routes = none};

    testing_folder_make(&bench->folder);
    bench->certificate = testing_path(&bench->folder, files[0]);
    bench->key = testing_path(&bench->folder, files[1]);
    testing_certificate(bench->certificate, bench->key, "name.test");
    bench->server_tls = tls_context_server(bench->certificate, bench->key, NULL);
    bench->client_tls = tls_context_client(bench->certificate, NULL);
    bench->heard = (struct text) TEXT_INIT(65536);
    web_init(&bench->web);
    bench->web.options.intercept = intercept;
    bench->web.options.intercept_data = bench;
    bench->web.options.on_left = left;
    bench->web.options.left_data = bench;
    bench->web.options.limits.takes_connect = true;
    web_serve(&bench->web, &mount);
    client_connect(bench);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct adoption_bench *bench = *state;

    if (bench->client)
        stream_close(bench->client, stream_free);
    TURN_UNTIL(&bench->web.loop, !bench->waiting);
    web_done(&bench->web);
    tls_context_free(bench->server_tls);
    tls_context_free(bench->client_tls);
    testing_folder_remove(&bench->folder, files, ARRAY_COUNT(files));
    free(bench->certificate);
    free(bench->key);
    text_done(&bench->heard);
    test_free(bench);
    return 0;
}

static void tls_begins_behind_a_connect_and_carries_requests(void **state)
{
    struct adoption_bench *bench = *state;

    client_say(bench, "CONNECT name.test:443 HTTP/1.1\r\nHost: name.test\r\n\r\n");
    HEARD(bench, "HTTP/1.1 200 Connection established\r\n\r\n");
    text_clear(&bench->heard);
    bench->is_open = false;
    assert_int_equal(stream_secure(bench->client, tls_connect(bench->client_tls, "name.test")), 0);
    TURN_UNTIL(&bench->web.loop, bench->is_open);
    for (int i = 0; i < 3; i++) {
        client_say(bench, "GET / HTTP/1.1\r\nHost: name.test\r\n\r\n");
        HEARD(bench, session_name);
        text_clear(&bench->heard);
    }
    stream_close(TAKE_PTR(bench->client), stream_free);
    TURN_UNTIL(&bench->web.loop, bench->left_session != NULL);
    assert_ptr_equal(bench->left_session, session_name);
    assert_int_equal(http_server_connections(bench->web.server), 0);
}

static void a_hello_that_came_with_the_connect_is_not_lost(void **state)
{
    struct adoption_bench *bench = *state;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    char hello[16384];
    int length;

    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    (void) SSL_do_handshake(ssl);
    length = BIO_read(out, hello, sizeof(hello));
    TURN_UNTIL(&bench->web.loop, bench->is_open);
    client_say(bench, "CONNECT name.test:443 HTTP/1.1\r\nHost: name.test\r\n\r\n");
    HEARD(bench, "established\r\n\r\n");
    text_clear(&bench->heard);
    /* In two pieces: the first is read before TLS begins, the second after. */
    stream_write(bench->client, hello, 10);
    TURN_UNTIL(&bench->web.loop, !bench->waiting);
    stream_write(bench->client, hello + 10, (size_t) length - 10);
    TURN_UNTIL(&bench->web.loop, bench->heard.length > 100);
    (void) BIO_write(in, bench->heard.data, (int) bench->heard.length);
    (void) SSL_do_handshake(ssl);
    assert_int_not_equal(SSL_get_state(ssl), TLS_ST_BEFORE);
    assert_non_null(SSL_get0_peer_certificate(ssl));
    SSL_free(ssl);
    SSL_CTX_free(context);
}

static void a_connect_with_a_body_or_without_a_port_is_malformed(void **state)
{
    struct adoption_bench *bench = *state;

    client_say(bench, "CONNECT name.test HTTP/1.1\r\nHost: name.test\r\n\r\n");
    HEARD(bench, "HTTP/1.1 400 ");
    text_clear(&bench->heard);
    client_say(bench,
               "CONNECT name.test:443 HTTP/1.1\r\nHost: name.test\r\nContent-Length: 3\r\n\r\nabc");
    HEARD(bench, "CONNECT has no body");
}

static void cutting_ends_every_connection_and_new_ones_are_served(void **state)
{
    struct adoption_bench *bench = *state;

    client_say(bench, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    HEARD(bench, "none");
    http_server_cut(bench->web.server);
    TURN_UNTIL(&bench->web.loop, bench->is_over);
    assert_int_equal(bench->left, 1);
    stream_close(TAKE_PTR(bench->client), stream_free);
    text_clear(&bench->heard);
    client_connect(bench);
    client_say(bench, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    HEARD(bench, "none");
}

#define ADOPT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ADOPT_TEST(tls_begins_behind_a_connect_and_carries_requests),
        ADOPT_TEST(a_hello_that_came_with_the_connect_is_not_lost),
        ADOPT_TEST(a_connect_with_a_body_or_without_a_port_is_malformed),
        ADOPT_TEST(cutting_ends_every_connection_and_new_ones_are_served),
    };

    return cmocka_run_group_tests_name("http adopt", tests, NULL, NULL);
}
