/* URLs, hosts, targets, escapes and queries from arbitrary bytes. Beyond not crashing: spans stay
 * inside the input, what was parsed and written again parses to the same, and encoding is undone
 * by decoding. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "net/url.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool inside(struct url_span span, const char *text, size_t length)
{
    uintptr_t start = (uintptr_t) span.text, first = (uintptr_t) text;

    if (!span.text)
        return span.length == 0;
    return start >= first && span.length <= length && start - first <= length - span.length;
}

static bool is_path(struct url_span path, const char *text, size_t length)
{
    return inside(path, text, length) || url_span_equals(path, "/");
}

static bool same(struct url_span one, struct url_span other)
{
    return !one.text == !other.text && one.length == other.length &&
           (one.length == 0 || memcmp(one.text, other.text, one.length) == 0);
}

static void check_written(const struct url *url)
{
    AUTO(text) struct text first = TEXT_INIT(2 * URL_LENGTH_MAX);
    AUTO(text) struct text second = TEXT_INIT(2 * URL_LENGTH_MAX);
    struct url again;

    url_write(url, &first);
    HOLDS(!first.overflowed);
    if (first.length > URL_LENGTH_MAX)
        return;
    HOLDS(url_parse(first.data, first.length, &again, NULL) == 0);
    HOLDS(again.scheme == url->scheme && again.port == url->port);
    HOLDS(again.host_kind == url->host_kind && url_same_origin(url, &again));
    HOLDS(same(again.path, url->path) && same(again.query, url->query));
    url_write(&again, &second);
    HOLDS(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
}

static void check_url(const char *text, size_t length)
{
    struct error err = ERROR_INIT;
    struct url url;

    if (url_parse(text, length, &url, &err) < 0) {
        HOLDS(err.code == ERR_INVALID || err.code == ERR_URL_TOO_LONG);
        HOLDS(err.message[0] != '\0');
        return;
    }
    HOLDS(inside(url.host, text, length) && inside(url.query, text, length));
    HOLDS(is_path(url.path, text, length) && url.path.text[0] == '/');
    HOLDS((url.scheme == URL_UNIX) == (url.port == 0));
    check_written(&url);
}

static void check_target(const char *text, size_t length)
{
    struct url_target target;
    struct url_host host;

    if (url_target_parse(text, length, &target, NULL) < 0)
        return;
    HOLDS(inside(target.query, text, length) && inside(target.authority, text, length));
    HOLDS(is_path(target.path, text, length));
    HOLDS((target.form == URL_TARGET_ASTERISK) == (target.path.text[0] == '*'));
    HOLDS(!memchr(target.path.text, '\r', target.path.length));
    HOLDS(!memchr(target.path.text, ' ', target.path.length));
    if (target.form == URL_TARGET_ABSOLUTE)
        HOLDS(url_host_parse(target.authority.text, target.authority.length, &host, NULL) == 0);
}

static void check_host(const char *text, size_t length)
{
    struct url_host host, again;

    if (url_host_parse(text, length, &host, NULL) < 0)
        return;
    HOLDS(strlen(host.name) <= URL_HOST_MAX && host.name[0]);
    for (const char *at = host.name; *at; at++)
        HOLDS(*at > ' ' && *at < 0x7f && !(*at >= 'A' && *at <= 'Z') && *at != '@' && *at != '/');
    if (host.kind == URL_HOST_IPV6)
        return;
    HOLDS(url_host_parse(host.name, strlen(host.name), &again, NULL) == 0);
    HOLDS(again.kind == host.kind && strcmp(again.name, host.name) == 0);
}

/* Decoding never grows, encoding what was decoded and decoding again changes nothing. */
static void check_escapes(struct url_span raw, enum url_decoding decoding)
{
    AUTO(text) struct text encoded = TEXT_INIT(SIZE_MAX / 2);
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *once, *twice;

    if (url_decode_copy(raw, decoding, &pool, &once) < 0)
        return;
    HOLDS(strlen(once) <= raw.length);
    url_encode(&encoded, once, strlen(once));
    HOLDS(url_escapes_are_sound(url_span(text_string(&encoded), encoded.length)));
    HOLDS(url_decode_copy(url_span(text_string(&encoded), encoded.length), decoding, &pool,
                          &twice) == 0);
    HOLDS(strcmp(once, twice) == 0);
}

static void check_query(struct url_span query)
{
    struct url_span rest = query;
    struct url_parameter parameter;
    size_t taken = 0;

    while (url_query_next(&rest, &parameter)) {
        AUTO(pool) struct pool pool = POOL_INIT;
        struct url_span found;
        const char *name;

        HOLDS(inside(parameter.name, query.text, query.length));
        HOLDS(inside(parameter.value, query.text, query.length));
        taken += parameter.name.length + parameter.value.length;
        HOLDS(taken <= query.length);
        check_escapes(parameter.value, URL_DECODE_QUERY);
        if (url_decode_copy(parameter.name, URL_DECODE_QUERY, &pool, &name) == 0)
            HOLDS(url_query_find(query, name, &found) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An exact copy on the heap, so that reading one byte too far is seen. */
    AUTO(free) char *text = malloc(size ? size : 1);

    /* Looking every name up is quadratic: long inputs show nothing new. */
    if (!text || size > 2048)
        return 0;
    if (size)
        memcpy(text, data, size);
    check_url(text, size);
    check_target(text, size);
    check_host(text, size);
    check_escapes(url_span(text, size), URL_DECODE_PATH);
    check_escapes(url_span(text, size), URL_DECODE_QUERY);
    check_query(url_span(text, size));
    return 0;
}
