#include "registry/registry_exchange.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOOPBACK    "127.0.0.0/8,::1"
#define USER_AGENT  "burrow/" BURROW_VERSION
#define HEADERS_MAX 4

static const int redirects[] = {301, 302, 303, 307, 308};

int registry_link_init(struct registry_link *link, struct registry_reference *home,
                       const char *allow, const char *ca_file, struct error *err)
{
    *link = (struct registry_link){.home = home, .ca_file = ca_file};
    link->named = curl_easy_init();
    link->others = curl_easy_init();
    if (!link->named || !link->others)
        abort(); /* out of memory */
    if (url_host_parse(home->authority, strlen(home->authority), &link->host, err) < 0 ||
        address_rules_allow_list(&link->strangers, allow ? allow : "", err) < 0)
        return -1;
    return address_rules_allow_list(&link->strangers, home->is_loopback ? LOOPBACK : "", err);
}

void registry_link_done(struct registry_link *link)
{
    curl_easy_cleanup(link->named);
    curl_easy_cleanup(link->others);
}

static bool is_registry(const struct registry_link *link, const struct url *url)
{
    struct url_host host;
    uint16_t port = link->host.port;

    url_host_of(url, &host);
    if (!port)
        port = link->home->is_plain ? 80 : 443;
    return url_scheme_is_secure(url->scheme) == !link->home->is_plain &&
           strcmp(host.name, link->host.name) == 0 && host.port == port;
}

static int read_url(const char *text, bool was_secure, struct pool *pool, const char **ret_text,
                    struct url *ret_url, struct error *err)
{
    struct error inner = ERROR_INIT;

    if (outbound_url_read(text, pool, ret_text, ret_url, &inner) < 0)
        return error_set(err, ERR_UPSTREAM, 0, "the registry redirected to an invalid URL: %s",
                         inner.message);
    if (was_secure && !url_scheme_is_secure(ret_url->scheme))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "the registry redirected from https to plain http: refused");
    return 0;
}

/* One request and its answer, which may be a redirect. */
static int exchange_once(struct registry_link *link, const struct registry_request *request,
                         const char *text, const struct url *url, bool is_stranger,
                         struct outbound_answer *answer, struct error *err)
{
    bool is_named = is_registry(link, url) && !is_stranger;
    struct outbound_header headers[HEADERS_MAX] = {{"User-Agent", USER_AGENT}};
    struct outbound_request outbound = {
        .url = text,
        .headers = headers,
        .header_count = 1,
        .rules = is_named ? NULL : &link->strangers,
        .ca_file = link->ca_file,
        .connect_ms = REGISTRY_CONNECT_MS,
        .total_ms = request->total_ms,
        .idle_ms = REGISTRY_IDLE_MS,
        .on_head = request->on_head,
        .on_bytes = request->on_bytes,
        .context = request->context,
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    if (request->accept)
        headers[outbound.header_count++] = (struct outbound_header){"Accept", request->accept};
    if (request->authorization && !is_stranger)
        headers[outbound.header_count++] =
            (struct outbound_header){"Authorization", request->authorization};
    if (request->offset)
        headers[outbound.header_count++] = (struct outbound_header){
            "Range", pool_format(&pool, "bytes=%" PRIu64 "-", request->offset)};
    if (curl_exchange(is_named ? link->named : link->others, &outbound, answer, err) == 0)
        return 0;
    return answer->stopped_by_caller ? -1 : outbound_name_peer("GET", url, err);
}

/* Where an answer sends us, NULL when it does not. "/path" stays with the host of `url`. */
static const char *next_url(const struct outbound_answer *answer, const char *text,
                            const struct url *url, struct pool *pool)
{
    const char *location = outbound_answer_header(answer, "location");
    bool is_redirect = false;

    for (size_t i = 0; i < ARRAY_COUNT(redirects); i++)
        is_redirect |= redirects[i] == answer->status;
    if (!location || !is_redirect)
        return NULL;
    if (location[0] != '/' || location[1] == '/')
        return pool_copy_text(pool, location);
    return pool_format(pool, "%.*s%s", (int) (url->path.text - text), text, location);
}

int registry_exchange(struct registry_link *link, const struct registry_request *request,
                      struct outbound_answer *answer, bool *ret_is_stranger, struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    bool was_secure = !link->home->is_plain;
    const char *next = request->url, *text;
    struct url first, url;

    *ret_is_stranger = false;
    for (int hops = 0; hops <= REGISTRY_REDIRECTS_MAX; hops++) {
        if (read_url(next, was_secure, &pool, &text, &url, err) < 0)
            return -1;
        if (hops == 0)
            first = url;
        if (!url_same_origin(&first, &url))
            *ret_is_stranger = true;
        if (exchange_once(link, request, text, &url, *ret_is_stranger, answer, err) < 0)
            return -1;
        next = next_url(answer, text, &url, &pool);
        if (!next)
            return 0;
        was_secure = url_scheme_is_secure(url.scheme);
    }
    return error_set(err, ERR_UPSTREAM, 0, "the registry redirects in circles");
}
