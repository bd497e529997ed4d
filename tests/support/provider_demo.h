/* Inside of provider_demo, a daemon for tests; provider_demo.c says what it offers. */
#pragma once

#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "provider/provider.h"

struct demo {
    struct loop loop;
    struct log *log;
    struct http_server *server;
    struct provider *provider;
    struct list agents; /* of struct agent: origins that were asked so far */
    uv_signal_t stop;
    const char *listen;
    int exits; /* descriptor of the file that exits are written to */
};

/* A request that waits for an answer of the provider. `request` is NULL once its client left. */
struct asked {
    struct http_request *request;
    struct demo *demo;
};

/* A new one, freed by asked_take. */
struct asked *asked_new(struct http_request *request);

/* The request to answer, or NULL; `asked` is gone. */
struct http_request *asked_take(struct asked *asked);

/* The id in the path; -1, and the request is answered. */
int path_id(struct http_request *request, struct id *ret_id);

/* Read what somebody in the sandbox says on a port of its loopback, to the end: GET .../port/N. */
void get_port(struct http_request *request);

/* Whatever the agent answers: .../agent/PATH. */
void ask_agent(struct http_request *request);

/* Forget the connections to an agent. */
void forget_agent(struct demo *demo, const struct id *id);
