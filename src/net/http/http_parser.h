/* HTTP/1.x parsing for both sides, on llhttp in strict mode, made stricter where llhttp is not.
 *
 * The parser owns no buffer: bytes are fed as they arrive, split anywhere, and every split gives
 * the same result. The head is copied into a pool of the owner; the body is passed through.
 *
 * What is refused beyond llhttp strict (each would let two parsers disagree about where a message
 * ends or whom it is for): folded headers, lines that end in a bare LF, a missing, repeated or
 * malformed Host in HTTP/1.1, Transfer-Encoding in HTTP/1.0 or with any value but "chunked",
 * control characters in values, versions other than 1.0 and 1.1, CONNECT (but for whom it is the
 * trade, and never with a body), and chunk framing that outweighs the data it frames.
 *
 * A failed parser must not be fed again: the connection is over. Not thread-safe. */
#pragma once

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "net/http/http_head.h"

struct http_limits {
    size_t target_bytes;
    size_t head_bytes; /* request or status line and all headers together */
    size_t header_count;
    bool takes_connect; /* a forward proxy: CONNECT is no error */
};

#define HTTP_LIMITS_DEFAULT                                                                        \
    {                                                                                              \
        .target_bytes = (size_t) 16 * 1024, .head_bytes = (size_t) 64 * 1024, .header_count = 128  \
    }

enum http_kind { HTTP_KIND_REQUEST, HTTP_KIND_RESPONSE };

enum http_progress {
    HTTP_NEEDS_MORE,    /* everything was consumed */
    HTTP_HEAD_READY,    /* requests with a body: the head is complete, feed on to get the body */
    HTTP_MESSAGE_READY, /* the message ended at the consumed length */
    HTTP_UPGRADE_READY, /* it ended and asks for another protocol: the rest is not HTTP unless */
                        /* http_parser_refuse_upgrade is called */
    HTTP_FAILED,        /* see the error */
};

struct http_parser;

struct http_parser_events {
    /* A message begins: the pool for its head, which must live until the next message. */
    struct pool *(*on_begin)(struct http_parser *parser);
    /* The head is complete (parser->head). Responses only: return true when no body follows
     * whatever the headers say, as after HEAD. */
    bool (*on_head)(struct http_parser *parser);
    /* A piece of the body, chunk framing removed; borrowed for the call. */
    void (*on_body)(struct http_parser *parser, const char *bytes, size_t length);
};

struct http_header_span {
    uint32_t name, name_length, value, value_length; /* offsets into the head bytes */
};

struct http_parser {
    llhttp_t llhttp;
    const struct http_parser_events *events; /* borrowed: static */
    const struct http_limits *limits;        /* borrowed: outlives us */
    struct pool *pool;                       /* borrowed: of the message */
    struct http_head head;

    /* The head as it grows; offsets, because the bytes move when they grow. */
    char *bytes;
    struct http_header_span *spans;
    size_t length, capacity;
    size_t span_count, span_capacity;
    size_t target_length;

    uint64_t framing; /* bytes of this message that were neither head nor body */
    uint64_t body;    /* bytes of body so far */
    enum http_kind kind;
    enum err_code failure; /* set by a callback that refuses the message */
    const char *failure_text;
    bool in_message : 1;
    bool head_done : 1;
    bool in_value : 1; /* a header value has begun and is not complete */
    bool in_trailer : 1;
    char last_byte; /* of the lines of a head or trailer so far */
};

void http_parser_init(struct http_parser *parser, enum http_kind kind,
                      const struct http_limits *limits, const struct http_parser_events *events);

/* Feed bytes. Returns how far it came, `*ret_consumed` of them used; HTTP_FAILED fills `err`
 * (ERR_INVALID, ERR_URL_TOO_LONG, ERR_HEADERS_TOO_LARGE, ERR_HTTP_VERSION). */
enum http_progress http_parser_feed(struct http_parser *parser, const char *bytes, size_t length,
                                    size_t *ret_consumed, struct error *err);

/* The peer sends no more. HTTP_MESSAGE_READY when that ends a response body, HTTP_NEEDS_MORE when
 * nothing was under way, HTTP_FAILED when a message was cut off. */
enum http_progress http_parser_finish(struct http_parser *parser, struct error *err);

/* After HTTP_UPGRADE_READY: go on with HTTP on this connection. */
void http_parser_refuse_upgrade(struct http_parser *parser);

/* Whether part of a message was fed. */
static inline bool http_parser_in_message(const struct http_parser *parser)
{
    return parser->in_message;
}
