/* The bridge between a client and an agent: commands, files, archives, sessions, terminals. */
#include "api/bridge/bridge_testing.h"

/* --- commands -------------------------------------------------------------------------------- */

static void a_program_is_run_without_a_shell_and_its_events_are_passed_on(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/exec", "",
                         "{\"argv\":[\"/bin/sh\",\"-lc\",\"exit 3\"],\"timeout_ms\":5000.5,"
                         "\"cwd\":\"a/..\"}");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent,
          "{\"argv\":[\"/bin/sh\",\"-lc\",\"exit 3\"],\"encoding\":\"base64\","
          "\"cwd\":\"/workspace\",\"timeoutMs\":5000}");
    assert_true(raw_has(&agent, "POST /api/execute/stream "));
    assert_true(raw_has(&agent, "X-Session-Id: __DISABLE_SESSION__\r\n"));
    HEARD(bench, &raw, "Content-Type: text/event-stream\r\n"); /* before the command says a word */
    assert_true(raw_has(&raw, "Cache-Control: no-cache\r\n"));
    answer(bench, &agent, "200 OK", "text/event-stream",
           "data: {\"type\":\"start\",\"command\":\"x\"}\n\n"
           "data: {\"type\":\"stdout\",\"data\":\"aGkK\"}\n\n"
           "data: {\"type\":\"stderr\",\"data\":\"b28K\"}\n\n"
           "data: {\"type\":\"complete\",\"exitCode\":3}\n\n"
           "data: {\"type\":\"stdout\",\"data\":\"bGF0ZQ==\"}\n\n");
    HEARD(bench, &raw, "event: exit\ndata: {\"exit_code\":3}\n\n");
    HEARD(bench, &raw, "\r\n0\r\n\r\n");
    assert_true(raw_has(&raw, "event: stdout\ndata: aGkK\n\n"));
    assert_true(raw_has(&raw, "event: stderr\ndata: b28K\n\n"));
    assert_false(raw_has(&raw, "bGF0ZQ=="));
    assert_false(raw_has(&raw, "start"));
    assert_int_equal(bench->uses, 0);
    close_both(&raw, &agent);
}

static void a_name_is_for_the_shell_and_so_is_everything_in_a_session(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/exec", "", "{\"argv\":[\"echo\",\"it's\"]}");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"command\":\"echo $'it\\\\'s'\",\"encoding\":\"base64\"}");
    close_both(&raw, &agent);
    raw = ask(bench, "POST", "sandbox/demo/exec", "Session-Id: mine\r\n",
              "{\"argv\":[\"/bin/ls\"],\"timeout_ms\":\"5\"}");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "{\"command\":\"/bin/ls\",\"encoding\":\"base64\"}");
    assert_true(raw_has(&agent, "X-Session-Id: mine\r\n"));
    close_both(&raw, &agent);
}

static void a_program_that_is_not_there_is_left_to_the_shell(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/exec", "", "{\"argv\":[\"/no/such\"]}");
    struct raw agent = bench_agent(bench);

    for (int round = 0; round < 2; round++) {
        HEARD(bench, &agent, round ? "{\"command\":\"/no/such\"" : "{\"argv\":[\"/no/such\"]");
        answer(bench, &agent, "500 Oops", "application/json",
               "{\"code\":\"COMMAND_EXECUTION_ERROR\",\"message\":\"no room\"}");
    }
    HEARD(bench, &raw,
          "event: error\ndata: {\"error\":\"exec failed: no room\","
          "\"code\":\"exec_transport_error\"}\n\n");
    HEARD(bench, &raw, "\r\n0\r\n\r\n");
    close_both(&raw, &agent);
}

static void a_command_whose_end_is_not_told_failed(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/exec", "", "{\"argv\":[\"/bin/ls\"]}");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\"argv\"");
    answer(bench, &agent, "200 OK", "text/event-stream",
           "data: {\"type\":\"stdout\",\"data\":\"aGkK\"}\n\n");
    HEARD(bench, &raw, "\"code\":\"exec_transport_error\"");
    close_both(&raw, &agent);
    raw = ask(bench, "POST", "sandbox/demo/exec", "", "{\"argv\":[\"/bin/ls\"]}");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "\"argv\"");
    raw_close(&agent);
    HEARD(bench, &raw, "\"code\":\"exec_transport_error\"");
    raw_close(&raw);
}

static void running_is_whether_the_agent_answers(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "GET", "sandbox/demo/running", "", "");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "GET /api/ping ");
    answer(bench, &agent, "200 OK", "application/json", "{\"success\":true}");
    HEARD(bench, &raw, "{\"running\":true}");
    close_both(&raw, &agent);
    raw = ask(bench, "GET", "sandbox/demo/running", "", "");
    agent = bench_agent(bench);
    raw_close(&agent);
    HEARD(bench, &raw, "{\"running\":false}");
    raw_close(&raw);
}

/* --- files and archives ---------------------------------------------------------------------- */

static void a_file_is_read_as_it_is(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "GET", "sandbox/demo/file/workspace/a%20b/%C3%A9", "", "");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"path\":\"/workspace/a b/\xc3\xa9\",\"encoding\":\"none\"}");
    answer(bench, &agent, "200 OK", "text/html", "data: <b>");
    HEARD(bench, &raw, "\r\n\r\ndata: <b>");
    assert_true(raw_has(&raw, "Content-Type: application/octet-stream\r\n"));
    assert_true(raw_has(&raw, "Content-Length: 9\r\n"));
    close_both(&raw, &agent);
}

static void what_the_agent_says_of_a_file_is_told(void **state)
{
    static const struct {
        const char *status, *body, *expected;
    } rows[] = {
        {"404 Not Found", "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no\"}",
         "{\"error\":\"File not found: /workspace/x\",\"code\":\"workspace_read_not_found\"}"},
        {"404 Not Found", "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no\"}", "HTTP/1.1 404"},
        {"400 Bad", "{\"code\":\"IS_DIRECTORY\",\"message\":\"a folder\"}",
         "{\"error\":\"read failed: a folder\",\"code\":\"exec_transport_error\"}"},
        {"400 Bad", "{\"code\":\"IS_DIRECTORY\",\"message\":\"a folder\"}", "HTTP/1.1 502"},
        {"500 Oops", "no JSON at all", "\"code\":\"exec_transport_error\""},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct raw raw = ask(bench, "GET", "sandbox/demo/file/workspace/x", "", "");
        struct raw agent = bench_agent(bench);

        HEARD(bench, &agent, "\"encoding\":\"none\"}");
        answer(bench, &agent, rows[i].status, "application/json", rows[i].body);
        HEARD(bench, &raw, rows[i].expected);
        close_both(&raw, &agent);
    }
}

static void a_file_that_breaks_off_does_not_look_whole(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "GET", "sandbox/demo/file/workspace/x", "", "");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\"encoding\":\"none\"}");
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    HEARD(bench, &raw, "half");
    raw_close(&agent);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&raw));
    assert_false(raw_has(&raw, "\r\n0\r\n\r\n"));
    raw_close(&raw);
}

static void a_file_is_written_as_it_comes(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "PUT", "sandbox/demo/file/workspace/a%20b/c", "", "content");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\ncontent");
    assert_true(raw_has(&agent, "PUT /burrow/file?path=%2Fworkspace%2Fa%20b%2Fc HTTP/1.1\r\n"));
    answer(bench, &agent, "200 OK", "application/json", "{\"success\":true}");
    HEARD(bench, &raw, "{\"ok\":true}");
    close_both(&raw, &agent);
    raw = ask(bench, "PUT", "sandbox/demo/file/workspace/x", "", "content");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "content");
    answer(bench, &agent, "500 Oops", "application/json",
           "{\"code\":\"NO_SPACE\",\"message\":\"full\"}");
    HEARD(bench, &raw,
          "{\"error\":\"write failed: full\",\"code\":\"workspace_archive_write_error\"}");
    assert_true(raw_has(&raw, "HTTP/1.1 502"));
    close_both(&raw, &agent);
}

static void bodies_have_a_limit(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "PUT /v1/sandbox/demo/file/workspace/x HTTP/1.1\r\n" HOST
                                         "Content-Length: 33554433\r\n\r\n");

    HEARD(bench, &raw, "\"code\":\"payload_too_large\"");
    assert_true(raw_has(&raw, "HTTP/1.1 413"));
    raw_close(&raw);
}

static void the_workspace_is_persisted_without_what_is_excluded(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/persist?excludes=./a%20b,,c%2Fd,./", "", "");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "GET /burrow/archive?path=%2Fworkspace&excludes=a%20b,c%2Fd HTTP/1.1\r\n");
    answer(bench, &agent, "200 OK", "application/x-tar", "tar");
    HEARD(bench, &raw, "\r\n\r\ntar");
    assert_true(raw_has(&raw, "Content-Type: application/octet-stream\r\n"));
    close_both(&raw, &agent);
    raw = ask(bench, "POST", "sandbox/demo/persist", "", "");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "GET /burrow/archive?path=%2Fworkspace HTTP/1.1\r\n");
    answer(bench, &agent, "404 Not Found", "application/json",
           "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no\"}");
    HEARD(bench, &raw,
          "{\"error\":\"persist failed: no\",\"code\":\"workspace_archive_read_error\"}");
    close_both(&raw, &agent);
}

static void an_archive_is_unpacked_however_it_comes(void **state)
{
    static const char *const bodies[] = {
        "Content-Length: 3\r\n\r\ntar",
        "Transfer-Encoding: chunked\r\n\r\n3\r\ntar\r\n0\r\n\r\n",
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        char request[512];
        struct raw raw, agent;

        (void) snprintf(request, sizeof(request),
                        "POST /v1/sandbox/demo/hydrate HTTP/1.1\r\n" HOST "%s", bodies[i]);
        raw = bench_client(bench, request);
        agent = bench_agent(bench);
        HEARD(bench, &agent, i ? "3\r\ntar\r\n0\r\n\r\n" : "Content-Length: 3\r\n\r\ntar");
        assert_true(raw_has(&agent, "PUT /burrow/archive?path=%2Fworkspace&links=any "));
        answer(bench, &agent, i ? "400 Bad" : "200 OK", "application/json",
               i ? "{\"code\":\"VALIDATION_FAILED\",\"message\":\"bad\"}" : "{}");
        HEARD(bench, &raw,
              i ? "{\"error\":\"hydrate failed: bad\",\"code\":"
                  "\"workspace_archive_write_error\"}"
                : "{\"ok\":true}");
        close_both(&raw, &agent);
    }
}

static void an_empty_archive_in_chunks_is_empty(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "POST /v1/sandbox/demo/hydrate HTTP/1.1\r\n" HOST
                                         "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "0\r\n\r\n");
    answer(bench, &agent, "400 Bad", "application/json", "{\"message\":\"it ends early\"}");
    HEARD(bench, &raw, "Empty tar payload");
    close_both(&raw, &agent);
    raw = bench_client(bench, "POST /v1/sandbox/demo/hydrate HTTP/1.1\r\n" HOST
                              "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    TURN_UNTIL(&bench->web.loop, bench->uses == 1);
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
}

/* --- sessions and terminals ------------------------------------------------------------------ */

static void sessions_are_made_and_ended(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/session", "",
                         "{\"id\":\"s1\",\"cwd\":\"/tmp\",\"env\":{\"A\":\"b\"},\"more\":1}");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"id\":\"s1\",\"cwd\":\"/tmp\",\"env\":{\"A\":\"b\"}}");
    assert_true(raw_has(&agent, "POST /api/session/create "));
    answer(bench, &agent, "409 Conflict", "application/json",
           "{\"code\":\"SESSION_ALREADY_EXISTS\",\"message\":\"there\"}");
    HEARD(bench, &raw, "\r\n\r\n{\"id\":\"s1\"}");
    close_both(&raw, &agent);
    raw = ask(bench, "POST", "sandbox/demo/session", "", "no JSON");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "{\"id\":\"session-");
    answer(bench, &agent, "400 Bad", "application/json",
           "{\"code\":\"VALIDATION_FAILED\",\"message\":\"bad\"}");
    HEARD(bench, &raw, "{\"error\":\"session create failed: bad\",\"code\":\"session_error\"}");
    close_both(&raw, &agent);
    raw = ask(bench, "DELETE", "sandbox/demo/session/s1", "", "");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "{\"sessionId\":\"s1\"}");
    answer(bench, &agent, "200 OK", "application/json", "{\"success\":true}");
    HEARD(bench, &raw, "{\"success\":true,\"sessionId\":\"s1\",\"timestamp\":\"");
    close_both(&raw, &agent);
}

static void a_terminal_is_passed_through_without_the_key(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw, agent;
    char expected[128];

    raw = bench_client(bench,
                       "GET /v1/sandbox/demo/pty?cols=100&authorization=Bearer%20k&shell=/bin/sh"
                       " HTTP/1.1\r\n" HOST "Authorization: Bearer k\r\n"
                       "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    agent = bench_agent(bench);
    (void) snprintf(expected, sizeof(expected),
                    "GET /ws/pty?cols=100&rows=24&sessionId=sandbox-%s&shell=%%2Fbin%%2Fsh ",
                    bench->sandbox.id.text);
    HEARD(bench, &agent, expected);
    HEARD(bench, &agent, "\r\n\r\n");
    assert_false(raw_has(&agent, "uthorization"));
    SAY(bench, &agent,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello");
    HEARD(bench, &raw, "hello");
    assert_int_equal(bench->uses, 1);
    close_both(&raw, &agent);
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BRIDGE_TEST(a_program_is_run_without_a_shell_and_its_events_are_passed_on),
        BRIDGE_TEST(a_name_is_for_the_shell_and_so_is_everything_in_a_session),
        BRIDGE_TEST(a_program_that_is_not_there_is_left_to_the_shell),
        BRIDGE_TEST(a_command_whose_end_is_not_told_failed),
        BRIDGE_TEST(running_is_whether_the_agent_answers),
        BRIDGE_TEST(a_file_is_read_as_it_is),
        BRIDGE_TEST(what_the_agent_says_of_a_file_is_told),
        BRIDGE_TEST(a_file_that_breaks_off_does_not_look_whole),
        BRIDGE_TEST(a_file_is_written_as_it_comes),
        BRIDGE_TEST(bodies_have_a_limit),
        BRIDGE_TEST(the_workspace_is_persisted_without_what_is_excluded),
        BRIDGE_TEST(an_archive_is_unpacked_however_it_comes),
        BRIDGE_TEST(an_empty_archive_in_chunks_is_empty),
        BRIDGE_TEST(sessions_are_made_and_ended),
        BRIDGE_TEST(a_terminal_is_passed_through_without_the_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
