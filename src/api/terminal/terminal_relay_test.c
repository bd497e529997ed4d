#include "api/dialect_testing.h"
#include "api/terminal/terminal_relay.h"
#include "net/websocket/websocket_handshake.h"

static const struct http_route routes[] = {
    {"GET", "/terminal/{id}", terminal_relay, .summary = "A terminal"},
};

static int setup(void **state)
{
    *state = bench_new(routes, ARRAY_COUNT(routes));
    return 0;
}

static int teardown(void **state)
{
    bench_free(*state);
    return 0;
}

/* --- both ends ------------------------------------------------------------------------------- */

static struct raw connect_client(struct visit_bench *bench, const char *target)
{
    AUTO(text) struct text head = TEXT_INIT(RAW_MAX);
    struct raw client;

    text_format(&head,
                "GET %s HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                target);
    client = bench_client(bench, text_string(&head));
    HEARD(bench, &client, "HTTP/1.1 101 ");
    return client;
}

/* Answer the upgrade that came. */
static void accept_terminal(struct visit_bench *bench, struct raw *agent)
{
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];
    AUTO(text) struct text head = TEXT_INIT(RAW_MAX);
    char key[WEBSOCKET_HANDSHAKE_KEY_SIZE] = "";
    struct websocket_upgrade upgrade = {.method = "GET",
                                        .http_major = 1,
                                        .http_minor = 1,
                                        .upgrade = "websocket",
                                        .connection = "Upgrade",
                                        .key = key,
                                        .version = WEBSOCKET_VERSION};
    const char *at;

    HEARD(bench, agent, "\r\n\r\n");
    at = strstr(agent->got.data, "Sec-WebSocket-Key: ");
    assert_non_null(at);
    memcpy(key, at + strlen("Sec-WebSocket-Key: "), sizeof(key) - 1);
    assert_int_equal(websocket_upgrade_check(&upgrade, accept, NULL), 0);
    text_format(&head,
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Accept: %s\r\n\r\n",
                accept);
    text_clear(&agent->got);
    SAY(bench, agent, text_string(&head));
}

/* A short frame of a server's, which is not masked. */
static void agent_sends(struct visit_bench *bench, struct raw *agent, char kind, const char *bytes)
{
    char head[2] = {(char) (0x80 | kind), (char) strlen(bytes)};

    assert_true(strlen(bytes) < 126);
    raw_send_bytes(agent, &bench->web.loop, head, sizeof(head));
    SAY(bench, agent, bytes);
}

/* A client's, masked with zeros. */
static void client_sends(struct visit_bench *bench, struct raw *client, char kind,
                         const char *bytes, size_t length)
{
    char head[6] = {(char) (0x80 | kind), (char) (0x80 | length), 0, 0, 0, 0};

    assert_true(length < 126);
    raw_send_bytes(client, &bench->web.loop, head, sizeof(head));
    raw_send_bytes(client, &bench->web.loop, bytes, length);
}

#define TEXT_KIND   1
#define BINARY_KIND 2
#define CLOSE_KIND  8

static void client_says(struct visit_bench *bench, struct raw *client, const char *json)
{
    client_sends(bench, client, TEXT_KIND, json, strlen(json));
}

/* Frames of the relay to the agent are masked: what they hold, in one text. */
static bool agent_heard(struct raw *agent, const char *expected)
{
    AUTO(text) struct text plain = TEXT_INIT(RAW_MAX);

    raw_read(agent);
    for (size_t at = 0; at + 6 <= agent->got.length;) {
        const uint8_t *frame = (const uint8_t *) agent->got.data + at;
        size_t length = frame[1] & 0x7f;

        assert_true(length < 126);
        for (size_t i = 0; i < length && at + 6 + i < agent->got.length; i++)
            text_append_char(&plain, (char) (frame[6 + i] ^ frame[2 + i % 4]));
        at += 6 + length;
    }
    return strstr(text_string(&plain), expected) != NULL;
}

static void end(struct visit_bench *bench, struct raw *client, struct raw *agent)
{
    raw_close(client);
    raw_close(agent);
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
}

/* --- what passes ----------------------------------------------------------------------------- */

static void frames_pass_both_ways(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client = connect_client(bench, "/terminal/demo?session=s1&cols=90&rows=30");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "GET /ws/pty?sessionId=s1&cols=90&rows=30 HTTP/1.1");
    accept_terminal(bench, &agent);
    HEARD(bench, &client, "{\"type\":\"connected\",\"shell\":\"bash\",\"session\":\"s1\"}");
    agent_sends(bench, &agent, BINARY_KIND, "replay \xe2\x82");
    HEARD(bench, &client, "{\"type\":\"output\",\"data\":\"replay \"}");
    client_says(bench, &client, "{\"type\":\"input\",\"data\":\"early\"}");
    for (int i = 0; i < 20; i++)
        testing_turn(&bench->web.loop);
    assert_false(agent_heard(&agent, "early")); /* there is no shell yet */
    agent_sends(bench, &agent, TEXT_KIND, "{\"type\":\"ready\"}");
    TURN_UNTIL(&bench->web.loop, agent_heard(&agent, "early"));
    agent_sends(bench, &agent, BINARY_KIND, "\xac$ ");
    HEARD(bench, &client, "{\"type\":\"output\",\"data\":\"\xe2\x82\xac$ \"}");
    client_says(bench, &client, "{\"type\":\"input\",\"data\":\"ls\\r\"}");
    TURN_UNTIL(&bench->web.loop, agent_heard(&agent, "ls\r"));
    client_says(bench, &client, "{\"type\":\"resize\",\"cols\":120,\"rows\":40}");
    TURN_UNTIL(&bench->web.loop,
               agent_heard(&agent, "{\"type\":\"resize\",\"cols\":120,\"rows\":40}"));
    client_says(bench, &client, "{\"type\":\"other\"}");
    HEARD(bench, &client, "{\"type\":\"error\",\"message\":\"type must be input or resize\"}");
    assert_int_equal(bench->uses, 1);
    end(bench, &client, &agent);
}

static void an_exit_is_told_and_closes(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client = connect_client(bench, "/terminal/demo?session=s1");
    struct raw agent = bench_agent(bench);

    accept_terminal(bench, &agent);
    agent_sends(bench, &agent, BINARY_KIND, "bye\xf0");
    agent_sends(bench, &agent, TEXT_KIND, "{\"type\":\"exit\",\"code\":7}");
    agent_sends(bench, &agent, CLOSE_KIND, "\x03\xe8");
    HEARD(bench, &client, "{\"type\":\"output\",\"data\":\"\xef\xbf\xbd\"}");
    HEARD(bench, &client, "{\"type\":\"exit\",\"code\":7}");
    HEARD(bench, &client, "\x03\xe8the shell has ended");
    end(bench, &client, &agent);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void a_sandbox_that_is_not_there_is_a_close_code(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client = connect_client(bench, "/terminal/other");

    HEARD(bench, &client, "{\"type\":\"error\",\"message\":\"no such sandbox\"}");
    HEARD(bench, &client, "\x03\xf0no such sandbox");
    raw_close(&client);
}

static void who_may_only_look_gets_no_terminal(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client;

    bench->caller.scope = CALLER_READ;
    client = connect_client(bench, "/terminal/demo");
    HEARD(bench, &client, "\x03\xf0this key may look");
    raw_close(&client);
    assert_int_equal(bench->uses, 0);
}

static void a_request_that_is_no_upgrade_is_refused(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "GET /terminal/demo", "");

    HEARD(bench, &raw, "HTTP/1.1 426 ");
    raw_close(&raw);
    assert_int_equal(bench->uses, 0);
}

static void an_agent_that_refuses_is_a_close_code(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client = connect_client(bench, "/terminal/demo");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    answer_with(bench, &agent, "409 Conflict", "{\"code\":\"RESOURCE_BUSY\"}");
    HEARD(bench, &client, "{\"type\":\"error\",");
    HEARD(bench, &client, "\x03\xf3");
    end(bench, &client, &agent);
}

static void a_lost_agent_is_told(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client = connect_client(bench, "/terminal/demo?session=s1");
    struct raw agent = bench_agent(bench);

    accept_terminal(bench, &agent);
    HEARD(bench, &client, "connected");
    raw_close(&agent);
    HEARD(bench, &client, "{\"type\":\"error\",\"message\":\"the terminal was lost\"}");
    HEARD(bench, &client, "\x03\xf3");
    end(bench, &client, &agent);
}

/* --- sessions -------------------------------------------------------------------------------- */

static void a_terminal_of_ones_own_ends_with_the_connection(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client = connect_client(bench, "/terminal/demo");
    struct raw agent = bench_agent(bench), last;

    HEARD(bench, &agent, "GET /ws/pty?sessionId=terminal-");
    accept_terminal(bench, &agent);
    agent_sends(bench, &agent, TEXT_KIND, "{\"type\":\"ready\"}");
    HEARD(bench, &client, "\"session\":\"terminal-");
    raw_close(&client);
    TURN_UNTIL(&bench->web.loop, agent_heard(&agent, "\x03\xe8"));
    raw_close(&agent);
    last = bench_agent(bench);
    HEARD(bench, &last, "POST /api/session/delete HTTP/1.1");
    HEARD(bench, &last, "{\"sessionId\":\"terminal-");
    assert_int_equal(bench->uses, 1); /* awake until that is done */
    answer_with(bench, &last, "200 OK", "{\"success\":true}");
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
    raw_close(&last);
}

static void who_leaves_while_the_sandbox_wakes_leaves_nothing(void **state)
{
    struct visit_bench *bench = *state;
    struct raw client;

    bench->is_asleep = true;
    client = connect_client(bench, "/terminal/demo");
    TURN_UNTIL(&bench->web.loop, bench->waits != NULL);
    raw_close(&client); /* seen when somebody reads again: at the latest when it runs */
    bench->is_asleep = false;
    bench->waits->ready(bench->waits, NULL);
    {
        struct raw agent = bench_agent(bench), last;

        accept_terminal(bench, &agent);
        agent_sends(bench, &agent, TEXT_KIND, "{\"type\":\"ready\"}");
        TURN_UNTIL(&bench->web.loop, raw_is_over(&agent) || agent_heard(&agent, "\x03\xe8"));
        raw_close(&agent);
        last = bench_agent(bench);
        HEARD(bench, &last, "POST /api/session/delete");
        answer_with(bench, &last, "200 OK", "{\"success\":true}");
        TURN_UNTIL(&bench->web.loop, bench->uses == 0);
        raw_close(&last);
    }
}

#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH_TEST(frames_pass_both_ways),
        BENCH_TEST(an_exit_is_told_and_closes),
        BENCH_TEST(a_sandbox_that_is_not_there_is_a_close_code),
        BENCH_TEST(who_may_only_look_gets_no_terminal),
        BENCH_TEST(a_request_that_is_no_upgrade_is_refused),
        BENCH_TEST(an_agent_that_refuses_is_a_close_code),
        BENCH_TEST(a_lost_agent_is_told),
        BENCH_TEST(a_terminal_of_ones_own_ends_with_the_connection),
        BENCH_TEST(who_leaves_while_the_sandbox_wakes_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
