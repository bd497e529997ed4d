/* Exchanges on the loop: how many, in which order things end, closing. What one exchange does is
 * in curl_exchange_test.c. */
#include "net/outbound/outbound.h"
#include "net/outbound/outbound_test_kit.h"

#define ACTIVE_MAX 3

static bool serve_echo(struct kit_exchange *exchange)
{
    if (!kit_read_body(exchange))
        return false;
    return kit_reply(exchange, "", text_string(&exchange->body), exchange->body.length);
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

static bool serve_moved(struct kit_exchange *exchange)
{
    return kit_say(exchange, "HTTP/1.1 302 Found\r\nLocation: /echo\r\nContent-Length: 0\r\n\r\n");
}

static const struct kit_route routes[] = {
    {.path = "/echo", .serve = serve_echo},
    {.path = "/stall", .serve = stall},
    {.path = "/half", .serve = serve_half},
    {.path = "/moved", .serve = serve_moved},
    {.path = NULL},
};

struct outbound_world {
    struct kit *kit;
    struct loop loop;
    struct outbound *outbound;
    unsigned int closed;
};

static void count_closed(void *context)
{
    ++*(unsigned int *) context;
}

static struct outbound *world_client(struct outbound_world *world, const char *allowed)
{
    struct address_rules rules = {.count = 0};

    assert_int_equal(address_rules_allow_list(&rules, allowed, NULL), 0);
    return outbound_new(&world->loop, &rules, ACTIVE_MAX);
}

static int set_up(void **state)
{
    struct outbound_world *world = mem_alloc(sizeof(*world));

    world->kit = kit_new(routes);
    assert_int_equal(loop_init(&world->loop, NULL), 0);
    world->outbound = world_client(world, "127.0.0.0/8");
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct outbound_world *world = *state;

    outbound_close(world->outbound, NULL, NULL);
    loop_run(&world->loop);
    loop_done(&world->loop);
    kit_free(world->kit);
    free(world);
    return 0;
}

/* What became of a call. */
struct outcome {
    struct outbound_world *world;
    unsigned int dones;
    int status;
    char body[64];
    struct error err;
    bool closes;             /* closes the client when it is done */
    unsigned int asks_again; /* starts so many others, one behind the other */
};

static int outcome_start(struct outcome *outcome, struct outbound_call call, struct error *err);

static void outcome_done(void *context, const struct outbound_answer *answer,
                         const struct error *err)
{
    struct outcome *outcome = context;
    struct outbound_world *world = outcome->world;

    outcome->dones++;
    outcome->status = answer->status;
    (void) snprintf(outcome->body, sizeof(outcome->body), "%s", text_string(&answer->body));
    outcome->err = err ? *err : (struct error) ERROR_INIT;
    if (outcome->closes) {
        outbound_close(world->outbound, count_closed, &world->closed);
        outbound_close(world->outbound, count_closed, &world->closed);
    }
    if (outcome->asks_again) {
        outcome->asks_again--;
        assert_int_equal(outcome_start(outcome, (struct outbound_call){.url = "/echo"}, NULL), 0);
    }
}

static int outcome_start(struct outcome *outcome, struct outbound_call call, struct error *err)
{
    char url[1024];
    int result;

    call.url = kit_url(outcome->world->kit, call.url, url);
    call.answer_max = 8;
    call.on_done = outcome_done;
    call.context = outcome;
    result = outbound_start(outcome->world->outbound, &call, err);
    memset(url, 'x', sizeof(url)); /* it was borrowed for the call only */
    return result;
}

static void what_is_sent_is_copied_and_what_comes_is_told_once(void **state)
{
    struct outbound_world *world = *state;
    struct outcome outcome = {.world = world};
    char body[] = "hello", value[] = "one", method[] = "POST", seen[64];
    struct outbound_header header = {"X-One", value};

    assert_int_equal(outcome_start(&outcome,
                                   (struct outbound_call){.method = method,
                                                          .url = "/echo",
                                                          .headers = &header,
                                                          .header_count = 1,
                                                          .body = body,
                                                          .body_length = 5},
                                   NULL),
                     0);
    memset(body, 'x', 5);
    memset(value, 'x', 3);
    memset(method, 'x', 4);
    assert_int_equal(outcome.dones, 0);
    loop_run(&world->loop);
    assert_int_equal(outcome.dones, 1);
    assert_int_equal(outcome.status, 200);
    assert_string_equal(outcome.body, "hello");
    assert_memory_equal(kit_last_head(world->kit->server), "POST /echo HTTP/1.1\r\n", 21);
    assert_string_equal(kit_header(kit_last_head(world->kit->server), "x-one", seen, sizeof(seen)),
                        "one");
}

static void a_redirect_is_an_answer_like_any_other(void **state)
{
    struct outbound_world *world = *state;
    struct outcome outcome = {.world = world};

    assert_int_equal(outcome_start(&outcome, (struct outbound_call){.url = "/moved"}, NULL), 0);
    loop_run(&world->loop);
    assert_int_equal(outcome.status, 302);
    assert_int_equal(atomic_load(&world->kit->server->request_count), 1);
}

static void failures_name_the_peer(void **state)
{
    static const struct {
        struct outbound_call call;
        enum err_code code;
        int status;
        const char *reason;
    } rows[] = {
        {{.url = "http://127.0.0.1:1/geheim"},
         ERR_UNAVAILABLE,
         0,
         "GET http://127.0.0.1:1: cannot connect"},
        {{.url = "http://[::1]:1/"}, ERR_FORBIDDEN, 0, "GET http://[::1]:1: ::1 is loopback"},
        {{.url = "/stall", .total_ms = 100}, ERR_UPSTREAM_TIMEOUT, 0, "too slow"},
        {{.url = "/half", .total_ms = 300}, ERR_UPSTREAM_TIMEOUT, 200, "too slow"},
        {{.method = "PUT", .url = "/echo", .body = "123456789", .body_length = 9},
         ERR_UPSTREAM,
         200,
         "longer than"},
    };
    struct outbound_world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct outcome outcome = {.world = world};

        assert_int_equal(outcome_start(&outcome, rows[i].call, NULL), 0);
        loop_run(&world->loop);
        assert_int_equal(outcome.dones, 1);
        assert_error(&outcome.err, rows[i].code, rows[i].reason);
        assert_int_equal(outcome.status, rows[i].status);
        assert_null(strstr(outcome.err.message, "geheim"));
    }
}

static void calls_that_make_no_sense_are_refused(void **state)
{
    static const struct outbound_header split = {"X", "a\r\nHost: b"};
    struct outbound_world *world = *state;
    struct outcome outcome = {.world = world};
    struct error err = ERROR_INIT;

    assert_int_equal(outcome_start(&outcome, (struct outbound_call){.url = "ftp://a/"}, &err), -1);
    assert_error(&err, ERR_INVALID, "begin with");
    assert_int_equal(
        outcome_start(&outcome,
                      (struct outbound_call){.url = "/echo", .headers = &split, .header_count = 1},
                      &err),
        -1);
    assert_error(&err, ERR_INVALID, "control");
    loop_run(&world->loop);
    assert_int_equal(outcome.dones, 0);
    assert_int_equal(atomic_load(&world->kit->server->request_count), 0);
}

static void only_so_many_run_at_a_time_and_an_end_makes_room(void **state)
{
    struct outbound_world *world = *state;
    struct outcome outcomes[ACTIVE_MAX + 1];
    struct error err = ERROR_INIT;

    for (size_t i = 0; i <= ACTIVE_MAX; i++) {
        outcomes[i] = (struct outcome){.world = world, .asks_again = i == 0};
        assert_int_equal(outcome_start(&outcomes[i], (struct outbound_call){.url = "/echo"}, &err),
                         i == ACTIVE_MAX ? -1 : 0);
    }
    assert_error(&err, ERR_UNAVAILABLE, "3 outgoing requests are running");
    loop_run(&world->loop);
    for (size_t i = 0; i < ACTIVE_MAX; i++)
        assert_int_equal(outcomes[i].dones, i == 0 ? 2 : 1);
    assert_int_equal(outcomes[ACTIVE_MAX].dones, 0);
}

static void connections_are_kept_under_the_same_rules_only(void **state)
{
    struct outbound_world *world = *state;
    struct outbound *allowed = world->outbound;
    struct outcome outcome = {.world = world};

    for (unsigned int i = 1; i <= 3; i++) {
        assert_int_equal(outcome_start(&outcome, (struct outbound_call){.url = "/echo"}, NULL), 0);
        loop_run(&world->loop);
        assert_int_equal(outcome.dones, i);
    }
    assert_int_equal(atomic_load(&world->kit->server->connection_count), 1);
    world->outbound = world_client(world, "");
    assert_int_equal(outcome_start(&outcome, (struct outbound_call){.url = "/echo"}, NULL), 0);
    loop_run(&world->loop);
    assert_error(&outcome.err, ERR_FORBIDDEN, "127.0.0.1 is loopback");
    assert_int_equal(atomic_load(&world->kit->server->request_count), 3);
    outbound_close(world->outbound, NULL, NULL);
    world->outbound = allowed;
}

/* As deliveries to somebody whose address is refused, or who refuses. */
static void what_ends_at_once_and_begins_anew_leaves_the_loop_to_others(void **state)
{
    struct outbound_world *world = *state;
    struct outbound *allowed = world->outbound;
    struct outcome outcome = {.world = world, .asks_again = 50};
    unsigned int turns = 0;

    world->outbound = world_client(world, "");
    assert_int_equal(outcome_start(&outcome, (struct outbound_call){.url = "/echo"}, NULL), 0);
    while (outcome.dones <= 50) {
        unsigned int before = outcome.dones;

        (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
        assert_in_range(outcome.dones - before, 0, 1);
        turns++;
    }
    assert_true(turns > 50);
    assert_error(&outcome.err, ERR_FORBIDDEN, "127.0.0.1 is loopback");
    outbound_close(world->outbound, NULL, NULL);
    loop_run(&world->loop);
    world->outbound = allowed;
}

static void closing_in_an_end_ends_every_other(void **state)
{
    struct outbound_world *world = *state;
    struct outcome outcomes[] = {
        {.world = world, .closes = true}, {.world = world}, {.world = world}};
    struct error err = ERROR_INIT;

    assert_int_equal(outcome_start(&outcomes[0], (struct outbound_call){.url = "/echo"}, NULL), 0);
    assert_int_equal(outcome_start(&outcomes[1], (struct outbound_call){.url = "/stall"}, NULL), 0);
    assert_int_equal(outcome_start(&outcomes[2], (struct outbound_call){.url = "/half"}, NULL), 0);
    loop_run(&world->loop);
    assert_int_equal(outcomes[0].err.code, ERR_NONE);
    assert_error(&outcomes[1].err, ERR_CANCELLED, "shutting down");
    assert_error(&outcomes[2].err, ERR_CANCELLED, "shutting down");
    assert_int_equal(world->closed, 1);

    world->outbound = world_client(world, "127.0.0.0/8");
    outbound_close(world->outbound, count_closed, &world->closed);
    assert_int_equal(outcome_start(&outcomes[0], (struct outbound_call){.url = "/echo"}, &err), -1);
    assert_error(&err, ERR_UNAVAILABLE, "shutting down");
    loop_run(&world->loop);
    assert_int_equal(world->closed, 2);
    world->outbound = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_sent_is_copied_and_what_comes_is_told_once),
        TEST(a_redirect_is_an_answer_like_any_other),
        TEST(failures_name_the_peer),
        TEST(calls_that_make_no_sense_are_refused),
        TEST(only_so_many_run_at_a_time_and_an_end_makes_room),
        TEST(connections_are_kept_under_the_same_rules_only),
        TEST(what_ends_at_once_and_begins_anew_leaves_the_loop_to_others),
        TEST(closing_in_an_end_ends_every_other),
    };

    return cmocka_run_group_tests(tests, kit_begin, kit_end);
}
