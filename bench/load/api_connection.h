/* A keep-alive connection to the API that has at most one request under way and never blocks.
 *
 *     api_connection_ask(&connection, "GET", "/burrow/v1/sandboxes", "");
 *     while (!api_connection_take(&connection)) poll connection.fd for POLLIN
 *     connection.response.status, text_string(&connection.answer)
 *
 * Whatever goes wrong ends the program (load/fail.h). */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "load/response.h"
#include "load/target.h"

#define API_ANSWER_MAX  ((size_t) 1 << 20)
#define API_REQUEST_MAX ((size_t) 16 << 10)

struct api_connection {
    int fd;
    struct response response;
    struct text request; /* owned: the memory is kept between requests */
    struct text answer;  /* owned: head and body as they came */
};

/* Where requests go, and as whom. All borrowed: outlives the connections. */
struct api_server {
    struct target target;
    const char *key; /* of the API */
};

/* `turn` is for target_connect. */
void api_connection_open(struct api_connection *connection, const struct api_server *server,
                         unsigned turn);

/* Send a request whole; a small one always fits into the socket. `body` "" sends none. */
void api_connection_ask(struct api_connection *connection, const struct api_server *server,
                        const char *method, const char *path, const char *body);

/* Read what has come. Whether the answer is complete. */
bool api_connection_take(struct api_connection *connection);

void api_connection_close(struct api_connection *connection);
