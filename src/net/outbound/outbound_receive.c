#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "net/outbound/outbound_internal.h"

void outbound_alive(struct outbound_request *request)
{
    request->active_at = loop_now(request->outbound->loop);
}

size_t outbound_fail(struct outbound_request *request, const struct error *reason)
{
    if (request->failure.code == ERR_NONE)
        request->failure = *reason;
    return 0;
}

static size_t fail_upstream(struct outbound_request *request, int system, const char *text)
{
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_UPSTREAM, system, "%s", text);
    return outbound_fail(request, &reason);
}

/* Bare CR and friends in a value would split whatever it is copied into. */
static bool has_control_character(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (((unsigned char) line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return true;
    }
    return false;
}

static size_t add_header(struct outbound_request *request, const char *line, size_t length)
{
    struct outbound_received *received = &request->received;
    const char *colon = memchr(line, ':', length);
    size_t name_length = colon ? (size_t) (colon - line) : 0, value_length;
    char *name, *value;

    if (!colon || !outbound_is_token(line, name_length) || has_control_character(line, length))
        return fail_upstream(request, 0, "the response has a malformed header line");
    if (received->count == OUTBOUND_HEADERS_MAX)
        return fail_upstream(request, EMSGSIZE, "the response has too many headers");
    name = pool_copy_bytes(&received->pool, line, name_length);
    for (char *at = name; *at; at++)
        *at = (char) (*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    value_length = length - name_length - 1;
    for (colon++; value_length && (*colon == ' ' || *colon == '\t'); value_length--)
        colon++;
    while (value_length && (colon[value_length - 1] == ' ' || colon[value_length - 1] == '\t'))
        value_length--;
    value = pool_copy_bytes(&received->pool, colon, value_length);
    received->headers[received->count++] = (struct outbound_header){name, value};
    return 1;
}

static void begin_head(struct outbound_received *received)
{
    pool_reset(&received->pool);
    received->headers =
        pool_alloc(&received->pool, OUTBOUND_HEADERS_MAX * sizeof(*received->headers));
    received->count = 0;
    received->status_seen = true;
}

/* Two answers about the length would let the peer choose what we read as the next response. */
static size_t check_length(struct outbound_request *request)
{
    const struct outbound_received *received = &request->received;
    uint64_t length = 0, other;
    bool seen = false;

    for (size_t i = 0; i < received->count; i++) {
        const char *text = received->headers[i].value;

        if (strcmp(received->headers[i].name, "content-length") != 0)
            continue;
        if (number_parse_digits(text, strlen(text), UINT64_MAX, &other) < 0 ||
            (seen && other != length))
            return fail_upstream(request, 0, "the response's length is malformed");
        length = other;
        seen = true;
    }
    if (length > request->limits.body_max && strcmp(request->method, "HEAD") != 0)
        return fail_upstream(request, EMSGSIZE, "the response body is over the limit");
    return 1;
}

static size_t end_head(struct outbound_request *request)
{
    struct outbound_received *received = &request->received;
    struct error reason = ERROR_INIT;
    long status = 0;
    int redirect;

    (void) curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    received->status = (int) status;
    received->status_seen = false;
    if (status == 101)
        return fail_upstream(request, 0, "the peer switched protocols unasked");
    if (status < 200)
        return 1; /* interim: another head follows */
    received->head_done = true;
    redirect = outbound_redirect_check(request, &reason);
    if (redirect < 0)
        return outbound_fail(request, &reason);
    received->redirecting = redirect;
    if (redirect)
        return 1;
    if (!check_length(request))
        return 0;
    if (request->events->on_head)
        request->events->on_head(request, request->context, received->status, received->headers,
                                 received->count);
    return !request->cancelled;
}

size_t outbound_line_received(char *line, size_t size, size_t count, void *context)
{
    struct outbound_request *request = context;
    struct outbound_received *received = &request->received;
    size_t length = size * count, whole = length;

    if (request->cancelled)
        return 0;
    outbound_alive(request);
    received->head_bytes += whole;
    if (received->head_bytes > request->limits.head_max)
        return fail_upstream(request, EMSGSIZE, "the response's head is over the limit");
    while (length && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        length--;
    if (received->head_done)
        return whole; /* a trailer */
    if (!received->status_seen)
        begin_head(received);
    else if (length == 0)
        return end_head(request) ? whole : 0;
    else if (!add_header(request, line, length))
        return 0;
    return whole;
}

static size_t skip_body(struct outbound_request *request, size_t length)
{
    request->received.body_bytes += length;
    /* Too long to be worth the connection; the redirect is followed on another. */
    return request->received.body_bytes > OUTBOUND_SKIPPED_MAX ? CURL_WRITEFUNC_ERROR : length;
}

size_t outbound_body_received(char *bytes, size_t size, size_t count, void *context)
{
    struct outbound_request *request = context;
    size_t length = size * count;

    if (request->cancelled)
        return CURL_WRITEFUNC_ERROR;
    outbound_alive(request);
    if (request->received.redirecting)
        return skip_body(request, length);
    if (request->paused) {
        request->held_receive = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (length > request->limits.body_max - request->received.body_bytes) {
        (void) fail_upstream(request, EMSGSIZE, "the response body is over the limit");
        return CURL_WRITEFUNC_ERROR;
    }
    request->received.body_bytes += length;
    if (request->events->on_body)
        request->events->on_body(request, request->context, bytes, length);
    return request->cancelled ? CURL_WRITEFUNC_ERROR : length;
}
