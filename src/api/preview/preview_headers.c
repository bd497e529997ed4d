#include "api/preview/preview_headers.h"

#include <string.h>
#include <strings.h>

#include "api/access/credential.h"
#include "base/auto.h"
#include "base/text.h"

#define BLANKS " \t"

/* Better Auth's own name where it has TLS. */
#define SECURE_OTHER "__Secure-" CREDENTIAL_COOKIE_OTHER

static const char *const own_cookies[] = {
    CREDENTIAL_COOKIE_PLAIN,
    CREDENTIAL_COOKIE_SECURE,
    CREDENTIAL_COOKIE_OTHER,
    SECURE_OTHER,
};

/* What we say about the request ourselves: nobody else may. */
static const char *const own_headers[] = {"x-original-url", "x-sandbox-name"};

/* What would reach further than the host it comes from, or say what we say. */
static const char *const kept_replies[] = {"referrer-policy", "x-request-id", "clear-site-data"};

/* By path all previews share the host. */
static const char *const kept_path_replies[] = {
    "set-cookie", "content-security-policy", "service-worker-allowed", "strict-transport-security",
    "alt-svc",
};

static bool is_named(const struct http_header *header, const char *name)
{
    return strcasecmp(header->name, name) == 0;
}

static bool is_any_of(const struct http_header *header, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_named(header, names[i]))
            return true;
    }
    return false;
}

/* As credential.c reads it, blanks and all. */
static bool is_own_key(const char *value)
{
    struct url_span secret;

    return credential_read_bearer(value, &secret) && credential_is_own(secret);
}

static bool is_own_cookie(const char *pair, size_t length)
{
    const char *equals = memchr(pair, '=', length);
    size_t size = equals ? (size_t) (equals - pair) : length;

    while (size && strchr(BLANKS, pair[size - 1]))
        size--;
    for (size_t i = 0; i < ARRAY_COUNT(own_cookies); i++) {
        if (size == strlen(own_cookies[i]) && strncasecmp(pair, own_cookies[i], size) == 0)
            return true;
    }
    return false;
}

const char *preview_clean_cookies(struct pool *pool, const char *value)
{
    AUTO(text) struct text out = TEXT_INIT(strlen(value) + 2);

    while (*value) {
        size_t length;

        value += strspn(value, BLANKS ";");
        length = strcspn(value, ";");
        if (length && !is_own_cookie(value, length)) {
            if (out.length)
                text_append(&out, "; ");
            text_append_bytes(&out, value, length);
        }
        value += length;
    }
    return out.length ? pool_copy_bytes(pool, out.data, out.length) : NULL;
}

const char *preview_clean_referer(struct pool *pool, const char *value)
{
    const char *mark = strchr(value, '?');
    struct url_span query;

    if (!mark)
        return value;
    query = credential_clean_query(url_span(mark + 1, strlen(mark + 1)), pool);
    return pool_format(pool, "%.*s%s%.*s", (int) (mark - value), value, query.text ? "?" : "",
                       (int) query.length, query.text ? query.text : "");
}

const char *preview_clean_set_cookie(struct pool *pool, const char *value)
{
    AUTO(text) struct text out = TEXT_INIT(strlen(value) + 1);
    bool is_first = true;

    for (;;) {
        size_t blanks = strspn(value, BLANKS), length = strcspn(value, ";");
        bool is_domain = !is_first && strncasecmp(value + blanks, "domain", 6) == 0 &&
                         strchr(BLANKS "=;", value[blanks + 6]);

        if (!is_domain) {
            if (!is_first)
                text_append_char(&out, ';');
            text_append_bytes(&out, value, length);
        }
        is_first = false;
        if (!value[length])
            break;
        value += length + 1;
    }
    return pool_copy_bytes(pool, text_string(&out), out.length);
}

static const struct http_header *preview_headers_changed(struct http_request *request,
                                                         const struct http_header *header,
                                                         const char *value)
{
    struct http_header *copy;

    if (!value)
        return NULL;
    copy = pool_alloc(&request->pool, sizeof(*copy));
    *copy = *header;
    copy->value = value;
    copy->value_length = (uint32_t) strlen(value);
    return copy;
}

const struct http_header *preview_request_header(struct http_request *request,
                                                 const struct http_header *header)
{
    if (is_named(header, "cookie"))
        return preview_headers_changed(request, header,
                                       preview_clean_cookies(&request->pool, header->value));
    if (is_named(header, "authorization") && is_own_key(header->value))
        return NULL;
    if (is_named(header, "referer"))
        return preview_headers_changed(request, header,
                                       preview_clean_referer(&request->pool, header->value));
    return is_any_of(header, own_headers, ARRAY_COUNT(own_headers)) ? NULL : header;
}

const struct http_header *preview_reply_header(struct http_request *request,
                                               const struct http_header *header)
{
    if (is_named(header, "set-cookie"))
        return preview_headers_changed(request, header,
                                       preview_clean_set_cookie(&request->pool, header->value));
    return is_any_of(header, kept_replies, ARRAY_COUNT(kept_replies)) ? NULL : header;
}

const struct http_header *preview_path_request_header(struct http_request *request,
                                                      const struct http_header *header)
{
    return is_named(header, "cookie") ? NULL : preview_request_header(request, header);
}

const struct http_header *preview_path_reply_header(struct http_request *request,
                                                    const struct http_header *header)
{
    if (is_any_of(header, kept_path_replies, ARRAY_COUNT(kept_path_replies)))
        return NULL;
    return preview_reply_header(request, header);
}
