/* Redirects: which are followed, what goes along, which are refused. */
#include "net/outbound/outbound_test_kit.h"

static bool serve_hello(struct kit_exchange *exchange)
{
    return kit_reply(exchange, "", "hello", 5);
}

static bool serve_echo(struct kit_exchange *exchange)
{
    if (!kit_read_body(exchange))
        return false;
    return kit_reply(exchange, "", text_string(&exchange->body), exchange->body.length);
}

static bool serve_redirect(struct kit_exchange *exchange, const char *status, const char *location)
{
    AUTO(text) struct text head = TEXT_INIT(4096);

    if (!kit_read_body(exchange))
        return false;
    text_format(&head, "HTTP/1.1 %s\r\nLocation: %s\r\nContent-Length: 4\r\n\r\ngone", status,
                location);
    return kit_say(exchange, text_string(&head));
}

static bool serve_moved(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "302 Found", "echo-head?from=moved#fragment");
}

static bool serve_see_other(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "303 See Other", "/echo-head");
}

static bool serve_temporary(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "307 Temporary Redirect", "/echo");
}

static bool serve_loop(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "301 Moved Permanently", "/loop");
}

static bool serve_to_private(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "302 Found", "http://10.11.12.13/secret-path");
}

static bool serve_to_file(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "302 Found", "file:///etc/passwd");
}

static bool serve_to_password(struct kit_exchange *exchange)
{
    return serve_redirect(exchange, "302 Found", "http://user:geheim@127.0.0.1/");
}

/* To the same server under another name: another origin. */
static bool serve_to_other_origin(struct kit_exchange *exchange)
{
    char location[128];

    (void) snprintf(location, sizeof(location), "http://localhost:%u/echo-head",
                    (unsigned int) exchange->server->port);
    return serve_redirect(exchange, "307 Temporary Redirect", location);
}

static bool serve_long_redirect(struct kit_exchange *exchange)
{
    static const char zeros[1024];

    if (!kit_say(exchange, "HTTP/1.1 302 Found\r\nLocation: /hello\r\n\r\n"))
        return false;
    for (int i = 0; i < 10240; i++) {
        if (!kit_write(exchange, zeros, sizeof(zeros)))
            return false;
    }
    return false;
}

static bool serve_echo_head(struct kit_exchange *exchange)
{
    if (!kit_read_body(exchange))
        return false;
    return kit_reply(exchange, "", exchange->head, strlen(exchange->head));
}

static const struct kit_route routes[] = {
    {.path = "/hello", .serve = serve_hello},
    {.path = "/echo", .serve = serve_echo},
    {.path = "/echo-head", .serve = serve_echo_head},
    {.path = "/moved", .serve = serve_moved},
    {.path = "/see-other", .serve = serve_see_other},
    {.path = "/temporary", .serve = serve_temporary},
    {.path = "/loop", .serve = serve_loop},
    {.path = "/to-private", .serve = serve_to_private},
    {.path = "/to-file", .serve = serve_to_file},
    {.path = "/to-password", .serve = serve_to_password},
    {.path = "/to-other-origin", .serve = serve_to_other_origin},
    {.path = "/long-redirect", .serve = serve_long_redirect},
    {.path = NULL},
};

static int set_up(void **state)
{
    *state = kit_new(routes);
    return 0;
}

static void redirects_are_responses_unless_asked_for(void **state)
{
    struct probe probe = PROBE_INIT;

    probe_run(*state, &probe, (struct outbound_call){.url = "/moved"});
    assert_done(&probe, 302);
    assert_string_equal(text_string(&probe.body), "gone");
    text_done(&probe.body);
}

static const struct outbound_header secret_headers[] = {{"Authorization", "Bearer geheim"},
                                                        {"X-Api-Key", "geheim"},
                                                        {"Cookie", "a=geheim"},
                                                        {"Accept", "text/x-test"},
                                                        {"Content-Type", "x/test"}};

static struct outbound_call secret_call(const char *method, const char *url)
{
    return (struct outbound_call){.method = method,
                                  .url = url,
                                  .headers = secret_headers,
                                  .header_count = ARRAY_COUNT(secret_headers),
                                  .body = strcmp(method, "POST") == 0 ? "body" : NULL,
                                  .body_length = strcmp(method, "POST") == 0 ? 4 : 0,
                                  .limits = {.redirects = 3}};
}

static void redirects_are_followed_with_what_may_go_along(void **state)
{
    static const struct {
        const char *method;
        const char *url;
        const char *request_line;
        bool secrets;
        bool content_type;
    } rows[] = {
        {"GET", "/moved", "GET /echo-head?from=moved HTTP/1.1\r\n", true, true},
        {"POST", "/moved", "GET /echo-head?from=moved HTTP/1.1\r\n", true, false},
        {"POST", "/see-other", "GET /echo-head HTTP/1.1\r\n", true, false},
        {"GET", "/to-other-origin", "GET /echo-head HTTP/1.1\r\n", false, true},
        {"POST", "/to-other-origin", "POST /echo-head HTTP/1.1\r\n", false, true},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;
        const char *seen;
        char value[64];

        probe_run(*state, &probe, secret_call(rows[i].method, rows[i].url));
        assert_done(&probe, 200);
        seen = text_string(&probe.body);
        assert_memory_equal(seen, rows[i].request_line, strlen(rows[i].request_line));
        assert_int_equal(strstr(seen, "geheim") != NULL, rows[i].secrets);
        assert_int_equal(kit_header(seen, "authorization", value, sizeof(value)) != NULL,
                         rows[i].secrets);
        assert_int_equal(kit_header(seen, "content-type", value, sizeof(value)) != NULL,
                         rows[i].content_type);
        assert_string_equal(kit_header(seen, "accept", value, sizeof(value)), "text/x-test");
        text_done(&probe.body);
    }
}

static void a_temporary_redirect_sends_the_bytes_again_but_no_stream(void **state)
{
    struct probe bytes = PROBE_INIT, stream = PROBE_INIT;

    probe_run(*state, &bytes, secret_call("POST", "/temporary"));
    assert_done(&bytes, 200);
    assert_string_equal(text_string(&bytes.body), "body");
    text_done(&bytes.body);

    stream.produce = produce_ten;
    probe_run(*state, &stream,
              (struct outbound_call){.method = "POST",
                                     .url = "/temporary",
                                     .body_streamed = true,
                                     .streamed_length = 10,
                                     .limits = {.redirects = 3}});
    assert_failed(&stream, ERR_UPSTREAM, "cannot be sent twice");
    assert_int_equal(stream.heads, 0);
}

static void bad_redirects_are_refused(void **state)
{
    static const struct {
        const char *url;
        enum err_code code;
        const char *reason;
    } rows[] = {
        {"/loop", ERR_UPSTREAM, "more than 3 redirects"},
        {"/to-private", ERR_FORBIDDEN, "http://10.11.12.13:80: 10.11.12.13 is private"},
        {"/to-file", ERR_UPSTREAM, "target was refused"},
        {"/to-password", ERR_UPSTREAM, "user name or password"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct probe probe = PROBE_INIT;

        probe_run(*state, &probe, secret_call("GET", rows[i].url));
        assert_failed(&probe, rows[i].code, rows[i].reason);
        assert_int_equal(probe.heads, 0);
        assert_null(strstr(probe.err.message, "geheim"));
        assert_null(strstr(probe.err.message, "secret-path"));
    }
}

static void a_redirect_with_an_endless_body_is_followed_all_the_same(void **state)
{
    struct probe probe = PROBE_INIT;

    probe_run(*state, &probe,
              (struct outbound_call){.url = "/long-redirect", .limits = {.redirects = 1}});
    assert_done(&probe, 200);
    assert_string_equal(text_string(&probe.body), "hello");
    text_done(&probe.body);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(redirects_are_responses_unless_asked_for),
        TEST(redirects_are_followed_with_what_may_go_along),
        TEST(a_temporary_redirect_sends_the_bytes_again_but_no_stream),
        TEST(bad_redirects_are_refused),
        TEST(a_redirect_with_an_endless_body_is_followed_all_the_same),
    };

    return cmocka_run_group_tests(tests, kit_begin, kit_end);
}
