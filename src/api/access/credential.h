/* The credential of a request: a secret that somebody holds, and how it came.
 *
 *     Authorization: Bearer SECRET                     keys and the tokens of logins
 *     Cookie: __Host-burrow_session=SECRET             browsers, over TLS
 *     Cookie: burrow_session=SECRET                    browsers, plain (loopback): browsers refuse
 *                                                      the __Host- prefix there
 *     Cookie: better-auth.session_token=SECRET         what clients of AgentPod call it
 *     ?token=SECRET, ?authorization=Bearer%20SECRET    where a client can set no header
 *
 * The first that is there counts, in this order. Over TLS the other two cookies are not looked at: a
 * page on a sibling host could have planted them, which the prefix rules out. Pure, no allocation outside
 * of the pool. */
#pragma once

#include <stdbool.h>

#include "base/pool.h"
#include "net/http/http_head.h"
#include "net/url.h"

#define CREDENTIAL_COOKIE_SECURE "__Host-burrow_session"
#define CREDENTIAL_COOKIE_PLAIN  "burrow_session"
#define CREDENTIAL_COOKIE_OTHER  "better-auth.session_token"

#define CREDENTIAL_SECRET_MAX 256 /* longer ones are none */

enum credential_source {
    CREDENTIAL_NONE,
    CREDENTIAL_HEADER,
    CREDENTIAL_COOKIE, /* the browser adds it by itself: see csrf.h */
    CREDENTIAL_QUERY,
};

struct credential {
    enum credential_source source;
    const char *secret; /* in the pool; "" for one that can be nobody's. NULL: none */
};

/* Find it. `query` is looked at when it is there: give one only where that is allowed. */
struct credential credential_find(const struct http_head *head, struct url_span query,
                                  bool is_secure, struct pool *pool);

/* Whether it is a secret of ours by its beginning, also behind the word Bearer: wherever it was
 * meant to go, it opens the API. */
bool credential_is_own(struct url_span secret);

/* `query` without the parameters whose value is such a secret, whatever they are called; in the
 * pool, or not there when nothing is left. The very same when there was none. */
struct url_span credential_clean_query(struct url_span query, struct pool *pool);

/* The secret in the value of an Authorization header; false when the scheme is another. */
bool credential_read_bearer(const char *value, struct url_span *ret_secret);

/* The value of the first cookie of that name in the value of a Cookie header (RFC 6265 4.2.1);
 * quotes around it are removed. */
bool credential_read_cookie(const char *value, const char *name, struct url_span *ret_secret);
