/* The dialect on a real domain and store, with an agent of raw bytes. */
#include <stdio.h>

#include "api/agent/agents.h"
#include "api/http/api.h"
#include "api/http/idempotency.h"
#include "api/native/event_cursor.h"
#include "api/native/native.h"
#include "domain/domain_testing.h"
#include "json/json_read.h"
#include "net/http/http_testing.h"

struct bench {
    struct world *world;
    struct http_server *server;
    struct http_router *router;
    struct agents *agents;
    struct api api;
    struct http_mount mount;
    struct caller caller;
    char folder[64];
    char socket[128]; /* of the agent that listens */
    int listener;
    uint16_t port;
    bool is_over;
};

static int authorize(struct http_request *request, void *data, struct error *err)
{
    (void) err;
    request->caller = &((struct bench *) data)->caller;
    return 0;
}

static void serve(struct bench *bench)
{
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;
    struct error error = ERROR_INIT;

    bench->router = http_router_new();
    bench->mount = native_mount(&bench->api);
    bench->api.mounts = &bench->mount;
    bench->api.mount_count = 1;
    assert_int_equal(http_router_mount(bench->router, &bench->mount, &error), 0);
    options.router = bench->router;
    options.clock = clock_system();
    options.authorize = authorize;
    options.admit_data = bench;
    bench->server = http_server_new(&bench->world->loop, &options);
    assert_int_equal(http_server_listen(bench->server, "127.0.0.1:0", NULL, &error), 0);
    bench->port = http_server_port(bench->server, 0);
}

static int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));
    struct provider_fake_options fake = {.agents = bench->folder};

    (void) signal(SIGPIPE, SIG_IGN);
    (void) snprintf(bench->folder, sizeof(bench->folder), "/tmp/native-test-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    bench->listener = -EBADF;
    bench->world = world_new(&fake);
    world_open(bench->world);
    bench->caller = bench->world->caller;
    bench->agents = agents_new(&bench->world->loop, NULL);
    agents_set_domain(bench->agents, bench->world->domain);
    bench->api =
        (struct api){.loop = &bench->world->loop,
                     .domain = bench->world->domain,
                     .agents = bench->agents,
                     .clock = &bench->world->clock.clock,
                     .idempotency = idempotency_new(bench->world->store, &bench->world->clock.clock,
                                                    bench->world->options.shares),
                     .backup_folder = bench->folder};
    serve(bench);
    *state = bench;
    return 0;
}

static void agents_gone(void *context)
{
    ((struct bench *) context)->is_over = true;
}

static void drained(struct http_server *server, void *data)
{
    (void) server;
    ((struct bench *) data)->is_over = true;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    http_server_drain(bench->server, 1, drained, bench);
    TURN_UNTIL(&bench->world->loop, bench->is_over);
    http_server_free(bench->server);
    http_router_free(bench->router);
    bench->is_over = false;
    agents_close(bench->agents, agents_gone, bench);
    TURN_UNTIL(&bench->world->loop, bench->is_over);
    idempotency_free(bench->api.idempotency);
    world_free(bench->world);
    (void) fd_close(bench->listener);
    (void) unlink(bench->socket);
    (void) rmdir(bench->folder);
    test_free(bench);
    return 0;
}

#define LOOP(bench)             (&(bench)->world->loop)
#define HEARD(bench, raw, text) TURN_UNTIL(LOOP(bench), raw_has((raw), (text)))
#define SAY(bench, raw, text)   raw_send((raw), LOOP(bench), (text))
#define ROOT                    "/burrow/v1/sandboxes"

/* Send a request; `head` is method, path and further lines ("GET /x" or "GET /x\r\nA: b"). */
static struct raw ask_raw(struct bench *bench, const char *head, const char *body)
{
    struct raw raw = raw_connect(bench->port);
    AUTO(text) struct text out = TEXT_INIT(RAW_MAX);
    size_t line = strcspn(head, "\r");

    text_format(&out, "%.*s HTTP/1.1%s\r\nHost: a\r\n", (int) line, head, head + line);
    if (body)
        text_format(&out, "Content-Length: %zu\r\n", strlen(body));
    text_format(&out, "\r\n%s", body ? body : "");
    raw_send_bytes(&raw, LOOP(bench), text_string(&out), out.length);
    return raw;
}

/* Ask and expect this in the answer, head included. */
static void expect(struct bench *bench, const char *head, const char *body, const char *expected)
{
    struct raw raw = ask_raw(bench, head, body);

    HEARD(bench, &raw, expected);
    raw_close(&raw);
}

/* A sandbox with an agent that listens. */
static void make_sandbox(struct bench *bench)
{
    const struct sandbox *sandbox = world_create(bench->world, "demo");
    struct sys_address address;
    char text[160];

    (void) snprintf(bench->socket, sizeof(bench->socket), "%s/%s.sock", bench->folder,
                    sandbox->id.text);
    (void) snprintf(text, sizeof(text), "unix:%s", bench->socket);
    assert_int_equal(sys_address_parse(text, &address), 0);
    bench->listener = sys_socket_listen(&address, 16, 0);
    assert_true(bench->listener >= 0);
}

static struct raw agent_of(struct bench *bench)
{
    int fd = -EAGAIN;

    TURN_UNTIL(LOOP(bench), (fd = sys_socket_accept(bench->listener, NULL)) != -EAGAIN);
    assert_true(fd >= 0);
    return raw_take(fd);
}

static void answer(struct bench *bench, struct raw *agent, const char *head, const char *body)
{
    char length[64];

    (void) snprintf(length, sizeof(length), "\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    SAY(bench, agent, "HTTP/1.1 ");
    SAY(bench, agent, head);
    SAY(bench, agent, length);
    SAY(bench, agent, body);
}

#define JSON_OK "200 OK\r\nContent-Type: application/json"

/* --- sandboxes ------------------------------------------------------------------------------- */

static void a_sandbox_is_made_found_changed_and_destroyed(void **state)
{
    struct bench *bench = *state;

    expect(bench, "POST " ROOT,
           "{\"name\":\"demo\",\"sleepAfter\":\"5m\",\"labels\":{\"a\":\"1\"}}", "HTTP/1.1 201 ");
    expect(bench, "POST " ROOT, "{\"name\":\"demo\",\"sleepAfter\":\"9m\"}", "\"sleepAfter\":300");
    expect(bench, "GET " ROOT "/demo", NULL, "\"status\":\"running\"");
    expect(bench, "GET " ROOT "?label=a=1&status=running&prefix=de", NULL, "\"name\":\"demo\"");
    expect(bench, "GET " ROOT "?label=a=2", NULL, "{\"sandboxes\":[],\"nextCursor\":null}");
    expect(bench, "PATCH " ROOT "/demo", "{\"sleepAfter\":1.5,\"labels\":{\"a\":null,\"b\":\"2\"}}",
           "\"labels\":{\"b\":\"2\"}");
    expect(bench, "GET " ROOT "/demo", NULL, "\"sleepAfter\":1.5");
    expect(bench, "POST " ROOT "/demo/sleep", NULL, "\"status\":\"frozen\"");
    expect(bench, "GET " ROOT "?status=sleeping", NULL, "\"name\":\"demo\"");
    expect(bench, "POST " ROOT "/demo/wake", NULL, "\"status\":\"running\"");
    expect(bench, "POST " ROOT "/demo/stop", NULL, "\"status\":\"stopped\"");
    expect(bench, "POST " ROOT "/demo/exec", "{\"command\":\"x\"}", "HTTP/1.1 409 ");
    expect(bench, "POST " ROOT "/demo/start", NULL, "\"status\":\"running\"");
    expect(bench, "POST " ROOT "/demo/touch", NULL, "HTTP/1.1 200 ");
    expect(bench, "GET " ROOT "/demo/stats", NULL, "\"cpuMicroseconds\":");
    expect(bench, "DELETE " ROOT "/demo", NULL, "HTTP/1.1 204 ");
    expect(bench, "GET " ROOT "/demo", NULL, "HTTP/1.1 404 ");
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *body, *expected;
    } cases[] = {
        {"{\"nam\":\"x\"}", "unknown field 'nam'"},
        {"{\"name\":\"UPPER\"}", "field 'name' must be"},
        {"{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaa\"}", "field 'name' must be"},
        {"{\"sleepAfter\":\"soon\"}", "field 'sleepAfter' must be"},
        {"{\"limits\":{\"memory\":\"much\"}}", "field 'limits.memory' must be"},
        {"{\"limits\":{\"heat\":1}}", "heat"},
        {"{\"env\":{\"A\":1}}", "field 'env.A' must be a string"},
        {"{\"network\":\"wide\"}", "field 'network' must be none or nat"},
        {"{\"rules\":[{\"allow\":true,\"to\":\"all\"}]}", "field 'rules[0].to' must be"},
        {"{\"rules\":[{\"allow\":true,\"ports\":\"9-1\"}]}", "field 'rules[0].ports' must be"},
        {"[]", "invalid_request"},
        {"{", "invalid JSON"},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct raw raw = ask_raw(bench, "POST " ROOT, cases[i].body);

        HEARD(bench, &raw, cases[i].expected);
        assert_true(raw_has(&raw, "HTTP/1.1 400 "));
        raw_close(&raw);
    }
    expect(bench, "GET " ROOT "?limit=0", NULL, "HTTP/1.1 400 ");
    expect(bench, "GET " ROOT "?status=asleep", NULL, "HTTP/1.1 400 ");
    expect(bench, "GET " ROOT "?cursor=zzz", NULL, "HTTP/1.1 400 ");
}

static void a_key_that_only_looks_changes_nothing_and_sees_no_values(void **state)
{
    struct bench *bench = *state;

    expect(bench, "POST " ROOT, "{\"name\":\"demo\",\"env\":{\"TOKEN\":\"hush\"}}", "hush");
    bench->caller.scope = CALLER_READ;
    expect(bench, "GET " ROOT "/demo", NULL, "\"env\":{\"TOKEN\":null}");
    expect(bench, "POST " ROOT, "{}", "HTTP/1.1 403 ");
    expect(bench, "DELETE " ROOT "/demo", NULL, "HTTP/1.1 403 ");
    expect(bench, "POST " ROOT "/demo/touch", NULL, "HTTP/1.1 403 ");
    expect(bench, "POST " ROOT "/demo/exec", "{\"command\":\"x\"}", "HTTP/1.1 403 ");
    bench->caller.scope = CALLER_WRITE;
    bench->caller.owner = id_new();
    expect(bench, "GET " ROOT "/demo", NULL, "HTTP/1.1 404 ");
    expect(bench, "GET " ROOT, NULL, "{\"sandboxes\":[],");
}

/* --- inside ---------------------------------------------------------------------------------- */

static void a_command_is_translated_and_its_answer_passed_on(void **state)
{
    struct bench *bench = *state;
    struct raw raw, agent;

    make_sandbox(bench);
    raw = ask_raw(bench, "POST " ROOT "/demo/exec",
                  "{\"argv\":[\"a\"],\"timeout\":\"2s\",\"stdin\":null}");
    agent = agent_of(bench);
    HEARD(bench, &agent, "\"plain\":true}");
    assert_true(raw_has(&agent, "POST /api/execute HTTP/1.1\r\n"));
    assert_true(raw_has(&agent, "{\"argv\":[\"a\"],\"timeoutMs\":2000,"
                                "\"sessionId\":\"__DISABLE_SESSION__\",\"plain\":true}"));
    answer(bench, &agent, JSON_OK "\r\nSet-Cookie: a=b\r\nX-Evil: 1", "{\"exitCode\":3}");
    HEARD(bench, &raw, "\r\n\r\n{\"exitCode\":3}");
    assert_false(raw_has(&raw, "Set-Cookie") || raw_has(&raw, "X-Evil"));
    raw_close(&raw);
    text_clear(&agent.got);
    raw = ask_raw(bench, "POST " ROOT "/demo/exec",
                  "{\"command\":\"a\",\"sessionId\":\"s\",\"stream\":true}");
    HEARD(bench, &agent, "\"plain\":true}");
    assert_true(raw_has(&agent, "POST /api/execute/stream "));
    assert_true(raw_has(&agent, "{\"command\":\"a\",\"sessionId\":\"s\",\"plain\":true}"));
    answer(bench, &agent, "200 OK\r\nContent-Type: text/event-stream", "data: {}\n\n");
    HEARD(bench, &raw, "\r\n\r\ndata: {}\n\n");
    assert_true(raw_has(&raw, "Content-Type: text/event-stream\r\n"));
    raw_close(&raw);
    raw_close(&agent);
}

static void errors_of_the_agent_have_our_shape(void **state)
{
    struct bench *bench = *state;
    struct raw raw, agent;

    make_sandbox(bench);
    raw = ask_raw(bench, "GET " ROOT "/demo/processes/a%20b", NULL);
    agent = agent_of(bench);
    HEARD(bench, &agent, "GET /api/process/a%20b HTTP/1.1\r\n");
    answer(bench, &agent, "404 No\r\nContent-Type: application/json",
           "{\"code\":\"PROCESS_NOT_FOUND\",\"message\":\"none\"}");
    HEARD(bench, &raw, "{\"error\":{\"code\":\"not_found\",\"message\":\"none\"");
    raw_close(&raw);
    raw_close(&agent);
    expect(bench, "POST " ROOT "/demo/exec", "{\"cmd\":\"x\"}", "unknown field 'cmd'");
    expect(bench, "POST " ROOT "/demo/exec", "{\"timeout\":\"x\"}", "field 'timeout' must be");
}

static void a_file_comes_with_its_range_and_no_scripts(void **state)
{
    struct bench *bench = *state;
    struct raw raw, agent;

    make_sandbox(bench);
    raw = ask_raw(bench, "GET " ROOT "/demo/files/work/a%26b\r\nRange: bytes=1-2", NULL);
    agent = agent_of(bench);
    HEARD(bench, &agent, "\r\n\r\n");
    assert_true(raw_has(&agent, "GET /burrow/file?path=%2Fwork%2Fa%26b HTTP/1.1\r\n"));
    assert_true(raw_has(&agent, "Range: bytes=1-2\r\n"));
    answer(bench, &agent,
           "206 Part\r\nContent-Type: text/html\r\nContent-Range: bytes 1-2/9\r\nSet-Cookie: x=y",
           "el");
    HEARD(bench, &raw, "\r\n\r\nel");
    assert_true(raw_has(&raw, "HTTP/1.1 206 ") && raw_has(&raw, "Content-Range: bytes 1-2/9\r\n"));
    assert_true(raw_has(&raw, "Content-Security-Policy: sandbox\r\n"));
    assert_false(raw_has(&raw, "Set-Cookie"));
    raw_close(&raw);
    raw_close(&agent);
}

static void the_container_api_is_passed_through_but_not_ours(void **state)
{
    struct bench *bench = *state;
    struct raw raw, agent;

    make_sandbox(bench);
    expect(bench, "GET " ROOT "/demo/container/burrow/activity", NULL, "HTTP/1.1 404 ");
    expect(bench, "GET " ROOT "/demo/container/%62urrow/activity", NULL, "HTTP/1.1 404 ");
    expect(bench, "GET " ROOT "/demo/container//burrow/activity", NULL, "HTTP/1.1 404 ");
    expect(bench, "GET " ROOT "/demo/terminals", NULL, "HTTP/1.1 426 ");
    raw = ask_raw(bench,
                  "GET " ROOT "/demo/container/api/x%2Fy?a=1&token=t\r\nAuthorization: Bearer k",
                  NULL);
    agent = agent_of(bench);
    HEARD(bench, &agent, "\r\n\r\n");
    assert_true(raw_has(&agent, "GET /api/x%2Fy?a=1 HTTP/1.1\r\n"));
    assert_false(raw_has(&agent, "Bearer"));
    answer(bench, &agent, JSON_OK, "{\"ok\":1}");
    HEARD(bench, &raw, "\r\n\r\n{\"ok\":1}");
    raw_close(&raw);
    raw_close(&agent);
}

/* --- the same again -------------------------------------------------------------------------- */

#define KEYED "POST " ROOT "\r\nIdempotency-Key: k"

static size_t count_sandboxes(struct bench *bench)
{
    return world_provider(bench->world).count;
}

static void a_repeated_key_gets_the_same_answer(void **state)
{
    struct bench *bench = *state;

    expect(bench, KEYED, "{\"labels\":{\"a\":\"1\"}}", "HTTP/1.1 201 ");
    expect(bench, KEYED, "{\"labels\":{\"a\":\"1\"}}", "Idempotency-Replayed: true\r\n");
    assert_int_equal(count_sandboxes(bench), 1);
    expect(bench, KEYED, "{\"labels\":{\"a\":\"2\"}}", "HTTP/1.1 409 ");
    bench->caller.owner = id_new(); /* somebody else's key of the same name */
    expect(bench, KEYED, "{\"labels\":{\"a\":\"2\"}}", "HTTP/1.1 201 ");
    assert_int_equal(count_sandboxes(bench), 2);
    clock_manual_advance(&bench->world->clock, (uint64_t) IDEMPOTENCY_KEPT_MS);
    expect(bench, KEYED, "{\"labels\":{\"a\":\"3\"}}", "HTTP/1.1 201 ");
    assert_int_equal(count_sandboxes(bench), 3);
}

static void a_failure_frees_the_key(void **state)
{
    struct bench *bench = *state;

    expect(bench, KEYED, "{\"name\":\"UPPER\"}", "HTTP/1.1 400 ");
    provider_fake_fail_next(bench->world->provider, PROVIDER_CALL_CREATE, ERR_UNAVAILABLE);
    expect(bench, KEYED, "{}", "HTTP/1.1 503 ");
    expect(bench, KEYED, "{}", "HTTP/1.1 201 ");
}

static void a_second_one_while_the_first_is_under_way_is_refused(void **state)
{
    struct bench *bench = *state;
    struct raw first;

    provider_fake_hold(bench->world->provider, PROVIDER_CALL_CREATE, true);
    first = ask_raw(bench, KEYED, "{}");
    world_wait(bench->world);
    expect(bench, KEYED, "{}", "HTTP/1.1 409 ");
    provider_fake_hold(bench->world->provider, PROVIDER_CALL_CREATE, false);
    HEARD(bench, &first, "HTTP/1.1 201 ");
    raw_close(&first);
}

static void who_left_before_the_answer_finds_it(void **state)
{
    struct bench *bench = *state;
    struct raw first;

    provider_fake_hold(bench->world->provider, PROVIDER_CALL_CREATE, true);
    first = ask_raw(bench, KEYED, "{}");
    world_wait(bench->world);
    raw_close(&first);
    TURN_UNTIL(LOOP(bench), http_server_connections(bench->server) == 0);
    provider_fake_hold(bench->world->provider, PROVIDER_CALL_CREATE, false);
    world_wait(bench->world);
    expect(bench, KEYED, "{}", "Idempotency-Replayed: true\r\n");
    assert_int_equal(count_sandboxes(bench), 1);
}

static void an_answer_of_the_agent_is_kept_too(void **state)
{
    static const char head[] = "POST " ROOT "/demo/exec\r\nIdempotency-Key: k";
    struct bench *bench = *state;
    struct raw raw, agent;

    make_sandbox(bench);
    raw = ask_raw(bench, head, "{\"command\":\"a\"}");
    agent = agent_of(bench);
    HEARD(bench, &agent, "\"plain\":true}");
    answer(bench, &agent, JSON_OK, "{\"exitCode\":0}");
    HEARD(bench, &raw, "\r\n\r\n{\"exitCode\":0}");
    raw_close(&raw);
    raw_close(&agent);
    expect(bench, head, "{\"command\":\"a\"}", "\r\n\r\n{\"exitCode\":0}");
}

/* --- events and documents -------------------------------------------------------------------- */

/* The cursor of the log's event `number`, as the caller sees it, between two texts. */
static const char *with_cursor(struct bench *bench, const char *before, int64_t number,
                               const char *behind)
{
    static char text[256];
    const struct permutation view = event_cursor_view(&bench->api, &bench->caller);

    (void) snprintf(text, sizeof(text), "%s%lld%s", before,
                    (long long) event_cursor_show(&view, number), behind);
    return text;
}

static void events_are_read_and_followed(void **state)
{
    struct bench *bench = *state;
    struct raw raw;

    expect(bench, "POST " ROOT, "{\"name\":\"demo\"}", "HTTP/1.1 201 ");
    expect(bench, "GET /burrow/v1/events", NULL, "\"type\":\"sandbox.created\"");
    expect(bench, "GET " ROOT "/demo/events?limit=1&after=0", NULL,
           with_cursor(bench, "\"next\":", 1, "}"));
    expect(bench, "GET /burrow/v1/events?after=x", NULL, "HTTP/1.1 400 ");
    raw = ask_raw(bench, "GET " ROOT "/demo/events?after=0\r\nAccept: text/event-stream", NULL);
    HEARD(bench, &raw,
          with_cursor(bench, "id: ", 1, "\nevent: sandbox.created\ndata: {\"cursor\":"));
    expect(bench, "PATCH " ROOT "/demo", "{\"labels\":{\"a\":\"1\"}}", "HTTP/1.1 200 ");
    HEARD(bench, &raw, with_cursor(bench, "id: ", 2, "\nevent: sandbox.updated\n"));
    raw_close(&raw);
    raw = ask_raw(bench,
                  with_cursor(bench, "GET /burrow/v1/events?stream=1\r\nLast-Event-ID: ", 1, ""),
                  NULL);
    HEARD(bench, &raw, with_cursor(bench, "id: ", 2, "\n"));
    assert_false(raw_has(&raw, with_cursor(bench, "id: ", 1, "\n")));
    raw_close(&raw);
    bench->caller.owner = id_new();
    expect(bench, "GET /burrow/v1/events", NULL, "{\"events\":[],");
}

static void the_documents_describe_the_table(void **state)
{
    struct bench *bench = *state;
    struct raw raw = ask_raw(bench, "GET /burrow/v1/openapi.json", NULL);
    AUTO(json) json_t *document = NULL;
    const char *body;

    TURN_UNTIL(LOOP(bench), raw_has(&raw, "\"security\":[{\"key\":[]}]}"));
    body = strstr(text_string(&raw.got), "\r\n\r\n") + 4;
    document = json_loads(body, 0, NULL);
    assert_non_null(document);
    assert_non_null(
        json_object_get(json_object_get(document, "paths"), "/burrow/v1/sandboxes/{id}/exec"));
    raw_close(&raw);
    expect(bench, "GET /burrow/v1/docs", NULL, "/burrow/v1/sandboxes/{id}/exec");
    expect(bench, "GET /burrow/v1/version", NULL, "{\"version\":\"");
}

int main(void)
{
#define NATIVE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        NATIVE_TEST(a_sandbox_is_made_found_changed_and_destroyed),
        NATIVE_TEST(what_is_wrong_is_named),
        NATIVE_TEST(a_key_that_only_looks_changes_nothing_and_sees_no_values),
        NATIVE_TEST(a_command_is_translated_and_its_answer_passed_on),
        NATIVE_TEST(errors_of_the_agent_have_our_shape),
        NATIVE_TEST(a_file_comes_with_its_range_and_no_scripts),
        NATIVE_TEST(the_container_api_is_passed_through_but_not_ours),
        NATIVE_TEST(a_repeated_key_gets_the_same_answer),
        NATIVE_TEST(a_failure_frees_the_key),
        NATIVE_TEST(a_second_one_while_the_first_is_under_way_is_refused),
        NATIVE_TEST(who_left_before_the_answer_finds_it),
        NATIVE_TEST(an_answer_of_the_agent_is_kept_too),
        NATIVE_TEST(events_are_read_and_followed),
        NATIVE_TEST(the_documents_describe_the_table),
    };

    return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
