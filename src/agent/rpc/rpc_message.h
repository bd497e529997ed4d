/* Messages: what the peers of a capnweb session say to each other, one JSON array per frame.
 *
 *     ["push", expression]        evaluate it; the result is yours under my next id
 *     ["stream", expression]      the same, with a pull at once and without a release
 *     ["pipe"]                    my next id is the writing end of a new pipe
 *     ["pull", id]                tell me that result when it is there
 *     ["resolve", id, expression] here it is
 *     ["reject", id, expression]  or the error
 *     ["release", id, count]      I need it no longer
 *     ["abort", expression]       the session is over
 *
 * "My next id": each peer counts what it pushed, streamed and piped, from 1; 0 is the main object.
 * Things that are passed inside of expressions have negative ids. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of a frame we take, brackets inside each other in it (a wrapped array is two), values. */
#define RPC_FRAME_MAX       ((size_t) 48 * 1024 * 1024)
#define RPC_FRAME_DEPTH_MAX 160
#define RPC_FRAME_VALUES    ((size_t) 256 * 1024)

enum rpc_message_type {
    RPC_PUSH,
    RPC_STREAM,
    RPC_PIPE,
    RPC_PULL,
    RPC_RESOLVE,
    RPC_REJECT,
    RPC_RELEASE,
    RPC_ABORT,
};

struct rpc_message {
    json_t *frame; /* owned: json_decref */
    enum rpc_message_type type;
    int64_t id;         /* of pull, resolve, reject, release */
    int64_t count;      /* of release: at least 1 */
    json_t *expression; /* borrowed from the frame: of push, stream, resolve, reject, abort */
};

/* Read one frame. Returns 0 and a message whose frame the caller frees, or -1 with ERR_INVALID or
 * ERR_TOO_LARGE: the session cannot go on. */
int rpc_message_read(const char *bytes, size_t length, struct rpc_message *ret_message,
                     struct error *err);

/* ["pipeline", id, path, arguments]: call what is at `path` of `id`. */
struct rpc_pipeline {
    int64_t id;
    json_t *path;      /* borrowed: an array, or NULL */
    json_t *arguments; /* borrowed: an array of expressions, or NULL: get the property */
};

/* Returns 0, or -1 with ERR_INVALID when the expression is something else. */
int rpc_pipeline_read(json_t *expression, struct rpc_pipeline *ret_pipeline, struct error *err);
