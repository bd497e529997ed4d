#include "domain/standing.h"

#include "domain/domain_internal.h"
#include "domain/identity/api_key_internal.h"
#include "domain/identity/login.h"
#include "domain/identity/owner.h"
#include "domain/port/port.h"

static bool is_over(const struct domain *domain, int64_t end_ms)
{
    return end_ms && domain_wall_ms(domain) >= end_ms;
}

/* A wide key of somebody who is no administrator any more has become a narrower one. */
static int check_scope(const struct caller *caller, const struct owner *owner, struct error *err)
{
    if (caller->scope == CALLER_ADMIN && !owner->is_admin)
        return error_set(err, ERR_FORBIDDEN, 0, "this user is no administrator any more");
    return 0;
}

static int standing_check_key(const struct domain *domain, const struct api_key *key,
                              int64_t *ret_until_ms, struct error *err)
{
    if (key->revoked_ms)
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this key was revoked");
    if (is_over(domain, key->expires_ms))
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this key has expired");
    *ret_until_ms = key->expires_ms;
    return 0;
}

static int check_login(const struct domain *domain, const struct caller *caller,
                       int64_t *ret_until_ms, struct error *err)
{
    const struct login *login = login_find_id(domain, &caller->credential);

    if (!login || login->is_ended || is_over(domain, login->expires_ms))
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this key or login is over");
    *ret_until_ms = login->expires_ms;
    return 0;
}

static int check_port(const struct domain *domain, const struct caller *caller,
                      int64_t *ret_until_ms, struct error *err)
{
    const struct port *port = port_find(domain, &caller->sandbox, caller->port);

    if (!port || is_over(domain, port->expires_ms))
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this port was closed");
    *ret_until_ms = port->expires_ms;
    return 0;
}

int standing_check(const struct domain *domain, const struct caller *caller, int64_t *ret_until_ms,
                   struct error *err)
{
    bool has_credential = *caller->credential.text != '\0';
    const struct api_key *key =
        has_credential ? api_key_find_id(domain, &caller->credential) : NULL;
    const struct owner *owner;

    *ret_until_ms = 0;
    if (!has_credential && caller->scope != CALLER_PORT)
        return 0;
    owner = owner_find(domain, &caller->owner);
    if (!owner || owner->is_disabled)
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this user was disabled or removed");
    if (!has_credential)
        return check_port(domain, caller, ret_until_ms, err);
    if (key ? standing_check_key(domain, key, ret_until_ms, err)
            : check_login(domain, caller, ret_until_ms, err))
        return -1;
    return check_scope(caller, owner, err);
}

struct caller standing_of_port(const struct port *port)
{
    return (struct caller){
        .scope = CALLER_PORT, .owner = port->owner, .sandbox = port->sandbox, .port = port->number};
}

void standing_changed(struct domain *domain)
{
    for (size_t i = 0; domain_modules[i] && domain->stage == DOMAIN_OPEN; i++)
        if (domain_modules[i]->standing_changed)
            domain_modules[i]->standing_changed(domain);
    if (domain->options.standing_changed && domain->stage == DOMAIN_OPEN)
        domain->options.standing_changed(domain->options.context);
}
