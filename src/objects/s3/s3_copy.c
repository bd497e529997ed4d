#include <string.h>

#include "base/encoding/encode.h"
#include "base/id.h"
#include "net/url.h"
#include "objects/s3/s3_operations.h"

struct copy {
    struct s3_client *client;
    struct objects_work *work;
    const char *from, *to;    /* whole */
    const char *source;       /* "/bucket/key", escaped */
    const char *tag;          /* of what is copied, with quotes; NULL: cannot be asked for */
    struct object_info there; /* of what is copied */
    struct object_info info;
};

static int copy_whole(struct copy *copy, struct error *err)
{
    struct s3_request request = {
        .method = "PUT", .key = copy->to, .has_body = true, .is_slow = true};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    const char *tag;
    int64_t when;

    s3_request_header(&request, "x-amz-copy-source", copy->source);
    s3_request_header(&request, "x-amz-copy-source-if-match", copy->tag);
    if (s3_call(copy->client, copy->work, &request, &answer, err) < 0 ||
        s3_document_tag(text_string(&answer.http.body), answer.http.body.length, &answer.http.pool,
                        &tag, &when, err) < 0)
        return -1;
    if (when)
        copy->info.modified_ms = when;
    return s3_info_tag(&copy->info, tag, err);
}

/* A new object has no metadata of its own accord. (Its media type is lost: no caller reads it.) */
static size_t object_headers(const struct copy *copy, const char *sum, const char *put,
                             struct sigv4_pair ret_headers[static S3_HEADERS_MAX])
{
    const struct object_info *info = &copy->info;
    size_t count = 0;

    for (size_t i = 0; i < info->metadata_count; i++)
        ret_headers[count++] =
            (struct sigv4_pair){pool_format(copy->work->pool, S3_META "%s", info->metadata[i].name),
                                info->metadata[i].value};
    if (info->has_sum)
        ret_headers[count++] = (struct sigv4_pair){S3_META_SUM, sum};
    ret_headers[count++] = (struct sigv4_pair){S3_META_PUT, put};
    ret_headers[count++] = (struct sigv4_pair){"content-type", "application/octet-stream"};
    return count;
}

static int send_parts(struct copy *copy, struct s3_upload_parts *upload, struct error *err)
{
    uint64_t total = copy->info.size, part_size = copy->client->limits.copy_max;

    for (uint64_t at = 0; at < total; at += part_size) {
        uint64_t last = (total - at < part_size ? total : at + part_size) - 1;

        if (s3_upload_part_copy(upload, copy->source, copy->tag, at, last, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_unchanged(const struct copy *copy)
{
    struct object_info now;
    struct error ignored = ERROR_INIT;

    return s3_head_whole(copy->client, copy->work, copy->from, &now, NULL, &ignored) == 0 &&
           strcmp(now.tag, copy->there.tag) == 0;
}

static int complete(struct copy *copy, struct s3_upload_parts *upload, const char *put,
                    struct error *err)
{
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;

    if (!copy->tag && !is_unchanged(copy))
        return error_set(err, ERR_CONFLICT, 0, "the object was replaced while it was copied");
    if (s3_upload_complete(upload, NULL, &answer, &copy->info, err) == 0)
        return 0;
    return answer.http.status == 404 &&
                   s3_put_happened(copy->client, copy->work, copy->to, put, &copy->info)
               ? 0
               : -1;
}

static int copy_parts(struct copy *copy, struct error *err)
{
    struct s3_upload_parts upload = {.client = copy->client, .work = copy->work, .key = copy->to};
    struct sigv4_pair headers[S3_HEADERS_MAX];
    char sum[HEX_TEXT_SIZE(OBJECTS_SUM_SIZE)];
    struct id put = id_new();
    size_t count;

    (void) hex_encode(copy->info.sum, sizeof(copy->info.sum), sum);
    count = object_headers(copy, sum, put.text, headers);
    if (s3_upload_begin(&upload, headers, count, err) < 0)
        return -1;
    if (send_parts(copy, &upload, err) < 0 || complete(copy, &upload, put.text, err) < 0) {
        s3_upload_abort(&upload);
        return -1;
    }
    return 0;
}

static int copy_once(struct copy *copy, struct error *err)
{
    copy->info = copy->there;
    return copy->there.size > copy->client->limits.copy_max ? copy_parts(copy, err)
                                                            : copy_whole(copy, err);
}

/* Swift never finds the tag of an object that was put in parts. Then the tag is compared before and
 * after, which leaves a gap that only somebody who replaces an object by itself fits into. */
static int copy_tagged(struct copy *copy, struct error *err)
{
    struct error failure = ERROR_INIT;

    if (copy_once(copy, &failure) == 0)
        return 0;
    *err = failure;
    if (failure.code != ERR_CONFLICT || !is_unchanged(copy))
        return -1;
    copy->tag = NULL;
    return copy_once(copy, err);
}

int s3_copy(struct s3_client *client, struct objects_work *work, const char *from, const char *to,
            struct object_info *ret_info, struct error *err)
{
    AUTO(text) struct text source = TEXT_INIT(S3_URL_MAX);
    struct copy copy = {.client = client, .work = work};

    if (s3_client_key(client, work->pool, from, &copy.from, err) < 0 ||
        s3_client_key(client, work->pool, to, &copy.to, err) < 0 ||
        s3_head_whole(client, work, copy.from, &copy.there, NULL, err) < 0)
        return -1;
    if (strcmp(copy.from, copy.to) == 0) { /* S3 refuses that; it is done already */
        *ret_info = copy.there;
        return 0;
    }
    text_format(&source, "/%s/", client->bucket);
    url_encode_path(&source, copy.from, strlen(copy.from));
    copy.source = text_string(&source);
    copy.tag = pool_format(work->pool, "\"%s\"", copy.there.tag);
    if (copy_tagged(&copy, err) < 0)
        return -1;
    *ret_info = copy.info;
    return 0;
}
