/* The bridge as far as it needs no agent: what is checked, made, unmade and refused. */
#include "api/bridge/bridge_testing.h"
#include "api/http/openapi.h"

/* --- answers without an agent ---------------------------------------------------------------- */

static const struct {
    const char *method, *path, *headers, *body, *expected;
} plain_answers[] = {
    {"POST", "sandbox", "", "", "{\"id\":\""},
    {"POST", "sandbox", "", "{\"timeoutMs\":1}", "HTTP/1.1 200"},
    {"POST", "sandbox/Demo/exec", "", "{}", "Invalid sandbox ID format"},
    {"DELETE", "sandbox/demo-1", "", "", "\"code\":\"invalid_request\""},
    {"DELETE", "sandbox/nobody", "", "", "HTTP/1.1 204"},
    {"POST", "sandbox/demo/exec", "", "{", "Invalid JSON body"},
    {"POST", "sandbox/demo/exec", "", "{}", "argv must be a non-empty array"},
    {"POST", "sandbox/demo/exec", "", "{\"argv\":[]}", "argv must be a non-empty array"},
    {"POST", "sandbox/demo/exec", "", "{\"argv\":\"ls\"}", "argv must be a non-empty array"},
    {"POST", "sandbox/demo/exec", "", "{\"argv\":[1]}", "HTTP/1.1 400"},
    {"POST", "sandbox/demo/exec", "Session-Id: a..b\r\n", "{\"argv\":[\"ls\"]}",
     "Invalid session ID format"},
    {"POST", "sandbox/demo/exec", "", "{\"argv\":[\"ls\"],\"cwd\":\"/etc\"}", "HTTP/1.1 403"},
    {"POST", "sandbox/demo/exec", "", "{\"argv\":[\"ls\"],\"cwd\":\"/etc\"}",
     "{\"error\":\"cwd must resolve to a location within /workspace\","
     "\"code\":\"invalid_request\"}"},
    {"GET", "sandbox/demo/file/", "", "", "file path must not be empty"},
    {"GET", "sandbox/demo/file/etc/passwd", "", "", "HTTP/1.1 403"},
    {"GET", "sandbox/demo/file/workspace/%2E%2E/etc/passwd", "", "", "HTTP/1.1 403"},
    {"GET", "sandbox/demo/file/workspace%2F..%2Fetc", "", "", "HTTP/1.1 403"},
    {"GET", "sandbox/demo/file/workspace/%FF", "", "", "HTTP/1.1 400"},
    {"PUT", "sandbox/demo/file/tmp/x", "", "x",
     "{\"error\":\"path must resolve to a location within /workspace\","
     "\"code\":\"invalid_request\"}"},
    {"GET", "sandbox/demo/file/workspace/x", "Session-Id: a b\r\n", "", "HTTP/1.1 400"},
    {"POST", "sandbox/demo/persist?excludes=a,../b", "", "",
     "exclude paths must not contain \\\"..\\\""},
    {"POST", "sandbox/demo/hydrate", "", "", "Empty tar payload"},
    {"GET", "sandbox/demo/pty", "", "", "WebSocket upgrade required"},
    {"GET", "sandbox/demo/pty", "", "", "HTTP/1.1 400"},
    {"POST", "sandbox/demo/mount", "", "x", "Invalid JSON body"},
    {"POST", "sandbox/demo/mount", "", "{\"bucket\":\"\"}", "bucket must be a non-empty string"},
    {"POST", "sandbox/demo/mount", "", "{\"mountPath\":\"x\"}",
     "mountPath must be an absolute path (start with /)"},
    {"POST", "sandbox/demo/mount", "", "{\"mountPath\":\"/x\"}", "options must be an object"},
    {"POST", "sandbox/demo/mount", "",
     "{\"mountPath\":\"/x\",\"binding\":\"B\",\"options\":{\"endpoint\":\"e\"}}",
     "Provide either binding or options.endpoint, not both"},
    {"POST", "sandbox/demo/mount", "",
     "{\"mountPath\":\"/x\",\"binding\":\"B\",\"options\":{\"s3fsOptions\":[1]}}",
     "options.s3fsOptions must be an array of strings when provided"},
    {"POST", "sandbox/demo/mount", "",
     "{\"mountPath\":\"/x\",\"binding\":\"B\",\"options\":{\"credentials\":{}}}",
     "options.credentials must include string accessKeyId and secretAccessKey"},
    {"POST", "sandbox/demo/mount", "", "{\"mountPath\":\"/x\",\"options\":{}}",
     "binding must be a non-empty string for R2 binding mounts"},
    {"POST", "sandbox/demo/mount", "", "{\"mountPath\":\"/x\",\"options\":{\"endpoint\":\"e\"}}",
     "bucket must be a non-empty string for remote mounts"},
    {"POST", "sandbox/demo/mount", "",
     "{\"binding\":\"B\",\"mountPath\":\"/x\",\"options\":{\"s3fsOptions\":[\"umask=0\"]}}",
     "has an option that is not known here"},
    {"POST", "sandbox/demo/mount", "", "{\"binding\":\"B\",\"mountPath\":\"/..\",\"options\":{}}",
     "mountPath must not resolve to / (filesystem root)"},
    {"POST", "sandbox/demo/unmount", "", "{}", "mountPath must be a non-empty string"},
    {"POST", "sandbox/demo/unmount", "", "{\"mountPath\":\"/a/..\"}",
     "mountPath must not resolve to / (filesystem root)"},
    {"POST", "sandbox/demo/tunnel/80", "", "", "Invalid port"},
    {"POST", "sandbox/demo/tunnel/3000", "", "", "Invalid port"},
    {"POST", "sandbox/demo/tunnel/65536", "", "", "Invalid port"},
    {"DELETE", "sandbox/demo/tunnel/x", "", "", "HTTP/1.1 400"},
    {"POST", "sandbox/demo/tunnel/8080", "", "{", "Invalid JSON body"},
    {"POST", "sandbox/demo/tunnel/8080", "", "{\"name\":1}", "name must be a string when provided"},
    {"POST", "sandbox/demo/tunnel/8080", "", "{\"name\":\"-\"}", "DNS label"},
    {"GET", "pool/stats", "", "",
     "{\"warm\":7,\"assigned\":3,\"total\":10,\"config\":{\"warmTarget\":8,"
     "\"refreshInterval\":1000,\"maxInstances\":0,\"scaleBatchSize\":1},"
     "\"maxInstances\":null}"},
    {"GET", "openapi.json", "", "", "\"/v1/sandbox/{id}/file/{path}\""},
    {"GET", "openapi.html", "", "", "text/html; charset=utf-8"},
    {"GET", "openapi", "", "", "<code>/v1/pool/stats</code>"},
};

static void what_needs_no_agent_is_answered(void **state)
{
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(plain_answers); i++) {
        struct raw raw = ask(bench, plain_answers[i].method, plain_answers[i].path,
                             plain_answers[i].headers, plain_answers[i].body);

        HEARD(bench, &raw, plain_answers[i].expected);
        assert_int_equal(bench->uses, 0);
        raw_close(&raw);
    }
}

static void buckets_are_mounted_and_unmounted(void **state)
{
    static const struct {
        const char *verb, *body, *asked;
    } cases[] = {
        {"mount", "{\"binding\":\"DATA\",\"mountPath\":\"/a/./b/\",\"options\":{}}",
         "mount /a/b DATA - ours - - -"},
        {"mount",
         "{\"bucket\":\"b\",\"mountPath\":\"/x\",\"provider\":\"r2\",\"options\":{\"endpoint\":"
         "\"https://s3.test\",\"readOnly\":true,\"prefix\":\"/p/\",\"credentials\":{"
         "\"accessKeyId\":\"k\",\"secretAccessKey\":\"s\"},\"s3fsOptions\":["
         "\"use_path_request_style\",\"endpoint=eu\",\"retries=3\"]}}",
         "mount /x b /p/ foreign read-only https://s3.test eu s"},
        {"unmount", "{\"mountPath\":\"/mnt/../x\"}", "unmount /x"},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(text) struct text path = TEXT_INIT(64);
        struct raw raw;

        text_format(&path, "sandbox/demo/%s", cases[i].verb);
        raw = ask(bench, "POST", text_string(&path), "", cases[i].body);
        HEARD(bench, &raw, "{\"ok\":true}");
        assert_string_equal(stored.asked, cases[i].asked);
        raw_close(&raw);
        stored.failure = ERR_UNAVAILABLE;
        raw = ask(bench, "POST", text_string(&path), "", cases[i].body);
        HEARD(bench, &raw, "mount_error\"}");
        assert_true(raw_has(&raw, "HTTP/1.1 502"));
        raw_close(&raw);
        stored.failure = ERR_NONE;
    }
    assert_int_equal(bench->uses, 0);
}

static void the_document_is_whole(void **state)
{
    const struct http_mount *mount = &((struct visit_bench *) *state)->mount;
    AUTO(text) struct text document = TEXT_INIT(1 << 20);
    json_t *root, *terminal, *replies;

    assert_int_equal(openapi_write(mount, 1, "Title", "1", &document), 0);
    root = json_loads(text_string(&document), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_int_equal(json_object_size(json_object_get(root, "paths")), 19);
    terminal = json_object_get(
        json_object_get(json_object_get(root, "paths"), "/v1/sandbox/{id}/pty"), "get");
    assert_int_equal(json_array_size(json_object_get(terminal, "parameters")), 6);
    replies = json_object_get(terminal, "responses");
    assert_non_null(json_object_get(replies, "101"));
    assert_non_null(json_object_get(replies, "400"));
    assert_non_null(json_object_get(replies, "502"));
    json_decref(root);
}

static void a_terminal_of_an_odd_size_is_refused(void **state)
{
    static const char *const queries[] = {"cols=x", "rows=-1", "cols=0", "rows=12.5",
                                          "cols=80&rows=99999"};
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        char request[512];
        struct raw raw;

        (void) snprintf(request, sizeof(request),
                        "GET /v1/sandbox/demo/pty?%s HTTP/1.1\r\n" HOST
                        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                        queries[i]);
        raw = bench_client(bench, request);
        HEARD(bench, &raw, "cols and rows must be valid numbers");
        raw_close(&raw);
    }
}

static void the_pool_is_filled_and_drained(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "pool/prime", "", "");

    HEARD(bench, &raw, "{\"ok\":true}");
    raw_close(&raw);
    raw = ask(bench, "POST", "pool/shutdown-prewarmed", "", "");
    HEARD(bench, &raw, "{\"ok\":true}");
    raw_close(&raw);
    assert_int_equal(asked.primed, 1);
    assert_int_equal(asked.drained, 1);
    asked.owner.quota.running = 5;
    raw = ask(bench, "GET", "pool/stats", "", "");
    HEARD(bench, &raw, "},\"maxInstances\":5}");
    raw_close(&raw);
}

/* --- what is made and unmade ----------------------------------------------------------------- */

static void a_name_nobody_has_makes_a_sandbox_before_anything_is_looked_at(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/fresh/exec", "", "{");

    TURN_UNTIL(&bench->web.loop, bench->created != NULL);
    assert_false(raw_has(&raw, "HTTP"));
    bench->created(bench->created_context, NULL, &bench->sandbox, true);
    HEARD(bench, &raw, "Invalid JSON body");
    raw_close(&raw);
}

static void a_sandbox_that_cannot_be_made_is_told_in_the_words_of_the_pool(void **state)
{
    static const struct {
        enum err_code code;
        const char *expected;
    } rows[] = {
        {ERR_UPSTREAM, "{\"error\":\"pool error: full\",\"code\":\"pool_error\"}"},
        {ERR_UPSTREAM, "HTTP/1.1 502"},
        {ERR_QUOTA, "{\"error\":\"full\",\"code\":\"capacity_exceeded\"}"},
        {ERR_UNAVAILABLE, "{\"error\":\"full\",\"code\":\"capacity_exceeded\"}"},
        {ERR_UNAVAILABLE, "HTTP/1.1 503"},
        {ERR_FORBIDDEN, "{\"error\":\"full\",\"code\":\"forbidden\"}"},
        {ERR_UNAUTHENTICATED, "{\"error\":\"Unauthorized\",\"code\":\"unauthorized\"}"},
        {ERR_TOO_LARGE, "\"code\":\"payload_too_large\""},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error error = {.code = rows[i].code, .message = "full"};
        struct raw raw = ask(bench, "GET", "sandbox/fresh/running", "", "");

        bench->created = NULL;
        TURN_UNTIL(&bench->web.loop, bench->created != NULL);
        bench->created(bench->created_context, &error, NULL, false);
        HEARD(bench, &raw, rows[i].expected);
        raw_close(&raw);
    }
}

static void a_sandbox_is_deleted_and_one_that_is_gone_is_fine(void **state)
{
    struct visit_bench *bench = *state;

    for (int round = 0; round < 2; round++) {
        struct raw raw = ask(bench, "DELETE", "sandbox/demo", "", "");

        HEARD(bench, &raw, "HTTP/1.1 204");
        raw_close(&raw);
        asked.has_failure = true;
    }
    assert_int_equal(asked.destroyed, 2);
}

static void a_tunnel_is_a_preview(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = ask(bench, "POST", "sandbox/demo/tunnel/8080", "", "{\"name\":\"app\"}");
    char expected[256];

    (void) snprintf(expected, sizeof(expected),
                    "{\"id\":\"8080-%s\",\"port\":8080,"
                    "\"url\":\"http://8080-x-token.localhost:8787/\","
                    "\"hostname\":\"8080-x-token.localhost\","
                    "\"createdAt\":\"1970-01-01T00:00:00.000Z\",\"name\":\"app\"}",
                    bench->sandbox.id.text);
    HEARD(bench, &raw, expected);
    raw_close(&raw);
    raw = ask(bench, "DELETE", "sandbox/demo/tunnel/8080", "", "");
    HEARD(bench, &raw, "HTTP/1.1 204");
    raw_close(&raw);
    assert_int_equal(asked.forgotten, 1);
    asked.has_failure = true;
    raw = ask(bench, "DELETE", "sandbox/demo/tunnel/8080", "", "");
    HEARD(bench, &raw, "HTTP/1.1 204");
    raw_close(&raw);
    assert_int_equal(asked.unexposed, 2);
    assert_int_equal(asked.forgotten, 1);
    raw = ask(bench, "POST", "sandbox/demo/tunnel/8080", "", "");
    HEARD(bench, &raw, "{\"error\":\"tunnel failed: there is none\",\"code\":\"tunnel_error\"}");
    raw_close(&raw);
}

static void without_previews_there_are_no_tunnels(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw;

    bench->api.preview = NULL;
    raw = ask(bench, "POST", "sandbox/demo/tunnel/8080", "", "");
    HEARD(bench, &raw, "\"code\":\"tunnel_error\"");
    assert_int_equal(asked.exposed, 0);
    raw_close(&raw);
    raw = ask(bench, "DELETE", "sandbox/demo/tunnel/8080", "", "");
    HEARD(bench, &raw, "HTTP/1.1 204");
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BRIDGE_TEST(what_needs_no_agent_is_answered),
        BRIDGE_TEST(buckets_are_mounted_and_unmounted),
        BRIDGE_TEST(the_document_is_whole),
        BRIDGE_TEST(a_terminal_of_an_odd_size_is_refused),
        BRIDGE_TEST(the_pool_is_filled_and_drained),
        BRIDGE_TEST(a_name_nobody_has_makes_a_sandbox_before_anything_is_looked_at),
        BRIDGE_TEST(a_sandbox_that_cannot_be_made_is_told_in_the_words_of_the_pool),
        BRIDGE_TEST(a_sandbox_is_deleted_and_one_that_is_gone_is_fine),
        BRIDGE_TEST(a_tunnel_is_a_preview),
        BRIDGE_TEST(without_previews_there_are_no_tunnels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
