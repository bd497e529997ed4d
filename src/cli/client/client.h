/* A client of the daemon's API, for verbs that ask and wait.
 *
 * Owns a loop and one origin. client_call runs the loop until the answer is there; verbs that
 * stream (exec, shell, cp, logs) use the loop and the origin themselves. Everything blocks: there
 * is one person waiting. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/http/http_client.h"
#include "net/http/sse.h"
#include "net/loop.h"
#include "net/tls.h"

#define CLIENT_URL_DEFAULT "http://127.0.0.1:8787"
#define CLIENT_REPLY_MAX   ((size_t) 64 * 1024 * 1024)
#define CLIENT_PREFIX      "/burrow/v1"

struct client {
    struct pool pool; /* for what lives as long as the client: URLs, headers */
    struct loop loop;
    struct http_origin *origin;
    struct tls_context *tls;
    const char *url;           /* "http://127.0.0.1:8787": for messages */
    const char *host;          /* of the Host header */
    const char *authorization; /* "Bearer ..."; NULL: no key is known */
    bool is_open;
};

struct client_reply {
    int status;
    int64_t length; /* of the body as announced; negative: it was not */
    json_t *json;   /* owned; NULL: the body is no JSON */
    struct text body;
};

#define CLIENT_REPLY_INIT                                                                          \
    {                                                                                              \
        .body = TEXT_INIT(CLIENT_REPLY_MAX)                                                        \
    }

void client_reply_done(struct client_reply *reply);
AUTO_DEFINE(client_reply, struct client_reply, client_reply_done);

/* `url` and `key` may be NULL: see credentials.h for where they are looked for then. Returns 0, or
 * -1 with ERR_INVALID (URL), ERR_NOT_FOUND (host). Connects later. */
int client_open(struct client *client, const char *url, const char *key, struct error *err);
void client_close(struct client *client);
AUTO_DEFINE(client, struct client, client_close);

/* Ask and wait. `body` is borrowed and may be NULL. Returns 0 with a 2xx answer, or -1: the daemon's
 * own code and message, or ERR_UNAVAILABLE when it cannot be reached, with what to do. */
int client_call(struct client *client, const char *method, const char *path, json_t *body,
                struct client_reply *reply, struct error *err);

/* A request whose bodies are streams. */
struct client_stream {
    const char *method, *path;
    const char *type;    /* of the body; NULL: there is none */
    int64_t body_length; /* HTTP_LENGTH_UNKNOWN: nobody knows yet */
    /* More of the body: returns bytes put into `buffer`, 0 at its end, -1 with an error. May block.
     * Needed with a type. */
    ssize_t (*next)(void *context, char *buffer, size_t size, struct error *err);
    /* Bytes of a 2xx answer; -1 with an error stops. May block. NULL: they are in the reply. */
    int (*take)(void *context, const struct client_reply *reply, const char *bytes, size_t length,
                struct error *err);
    void *context;
};

/* The same for streams. */
int client_stream(struct client *client, const struct client_stream *stream,
                  struct client_reply *reply, struct error *err);

/* All pages of a list under the field `name`, as one array that the caller owns. NULL with an
 * error. */
json_t *client_list(struct client *client, const char *path, const char *name, struct error *err);

/* The headers that every request has: Host, Authorization, User-Agent, Accept. */
#define CLIENT_HEADERS 4
size_t client_headers(const struct client *client,
                      struct http_header ret_headers[static CLIENT_HEADERS]);

/* Make an error of ours of an error body of the daemon's; also of one that is not read yet, as a
 * WebSocket that was not opened has it. */
void client_error(int status, json_t *json, struct error *err);
void client_refusal(int status, const char *body, size_t length, struct error *err);

/* CLIENT_PREFIX, "/", the kind ("snapshots"), "/", the name, escaped, and `rest`; in the client's
 * pool. And the same for a sandbox. */
const char *client_path(struct client *client, const char *kind, const char *name,
                        const char *rest);
const char *client_sandbox_path(struct client *client, const char *name, const char *rest);

/* --- server-sent events ----------------------------------------------------------------------- */

/* Follow a stream of events until it ends. `on_event` gets the JSON of each (NULL when it is none)
 * and returns 0, or -1 with an error to stop. Returns 0 at the stream's end or -1; a stream that
 * breaks off is ERR_UPSTREAM, a daemon that is not there ERR_UNAVAILABLE. */
int client_events(struct client *client, const char *path,
                  int (*on_event)(void *context, const struct sse_event *event, json_t *json,
                                  struct error *err),
                  void *context, struct error *err);
