/* Connections that are no HTTP yet, or never will be: TLS that says by name where it wants to go, what
 * follows a CONNECT, and plain TCP of a forward. Each ends as a tunnel, as HTTP inside of TLS that is
 * ended here, or closed. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"
#include "broker/client_hello.h"

#define ARRIVAL_EARLY_MAX (CLIENT_HELLO_MAX + LOOP_SCRATCH_SIZE)
#define ARRIVAL_LAST_MS   2000 /* to take our last word */
#define HTTPS_PORT        443

enum arrival_stage {
    ARRIVAL_HELLO, /* waits for the client to say whom it wants */
    ARRIVAL_ASKED, /* the domain, or the upstream to accept a connection: nothing is read */
    ARRIVAL_LAST,  /* it was refused, and is told so */
};

struct arrival {
    struct list link; /* of the outlet */
    struct broker_outlet *outlet;
    struct stream *stream; /* owned until it is handed over */
    struct deadline deadline;
    struct loop_task look; /* at what came before it was ours */
    struct text early;
    struct broker_passage *passage; /* owned; NULL: not asked yet */
    struct dial *dial;
    int upstream; /* owned: connected; -EBADF: none */
    enum arrival_stage stage;
    bool was_connect; /* asked for by CONNECT: the name is known */
    bool is_closing;
    uint8_t handles;
    char peer[SYS_ADDRESS_TEXT_SIZE];
    char host[URL_HOST_MAX + 1];
    uint16_t port;
};

static const struct stream_events arrival_events;

/* --- the end ---------------------------------------------------------------------------------- */

static void arrival_handle_gone(struct arrival *arrival)
{
    if (--arrival->handles)
        return;
    text_done(&arrival->early);
    free(arrival);
}

static void arrival_deadline_gone(struct deadline *deadline)
{
    arrival_handle_gone(CONTAINER_OF(deadline, struct arrival, deadline));
}

static void arrival_stream_gone(struct stream *stream)
{
    struct arrival *arrival = stream->owner;

    stream_free(stream);
    arrival_handle_gone(arrival);
}

/* It counts no more; what it still holds is let go. `failure` is what became of the passage. */
static void arrival_leave(struct arrival *arrival, const char *failure)
{
    struct broker_outlet *outlet = arrival->outlet;

    if (arrival->is_closing)
        return;
    arrival->is_closing = true;
    list_remove(&arrival->link);
    loop_task_cancel(&arrival->look);
    if (arrival->dial)
        dial_cancel(TAKE_PTR(arrival->dial));
    arrival->upstream = fd_close(arrival->upstream);
    if (arrival->passage)
        passage_end(TAKE_PTR(arrival->passage), failure);
    if (arrival->stream)
        stream_close(arrival->stream, arrival_stream_gone);
    else
        arrival_handle_gone(arrival);
    deadline_close(&arrival->deadline, arrival_deadline_gone);
    outlet->arriving--;
    outlet_has_room(outlet);
}

/* A last word in the language of TLS, so that the client need not guess. */
static void arrival_refuse(struct arrival *arrival, const char *failure)
{
    static const char access_denied[] = {21, 3, 3, 0, 2, 2, 49};

    if (arrival->passage)
        passage_end(TAKE_PTR(arrival->passage), failure);
    if (!arrival->early.length || text_string(&arrival->early)[0] != 22) {
        arrival_leave(arrival, failure);
        return;
    }
    arrival->stage = ARRIVAL_LAST;
    text_clear(&arrival->early);
    stream_resume(arrival->stream);
    stream_write(arrival->stream, access_denied, sizeof(access_denied));
    stream_shut_write(arrival->stream);
    deadline_set(&arrival->deadline, ARRIVAL_LAST_MS);
}

static void arrival_violates(struct arrival *arrival, const char *reason, const char *host)
{
    outlet_violated(arrival->outlet, reason, host, arrival->port);
    arrival_refuse(arrival, "the client broke the rules");
}

/* --- as a tunnel ------------------------------------------------------------------------------ */

static void arrival_join(struct arrival *arrival)
{
    static const struct stream_events none = {.on_data = NULL};
    struct broker_outlet *outlet = arrival->outlet;
    struct stream *upstream = mem_alloc(sizeof(*upstream));

    if (stream_init(upstream, outlet->engine->options.loop, arrival->upstream, NULL, false, &none) <
        0) {
        free(upstream);
        arrival_leave(arrival, "no memory for the connection");
        return;
    }
    arrival->upstream = -EBADF;
    tunnel_begin(outlet, TAKE_PTR(arrival->passage), TAKE_PTR(arrival->stream),
                 text_string(&arrival->early), arrival->early.length, upstream, "", 0, false);
    arrival_leave(arrival, NULL);
}

static void arrival_dialled(void *context, int fd, const struct error *err)
{
    struct arrival *arrival = context;

    arrival->dial = NULL;
    if (err) {
        arrival->outlet->engine->counters.failures++;
        arrival_refuse(arrival, err->message);
        return;
    }
    arrival->upstream = fd;
    arrival_join(arrival);
}

/* --- as HTTP inside of TLS -------------------------------------------------------------------- */

static void arrival_intercept(struct arrival *arrival)
{
    struct broker_outlet *outlet = arrival->outlet;
    struct error error = ERROR_INIT;
    struct tls_context *leaf = outlet_leaf(outlet, arrival->host, &error);
    struct http_adoption adoption = {.peer = arrival->peer, .is_tls = true, .pending = ""};
    struct tls *tls = leaf ? tls_accept(leaf) : NULL;
    struct broker_session *session;

    if (!tls) {
        arrival_refuse(arrival, leaf ? "no memory for TLS" : error.message);
        return;
    }
    tls_preload(tls, text_string(&arrival->early), arrival->early.length);
    if (stream_queued(arrival->stream) || stream_secure(arrival->stream, tls) < 0) {
        tls_free(tls);
        arrival_leave(arrival, "the client does not take what it asked for");
        return;
    }
    session = session_new(outlet, SESSION_INTERCEPTED, arrival->host, arrival->port);
    session->passage = TAKE_PTR(arrival->passage);
    adoption.session = session;
    outlet->engine->counters.intercepted++;
    http_server_adopt(outlet->server, TAKE_PTR(arrival->stream), &adoption);
    arrival_leave(arrival, NULL);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void arrival_answered(void *owner, struct broker_passage *passage,
                             const struct broker_grant *grant)
{
    struct arrival *arrival = owner;

    if (grant->verdict == BROKER_INTERCEPT && passage->ask.way == BROKER_CONNECT) {
        arrival_intercept(arrival);
    } else if (grant->verdict == BROKER_TUNNEL) {
        arrival->dial = outlet_dial(arrival->outlet, arrival->host, arrival->port, grant,
                                    arrival_dialled, arrival);
    } else {
        arrival_refuse(arrival, "the answer makes no sense for this connection");
    }
}

static void arrival_ask(struct arrival *arrival, enum broker_way way)
{
    const struct broker_ask ask = {.way = way, .host = arrival->host, .port = arrival->port};

    arrival->stage = ARRIVAL_ASKED;
    deadline_clear(&arrival->deadline);
    stream_pause(arrival->stream);
    arrival->passage = passage_ask(arrival->outlet, &ask, arrival_answered, arrival);
}

/* --- the client says whom it wants ------------------------------------------------------------- */

/* Of a CONNECT both were answered for: go on as it was granted. */
static void arrival_go_on(struct arrival *arrival)
{
    if (arrival->upstream >= 0)
        arrival_join(arrival);
    else
        arrival_intercept(arrival);
}

static bool is_number(const char *host)
{
    return strchr(host, ':') || strspn(host, "0123456789.") == strlen(host);
}

static void arrival_named(struct arrival *arrival, const struct client_hello *hello)
{
    if (hello->is_encrypted) {
        arrival_violates(arrival, "encrypted_hello", hello->host);
    } else if (!arrival->was_connect && !*hello->host) {
        arrival_violates(arrival, "no_sni", NULL);
    } else if (arrival->was_connect && strcmp(hello->host, arrival->host) != 0 &&
               !(is_number(arrival->host) && !*hello->host)) {
        arrival_violates(arrival, *hello->host ? "sni_mismatch" : "no_sni", hello->host);
    } else if (arrival->was_connect) {
        arrival_go_on(arrival);
    } else {
        memcpy(arrival->host, hello->host, sizeof(arrival->host));
        arrival_ask(arrival, BROKER_CONNECT);
    }
}

static void arrival_look(struct arrival *arrival)
{
    struct client_hello hello;

    switch (client_hello_read(text_string(&arrival->early), arrival->early.length, &hello)) {
    case CLIENT_HELLO_NEEDS_MORE:
        break;
    case CLIENT_HELLO_READY:
        arrival_named(arrival, &hello);
        break;
    case CLIENT_HELLO_NOT_TLS:
        arrival_violates(arrival, "not_tls", arrival->host);
        break;
    case CLIENT_HELLO_BROKEN:
        arrival_violates(arrival, "malformed_hello", arrival->host);
        break;
    }
}

static void arrival_look_task(struct loop_task *task)
{
    struct arrival *arrival = CONTAINER_OF(task, struct arrival, look);

    if (arrival->stage == ARRIVAL_HELLO && arrival->early.length)
        arrival_look(arrival);
}

/* --- stream events ---------------------------------------------------------------------------- */

static void arrival_data(struct stream *stream, const char *bytes, size_t length)
{
    struct arrival *arrival = stream->owner;

    if (arrival->stage == ARRIVAL_LAST)
        return;
    text_append_bytes(&arrival->early, bytes, length);
    if (arrival->early.overflowed) {
        arrival_leave(arrival, "the client sends too much too early");
        return;
    }
    if (arrival->stage == ARRIVAL_HELLO)
        arrival_look(arrival);
}

static void arrival_ended(struct stream *stream)
{
    arrival_leave(stream->owner, "the client left");
}

static void arrival_failed(struct stream *stream, int error)
{
    (void) error;
    arrival_leave(stream->owner, "the client left");
}

static void arrival_shut(struct stream *stream)
{
    struct arrival *arrival = stream->owner;

    if (arrival->stage == ARRIVAL_LAST)
        arrival_leave(arrival, NULL);
}

static const struct stream_events arrival_events = {
    .on_data = arrival_data,
    .on_end = arrival_ended,
    .on_shut = arrival_shut,
    .on_failure = arrival_failed,
};

static void arrival_is_late(struct deadline *deadline)
{
    arrival_leave(CONTAINER_OF(deadline, struct arrival, deadline),
                  "the client did not say whom it wants in time");
}

/* --- life ------------------------------------------------------------------------------------- */

static struct arrival *arrival_on(struct broker_outlet *outlet, struct stream *stream,
                                  const char *host, uint16_t port)
{
    struct arrival *arrival = mem_alloc(sizeof(*arrival));

    arrival->outlet = outlet;
    arrival->stream = stream;
    arrival->upstream = -EBADF;
    arrival->handles = 2;
    arrival->port = port;
    arrival->early = (struct text) TEXT_INIT(ARRIVAL_EARLY_MAX);
    (void) snprintf(arrival->host, sizeof(arrival->host), "%s", host ? host : "");
    stream_set_owner(stream, arrival, &arrival_events);
    loop_task_init(&arrival->look, arrival_look_task);
    deadline_init(outlet->engine->options.loop, &arrival->deadline, arrival_is_late);
    deadline_set(&arrival->deadline, outlet->engine->options.hello_ms);
    list_append(&outlet->arrivals, &arrival->link);
    outlet->arriving++;
    return arrival;
}

void arrival_new(struct door *door, int fd, const char *peer)
{
    struct broker_outlet *outlet = door->outlet;
    struct stream *stream = mem_alloc(sizeof(*stream));
    struct arrival *arrival;

    if (stream_init(stream, outlet->engine->options.loop, fd, NULL, false, &arrival_events) < 0) {
        (void) fd_close(fd);
        free(stream);
        return;
    }
    arrival = arrival_on(outlet, stream, door->host,
                         door->kind == DOOR_FORWARD ? door->port : HTTPS_PORT);
    (void) snprintf(arrival->peer, sizeof(arrival->peer), "%s", peer);
    if (door->kind == DOOR_FORWARD)
        arrival_ask(arrival, BROKER_TCP);
}

void arrival_connected(struct broker_outlet *outlet, struct stream *client, const char *pending,
                       size_t length, struct broker_passage *passage, int upstream)
{
    struct arrival *arrival = arrival_on(outlet, client, passage->ask.host, passage->ask.port);

    arrival->was_connect = true;
    arrival->passage = passage;
    arrival->upstream = upstream;
    text_append_bytes(&arrival->early, pending, length);
    loop_defer(outlet->engine->options.loop, &arrival->look); /* behind our 200 */
    stream_resume(client);
    if (client->ended)
        arrival_leave(arrival, "the client left");
}

void arrivals_cut(struct broker_outlet *outlet)
{
    struct list *first;

    while ((first = list_first(&outlet->arrivals)))
        arrival_leave(CONTAINER_OF(first, struct arrival, link), "it was cut");
}
