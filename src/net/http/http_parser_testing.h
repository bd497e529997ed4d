/* For tests and fuzzers of the HTTP parser: feed bytes in any pieces and write down everything it
 * says, in a form where two runs can be compared with strcmp. Included by test programs only. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/http/http_parser.h"

#define TRANSCRIPT_MAX ((size_t) 16 * 1024 * 1024)

struct transcript {
    struct http_parser parser;
    struct pool pool;
    struct text told;        /* of messages that are complete */
    struct text head;        /* of the message under way */
    struct text body;        /* likewise */
    struct text rewritten;   /* the complete messages as bytes again */
    struct text after;       /* what came behind an upgrade */
    bool answers_head;       /* responses: none has a body */
    bool take_upgrades;      /* stop at an upgrade instead of going on with HTTP */
    bool over;               /* failed, or upgraded */
    enum http_progress last; /* of the last call */
    struct error error;      /* when it failed */
    size_t messages;         /* complete */
    size_t head_ready;       /* how often it stopped behind a head */
    size_t consumed;         /* bytes it took in all */
    size_t first_end;        /* how many of them were the first message */
    void (*check)(struct transcript *transcript); /* optional: looks at every head */
};

static inline struct transcript *transcript_of(struct http_parser *parser)
{
    return CONTAINER_OF(parser, struct transcript, parser);
}

static struct pool *transcript_begins(struct http_parser *parser)
{
    struct transcript *transcript = transcript_of(parser);

    pool_reset(&transcript->pool);
    text_clear(&transcript->head);
    text_clear(&transcript->body);
    return &transcript->pool;
}

static bool transcript_head(struct http_parser *parser)
{
    struct transcript *transcript = transcript_of(parser);
    const struct http_head *head = &parser->head;
    struct text *out = &transcript->head;

    text_format(out, "%s[%s] %d[%s] HTTP/1.%d length=%lld%s%s%s\n", head->method, head->target,
                head->status, head->reason, head->minor, (long long) head->content_length,
                head->chunked ? " chunked" : "", head->keep_alive ? " keep" : "",
                head->upgrade ? " upgrade" : "");
    for (size_t i = 0; i < head->header_count; i++)
        text_format(out, "%s: %s\n", head->headers[i].name, head->headers[i].value);
    if (transcript->check)
        transcript->check(transcript);
    return transcript->answers_head;
}

static void transcript_body(struct http_parser *parser, const char *bytes, size_t length)
{
    text_append_bytes(&transcript_of(parser)->body, bytes, length);
}

static const struct http_parser_events transcript_events = {
    .on_begin = transcript_begins,
    .on_head = transcript_head,
    .on_body = transcript_body,
};

static const struct http_limits transcript_limits = HTTP_LIMITS_DEFAULT;

static inline void transcript_init(struct transcript *transcript, enum http_kind kind,
                                   const struct http_limits *limits)
{
    *transcript = (struct transcript){
        .pool = POOL_INIT,
        .told = TEXT_INIT(TRANSCRIPT_MAX),
        .head = TEXT_INIT(TRANSCRIPT_MAX),
        .body = TEXT_INIT(TRANSCRIPT_MAX),
        .rewritten = TEXT_INIT(TRANSCRIPT_MAX),
        .after = TEXT_INIT(TRANSCRIPT_MAX),
    };
    http_parser_init(&transcript->parser, kind, limits ? limits : &transcript_limits,
                     &transcript_events);
}

static inline void transcript_done(struct transcript *transcript)
{
    pool_done(&transcript->pool);
    text_done(&transcript->told);
    text_done(&transcript->head);
    text_done(&transcript->body);
    text_done(&transcript->rewritten);
    text_done(&transcript->after);
}

AUTO_DEFINE(transcript, struct transcript, transcript_done);

/* The head as bytes again, from nothing but what the parser said. */
static inline void transcript_write_head(const struct http_head *head, struct text *out)
{
    if (*head->method)
        text_format(out, "%s %s HTTP/1.%d\r\n", head->method, head->target, head->minor);
    else
        text_format(out, "HTTP/1.%d %03d %s\r\n", head->minor, head->status, head->reason);
    for (size_t i = 0; i < head->header_count; i++)
        text_format(out, "%s: %s\r\n", head->headers[i].name, head->headers[i].value);
    text_append(out, "\r\n");
}

/* Responses that end with their head whatever it says (RFC 9112 6.3). */
static inline bool transcript_has_no_body(const struct transcript *transcript)
{
    int status = transcript->parser.head.status;

    return transcript->parser.kind == HTTP_KIND_RESPONSE &&
           (transcript->answers_head || status < 200 || status == 204 || status == 304);
}

static inline void transcript_message_ends(struct transcript *transcript)
{
    const struct http_head *head = &transcript->parser.head;
    const char *body = text_string(&transcript->body);
    size_t length = transcript->body.length;

    text_append_bytes(&transcript->told, text_string(&transcript->head), transcript->head.length);
    text_append(&transcript->told, "{");
    text_append_bytes(&transcript->told, body, length);
    text_append(&transcript->told, "}\n");
    transcript_write_head(head, &transcript->rewritten);
    if (head->chunked && length)
        text_format(&transcript->rewritten, "%zx\r\n", length);
    text_append_bytes(&transcript->rewritten, body, length);
    if (head->chunked && !transcript_has_no_body(transcript))
        text_append(&transcript->rewritten, length ? "\r\n0\r\n\r\n" : "0\r\n\r\n");
    transcript->messages++;
}

static inline void transcript_step(struct transcript *transcript, const char *bytes, size_t length)
{
    switch (transcript->last) {
    case HTTP_HEAD_READY:
        transcript->head_ready++;
        break;
    case HTTP_MESSAGE_READY:
        transcript_message_ends(transcript);
        break;
    case HTTP_UPGRADE_READY:
        transcript_message_ends(transcript);
        transcript->over = transcript->take_upgrades;
        if (transcript->over)
            text_append_bytes(&transcript->after, bytes, length);
        else
            http_parser_refuse_upgrade(&transcript->parser);
        break;
    case HTTP_FAILED:
        transcript->over = true;
        break;
    case HTTP_NEEDS_MORE:
        break;
    }
}

/* Feed one piece, copied to memory of exactly its size so that reading past it is seen. */
static inline void transcript_feed(struct transcript *transcript, const char *bytes, size_t length)
{
    AUTO(free) char *copy = length ? malloc(length) : NULL;
    const char *at = copy;

    if (transcript->over && transcript->last == HTTP_UPGRADE_READY)
        text_append_bytes(&transcript->after, bytes, length);
    if (transcript->over || !copy)
        return;
    memcpy(copy, bytes, length);
    while (length && !transcript->over) {
        size_t used = 0;

        error_clear(&transcript->error);
        transcript->last =
            http_parser_feed(&transcript->parser, at, length, &used, &transcript->error);
        if (used > length || (transcript->last == HTTP_NEEDS_MORE && used != length))
            abort();
        at += used;
        length -= used;
        transcript->consumed += used;
        transcript_step(transcript, at, length);
        if (transcript->messages && !transcript->first_end)
            transcript->first_end = transcript->consumed;
    }
}

/* In pieces of `step` bytes. */
static inline void transcript_feed_steps(struct transcript *transcript, const char *bytes,
                                         size_t length, size_t step)
{
    for (size_t at = 0; at < length; at += step)
        transcript_feed(transcript, bytes + at, length - at < step ? length - at : step);
}

/* The peer's end. */
static inline void transcript_finish(struct transcript *transcript)
{
    if (transcript->over)
        return;
    error_clear(&transcript->error);
    transcript->last = http_parser_finish(&transcript->parser, &transcript->error);
    transcript_step(transcript, NULL, 0);
}

/* A limit is noticed as bytes come, a fault of syntax when its line is read: of a message that has
 * both, the pieces decide which is told. */
static inline bool transcript_same_refusal(enum err_code one, enum err_code other)
{
    return one == other || (one != ERR_NONE && other != ERR_NONE &&
                            (one == ERR_HEADERS_TOO_LARGE || one == ERR_URL_TOO_LONG ||
                             other == ERR_HEADERS_TOO_LARGE || other == ERR_URL_TOO_LONG));
}

/* Whether two ways of feeding the same bytes gave the same. */
static inline bool transcript_same(const struct transcript *one, const struct transcript *other)
{
    return one->last == other->last &&
           transcript_same_refusal(one->error.code, other->error.code) &&
           one->messages == other->messages && one->head_ready == other->head_ready &&
           one->told.length == other->told.length &&
           memcmp(text_string(&one->told), text_string(&other->told), one->told.length) == 0 &&
           one->after.length == other->after.length &&
           memcmp(text_string(&one->after), text_string(&other->after), one->after.length) == 0;
}
