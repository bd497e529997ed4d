/* The documents S3 answers with, as structs. Pure; texts are copied into the pool.
 *
 * Every function returns 0, or -1 with ERR_UPSTREAM when the bytes are not that document. Elements
 * that are not known are left out: stores add their own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

#define S3_DOCUMENT_MAX ((size_t) 8 * 1024 * 1024) /* 1,000 keys of 1,024 escaped bytes fit */
#define S3_ENTRIES_MAX  2000                       /* of one list, whoever wrote it */

/* <Error>. Texts that were not there are "". */
struct s3_failure {
    const char *code;    /* "NoSuchKey" */
    const char *message; /* the store's words */
    const char *region;  /* the one it wants */
    const char *endpoint;
    const char *server_time;
    const char *request_time;
};

/* Whether the root is <Error>: some answers say 200 and then this. */
bool s3_document_is_failure(const char *bytes, size_t length);

int s3_document_failure(const char *bytes, size_t length, struct pool *pool,
                        struct s3_failure *ret_failure, struct error *err);

struct s3_listed {
    const char *key; /* of an object, or of a folder */
    bool is_folder;
    uint64_t size;
    int64_t modified_ms; /* 0: not said */
    const char *tag;     /* without quotes; "": not said */
};

struct s3_listing {
    struct s3_listed *entries; /* objects and folders as they came: each kind sorted */
    size_t count;
    bool is_truncated;
};

/* <ListBucketResult> */
int s3_document_listing(const char *bytes, size_t length, struct pool *pool,
                        struct s3_listing *ret_listing, struct error *err);

/* <InitiateMultipartUploadResult> */
int s3_document_upload_id(const char *bytes, size_t length, struct pool *pool, const char **ret_id,
                          struct error *err);

/* <CompleteMultipartUploadResult>, <CopyObjectResult> and <CopyPartResult>: the tag, and when (0:
 * not said). */
int s3_document_tag(const char *bytes, size_t length, struct pool *pool, const char **ret_tag,
                    int64_t *ret_modified_ms, struct error *err);

/* <DeleteResult>: the keys that were not deleted. */
struct s3_undeleted {
    const char **keys;
    size_t count;
};

int s3_document_undeleted(const char *bytes, size_t length, struct pool *pool,
                          struct s3_undeleted *ret_undeleted, struct error *err);

/* <ListMultipartUploadsResult> */
struct s3_upload {
    const char *key;
    const char *id;
    int64_t started_ms; /* 0: not said */
};

struct s3_uploads {
    struct s3_upload *uploads;
    size_t count;
};

int s3_document_uploads(const char *bytes, size_t length, struct pool *pool,
                        struct s3_uploads *ret_uploads, struct error *err);

/* Append `text` so that it stands in a document as it is. */
void s3_document_escape(struct text *out, const char *text);

/* Whether XML can hold it at all: no control characters. */
bool s3_document_can_hold(const char *text);
