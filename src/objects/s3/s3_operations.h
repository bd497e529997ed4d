/* What the S3 backend does, one function each; see objects_backend.h for what they promise. For
 * s3_*.c and objects_s3.c only. Keys are those of callers unless a name says "whole". */
#pragma once

#include "objects/s3/s3_exchange.h"

/* --- the backend's -----------------------------------------------------------------------------
 */

int s3_put(struct s3_client *client, struct objects_work *work, const char *key,
           const struct objects_source *source, const struct object_put_options *options,
           struct object_info *ret_info, struct error *err);
int s3_copy(struct s3_client *client, struct objects_work *work, const char *from, const char *to,
            struct object_info *ret_info, struct error *err);
int s3_remove(struct s3_client *client, struct objects_work *work, const char *const *keys,
              size_t count, struct error *err);
int s3_head(struct s3_client *client, struct objects_work *work, const char *key,
            struct object_info *ret_info, struct error *err);
int s3_get(struct s3_client *client, struct objects_work *work, const char *key,
           const struct object_range *range, const char *only_tag, struct objects_sink *sink,
           struct object_info *ret_info, struct error *err);
int s3_list(struct s3_client *client, struct objects_work *work, const struct object_query *query,
            struct object_list *ret_list, struct error *err);
int s3_check(struct s3_client *client, struct objects_work *work, struct error *err);

/* --- an object's head --------------------------------------------------------------------------
 */

/* The same by its whole key. `ret_put` (may be NULL): which put it was, "" when not said. */
int s3_head_whole(struct s3_client *client, struct objects_work *work, const char *whole,
                  struct object_info *ret_info, const char **ret_put, struct error *err);

/* An object's info from the headers of an answer, in the pool. Returns 0, or -1 with ERR_UPSTREAM
 * when it has no length or no tag. */
int s3_info_read(const struct outbound_answer *answer, struct pool *pool,
                 struct object_info *ret_info, struct error *err);

/* The tag of an answer to a put, and when it was. Returns 0, or -1 with ERR_UPSTREAM. */
int s3_info_put(const struct s3_client *client, const struct outbound_answer *answer,
                struct object_info *info, struct error *err);

/* Fill in a tag from a document. */
int s3_info_tag(struct object_info *info, const char *tag, struct error *err);

/* Whether what is there now carries the number of this put: then a put whose answer was lost did
 * happen, and its tag and time are filled in. */
bool s3_put_happened(struct s3_client *client, struct objects_work *work, const char *whole,
                     const char *put, struct object_info *info);

/* --- uploads in parts --------------------------------------------------------------------------
 */

struct s3_upload_parts {
    struct s3_client *client;
    struct objects_work *work;
    const char *key;    /* whole */
    const char *id;     /* NULL: not begun */
    const char **tags;  /* of the parts so far */
    unsigned int count; /* of them */
    uint64_t size;      /* of them together */
};

/* The size that makes at most S3_PARTS_MAX parts, all alike, of `total` bytes. */
uint64_t s3_part_size(const struct s3_client *client, uint64_t total);

/* Begin; `headers` are those of the object. */
int s3_upload_begin(struct s3_upload_parts *upload, const struct sigv4_pair *headers, size_t count,
                    struct error *err);

/* The next part, from a body whose sum is known. */
int s3_upload_part(struct s3_upload_parts *upload, const struct outbound_body *body,
                   const char *sum, struct error *err);

/* The next part, from another object: bytes `first` to `last`, only if it has this tag. */
int s3_upload_part_copy(struct s3_upload_parts *upload, const char *source, const char *source_tag,
                        uint64_t first, uint64_t last, struct error *err);

/* Make it an object. `condition` may be NULL. The answer has status and code of a failure. */
int s3_upload_complete(struct s3_upload_parts *upload, const struct sigv4_pair *condition,
                       struct s3_answer *answer, struct object_info *info, struct error *err);

/* Leave no part behind, also when the work was cancelled. Gives up soon: s3_check sweeps. */
void s3_upload_abort(struct s3_upload_parts *upload);

/* Abort the uploads behind our prefix that are older than a day now: a crash left them behind, they
 * cost money and are in no list. Best effort: the store works without. */
void s3_sweep_uploads(struct s3_client *client, struct objects_work *work, int64_t now_ms);
