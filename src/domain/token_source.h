/* What the domain asks of servers that give out tokens: an interface, because the domain speaks no
 * protocol. The api layer has the one that does (api/token_client.h); tests have their own.
 *
 * The answer comes once, from the loop, never from inside the call. What an order points to is
 * copied, what an answer is given is borrowed for the call. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* A body whose first byte is '{' is sent as JSON, another one as a form. */
struct token_order {
    const char *url;
    const char *body;
    const char *bearer; /* NULL: none */
};

/* Signed by whoever holds the key, with RS256: what GitHub takes from an app. */
struct token_claim {
    const char *key; /* PEM */
    const char *issuer;
    int64_t issued_s, expires_s;
};

/* `status` of the answer, and its body; with a failure there is none. */
typedef void token_done(void *context, const struct error *failure, int status, const char *body);

struct token_source {
    void *self;
    void (*ask)(void *self, const struct token_order *order, token_done *done, void *context);
    /* A claim as a JSON Web Token; the caller's, to be freed. NULL with ERR_INVALID: the key. */
    char *(*sign)(void *self, const struct token_claim *claim, struct error *err);
};
