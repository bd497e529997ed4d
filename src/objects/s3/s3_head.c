#include <string.h>

#include "objects/s3/s3_operations.h"

/* A refusal of HEAD has no body, and so no reason. The same as GET has one. */
static int ask_reason(struct s3_client *client, struct objects_work *work, const char *whole,
                      struct error *err)
{
    struct s3_request request = {.method = "GET", .key = whole};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct error reason = ERROR_INIT;

    s3_request_header(&request, "range", "bytes=0-0");
    if (s3_call(client, work, &request, &answer, &reason) < 0)
        *err = reason;
    return -1;
}

/* "404" of an object, or of the bucket? Asked once, until the bucket was seen. */
static int check_bucket(struct s3_client *client, struct objects_work *work, struct error *err)
{
    struct s3_request request = {.method = "HEAD"};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct error ignored = ERROR_INIT;

    if (atomic_load(&client->bucket_seen) ||
        s3_call(client, work, &request, &answer, &ignored) == 0 || answer.http.status != 404)
        return -1;
    return error_set(err, ERR_UNAVAILABLE, 0,
                     "%s: the bucket does not exist: create it, or correct the bucket's name",
                     client->text);
}

int s3_head_whole(struct s3_client *client, struct objects_work *work, const char *whole,
                  struct object_info *ret_info, const char **ret_put, struct error *err)
{
    struct s3_request request = {.method = "HEAD", .key = whole};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    const char *put;

    if (s3_call(client, work, &request, &answer, err) < 0) {
        if (answer.http.status == 404)
            return check_bucket(client, work, err);
        if (answer.http.status == 400 || answer.http.status == 403 || answer.http.status == 301)
            return ask_reason(client, work, whole, err);
        return -1;
    }
    put = outbound_answer_header(&answer.http, S3_META_PUT);
    if (ret_put)
        *ret_put = pool_copy_text(work->pool, put ? put : "");
    return s3_info_read(&answer.http, work->pool, ret_info, err);
}

int s3_head(struct s3_client *client, struct objects_work *work, const char *key,
            struct object_info *ret_info, struct error *err)
{
    const char *whole;

    if (s3_client_key(client, work->pool, key, &whole, err) < 0)
        return -1;
    return s3_head_whole(client, work, whole, ret_info, NULL, err);
}

bool s3_put_happened(struct s3_client *client, struct objects_work *work, const char *whole,
                     const char *put, struct object_info *info)
{
    struct object_info there;
    struct error ignored = ERROR_INIT;
    const char *found;

    if (s3_head_whole(client, work, whole, &there, &found, &ignored) < 0 || strcmp(found, put) != 0)
        return false;
    info->size = there.size;
    info->modified_ms = there.modified_ms;
    memcpy(info->tag, there.tag, sizeof(there.tag));
    return true;
}
