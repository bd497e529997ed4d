/* Asks servers for tokens (domain/token_source.h), as HTTP; and signs what an app shows to GitHub.
 *
 * Addresses that are not of the public internet are refused unless the operator allows them, as for
 * upstreams of the egress broker; redirects are not followed. */
#pragma once

#include "domain/token_source.h"
#include "net/loop.h"

struct token_client;

/* `allowed` are ranges of addresses, separated by commas, that may be dialled besides public ones.
 * NULL with ERR_INVALID. `loop` is borrowed. */
struct token_client *token_client_new(struct loop *loop, const char *allowed, struct error *err);

/* Borrowed from the client. */
const struct token_source *token_client_source(const struct token_client *client);

/* What is under way is answered with ERR_CANCELLED. `done` (may be NULL) when it is gone. Accepts
 * NULL, then calls `done` at once. */
void token_client_close(struct token_client *client, void (*done)(void *context), void *context);
