#include "api/agentpod/agentpod.h"
#include "api/agentpod/agentpod_provider.h"
#include "api/dialect_testing.h"
#include "domain/conversation/conversation.h"
#include "domain/workspace/workspace.h"

#define WRITTEN "{\"success\":true}"

/* --- workspaces ------------------------------------------------------------------------------ */

static bool has_mirror;

bool workspace_find(const struct domain *domain, const struct id *sandbox,
                    struct workspace_state *ret_state)
{
    (void) domain, (void) sandbox, (void) ret_state;
    return has_mirror;
}

void workspace_sync(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    bool freeze, workspace_sync_done *done, void *context)
{
    const struct workspace_synced synced = {.files = 3,
                                            .skipped = 2,
                                            .unchanged = 4,
                                            .removed = 1,
                                            .total_files = 7,
                                            .total_bytes = 70,
                                            .time_ms = 1800000000000};
    const struct error *failure;
    struct error err;

    (void) domain, (void) caller, (void) sandbox;
    assert_true(freeze);
    failure = stored_failure(&err);
    done(context, failure, failure ? NULL : &synced);
}

int backup_check_dir(const char *dir, struct error *err)
{
    (void) dir, (void) err;
    return 0;
}

/* --- agents ---------------------------------------------------------------------------------- */

const struct harness *domain_harness(const struct domain *domain)
{
    (void) domain;
    return NULL;
}

int conversation_check_harness(const struct domain *domain, struct error *err)
{
    (void) domain;
    return error_set(err, ERR_UNAVAILABLE, 0, "no agents");
}

static void a_sync_tells_its_counts(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "POST /sandbox/demo/sync", "");

    HEARD(bench, &raw, "HTTP/1.1 200 ");
    HEARD(bench, &raw,
          "{\"success\":true,\"sandboxId\":\"demo\",\"syncedFiles\":3,\"skippedFiles\":2,"
          "\"unchangedFiles\":4,\"removedFiles\":1,\"totalSize\":70,\"timestamp\":\"2027-01-15T");
    raw_close(&raw);
    assert_int_equal(bench->uses, 0);
}

static void a_sync_that_fails_says_so_in_its_own_way(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw;

    stored.failure = ERR_QUOTA;
    raw = ask_with(bench, "POST /sandbox/demo/sync", "");
    HEARD(bench, &raw, "HTTP/1.1 500 ");
    HEARD(bench, &raw,
          "{\"success\":false,\"error\":\"as the test wanted it\",\"code\":\"quota_exceeded\","
          "\"sandboxId\":\"demo\"}");
    raw_close(&raw);
    bench->is_there = false;
    raw = ask_with(bench, "POST /sandbox/nobody/sync", "");
    HEARD(bench, &raw, "HTTP/1.1 404 ");
    raw_close(&raw);
}

static void a_mirror_is_a_workspace_also_after_an_error(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw;

    has_mirror = true;
    bench->sandbox.status = SANDBOX_ERROR;
    raw = ask_with(bench, "GET /sandbox/demo", "");
    HEARD(bench, &raw, "\"status\":\"error\",\"hasWorkspace\":true");
    raw_close(&raw);
    has_mirror = false;
}

static int setup(void **state)
{
    static const struct agentpod_providers providers = {.image = NULL};
    struct visit_bench *bench = dialect_bench(agentpod_mount);

    bench->api.providers = &providers;
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    bench_free(*state);
    return 0;
}

/* --- create ---------------------------------------------------------------------------------- */

static void the_shortest_create_makes_a_sandbox(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw, agent;

    bench->is_there = false;
    raw = ask_with(bench, "POST /sandbox", "{\"id\":\"demo\",\"userId\":\"user-1\"}");
    TURN_UNTIL(&bench->web.loop, bench->created != NULL);
    bench->is_there = true;
    bench->created(bench->created_context, NULL, &bench->sandbox, true);
    agent = bench_agent(bench);
    ANSWER(bench, &agent, "POST /api/mkdir",
           "{\"path\":\"/home/user/workspace\",\"recursive\":true}", WRITTEN);
    HEARD(bench, &raw, "HTTP/1.1 200 ");
    HEARD(bench, &raw,
          "{\"success\":true,\"status\":\"running\",\"serverPort\":4096,\"sandboxId\":\"demo\","
          "\"opencodeUrl\":\"/sandbox/demo/opencode\",\"filesWritten\":0,\"agentError\":\"no "
          "agents\"}");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_create_clones_configures_and_hides_credentials(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(
        bench, "POST /sandbox",
        "{\"id\":\"demo\",\"gitUrl\":\"https://git.test/a\",\"gitBranch\":\"next\",\"directory\":"
        "\"/code/x\",\"config\":{\"model\":\"m\",\"agents_md\":\"hi\",\"auth\":{\"p\":{\"type\":"
        "\"api\",\"key\":\"SECRET\"}}}}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/execute", "\"sh\",\"/code/x\"",
           "{\"success\":false,\"exitCode\":1}");
    ANSWER(bench, &agent, "POST /api/git/checkout",
           "{\"repoUrl\":\"https://git.test/a\",\"targetDir\":\"/code/x\",\"branch\":\"next\"}",
           WRITTEN);
    ANSWER(bench, &agent, "POST /api/mkdir", "{\"path\":\"/code/x\",\"recursive\":true}", WRITTEN);
    ANSWER(bench, &agent, "POST /api/write", "{\"path\":\"/code/x/AGENTS.md\",\"content\":\"hi\"}",
           WRITTEN);
    ANSWER(bench, &agent, "POST /api/write", "{\"path\":\"/code/x/.opencode/opencode.json\",",
           WRITTEN);
    HEARD(bench, &agent, "POST /api/execute");
    HEARD(bench, &agent, "\"stdin\":\"{\\n  \\\"p\\\": {");
    assert_int_equal(raw_count(&agent, "SECRET"), 1); /* by stdin, never in an argument */
    answer_with(bench, &agent, "200 OK", "{\"success\":true,\"exitCode\":0}");
    HEARD(bench, &raw, "\"filesWritten\":3,\"agentError\":\"no agents\"}");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_home_that_takes_no_credentials_is_an_error(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw =
        ask_with(bench, "POST /sandbox/demo/wake",
                 "{\"config\":{\"auth\":{\"p\":{\"type\":\"api\",\"key\":\"SECRET\"}}}}");
    struct raw agent = bench_agent(bench);

    ANSWER(bench, &agent, "POST /api/mkdir",
           "{\"path\":\"/home/user/workspace\",\"recursive\":true}", WRITTEN);
    ANSWER(bench, &agent, "POST /api/execute", "SECRET",
           "{\"success\":false,\"exitCode\":1,\"stderr\":\"SECRET\"}");
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    HEARD(bench, &raw, "{\"error\":\"place the credentials: ");
    assert_false(raw_has(&raw, "SECRET"));
    raw_close(&raw);
    raw_close(&agent);
}

static void wishes_that_make_no_sense_are_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "[]",
        "{\"id\":\"\"}",
        "{\"id\":7}",
        "{\"id\":\"a\\u0007b\"}",
        "{\"id\":\"a\\u007fb\"}",
        ("{\"id\":"
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}"),
        "{\"id\":\"demo\",\"directory\":\"relative\"}",
        "{\"id\":\"demo\",\"config\":[]}",
        ("{\"id\":\"demo\",\"config\":{\"files\":[{\"type\":\"agent\",\"name\":\"../../x\","
         "\"extension\":\"md\",\"content\":\"\"}]}}"),
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        struct raw raw = ask_with(bench, "POST /sandbox", bodies[i]);

        HEARD(bench, &raw, "HTTP/1.1 400 ");
        HEARD(bench, &raw, "\r\n\r\n{\"error\":\"");
        raw_close(&raw);
    }
    assert_int_equal(bench->uses, 0);
    assert_null(bench->created);
}

/* --- the others ------------------------------------------------------------------------------ */

static void a_status_is_told_in_the_dialects_words(void **state)
{
    static const struct {
        enum sandbox_status status;
        const char *expected;
    } cases[] = {
        {SANDBOX_RUNNING, "\"status\":\"running\",\"hasWorkspace\":true"},
        {SANDBOX_FROZEN, "\"status\":\"sleeping\",\"hasWorkspace\":true"},
        {SANDBOX_HIBERNATED, "\"status\":\"sleeping\",\"hasWorkspace\":true"},
        {SANDBOX_WAKING, "\"status\":\"starting\""},
        {SANDBOX_STOPPED, "\"status\":\"stopped\""},
        {SANDBOX_ERROR, "\"status\":\"error\",\"hasWorkspace\":false"},
        {SANDBOX_UNKNOWN, "\"status\":\"unknown\""},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct raw raw;

        bench->sandbox.status = cases[i].status;
        raw = ask_with(bench, "GET /sandbox/demo", "");
        HEARD(bench, &raw, "{\"sandboxId\":\"demo\",");
        HEARD(bench, &raw, cases[i].expected);
        raw_close(&raw);
    }
    assert_int_equal(bench->uses, 0); /* nobody was woken */
}

static void a_delete_destroys_once_and_is_then_a_404(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "DELETE /sandbox/demo", "");

    HEARD(bench, &raw, "{\"success\":true,\"deleted\":\"demo\"}");
    raw_close(&raw);
    assert_int_equal(destroyed_count, 1);
    raw = ask_with(bench, "DELETE /sandbox/demo", "");
    HEARD(bench, &raw, "HTTP/1.1 404 ");
    raw_close(&raw);
    raw = ask_with(bench, "GET /sandbox/demo", "");
    HEARD(bench, &raw, "HTTP/1.1 404 ");
    HEARD(bench, &raw, "{\"error\":\"");
    raw_close(&raw);
    raw = ask_with(bench, "POST /sandbox/demo/wake", "{}");
    HEARD(bench, &raw, "HTTP/1.1 404 ");
    raw_close(&raw);
}

static void a_path_below_a_sandbox_is_no_reason_to_destroy_it(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask_with(bench, "DELETE /sandbox/demo/file", "");

    HEARD(bench, &raw, "HTTP/1.1 404 ");
    raw_close(&raw);
    assert_int_equal(destroyed_count, 0);
}

static void a_wake_writes_where_the_sandbox_was_made(void **state)
{
    static char folder[] = "/code/y";
    struct visit_bench *bench = *state;
    struct raw raw, agent;

    bench->sandbox.spec.folder = folder;
    raw = ask_with(bench, "POST /sandbox/demo/wake", "{\"config\":{\"agents_md\":\"hi\"}}");
    agent = bench_agent(bench);
    ANSWER(bench, &agent, "POST /api/mkdir", "{\"path\":\"/code/y\",\"recursive\":true}", WRITTEN);
    ANSWER(bench, &agent, "POST /api/write", "{\"path\":\"/code/y/AGENTS.md\"", WRITTEN);
    HEARD(bench, &raw,
          "{\"success\":true,\"status\":\"running\",\"serverPort\":4096,\"restoredFiles\":0,"
          "\"filesWritten\":1,\"agentError\":\"no agents\"}");
    raw_close(&raw);
    raw_close(&agent);
}

#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH_TEST(the_shortest_create_makes_a_sandbox),
        BENCH_TEST(a_create_clones_configures_and_hides_credentials),
        BENCH_TEST(a_home_that_takes_no_credentials_is_an_error),
        BENCH_TEST(wishes_that_make_no_sense_are_refused),
        BENCH_TEST(a_status_is_told_in_the_dialects_words),
        BENCH_TEST(a_delete_destroys_once_and_is_then_a_404),
        BENCH_TEST(a_path_below_a_sandbox_is_no_reason_to_destroy_it),
        BENCH_TEST(a_wake_writes_where_the_sandbox_was_made),
        BENCH_TEST(a_sync_tells_its_counts),
        BENCH_TEST(a_sync_that_fails_says_so_in_its_own_way),
        BENCH_TEST(a_mirror_is_a_workspace_also_after_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
