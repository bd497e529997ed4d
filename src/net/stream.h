/* A stream: one connected socket with buffered output and back-pressure both ways, plain or TLS.
 *
 * Everything above (HTTP server and client, WebSocket, tunnels) is built on this. The owner
 * provides the memory (on the heap by itself when the stream may change hands), sets the events and
 * gets whole callbacks; partial writes, EAGAIN, TLS handshakes and asynchronous closing end here.
 *
 * Reading: on_data gets bytes that are borrowed for the call and must be consumed or copied.
 * A consumer that cannot keep up calls stream_pause; at most the bytes of the running callback
 * arrive after that. stream_resume continues, never from inside the call.
 *
 * Writing: stream_write never blocks and takes everything. When stream_is_full is true the producer
 * should stop until on_drain. Output is sent at the end of the turn, so head and body of a reply,
 * or many pipelined replies, leave in one system call; large writes on an empty queue go out at
 * once without a copy. A producer that ignores all this meets STREAM_QUEUE_MAX, which fails the
 * stream with -ENOBUFS.
 *
 * End: on_end says that the peer sends no more. on_failure says that the stream is dead (-errno);
 * it comes at most once, and no other event follows it. Either way the owner calls stream_close;
 * its memory may be reused in on_closed, not before. No event comes after stream_close. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "net/byte_queue.h"
#include "net/loop.h"
#include "net/tls.h"

#define STREAM_HIGH_WATER ((size_t) 256 * 1024)
#define STREAM_LOW_WATER  ((size_t) 64 * 1024)
#define STREAM_QUEUE_MAX  ((size_t) 64 * 1024 * 1024)

struct stream;

struct stream_events {
    void (*on_open)(struct stream *stream); /* optional: connected, TLS established */
    void (*on_data)(struct stream *stream, const char *bytes, size_t length);
    void (*on_end)(struct stream *stream);
    void (*on_drain)(struct stream *stream); /* optional */
    void (*on_shut)(struct stream *stream);  /* optional: our own end was sent */
    void (*on_failure)(struct stream *stream, int error);
};

struct stream {
    struct loop *loop;                  /* borrowed: outlives us */
    void *owner;                        /* the owner's own: whom the events are for */
    const struct stream_events *events; /* borrowed: static */
    struct tls *tls;                    /* owned; NULL for plain */
    struct byte_queue output;
    struct loop_task settle; /* end of turn: send, report failures, read what TLS holds */
    uv_poll_t poll;
    void (*on_closed)(struct stream *stream);
    uint64_t bytes_received; /* read from the peer so far */
    uint64_t bytes_sent;     /* accepted by the kernel so far */
    int fd;                  /* owned */
    int watched;             /* UV_READABLE | UV_WRITABLE now polled for */
    int pending_error;       /* a failure met while writing, reported at the end of the turn */
    bool opening : 1;        /* connecting or shaking hands */
    bool paused : 1;
    bool full : 1;            /* above high water: on_drain is owed */
    bool ended : 1;           /* the peer's end was delivered */
    bool failed : 1;          /* dead: nothing but closing is left */
    bool closing : 1;         /* stream_close was called */
    bool shut_requested : 1;  /* send our end after the queue */
    bool shut_done : 1;       /* our end was sent */
    bool blocked : 1;         /* the last send met EAGAIN */
    bool tls_wants_write : 1; /* reading waits for the socket to become writable */
};

/* Take over `fd`, which is non-blocking and connected (or connecting, said by `connecting`), and
 * start reading. `tls` is a session made by net/tls, taken over too, or NULL. Returns 0, or
 * -errno with fd and tls still the caller's. */
int stream_init(struct stream *stream, struct loop *loop, int fd, struct tls *tls, bool connecting,
                const struct stream_events *events);

/* Replace owner and events: how a connection changes hands after an upgrade. */
void stream_set_owner(struct stream *stream, void *owner, const struct stream_events *events);

/* Speak TLS from now on; on_open comes when it is established. Everything that was written before
 * must have left (stream_queued is 0). `tls` is taken. Returns 0, or -errno with tls still the
 * caller's. Bytes that came already: tls_preload. */
int stream_secure(struct stream *stream, struct tls *tls);

void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

void stream_write(struct stream *stream, const void *bytes, size_t length);

/* Several pieces at once, in order. */
void stream_write_parts(struct stream *stream, const struct iovec *parts, int count);

/* Whether a well-behaved producer should wait for on_drain. */
static inline bool stream_is_full(const struct stream *stream)
{
    return stream->full;
}

/* Bytes accepted but not yet given to the kernel. */
static inline size_t stream_queued(const struct stream *stream)
{
    return byte_queue_length(&stream->output);
}

/* Send our end (FIN, or TLS close-notify and FIN) once everything written has left. */
void stream_shut_write(struct stream *stream);

/* Close now; what is still queued is lost. `on_closed` may be NULL. */
void stream_close(struct stream *stream, void (*on_closed)(struct stream *stream));

/* For on_closed, when the stream was allocated by itself: free(stream). */
void stream_free(struct stream *stream);
