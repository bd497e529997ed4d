/* The launcher's side of a conversation: requests of the daemon become work on residents, work that
 * is done becomes answers, exits become events.
 *
 * A table gives the function for each message (service.c). A daemon may say anything: what does
 * not decode, or is not permitted, ends the conversation (wire_conversation.h), and that is all it
 * does.
 *
 *     service_init(&service, ...);
 *     service_open(&service, fd, ...)      a conversation begins
 *     -> ended(context)                    it is over, by the peer's death or fault
 *     service_open(&service, next, ...)    the next daemon
 *
 * One conversation at a time. One thread. */
#pragma once

#include "launcher/residents/residents.h"
#include "launcher/service_keeper.h"
#include "wire/wire_conversation.h"

struct service {
    struct event_loop *loop;
    struct residents *residents;
    struct log *log;
    struct wire_conversation conversation;
    bool is_open;
    struct event_source source;
    struct service_keeper keeper;
    void (*ended)(void *context);
    void *context;
};

/* `ended` is called when a conversation is over; it may open the next one. After residents_init.
 * Returns 0 or -1. */
int service_init(struct service *service, struct event_loop *loop, struct residents *residents,
                 struct log *log, void (*ended)(void *context), void *context, struct error *err);

/* Ends the conversation. */
void service_done(struct service *service);

/* Begin a conversation on `fd`, which is taken also on failure. Returns 0 or -1. */
int service_open(struct service *service, int fd, struct error *err);

/* Tell the daemon that we are about to end. */
void service_stopping(struct service *service, const char *reason);

/* For residents.hooks. */
struct residents_hooks service_hooks(struct service *service, void (*empty)(void *context));
