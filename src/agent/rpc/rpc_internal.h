/* What the parts of a capnweb session know of each other. Private to rpc_*.c.
 *
 *     rpc_session     frames in, dispatch, the tables, life and death
 *     rpc_answer      what the peer gets for a push or a stream
 *     rpc_call        an operation under way: the call_transport
 *     rpc_arguments   from positions to names
 *     rpc_outlet      a stream that a call returns
 *     rpc_inlet       a stream that a call reads
 *     rpc_callbacks   functions of the peer that a call tells its events to */
#pragma once

#include "agent/call.h"
#include "agent/rpc/rpc_expression.h"
#include "agent/rpc/rpc_message.h"
#include "agent/rpc/rpc_session.h"
#include "agent/rpc/rpc_table.h"
#include "base/list.h"
#include "net/byte_queue.h"

/* --- session --------------------------------------------------------------------------------- */

enum { RPC_EXPORT_ANSWER = 1, RPC_EXPORT_INLET };
enum { RPC_IMPORT_PIPE = 1, RPC_IMPORT_PIECE, RPC_IMPORT_CALLBACK };

struct rpc_session {
    struct agent *agent;         /* borrowed */
    const struct rpc_port *port; /* borrowed: static */
    void *owner;                 /* borrowed */
    struct block_store *blocks;  /* borrowed */
    const struct operation *(*find)(const char *name);
    struct rpc_table exports; /* of the peer's ids: rpc_answer, rpc_inlet */
    struct rpc_table imports; /* of ours: rpc_outlet, rpc_callbacks */
    int64_t peer_id;          /* the peer's last one */
    int64_t own_id;           /* our last one */
    struct list calls;        /* of rpc_call */
    struct list outlets;      /* of rpc_outlet */
    struct list inlets;       /* of rpc_inlet */
    struct list unsent;       /* of rpc_answer: ready and pulled, but the port was full */
    size_t running;           /* calls that owe an answer */
    size_t kept;              /* bytes of answers */
    size_t input;             /* bytes held by inlets */
    bool held;                /* the port was told to */
    bool over;                /* nothing is sent or taken any more */
    bool ended;               /* and all calls know it */
};

/* Frames out. `text` is a whole message; dropped when the session is over. */
void rpc_send(struct rpc_session *session, const struct text *message);
void rpc_send_release(struct rpc_session *session, int64_t id);

/* The id of a push, stream or pipe of ours, which the caller has sent or is about to send. */
int64_t rpc_import(struct rpc_session *session, uint32_t kind, void *object, size_t size);

bool rpc_port_is_full(const struct rpc_session *session);
void rpc_wake(struct rpc_session *session);

/* Release the stubs inside, refuse the pipes: nobody will use them. */
void rpc_drop_references(struct rpc_session *session, json_t *expression);

/* --- answers --------------------------------------------------------------------------------- */

struct rpc_outlet;

/* Life: in the exports from rpc_answer_init until the peer released it, or it was sent when it is
 * one of a stream message. Then on_dropped is called, and it is the owner's to free. */
struct rpc_answer {
    struct rpc_session *session; /* borrowed */
    void (*on_dropped)(struct rpc_answer *answer);
    int64_t id;
    int64_t references; /* the peer's; 0: dropped */
    struct list link;   /* in session->unsent */
    struct text value;  /* owned: an expression */
    size_t kept;        /* bytes counted in session->kept */
    json_t *head;       /* owned, or NULL: of a stream inside an object */
    struct rpc_outlet
        *outlet; /* borrowed: the value is a stream; NULL: it is not, or it was sent */
    bool once;   /* of a stream message */
    bool pulled;
    bool ready; /* value or outlet are there */
    bool sent;
    bool rejected; /* the value is an error */
};

void rpc_answer_init(struct rpc_answer *answer, struct rpc_session *session, int64_t id, bool once,
                     void (*on_dropped)(struct rpc_answer *answer));
void rpc_answer_pull(struct rpc_answer *answer);

/* The value is there, or the outlet is: tell who pulled. */
void rpc_answer_give(struct rpc_answer *answer);

/* Give an error in place of whatever was to be the value. */
void rpc_answer_fail(struct rpc_answer *answer, const struct api_error *error);
void rpc_answer_fail_text(struct rpc_answer *answer, enum api_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rpc_answer_give_undefined(struct rpc_answer *answer);

/* Send it if it is ready and pulled and the port has room. */
void rpc_answer_send(struct rpc_answer *answer);

/* The peer drops references. Returns 0, or -1 when it has not that many. */
int rpc_answer_release(struct rpc_answer *answer, int64_t count);

/* Leave the exports, without regard for references. Calls on_dropped. */
void rpc_answer_drop(struct rpc_answer *answer);

/* An answer of its own, freed when it is dropped. */
struct rpc_answer *rpc_answer_new(struct rpc_session *session, int64_t id, bool once);

/* --- calls ----------------------------------------------------------------------------------- */

struct rpc_inlet;
struct rpc_callbacks;

struct rpc_call {
    struct call call;
    struct rpc_answer answer;
    struct list link; /* in session->calls */
    struct pool pool;
    json_t *arguments;               /* owned */
    struct rpc_outlet *outlet;       /* owned; NULL: the answer is no stream */
    struct rpc_inlet *inlet;         /* borrowed; NULL: no input, or it is over */
    struct rpc_callbacks *callbacks; /* owned; NULL: none were passed */
    struct text json;                /* an answer that comes in pieces */
    size_t json_kept;                /* bytes of it counted in session->kept */
    bool running;                    /* the service owes an answer */
    bool gone_due;                   /* on_gone is to be told */
    bool dropped;                    /* the answer was */
};

/* Start the operation; `arguments` is an array of expressions, borrowed. */
void rpc_call_start(struct rpc_session *session, int64_t id, bool once,
                    const struct operation *operation, json_t *arguments);

/* The client left, or its reader did. */
void rpc_call_tell_gone(struct rpc_call *call);

/* Whether nobody needs it any more, and then free it: only from rpc_session_settle and later. */
bool rpc_call_reap(struct rpc_call *call);
void rpc_call_free(struct rpc_call *call);

/* Fill in what the row's parameters name. Returns 0 with a new object, or -1 with `error`. Inlets
 * and callbacks that the call takes are in it then; other references were dropped, in any case. */
int rpc_arguments_read(struct rpc_call *call, json_t *expressions, json_t **ret_arguments,
                       struct api_error *error);

/* --- streams of ours ------------------------------------------------------------------------- */

struct rpc_outlet {
    struct rpc_session *session;
    struct rpc_call *call; /* borrowed: who hears of drain and gone; NULL: the service is done */
    struct list link;      /* in session->outlets */
    struct byte_queue queue;
    int64_t pipe;     /* 0: not open yet */
    size_t unacked;   /* bytes */
    size_t in_flight; /* messages */
    bool ended;       /* nothing more comes from the service */
    bool broken;      /* and what came is not all */
    bool closing;     /* the pipe's end was sent */
    bool closed;      /* the pipe was released, or will never be opened */
    bool was_full;    /* on_drain is owed */
};

struct rpc_outlet *rpc_outlet_new(struct rpc_call *call);

/* Send ["pipe"]: the expression ["readable", outlet->pipe] follows. */
void rpc_outlet_open(struct rpc_outlet *outlet);
void rpc_outlet_write(struct rpc_outlet *outlet, const void *bytes, size_t length);
bool rpc_outlet_is_full(const struct rpc_outlet *outlet);
void rpc_outlet_end(struct rpc_outlet *outlet, bool broken);

/* Nobody will read it: forget all. */
void rpc_outlet_cancel(struct rpc_outlet *outlet);

/* The peer answered a piece of `size` bytes. */
void rpc_outlet_answered(struct rpc_outlet *outlet, size_t size, bool rejected);

/* Write a comment when it is a stream of events and nothing is under way. */
void rpc_outlet_probe(struct rpc_outlet *outlet);

/* Send one message if window and port allow. Returns whether it did. */
bool rpc_outlet_pump(struct rpc_outlet *outlet);

/* Tell on_drain if it is owed and there is room. */
void rpc_outlet_tell_drain(struct rpc_outlet *outlet);

/* Whether the call may let go of it. */
bool rpc_outlet_is_done(const struct rpc_outlet *outlet);
void rpc_outlet_free(struct rpc_outlet *outlet);

/* --- streams of the peer's ------------------------------------------------------------------- */

struct rpc_inlet {
    struct rpc_session *session;
    struct list link; /* in session->inlets */
    int64_t id;
    int64_t references;
    struct rpc_call *reader; /* borrowed; NULL: nobody yet, or no longer */
    struct list pieces;      /* of struct piece, in rpc_inlet.c */
    bool taken;              /* ["readable", id] was passed to somebody */
    bool refused;            /* nobody will read: every piece is rejected */
    bool wanted;             /* the reader takes input now */
    bool ended;              /* the reader knows the end */
};

void rpc_inlet_new(struct rpc_session *session, int64_t id);

/* The peer calls a method of the pipe: write, close, abort. Only stream messages do. */
void rpc_inlet_take(struct rpc_inlet *inlet, int64_t id, const struct rpc_pipeline *pipeline);

/* Returns 0, or -1 when somebody has it already. */
int rpc_inlet_attach(struct rpc_inlet *inlet, struct rpc_call *reader);

/* Nobody reads, now and later: what is there and what comes is rejected. */
void rpc_inlet_refuse(struct rpc_inlet *inlet);
void rpc_inlet_want(struct rpc_inlet *inlet, bool wanted);

/* Hand pieces to the reader while it wants them. */
void rpc_inlet_deliver(struct rpc_inlet *inlet);
int rpc_inlet_release(struct rpc_inlet *inlet, int64_t count);

/* Whether neither side needs it any more, and then free it. */
bool rpc_inlet_reap(struct rpc_inlet *inlet);
void rpc_inlet_free(struct rpc_inlet *inlet);

/* --- functions of the peer's ----------------------------------------------------------------- */

#define RPC_CALLBACKS_MAX 4

struct rpc_callbacks {
    struct rpc_call *call;            /* borrowed: outlives us */
    int64_t target;                   /* a stub with methods; 0: `stubs` count */
    int64_t stubs[RPC_CALLBACKS_MAX]; /* by name; 0: not passed */
    struct list waiting;              /* of struct event, in rpc_callbacks.c */
    size_t waiting_bytes;
    size_t in_flight;
    bool ended;    /* answer the call when all are through */
    bool failed;   /* the peer refused one */
    bool released; /* the stubs were */
    bool was_full; /* on_drain is owed */
};

/* `expression` is an object of stubs, or a stub. Returns NULL when it is neither; references that
 * are of no use were dropped then, and otherwise too. */
struct rpc_callbacks *rpc_callbacks_new(struct rpc_call *call, json_t *expression);
void rpc_callbacks_event(struct rpc_callbacks *callbacks, const char *type, const char *json,
                         size_t length);
bool rpc_callbacks_is_full(const struct rpc_callbacks *callbacks);

/* The events are complete: undefined is the answer, after the last of them was taken. */
void rpc_callbacks_end(struct rpc_callbacks *callbacks);

/* Before another answer: give the stubs back now. */
void rpc_callbacks_release(struct rpc_callbacks *callbacks);
void rpc_callbacks_answered(struct rpc_callbacks *callbacks, int64_t id, bool rejected);

/* Send what window and port allow, tell on_drain. */
void rpc_callbacks_pump(struct rpc_callbacks *callbacks);
void rpc_callbacks_tell_drain(struct rpc_callbacks *callbacks);
void rpc_callbacks_free(struct rpc_callbacks *callbacks);
