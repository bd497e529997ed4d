#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "net/outbound/outbound_internal.h"

static const struct {
    int status;
    bool post_becomes_get;   /* as every client does since the nineties */
    bool always_becomes_get; /* "see other" */
} redirects[] = {
    {301, true, false},  {302, true, false},  {303, true, true},
    {307, false, false}, {308, false, false},
};

/* What may be told to an origin that the caller did not name. Everything else stays: API keys
 * come under many names. */
static const char *const harmless_headers[] = {
    "accept",       "accept-encoding",   "accept-language", "cache-control", "content-encoding",
    "content-type", "if-modified-since", "if-none-match",   "range",         "user-agent",
};

static const char *find_location(const struct outbound_received *received)
{
    for (size_t i = 0; i < received->count; i++) {
        if (strcmp(received->headers[i].name, "location") == 0)
            return received->headers[i].value;
    }
    return NULL;
}

static bool is_redirect(int status)
{
    for (size_t i = 0; i < ARRAY_COUNT(redirects); i++) {
        if (redirects[i].status == status)
            return true;
    }
    return false;
}

int outbound_redirect_check(struct outbound_request *request, struct error *err)
{
    const char *location = find_location(&request->received);

    if (!request->limits.redirects || !location || !is_redirect(request->received.status))
        return 0;
    if (request->hops >= request->limits.redirects)
        return error_set(err, ERR_UPSTREAM, 0, "more than %u redirects", request->limits.redirects);
    request->received.location = pool_copy_text(&request->pool, location);
    return 1;
}

static bool becomes_get(const struct outbound_request *request)
{
    for (size_t i = 0; i < ARRAY_COUNT(redirects); i++) {
        if (redirects[i].status != request->received.status)
            continue;
        if (redirects[i].always_becomes_get)
            return strcmp(request->method, "HEAD") != 0;
        return redirects[i].post_becomes_get && strcmp(request->method, "POST") == 0;
    }
    return false;
}

static void keep_headers(struct outbound_request *request,
                         bool (*keep)(const struct outbound_header *header))
{
    size_t kept = 0;

    for (size_t i = 0; i < request->header_count; i++) {
        if (keep(&request->headers[i]))
            request->headers[kept++] = request->headers[i];
    }
    request->header_count = kept;
}

static bool is_harmless(const struct outbound_header *header)
{
    for (size_t i = 0; i < ARRAY_COUNT(harmless_headers); i++) {
        if (strcasecmp(header->name, harmless_headers[i]) == 0)
            return true;
    }
    return false;
}

static bool is_not_of_body(const struct outbound_header *header)
{
    return strncasecmp(header->name, "content-", strlen("content-")) != 0;
}

/* The absolute URL that `location` means, seen from the URL just asked. */
static int resolve(struct outbound_request *request, const char *location, struct error *err)
{
    CURLU *handle = curl_url();
    char *absolute = NULL;
    struct error inner = ERROR_INIT;
    int result = 0;

    if (!handle)
        abort(); /* out of memory */
    if (curl_url_set(handle, CURLUPART_URL, request->url_text, 0) != CURLUE_OK ||
        curl_url_set(handle, CURLUPART_URL, location, CURLU_URLENCODE) != CURLUE_OK ||
        curl_url_get(handle, CURLUPART_URL, &absolute, 0) != CURLUE_OK)
        result = error_set(err, ERR_UPSTREAM, 0, "the redirect's target is not an http(s) URL");
    else if (outbound_request_set_url(request, absolute, &inner) < 0)
        result =
            error_set(err, ERR_UPSTREAM, 0, "the redirect's target was refused: %s", inner.message);
    curl_free(absolute);
    curl_url_cleanup(handle);
    return result;
}

static int check_origin(const struct outbound_request *request, const struct url *from,
                        struct error *err)
{
    if (url_scheme_is_secure(from->scheme) && !url_scheme_is_secure(request->url.scheme))
        return error_set(err, ERR_FORBIDDEN, 0, "a redirect from https to http is not followed");
    if (request->unix_socket && !url_same_origin(from, &request->url))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "a redirect from a unix socket to another host is not followed");
    return 0;
}

int outbound_redirect_follow(struct outbound_request *request, struct error *err)
{
    const struct url from = request->url; /* its text stays in the pool */

    if (becomes_get(request)) {
        request->method = "GET";
        request->has_body = request->streamed = false;
        keep_headers(request, is_not_of_body);
    } else if (request->streamed) {
        return error_set(err, ERR_UPSTREAM, 0,
                         "redirected, but a streamed body cannot be sent twice");
    }
    if (resolve(request, request->received.location, err) < 0 ||
        check_origin(request, &from, err) < 0)
        return -1;
    if (!url_same_origin(&from, &request->url))
        keep_headers(request, is_harmless);
    request->hops++;
    return 0;
}
