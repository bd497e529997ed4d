/* Objects in a bucket behind the S3 API: AWS, R2, MinIO, Ceph, Swift.
 *
 *     struct s3_settings settings = {
 *         .endpoint = "https://s3.eu-central-1.amazonaws.com",
 *         .region = "eu-central-1",
 *         .bucket = "burrow",
 *         .access_key = "AKIA...",
 *         .secret_key = secret,
 *     };
 *     objects = objects_s3_new(loop, &settings, &err);
 *
 * What is put is signed together with the SHA-256 of its body, so that a store refuses what was
 * changed on the way; bytes and files carry their sum as metadata and are checked when they are
 * read whole. What is larger than a part goes as a multipart upload: each part is tried again
 * alone, and an upload that fails or is cancelled is aborted. A read that breaks off goes on where
 * it was, only if the object is still the same.
 *
 * Where a store differs from objects.h:
 * - A tag is the store's ETag: mostly a digest of the bytes, so that the same bytes put twice may
 *   have the same tag.
 * - Conditional puts look at the object first (under a lock of this handle) and then send
 *   If-None-Match or If-Match. A store that does not know those on puts (501, or it ignores them:
 *   Swift takes `only_new` alone) leaves a gap between looking and putting, in which another
 *   daemon may put; within one handle there is none.
 * - A stream has at most 10,000 parts of S3_PART_SIZE, 156 GB, then ERR_TOO_LARGE.
 * - `modified_ms` after a put is what the store said with its answer, to the second.
 * - A bucket that is not there is ERR_UNAVAILABLE and not ERR_NOT_FOUND: that would say of every
 *   object that it is lost. */
#pragma once

#include "base/clock.h"
#include "base/text.h"
#include "net/address_rules.h"
#include "objects/objects_backend.h"

#define S3_PART_SIZE      ((uint64_t) 16 * 1024 * 1024)       /* a single put up to here */
#define S3_PART_MIN       ((uint64_t) 5 * 1024 * 1024)        /* what S3 allows but for the last */
#define S3_PARTS_MAX      10000                               /* of one upload */
#define S3_COPY_MAX       ((uint64_t) 5 * 1024 * 1024 * 1024) /* of one copy; above: by parts */
#define S3_CONNECT_MS     10000                               /* until there is a connection */
#define S3_STALL_MS       30000  /* in which S3_STALL_BYTES must move */
#define S3_STALL_BYTES    1024   /* less is a store that hangs */
#define S3_STALLS_MAX     2      /* of one request: whoever waits for it is not kept for minutes */
#define S3_PATIENCE_MS    600000 /* until a copy or an upload is whole */
#define S3_ATTEMPTS_MAX   5      /* of one request */
#define S3_BACKOFF_MS     200    /* before the second one at most; then twice that ... */
#define S3_BACKOFF_MAX_MS 10000  /* ... up to here */

enum s3_style {
    S3_STYLE_PATH,    /* https://host/bucket/key */
    S3_STYLE_VIRTUAL, /* https://bucket.host/key */
};

/* 0 for any of them: the number above. Tests make them small. */
struct s3_limits {
    uint64_t part_size;
    uint64_t copy_max;
    unsigned int connect_ms;
    unsigned int stall_ms;
    unsigned int patience_ms;
    unsigned int attempts_max;
    unsigned int backoff_ms;
};

/* All texts are copied; "" is like NULL. */
struct s3_settings {
    const char *endpoint;      /* http or https URL of the store, without the bucket */
    const char *region;        /* NULL: "us-east-1", which is also what most others take */
    const char *bucket;        /* must exist */
    const char *access_key;    /* its id */
    const char *secret_key;    /* never in a log, an error or a URL */
    const char *session_token; /* of temporary keys; NULL: none */
    const char *prefix;        /* before every key; NULL: none. Callers never see it */
    const char *ca_file;       /* trusted besides the system's; NULL: none */
    enum s3_style style;
    /* Off: addresses that are not the public internet are refused when connecting, but for those
     * `rules` allow (NULL: none). For endpoints that strangers name. The operator's own may be on
     * this machine. */
    bool allow_private;
    const struct address_rules *rules;
    /* Everything behind the prefix is ours: objects_check aborts uploads there that are older than
     * a day, which a crash left behind. Off for buckets that others write to as well. */
    bool owns_uploads;
    struct s3_limits limits;
    const struct clock *clock; /* borrowed; NULL: the system's */
};

/* A handle. Nothing is asked of the store yet: objects_check does. outbound_global_init was called
 * before. NULL with ERR_INVALID: an
 * endpoint, bucket name, key or prefix that cannot be; the message says which. */
struct objects *objects_s3_new(struct loop *loop, const struct s3_settings *settings,
                               struct error *err);

/* What objects_s3_new puts a handle over: for tests, and for who has threads. */
int objects_s3_backend(const struct s3_settings *settings, struct objects_backend *ret_backend,
                       struct error *err);
