/* What a registry wants before it gives something out: the WWW-Authenticate header of a 401.
 *
 *     Basic realm="Registry"
 *     Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="..."
 *
 * One header may have several challenges, one answer several headers; feed all of them and the best
 * one stays: Bearer is taken before Basic, others are not known (RFC 9110, 11.6.1). Pure. */
#pragma once

#include "base/pool.h"

enum registry_challenge_kind {
    REGISTRY_CHALLENGE_NONE,
    REGISTRY_CHALLENGE_BASIC,
    REGISTRY_CHALLENGE_BEARER,
};

struct registry_challenge {
    enum registry_challenge_kind kind;
    const char *realm; /* from the pool; "" when not said, as of the others */
    const char *service;
    const char *scope;
};

#define REGISTRY_CHALLENGE_INIT                                                                    \
    {                                                                                              \
        .realm = "", .service = "", .scope = ""                                                    \
    }

/* Read the value of one header into `challenge`. A malformed rest is left out. */
void registry_challenge_read(const char *value, struct pool *pool,
                             struct registry_challenge *challenge);
