#include "broker/relay_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "broker/request_path.h"
#include "net/http/http_proxy.h"

#define EXTRA_HEADERS (BROKER_HEADERS_MAX + 4) /* host, encoding, two of an upgrade */

/* Shorter values are no secrets, but words that any header may have. */
#define SECRET_MIN 12

/* What a client proves itself with. */
static const char *const proof_headers[] = {
    "authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie",
};

/* Lists that say what the client can do: ours come in addition, not instead. */
static const char *const merged_headers[] = {"anthropic-beta"};

static bool is_named(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Something is put in: nothing else may prove the client. On a route it never may. */
static bool grant_has_proof(const struct broker_ask *ask, const struct broker_grant *grant)
{
    return ask->way == BROKER_ROUTE || grant->header_count || grant->query_key;
}

static bool grant_replaces(const struct broker_grant *grant, const char *name)
{
    for (size_t i = 0; i < grant->header_count; i++) {
        if (strcasecmp(grant->headers[i].name, name) == 0)
            return true;
    }
    return false;
}

/* --- where it goes ---------------------------------------------------------------------------- */

static int address_read(const struct broker_ask *ask, const struct broker_grant *grant,
                        struct upstream_address *ret, struct url *ret_base, struct error *err)
{
    struct url_host host;

    if (ask->way != BROKER_ROUTE) {
        *ret_base = (struct url){.path = url_span("/", 1)};
        (void) snprintf(ret->host, sizeof(ret->host), "%s", ask->host);
        ret->port = ask->port;
        ret->is_tls = ask->way == BROKER_REQUEST;
        return 0;
    }
    if (!grant->base || url_parse(grant->base, strlen(grant->base), ret_base, err) < 0 ||
        (ret_base->scheme != URL_HTTP && ret_base->scheme != URL_HTTPS))
        return error_set(err, ERR_INTERNAL, 0, "the URL of this route cannot be used");
    url_host_of(ret_base, &host);
    (void) snprintf(ret->host, sizeof(ret->host), "%s", host.name);
    ret->port = ret_base->port;
    ret->is_tls = ret_base->scheme == URL_HTTPS;
    return 0;
}

static const char *relay_query(struct http_request *request, const struct broker_ask *ask,
                               const struct broker_grant *grant)
{
    const struct url_span query = request->target.query;

    if (grant->query_key || (ask->way == BROKER_ROUTE && query.text))
        return request_query_edit(query, "key", grant->query_key, &request->pool);
    return query.text ? pool_copy_bytes(&request->pool, query.text, query.length) : NULL;
}

static const char *relay_target(struct http_request *request, const struct broker_ask *ask,
                                const struct broker_grant *grant, const struct url *base)
{
    const char *query = relay_query(request, ask, grant);
    size_t length = base->path.length;

    while (length && base->path.text[length - 1] == '/')
        length--; /* the path behind it has one */
    return pool_format(&request->pool, "%.*s%s%s%s", (int) length, base->path.text, ask->path,
                       query ? "?" : "", query ? query : "");
}

static const char *relay_host(struct http_request *request, const struct upstream_address *address)
{
    bool is_v6 = strchr(address->host, ':') != NULL;
    const char *host = pool_format(&request->pool, is_v6 ? "[%s]" : "%s", address->host);

    if (address->port == (address->is_tls ? 443 : 80))
        return host;
    return pool_format(&request->pool, "%s:%u", host, (unsigned int) address->port);
}

/* --- the request's headers -------------------------------------------------------------------- */

static void relay_add(struct relay_head *head, const char *name, const char *value)
{
    head->headers[head->header_count++] = http_header_of(name, value);
}

static bool header_passes(const struct http_header *header, const struct broker_ask *ask,
                          const struct broker_grant *grant, const char *connection)
{
    if (http_proxy_is_for_one_hop(header, connection) || strcasecmp(header->name, "host") == 0)
        return false;
    if (grant_has_proof(ask, grant) &&
        is_named(header->name, proof_headers, ARRAY_COUNT(proof_headers)))
        return false;
    if (grant->format != BROKER_UNMETERED && strcasecmp(header->name, "accept-encoding") == 0)
        return false;
    return !grant_replaces(grant, header->name);
}

static int relay_add_granted(struct relay_head *head, struct http_request *request,
                             const struct broker_grant *grant, struct error *err)
{
    for (size_t i = 0; i < grant->header_count; i++) {
        const struct broker_header *header = &grant->headers[i];
        const char *value = header->value;
        const char *sent = http_head_join(request->head, header->name, &request->pool);

        if (!http_name_is_valid(header->name) || !http_value_is_valid(value))
            return error_set(err, ERR_INTERNAL, 0,
                             "the credential has characters that no header can carry");
        if (sent && is_named(header->name, merged_headers, ARRAY_COUNT(merged_headers)))
            value = pool_format(&request->pool, "%s,%s", sent, value);
        relay_add(head, header->name, value);
    }
    return 0;
}

static int relay_headers(struct relay_head *head, struct http_request *request,
                         const struct broker_ask *ask, const struct broker_grant *grant,
                         struct error *err)
{
    const struct http_head *from = request->head;
    const char *connection = http_head_join(from, "connection", &request->pool);

    head->headers = pool_alloc_raw(&request->pool,
                                   (from->header_count + EXTRA_HEADERS) * sizeof(*head->headers));
    relay_add(head, "Host", relay_host(request, &head->address));
    for (size_t i = 0; i < from->header_count; i++) {
        if (header_passes(&from->headers[i], ask, grant, connection))
            head->headers[head->header_count++] = from->headers[i];
    }
    if (relay_add_granted(head, request, grant, err) < 0)
        return -1;
    if (grant->format != BROKER_UNMETERED)
        relay_add(head, "Accept-Encoding", "identity");
    if (ask->is_upgrade) {
        relay_add(head, "Connection", "Upgrade");
        relay_add(head, "Upgrade", "websocket");
    }
    return 0;
}

int relay_head_write(struct http_request *request, const struct broker_ask *ask,
                     const struct broker_grant *grant, struct relay_head *ret_head,
                     struct error *err)
{
    struct relay_head head = {.header_count = 0};
    struct url base;

    if (address_read(ask, grant, &head.address, &base, err) < 0 ||
        relay_headers(&head, request, ask, grant, err) < 0)
        return -1;
    head.target = relay_target(request, ask, grant, &base);
    head.has_wish = grant->format == BROKER_OPENAI_CHAT && http_head_has_body(request->head) &&
                    !http_request_header(request, "content-encoding");
    *ret_head = head;
    return 0;
}

/* --- the reply's headers ---------------------------------------------------------------------- */

/* Behind "Bearer " and its like. */
static bool tells_secret(const char *text, const char *secret)
{
    const char *blank = secret ? strrchr(secret, ' ') : NULL;

    secret = blank ? blank + 1 : secret;
    return secret && strlen(secret) >= SECRET_MIN && strstr(text, secret);
}

/* An upstream that says in a header what it was sent, as where a query is redirected to. */
static bool header_tells_proof(const struct http_header *header, const struct broker_grant *grant)
{
    AUTO(text) struct text escaped = TEXT_INIT(URL_LENGTH_MAX);
    bool tells = tells_secret(header->value, grant->query_key);

    if (grant->query_key)
        url_encode(&escaped, grant->query_key, strlen(grant->query_key));
    tells = tells || (escaped.length && tells_secret(header->value, text_string(&escaped)));
    for (size_t i = 0; i < grant->header_count; i++)
        tells = tells || tells_secret(header->value, grant->headers[i].value);
    return tells;
}

/* A session that our proof opened is a proof, too. */
static bool reply_header_passes(const struct http_header *header, const struct broker_grant *grant,
                                const char *connection)
{
    if (http_proxy_is_for_one_hop(header, connection) || header_tells_proof(header, grant))
        return false;
    return !(grant->header_count || grant->query_key) ||
           (strcasecmp(header->name, "set-cookie") != 0 &&
            strcasecmp(header->name, "set-cookie2") != 0);
}

int relay_head_copy(struct http_request *request, const struct http_head *reply,
                    const struct broker_grant *grant)
{
    const char *connection = http_head_join(reply, "connection", &request->pool);

    for (size_t i = 0; i < reply->header_count; i++) {
        const struct http_header *header = &reply->headers[i];

        if (reply_header_passes(header, grant, connection) &&
            http_reply_header(request, header->name, header->value) < 0)
            return -1;
    }
    return 0;
}
