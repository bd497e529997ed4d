#include "net/http/http_server.h"

#include <endian.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/trace.h"
#include "net/http/http_connection.h"
#include "net/listener.h"

/* Requests kept for reuse, each with a block of pool memory: enough for a busy moment. */
#define SPARE_REQUESTS_MAX 256
#define REPLY_HEAD_MAX     ((size_t) 128 * 1024)

struct http_listener {
    struct list link;
    struct http_server *server;
    struct listener *listener; /* owned */
    struct tls_context *tls;   /* borrowed */
};

static void check_drained(struct http_server *server);

/* --- requests ------------------------------------------------------------------------------- */

/* All of it random, because one that counts up tells how many requests others made; and many at
 * once, because a system call for each costs more than the rest of it. */
static struct id next_id(struct http_server *server)
{
    if (server->random_left == 0) {
        random_bytes(server->random, sizeof(server->random));
        server->random_left = sizeof(server->random);
    }
    server->random_left -= ID_RANDOM_SIZE;
    return id_from_bytes(server->random + server->random_left);
}

/* Spare requests are linked through their `data`. */
struct http_request *http_server_take_request(struct http_server *server)
{
    struct http_request *request = server->spare_requests;
    struct pool pool = POOL_INIT;

    if (request) {
        server->spare_requests = request->data;
        server->spare_request_count--;
        pool = request->pool;
    } else {
        request = mem_resize(NULL, sizeof(*request));
    }
    *request = (struct http_request){
        .pool = pool,
        .reply_length = HTTP_LENGTH_UNKNOWN,
        .id = next_id(server),
        .started_ns = clock_monotonic_ns(server->options.clock),
    };
    return request;
}

void http_server_give_request(struct http_server *server, struct http_request *request)
{
    if (request->on_ended) {
        void (*on_ended)(struct http_request *) = TAKE_PTR(request->on_ended);

        on_ended(request);
    }
    if (request->watch) {
        struct http_watch *watch = TAKE_PTR(request->watch);

        watch->on_over(watch);
    }
    text_done(&request->collected);
    text_done(&request->extra_headers);
    if (server->spare_request_count >= SPARE_REQUESTS_MAX) {
        pool_done(&request->pool);
        free(request);
        return;
    }
    pool_reset(&request->pool);
    request->data = server->spare_requests;
    server->spare_requests = request;
    server->spare_request_count++;
}

const char *http_server_date(struct http_server *server)
{
    int64_t second = clock_wall_ms(server->options.clock) / 1000;

    if (second != server->date_second) {
        server->date_second = second;
        http_date(second * 1000, server->date);
    }
    return server->date;
}

/* The path without its query and without the segments that hold tokens: "***" and what is behind.
 */
static struct url_span shown_path(const struct http_server *server, struct http_request *request)
{
    struct url_span path = request->target.path;
    size_t at = 0;

    if (!path.text || !server->options.hidden_segments)
        return path;
    for (size_t i = 0; i < server->options.hidden_segments && at < path.length; i++) {
        const char *segment = path.text + at + 1;
        const char *slash = memchr(segment, '/', path.length - at - 1);
        size_t length = slash ? (size_t) (slash - segment) : path.length - at - 1;
        bool is_odd = length == 0 || *segment == '.' || memchr(segment, '%', length);

        /* Behind "//", "/../" and the like may stand what belongs to the front. */
        at = slash && !is_odd ? (size_t) (slash - path.text) : path.length;
    }
    path.text = pool_format(&request->pool, "/***%.*s", (int) (path.length - at), path.text + at);
    path.length = strlen(path.text);
    return path;
}

void http_server_log(struct http_server *server, struct http_request *request)
{
    uint64_t now = clock_monotonic_ns(server->options.clock);
    const struct url_span path = shown_path(server, request);
    int class = request->status / 100;
    char status[NUMBER_TEXT_SIZE];

    (void) number_format(request->status, status);
    TRACE_WITH("http.end", status);
    server->counters.requests++;
    if (class > 0 && class < 6)
        server->counters.replies[class]++;
    LOG_INFO(server->options.log, "request", log_text("request", request->id.text),
             log_text("method", request->head->method),
             path.text ? log_bytes("path", path.text, path.length) : log_text("path", NULL),
             log_number("status", request->status),
             log_number("received", (int64_t) request->body_received),
             log_number("sent", (int64_t) request->body_sent),
             log_number("us", (int64_t) ((now - request->started_ns) / 1000)),
             log_text("peer", request->peer));
}

/* --- listening ------------------------------------------------------------------------------ */

static void accepted(struct listener *listener, int fd, const char *peer)
{
    struct http_listener *entry = listener_owner(listener);
    struct http_server *server = entry->server;
    int r = http_connection_new(server, fd, entry->tls, listener_is_unix(listener), peer);

    if (r < 0) {
        LOG_WARNING(server->options.log, "connection not taken", log_text("peer", peer),
                    log_text("reason", strerrorname_np(-r)));
        (void) fd_close(fd);
    }
    if (server->connection_count + server->guest_count < server->options.connections_max)
        return;
    server->accept_paused = true;
    LIST_EACH (&server->listeners, at)
        listener_pause(CONTAINER_OF(at, struct http_listener, link)->listener);
    LOG_WARNING(server->options.log, "connections_max reached, new connections wait",
                log_number("connections", (int64_t) server->connection_count));
}

static void listener_gone(struct listener *listener)
{
    struct http_listener *entry = listener_owner(listener);
    struct http_server *server = entry->server;

    list_remove(&entry->link);
    free(entry);
    server->listener_count--;
    check_drained(server);
}

static const struct listener_events listener_events = {
    .on_accept = accepted,
    .on_closed = listener_gone,
};

static struct http_listener *entry_new(struct http_server *server, struct tls_context *tls)
{
    struct http_listener *entry = mem_alloc(sizeof(*entry));

    entry->server = server;
    entry->tls = tls;
    return entry;
}

static int entry_start(struct http_listener *entry)
{
    if (!entry->listener) {
        free(entry);
        return -1;
    }
    list_append(&entry->server->listeners, &entry->link);
    entry->server->listener_count++;
    return 0;
}

int http_server_listen(struct http_server *server, const char *address, struct tls_context *tls,
                       struct error *err)
{
    struct http_listener *entry = entry_new(server, tls);

    entry->listener = listener_new(server->loop, address, &listener_events, entry, err);
    return entry_start(entry);
}

int http_server_listen_on(struct http_server *server, int fd, struct tls_context *tls,
                          struct error *err)
{
    struct http_listener *entry = entry_new(server, tls);

    entry->listener = listener_new_on(server->loop, fd, &listener_events, entry, err);
    return entry_start(entry);
}

uint16_t http_server_port(const struct http_server *server, size_t nth)
{
    LIST_EACH (&server->listeners, at) {
        const struct listener *listener = CONTAINER_OF(at, struct http_listener, link)->listener;

        if (!listener_is_unix(listener) && nth-- == 0)
            return listener_port(listener);
    }
    return 0;
}

static void resume_accepting(struct http_server *server)
{
    if (!server->accept_paused || server->draining)
        return;
    server->accept_paused = false;
    LIST_EACH (&server->listeners, at)
        listener_resume(CONTAINER_OF(at, struct http_listener, link)->listener);
}

void http_server_adopt(struct http_server *server, struct stream *stream,
                       const struct http_adoption *adoption)
{
    http_connection_adopt(server, stream, adoption);
}

static void tell_left(struct http_server *server, void *session)
{
    if (server->options.on_left)
        server->options.on_left(session, server->options.left_data);
}

void http_server_connection_gone(struct http_server *server, void *session)
{
    server->connection_count--;
    resume_accepting(server);
    tell_left(server, session);
    check_drained(server);
}

/* --- guests --------------------------------------------------------------------------------- */

void *http_guest_caller(const struct http_request *request)
{
    size_t size = http_request_server(request)->options.caller_size;

    return request->caller && size ? mem_copy_bytes(request->caller, size) : NULL;
}

void http_guest_enter(struct http_guest *guest, struct http_server *server, void *caller,
                      void (*on_shutdown)(struct http_guest *guest, enum http_leave how,
                                          const char *reason))
{
    guest->server = server;
    guest->caller = caller;
    guest->on_shutdown = on_shutdown;
    list_append(&server->guests, &guest->link);
    server->guest_count++;
}

void http_guest_leave(struct http_guest *guest)
{
    list_remove(&guest->link);
    free(TAKE_PTR(guest->caller));
    guest->server->guest_count--;
    resume_accepting(guest->server);
    tell_left(guest->server, NULL);
    check_drained(guest->server);
}

/* --- life ----------------------------------------------------------------------------------- */

static void tell_drained(struct loop_task *task)
{
    struct http_server *server = CONTAINER_OF(task, struct http_server, drained);

    server->on_drained(server, server->drain_data);
}

static void drain_timer_gone(struct deadline *deadline)
{
    struct http_server *server = CONTAINER_OF(deadline, struct http_server, drain_deadline);

    loop_defer(server->loop, &server->drained);
}

static void check_drained(struct http_server *server)
{
    if (!server->draining || server->drain_timer_closing || server->connection_count ||
        server->guest_count || server->listener_count)
        return;
    server->drain_timer_closing = true;
    deadline_close(&server->drain_deadline, drain_timer_gone);
}

static void shut_guests(struct http_server *server, enum http_leave how)
{
    LIST_EACH (&server->guests, at) {
        struct http_guest *guest = CONTAINER_OF(at, struct http_guest, link);

        guest->on_shutdown(guest, how, "server shutting down");
    }
}

void http_server_cut(struct http_server *server)
{
    struct list *link;

    while ((link = list_first(&server->connections)))
        http_connection_cut(CONTAINER_OF(link, struct http_connection, link));
    shut_guests(server, HTTP_LEAVE_NOW);
}

static void drain_time_is_up(struct deadline *deadline)
{
    struct http_server *server = CONTAINER_OF(deadline, struct http_server, drain_deadline);

    LOG_WARNING(server->options.log, "drain time is up, cutting what is left",
                log_number("connections", (int64_t) server->connection_count),
                log_number("upgraded", (int64_t) server->guest_count));
    http_server_cut(server);
}

struct http_server *http_server_new(struct loop *loop, const struct http_server_options *options)
{
    struct http_server *server = mem_alloc(sizeof(*server));

    server->loop = loop;
    server->options = *options;
    server->scratch = (struct text) TEXT_INIT(REPLY_HEAD_MAX);
    server->date_second = INT64_MIN;
    list_init(&server->listeners);
    list_init(&server->connections);
    list_init(&server->guests);
    loop_task_init(&server->drained, tell_drained);
    deadline_init(loop, &server->drain_deadline, drain_time_is_up);
    return server;
}

void http_server_drain(struct http_server *server, uint64_t timeout_ms,
                       void (*on_drained)(struct http_server *server, void *data), void *data)
{
    if (server->draining)
        return;
    server->draining = true;
    server->on_drained = on_drained;
    server->drain_data = data;
    deadline_set(&server->drain_deadline, timeout_ms);
    LIST_EACH (&server->listeners, at)
        listener_close(CONTAINER_OF(at, struct http_listener, link)->listener);
    LIST_EACH (&server->connections, at)
        http_connection_drain(CONTAINER_OF(at, struct http_connection, link));
    shut_guests(server, HTTP_LEAVE_POLITELY);
    check_drained(server);
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    while (server->spare_requests) {
        struct http_request *request = server->spare_requests;

        server->spare_requests = request->data;
        pool_done(&request->pool);
        free(request);
    }
    text_done(&server->scratch);
    free(server);
}

const struct http_server_counters *http_server_counters(const struct http_server *server)
{
    return &server->counters;
}

size_t http_server_connections(const struct http_server *server)
{
    return server->connection_count + server->guest_count;
}

const struct clock *http_server_clock(const struct http_server *server)
{
    return server->options.clock;
}

struct loop *http_server_loop(const struct http_server *server)
{
    return server->loop;
}
