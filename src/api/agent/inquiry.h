/* One question to an agent that is not part of a client's request: one exchange with a time limit
 * and a bounded reply, answered once, from the loop. What the domain asks of agents is made of these
 * (inside_agent.c, inside_extract.c); what a client asks is a visit's (agent_call.h). */
#pragma once

#include "api/agent/agents_internal.h"
#include "base/text.h"
#include "domain/inside.h"

#define INQUIRY_REPLY_MAX ((size_t) 768 * 1024) /* fits a column of the store */

struct inquiry {
    struct list link;
    struct agents *agents;
    struct http_exchange *exchange; /* NULL: over, or never begun */
    struct deadline deadline;       /* whoever sees progress may set it anew */
    struct loop_task refuse;        /* when it could not even be asked */
    struct text reply;
    int status; /* of the reply; 0: there is none */
    struct error failure;
    /* Reads a good reply and answers; or answers the failure. */
    void (*answer)(struct inquiry *inquiry, const struct error *failure);
    union {
        inside_activity_done *activity;
        inside_text_done *text;
        inside_done *plain;
    } done;
    void *context;
    void *upload; /* inside_extract.c's */
    bool is_answered;
};

/* Begin one. `ret_origin` is where to send it; NULL: nowhere, and that will be the answer. */
struct inquiry *inquiry_new(struct agents *agents, const struct id *sandbox, uint64_t timeout_ms,
                            struct http_origin **ret_origin);

/* For exchanges of an inquiry, whose data it is. */
void inquiry_got_head(struct http_exchange *exchange);
void inquiry_got_body(struct http_exchange *exchange, const char *bytes, size_t length);
void inquiry_got_end(struct http_exchange *exchange);
void inquiry_got_failure(struct http_exchange *exchange, const struct error *error);

/* It cannot be asked: answered with `failure` of the inquiry, from the loop. */
void inquiry_refuse(struct inquiry *inquiry);

/* Answer all that are under way with ERR_UNAVAILABLE. */
void inquiries_close(struct agents *agents);
