/* Server-sent events of the daemon, one by one. */
#pragma once

#include "cli/client/client.h"
#include "net/http/sse.h"

/* Follow a stream of events until it ends. `on_event` gets the JSON of each (NULL when it is none)
 * and returns 0, or -1 with an error to stop. Returns 0 at the stream's end or -1; a stream that
 * breaks off is ERR_UPSTREAM, a daemon that is not there ERR_UNAVAILABLE. */
int client_events(struct client *client, const char *path,
                  int (*on_event)(void *context, const struct sse_event *event, json_t *json,
                                  struct error *err),
                  void *context, struct error *err);
