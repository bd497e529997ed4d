/* HTTP requests to the outside world, on libcurl and the loop.
 *
 * An outbound is a set of address rules and the connections made under them. It dials only
 * what the rules allow, looking at each resolved address at the moment of connecting: neither DNS
 * that changes its mind nor a redirect gets past that, and connections are never shared with an
 * outbound that has other rules. TLS certificates are always verified; proxies from the
 * environment, cookies, netrc and every protocol but HTTP/1.1 (with or without TLS) are off.
 *
 * A request: outbound_start copies everything it needs, then events come, all on the loop's thread
 * and never from inside a call of this module:
 *
 *     on_send*  (streamed bodies: give me bytes)
 *     on_head   once
 *     on_body*  bytes borrowed for the call
 *     on_done   once, last: `err` is NULL for a whole response, whatever its status
 *
 * outbound_pause stops on_body after at most the running call; curl then holds no more than a
 * few buffers and the peer is slowed down by TCP. outbound_cancel may be called at any time, also
 * in any event: no event follows it. After on_done or outbound_cancel the request is gone.
 *
 * Error texts name method, scheme, host and port, never path, query or headers: secrets live
 * there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/address_rules.h"
#include "net/loop.h"

#define OUTBOUND_ACTIVE_MAX  64    /* requests that run at the same time */
#define OUTBOUND_QUEUE_MAX   256   /* requests that wait for their turn */
#define OUTBOUND_COUNT_LIMIT 65536 /* either of the two, when set by hand */

#define OUTBOUND_CONNECT_TIMEOUT_MS ((uint64_t) 10 * 1000)
#define OUTBOUND_TOTAL_TIMEOUT_MS   ((uint64_t) 600 * 1000)
#define OUTBOUND_IDLE_TIMEOUT_MS    ((uint64_t) 60 * 1000)
#define OUTBOUND_HEAD_MAX           ((uint64_t) 64 * 1024)
#define OUTBOUND_BODY_MAX           ((uint64_t) 16 * 1024 * 1024)
#define OUTBOUND_SENT_BODY_MAX      ((size_t) 16 * 1024 * 1024) /* longer bodies are streamed */
#define OUTBOUND_HEADERS_MAX        256                         /* given or received */
#define OUTBOUND_REDIRECTS_MAX      20

/* For a time or size that shall have no limit. */
#define OUTBOUND_NO_LIMIT UINT64_MAX

/* Once per process, from main, before any thread is started: libcurl's global state. Returns 0,
 * or -1 with ERR_INTERNAL. */
int outbound_global_init(struct error *err);
void outbound_global_done(void);

struct outbound;
struct outbound_request;

struct outbound_settings {
    struct address_rules rules; /* copied */
    unsigned int active_max;    /* 0: OUTBOUND_ACTIVE_MAX */
    unsigned int queue_max;     /* 0: OUTBOUND_QUEUE_MAX */
    const char *ca_file;        /* PEM file trusted beside the system's; NULL: none */
};

/* Returns 0 and an outbound that the caller closes, or -1 with ERR_INVALID (a CA file that cannot
 * be used). `loop` is borrowed and outlives it. Reads the CA file: may block on the disk. */
int outbound_new(struct loop *loop, const struct outbound_settings *settings,
                 struct outbound **ret_outbound, struct error *err);

/* Close it. Requests still there get on_done with ERR_CANCELLED at the end of this turn;
 * `on_closed` (may be NULL) is called when the memory is gone. Accepts NULL, then calls nothing. */
void outbound_close(struct outbound *outbound, void (*on_closed)(void *context), void *context);

struct outbound_header {
    const char *name;
    const char *value;
};

/* 0 means the default named in the comment. */
struct outbound_limits {
    uint64_t connect_ms;    /* OUTBOUND_CONNECT_TIMEOUT_MS: name, TCP and TLS together */
    uint64_t total_ms;      /* OUTBOUND_TOTAL_TIMEOUT_MS: from start to on_done, queue included */
    uint64_t idle_ms;       /* OUTBOUND_IDLE_TIMEOUT_MS without a byte, unless we hold it up */
    uint64_t head_max;      /* OUTBOUND_HEAD_MAX: all response headers, interim ones included */
    uint64_t body_max;      /* OUTBOUND_BODY_MAX */
    unsigned int redirects; /* followed at most; 0: none, a 3xx is a response like any other */
};

#define OUTBOUND_SEND_LATER ((ssize_t) -1) /* no bytes now: outbound_resume_send says when */
#define OUTBOUND_SEND_ABORT ((ssize_t) -2) /* the body cannot be completed: fail the request */

struct outbound_events {
    /* The final response's head (never a 1xx, never a redirect that is followed). Names are
     * lower-case; everything is borrowed for the call. May be NULL. */
    void (*on_head)(struct outbound_request *request, void *context, int status,
                    const struct outbound_header *headers, size_t count);
    /* The next bytes of the response body. May be NULL: they are dropped. */
    void (*on_body)(struct outbound_request *request, void *context, const char *bytes,
                    size_t length);
    /* For streamed bodies: put up to `size` bytes into `buffer`. Returns how many, 0 at the end,
     * OUTBOUND_SEND_LATER or OUTBOUND_SEND_ABORT. */
    ssize_t (*on_send)(struct outbound_request *request, void *context, char *buffer, size_t size);
    /* The end. Must be set. */
    void (*on_done)(struct outbound_request *request, void *context, const struct error *err);
};

#define OUTBOUND_LENGTH_UNKNOWN ((int64_t) -1) /* streamed body: sent in chunks */

/* What to ask. Borrowed for the call of outbound_start, except events and context. */
struct outbound_call {
    const char *method; /* NULL: GET */
    const char *url;    /* http or https */
    const struct outbound_header *headers;
    size_t header_count;
    const void *body; /* copied; NULL: none, or streamed */
    size_t body_length;
    bool body_streamed;      /* the body comes from on_send */
    int64_t streamed_length; /* exact, or OUTBOUND_LENGTH_UNKNOWN */
    const char *unix_socket; /* connect to this path instead of the URL's host; NULL: no */
    struct outbound_limits limits;
    const struct outbound_events *events; /* static */
    void *context;
};

/* Start a request, or queue it when active_max are running. Returns 0, or -1 with ERR_INVALID
 * (URL, method, headers; Host, Content-Length, Transfer-Encoding, Connection and Expect are set
 * here and refused there), ERR_TOO_LARGE (the body), ERR_FORBIDDEN (a unix socket) or
 * ERR_UNAVAILABLE (the queue is full, or the outbound is being closed); then no event comes.
 *
 * Redirects: each hop is checked like the first. https never becomes http. When the origin changes
 * only harmless headers (accept, content-type, ...) go along: no Authorization, no API key under
 * any name. A streamed body cannot be sent twice, so 307 and 308 fail then.
 *
 * A kept connection may turn out dead before a byte of the answer came; the request is then sent
 * once more on a new one. Like any HTTP client: what must not happen twice carries an id. */
int outbound_start(struct outbound *outbound, const struct outbound_call *call,
                   struct outbound_request **ret_request, struct error *err);

/* Forget it: no event comes any more, its connection is closed. Harmless in on_done. */
void outbound_cancel(struct outbound_request *request);

/* Hold on_body back, and go on. on_done never overtakes bytes, but may come while paused when none
 * are left. */
void outbound_pause(struct outbound_request *request);
void outbound_resume(struct outbound_request *request);

/* After OUTBOUND_SEND_LATER: on_send will be asked again. */
void outbound_resume_send(struct outbound_request *request);
