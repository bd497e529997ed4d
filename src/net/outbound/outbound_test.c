/* What a well-behaved request does: heads, bodies both ways, unix sockets. Waiting, cancelling and
 * the queue are in outbound_flow_test.c, redirects in outbound_redirect_test.c, limits and hostile
 * peers in outbound_limits_test.c. */
#include "net/outbound/outbound_test_kit.h"

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

static bool serve_elsewhere(struct kit_exchange *exchange)
{
    return kit_say(exchange, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n"
                             "Content-Length: 0\r\n\r\n");
}

static const struct kit_route routes[] = {
    {.path = "/elsewhere", .serve = serve_elsewhere}, {.path = "/hello", .serve = serve_hello},
    {.path = "/echo", .serve = serve_echo},           {.path = "/head", .serve = serve_head},
    {.path = "/elaborate", .serve = serve_elaborate}, {.path = NULL},
};

static int set_up(void **state)
{
    *state = kit_new(routes);
    return 0;
}

static void a_get_delivers_head_and_body(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;
    char value[64];

    probe_run(kit, &probe, (struct outbound_call){.url = "/hello?a=b"});
    assert_done(&probe, 200);
    assert_string_equal(text_string(&probe.body), "hello");
    assert_string_equal(probe.head, "content-length: 5\nx-kind: greeting\nx-empty: \n");
    assert_memory_equal(kit_last_head(kit->server), "GET /hello?a=b HTTP/1.1\r\n", 25);
    assert_non_null(kit_header(kit_last_head(kit->server), "user-agent", value, sizeof(value)));
    assert_null(kit_header(kit_last_head(kit->server), "cookie", value, sizeof(value)));
    assert_null(kit_header(kit_last_head(kit->server), "accept-encoding", value, sizeof(value)));
    text_done(&probe.body);
}

static void paths_are_sent_as_they_are(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;

    probe_run(kit, &probe, (struct outbound_call){.url = "/a/../b/./%2e%2E//c?x=%2f&y=[1]"});
    assert_done(&probe, 404);
    assert_memory_equal(kit_last_head(kit->server),
                        "GET /a/../b/./%2e%2E//c?x=%2f&y=[1] HTTP/1.1\r\n", 46);
    text_done(&probe.body);
}

static void interim_heads_and_trailers_are_not_told(void **state)
{
    struct probe probe = PROBE_INIT;

    probe_run(*state, &probe, (struct outbound_call){.url = "/elaborate"});
    assert_done(&probe, 201);
    assert_string_equal(text_string(&probe.body), "abcde");
    assert_string_equal(probe.head, "transfer-encoding: chunked\n");
    text_done(&probe.body);
}

static void a_head_request_has_no_body_and_no_body_limit(void **state)
{
    struct probe probe = PROBE_INIT;

    probe_run(*state, &probe, (struct outbound_call){.method = "HEAD", .url = "/head"});
    assert_done(&probe, 200);
    assert_string_equal(probe.head, "content-length: 99999999999\n");
    assert_int_equal(probe.bodies, 0);
}

static void bytes_are_sent_with_their_length_and_nothing_made_up(void **state)
{
    struct kit *kit = *state;
    const struct outbound_header headers[] = {{"X-One", "1"}, {"X-Empty", ""}};
    struct probe probe = PROBE_INIT;
    char value[64];

    probe_run(kit, &probe,
              (struct outbound_call){.method = "POST",
                                     .url = "/echo",
                                     .headers = headers,
                                     .header_count = 2,
                                     .body = "some\0bytes",
                                     .body_length = 10});
    assert_done(&probe, 200);
    assert_int_equal(probe.body.length, 10);
    assert_memory_equal(probe.body.data, "some\0bytes", 10);
    assert_string_equal(
        kit_header(kit_last_head(kit->server), "content-length", value, sizeof(value)), "10");
    assert_string_equal(kit_header(kit_last_head(kit->server), "x-one", value, sizeof(value)), "1");
    assert_string_equal(kit_header(kit_last_head(kit->server), "x-empty", value, sizeof(value)),
                        "");
    assert_null(kit_header(kit_last_head(kit->server), "content-type", value, sizeof(value)));
    assert_null(kit_header(kit_last_head(kit->server), "expect", value, sizeof(value)));
    text_done(&probe.body);
}

static void an_empty_post_says_so(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;
    char value[64];

    probe_run(kit, &probe, (struct outbound_call){.method = "POST", .url = "/echo"});
    assert_done(&probe, 200);
    assert_string_equal(
        kit_header(kit_last_head(kit->server), "content-length", value, sizeof(value)), "0");
    assert_null(kit_header(kit_last_head(kit->server), "transfer-encoding", value, sizeof(value)));
}

static void other_methods_go_out_as_named(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;

    probe_run(kit, &probe, (struct outbound_call){.method = "DELETE", .url = "/hello"});
    assert_done(&probe, 200);
    assert_memory_equal(kit_last_head(kit->server), "DELETE /hello HTTP/1.1\r\n", 24);
    text_done(&probe.body);
}

/* A producer that gives odd amounts, often nothing, and goes on from a timer. */
#define STREAM_SIZE 300000

struct stutter {
    struct kit *kit;
    struct probe *probe;
    uint32_t random;
    bool wake_at_once; /* call outbound_resume_send before saying "later" */
};

static void stutter_fired(uv_timer_t *timer)
{
    struct stutter *stutter = timer->data;

    outbound_resume_send(stutter->probe->request);
}

static ssize_t stutter_produce(struct probe *probe, char *buffer, size_t size)
{
    struct stutter *stutter = probe->context;
    size_t length;

    stutter->random = stutter->random * 1103515245u + 12345u;
    if (stutter->random >> 16 & 1) {
        if (stutter->wake_at_once)
            outbound_resume_send(probe->request);
        else
            kit_call_later(stutter->kit, stutter->random >> 20 & 1, stutter_fired, stutter);
        return OUTBOUND_SEND_LATER;
    }
    length = (stutter->random >> 17) % 20000 + 1;
    if (length > size)
        length = size;
    if (length > STREAM_SIZE - probe->produced)
        length = STREAM_SIZE - probe->produced;
    for (size_t i = 0; i < length; i++)
        buffer[i] = (char) ((probe->produced + i) * 31 >> 3);
    probe->produced += length;
    return (ssize_t) length;
}

static void run_stutter(struct kit *kit, int64_t length, bool wake_at_once)
{
    struct stutter stutter = {.kit = kit, .random = 7, .wake_at_once = wake_at_once};
    struct probe probe = PROBE_INIT;

    stutter.probe = &probe;
    probe.context = &stutter;
    probe.produce = stutter_produce;
    probe_run(
        kit, &probe,
        (struct outbound_call){
            .method = "PUT", .url = "/echo", .body_streamed = true, .streamed_length = length});
    assert_done(&probe, 200);
    assert_int_equal(probe.body.length, STREAM_SIZE);
    for (size_t i = 0; i < STREAM_SIZE; i++)
        assert_int_equal(probe.body.data[i], (char) (i * 31 >> 3));
    text_done(&probe.body);
}

static void streamed_bodies_survive_a_stuttering_producer(void **state)
{
    struct kit *kit = *state;
    char value[64];

    run_stutter(kit, OUTBOUND_LENGTH_UNKNOWN, false);
    assert_string_equal(
        kit_header(kit_last_head(kit->server), "transfer-encoding", value, sizeof(value)),
        "chunked");
    run_stutter(kit, OUTBOUND_LENGTH_UNKNOWN, true);
    run_stutter(kit, STREAM_SIZE, false);
    assert_string_equal(
        kit_header(kit_last_head(kit->server), "content-length", value, sizeof(value)), "300000");
    run_stutter(kit, STREAM_SIZE, true);
}

static ssize_t produce_failure(struct probe *probe, char *buffer, size_t size)
{
    (void) probe;
    (void) buffer;
    (void) size;
    return OUTBOUND_SEND_ABORT;
}

static void a_producer_that_breaks_its_word_fails_the_request(void **state)
{
    static const struct {
        int64_t length;
        enum err_code code;
        ssize_t (*produce)(struct probe *probe, char *buffer, size_t size);
    } rows[] = {
        {11, ERR_INTERNAL, produce_ten},
        {9, ERR_INTERNAL, produce_ten},
        {OUTBOUND_LENGTH_UNKNOWN, ERR_CANCELLED, produce_failure},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;

        probe.produce = rows[i].produce;
        probe_run(*state, &probe,
                  (struct outbound_call){.method = "PUT",
                                         .url = "/echo",
                                         .body_streamed = true,
                                         .streamed_length = rows[i].length});
        assert_failed(&probe, rows[i].code, "the body");
    }
}

static void unix_sockets_are_reached_when_allowed(void **state)
{
    struct kit *kit = *state;
    char folder[] = "/tmp/outbound-test-XXXXXX", path[64];
    struct outbound *usual = kit->outbound;
    struct error err = ERROR_INIT;
    struct probe probe = PROBE_INIT, redirected = PROBE_INIT;
    struct outbound_call call = {.url = "http://docker/hello", .unix_socket = path};
    struct kit_server *local;
    char value[64];

    assert_non_null(mkdtemp(folder));
    (void) snprintf(path, sizeof(path), "%s/socket", folder);
    local = kit_server_start(routes, path, NULL);
    assert_int_equal(probe_start(kit, &probe, call, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);

    kit->outbound =
        kit_client(kit, (struct outbound_settings){.rules = {.allow_unix = true}}, NULL);
    probe_run(kit, &probe, call);
    assert_done(&probe, 200);
    assert_string_equal(text_string(&probe.body), "hello");
    assert_string_equal(kit_header(kit_last_head(local), "host", value, sizeof(value)), "docker");
    text_done(&probe.body);

    call.url = "http://docker/elsewhere";
    call.limits.redirects = 1;
    probe_run(kit, &redirected, call);
    assert_failed(&redirected, ERR_FORBIDDEN, "from a unix socket to another host");
    outbound_close(kit->outbound, NULL, NULL);
    kit->outbound = usual;
    kit_server_stop(local);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_get_delivers_head_and_body),
        TEST(paths_are_sent_as_they_are),
        TEST(interim_heads_and_trailers_are_not_told),
        TEST(a_head_request_has_no_body_and_no_body_limit),
        TEST(bytes_are_sent_with_their_length_and_nothing_made_up),
        TEST(an_empty_post_says_so),
        TEST(other_methods_go_out_as_named),
        TEST(streamed_bodies_survive_a_stuttering_producer),
        TEST(a_producer_that_breaks_its_word_fails_the_request),
        TEST(unix_sockets_are_reached_when_allowed),
    };

    return cmocka_run_group_tests(tests, kit_begin, kit_end);
}
