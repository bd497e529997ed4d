/* One bucket of one store as the S3 backend sees it: where it is, who we are, connections kept.
 * For s3_*.c and objects_s3.c only. */
#pragma once

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/auto.h"
#include "objects/s3/objects_s3.h"
#include "objects/s3/sigv4.h"

#define S3_IDLE_MAX     16  /* handles of curl, each with its connection */
#define S3_LOCKS        64  /* of conditional puts; keys share them */
#define S3_BUCKET_MAX   255 /* bytes; AWS: 63, old buckets and others: more */
#define S3_PREFIX_MAX   512
#define S3_KEY_ID_MAX   256
#define S3_SECRET_MAX   1024
#define S3_TOKEN_MAX    4096
#define S3_REGION_MAX   64
#define S3_ENDPOINT_MAX 1024
#define S3_URL_MAX      ((size_t) 16 * 1024)

struct s3_client {
    struct pool pool;     /* of all texts */
    struct sigv4_key key; /* wiped at the end */
    const char *bucket;
    const char *prefix;  /* "": none */
    const char *origin;  /* "https://host:port" */
    const char *host;    /* of the header, and what is signed */
    const char *base;    /* escaped path before "/key": "/bucket", or "" */
    const char *ca_file; /* NULL: none */
    const char *text;    /* for people */
    bool checks_addresses;
    bool owns_uploads;
    struct address_rules rules;
    struct s3_limits limits; /* none is 0 */
    const struct clock *clock;

    atomic_bool bucket_seen;    /* so that 404 without a word means the key */
    atomic_bool deletes_singly; /* the store knows no deletes of many */
    pthread_mutex_t lock;       /* over what follows */
    CURL *idle[S3_IDLE_MAX];    /* owned */
    size_t idle_count;
    pthread_mutex_t locks[S3_LOCKS]; /* see s3_client_lock */
};

/* Checked and copied. NULL with ERR_INVALID. */
struct s3_client *s3_client_new(const struct s3_settings *settings, struct error *err);

/* No call may be under way. Accepts NULL. */
void s3_client_free(struct s3_client *client);

AUTO_DEFINE_PTR(s3_client, struct s3_client, s3_client_free);

/* A handle with the connection it had before, and back. */
CURL *s3_client_take(struct s3_client *client);
void s3_client_give(struct s3_client *client, CURL *handle);

/* The key as the store has it, in the pool. Returns 0, or -1 with ERR_INVALID when prefix and key
 * are too long together. */
int s3_client_key(const struct s3_client *client, struct pool *pool, const char *key,
                  const char **ret_key, struct error *err);

/* Append the escaped path of a whole key; NULL: of the bucket. */
void s3_client_path(const struct s3_client *client, const char *key, struct text *out);

/* The lock that conditional puts of this key hold from looking to putting. */
pthread_mutex_t *s3_client_lock(struct s3_client *client, const char *key);
