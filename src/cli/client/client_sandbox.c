#include "cli/client/client_sandbox.h"

#include <string.h>

#include "base/spelling.h"
#include "json/json_read.h"

#define NAMES_MAX 100000 /* enough to find a slip of typing in */

json_t *client_sandbox_list(struct client *client, const char *query, struct error *err)
{
    const char *path = pool_format(&client->pool, CLIENT_PREFIX "/sandboxes%s%s", *query ? "?" : "",
                                   *query ? query + 1 : "");

    return client_list(client, path, "sandboxes", err);
}

/* The nearest name there is, in the client's pool; NULL: none is near. */
static const char *nearest_name(struct client *client, const char *name)
{
    AUTO(json) json_t *all = client_sandbox_list(client, "", NULL);
    size_t size = json_array_size(all) < NAMES_MAX ? json_array_size(all) : NAMES_MAX, count = 0;
    const char **names = pool_alloc(&client->pool, (size + 1) * sizeof(*names));
    const char *nearest;

    for (size_t i = 0; i < size; i++) {
        names[count] = json_string_value(json_object_get(json_array_get(all, i), "name"));
        count += names[count] != NULL;
    }
    nearest = spelling_nearest(name, names, count);
    return nearest ? pool_copy_text(&client->pool, nearest) : NULL;
}

void client_sandbox_explain(struct client *client, const char *name, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *path = client_sandbox_path(client, name, ""), *nearest;

    if (err->code != ERR_NOT_FOUND || client_call(client, "GET", path, NULL, &reply, NULL) == 0 ||
        reply.status != 404)
        return;
    nearest = nearest_name(client, name);
    if (nearest)
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such sandbox '%s'; did you mean '%s'?", name,
                         nearest);
    else
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such sandbox '%s'; `burrow ls` lists them",
                         name);
}

int client_sandbox_call(struct client *client, const char *method, const char *name,
                        const char *rest, json_t *body, struct client_reply *reply,
                        struct error *err)
{
    const char *path = client_sandbox_path(client, name, rest);

    if (client_call(client, method, path, body, reply, err) == 0)
        return 0;
    client_sandbox_explain(client, name, err);
    return -1;
}
