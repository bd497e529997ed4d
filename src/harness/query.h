/* One HTTP question to something inside a sandbox, which is not trusted: with a time by which it must
 * be answered, and a size that the answer may have. Answered once, from the loop, never from inside
 * the call; after query_cancel not at all.
 *
 * An answer that goes on (server-sent events) is told piece by piece; then the time counts until its
 * head is there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "harness/roll.h"
#include "net/http/http_client.h"
#include "net/loop.h"

struct query_request {
    const char *method;
    const char *target;
    const char *body;    /* JSON; NULL: none. Copied, as the target */
    uint64_t timeout_ms; /* for all of the answer, or the head of one that goes on */
    size_t reply_max;    /* bytes; 0: QUERY_REPLY_MAX */
    /* The answer goes on: its head is there and good, and its bytes. NULL: it is kept. */
    void (*on_open)(void *context);
    void (*on_bytes)(void *context, const char *bytes, size_t length);
};

#define QUERY_REPLY_MAX ((size_t) 64 * 1024)

struct query_reply {
    int status;
    const char *bytes; /* borrowed, NUL-terminated; "" for an answer that went on */
    size_t length;
};

/* A failure (then `reply` is NULL): it could not be asked, was not answered in time, the answer is
 * too large, encoded, or broke off. An answer of any status is a reply. */
typedef void query_done(void *context, const struct error *failure,
                        const struct query_reply *reply);

struct query {
    struct list link; /* of whoever makes it wait before it is sent */
    struct loop *loop;
    struct roll *roll;
    struct http_exchange *exchange; /* NULL: not sent, or over */
    struct deadline deadline;
    struct loop_task refuse;
    struct text reply;
    struct error failure;
    struct query_request request;
    char *target, *body; /* owned */
    query_done *done;
    void *context;
    bool is_over;
};

/* One that is not sent yet. Its time has begun. */
struct query *query_new(struct loop *loop, struct roll *roll, const struct query_request *request,
                        query_done *done, void *context);

/* Exactly one of these, at any time before it is over. */
void query_send(struct query *query, struct http_origin *origin);
void query_refuse(struct query *query, const struct error *failure);

/* Nobody wants to know any more. Accepts NULL. */
void query_cancel(struct query *query);
