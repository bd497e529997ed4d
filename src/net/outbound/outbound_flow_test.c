/* Requests that wait: slow consumers, cancelling, the queue, closing. What a request does that
 * nobody holds up is in outbound_test.c. */
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

static const struct kit_route routes[] = {
    {.path = "/hello", .serve = serve_hello},
    {.path = "/echo", .serve = serve_echo},
    {.path = "/big", .serve = serve_big},
    {.path = NULL},
};

static int set_up(void **state)
{
    *state = kit_new(routes);
    return 0;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_slow_consumer_stops_the_peer),
        TEST(pausing_in_on_head_holds_the_whole_body),
        TEST(connections_are_reused_under_the_same_rules_only),
        TEST(cancelling_is_possible_in_every_event),
        TEST(cancelling_is_possible_while_paused_or_waiting),
        TEST(cancelling_is_possible_while_held_bytes_are_delivered),
        TEST(the_queue_is_bounded_and_in_order),
        TEST(closing_in_an_event_ends_every_request),
    };

    return cmocka_run_group_tests(tests, kit_begin, kit_end);
}
