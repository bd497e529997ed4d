/* An operation: one thing the agent can do for a client, with its names in every transport.
 *
 * Each service has one const table of them (services.c knows all tables). The same row answers
 * plain HTTP, HTTP multiplexed over a WebSocket (/ws) and capnweb (/rpc): `run` gets a call
 * (call.h) and does not know which of them it came by.
 *
 *     {.method = "POST", .path = "/api/read", .rpc = "files.readFile",
 *      .parameters = {"path", "sessionId", "*"}, .run = read_file, .name = "file.read", ...}
 *
 * Arguments are one JSON object, as in the body of the HTTP request. In HTTP also the {names} of
 * the path and the query are arguments, as strings; what the body says wins. RPC passes arguments
 * by position, so the row names them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct call;

#define OPERATION_PARAMETERS_MAX 6

/* Parameters with a meaning of their own. */
#define OPERATION_FIELDS    "*" /* an object whose fields become arguments */
#define OPERATION_INPUT     "<" /* a stream of bytes: the call's input */
#define OPERATION_CALLBACKS ">" /* {onStdout, ...}: called with the events instead of a stream */

/* In what rpc_result returns, an object with this key alone stands for its value, which is an
 * expression of capnweb's already: {"$raw": ["date", 1794767246639]}, {"$raw": ["undefined"]}. */
#define OPERATION_RAW "$raw"

struct operation {
    const char *method; /* of HTTP; NULL: by RPC only */
    const char *path;   /* of HTTP: a pattern as in http_route.h */
    const char *rpc;    /* "files.readFile"; NULL: by HTTP only */
    const char *parameters[OPERATION_PARAMETERS_MAX];
    void (*run)(struct call *call);
    /* What RPC answers in place of the reply (borrowed): a new reference. NULL: the reply. */
    json_t *(*rpc_result)(json_t *reply);
    const char *name;    /* in errors: "file.read" */
    const char *summary; /* one line for documents */
    size_t body_limit;   /* of HTTP; 0: CALL_BODY_DEFAULT */
    bool has_events;     /* a good answer is a stream of events */
    bool starts_work;    /* runs something, or changes files: refused while quiet (quiesce.h) */
};

struct operation_table {
    const struct operation *rows;
    size_t count;
};
