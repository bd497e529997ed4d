/* A capnweb session: one peer's messages become calls of operations, and their answers go back.
 *
 * The session knows no socket: a port (below) carries frames, so that tests and fuzzers can be one.
 * rpc.h puts it on a WebSocket.
 *
 *     push      a call is started at once; its answer is kept until it is pulled
 *     stream    a call whose answer needs no pull, or a piece for a pipe
 *     pipe      an inlet: bytes that a call reads as its input
 *     release   forgets an answer. A call under way is left to finish; a stream that nobody was
 *               given yet is over, and so is one whose reader refuses a piece of it
 *
 * Everything is bounded (the limits below, RPC_FRAME_MAX). A peer that breaks the rules gets
 * ["abort", error] and is closed; what is merely not there (methods, properties of results, remap)
 * is rejected, and the session goes on.
 *
 * All functions belong to the loop's thread; none blocks. Operations are run from inside of
 * rpc_session_receive; on_drain, on_gone and input come to calls from rpc_session_receive,
 * _settle, _end and _free, never from inside a function of call.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/operation.h"

struct agent;
struct block_store;
struct rpc_session;

/* Calls that owe an answer. One more is refused. */
#define RPC_CALLS_MAX 1024
/* Ids the peer holds of ours, and we of the peer's. */
#define RPC_EXPORTS_MAX 8192
#define RPC_IMPORTS_MAX 8192
/* Bytes of answers that wait to be pulled or sent. One that passes it is replaced by an error. */
#define RPC_KEPT_MAX ((size_t) 128 * 1024 * 1024)
/* The longest answer, as an expression. */
#define RPC_ANSWER_MAX ((size_t) 60 * 1024 * 1024)
/* Of a stream we send: bytes in a message, bytes and messages that the reader has not taken. */
#define RPC_CHUNK_MAX       ((size_t) 48 * 1024)
#define RPC_WINDOW          ((size_t) 256 * 1024)
#define RPC_WINDOW_MESSAGES 256
/* Of streams we read, all together: bytes held for calls that do not take them. Above it the peer
 * is not listened to. */
#define RPC_INPUT_MAX ((size_t) 8 * 1024 * 1024)

/* How a session reaches its peer. None of these may call back into the session. */
struct rpc_port {
    void (*send)(void *owner, const char *frame, size_t length);
    bool (*is_full)(const void *owner); /* rpc_session_drained follows */
    /* Deliver no more frames; or go on, from the next turn. */
    void (*hold)(void *owner, bool held);
    /* After an abort, sent or received: no further frame is delivered or sent. */
    void (*close)(void *owner, const char *reason);
    /* Call rpc_session_settle at the end of this turn. */
    void (*wake)(void *owner);
};

struct rpc_session_options {
    struct agent *agent;         /* borrowed: for calls */
    const struct rpc_port *port; /* borrowed: static */
    void *owner;                 /* borrowed: the port's first argument */
    struct block_store *blocks;  /* borrowed: what streams queue in */
    const struct operation *(*find)(const char *name);
};

struct rpc_session *rpc_session_new(const struct rpc_session_options *options);

/* A text frame arrived. */
void rpc_session_receive(struct rpc_session *session, const char *bytes, size_t length);

/* The peer did something that is no message at all: abort. */
void rpc_session_abort(struct rpc_session *session, const char *reason);

/* The port has room again. */
void rpc_session_drained(struct rpc_session *session);

/* Now and then: a reader that left is heard of only when something is written to it, so streams of
 * events that are silent get a comment, which no client shows. */
void rpc_session_probe(struct rpc_session *session);

/* What was put off to the end of the turn. */
void rpc_session_settle(struct rpc_session *session);

/* The peer is gone: so are all calls. Nothing is sent from here on. May be called twice. */
void rpc_session_end(struct rpc_session *session);

/* Ends it if need be. Accepts NULL. */
void rpc_session_free(struct rpc_session *session);

/* How much is alive: what a test compares with the peer's own count. */
struct rpc_session_counts {
    size_t exports; /* answers and inlets, without the main object */
    size_t imports; /* pipes, pieces and callbacks under way */
    size_t calls;   /* not freed yet */
    size_t kept;    /* bytes of answers */
    size_t input;   /* bytes of streams we read */
};

void rpc_session_count(const struct rpc_session *session, struct rpc_session_counts *ret_counts);
