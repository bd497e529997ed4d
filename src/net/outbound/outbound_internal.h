/* Inside net/outbound: the structs its files share. Not for others.
 *
 *     outbound.c           public functions, queue, deadlines, end of requests
 *     outbound_request.c   a call, checked and copied
 *     outbound_transfer.c  one exchange on a curl easy handle: options, sending, errors
 *     outbound_receive.c   what curl calls with the response
 *     outbound_redirect.c  where a redirect leads and what may go along
 *
 * A request's way:  queued -> running (one transfer per hop) -> finished, freed when its timer is
 * closed. Callbacks of curl only set flags and put the request on `attention`; the pump, a task at
 * the end of the turn, does what must not happen inside curl. */
#pragma once

#include <curl/curl.h>

#include "base/list.h"
#include "base/pool.h"
#include "net/outbound/curl_loop.h"
#include "net/outbound/outbound.h"
#include "net/url.h"

#define OUTBOUND_SPARE_MAX     16                     /* easy handles kept for the next request */
#define OUTBOUND_SENT_HEAD_MAX ((size_t) 64 * 1024)   /* header bytes of ours */
#define OUTBOUND_SKIPPED_MAX   ((uint64_t) 64 * 1024) /* read from a redirect's body */

struct outbound {
    struct loop *loop; /* borrowed: outlives us */
    struct curl_loop curl;
    struct address_rules rules; /* never changes: reused connections were made under it */
    char *ca_file;              /* owned; NULL: none */
    unsigned int active_max;
    unsigned int queue_max;
    unsigned int active;
    unsigned int waiting;
    struct list queued;    /* of outbound_request.link, oldest first */
    struct list running;   /* of outbound_request.link */
    struct list attention; /* of outbound_request.attention */
    struct loop_task pump;
    CURL *spare[OUTBOUND_SPARE_MAX]; /* owned */
    unsigned int spare_count;
    unsigned int pieces; /* requests and curl_loop not yet closed: then we are freed */
    bool closing;
    void (*on_closed)(void *context);
    void *context;
};

enum outbound_state { OUTBOUND_QUEUED, OUTBOUND_RUNNING, OUTBOUND_FINISHED };

/* What came back so far in this hop. */
struct outbound_received {
    struct pool pool; /* of the headers */
    struct outbound_header *headers;
    size_t count;
    uint64_t head_bytes;
    uint64_t body_bytes;
    bool status_seen; /* the status line of the head now read */
    bool head_done;   /* the final head is complete: lines that follow are trailers */
    bool redirecting; /* follow `location` when this hop is over */
    int status;
    const char *location; /* in the request's pool */
};

struct outbound_request {
    struct outbound *outbound; /* borrowed: outlives us */
    struct list link;          /* in queued or running */
    struct list attention;
    struct deadline deadline;
    const struct outbound_events *events; /* borrowed: static */
    void *context;                        /* borrowed */
    struct pool pool;                     /* of the strings below */
    enum outbound_state state;

    const char *method;
    const char *url_text; /* normal form: what curl gets */
    struct url url;       /* spans of url_text */
    struct outbound_header *headers;
    size_t header_count;
    const char *body;
    size_t body_length;
    bool has_body;
    bool streamed;
    int64_t streamed_length;
    uint64_t sent; /* bytes of the body given to curl */
    const char *unix_socket;
    struct outbound_limits limits; /* defaults filled in */
    unsigned int hops;             /* redirects followed */
    uint64_t total_due;            /* loop_now() value or OUTBOUND_NO_LIMIT */
    uint64_t active_at;            /* last sign of life, loop_now() value */

    CURL *easy;                     /* owned while running */
    struct curl_slist *header_list; /* owned while running */
    char curl_error[CURL_ERROR_SIZE];
    struct outbound_received received;
    struct error failure; /* what a callback found wrong; its code is ERR_NONE if nothing */
    struct error refusal; /* why an address was refused */
    bool dialled;         /* some address was allowed in this hop */

    bool paused;       /* the owner wants no on_body */
    bool held_receive; /* curl was told so */
    bool held_send;    /* on_send had nothing */
    bool send_woken;   /* outbound_resume_send since */
    bool cancelled;
};

/* outbound_request.c */

/* Check and copy a call. Returns 0 and a request in state queued that is in no list yet and whose
 * deadline is not initialised, or -1. */
int outbound_request_new(struct outbound *outbound, const struct outbound_call *call,
                         struct outbound_request **ret_request, struct error *err);
void outbound_request_free(struct outbound_request *request);

/* The headers for curl. Owned by the caller. */
struct curl_slist *outbound_request_header_list(const struct outbound_request *request);

/* Take `text`, a checked or unchecked URL, as the next one to ask. Returns 0, or -1 with
 * ERR_INVALID. */
int outbound_request_set_url(struct outbound_request *request, const char *text, struct error *err);

/* Whether a header name or method is an RFC 9110 token. */
bool outbound_is_token(const char *text, size_t length);

/* outbound_transfer.c */

/* Set up an easy handle for the request's current URL and hand it to curl. */
int outbound_transfer_begin(struct outbound_request *request, struct error *err);

/* Take the easy handle back; safe when there is none. Not from inside a callback of curl. */
void outbound_transfer_end(struct outbound_request *request);

/* Tell curl what is held now. It may call back at once. */
CURLcode outbound_transfer_hold(struct outbound_request *request);

/* Why the transfer failed with `result`. Always returns -1. */
int outbound_transfer_error(struct outbound_request *request, CURLcode result, struct error *err);

/* outbound_receive.c */

/* For curl: one line of a head or trailer with its line end, and bytes of the body. */
size_t outbound_line_received(char *line, size_t size, size_t count, void *context);
size_t outbound_body_received(char *bytes, size_t size, size_t count, void *context);

/* Keep why the transfer will fail; the first reason is the one to tell. Always returns 0, which
 * ends the transfer when curl gets it from a callback. */
size_t outbound_fail(struct outbound_request *request, const struct error *reason);

/* Something happened: the idle time starts again. */
void outbound_alive(struct outbound_request *request);

/* outbound_redirect.c */

/* Whether the head just received is a redirect to follow. Returns 1 (`location` is kept), 0, or -1
 * with an error when it may not be followed any more. */
int outbound_redirect_check(struct outbound_request *request, struct error *err);

/* Turn the request into the one for the redirect's target. Returns 0, or -1 with ERR_FORBIDDEN or
 * ERR_UPSTREAM. */
int outbound_redirect_follow(struct outbound_request *request, struct error *err);
