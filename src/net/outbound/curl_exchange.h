/* One HTTP request to the outside world and its answer, on a libcurl easy handle. Everybody who
 * speaks to the outside uses it: webhooks (through outbound.h, on the loop), the object store (on
 * its threads) and burrow-puller.
 *
 * What it guarantees, whoever asks:
 *
 *  - Every address is checked against the caller's rules at the moment of connecting, after the
 *    name was resolved, so DNS that changes its answer gains nothing. A handle keeps connections:
 *    use it with one set of rules only.
 *  - HTTP/1.1, with or without TLS. Certificates are always verified. No proxy from the
 *    environment, no cookies, no netrc, no decompression. Redirects are answers like any other.
 *  - The head of an answer is well-formed and bounded; so is a body that goes into memory.
 *  - One failure has one code, for every caller (the table is in curl_exchange.c):
 *
 *        ERR_UNAVAILABLE       the peer cannot be reached, or the connection broke: try again
 *        ERR_UPSTREAM_TIMEOUT  it took too long: try again
 *        ERR_UPSTREAM          the peer answers nonsense, or nobody trusts its certificate
 *        ERR_FORBIDDEN         the rules refuse all of its addresses
 *        ERR_INVALID           the request, or the file of certificates, makes no sense
 *
 * Error texts name neither the URL's path nor a header: secrets are there. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/address_rules.h"
#include "net/url.h"

#define OUTBOUND_HEADERS_MAX   256                 /* of an answer */
#define OUTBOUND_HEAD_MAX      ((size_t) 64 << 10) /* bytes of a head, interim ones included */
#define OUTBOUND_SENT_LINE_MAX ((size_t) 64 << 10) /* of one header of ours */

/* Once per process, from main, before any thread is started: libcurl's global state. Returns 0,
 * or -1 with ERR_INTERNAL. */
int outbound_global_init(struct error *err);
void outbound_global_done(void);

struct outbound_header {
    const char *name; /* of an answer: in lower case */
    const char *value;
};

/* What came. It is reset when an exchange begins, so one answer serves several in turn. */
struct outbound_answer {
    struct pool pool; /* of the headers */
    int status;       /* of the final head, never 1xx; 0: none came */
    struct outbound_header *headers;
    size_t header_count;
    struct text body;       /* what on_bytes did not get; its maximum is the caller's limit */
    bool stopped_by_caller; /* the error is the caller's own, from one of its callbacks */
};

#define OUTBOUND_ANSWER_INIT(body_max)                                                             \
    {                                                                                              \
        .body = TEXT_INIT(body_max)                                                                \
    }

void outbound_answer_done(struct outbound_answer *answer);

AUTO_DEFINE(outbound_answer, struct outbound_answer, outbound_answer_done);

/* The first header of that name (in lower case), or NULL. */
const char *outbound_answer_header(const struct outbound_answer *answer, const char *name);

/* A body to send: memory, or a part of a file. */
struct outbound_body {
    const void *bytes; /* NULL: from `fd` */
    int fd;
    uint64_t offset; /* in the file */
    uint64_t length;
};

/* What to ask. All of it is borrowed until the exchange has ended; 0 and NULL mean none. */
struct outbound_request {
    const char *method;                    /* NULL: GET */
    const char *url;                       /* goes to the peer as it is: see outbound_url_read */
    const struct outbound_header *headers; /* their values must not have control characters */
    size_t header_count;
    const struct outbound_body *body;
    const struct address_rules *rules; /* NULL: any address */
    const char *ca_file;               /* PEM file trusted beside the system's */
    uint64_t connect_ms;               /* name, TCP and TLS together; 0: curl's five minutes */
    uint64_t total_ms;                 /* from start to end */
    uint64_t idle_ms;                  /* without a byte; counts in whole seconds */

    /* For the bytes of a 200 or 206. Each returns 0, or -1 with `err`, which ends the exchange.
     * on_bytes NULL: those bytes go into answer->body, as all others do. */
    int (*on_head)(void *context, const struct outbound_answer *answer, struct error *err);
    int (*on_bytes)(void *context, const void *bytes, size_t length, struct error *err);
    /* At least once a second, with what has moved so far. */
    int (*on_progress)(void *context, uint64_t received, uint64_t sent, struct error *err);
    void *context;
};

/* Blocks; any thread. `easy` is the caller's, and fresh again afterwards but for its connections.
 * Returns 0 when a whole answer came, whatever its status, or -1 with `err` (not NULL); the head
 * of an answer may have come then. */
int curl_exchange(CURL *easy, const struct outbound_request *request,
                  struct outbound_answer *answer, struct error *err);

/* Whether asking again may help: the failure is neither the caller's own nor for good. */
bool outbound_may_retry(const struct outbound_answer *answer, const struct error *err);

/* Whoever may name hosts but not look at the operator's network must not learn from a failure where
 * a name leads there, nor whether it leads anywhere: refused by the rules and not resolved become
 * one and the same, ERR_FORBIDDEN "the host has no public address". Other failures stay. */
void outbound_hide_address(struct error *err);

/* Put into `err` what was asked of whom, but nothing of the URL that may be secret. Returns -1. */
int outbound_name_peer(const char *method, const struct url *url, struct error *err);

/* Check a URL from a stranger: http or https only. `ret_text`, in the pool, is written from what we
 * understood, so that curl cannot understand something else; `ret_url` points into it. Returns 0,
 * or -1 with ERR_INVALID or ERR_URL_TOO_LONG. */
int outbound_url_read(const char *text, struct pool *pool, const char **ret_text,
                      struct url *ret_url, struct error *err);

/* --- the same in pieces, for curl's multi interface ------------------------------------------- */

/* In the caller's storage while the exchange lasts. */
struct curl_exchange {
    const struct outbound_request *request; /* borrowed */
    struct outbound_answer *answer;         /* borrowed */
    CURL *easy;                             /* borrowed */
    struct curl_slist *headers;             /* owned */
    uint64_t sent;                          /* bytes of the body given to curl */
    size_t head_bytes;
    bool in_head;         /* a status line came, and the end of its head not yet */
    bool head_done;       /* the final head is complete: lines that follow are trailers */
    bool dialled;         /* some address was allowed */
    struct error refusal; /* why the last address was not */
    struct error failure; /* what a callback found; ERR_NONE: nothing */
    char detail[CURL_ERROR_SIZE];
};

/* Set the handle up. Returns 0, or -1 with ERR_INVALID or ERR_INTERNAL and nothing to end. */
int curl_exchange_begin(struct curl_exchange *exchange, CURL *easy,
                        const struct outbound_request *request, struct outbound_answer *answer,
                        struct error *err);

/* What became of it when curl said `result`. Returns 0, or -1 with `err`. */
int curl_exchange_end(struct curl_exchange *exchange, CURLcode result, struct error *err);
