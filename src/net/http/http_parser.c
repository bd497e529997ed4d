#include "net/http/http_parser.h"

#include <string.h>
#include <strings.h>

#include "net/url.h"

#if !LLHTTP_STRICT_MODE
#error "llhttp must be built with LLHTTP_STRICT_MODE=1: without it a bare CR smuggles requests"
#endif

#define HEAD_FIRST_CAPACITY 1024
#define SPAN_FIRST_CAPACITY 24
/* Chunk sizes, extensions and trailers may cost this much, and this much per byte of body. One-byte
 * chunks cost 5; anything beyond is somebody making us read for nothing (CVE-2024-22019). */
#define FRAMING_FREE     ((uint64_t) 64 * 1024)
#define FRAMING_PER_BYTE 16

static struct http_parser *parser_of(llhttp_t *llhttp)
{
    return llhttp->data;
}

/* Refuse the message from inside a callback. */
static int http_parser_refuse(struct http_parser *parser, enum err_code code, const char *text)
{
    if (parser->failure == ERR_NONE) {
        parser->failure = code;
        parser->failure_text = text;
    }
    return HPE_USER;
}

static int http_parser_append(struct http_parser *parser, const char *bytes, size_t length)
{
    if (length + 2 > parser->limits->head_bytes - parser->length)
        return http_parser_refuse(parser, ERR_HEADERS_TOO_LARGE, "the request head is too large");
    if (parser->length + length + 2 > parser->capacity) {
        size_t capacity = parser->capacity ? parser->capacity * 2 : HEAD_FIRST_CAPACITY;
        char *grown;

        while (capacity < parser->length + length + 2)
            capacity *= 2;
        grown = pool_alloc_raw(parser->pool, capacity);
        if (parser->length)
            memcpy(grown, parser->bytes, parser->length);
        parser->bytes = grown;
        parser->capacity = capacity;
    }
    memcpy(parser->bytes + parser->length, bytes, length);
    parser->length += length;
    return 0;
}

static int begin_header(struct http_parser *parser)
{
    if (parser->span_count >= parser->limits->header_count)
        return http_parser_refuse(parser, ERR_HEADERS_TOO_LARGE,
                                  "the request has too many headers");
    if (parser->span_count == parser->span_capacity) {
        size_t capacity = parser->span_capacity ? parser->span_capacity * 2 : SPAN_FIRST_CAPACITY;
        struct http_header_span *grown =
            pool_alloc_raw(parser->pool, capacity * sizeof(*parser->spans));

        if (parser->span_count)
            memcpy(grown, parser->spans, parser->span_count * sizeof(*parser->spans));
        parser->spans = grown;
        parser->span_capacity = capacity;
    }
    parser->spans[parser->span_count++] = (struct http_header_span){
        .name = (uint32_t) parser->length,
    };
    return 0;
}

static struct http_header_span *last_span(struct http_parser *parser)
{
    return &parser->spans[parser->span_count - 1];
}

/* --- llhttp callbacks ----------------------------------------------------------------------- */

static int on_message_begin(llhttp_t *llhttp)
{
    struct http_parser *parser = parser_of(llhttp);

    parser->head = (struct http_head){.content_length = HTTP_LENGTH_UNKNOWN};
    parser->bytes = NULL;
    parser->spans = NULL;
    parser->length = parser->capacity = parser->span_count = parser->span_capacity = 0;
    parser->target_length = 0;
    parser->framing = parser->body = 0;
    parser->in_message = true;
    parser->head_done = parser->in_value = parser->in_trailer = false;
    parser->pool = parser->events->on_begin(parser);
    return 0;
}

/* Request target or reason phrase: the first thing stored, at offset 0. */
static int on_first_line(llhttp_t *llhttp, const char *bytes, size_t length)
{
    struct http_parser *parser = parser_of(llhttp);

    if (parser->target_length + length > parser->limits->target_bytes)
        return http_parser_refuse(parser, ERR_URL_TOO_LONG, "the request target is too long");
    parser->target_length += length;
    return http_parser_append(parser, bytes, length);
}

static int on_header_field(llhttp_t *llhttp, const char *bytes, size_t length)
{
    struct http_parser *parser = parser_of(llhttp);
    struct http_header_span *span;
    int r;

    if (parser->head_done)
        return 0; /* a trailer: counted as framing, otherwise dropped */
    if (parser->span_count && !last_span(parser)->value && !parser->in_value) {
        /* the same name goes on after a split */
    } else {
        if (!parser->length || parser->bytes[parser->length - 1] != '\0') {
            r = http_parser_append(parser, "", 1); /* ends the target, or the last value */
            if (r)
                return r;
        }
        r = begin_header(parser);
        if (r)
            return r;
        parser->in_value = false;
    }
    span = last_span(parser);
    span->name_length += (uint32_t) length;
    return http_parser_append(parser, bytes, length);
}

static int on_header_field_complete(llhttp_t *llhttp)
{
    struct http_parser *parser = parser_of(llhttp);
    int r;

    if (parser->head_done)
        return 0;
    r = http_parser_append(parser, "", 1);
    if (r)
        return r;
    last_span(parser)->value = (uint32_t) parser->length;
    parser->in_value = true;
    return 0;
}

static int on_header_value(llhttp_t *llhttp, const char *bytes, size_t length)
{
    struct http_parser *parser = parser_of(llhttp);

    if (parser->head_done)
        return 0;
    last_span(parser)->value_length += (uint32_t) length;
    return http_parser_append(parser, bytes, length);
}

static int on_header_value_complete(llhttp_t *llhttp)
{
    struct http_parser *parser = parser_of(llhttp);

    parser->in_value = false;
    if (parser->head_done)
        return 0;
    return http_parser_append(parser, "", 1);
}

/* --- the finished head ---------------------------------------------------------------------- */

static void trim_value(struct http_header *header, char *value)
{
    while (header->value_length &&
           (value[header->value_length - 1] == ' ' || value[header->value_length - 1] == '\t'))
        value[--header->value_length] = '\0';
    header->value = value;
}

static void collect_headers(struct http_parser *parser)
{
    struct http_head *head = &parser->head;

    head->header_count = parser->span_count;
    head->headers = pool_alloc_raw(parser->pool, (parser->span_count + 1) * sizeof(*head->headers));
    for (size_t i = 0; i < parser->span_count; i++) {
        const struct http_header_span *span = &parser->spans[i];

        head->headers[i] = (struct http_header){
            .name = parser->bytes + span->name,
            .name_length = span->name_length,
            .value_length = span->value_length,
        };
        trim_value(&head->headers[i], parser->bytes + span->value);
    }
}

static int check_values(struct http_parser *parser)
{
    for (size_t i = 0; i < parser->head.header_count; i++) {
        const struct http_header *header = &parser->head.headers[i];

        if (!header->name_length)
            return http_parser_refuse(parser, ERR_INVALID, "a header has no name");
        /* strlen differs when the value holds a NUL. */
        if (strlen(header->value) != header->value_length || !http_value_is_valid(header->value))
            return http_parser_refuse(parser, ERR_INVALID,
                                      "a header value holds a control character");
    }
    return 0;
}

static int check_transfer_encoding(struct http_parser *parser)
{
    const char *value = http_head_get(&parser->head, "transfer-encoding");

    if (!value)
        return 0;
    if (parser->head.minor == 0)
        return http_parser_refuse(parser, ERR_INVALID, "Transfer-Encoding is not part of HTTP/1.0");
    /* What we trim llhttp must know as well: "chunked" before a tab is another word to it. */
    if (http_head_count(&parser->head, "transfer-encoding") != 1 ||
        strcasecmp(value, "chunked") != 0 || !parser->head.chunked)
        return http_parser_refuse(parser, ERR_INVALID,
                                  "the only Transfer-Encoding accepted is 'chunked'");
    if (http_head_get(&parser->head, "content-length"))
        return http_parser_refuse(parser, ERR_INVALID,
                                  "Content-Length and Transfer-Encoding exclude each other");
    return 0;
}

static int check_host(struct http_parser *parser)
{
    size_t count = http_head_count(&parser->head, "host");
    const char *value = http_head_get(&parser->head, "host");
    struct url_host host;

    if (count > 1)
        return http_parser_refuse(parser, ERR_INVALID, "more than one Host header");
    if (!count && parser->head.minor == 1)
        return http_parser_refuse(parser, ERR_INVALID, "HTTP/1.1 requires a Host header");
    if (count && *value && url_host_parse(value, strlen(value), &host, NULL) < 0)
        return http_parser_refuse(parser, ERR_INVALID, "the Host header is not a host name");
    return 0;
}

static int check_head(struct http_parser *parser)
{
    int r = check_values(parser);

    if (r)
        return r;
    r = check_transfer_encoding(parser);
    if (r)
        return r;
    if (http_head_count(&parser->head, "content-length") > 1)
        return http_parser_refuse(parser, ERR_INVALID, "more than one Content-Length header");
    if (parser->kind == HTTP_KIND_RESPONSE)
        return 0;
    if (parser->llhttp.method == HTTP_CONNECT && !parser->limits->takes_connect)
        return http_parser_refuse(parser, ERR_NOT_IMPLEMENTED, "CONNECT is not served here");
    /* What follows a CONNECT with framing headers is anybody's guess: llhttp takes it for the
     * tunnel, others for a body. */
    if (parser->llhttp.method == HTTP_CONNECT &&
        (http_head_get(&parser->head, "content-length") || parser->head.chunked))
        return http_parser_refuse(parser, ERR_INVALID, "CONNECT has no body");
    return check_host(parser);
}

static int fill_head(struct http_parser *parser)
{
    llhttp_t *llhttp = &parser->llhttp;
    struct http_head *head = &parser->head;
    int r;

    if (llhttp->http_major != 1 || llhttp->http_minor > 1)
        return http_parser_refuse(parser, ERR_HTTP_VERSION,
                                  "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (parser->kind == HTTP_KIND_RESPONSE && llhttp->status_code < 100)
        return http_parser_refuse(parser, ERR_INVALID, "the status has fewer than three digits");
    r = http_parser_append(parser, "", 1);
    if (r)
        return r;
    head->minor = llhttp->http_minor;
    head->method = parser->kind == HTTP_KIND_REQUEST ? llhttp_method_name(llhttp->method) : "";
    head->status = llhttp->status_code;
    head->target = parser->kind == HTTP_KIND_REQUEST ? parser->bytes : "";
    head->reason = parser->kind == HTTP_KIND_RESPONSE && parser->target_length ? parser->bytes : "";
    head->target_length = parser->kind == HTTP_KIND_REQUEST ? parser->target_length : 0;
    collect_headers(parser);
    head->chunked = (llhttp->flags & F_CHUNKED) != 0;
    if (llhttp->flags & F_CONTENT_LENGTH) {
        if (llhttp->content_length > INT64_MAX)
            return http_parser_refuse(parser, ERR_INVALID, "the Content-Length is absurd");
        head->content_length = (int64_t) llhttp->content_length;
    }
    head->keep_alive = llhttp_should_keep_alive(llhttp) != 0;
    head->upgrade = llhttp->upgrade != 0;
    return check_head(parser);
}

/* Stop, so that the lines of the head are checked before anybody sees it. */
static int on_headers_complete(llhttp_t *llhttp)
{
    struct http_parser *parser = parser_of(llhttp);

    if (fill_head(parser))
        return -1;
    parser->head_done = true;
    return HPE_PAUSED;
}

/* Stop behind the last chunk: what follows are lines again. */
static int on_chunk_header(llhttp_t *llhttp)
{
    if (llhttp->content_length)
        return 0;
    parser_of(llhttp)->in_trailer = true;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *llhttp, const char *bytes, size_t length)
{
    struct http_parser *parser = parser_of(llhttp);

    parser->body += length;
    parser->events->on_body(parser, bytes, length);
    return 0;
}

static int on_message_complete(llhttp_t *llhttp)
{
    parser_of(llhttp)->in_message = false;
    return llhttp->upgrade ? 0 : HPE_PAUSED; /* llhttp itself pauses on an upgrade */
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_first_line,
    .on_status = on_first_line,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* --- feeding -------------------------------------------------------------------------------- */

void http_parser_init(struct http_parser *parser, enum http_kind kind,
                      const struct http_limits *limits, const struct http_parser_events *events)
{
    *parser = (struct http_parser){.kind = kind, .limits = limits, .events = events};
    llhttp_init(&parser->llhttp, kind == HTTP_KIND_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE,
                &settings);
    parser->llhttp.data = parser;
}

static enum http_progress failed(struct http_parser *parser, struct error *err)
{
    enum err_code code = parser->failure;
    const char *text = parser->failure_text;

    if (code == ERR_NONE) {
        enum llhttp_errno number = llhttp_get_errno(&parser->llhttp);

        code = number == HPE_INVALID_VERSION ? ERR_HTTP_VERSION : ERR_INVALID;
        text = llhttp_get_error_reason(&parser->llhttp);
    }
    (void) error_set(err, code, 0, "malformed HTTP %s: %s",
                     parser->kind == HTTP_KIND_REQUEST ? "request" : "response",
                     text && *text ? text : "syntax error");
    return HTTP_FAILED;
}

/* Bytes that carried neither head nor body must stay in proportion to the body. */
static bool framing_is_sane(struct http_parser *parser, size_t consumed, uint64_t body_before,
                            bool in_body)
{
    if (!in_body)
        return true;
    parser->framing += consumed - (parser->body - body_before);
    return parser->framing <= FRAMING_FREE + FRAMING_PER_BYTE * parser->body;
}

/* What is wrong with a line that begins with this, or NULL. */
static const char *find_bad_start(char c)
{
    if (c == ' ' || c == '\t')
        return "folded header lines are not accepted";
    return c == ':' ? "a header has no name" : NULL;
}

/* What two parsers read differently, and llhttp accepts without a trace in what it reports: a line
 * that continues the one before it (RFC 9112 5.2: reject), one without a name, and a bare LF. */
static const char *find_bad_line(struct http_parser *parser, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    char before = parser->last_byte;
    const char *bad = length && before == '\n' ? find_bad_start(*bytes) : NULL;

    for (const char *at = bytes; !bad && (at = memchr(at, '\n', (size_t) (end - at))); at++) {
        if ((at > bytes ? at[-1] : before) != '\r')
            bad = "a line must end in CR and LF";
        else if (at + 1 < end)
            bad = find_bad_start(at[1]);
    }
    if (length)
        parser->last_byte = end[-1];
    return bad;
}

/* Up to the next place where the parser stops. */
static enum llhttp_errno feed_part(struct http_parser *parser, const char *bytes, size_t length,
                                   size_t *ret_consumed)
{
    bool in_body = parser->in_message && parser->head_done;
    bool in_lines = !in_body || parser->in_trailer;
    uint64_t body_before = parser->body;
    enum llhttp_errno result = llhttp_execute(&parser->llhttp, bytes, length);
    const char *bad_line = NULL;

    *ret_consumed = length;
    if (result != HPE_OK && llhttp_get_error_pos(&parser->llhttp))
        *ret_consumed = (size_t) (llhttp_get_error_pos(&parser->llhttp) - bytes);
    if (in_lines)
        bad_line = find_bad_line(parser, bytes, *ret_consumed);
    if (bad_line) {
        parser->failure = ERR_NONE; /* the line came before whatever else was found */
        return (enum llhttp_errno) http_parser_refuse(parser, ERR_INVALID, bad_line);
    }
    if (!framing_is_sane(parser, *ret_consumed, body_before, in_body))
        return (enum llhttp_errno) http_parser_refuse(
            parser, ERR_INVALID, "too much chunk framing for the data it carries");
    return result;
}

/* The head is complete and sound. Returns whether the owner looks at it before the body comes. */
static bool announce_head(struct http_parser *parser)
{
    struct http_head *head = &parser->head;
    bool no_body = parser->events->on_head(parser);

    if (parser->kind == HTTP_KIND_REQUEST)
        return http_head_has_body(head);
    /* RFC 9112 6.3: these never have a body; llhttp would wait for what Content-Length says. */
    if (no_body || head->status < 200 || head->status == 204 || head->status == 304) {
        parser->llhttp.flags |= F_SKIPBODY;
        head->keep_alive = llhttp_should_keep_alive(&parser->llhttp) != 0;
    }
    return false;
}

/* After a stop that was ours. */
static enum http_progress http_parser_resume(struct http_parser *parser)
{
    llhttp_resume(&parser->llhttp);
    if (!parser->in_message)
        return HTTP_MESSAGE_READY;
    if (parser->in_trailer) {
        parser->last_byte = '\n'; /* the one behind the last chunk's size */
        return HTTP_NEEDS_MORE;
    }
    return announce_head(parser) ? HTTP_HEAD_READY : HTTP_NEEDS_MORE;
}

enum http_progress http_parser_feed(struct http_parser *parser, const char *bytes, size_t length,
                                    size_t *ret_consumed, struct error *err)
{
    enum http_progress progress;

    *ret_consumed = 0;
    do {
        size_t used = 0;
        enum llhttp_errno result =
            feed_part(parser, bytes + *ret_consumed, length - *ret_consumed, &used);

        *ret_consumed += used;
        if (result == HPE_OK)
            return HTTP_NEEDS_MORE;
        if (result == HPE_PAUSED_UPGRADE) {
            parser->in_message = false;
            return HTTP_UPGRADE_READY;
        }
        if (result != HPE_PAUSED)
            return failed(parser, err);
        progress = http_parser_resume(parser);
    } while (progress == HTTP_NEEDS_MORE);
    return progress;
}

enum http_progress http_parser_finish(struct http_parser *parser, struct error *err)
{
    enum llhttp_errno result;

    if (!parser->in_message)
        return HTTP_NEEDS_MORE;
    result = llhttp_finish(&parser->llhttp);
    if (result == HPE_OK || result == HPE_PAUSED) {
        if (!parser->in_message)
            return HTTP_MESSAGE_READY;
        (void) http_parser_refuse(parser, ERR_INVALID,
                                  "the connection ended in the middle of the message");
    }
    return failed(parser, err);
}

void http_parser_refuse_upgrade(struct http_parser *parser)
{
    llhttp_resume_after_upgrade(&parser->llhttp);
}
