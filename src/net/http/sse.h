/* Server-sent events: a reply that goes on, and a reader for those of others.
 *
 * Writing: sse_begin, any number of sse_send (each is one event, flushed at the end of the turn),
 * http_reply_end. Back-pressure as for every reply: http_reply_is_full, on_drain. A client that
 * reconnects says where it was in Last-Event-ID, which sse_last_event_id reads.
 *
 * Reading: feed bytes as they arrive, split anywhere; whole events come out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "net/http/http_request.h"

/* Start the reply: text/event-stream, not cached, not buffered by proxies. */
void sse_begin(struct http_request *request);

/* One event. `id` and `type` may be NULL; both must be without line breaks (else they are left out:
 * they would forge fields). Line breaks in `data` become further data lines, as the format wants.
 */
void sse_send(struct http_request *request, const char *id, const char *type, const char *data,
              size_t length);

/* A comment: keeps the connection alive through proxies. */
void sse_keep_alive(struct http_request *request);

/* The cursor a reconnecting client gives: Last-Event-ID, or ?lastEventId= for those that cannot set
 * headers. NULL when there is none. */
const char *sse_last_event_id(struct http_request *request);

/* Bytes of one event of a peer, all lines together. */
#define SSE_EVENT_MAX ((size_t) 1024 * 1024)
#define SSE_FIELD_MAX ((size_t) 1024)

struct sse_reader;

struct sse_event {
    const char *type; /* "message" when none was given */
    const char *id;   /* the last id seen, "" before the first */
    const char *data; /* borrowed for the call, NUL-terminated */
    size_t length;
};

struct sse_reader {
    void (*on_event)(struct sse_reader *reader, const struct sse_event *event);
    struct text line;
    struct text data;
    struct text type;
    struct text id;
    bool has_data;
    bool after_cr; /* a following LF belongs to the line that is over */
    bool started;  /* the optional byte-order mark was dealt with */
    bool broken;   /* a limit was passed */
};

void sse_reader_init(struct sse_reader *reader,
                     void (*on_event)(struct sse_reader *reader, const struct sse_event *event));

/* Returns 0, or -EMSGSIZE when an event or a field is larger than its limit: the reader is broken
 * then. */
int sse_reader_feed(struct sse_reader *reader, const char *bytes, size_t length);

void sse_reader_done(struct sse_reader *reader);
