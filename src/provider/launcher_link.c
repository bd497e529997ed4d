#include "provider/launcher_link.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"

/* Messages taken in one turn: others of the loop get theirs. */
#define MESSAGES_PER_TURN 64

/* A request that waits for room. */
struct waiting {
    struct list link;
    struct wire_message message;
    struct wire_answer answer;
    struct trace_context trace;
    int fds[WIRE_FDS_MAX]; /* owned */
    size_t fd_count;
};

static void waiting_free(struct launcher_link *link, struct waiting *waiting)
{
    list_remove(&waiting->link);
    link->waiting_count--;
    for (size_t i = 0; i < waiting->fd_count; i++)
        (void) fd_close(waiting->fds[i]);
    free(waiting);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* The socket is full, or not any more. */
static void adjust_poll(struct launcher_link *link)
{
    int wanted = UV_READABLE;

    if (link->over)
        return;
    if (wire_conversation_events(&link->conversation) & POLLOUT)
        wanted |= UV_WRITABLE;
    if (wanted == link->polled)
        return;
    link->polled = wanted;
    (void) uv_poll_start(&link->poll, wanted, on_poll);
}

void launcher_link_end(struct launcher_link *link, const struct error *reason)
{
    if (link->over)
        return;
    link->over = true;
    /* Before the descriptor is closed: libuv must not poll what may soon be another file. */
    (void) uv_poll_stop(&link->poll);
    wire_conversation_end(&link->conversation, reason);
    LIST_EACH (&link->waiting, at) {
        struct waiting *waiting = CONTAINER_OF(at, struct waiting, link);
        struct wire_answer answer = waiting->answer;

        waiting_free(link, waiting);
        answer.call(answer.context, NULL, reason); /* adds none: it is over */
    }
}

/* The launcher's fault, or its end. */
static void fail(struct launcher_link *link, const struct error *why)
{
    struct error reason = ERROR_INIT;

    if (link->over)
        return;
    (void) error_set(&reason, ERR_UNAVAILABLE, 0, "the conversation with the launcher ended: %s",
                     why->message);
    launcher_link_end(link, &reason);
    link->events.on_over(link->events.context, &reason);
}

static void send_waiting(struct launcher_link *link)
{
    struct list *first;

    while (!link->over && link->conversation.requests.count < WIRE_REQUESTS_MAX &&
           (first = list_first(&link->waiting))) {
        struct waiting *waiting = CONTAINER_OF(first, struct waiting, link);
        struct wire_answer answer = waiting->answer;
        struct error err = ERROR_INIT;
        TRACE_AS(&waiting->trace);
        int result = wire_conversation_ask(&link->conversation, &waiting->message, waiting->fds,
                                           waiting->fd_count, answer, &err);

        waiting_free(link, waiting);
        if (result < 0)
            answer.call(answer.context, NULL, &err);
    }
}

/* Returns false when there is nothing more to take now. */
static bool take_one(struct launcher_link *link)
{
    AUTO(wire_incoming) struct wire_incoming incoming = {.fd_count = 0};
    struct error err = ERROR_INIT;
    enum wire_received received = wire_conversation_receive(&link->conversation, &incoming, &err);

    if (received == WIRE_FAILED)
        fail(link, &err);
    if (received == WIRE_MESSAGE)
        link->events.on_event(link->events.context, &incoming.message);
    return received == WIRE_MESSAGE || received == WIRE_SETTLED;
}

/* What is wrong with the descriptor, if anything, the next read says better than `status`. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct launcher_link *link = poll->data;
    struct error err = ERROR_INIT;
    int left = MESSAGES_PER_TURN;

    (void) status;
    if (events & UV_WRITABLE && wire_conversation_flush(&link->conversation, &err) < 0)
        fail(link, &err);
    while (!link->over && left-- > 0 && take_one(link))
        ;
    send_waiting(link);
    adjust_poll(link);
}

int launcher_link_init(struct launcher_link *link, struct loop *loop, int fd,
                       const struct launcher_link_events *events, struct error *err)
{
    int result;

    *link = (struct launcher_link){.loop = loop, .events = *events};
    list_init(&link->waiting);
    if (wire_conversation_init(&link->conversation, WIRE_DAEMON, fd, err) < 0)
        return -1;
    result = uv_poll_init(&loop->uv, &link->poll, fd);
    if (result < 0) {
        wire_conversation_end(&link->conversation, NULL);
        return error_set(err, ERR_INTERNAL, result, "watch the launcher's socket");
    }
    link->poll.data = link;
    adjust_poll(link);
    return 0;
}

int launcher_link_hello(struct launcher_link *link, const char *program, struct wire_answer answer,
                        struct error *err)
{
    if (wire_conversation_hello(&link->conversation, program, answer, err) < 0)
        return -1;
    adjust_poll(link);
    return 0;
}

static int keep(struct launcher_link *link, const struct wire_message *request, const int *fds,
                size_t count, struct wire_answer answer, struct error *err)
{
    struct waiting *waiting;

    if (link->waiting_count >= LAUNCHER_LINK_WAITING_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "%d requests wait for the launcher",
                         LAUNCHER_LINK_WAITING_MAX);
    waiting = mem_alloc(sizeof(*waiting));
    waiting->message = *request;
    waiting->answer = answer;
    waiting->trace = trace_context;
    list_append(&link->waiting, &waiting->link);
    link->waiting_count++;
    for (; waiting->fd_count < count; waiting->fd_count++) {
        int copy = fcntl(fds[waiting->fd_count], F_DUPFD_CLOEXEC, 0);

        if (copy < 0) {
            (void) error_set(err, ERR_UNAVAILABLE, errno, "keep a descriptor");
            waiting_free(link, waiting);
            return -1;
        }
        waiting->fds[waiting->fd_count] = copy;
    }
    return 0;
}

int launcher_link_ask(struct launcher_link *link, struct wire_message *request, const int *fds,
                      size_t count, struct wire_answer answer, struct error *err)
{
    if (link->over)
        return error_set(err, ERR_UNAVAILABLE, 0, "the conversation with the launcher is over");
    if (link->waiting_count || link->conversation.requests.count >= WIRE_REQUESTS_MAX)
        return keep(link, request, fds, count, answer, err);
    if (wire_conversation_ask(&link->conversation, request, fds, count, answer, err) < 0) {
        /* The next read ends the conversation; until then this is what callers know. */
        if (err && err->code == ERR_GONE)
            err->code = ERR_UNAVAILABLE;
        return -1;
    }
    adjust_poll(link);
    return 0;
}

static void handle_closed(uv_handle_t *handle)
{
    struct launcher_link *link = handle->data;

    link->on_closed(link);
}

void launcher_link_close(struct launcher_link *link, void (*on_closed)(struct launcher_link *link))
{
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_UNAVAILABLE, 0, "the provider was closed");
    link->on_closed = on_closed;
    launcher_link_end(link, &reason);
    uv_close((uv_handle_t *) &link->poll, handle_closed);
}
