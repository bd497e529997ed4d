/* Asking about something that has a name and is no sandbox: snapshots, templates. */
#pragma once

#include "cli/client/client.h"

/* CLIENT_PREFIX, "/", the kind ("snapshots"), "/", the name, and `rest`; in the client's pool. */
const char *client_object_path(struct client *client, const char *kind, const char *name,
                               const char *rest);
