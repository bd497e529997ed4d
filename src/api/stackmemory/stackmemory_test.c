#include "api/dialect_testing.h"
#include "api/stackmemory/stackmemory.h"
#include "api/stackmemory/stackmemory_internal.h"

#define OK_RESULT "{\"success\":true,\"exitCode\":0,\"stdout\":\"hi\",\"stderr\":\"\"}"

static int setup(void **state)
{
    *state = dialect_bench(stackmemory_mount);
    return 0;
}

static int teardown(void **state)
{
    bench_free(*state);
    return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

static void names_are_trimmed_and_lowered(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    assert_string_equal(stackmemory_name("  Demo_1-x ", &pool), "demo_1-x");
    assert_string_equal(stackmemory_name("0a", &pool), "0a");
    assert_non_null(stackmemory_name(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &pool));
}

static void names_that_are_none_are_not_taken(void **state)
{
    static const char *const names[] = {
        "",
        " ",
        "a",
        "-a",
        "_a",
        "a b",
        "a.b",
        "a/b",
        "\xc3\xbc\xc3\xbc",
        "..",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_null(stackmemory_name(names[i], &pool));
}

static void a_bad_name_is_a_400_of_its_own(void **state)
{
    static const char *const lines[] = {
        "POST /v1/sandboxes/a/exec",        "POST /v1/sandboxes/-x/bootstrap",
        "POST /v1/sandboxes/a.b/destroy",   "GET /v1/sandboxes/x%20y/ls",
        "GET /v1/sandboxes/a/files?path=x", "PUT /v1/sandboxes/a/files?path=x",
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct raw raw = ask_with(bench, lines[i], "");

        HEARD(bench, &raw, "HTTP/1.1 400 ");
        HEARD(bench, &raw, "\"ok\": false");
        HEARD(bench, &raw, "\"error\": \"invalid_sandbox_id\"");
        raw_close(&raw);
    }
}

/* --- exec ------------------------------------------------------------------------------------ */

static void a_command_with_arguments_needs_no_shell(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "POST /v1/sandboxes/Demo/exec",
                              "{\"command\":\"bash\",\"args\":[\"-lc\",\"echo $A 'x'\"],"
                              "\"cwd\":\"/tmp\",\"timeoutMs\":5000}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute HTTP/1.1",
           "{\"argv\":[\"bash\",\"-lc\",\"echo $A 'x'\"],\"cwd\":\"/tmp\",\"timeoutMs\":5000}",
           OK_RESULT);
    HEARD(bench, &raw, "HTTP/1.1 200 OK");
    HEARD(bench, &raw, "application/json; charset=utf-8");
    HEARD(bench, &raw, "\"sandboxId\": \"demo\",\n  \"sessionId\": null,\n  \"result\": {");
    HEARD(bench, &raw, "\"stdout\": \"hi\"");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_command_alone_is_for_the_shell(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw =
        ask_with(bench, "POST /v1/sandboxes/demo/exec", "{\"command\":\"echo $A\",\"args\":[]}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "{\"command\":\"echo $A\"}", OK_RESULT);
    HEARD(bench, &raw, "\"ok\": true");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_session_gets_its_arguments_quoted(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/exec",
                              "{\"command\":\"printf\",\"args\":[\"it's\",\"$A\",\"\"],"
                              "\"sessionId\":\"s1\"}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute",
           "{\"command\":\"'printf' 'it'\\\\''s' '$A' ''\",\"sessionId\":\"s1\"}", OK_RESULT);
    HEARD(bench, &raw, "\"sessionId\": \"s1\"");
    raw_close(&raw);
    raw_close(&agent);
}

static void bodies_that_say_nothing_are_refused(void **state)
{
    static const struct {
        const char *body, *status, *error;
    } cases[] = {
        {"", "400", "\"error\": \"missing_command\""},
        {"{}", "400", "\"error\": \"missing_command\""},
        {"{\"command\":\" \"}", "400", "\"error\": \"missing_command\""},
        {"{\"command\":7}", "400", "\"error\": \"invalid_request\""},
        {"{\"command\":\"x\",\"args\":\"y\"}", "400", "\"error\": \"invalid_request\""},
        {"{\"command\":\"x\",\"timeoutMs\":-1}", "400", "\"error\": \"invalid_request\""},
        {"{\"command\"", "400", "\"error\": \"invalid_request\""},
        {"[]", "400", "\"error\": \"invalid_request\""},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/exec", cases[i].body);

        HEARD(bench, &raw, cases[i].status);
        HEARD(bench, &raw, cases[i].error);
        raw_close(&raw);
    }
    assert_int_equal(bench->uses, 0);
}

/* --- files ----------------------------------------------------------------------------------- */

static void a_file_is_read_as_the_agent_tells_it(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "GET /v1/sandboxes/demo/files?path=%2Fa+b%C3%BC", "");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/read", "{\"path\":\"/a b\xc3\xbc\"}",
           "{\"success\":true,\"content\":\"AAE=\",\"encoding\":\"base64\"}");
    HEARD(bench, &raw, "\"path\": \"/a b\xc3\xbc\",\n  \"file\": {");
    HEARD(bench, &raw, "\"encoding\": \"base64\"");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_file_that_is_not_there_is_a_404(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "GET /v1/sandboxes/demo/files?path=/x", "");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"path\":\"/x\"}");
    answer_with(bench, &agent, "404 Not Found",
                "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no such file\"}");
    HEARD(bench, &raw, "HTTP/1.1 404 ");
    HEARD(bench, &raw, "\"error\": \"not_found\",\n  \"details\": \"no such file\"");
    raw_close(&raw);
    raw_close(&agent);
}

static void the_bytes_of_a_file_pass_through(void **state)
{
    static const char bytes[] = "\0\xff\r\n\0end";
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "PUT /v1/sandboxes/demo/files?path=/b%26c HTTP/1.1\r\n"
                                         "Host: a.test\r\nContent-Length: 8\r\n\r\n");
    struct raw agent;

    raw_send_bytes(&raw, &bench->web.loop, bytes, sizeof(bytes) - 1);
    agent = bench_agent(bench);
    HEARD(bench, &agent, "PUT /burrow/file?path=%2Fb%26c HTTP/1.1");
    HEARD(bench, &agent, "end");
    assert_non_null(memmem(agent.got.data, agent.got.length, bytes, sizeof(bytes) - 1));
    answer_with(bench, &agent, "200 OK", "{\"success\":true,\"bytesWritten\":8}");
    HEARD(bench, &raw, "\"path\": \"/b&c\",\n  \"bytes\": 8\n}");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_path_is_needed(void **state)
{
    static const char *const lines[] = {
        "GET /v1/sandboxes/demo/files",
        "GET /v1/sandboxes/demo/files?path=", "PUT /v1/sandboxes/demo/files"};
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct raw raw = ask_with(bench, lines[i], "");

        HEARD(bench, &raw, "HTTP/1.1 400 ");
        HEARD(bench, &raw, "\"error\": \"missing_path\"");
        raw_close(&raw);
    }
}

static void a_listing_has_text_and_entries(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "GET /v1/sandboxes/demo/ls", "");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute",
           "{\"argv\":[\"/bin/ls\",\"-la\",\"--\",\"/workspace\"]}",
           "{\"success\":true,\"exitCode\":0,\"stdout\":\"total 0\"}");
    ANSWER(bench, &agent, "POST /api/list-files",
           "{\"path\":\"/workspace\",\"options\":{\"includeHidden\":true}}",
           "{\"success\":true,\"files\":[{\"name\":\"a\"}]}");
    HEARD(bench, &raw, "\"stdout\": \"total 0\"");
    HEARD(bench, &raw, "\"entries\": [\n    {\n      \"name\": \"a\"\n");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_listing_that_fails_is_told_by_ls(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "GET /v1/sandboxes/demo/ls?path=/none", "");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "\"/none\"",
           "{\"success\":false,\"exitCode\":2,\"stderr\":\"no\"}");
    HEARD(bench, &raw, "\"ok\": true");
    HEARD(bench, &raw, "\"exitCode\": 2");
    HEARD(bench, &raw, "\"entries\": []");
    raw_close(&raw);
    raw_close(&agent);
}

/* In every state of the walk; what it held is freed, as the sanitizer sees. */
static void who_leaves_or_fails_in_a_listing_leaves_nothing(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "GET /v1/sandboxes/demo/ls", "");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "/bin/ls", "{\"success\":true,\"exitCode\":0}");
    HEARD(bench, &agent, "POST /api/list-files");
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&agent));
    raw_close(&agent);
    raw = ask_with(bench, "GET /v1/sandboxes/demo/ls", "");
    agent = bench_agent(bench);
    ANSWER(bench, &agent, "POST /api/execute", "/bin/ls", "{\"success\":true,\"exitCode\":0}");
    HEARD(bench, &agent, "POST /api/list-files");
    raw_close(&agent);
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    HEARD(bench, &raw, "\"details\": \"list the entries: ");
    raw_close(&raw);
}

/* --- bootstrap ------------------------------------------------------------------------------- */

#define URL "https://git.test/a.git"

static void a_bootstrap_clones_and_leaves_a_marker(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/bootstrap",
                              "{\"repoUrl\":\"https://me:SECRET@git.test/a.git\",\"depth\":1}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "\"sh\",\"/workspace/repo\"",
           "{\"success\":false,\"exitCode\":1,\"stdout\":\"\"}");
    ANSWER(bench, &agent, "POST /api/git/checkout",
           "{\"repoUrl\":\"https://me:SECRET@git.test/a.git\",\"targetDir\":\"/workspace/repo\","
           "\"depth\":1}",
           "{\"success\":true}");
    HEARD(bench, &agent, "\"path\":\"/workspace/.stackmemory-cloudflare-spike.json\"");
    HEARD(bench, &agent, "\\\"repoUrl\\\":\\\"" URL "\\\"}");
    assert_false(raw_has(&agent, "SECRET"));
    answer_with(bench, &agent, "200 OK", "{\"success\":true}");
    HEARD(bench, &raw, "\"type\": \"gitCheckout\",\n      \"repoUrl\": \"" URL "\"");
    HEARD(bench, &raw,
          "\"branch\": \"default\",\n      \"depth\": 1,\n      \"alreadyThere\": false");
    HEARD(bench, &raw, "\"type\": \"writeFile\"");
    assert_false(raw_has(&raw, "SECRET"));
    raw_close(&raw);
    raw_close(&agent);
}

static void a_second_bootstrap_leaves_the_clone_alone(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw =
        ask_with(bench, "POST /v1/sandboxes/demo/bootstrap",
                 "{\"repoUrl\":\"" URL "\",\"targetDir\":\"mine\",\"branch\":\"next\"}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "\"/workspace/mine\"",
           "{\"success\":true,\"exitCode\":0,\"stdout\":\"" URL "\\n\"}");
    ANSWER(bench, &agent, "POST /api/write", "bootstrappedAt", "{\"success\":true}");
    HEARD(bench, &raw,
          "\"branch\": \"next\",\n      \"depth\": null,\n      \"alreadyThere\": true");
    raw_close(&raw);
    raw_close(&agent);
}

static void another_repository_in_the_folder_is_not_taken_for_it(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw =
        ask_with(bench, "POST /v1/sandboxes/demo/bootstrap", "{\"repoUrl\":\"" URL "\"}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "/workspace/repo",
           "{\"success\":true,\"exitCode\":0,\"stdout\":\"" URL "x\\n\"}");
    HEARD(bench, &agent, "POST /api/git/checkout");
    answer_with(bench, &agent, "500 Oops",
                "{\"code\":\"GIT_CLONE_FAILED\",\"message\":\"not an empty directory\"}");
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    HEARD(bench, &raw, "\"details\": \"clone the repository: not an empty directory\"");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_bootstrap_of_nothing_writes_the_marker(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/bootstrap", "");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/write", "\\\"repoUrl\\\":null}", "{\"success\":true}");
    HEARD(bench, &raw, "\"steps\": [\n    {\n      \"type\": \"writeFile\"");
    raw_close(&raw);
    raw_close(&agent);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void destroying_twice_succeeds_twice(void **state)
{
    struct visit_bench *bench = *state;

    for (int i = 0; i < 2; i++) {
        struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/destroy", "");

        HEARD(bench, &raw, "HTTP/1.1 200 ");
        HEARD(bench, &raw, "\"destroyed\": true");
        raw_close(&raw);
    }
    assert_int_equal(destroyed_count, 1);
}

static void a_sandbox_comes_to_be_by_its_first_use(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw, agent;

    bench->is_there = false;
    raw = ask_with(bench, "POST /v1/sandboxes/demo/exec", "{\"command\":\"true\"}");
    TURN_UNTIL(&bench->web.loop, bench->created != NULL);
    bench->is_there = true;
    bench->created(bench->created_context, NULL, &bench->sandbox, true);
    agent = bench_agent(bench);
    ANSWER(bench, &agent, "POST /api/execute", "{\"command\":\"true\"}", OK_RESULT);
    HEARD(bench, &raw, "\"ok\": true");
    raw_close(&raw);
    raw_close(&agent);
}

static void what_is_stored_is_asked_of_the_domain(void **state)
{
    static const struct {
        const char *verb, *body, *asked, *answer;
    } cases[] = {
        {"mount", "{}", "mount /persist project-data /projects/demo/ ours - - -",
         "\"mode\": \"remoteR2\""},
        {"mount", "{\"localBucket\":true,\"mountPath\":\"/data/\",\"prefix\":\"p/q\"}",
         "mount /data project-data /p/q/ ours - - -", "\"prefix\": \"/p/q/\""},
        {"backup", "{\"name\":\"n\",\"ttl\":60,\"useGitignore\":true}",
         "backup - n 60 gitignore 0 -", "\"id\": \"" STORED_ID "\""},
        {"backup", "{\"dir\":\"/home/x\",\"excludes\":[\"a\",\"b\"],\"compression\":\"zstd\"}",
         "backup /home/x - 0 2 zstd", "\"dir\": \"/home/x\""},
        {"restore", "{\"backup\":{\"id\":\"" STORED_ID "\",\"dir\":\"/app\"}}",
         "restore " STORED_ID " /app", "\"restored\": true"},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(text) struct text line = TEXT_INIT(128);
        struct raw raw;

        text_format(&line, "POST /v1/sandboxes/demo/%s", cases[i].verb);
        raw = ask_with(bench, text_string(&line), cases[i].body);
        HEARD(bench, &raw, "\"ok\": true");
        HEARD(bench, &raw, cases[i].answer);
        assert_string_equal(stored.asked, cases[i].asked);
        raw_close(&raw);
    }
    stored.failure = ERR_BACKUP_EXPIRED;
    {
        struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/restore",
                                  "{\"backup\":{\"id\":\"" STORED_ID "\"}}");

        HEARD(bench, &raw, "\"error\": \"backup_expired\"");
        assert_true(raw_has(&raw, "HTTP/1.1 400"));
        raw_close(&raw);
    }
    assert_int_equal(bench->uses, 0);
}

static void a_bootstrap_mounts_first(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "POST /v1/sandboxes/demo/bootstrap",
                              "{\"mountProjectData\":true,\"localBucket\":true}");
    struct raw agent = bench_agent(bench);

    assert_string_equal(stored.asked, "mount /persist project-data /projects/demo/ ours - - -");
    ANSWER(bench, &agent, "POST /api/write", "\\\"mounted\\\":true", "{\"success\":true}");
    HEARD(bench, &raw, "\"type\": \"mountBucket\"");
    assert_true(raw_has(&raw, "\"mode\": \"localBucket\""));
    raw_close(&raw);
    raw_close(&agent);
    stored.failure = ERR_UNAVAILABLE;
    raw = ask_with(bench, "POST /v1/sandboxes/demo/bootstrap", "{\"mountProjectData\":true}");
    HEARD(bench, &raw, "\"ok\": false");
    raw_close(&raw);
}

static void what_is_not_there_says_so(void **state)
{
    static const struct {
        const char *line, *body, *status, *error;
    } cases[] = {
        {"POST /v1/sandboxes/demo/mount", "{\"mountPath\":\"x\"}", "400", "mountPath"},
        {"POST /v1/sandboxes/demo/backup", "{\"ttl\":0}", "400", "invalid_backup_config"},
        {"POST /v1/sandboxes/demo/restore", "{}", "400", "\"error\": \"missing_backup\""},
        {"POST /v1/sandboxes/demo/restore", "{\"backup\":{\"id\":\"x\"}}", "400",
         "\"error\": \"invalid_backup_config\""},
        {"POST /v1/sandboxes/demo/nothing", "", "404", "\"error\": \"not_found\""},
        {"GET /v1/sandboxes/demo/exec", "", "404", "\"error\": \"not_found\""},
        {"GET /v1/sandboxes/demo/terminal", "", "404", "\"error\": \"not_found\""},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct raw raw = ask_with(bench, cases[i].line, cases[i].body);

        HEARD(bench, &raw, "\"ok\": false");
        assert_true(raw_has(&raw, cases[i].status));
        assert_true(raw_has(&raw, cases[i].error));
        raw_close(&raw);
    }
    assert_int_equal(bench->uses, 0);
}

static void the_terminal_is_the_agents(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(
        bench, "GET /v1/sandboxes/demo/terminal?session=a%26b&cols=100&token=SECRET HTTP/1.1\r\n"
               "Host: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "GET /ws/pty?sessionId=a%26b&cols=100 HTTP/1.1");
    assert_false(raw_has(&agent, "SECRET"));
    SAY(bench, &agent,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    HEARD(bench, &raw, "HTTP/1.1 101 ");
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&agent));
    raw_close(&agent);
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
}

#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_trimmed_and_lowered),
        cmocka_unit_test(names_that_are_none_are_not_taken),
        BENCH_TEST(a_bad_name_is_a_400_of_its_own),
        BENCH_TEST(a_command_with_arguments_needs_no_shell),
        BENCH_TEST(a_command_alone_is_for_the_shell),
        BENCH_TEST(a_session_gets_its_arguments_quoted),
        BENCH_TEST(bodies_that_say_nothing_are_refused),
        BENCH_TEST(a_file_is_read_as_the_agent_tells_it),
        BENCH_TEST(a_file_that_is_not_there_is_a_404),
        BENCH_TEST(the_bytes_of_a_file_pass_through),
        BENCH_TEST(a_path_is_needed),
        BENCH_TEST(a_listing_has_text_and_entries),
        BENCH_TEST(a_listing_that_fails_is_told_by_ls),
        BENCH_TEST(who_leaves_or_fails_in_a_listing_leaves_nothing),
        BENCH_TEST(a_bootstrap_clones_and_leaves_a_marker),
        BENCH_TEST(a_second_bootstrap_leaves_the_clone_alone),
        BENCH_TEST(another_repository_in_the_folder_is_not_taken_for_it),
        BENCH_TEST(a_bootstrap_of_nothing_writes_the_marker),
        BENCH_TEST(destroying_twice_succeeds_twice),
        BENCH_TEST(a_sandbox_comes_to_be_by_its_first_use),
        BENCH_TEST(what_is_stored_is_asked_of_the_domain),
        BENCH_TEST(a_bootstrap_mounts_first),
        BENCH_TEST(what_is_not_there_says_so),
        BENCH_TEST(the_terminal_is_the_agents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
