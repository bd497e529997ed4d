/* A conversation between daemon and launcher, from either end: the one way to the messages that
 * cannot forget a check.
 *
 * The launcher's end receives requests that are valid, permitted in the state and come with the
 * right descriptors, and answers each exactly once, in any order and whenever it is done:
 *
 *     while ((got = wire_conversation_receive(&conversation, &incoming, &err)) != WIRE_NOTHING) {
 *         if (got == WIRE_FAILED) ... log err, wire_conversation_end
 *         if (got == WIRE_MESSAGE) ... keep incoming.message.request, start the work
 *         wire_incoming_done(&incoming);
 *     }
 *     ...
 *     wire_conversation_answer(&conversation, request, &reply, NULL, 0, &err);
 *
 * The daemon's end asks, and is called back; receive gives it events only.
 *
 * Nothing blocks and there is no loop in here: poll channel.fd for wire_conversation_events, then
 * flush and receive. One thread uses a conversation. */
#pragma once

#include "wire/wire_permit.h"
#include "wire/wire_requests.h"

struct wire_conversation {
    enum wire_end end;
    enum wire_state state;
    bool ended;
    struct wire_channel channel;
    struct wire_requests requests;
};

enum wire_received {
    WIRE_FAILED = -1, /* `err` says why; end the conversation */
    WIRE_NOTHING = 0, /* no message is there */
    WIRE_MESSAGE,     /* one for the caller */
    WIRE_SETTLED,     /* one that was dealt with here: ask again */
};

/* Takes `fd`, one end of a SOCK_SEQPACKET pair, also when it fails. Returns 0 or -1. */
int wire_conversation_init(struct wire_conversation *conversation, enum wire_end end, int fd,
                           struct error *err);

/* Over: the socket is closed, and every request of the daemon that is still open is answered with
 * `reason` (ERR_UNAVAILABLE when NULL). Callbacks may ask again and are refused. May be called
 * again. This is also the destructor. */
void wire_conversation_end(struct wire_conversation *conversation, const struct error *reason);

/* At most one message. After WIRE_MESSAGE the caller owns `ret_incoming` (wire_incoming_done);
 * after anything else it is empty. WIRE_FAILED comes with ERR_GONE when the peer closed or died,
 * with ERR_FORBIDDEN, ERR_INVALID, ERR_NOT_IMPLEMENTED or ERR_UPGRADE_REQUIRED when it broke a
 * rule.
 *
 * Launcher: requests. Those the state refuses are answered here with ERR_UNAVAILABLE.
 * Daemon: events. Replies go to their callbacks here. */
enum wire_received wire_conversation_receive(struct wire_conversation *conversation,
                                             struct wire_incoming *ret_incoming, struct error *err);

/* What to poll for: POLLIN, and POLLOUT while something waits to be sent. The launcher does not
 * read while it has answers waiting: a daemon that does not read them gets no more work done. */
short wire_conversation_events(const struct wire_conversation *conversation);

/* Send what waits. Returns 0, or -1: end the conversation. */
int wire_conversation_flush(struct wire_conversation *conversation, struct error *err);

/* Launcher: answer the hello `request`. With a version in common the conversation is greeted and
 * this returns 0; `welcome` has program, features and enforced filled in. Without one the daemon is
 * told, and this returns -1 with ERR_UPGRADE_REQUIRED: end the conversation. */
int wire_conversation_welcome(struct wire_conversation *conversation,
                              const struct wire_message *hello, const struct wire_welcome *welcome,
                              struct error *err);

/* Launcher: answer a request. The request number of `reply` is filled in. Descriptors stay the
 * caller's. Returns 0, or -1 and the request stays open: ERR_INVALID (no such request, no answer to
 * it, not a valid message, or other than its number of descriptors), ERR_UNAVAILABLE (its
 * descriptors cannot be sent now: answer with the failure), ERR_GONE (end the conversation). */
int wire_conversation_answer(struct wire_conversation *conversation, uint64_t request,
                             struct wire_message *reply, const int *fds, size_t count,
                             struct error *err);

/* Launcher: answer that a request succeeded (NULL) without a result, or failed. */
int wire_conversation_answer_done(struct wire_conversation *conversation, uint64_t request,
                                  const struct error *failure, struct error *err);

/* Launcher: send an event. ERR_FORBIDDEN: not in this state; ERR_UNAVAILABLE: the daemon does not
 * read, so remember the event and tell it when the socket can be written again; ERR_GONE. */
int wire_conversation_tell(struct wire_conversation *conversation, struct wire_message *event,
                           struct error *err);

/* Daemon: send a request; its number is filled in. `answer` is called exactly once, never from in
 * here, and not at all when this returns -1: ERR_UNAVAILABLE (the conversation is over or draining,
 * or too many requests wait), ERR_FORBIDDEN (not in this state), ERR_INVALID, ERR_GONE. Descriptors
 * stay the caller's. */
int wire_conversation_ask(struct wire_conversation *conversation, struct wire_message *request,
                          const int *fds, size_t count, struct wire_answer answer,
                          struct error *err);

/* Daemon: the first request. Its answer is a welcome. */
int wire_conversation_hello(struct wire_conversation *conversation, const char *program,
                            struct wire_answer answer, struct error *err);
