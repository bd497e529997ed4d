/* Requests that wait for their answer: each has exactly one, and there is room for so many.
 *
 * Both ends keep such a table. The daemon notes what it asked and whom to tell; the launcher notes
 * what it owes, which makes answering twice or to nobody an error here and not a riddle there. The
 * bound is part of the protocol: a daemon that goes past it is cut off.
 *
 * Holds no memory of its own. One thread uses a table. */
#pragma once

#include "base/trace.h"
#include "wire/wire_channel.h"

#define WIRE_REQUESTS_MAX 256

/* The answer to a request, called once: with the reply (whose descriptors may be taken) when it
 * succeeded, else with a failure and no reply. */
struct wire_answer {
    void (*call)(void *context, struct wire_incoming *reply, const struct error *failure);
    void *context; /* borrowed: outlives the request */
};

struct wire_request {
    uint64_t number; /* 0: this place is free */
    enum wire_number message;
    struct wire_answer answer;  /* the launcher has none */
    struct trace_context trace; /* of whoever asked; the answer is told, or sent, as that */
};

struct wire_requests {
    uint64_t last; /* highest number so far */
    size_t count;
    struct wire_request places[WIRE_REQUESTS_MAX];
};

void wire_requests_init(struct wire_requests *requests);

/* Note a request of ours under a new number. NULL with ERR_UNAVAILABLE: too many wait for an
 * answer.
 */
struct wire_request *wire_requests_add(struct wire_requests *requests, enum wire_number message,
                                       struct wire_answer answer, struct error *err);

/* Note a request of the peer, as the trace has it. -1 with ERR_FORBIDDEN: too many, or a number that does not rise. */
int wire_requests_note(struct wire_requests *requests, uint64_t number, enum wire_number message,
                       struct error *err);

/* The request that `reply` answers: borrowed until the table changes. NULL with ERR_INVALID: none
 * is open under that number, or this is no answer to it. */
struct wire_request *wire_requests_find(struct wire_requests *requests,
                                        const struct wire_message *reply, struct error *err);

/* Take a request out of the table; `request` points into it. */
struct wire_request wire_requests_remove(struct wire_requests *requests,
                                         struct wire_request *request);

/* The oldest request, or NULL. */
struct wire_request *wire_requests_oldest(struct wire_requests *requests);
