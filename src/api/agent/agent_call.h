/* Asking a sandbox's agent for something, for a visit. At most one exchange per visit at a time; it
 * is cancelled when the client leaves, or the request is answered. Nothing here calls back from
 * inside. What is in a reply is borrowed for the call.
 *
 * The agent is not trusted: its replies are bounded (AGENT_REPLY_MAX), its JSON is read with
 * limits, its silence is not waited for longer than the caller says. */
#pragma once

#include <jansson.h>

#include "api/agent/visit.h"

#define AGENT_REPLY_MAX ((size_t) 48 * 1024 * 1024)

struct agent_request {
    const char *method; /* NULL: POST */
    const char *path;   /* with query */
    const char *body;   /* NULL: none */
    size_t length;
    const char *content_type; /* NULL: application/json */
    const char *session;      /* X-Session-Id, or NULL */
    const char *range;        /* Range, or NULL */
    const char *if_range;     /* If-Range, or NULL */
    uint64_t timeout_ms;      /* until the reply's head; 0: none */
    bool is_events;           /* the answer may never end: it is not kept for a repetition */
};

/* A reply that is here as a whole. */
struct agent_reply {
    int status;
    json_t *json;      /* borrowed; NULL: no JSON object */
    const char *bytes; /* borrowed */
    size_t length;
    const char *code;    /* of an error body: "FILE_NOT_FOUND"; else "" */
    const char *message; /* of an error body; else "" */
};

/* `failure`: the agent could not be asked (ERR_UPSTREAM, ERR_UPSTREAM_TIMEOUT, ERR_TOO_LARGE); then
 * reply is NULL. An error of the agent's is a reply: agent_reply_error makes one of ours of it. */
typedef void agent_done(struct visit *visit, const struct agent_reply *reply,
                        const struct error *failure);
void agent_call(struct visit *visit, const struct agent_request *request, agent_done *done);

/* Fill `err` when the reply is none with a 2xx status: code by the agent's code and status (a
 * table), message the agent's. Returns 0 or -1. */
int agent_reply_error(const struct agent_reply *reply, struct error *err);

/* A reply in events (SSE): every `data:` is one JSON object. */
struct agent_stream_events {
    /* The agent answered with an error instead of events. */
    void (*on_refused)(struct visit *visit, const struct agent_reply *reply);
    void (*on_event)(struct visit *visit, const char *type, json_t *event);
    /* The last call: NULL when the stream ended as it should. */
    void (*on_end)(struct visit *visit, const struct error *failure);
};
void agent_stream(struct visit *visit, const struct agent_request *request,
                  const struct agent_stream_events *events);

/* A reply as raw bytes. */
struct agent_body_events {
    void (*on_head)(struct visit *visit, int status, const struct http_head *head);
    void (*on_bytes)(struct visit *visit, const char *bytes, size_t length);
    void (*on_end)(struct visit *visit, const struct error *failure);
};
void agent_fetch(struct visit *visit, const struct agent_request *request,
                 const struct agent_body_events *events);

/* Send the request's own body on as the body of `request` (PUT of a file or archive), streamed. */
void agent_send_body(struct visit *visit, const struct agent_request *request, agent_done *done);
