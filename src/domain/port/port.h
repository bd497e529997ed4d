/* Exposed ports: a token opens exactly one port of one sandbox. In memory, kept in the store; gone
 * with their sandbox, kept over sleep. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"

#define PORT_TOKEN_MIN    1
#define PORT_TOKEN_MAX    16 /* of custom ones: [a-z0-9_]; ours have 16 characters */
#define PORT_TOKEN_SIZE   (PORT_TOKEN_MAX + 1)
#define PORT_NAME_MAX     63
#define PORTS_PER_SANDBOX 64
#define PORT_FIRST        1024 /* lower ones are refused, and the agent's own 3000 */
#define PORT_RESERVED     3000

struct port {
    struct table_link by_sandbox;
    struct id sandbox, owner;
    uint16_t number;
    char token[PORT_TOKEN_SIZE];
    char *name;                     /* owned, may be NULL */
    bool wakes;                     /* a request wakes the sandbox */
    int64_t created_ms, expires_ms; /* 0: never */

    /* The domain's own. */
    unsigned int under_way; /* changes on their way to the store */
    bool is_kept;           /* there for others */
};

struct port_spec {
    uint16_t number;
    const char *name;  /* NULL: none */
    const char *token; /* NULL: a random one; else [a-z0-9_]{1,16} */
    bool wakes;
    int64_t expires_ms;
};

typedef void port_done(void *context, const struct error *failure, struct port *port);

/* Exposing one that is exposed gives the same token, or changes it to the one given. ERR_INVALID,
 * ERR_CONFLICT: the token is in use by another port of this sandbox; ERR_QUOTA. */
void port_expose(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                 const struct port_spec *spec, port_done *done, void *context);

/* One that is not exposed is ERR_NOT_FOUND. */
void port_unexpose(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   uint16_t number, port_done *done, void *context);

struct port *port_find(const struct domain *domain, const struct id *sandbox, uint16_t number);
void port_each(const struct domain *domain, const struct id *sandbox,
               void (*each)(void *context, struct port *port), void *context);

/* Whether `token` opens it now, in a time that does not depend on where they differ. */
bool port_opens(const struct domain *domain, const struct port *port, const char *token);
