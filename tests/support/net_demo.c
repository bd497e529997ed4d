/* A server with nothing behind it: what the network layer does when no product is in the way.
 * Benchmarks and integration tests drive it.
 *
 *     net-demo --listen ADDRESS:PORT|unix:PATH [--proxy-to ADDRESS:PORT|unix:PATH] [--log FILE]
 *              [--proxy-all ADDRESS:PORT|unix:PATH]
 *              [--tls-certificate FILE --tls-key FILE] [--head-timeout MS] [--body-timeout MS]
 *              [--idle-timeout MS] [--stall-timeout MS] [--connections N]
 *
 *     GET  /json            a small JSON object
 *     GET  /bytes/{count}   that many bytes, made as fast as the client takes them
 *     POST /sink            counts the body as it streams in:  {"bytes":N}
 *     POST /slow-sink       the same, but takes a pause after each piece
 *     POST /collect         the body comes back whole (limit 1 MiB)
 *     GET  /sse             five events; honours Last-Event-ID
 *     GET  /echo            a WebSocket that echoes
 *     anything else         goes to --proxy-to, or is 404; --proxy-all gets everything */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "net/http/http_proxy.h"
#include "net/http/http_server.h"
#include "net/http/sse.h"
#include "net/websocket/websocket_http.h"

#define PIECE_SIZE ((size_t) 64 * 1024)

struct demo {
    struct loop loop;
    struct http_server *server;
    struct http_origin *upstream;
    uv_signal_t stop;
    char *pattern; /* PIECE_SIZE bytes to send again and again */
};

static int parse_unsigned(const char *text, uint64_t maximum, uint64_t *ret_number)
{
    return number_parse_digits(text, strlen(text), maximum, ret_number);
}

static void get_json(struct http_request *request)
{
    http_reply_text(request, 200, "application/json", "{\"ok\":true,\"name\":\"burrow\"}\n");
}

/* --- /bytes --------------------------------------------------------------------------------- */

struct bytes_job {
    uint64_t left;
    const char *pattern;
};

static void nothing_to_undo(struct http_request *request)
{
    (void) request;
}

static void send_bytes(struct http_request *request)
{
    struct bytes_job *job = request->data;

    while (job->left && !http_reply_is_full(request)) {
        size_t part = job->left < PIECE_SIZE ? (size_t) job->left : PIECE_SIZE;

        job->left -= part;
        http_reply_write(request, job->pattern, part);
    }
    if (!job->left)
        http_reply_end(request);
}

static void get_bytes(struct http_request *request)
{
    struct demo *demo = request->context;
    struct bytes_job *job = pool_alloc(&request->pool, sizeof(*job));
    struct error error;
    uint64_t count;

    if (parse_unsigned(http_request_parameter(request, "count"), UINT64_C(1) << 40, &count) < 0) {
        (void) error_set(&error, ERR_INVALID, 0, "count must be a number up to 2^40");
        http_reply_error(request, &error);
        return;
    }
    job->left = count;
    job->pattern = demo->pattern;
    request->data = job;
    request->on_drain = send_bytes;
    request->on_gone = nothing_to_undo;
    http_reply_begin(request, 200, "application/octet-stream",
                     http_request_query(request, "chunked") ? HTTP_LENGTH_UNKNOWN
                                                            : (int64_t) count);
    send_bytes(request);
}

/* --- /sink ---------------------------------------------------------------------------------- */

static void sink_piece(struct http_request *request, const char *bytes, size_t length)
{
    (void) request; /* the server counts */
    (void) bytes;
    (void) length;
}

static void sink_end(struct http_request *request)
{
    char reply[64];

    (void) snprintf(reply, sizeof(reply), "{\"bytes\":%llu}\n",
                    (unsigned long long) request->body_received);
    http_reply_text(request, 200, "application/json", reply);
}

static void post_sink(struct http_request *request)
{
    request->on_gone = nothing_to_undo;
    http_request_stream(request, sink_piece, sink_end);
}

struct slow_sink {
    struct http_request *request; /* NULL once the client is gone */
    struct deadline deadline;
};

static void slow_sink_closed(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct slow_sink, deadline));
}

static void slow_sink_go_on(struct deadline *deadline)
{
    http_request_resume(CONTAINER_OF(deadline, struct slow_sink, deadline)->request);
}

static void slow_sink_piece(struct http_request *request, const char *bytes, size_t length)
{
    struct slow_sink *sink = request->data;

    (void) bytes;
    (void) length;
    http_request_pause(request);
    deadline_set(&sink->deadline, 20);
}

static void slow_sink_gone(struct http_request *request)
{
    struct slow_sink *sink = request->data;

    deadline_close(&sink->deadline, slow_sink_closed);
}

static void slow_sink_end(struct http_request *request)
{
    slow_sink_gone(request);
    sink_end(request);
}

static void post_slow_sink(struct http_request *request)
{
    struct demo *demo = request->context;
    struct slow_sink *sink = mem_alloc(sizeof(*sink));

    sink->request = request;
    deadline_init(&demo->loop, &sink->deadline, slow_sink_go_on);
    request->data = sink;
    request->on_gone = slow_sink_gone;
    http_request_stream(request, slow_sink_piece, slow_sink_end);
}

static void collected(struct http_request *request, const char *body, size_t length)
{
    http_reply(request, 200, "application/octet-stream", body, length);
}

static void post_collect(struct http_request *request)
{
    request->on_gone = nothing_to_undo;
    http_request_collect(request, collected);
}

/* --- /sse, /echo ---------------------------------------------------------------------------- */

static void get_sse(struct http_request *request)
{
    uint64_t last = 0;
    const char *cursor = sse_last_event_id(request);

    if (cursor && parse_unsigned(cursor, 1000, &last) < 0)
        last = 0;
    sse_begin(request);
    for (uint64_t id = last + 1; id <= 5; id++) {
        char number[24];

        (void) snprintf(number, sizeof(number), "%llu", (unsigned long long) id);
        sse_send(request, number, "count", number, strlen(number));
    }
    http_reply_end(request);
}

static void echo_message(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                         size_t length)
{
    (void) websocket_send(ws, kind, bytes, length);
    if (websocket_is_full(ws))
        websocket_pause(ws);
}

static void echo_drained(struct websocket *ws)
{
    websocket_resume(ws);
}

static const struct websocket_events echo_events = {
    .on_message = echo_message,
    .on_drain = echo_drained,
};

static void get_echo(struct http_request *request)
{
    static const struct websocket_options options = {
        .role = WEBSOCKET_SERVER,
        .message_max = (uint64_t) 16 * 1024 * 1024,
    };
    struct error error;

    if (!websocket_accept(request, &options, &echo_events, NULL, &error))
        http_reply_error(request, &error);
}

static void forward(struct http_request *request)
{
    struct demo *demo = request->context;

    http_proxy(request, demo->upstream, NULL);
}

static const struct http_route routes[] = {
    {"GET", "/json", get_json, .summary = "A small JSON object"},
    {"GET", "/bytes/{count}", get_bytes, .summary = "That many bytes"},
    {"POST", "/sink", post_sink, .body_limit = HTTP_BODY_UNLIMITED},
    {"PUT", "/sink", post_sink, .body_limit = HTTP_BODY_UNLIMITED},
    {"POST", "/slow-sink", post_slow_sink, .body_limit = HTTP_BODY_UNLIMITED},
    {"POST", "/collect", post_collect, .body_limit = 1 << 20},
    {"GET", "/sse", get_sse, .summary = "Five events"},
    {"GET", "/echo", get_echo, .summary = "A WebSocket that echoes"},
};

/* --- main ----------------------------------------------------------------------------------- */

static void origin_gone(struct http_origin *origin, void *data)
{
    (void) origin;
    (void) data;
}

static void drained(struct http_server *server, void *data)
{
    struct demo *demo = data;

    (void) server;
    uv_close((uv_handle_t *) &demo->stop, NULL);
    if (demo->upstream)
        http_origin_close(demo->upstream, origin_gone, NULL);
}

static void stop_requested(uv_signal_t *handle, int number)
{
    struct demo *demo = handle->data;

    (void) number;
    http_server_drain(demo->server, 5000, drained, demo);
}

struct demo_options {
    const char *listen, *proxy_to, *log_file, *certificate, *key;
    const char *proxy_all; /* no route of ours is mounted then */
    struct http_server_options server;
};

#define TEXT_OPTION(name, field)                                                                   \
    {                                                                                              \
        name, offsetof(struct demo_options, field), true                                           \
    }
#define NUMBER_OPTION(name, field)                                                                 \
    {                                                                                              \
        name, offsetof(struct demo_options, server.field), false                                   \
    }

static const struct {
    const char *name;
    size_t offset;
    bool is_text;
} known_options[] = {
    TEXT_OPTION("--listen", listen),
    TEXT_OPTION("--proxy-to", proxy_to),
    TEXT_OPTION("--proxy-all", proxy_all),
    TEXT_OPTION("--log", log_file),
    TEXT_OPTION("--tls-certificate", certificate),
    TEXT_OPTION("--tls-key", key),
    NUMBER_OPTION("--head-timeout", head_timeout_ms),
    NUMBER_OPTION("--body-timeout", body_timeout_ms),
    NUMBER_OPTION("--idle-timeout", idle_timeout_ms),
    NUMBER_OPTION("--stall-timeout", stall_timeout_ms),
    NUMBER_OPTION("--connections", connections_max),
};

static int set_option(struct demo_options *options, const char *name, const char *value)
{
    for (size_t i = 0; i < ARRAY_COUNT(known_options); i++) {
        void *field = (char *) options + known_options[i].offset;

        if (strcmp(known_options[i].name, name) != 0)
            continue;
        if (!known_options[i].is_text)
            return parse_unsigned(value, UINT64_C(1) << 40, field);
        memcpy(field, &value, sizeof(value));
        return 0;
    }
    return -EINVAL;
}

static int parse_options(int argc, char **argv, struct demo_options *options)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc || set_option(options, argv[i], argv[i + 1]) < 0)
            return -1;
    }
    return options->listen ? 0 : -1;
}

static struct log *open_log(const char *path)
{
    int fd;

    if (!path)
        return NULL;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644); /* until the end */
    return log_new(fd, LOG_FORMAT_JSON, LOG_LEVEL_INFO, clock_system());
}

static int open_server(struct demo *demo, struct demo_options *options, struct tls_context *tls,
                       struct error *err)
{
    if (options->proxy_to) {
        demo->upstream = http_origin_new(&demo->loop, options->proxy_to, NULL, err);
        if (!demo->upstream)
            return -1;
        options->server.fallback = forward;
        options->server.fallback_context = demo;
    }
    demo->server = http_server_new(&demo->loop, &options->server);
    return http_server_listen(demo->server, options->listen, tls, err);
}

static void run(struct demo *demo)
{
    (void) uv_signal_init(&demo->loop.uv, &demo->stop);
    demo->stop.data = demo;
    (void) uv_signal_start(&demo->stop, stop_requested, SIGTERM);
    (void) printf("listening %u\n", http_server_port(demo->server, 0));
    (void) fflush(stdout);
    loop_run(&demo->loop);
    http_server_free(demo->server);
    loop_done(&demo->loop);
}

static int fail(const struct error *error)
{
    (void) fprintf(stderr, "net-demo: %s\n", error->message);
    return 1;
}

int main(int argc, char **argv)
{
    struct demo demo = {0};
    struct http_mount mount = {
        .name = "demo", .routes = routes, .route_count = ARRAY_COUNT(routes), .context = &demo};
    struct demo_options options = {.server = HTTP_SERVER_OPTIONS_DEFAULT};
    AUTO(http_router) struct http_router *router = http_router_new();
    AUTO(tls_context) struct tls_context *tls = NULL;
    AUTO(log) struct log *log = NULL;
    struct error error = ERROR_INIT;

    if (parse_options(argc, argv, &options) < 0) {
        (void) fprintf(stderr, "usage: net-demo --listen ADDRESS [--proxy-to ADDRESS] ...\n");
        return 2;
    }
    (void) signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    log = open_log(options.log_file);
    demo.pattern = mem_alloc(PIECE_SIZE);
    memset(demo.pattern, 'b', PIECE_SIZE);
    options.server.router = router;
    options.server.clock = clock_system();
    options.server.log = log;
    if (loop_init(&demo.loop, log) < 0)
        return fail(&error);
    if (options.proxy_all)
        options.proxy_to = options.proxy_all;
    else if (http_router_mount(router, &mount, &error) < 0)
        return fail(&error);
    if (options.certificate) {
        tls = tls_context_server(options.certificate, options.key, &error);
        if (!tls)
            return fail(&error);
    }
    if (open_server(&demo, &options, tls, &error) < 0)
        return fail(&error);
    run(&demo);
    free(demo.pattern);
    return 0;
}
