/* The first account: whoever makes it becomes the administrator, so it takes a proof of being that.
 * An address is none: behind a proxy on this machine all of the world comes from loopback. */
#include <stdio.h>
#include <string.h>

#include "api/access/credential.h"
#include "api/auth/auth_internal.h"
#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/encoding/hash.h"
#include "base/id.h"

#define TOKEN_RANDOM 32
#define PREFIX_SIZE  (sizeof(AUTH_FIRST_PREFIX) - 1)

_Static_assert(AUTH_FIRST_SIZE == PREFIX_SIZE + HEX_TEXT_SIZE(TOKEN_RANDOM),
               "a token is its prefix and 256 bits in hex");

static void note_login(void *context, struct owner *owner)
{
    bool *has_login = context;

    *has_login |= owner->is_admin && owner->password;
}

/* Nobody can log in as administrator yet. */
static bool is_free(const struct auth *auth)
{
    bool has_login = false;

    owner_each(auth->api->domain, note_login, &has_login);
    return !has_login;
}

void auth_first_end(struct auth *auth)
{
    explicit_bzero(auth->first_hash, sizeof(auth->first_hash));
    auth->first_until_ns = 0;
}

bool auth_first_offer(struct auth *auth, char ret_token[static AUTH_FIRST_SIZE])
{
    uint8_t random[TOKEN_RANDOM];

    if (!is_free(auth))
        return false;
    random_bytes(random, sizeof(random));
    (void) snprintf(ret_token, AUTH_FIRST_SIZE, "%s", AUTH_FIRST_PREFIX);
    (void) hex_encode(random, sizeof(random), ret_token + PREFIX_SIZE);
    explicit_bzero(random, sizeof(random));
    sha256_bytes(ret_token, strlen(ret_token), auth->first_hash);
    auth->first_until_ns = clock_monotonic_ns(auth->api->clock) + AUTH_FIRST_NS;
    return true;
}

static bool is_token(const struct auth *auth, const char *secret)
{
    uint8_t hash[SHA256_SIZE];

    sha256_bytes(secret, strlen(secret), hash);
    return auth->first_until_ns && clock_monotonic_ns(auth->api->clock) < auth->first_until_ns &&
           hash_equal(hash, auth->first_hash, SHA256_SIZE);
}

enum auth_first auth_first_check(struct auth *auth, struct http_request *request)
{
    struct credential given =
        credential_find(request->head, url_span(NULL, 0), request->is_secure, &request->pool);
    bool shows_token = given.source == CREDENTIAL_HEADER &&
                       strncmp(given.secret, AUTH_FIRST_PREFIX, PREFIX_SIZE) == 0;

    if (!is_free(auth))
        auth_first_end(auth); /* somebody got a password by another way */
    else if (!auth->is_first_under_way && (request_caller(request)->scope >= CALLER_ADMIN ||
                                           (shows_token && is_token(auth, given.secret))))
        return AUTH_FIRST_YES;
    return shows_token ? AUTH_FIRST_STALE : AUTH_FIRST_NO;
}
