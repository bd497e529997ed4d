/* Asking about one sandbox by name, and what to say when there is none of that name. */
#pragma once

#include "cli/client/client.h"

/* Ask about a sandbox: `rest` stands behind its name ("", "/start"). Like client_call, but a
 * sandbox that does not exist is ERR_NOT_FOUND with the name that was probably meant. */
int client_sandbox_call(struct client *client, const char *method, const char *name,
                        const char *rest, json_t *body, struct client_reply *reply,
                        struct error *err);

/* After ERR_NOT_FOUND from a path of a sandbox: if it is the sandbox that is missing, say so in
 * `err` with the nearest name; else leave `err` as it is. */
void client_sandbox_explain(struct client *client, const char *name, struct error *err);

/* All sandboxes that the key sees, page by page, as one array that the caller owns. `query` is
 * "&status=running" or "". NULL with an error. */
json_t *client_sandbox_list(struct client *client, const char *query, struct error *err);
