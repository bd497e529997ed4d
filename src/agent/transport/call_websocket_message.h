/* What travels on /ws, as messages: read and checked, or written. Pure.
 *
 *     client ──► {"type":"request","id":"1","method":"POST","path":"/api/read","body":{...},
 *                 "headers":{...}}
 *            ──► {"type":"cancel","id":"1"}
 *            ◄── {"type":"stream","id":"1","data":"..."}
 *            ◄── {"type":"response","id":"1","status":200,"body":{...},"done":true}
 *            ◄── {"type":"error","id":"1","code":"INVALID_REQUEST","message":"...","status":400}
 *
 * A method and a path make a request, a `type` alone makes nothing: unknown fields are ignored,
 * other types are refused. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"
#include "base/text.h"
#include "net/url.h"

#define CALL_WEBSOCKET_ID_MAX     ((size_t) 1024)
#define CALL_WEBSOCKET_METHOD_MAX ((size_t) 16)
/* Of a message besides its body: id, path and headers, everything escaped. */
#define CALL_WEBSOCKET_AROUND_MAX ((size_t) 256 * 1024)

enum call_websocket_type { CALL_WEBSOCKET_REQUEST, CALL_WEBSOCKET_CANCEL };

struct call_websocket_message {
    enum call_websocket_type type;
    const char *id;
    /* Of a request only. */
    const char *method;
    struct url_target target; /* its path begins with '/' */
    json_t *body;             /* borrowed; NULL: none */
    json_t *headers;          /* borrowed, an object; NULL: none */
};

/* A fault of the client's. */
struct call_websocket_fault {
    const char *code; /* static */
    int status;
    const char *id; /* borrowed from the message; NULL: not known */
    char message[256];
};

#define CALL_WEBSOCKET_PARSE_ERROR     "PARSE_ERROR"
#define CALL_WEBSOCKET_INVALID_REQUEST "INVALID_REQUEST"
#define CALL_WEBSOCKET_INTERNAL_ERROR  "INTERNAL_ERROR"
#define CALL_WEBSOCKET_STREAM_ERROR    "STREAM_ERROR"

/* Parse `length` bytes, which are UTF-8, and read them. What is returned lives in the pool or in
 * `*ret_root`, which is the caller's also on failure (it may be NULL then). Returns 0, or -1 with
 * the fault to tell. */
int call_websocket_read(const char *bytes, size_t length, struct pool *pool, json_t **ret_root,
                        struct call_websocket_message *ret_message,
                        struct call_websocket_fault *ret_fault);

/* A header of the message in any case, or NULL. */
const char *call_websocket_header(const struct call_websocket_message *message, const char *name);

/* Append {"type":"response","id":...,"status":...,"done":true with `,"body":` behind it when there
 * is one; what follows is the body as JSON and a '}'. */
void call_websocket_write_head(struct text *out, const char *id, int status, bool has_body);

/* Append a whole message: a piece of a stream, with an event's name unless that is NULL. Returns 0,
 * or -1 when `out` has no room. */
int call_websocket_write_stream(struct text *out, const char *id, const char *event,
                                const char *data, size_t length);

/* Append a whole message: an error. */
void call_websocket_write_error(struct text *out, const struct call_websocket_fault *fault);
