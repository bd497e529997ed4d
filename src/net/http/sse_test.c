#include "net/http/http_testing.h"
#include "net/http/sse.h"

/* --- writing, through a real server --------------------------------------------------------- */

static void gone(struct http_request *request)
{
    (void) request;
}

static void send_events(struct http_request *request)
{
    const char *last = sse_last_event_id(request);

    request->on_gone = gone;
    text_format(&web_of(request)->told, "[%s]", last ? last : "none");
    sse_begin(request);
    sse_send(request, "1", "greeting", "hello", 5);
    sse_send(request, NULL, NULL, "two\nlines\r\nand\ra third", 22);
    sse_send(request, "x\nid: forged", "y\revent: forged", "safe", 4);
    sse_send(request, NULL, NULL, "", 0);
    sse_keep_alive(request);
    http_reply_end(request);
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/events", .handle = send_events}};

static struct http_mount mount = {
    .name = "test", .routes = routes, .route_count = ARRAY_COUNT(routes)};

static int setup(void **state)
{
    struct web *web = test_calloc(1, sizeof(*web));

    web_init(web);
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

static void ask(struct web *web, const char *request, struct raw *raw)
{
    *raw = raw_connect(web->port);
    raw_send(raw, &web->loop, request);
    TURN_UNTIL(&web->loop, raw_is_over(raw));
}

static void events_have_their_form(void **state)
{
    static const char expected[] = "id: 1\nevent: greeting\ndata: hello\n\n"
                                   "data: two\ndata: lines\ndata: and\ndata: a third\n\n"
                                   "data: safe\n\n"
                                   "data: \n\n"
                                   ":\n\n";
    struct raw raw;

    ask(*state, "GET /events HTTP/1.0\r\n\r\n", &raw); /* 1.0: no chunks in between */
    assert_true(raw_has(&raw, "\r\nContent-Type: text/event-stream\r\n"));
    assert_true(raw_has(&raw, "\r\nCache-Control: no-cache\r\n"));
    assert_string_equal(strstr(text_string(&raw.got), "\r\n\r\n") + 4, expected);
    raw_close(&raw);
}

static void the_cursor_comes_from_header_or_query(void **state)
{
    static const struct {
        const char *request, *told;
    } rows[] = {
        {"GET /events HTTP/1.0\r\n\r\n", "[none]"},
        {"GET /events HTTP/1.0\r\nLast-Event-ID: 7\r\n\r\n", "[7]"},
        {"GET /events?lastEventId=8%2B HTTP/1.0\r\n\r\n", "[8+]"},
        {"GET /events?lastEventId=8 HTTP/1.0\r\nlast-event-id: 9\r\n\r\n", "[9]"},
        {"GET /events?lastEventId=8 HTTP/1.0\r\nLast-Event-ID:\r\n\r\n", "[8]"},
    };
    struct web *web = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct raw raw;

        text_clear(&web->told);
        ask(web, rows[i].request, &raw);
        assert_string_equal(text_string(&web->told), rows[i].told);
        raw_close(&raw);
    }
}

/* --- reading -------------------------------------------------------------------------------- */

struct listener_side {
    struct sse_reader reader;
    struct text told;
};

static void note_event(struct sse_reader *reader, const struct sse_event *event)
{
    struct listener_side *side = CONTAINER_OF(reader, struct listener_side, reader);

    assert_int_equal(event->data[event->length], '\0');
    text_format(&side->told, "%s/%s/%s;", event->type, event->id, event->data);
}

static void side_init(struct listener_side *side)
{
    sse_reader_init(&side->reader, note_event);
    side->told = (struct text) TEXT_INIT(RAW_MAX);
}

static void side_done(struct listener_side *side)
{
    sse_reader_done(&side->reader);
    text_done(&side->told);
}

static const struct {
    const char *name, *bytes, *told;
} streams[] = {
    {"one", "data: a\n\n", "message//a;"},
    {"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "message//a;message//b;"},
    {"CR", "data: a\r\rdata: b\r\r", "message//a;message//b;"},
    {"mixed", "data: a\r\n\ndata: b\n\r\n", "message//a;message//b;"},
    {"lines", "data: a\ndata:b\ndata:  c\n\n", "message//a\nb\n c;"},
    {"empty data", "data\n\ndata:\n\ndata: \ndata\n\n", "message//;message//;message//\n;"},
    {"type", "event: x\ndata: a\n\ndata: b\n\n", "x//a;message//b;"},
    {"id stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
     "message/1/a;message/1/b;message//c;"},
    {"no data", "event: x\nid: 4\n\ndata: a\n\n", "message/4/a;"},
    {"comments", ": hi\n:\n\ndata: a\n: more\n\n", "message//a;"},
    {"unknown fields", "retry: 5\nfoo: bar\ndata: a\nDATA: b\ndatas: c\n\n", "message//a;"},
    {"byte-order mark",
     "\xef\xbb\xbf"
     "data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",
     "message//a;"},
    {"unfinished", "data: a\n\ndata: b\n", "message//a;"},
    {"colons", "data: a: b:\n\n", "message//a: b:;"},
};

static void events_come_out_whole_however_they_are_cut(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(streams); i++) {
        size_t length = strlen(streams[i].bytes);

        for (size_t cut = 0; cut <= length + 1; cut++) {
            struct listener_side side;

            side_init(&side);
            for (size_t at = 0; cut > length && at < length; at++) /* byte by byte */
                assert_int_equal(sse_reader_feed(&side.reader, streams[i].bytes + at, 1), 0);
            if (cut <= length) {
                assert_int_equal(sse_reader_feed(&side.reader, streams[i].bytes, cut), 0);
                assert_int_equal(
                    sse_reader_feed(&side.reader, streams[i].bytes + cut, length - cut), 0);
            }
            if (strcmp(text_string(&side.told), streams[i].told) != 0)
                fail_msg("%s, cut at %zu: %s", streams[i].name, cut, text_string(&side.told));
            side_done(&side);
        }
    }
}

static void what_is_written_is_read_back(void **state)
{
    struct listener_side side;
    struct raw raw;
    const char *body;

    ask(*state, "GET /events HTTP/1.0\r\n\r\n", &raw);
    body = strstr(text_string(&raw.got), "\r\n\r\n") + 4;
    side_init(&side);
    assert_int_equal(sse_reader_feed(&side.reader, body, strlen(body)), 0);
    assert_string_equal(text_string(&side.told), "greeting/1/hello;message/1/two\nlines\nand\na "
                                                 "third;message/1/safe;message/1/;");
    side_done(&side);
    raw_close(&raw);
}

static void events_over_the_limit_break_the_reader(void **state)
{
    static const struct {
        const char *start, *again;
        size_t count;
    } rows[] = {
        {"data: ", "0123456789abcdef", SSE_EVENT_MAX / 16 + 100}, /* one line */
        {"", "data: 0123456789abcdef\n", SSE_EVENT_MAX / 16 + 100},
        {"", "0123456789abcdef", SSE_EVENT_MAX / 16 + 100}, /* a name without end */
        {"id: ", "0123456789abcdef", 200},
        {"event: ", "0123456789abcdef", 200},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct listener_side side;
        int r = 0;

        side_init(&side);
        (void) sse_reader_feed(&side.reader, rows[i].start, strlen(rows[i].start));
        for (size_t n = 0; n < rows[i].count && r == 0; n++)
            r = sse_reader_feed(&side.reader, rows[i].again, strlen(rows[i].again));
        if (r == 0)
            r = sse_reader_feed(&side.reader, "\n\n", 2);
        assert_int_equal(r, -EMSGSIZE);
        assert_int_equal(sse_reader_feed(&side.reader, "data: x\n\n", 9), -EMSGSIZE);
        assert_int_equal(side.told.length, 0);
        side_done(&side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_have_their_form, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cursor_comes_from_header_or_query, setup, teardown),
        cmocka_unit_test(events_come_out_whole_however_they_are_cut),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_back, setup, teardown),
        cmocka_unit_test(events_over_the_limit_break_the_reader),
    };

    return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
