/* Requests to the store and what it answers. Blocks; any thread. For s3_*.c only.
 *
 *     s3_exchange   one request, one answer, whatever it says
 *     s3_call       the same until it is settled: tried again where that may help, and turned into
 *                   an error of ours where it does not
 */
#pragma once

#include "net/outbound/curl_exchange.h"
#include "objects/s3/s3_client.h"
#include "objects/s3/s3_document.h"

#define S3_QUERY_MAX   8
#define S3_HEADERS_MAX 40 /* of a request: OBJECTS_METADATA_COUNT and ours */
#define S3_META        "x-amz-meta-"
#define S3_META_SUM    "x-amz-meta-burrow-sha256" /* of the whole object, in hex */
#define S3_META_PUT    "x-amz-meta-burrow-put"    /* which put it was, see s3_put.c */
#define S3_META_OURS   "x-amz-meta-burrow-"

struct s3_request {
    const char *method;
    const char *key; /* whole, with the prefix; NULL: the bucket */
    struct sigv4_pair query[S3_QUERY_MAX];
    size_t query_count;
    struct sigv4_pair headers[S3_HEADERS_MAX]; /* names in lower case */
    size_t header_count;
    bool has_body;
    struct outbound_body body; /* its bytes are borrowed */
    const char *body_sum;      /* SHA-256 in hex; NULL: there is no body, or an empty one */
    bool is_slow;              /* the store has work to do before it answers: be patient */

    /* For answers with an object in them (200, 206): the head, then the bytes. NULL: into the
     * answer. Return 0, or -1 with `err`, which ends the exchange. */
    int (*on_head)(void *context, const struct outbound_answer *answer, struct error *err);
    int (*on_bytes)(void *context, const void *bytes, size_t length, struct error *err);
    void *context;
};

struct s3_answer {
    struct outbound_answer http; /* the body: of documents */
    struct s3_failure failure;   /* of statuses that are no success; texts are never NULL */
    bool is_transient;           /* trying again may help */
    unsigned int stalls;         /* how often the store hung, all attempts together */
};

#define S3_ANSWER_INIT                                                                             \
    {                                                                                              \
        .http = OUTBOUND_ANSWER_INIT(S3_DOCUMENT_MAX)                                              \
    }

void s3_answer_done(struct s3_answer *answer);

AUTO_DEFINE(s3_answer, struct s3_answer, s3_answer_done);

void s3_request_query(struct s3_request *request, const char *name, const char *value);

/* `value` NULL: left out. */
void s3_request_header(struct s3_request *request, const char *name, const char *value);

/* Send once. Returns 0 when an answer came, or -1 with `err` and answer->is_transient. */
int s3_exchange(struct s3_client *client, struct objects_work *work,
                const struct s3_request *request, struct s3_answer *answer, struct error *err);

/* Send until it is settled. Returns 0 for a success (2xx), or -1 with `err`; the answer has the
 * status and the store's code of the last one. */
int s3_call(struct s3_client *client, struct objects_work *work, const struct s3_request *request,
            struct s3_answer *answer, struct error *err);

/* Wait before attempt number `attempt` + 1 and count it. Returns 0, or -1 with ERR_CANCELLED. */
int s3_back_off(const struct s3_client *client, struct objects_work *work, unsigned int attempt,
                struct error *err);

/* The error behind an answer that is no success; fills answer->failure. Returns -1. */
int s3_error_of(const struct s3_client *client, struct s3_answer *answer, struct error *err);
