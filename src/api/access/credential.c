#include "api/access/credential.h"

#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/text.h"
#include "domain/caller.h"

bool credential_read_bearer(const char *value, struct url_span *ret_secret)
{
    size_t length;

    if (strncasecmp(value, "bearer", 6) != 0 || value[6] != ' ')
        return false;
    value += 6;
    value += strspn(value, " ");
    length = strlen(value);
    while (length && value[length - 1] == ' ')
        length--;
    *ret_secret = url_span(value, length);
    return true;
}

static struct url_span without_blanks(struct url_span span)
{
    while (span.length && (*span.text == ' ' || *span.text == '\t')) {
        span.text++;
        span.length--;
    }
    while (span.length && (span.text[span.length - 1] == ' ' || span.text[span.length - 1] == '\t'))
        span.length--;
    return span;
}

bool credential_read_cookie(const char *value, const char *name, struct url_span *ret_secret)
{
    struct url_span rest = url_span(value, strlen(value));

    while (rest.text) {
        struct url_span secret = url_span_cut(&rest, ';');
        struct url_span found = url_span_cut(&secret, '=');

        /* A cookie without '=' is a value without a name. */
        if (!secret.text || !url_span_equals(without_blanks(found), name))
            continue;
        secret = without_blanks(secret);
        if (secret.length >= 2 && secret.text[0] == '"' && secret.text[secret.length - 1] == '"')
            secret = url_span(secret.text + 1, secret.length - 2);
        *ret_secret = secret;
        return true;
    }
    return false;
}

/* What is too long, or holds what no secret of ours does, is kept as "": a credential that was
 * given and is wrong. */
static struct credential credential_make(enum credential_source source, struct url_span secret,
                                         struct pool *pool)
{
    bool is_sound = secret.length <= CREDENTIAL_SECRET_MAX;

    for (size_t i = 0; is_sound && i < secret.length; i++)
        is_sound = secret.text[i] > ' ' && secret.text[i] < 0x7f;
    return (struct credential){
        .source = source,
        .secret = is_sound ? pool_copy_bytes(pool, secret.text, secret.length) : "",
    };
}

static bool find_cookie(const struct http_head *head, bool is_secure, struct pool *pool,
                        struct credential *ret_credential)
{
    static const char *const names[] = {
        CREDENTIAL_COOKIE_SECURE,
        CREDENTIAL_COOKIE_PLAIN,
        CREDENTIAL_COOKIE_OTHER,
    };
    /* Only the first name keeps pages of sibling hosts from planting one. */
    size_t count = is_secure ? 1 : ARRAY_COUNT(names);
    struct url_span secret;

    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < head->header_count; i++) {
            if (strcasecmp(head->headers[i].name, "cookie") != 0 ||
                !credential_read_cookie(head->headers[i].value, names[n], &secret))
                continue;
            *ret_credential = credential_make(CREDENTIAL_COOKIE, secret, pool);
            return true;
        }
    }
    return false;
}

static bool find_query(struct url_span query, struct pool *pool, struct credential *ret_credential)
{
    struct url_span secret;
    const char *value;

    if (!query.text)
        return false;
    if (url_query_get(query, "token", pool, &value) == 0)
        secret = url_span(value, strlen(value));
    else if (url_query_get(query, "authorization", pool, &value) < 0 ||
             !credential_read_bearer(value, &secret))
        return false;
    *ret_credential = credential_make(CREDENTIAL_QUERY, secret, pool);
    return true;
}

/* --- what is not passed on ------------------------------------------------------------------- */

bool credential_is_own(struct url_span secret)
{
    static const size_t length = sizeof(CALLER_SECRET_PREFIX) - 1;

    secret = without_blanks(secret);
    return secret.length >= length && strncasecmp(secret.text, CALLER_SECRET_PREFIX, length) == 0;
}

static bool is_own_value(struct url_span raw, struct pool *pool)
{
    struct url_span secret;
    const char *value;

    if (!raw.text || url_decode_copy(raw, URL_DECODE_QUERY, pool, &value) < 0)
        return false;
    return credential_is_own(url_span(value, strlen(value))) ||
           (credential_read_bearer(value, &secret) && credential_is_own(secret));
}

struct url_span credential_clean_query(struct url_span query, struct pool *pool)
{
    AUTO(text) struct text out = TEXT_INIT(query.length + 1);
    struct url_span rest = query;
    bool is_clean = true;

    while (rest.text) {
        struct url_span one = url_span_cut(&rest, '&'), value = one;

        (void) url_span_cut(&value, '=');
        if (is_own_value(value, pool)) {
            is_clean = false;
            continue;
        }
        if (out.length)
            text_append_char(&out, '&');
        text_append_bytes(&out, one.text, one.length);
    }
    if (is_clean)
        return query;
    return out.length ? url_span(pool_copy_bytes(pool, out.data, out.length), out.length)
                      : url_span(NULL, 0);
}

/* --- what there is --------------------------------------------------------------------------- */

struct credential credential_find(const struct http_head *head, struct url_span query,
                                  bool is_secure, struct pool *pool)
{
    const char *authorization = http_head_get(head, "authorization");
    struct credential credential = {.source = CREDENTIAL_NONE};
    struct url_span secret;

    if (authorization && credential_read_bearer(authorization, &secret))
        return credential_make(CREDENTIAL_HEADER, secret, pool);
    if (!find_cookie(head, is_secure, pool, &credential))
        (void) find_query(query, pool, &credential);
    return credential;
}
