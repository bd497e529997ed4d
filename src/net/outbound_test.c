/* What a well-behaved request does: bodies both ways, reuse, cancelling, the queue.
 * Redirects are in
 * outbound_redirect_test.c, limits and hostile peers in outbound_limits_test.c. */
#include "net/outbound_test_kit.h"

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

#define BIG_SIZE ((size_t) 64 * 1024 * 1024)

static bool serve_big(struct kit_exchange *exchange)
{
    static char block[64 * 1024];
    AUTO(text) struct text head = TEXT_INIT(256);

    text_format(&head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BIG_SIZE);
    if (!kit_say(exchange, text_string(&head)))
        return false;
    for (size_t sent = 0; sent < BIG_SIZE; sent += sizeof(block)) {
        if (!kit_write(exchange, block, sizeof(block)))
            return false;
    }
    return true;
}

static bool serve_elsewhere(struct kit_exchange *exchange)
{
    return kit_say(exchange, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n"
                             "Content-Length: 0\r\n\r\n");
}

static const struct kit_route routes[] = {
    {.path = "/elsewhere", .serve = serve_elsewhere},
    {.path = "/hello", .serve = serve_hello},
    {.path = "/echo", .serve = serve_echo},
    {.path = "/head", .serve = serve_head},
    {.path = "/elaborate", .serve = serve_elaborate},
    {.path = "/big", .serve = serve_big},
    {.path = NULL},
};

static int set_up(void **state)
{
    *state = kit_new(routes);
    return 0;
}

static int tear_down(void **state)
{
    kit_free(*state);
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

static ssize_t produce_ten(struct probe *probe, char *buffer, size_t size)
{
    size_t length = probe->produced ? 0 : 10;

    assert_true(size >= 10);
    memset(buffer, 'x', length);
    probe->produced += length;
    return (ssize_t) length;
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

/* Pausing in every call and going on a little later. */
struct slow_consumer {
    struct probe *probe;
    struct kit *kit;
    size_t written_while_stalled;
    bool stalled;
};

static void consume_on(uv_timer_t *timer)
{
    struct slow_consumer *consumer = timer->data;

    if (!consumer->stalled) {
        consumer->stalled = true;
        consumer->written_while_stalled = atomic_load(&consumer->kit->server->written);
        assert_true(consumer->probe->bodies <= 1);
    }
    outbound_resume(consumer->probe->request);
}

static void consumed(struct probe *probe)
{
    struct slow_consumer *consumer = probe->context;

    text_clear(&probe->body);
    /* A long stall first; then often from a timer, sometimes at once from inside. */
    if (probe->bodies > 1 && probe->bodies % 16)
        outbound_resume(probe->request);
    else
        kit_call_later(consumer->kit, consumer->stalled ? 0 : 300, consume_on, consumer);
}

static void a_slow_consumer_stops_the_peer(void **state)
{
    struct kit *kit = *state;
    struct slow_consumer consumer = {.kit = kit};
    struct probe probe = PROBE_INIT;

    consumer.probe = &probe;
    probe.context = &consumer;
    probe.pause_each = true;
    probe.on_bodied = consumed;
    probe_run(kit, &probe,
              (struct outbound_call){.url = "/big", .limits = {.body_max = OUTBOUND_NO_LIMIT}});
    assert_done(&probe, 200);
    assert_int_equal(probe.received, BIG_SIZE);
    /* What the kernel's socket buffers take, and not more. */
    assert_true(consumer.written_while_stalled < BIG_SIZE / 2);
    text_done(&probe.body);
}

static void resume_soon(uv_timer_t *timer)
{
    struct probe *probe = timer->data;

    assert_int_equal(probe->heads, 1);
    assert_int_equal(probe->bodies, 0);
    assert_int_equal(probe->dones, 0);
    outbound_resume(probe->request);
}

static void resume_after_head(struct probe *probe)
{
    kit_call_later(probe->context, 50, resume_soon, probe);
}

static void pausing_in_on_head_holds_the_whole_body(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;

    probe.context = kit;
    probe.on_headed = resume_after_head;
    probe.pause_at_head = true;
    probe_run(kit, &probe, (struct outbound_call){.url = "/hello"});
    assert_done(&probe, 200);
    assert_string_equal(text_string(&probe.body), "hello");
    text_done(&probe.body);
}

static void connections_are_reused_under_the_same_rules_only(void **state)
{
    struct kit *kit = *state;
    struct outbound *allowed = kit->outbound;
    struct probe denied = PROBE_INIT;

    for (int i = 0; i < 3; i++) {
        struct probe probe = PROBE_INIT;

        probe_run(kit, &probe, (struct outbound_call){.url = "/hello"});
        assert_done(&probe, 200);
        text_done(&probe.body);
    }
    assert_int_equal(atomic_load(&kit->server->connection_count), 1);

    kit->outbound = kit_client(kit, (struct outbound_settings){.ca_file = NULL}, NULL);
    probe_run(kit, &denied, (struct outbound_call){.url = "/hello"});
    assert_failed(&denied, ERR_FORBIDDEN, "127.0.0.1 is loopback");
    assert_int_equal(atomic_load(&kit->server->request_count), 3);
    outbound_close(kit->outbound, NULL, NULL);
    kit->outbound = allowed;
}

static void cancelling_is_possible_in_every_event(void **state)
{
    static const enum kit_moment moments[] = {KIT_IN_HEAD, KIT_IN_BODY, KIT_IN_SEND, KIT_IN_DONE};
    struct kit *kit = *state;

    for (size_t i = 0; i < ARRAY_COUNT(moments); i++) {
        struct probe probe = PROBE_INIT;

        probe.cancel_at = moments[i];
        probe.produce = produce_ten;
        probe_run(
            kit, &probe,
            (struct outbound_call){
                .method = "POST", .url = "/echo", .body_streamed = true, .streamed_length = 10});
        assert_int_equal(probe.dones, moments[i] == KIT_IN_DONE);
        assert_int_equal(probe.heads, moments[i] != KIT_IN_SEND);
        assert_int_equal(probe.bodies, moments[i] == KIT_IN_BODY || moments[i] == KIT_IN_DONE);
        text_done(&probe.body);
    }
}

static void cancel_from_timer(uv_timer_t *timer)
{
    struct probe *probe = timer->data;

    outbound_cancel(probe->request);
    outbound_cancel(probe->request); /* still ours until the turn ends */
}

static void cancel_after_head(struct probe *probe)
{
    kit_call_later(probe->context, 50, cancel_from_timer, probe);
}

static void cancelling_is_possible_while_paused_or_waiting(void **state)
{
    struct kit *kit = *state;
    struct probe paused = PROBE_INIT, unstarted = PROBE_INIT;

    paused.context = kit;
    paused.on_headed = cancel_after_head;
    paused.pause_at_head = true;
    probe_run(kit, &paused, (struct outbound_call){.url = "/hello"});
    assert_int_equal(paused.heads, 1);
    assert_int_equal(paused.bodies + paused.dones, 0);

    assert_int_equal(probe_start(kit, &unstarted, (struct outbound_call){.url = "/hello"}, NULL),
                     0);
    outbound_cancel(unstarted.request);
    loop_run(&kit->loop);
    assert_int_equal(unstarted.heads + unstarted.dones, 0);
    assert_int_equal(atomic_load(&kit->server->request_count), 1);
}

static void cancelling_is_possible_while_held_bytes_are_delivered(void **state)
{
    struct kit *kit = *state;
    struct probe probe = PROBE_INIT;

    probe.context = kit;
    probe.on_headed = resume_after_head; /* delivers the held bytes, whose event cancels */
    probe.pause_at_head = true;
    probe.cancel_at = KIT_IN_BODY;
    probe_run(kit, &probe, (struct outbound_call){.url = "/hello"});
    assert_int_equal(probe.bodies, 1);
    assert_int_equal(probe.dones, 0);
    text_done(&probe.body);
}

static void the_queue_is_bounded_and_in_order(void **state)
{
    struct kit *kit = *state;
    struct outbound *usual = kit->outbound;
    struct probe probes[4] = {PROBE_INIT, PROBE_INIT, PROBE_INIT, PROBE_INIT};
    struct error err = ERROR_INIT;
    unsigned int done = 0;

    kit->outbound =
        kit_client(kit, (struct outbound_settings){.active_max = 1, .queue_max = 2}, "127.0.0.1");
    for (size_t i = 0; i < 3; i++) {
        probes[i].done_counter = &done;
        assert_int_equal(
            probe_start(kit, &probes[i], (struct outbound_call){.url = "/hello"}, &err), 0);
    }
    assert_int_equal(probe_start(kit, &probes[3], (struct outbound_call){.url = "/hello"}, &err),
                     -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    loop_run(&kit->loop);
    for (size_t i = 0; i < 3; i++) {
        assert_done(&probes[i], 200);
        assert_int_equal(probes[i].order, i);
        text_done(&probes[i].body);
    }
    assert_int_equal(atomic_load(&kit->server->connection_count), 1);
    assert_int_equal(probe_start(kit, &probes[3], (struct outbound_call){.url = "/hello"}, &err),
                     0);
    outbound_close(kit->outbound, NULL, NULL);
    kit->outbound = usual;
    loop_run(&kit->loop);
    assert_failed(&probes[3], ERR_CANCELLED, "shutting down");
}

static void count_closed(void *context)
{
    ++*(unsigned int *) context;
}

struct closer {
    struct kit *kit;
    unsigned int closed;
};

static void close_in_event(struct probe *probe)
{
    struct closer *closer = probe->context;

    outbound_close(closer->kit->outbound, count_closed, &closer->closed);
    outbound_close(closer->kit->outbound, count_closed, &closer->closed);
}

static void closing_in_an_event_ends_every_request(void **state)
{
    struct kit *kit = *state;
    struct outbound *usual = kit->outbound;
    struct closer closer = {.kit = kit};
    struct probe probes[3] = {PROBE_INIT, PROBE_INIT, PROBE_INIT};

    kit->outbound = kit_client(kit, (struct outbound_settings){.active_max = 2}, "127.0.0.1");
    for (size_t i = 0; i < ARRAY_COUNT(probes); i++) {
        struct outbound_call call = {.url = "/big", .limits = {.body_max = OUTBOUND_NO_LIMIT}};

        probes[i].pause_each = true;
        assert_int_equal(probe_start(kit, &probes[i], call, NULL), 0);
    }
    probes[0].context = &closer;
    probes[0].on_bodied = close_in_event;
    loop_run(&kit->loop);
    for (size_t i = 0; i < ARRAY_COUNT(probes); i++) {
        assert_failed(&probes[i], ERR_CANCELLED, "shutting down");
        text_done(&probes[i].body);
    }
    assert_int_equal(closer.closed, 1);
    kit->outbound = usual;
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

static int begin(void **state)
{
    (void) state;
    return outbound_global_init(NULL);
}

static int end(void **state)
{
    (void) state;
    outbound_global_done();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
        TEST(a_slow_consumer_stops_the_peer),
        TEST(pausing_in_on_head_holds_the_whole_body),
        TEST(connections_are_reused_under_the_same_rules_only),
        TEST(cancelling_is_possible_in_every_event),
        TEST(cancelling_is_possible_while_paused_or_waiting),
        TEST(cancelling_is_possible_while_held_bytes_are_delivered),
        TEST(the_queue_is_bounded_and_in_order),
        TEST(closing_in_an_event_ends_every_request),
        TEST(unix_sockets_are_reached_when_allowed),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
