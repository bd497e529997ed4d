/* Who tries to guess a password, and how often that may be. */
#include <stdio.h>
#include <string.h>

#include "api/auth/auth_internal.h"
#include "base/auto.h"
#include "base/number.h"
#include "domain/identity/api_key.h"

struct known_from {
    const char *network;
    bool is_known;
};

static void compare_address(void *context, const struct login *login)
{
    struct known_from *known = context;

    known->is_known |= client_address_is_of(login->address, known->network);
}

/* Somebody is logged in from there, with the password, just now. */
static bool is_known_from(const struct domain *domain, const struct owner *owner,
                          const char *network)
{
    struct known_from known = {.network = network};

    login_each(domain, &owner->id, compare_address, &known);
    return known.is_known;
}

static void auth_try_add(struct auth_try *try, struct throttle *throttle, const char *account,
                         const char *who)
{
    (void) snprintf(try->names[try->count], AUTH_TRY_NAME, "%s %s", account, who);
    try->throttles[try->count++] = throttle;
}

/* Whoever is logged in as that user already has tries of that login's; all keys of the user have
 * some together, for one key can make a thousand. */
static const char *signed_in_as(struct http_request *request, const struct owner *owner)
{
    const struct caller *caller = request_caller(request);

    if (caller->scope == CALLER_NOBODY || strcmp(caller->owner.text, owner->id.text) != 0)
        return NULL;
    return api_key_find(api_of(request)->domain, caller, caller->credential.text, NULL)
               ? "key"
               : caller->credential.text;
}

static void choose(struct auth *auth, struct http_request *request, const struct owner *owner,
                   const char *name, struct auth_try *try)
{
    const char *credential = owner ? signed_in_as(request, owner) : NULL;
    struct client_address from;

    auth_client(auth, request, &from);
    *try = (struct auth_try){.count = 0};
    if (credential) {
        auth_try_add(try, &auth->pairs, owner->id.text, credential);
    } else if (owner && is_known_from(auth->api->domain, owner, from.network)) {
        auth_try_add(try, &auth->pairs, owner->id.text, from.network);
    } else {
        auth_try_add(try, &auth->addresses, "", from.network);
        if (owner || name)
            auth_try_add(try, &auth->names, owner ? owner->id.text : name, "");
    }
}

int auth_take_try(struct http_request *request, const struct owner *owner, const char *name,
                  struct auth_try *ret_try, struct error *err)
{
    struct auth *auth = api_of(request)->auth;
    uint64_t now = clock_monotonic_ns(auth->api->clock);
    char text[NUMBER_TEXT_SIZE];
    unsigned int seconds = 0;
    struct auth_try try;
    bool is_good = true;

    choose(auth, request, owner, name, &try);
    for (size_t i = 0; is_good && i < try.count; i++)
        is_good = throttle_take(try.throttles[i], try.names[i], now, &seconds);
    if (ret_try)
        *ret_try = try;
    if (is_good)
        return 0;
    (void) number_format(seconds, text);
    (void) http_reply_header(request, "Retry-After", text);
    return error_set(err, ERR_RATE_LIMITED, 0, "too many tries; wait %u s", seconds);
}

void auth_give_back_try(struct auth *auth, const struct auth_try *try)
{
    uint64_t now = clock_monotonic_ns(auth->api->clock);

    for (size_t i = 0; i < try->count; i++)
        throttle_give_back(try->throttles[i], try->names[i], now);
}
