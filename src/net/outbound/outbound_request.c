#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/memory.h"
#include "net/outbound/outbound_internal.h"

#define METHOD_MAX 32

/* Methods with a meaning of their own that does not fit here. */
static const char *const refused_methods[] = {"CONNECT", "TRACE"};

/* Framing and routing are decided here; a caller's word on them could contradict. */
static const char *const own_headers[] = {
    "host", "content-length", "transfer-encoding", "connection", "expect",
    "te",   "trailer",        "upgrade",
};

bool outbound_is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) text[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return length > 0;
}

static bool is_field_value(const char *text)
{
    for (; *text; text++) {
        if (((unsigned char) *text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    }
    return true;
}

static int copy_method(struct outbound_request *request, const char *method, struct error *err)
{
    if (strlen(method) > METHOD_MAX || !outbound_is_token(method, strlen(method)))
        return error_set(err, ERR_INVALID, 0, "the method is not a valid HTTP method");
    for (size_t i = 0; i < ARRAY_COUNT(refused_methods); i++) {
        if (strcmp(method, refused_methods[i]) == 0)
            return error_set(err, ERR_INVALID, 0, "the method %s is not for this client", method);
    }
    request->method = pool_copy_text(&request->pool, method);
    return 0;
}

int outbound_request_set_url(struct outbound_request *request, const char *text, struct error *err)
{
    AUTO(text) struct text normal = TEXT_INIT(URL_LENGTH_MAX);
    struct url url;

    if (url_parse(text, strlen(text), &url, err) < 0)
        return -1;
    if (url.scheme != URL_HTTP && url.scheme != URL_HTTPS)
        return error_set(err, ERR_INVALID, 0, "the URL must be http or https");
    /* curl gets the text we wrote from what we understood: two parsers, one meaning. */
    url_write(&url, &normal);
    if (normal.overflowed)
        return error_set(err, ERR_INVALID, 0, "the URL has more than %zu bytes", URL_LENGTH_MAX);
    request->url_text = pool_copy_text(&request->pool, normal.data);
    return url_parse(request->url_text, normal.length, &request->url, err);
}

static int check_header(const struct outbound_header *header, struct error *err)
{
    if (!header->name || !header->value || !outbound_is_token(header->name, strlen(header->name)))
        return error_set(err, ERR_INVALID, 0, "a header has no valid name");
    for (size_t i = 0; i < ARRAY_COUNT(own_headers); i++) {
        if (strcasecmp(header->name, own_headers[i]) == 0)
            return error_set(err, ERR_INVALID, 0, "the header %s is set by the client itself",
                             own_headers[i]);
    }
    if (!is_field_value(header->value))
        return error_set(err, ERR_INVALID, 0, "the header %.64s has a control character",
                         header->name);
    return 0;
}

static int copy_headers(struct outbound_request *request, const struct outbound_call *call,
                        struct error *err)
{
    size_t bytes = 0;

    if (call->header_count > OUTBOUND_HEADERS_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d headers", OUTBOUND_HEADERS_MAX);
    request->headers =
        pool_alloc(&request->pool, (call->header_count + 1) * sizeof(*request->headers));
    for (size_t i = 0; i < call->header_count; i++) {
        if (check_header(&call->headers[i], err) < 0)
            return -1;
        bytes += strlen(call->headers[i].name) + strlen(call->headers[i].value);
        if (bytes > OUTBOUND_SENT_HEAD_MAX)
            return error_set(err, ERR_INVALID, 0, "more than %zu bytes of headers",
                             OUTBOUND_SENT_HEAD_MAX);
        request->headers[i].name = pool_copy_text(&request->pool, call->headers[i].name);
        request->headers[i].value = pool_copy_text(&request->pool, call->headers[i].value);
    }
    request->header_count = call->header_count;
    return 0;
}

static int copy_body(struct outbound_request *request, const struct outbound_call *call,
                     struct error *err)
{
    static const char *const bodied[] = {"POST", "PUT", "PATCH"};

    if (call->body_streamed && (call->body || !call->events->on_send))
        return error_set(err, ERR_INVALID, 0, "a streamed body needs on_send and no bytes");
    if (!call->body_streamed && call->body_length > OUTBOUND_SENT_BODY_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the body has more than %zu bytes: stream it",
                         OUTBOUND_SENT_BODY_MAX);
    request->streamed = call->body_streamed;
    request->streamed_length = call->streamed_length < 0 ? -1 : call->streamed_length;
    request->has_body = call->body_streamed || call->body;
    if (call->body) {
        request->body = pool_copy_bytes(&request->pool, call->body, call->body_length);
        request->body_length = call->body_length;
    }
    if (request->has_body && strcmp(request->method, "HEAD") == 0)
        return error_set(err, ERR_INVALID, 0, "HEAD takes no body");
    /* These announce their length even when it is 0. */
    for (size_t i = 0; i < ARRAY_COUNT(bodied); i++)
        request->has_body |= strcmp(request->method, bodied[i]) == 0;
    return 0;
}

static int copy_unix_socket(struct outbound_request *request, const char *path, struct error *err)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!path)
        return 0;
    if (path[0] != '/' || strlen(path) >= sizeof(address.sun_path))
        return error_set(err, ERR_INVALID, 0,
                         "the socket's path must begin with '/' and have at most %zu bytes",
                         sizeof(address.sun_path) - 1);
    if (address_rules_check(&request->outbound->rules, (const struct sockaddr *) &address,
                            sizeof(address), err) < 0)
        return -1;
    request->unix_socket = pool_copy_text(&request->pool, path);
    return 0;
}

static uint64_t or_default(uint64_t wanted, uint64_t usual)
{
    return wanted ? wanted : usual;
}

static void fill_limits(struct outbound_limits *limits)
{
    limits->connect_ms = or_default(limits->connect_ms, OUTBOUND_CONNECT_TIMEOUT_MS);
    limits->total_ms = or_default(limits->total_ms, OUTBOUND_TOTAL_TIMEOUT_MS);
    limits->idle_ms = or_default(limits->idle_ms, OUTBOUND_IDLE_TIMEOUT_MS);
    limits->head_max = or_default(limits->head_max, OUTBOUND_HEAD_MAX);
    limits->body_max = or_default(limits->body_max, OUTBOUND_BODY_MAX);
    if (limits->redirects > OUTBOUND_REDIRECTS_MAX)
        limits->redirects = OUTBOUND_REDIRECTS_MAX;
}

AUTO_DEFINE_PTR(outbound_request, struct outbound_request, outbound_request_free);

int outbound_request_new(struct outbound *outbound, const struct outbound_call *call,
                         struct outbound_request **ret_request, struct error *err)
{
    AUTO(outbound_request)
    struct outbound_request *request = mem_alloc(sizeof(*request));

    request->outbound = outbound;
    request->events = call->events;
    request->context = call->context;
    request->limits = call->limits;
    list_init(&request->link);
    list_init(&request->attention);
    fill_limits(&request->limits);
    if (copy_method(request, call->method ? call->method : "GET", err) < 0 ||
        outbound_request_set_url(request, call->url, err) < 0 ||
        copy_headers(request, call, err) < 0 || copy_body(request, call, err) < 0 ||
        copy_unix_socket(request, call->unix_socket, err) < 0)
        return -1;
    *ret_request = TAKE_PTR(request);
    return 0;
}

void outbound_request_free(struct outbound_request *request)
{
    pool_done(&request->pool);
    pool_done(&request->received.pool);
    free(request);
}

static struct curl_slist *append(struct curl_slist *list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(list, line);

    if (!longer)
        abort(); /* out of memory */
    return longer;
}

struct curl_slist *outbound_request_header_list(const struct outbound_request *request)
{
    AUTO(text) struct text line = TEXT_INIT(OUTBOUND_SENT_HEAD_MAX + 8);
    /* Without this curl waits a second for a "100 Continue" that many servers never send. */
    struct curl_slist *list = append(NULL, "Expect:");
    bool agent = false;

    for (size_t i = 0; i < request->header_count; i++) {
        const struct outbound_header *header = &request->headers[i];

        text_clear(&line);
        /* "Name:" would remove the header, "Name;" sends it empty. */
        text_append(&line, header->name);
        text_append(&line, header->value[0] ? ": " : ";");
        text_append(&line, header->value);
        list = append(list, text_string(&line));
        agent |= strcasecmp(header->name, "user-agent") == 0;
    }
    return agent ? list : append(list, "User-Agent: burrow/" BURROW_VERSION);
}
