/* Who lasts on a server, and may not stay: requests and guests of one caller go, others' stay. */
#include "net/http/http_testing.h"
#include "net/http/sse.h"
#include "net/websocket/websocket_http.h"

#define HOST    "Host: a\r\n"
#define EVE     HOST "X-Who: eve\r\n"
#define ADA     HOST "X-Who: ada\r\n"
#define COMMENT "\n: the key was revoked\n"
#define SHAKE                                                                                      \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

struct who {
    char name[8];
};

/* --- a server ------------------------------------------------------------------------------- */

static int review_authorize(struct http_request *request, void *data, struct error *err)
{
    const char *name = http_request_header(request, "x-who");
    struct who *who = pool_alloc(&request->pool, sizeof(*who));

    (void) data;
    (void) err;
    if (name)
        (void) snprintf(who->name, sizeof(who->name), "%s", name);
    request->caller = name ? who : NULL;
    return 0;
}

/* Eve may not stay. */
static int eve_goes(void *data, const void *caller, struct error *err)
{
    const struct who *who = caller;

    (void) data;
    if (strcmp(who->name, "eve") != 0)
        return 0;
    return error_set(err, ERR_UNAUTHENTICATED, 0, "the key was revoked");
}

static void review_gone(struct http_request *request)
{
    text_append(&web_of(request)->told, "gone ");
}

static void review_wait(struct http_request *request)
{
    request->on_gone = review_gone;
    text_append(&web_of(request)->told, "waits ");
}

static void review_collected(struct http_request *request, const char *body, size_t length)
{
    http_reply(request, 200, NULL, body, length);
}

static void review_collect(struct http_request *request)
{
    request->on_gone = review_gone;
    http_request_collect(request, review_collected);
}

static void review_download(struct http_request *request)
{
    request->on_gone = review_gone;
    http_reply_begin(request, 200, "text/plain", HTTP_LENGTH_UNKNOWN);
    http_reply_write(request, "some", 4);
}

static void review_events(struct http_request *request)
{
    request->on_gone = review_gone;
    sse_begin(request);
    sse_send(request, "1", "news", "x", 1);
}

/* As a proxy does it: the type is among the headers. And it stops inside an event. */
static void review_passed_events(struct http_request *request)
{
    request->on_gone = review_gone;
    (void) http_reply_header(request, "content-type", "text/event-stream; charset=utf-8");
    http_reply_begin(request, 200, NULL, HTTP_LENGTH_UNKNOWN);
    http_reply_write(request, "data: ha", 8);
}

static void review_heard(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                         size_t length)
{
    (void) websocket_send(ws, kind, bytes, length);
}

static void review_socket(struct http_request *request)
{
    static const struct websocket_options options = {.role = WEBSOCKET_SERVER};
    static const struct websocket_events events = {.on_message = review_heard};
    struct error error;

    assert_non_null(websocket_accept(request, &options, &events, NULL, &error));
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/wait", .handle = review_wait},
    {.method = "POST", .pattern = "/collect", .handle = review_collect},
    {.method = "GET", .pattern = "/download", .handle = review_download},
    {.method = "GET", .pattern = "/events", .handle = review_events},
    {.method = "GET", .pattern = "/passed", .handle = review_passed_events},
    {.method = "GET", .pattern = "/socket", .handle = review_socket},
};

static int setup(void **state)
{
    static struct http_mount mount = {
        .name = "test", .routes = routes, .route_count = ARRAY_COUNT(routes)};
    struct web *web = test_calloc(1, sizeof(*web));

    web_init(web);
    web->options.authorize = review_authorize;
    web->options.caller_size = sizeof(struct who);
    web_serve(web, &mount);
    *state = web;
    return 0;
}

static int teardown(void **state)
{
    web_done(*state);
    test_free(*state);
    return 0;
}

static struct raw asks(struct web *web, const char *bytes)
{
    struct raw raw = raw_connect(web->port);

    raw_send(&raw, &web->loop, bytes);
    return raw;
}

#define HEARD(web, raw, text) TURN_UNTIL(&(web)->loop, raw_has((raw), (text)))
#define TOLD(web, text)       TURN_UNTIL(&(web)->loop, strstr(text_string(&(web)->told), (text)))

static void review(struct web *web, size_t requests, size_t guests)
{
    const struct http_expelled expelled = http_server_review(web->server, eve_goes, NULL);

    assert_int_equal(expelled.requests, requests);
    assert_int_equal(expelled.guests, guests);
}

/* --- requests ------------------------------------------------------------------------------- */

static void who_waits_for_an_answer_is_told(void **state)
{
    struct web *web = *state;
    struct raw eve = asks(web, "GET /wait HTTP/1.1\r\n" EVE "\r\n"), ada;

    TOLD(web, "waits ");
    ada = asks(web, "GET /wait HTTP/1.1\r\n" ADA "\r\n");
    TOLD(web, "waits waits ");
    review(web, 1, 0);
    TURN_UNTIL(&web->loop, raw_is_over(&eve));
    assert_true(raw_has(&eve, "HTTP/1.1 401 ") && raw_has(&eve, "the key was revoked"));
    assert_true(raw_has(&eve, "\r\nWWW-Authenticate: Bearer\r\n"));
    assert_true(raw_has(&eve, "\r\nConnection: close\r\n"));
    assert_string_equal(text_string(&web->told), "waits waits gone ");
    assert_false(raw_is_over(&ada));
    review(web, 0, 0);
    raw_close(&eve);
    raw_close(&ada);
}

static void an_upload_ends_with_an_answer(void **state)
{
    struct web *web = *state;
    struct raw eve = asks(web, "POST /collect HTTP/1.1\r\n" EVE "Content-Length: 10\r\n"
                               "Expect: 100-continue\r\n\r\n");
    struct raw ada = asks(web, "POST /collect HTTP/1.1\r\n" ADA "Content-Length: 10\r\n\r\nhalf ");

    HEARD(web, &eve, "100 Continue");
    raw_send(&eve, &web->loop, "half");
    for (int i = 0; i < 3; i++)
        testing_turn(&web->loop);
    review(web, 1, 0);
    TURN_UNTIL(&web->loop, raw_is_over(&eve));
    assert_true(raw_has(&eve, "HTTP/1.1 401 "));
    assert_string_equal(text_string(&web->told), "gone ");
    raw_send(&ada, &web->loop, "other");
    HEARD(web, &ada, "half other");
    raw_close(&eve);
    raw_close(&ada);
}

static void a_download_is_cut(void **state)
{
    struct web *web = *state;
    struct raw eve = asks(web, "GET /download HTTP/1.1\r\n" EVE "\r\n"), ada;

    HEARD(web, &eve, "some\r\n");
    ada = asks(web, "GET /download HTTP/1.1\r\n" ADA "\r\n");
    HEARD(web, &ada, "some\r\n");
    review(web, 1, 0);
    TURN_UNTIL(&web->loop, raw_is_over(&eve));
    assert_false(raw_has(&eve, "\r\n0\r\n")); /* it did not end as if it were whole */
    assert_string_equal(text_string(&web->told), "gone ");
    assert_false(raw_is_over(&ada));
    raw_close(&eve);
    raw_close(&ada);
}

static void a_stream_of_events_ends_with_a_comment(void **state)
{
    struct web *web = *state;
    struct raw own = asks(web, "GET /events HTTP/1.1\r\n" EVE "\r\n");
    struct raw passed = asks(web, "GET /passed HTTP/1.1\r\n" EVE "\r\n");

    HEARD(web, &own, "data: x\n\n");
    HEARD(web, &passed, "data: ha");
    review(web, 2, 0);
    TURN_UNTIL(&web->loop, raw_is_over(&own) && raw_is_over(&passed));
    assert_true(raw_has(&own, "\r\n17\r\n" COMMENT "\r\n0\r\n\r\n"));
    /* No empty line: what was half sent is no event. */
    assert_true(raw_has(&passed, "data: ha\r\n17\r\n" COMMENT "\r\n0\r\n\r\n"));
    assert_string_equal(text_string(&web->told), "gone gone ");
    raw_close(&own);
    raw_close(&passed);
}

static void a_kept_connection_stays_until_it_asks_again(void **state)
{
    struct web *web = *state;
    struct raw eve = asks(web, "POST /collect HTTP/1.1\r\n" EVE "Content-Length: 3\r\n\r\none");

    HEARD(web, &eve, "one");
    review(web, 0, 0);
    raw_send(&eve, &web->loop, "POST /collect HTTP/1.1\r\n" EVE "Content-Length: 3\r\n\r\ntwo");
    HEARD(web, &eve, "two");
    raw_close(&eve);
}

/* --- guests --------------------------------------------------------------------------------- */

static void a_websocket_is_closed_with_a_reason(void **state)
{
    static const char closed[] = "\x88\x15\x03\xf0the key was revoked";
    struct web *web = *state;
    struct raw eve = asks(web, "GET /socket HTTP/1.1\r\n" EVE SHAKE "\r\n");
    struct raw ada = asks(web, "GET /socket HTTP/1.1\r\n" ADA SHAKE "\r\n");
    struct raw nobody = asks(web, "GET /socket HTTP/1.1\r\n" HOST SHAKE "\r\n");

    HEARD(web, &eve, "\r\n\r\n");
    HEARD(web, &ada, "\r\n\r\n");
    HEARD(web, &nobody, "\r\n\r\n");
    review(web, 0, 1);
    HEARD(web, &eve, closed);
    review(web, 0, 0); /* it is asked once, however long it takes */
    raw_send_bytes(&eve, &web->loop, "\x81\x82\0\0\0\0jk", 8);
    raw_send_bytes(&eve, &web->loop, "\x88\x82\0\0\0\0\x03\xf0", 8);
    TURN_UNTIL(&web->loop, raw_is_over(&eve));
    assert_false(raw_has(&eve, "jk"));
    raw_send_bytes(&ada, &web->loop, "\x81\x82\0\0\0\0jk", 8);
    HEARD(web, &ada, "jk");
    assert_false(raw_is_over(&nobody));
    raw_close(&eve);
    raw_close(&ada);
    raw_close(&nobody);
    TURN_UNTIL(&web->loop, http_server_connections(web->server) == 0);
}

#define REVIEW_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REVIEW_TEST(who_waits_for_an_answer_is_told),
        REVIEW_TEST(an_upload_ends_with_an_answer),
        REVIEW_TEST(a_download_is_cut),
        REVIEW_TEST(a_stream_of_events_ends_with_a_comment),
        REVIEW_TEST(a_kept_connection_stays_until_it_asks_again),
        REVIEW_TEST(a_websocket_is_closed_with_a_reason),
    };

    return cmocka_run_group_tests_name("http_review", tests, NULL, NULL);
}
