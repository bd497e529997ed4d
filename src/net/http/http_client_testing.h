/* For tests of the HTTP client: the peer is the test itself, which accepts connections and answers
 * with raw bytes; exchanges write down their events. Included by test programs only. */
#pragma once

#include "net/http/http_client.h"
#include "net/http/http_testing.h"

struct bench {
    struct loop loop;
    struct http_origin_options options;
    struct http_origin *origin;
    int listener;
    char address[SYS_ADDRESS_TEXT_SIZE];
    bool closed;
};

static inline int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));
    struct sys_address address;

    (void) signal(SIGPIPE, SIG_IGN);
    bench->options = (struct http_origin_options) HTTP_ORIGIN_OPTIONS_DEFAULT;
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    bench->listener = sys_socket_listen(&address, 16, 0);
    assert_true(bench->listener >= 0);
    assert_int_equal(sys_socket_local_address(bench->listener, &address), 0);
    sys_address_format(&address, bench->address);
    *state = bench;
    return loop_init(&bench->loop, NULL);
}

static void origin_closed(struct http_origin *origin, void *data)
{
    (void) origin;
    ((struct bench *) data)->closed = true;
}

static inline void close_origin(struct bench *bench)
{
    http_origin_close(TAKE_PTR(bench->origin), origin_closed, bench);
    TURN_UNTIL(&bench->loop, bench->closed);
}

static inline int teardown(void **state)
{
    struct bench *bench = *state;

    if (bench->origin)
        close_origin(bench);
    loop_run(&bench->loop);
    loop_done(&bench->loop);
    (void) fd_close(bench->listener);
    test_free(bench);
    return 0;
}

/* --- an exchange that writes down its events ------------------------------------------------ */

enum event { ON_NONE, ON_HEAD, ON_BODY, ON_END, ON_UPGRADE, ON_FAILURE, ON_DRAIN };

struct talk {
    struct bench *bench;
    struct http_exchange *exchange; /* NULL when it is over */
    struct text told;
    enum event cancel_on;
    struct stream *stream; /* after an upgrade */
    enum err_code code;
    char message[ERROR_MESSAGE_MAX];
    bool over;
    struct talk *next; /* started in on_end or on_failure */
    bool close_origin; /* in on_upgrade */
};

static void talk_start(struct talk *talk, struct bench *bench,
                       const struct http_exchange_request *request);

static const struct http_exchange_request plain_get = {.method = "GET", .target = "/"};

static struct talk *talk_of(const struct http_exchange *exchange)
{
    return http_exchange_data(exchange);
}

static bool cancelled(struct talk *talk, enum event event)
{
    if (talk->cancel_on != event)
        return false;
    http_exchange_cancel(TAKE_PTR(talk->exchange));
    text_append(&talk->told, "cancelled");
    talk->over = true;
    return true;
}

static void talk_head(struct http_exchange *exchange)
{
    struct talk *talk = talk_of(exchange);

    text_format(&talk->told, "%d(", http_exchange_head(exchange)->status);
    (void) cancelled(talk, ON_HEAD);
}

static void talk_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct talk *talk = talk_of(exchange);

    text_append_bytes(&talk->told, bytes, length);
    (void) cancelled(talk, ON_BODY);
}

static void talk_over(struct talk *talk)
{
    talk->exchange = NULL;
    talk->over = true;
    if (talk->next)
        talk_start(TAKE_PTR(talk->next), talk->bench, &plain_get);
}

static void talk_end(struct http_exchange *exchange)
{
    struct talk *talk = talk_of(exchange);

    assert_non_null(http_exchange_head(exchange));
    text_append(&talk->told, ")end");
    talk_over(talk);
}

static void talk_failed(struct http_exchange *exchange, const struct error *error)
{
    struct talk *talk = talk_of(exchange);

    text_append(&talk->told, "failed");
    talk->code = error->code;
    memcpy(talk->message, error->message, sizeof(talk->message));
    talk_over(talk);
}

static void stream_data(struct stream *stream, const char *bytes, size_t length)
{
    text_append_bytes(&((struct talk *) stream->owner)->told, bytes, length);
}

static void stream_over(struct stream *stream)
{
    text_append(&((struct talk *) stream->owner)->told, "over");
}

static void stream_failed(struct stream *stream, int error)
{
    (void) error;
    stream_over(stream);
}

static const struct stream_events upgraded_events = {
    .on_data = stream_data, .on_end = stream_over, .on_failure = stream_failed};

static void talk_upgraded(struct http_exchange *exchange, struct stream *stream,
                          const char *pending, size_t length)
{
    struct talk *talk = talk_of(exchange);

    text_format(&talk->told, "%d|%s|", http_exchange_head(exchange)->status,
                http_head_get(http_exchange_head(exchange), "upgrade"));
    text_append_bytes(&talk->told, pending, length);
    talk->stream = stream;
    stream_set_owner(stream, talk, &upgraded_events);
    if (talk->close_origin)
        http_origin_close(TAKE_PTR(talk->bench->origin), origin_closed, talk->bench);
    talk_over(talk);
}

static void talk_drained(struct http_exchange *exchange)
{
    struct talk *talk = talk_of(exchange);

    text_append(&talk->told, "drain ");
    (void) cancelled(talk, ON_DRAIN);
}

static const struct http_exchange_events talk_events = {
    .on_head = talk_head,
    .on_body = talk_body,
    .on_end = talk_end,
    .on_drain = talk_drained,
    .on_upgrade = talk_upgraded,
    .on_failure = talk_failed,
};

static void talk_start(struct talk *talk, struct bench *bench,
                       const struct http_exchange_request *request)
{
    struct error error = ERROR_INIT;

    if (!bench->origin)
        bench->origin = http_origin_new(&bench->loop, bench->address, &bench->options, &error);
    assert_non_null(bench->origin);
    talk->bench = bench;
    talk->told = (struct text) TEXT_INIT(RAW_MAX);
    talk->exchange = http_exchange_start(bench->origin, request, &talk_events, talk);
    assert_false(talk->over); /* no event from inside the call */
}

static inline void get(struct talk *talk, struct bench *bench)
{
    talk_start(talk, bench, &plain_get);
}

static inline void expect_told(struct talk *talk, const char *told)
{
    TURN_UNTIL(&talk->bench->loop, talk->over);
    assert_string_equal(text_string(&talk->told), told);
    text_done(&talk->told);
}

static inline void expect_failure(struct talk *talk, enum err_code code, const char *part)
{
    TURN_UNTIL(&talk->bench->loop, talk->over);
    assert_int_equal(talk->code, code);
    if (!strstr(talk->message, part))
        fail_msg("'%s' does not say '%s'", talk->message, part);
    text_done(&talk->told);
}

static inline struct raw peer(struct bench *bench)
{
    int fd = -EAGAIN;

    TURN_UNTIL(&bench->loop, (fd = sys_socket_accept(bench->listener, NULL)) != -EAGAIN);
    assert_true(fd >= 0);
    return raw_take(fd);
}

/* The next request of that connection, whole. */
static inline void heard(struct raw *raw, struct bench *bench, const char *request)
{
    TURN_UNTIL(&bench->loop, raw_has(raw, "\r\n\r\n"));
    assert_memory_equal(text_string(&raw->got), request, strlen(request));
    text_clear(&raw->got);
}

static inline void answer(struct raw *raw, struct bench *bench, const char *bytes)
{
    raw_send(raw, &bench->loop, bytes);
}

#define OK "HTTP/1.1 200 OK\r\n"

/* A connection that carried one exchange and is kept for the next. */
static inline struct raw keep_one(struct bench *bench)
{
    struct talk talk = {.over = false};
    struct raw raw;

    get(&talk, bench);
    raw = peer(bench);
    heard(&raw, bench, "GET ");
    answer(&raw, bench, OK "Content-Length: 0\r\n\r\n");
    expect_told(&talk, "200()end");
    return raw;
}

#define CLIENT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
