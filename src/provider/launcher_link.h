/* The conversation with the launcher, on the loop: asks, waits, calls back.
 *
 * The protocol allows WIRE_REQUESTS_MAX open requests; more wait here, in order, up to
 * LAUNCHER_LINK_WAITING_MAX, and are refused beyond. One thread. */
#pragma once

#include "net/loop.h"
#include "wire/wire_conversation.h"

#define LAUNCHER_LINK_WAITING_MAX 1024

struct launcher_link_events {
    void (*on_event)(void *context, const struct wire_message *event);
    /* The launcher is gone or broke a rule. All requests were answered with the same reason. */
    void (*on_over)(void *context, const struct error *reason);
    void *context;
};

struct launcher_link {
    struct loop *loop; /* borrowed */
    struct wire_conversation conversation;
    struct launcher_link_events events;
    uv_poll_t poll;
    int polled;          /* what for */
    bool over;           /* nothing is asked any more */
    struct list waiting; /* owned; oldest first */
    size_t waiting_count;
    void (*on_closed)(struct launcher_link *link);
};

/* Takes `fd`, also when it fails. `events` is copied. Returns 0 or -1. After success the link must
 * be closed with launcher_link_close. */
int launcher_link_init(struct launcher_link *link, struct loop *loop, int fd,
                       const struct launcher_link_events *events, struct error *err);

/* Send the first request. */
int launcher_link_hello(struct launcher_link *link, const char *program, struct wire_answer answer,
                        struct error *err);

/* Send a request, now or when there is room. As wire_conversation_ask: `answer` is called once,
 * never from in here, and not at all after -1. Descriptors stay the caller's. */
int launcher_link_ask(struct launcher_link *link, struct wire_message *request, const int *fds,
                      size_t count, struct wire_answer answer, struct error *err);

/* Over, from our side: every request is answered with `reason`. on_over is not called. May be
 * called again. */
void launcher_link_end(struct launcher_link *link, const struct error *reason);

/* End it if it is not over; the memory may be reused in `on_closed`, not before. */
void launcher_link_close(struct launcher_link *link, void (*on_closed)(struct launcher_link *link));
