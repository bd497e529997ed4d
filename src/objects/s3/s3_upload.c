#include <inttypes.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/number.h"
#include "objects/s3/s3_operations.h"

#define MIB          ((uint64_t) 1024 * 1024)
#define ABORT_TRIES  2
#define COMPLETE_MAX ((size_t) 4 * 1024 * 1024) /* 10,000 parts and their tags */

/* All parts but the last have one size: R2 wants it so. */
uint64_t s3_part_size(const struct s3_client *client, uint64_t total)
{
    uint64_t needed = (total / S3_PARTS_MAX + MIB) / MIB * MIB;

    return needed > client->limits.part_size ? needed : client->limits.part_size;
}

int s3_upload_begin(struct s3_upload_parts *upload, const struct sigv4_pair *headers, size_t count,
                    struct error *err)
{
    struct s3_request request = {.method = "POST", .key = upload->key, .has_body = true};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;

    s3_request_query(&request, "uploads", "");
    for (size_t i = 0; i < count; i++)
        s3_request_header(&request, headers[i].name, headers[i].value);
    if (s3_call(upload->client, upload->work, &request, &answer, err) < 0)
        return -1;
    upload->tags = pool_alloc(upload->work->pool, S3_PARTS_MAX * sizeof(*upload->tags));
    return s3_document_upload_id(text_string(&answer.http.body), answer.http.body.length,
                                 upload->work->pool, &upload->id, err);
}

/* What both kinds of parts have in common. */
static int start_part(struct s3_upload_parts *upload, struct s3_request *request,
                      char number[static NUMBER_TEXT_SIZE], struct error *err)
{
    if (upload->count == S3_PARTS_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "an upload has at most %d parts", S3_PARTS_MAX);
    (void) number_format_unsigned(upload->count + 1, number);
    *request = (struct s3_request){.method = "PUT", .key = upload->key, .has_body = true};
    s3_request_query(request, "partNumber", number);
    s3_request_query(request, "uploadId", upload->id);
    return 0;
}

static void end_part(struct s3_upload_parts *upload, const char *tag, uint64_t length)
{
    upload->tags[upload->count++] = pool_copy_text(upload->work->pool, tag);
    upload->size += length;
}

int s3_upload_part(struct s3_upload_parts *upload, const struct outbound_body *body,
                   const char *sum, struct error *err)
{
    struct s3_request request;
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct object_info info = {0};
    char number[NUMBER_TEXT_SIZE];

    if (start_part(upload, &request, number, err) < 0)
        return -1;
    request.body = *body;
    request.body_sum = sum;
    if (s3_call(upload->client, upload->work, &request, &answer, err) < 0 ||
        s3_info_tag(&info, outbound_answer_header(&answer.http, "etag"), err) < 0)
        return error_wrap(err, "part %s", number);
    end_part(upload, info.tag, body->length);
    return 0;
}

int s3_upload_part_copy(struct s3_upload_parts *upload, const char *source, const char *source_tag,
                        uint64_t first, uint64_t last, struct error *err)
{
    struct s3_request request;
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct object_info info = {0};
    char number[NUMBER_TEXT_SIZE];
    const char *tag;
    int64_t when;

    if (start_part(upload, &request, number, err) < 0)
        return -1;
    request.is_slow = true;
    s3_request_header(&request, "x-amz-copy-source", source);
    s3_request_header(&request, "x-amz-copy-source-if-match", source_tag);
    s3_request_header(&request, "x-amz-copy-source-range",
                      pool_format(upload->work->pool, "bytes=%" PRIu64 "-%" PRIu64, first, last));
    if (s3_call(upload->client, upload->work, &request, &answer, err) < 0 ||
        s3_document_tag(text_string(&answer.http.body), answer.http.body.length, &answer.http.pool,
                        &tag, &when, err) < 0 ||
        s3_info_tag(&info, tag, err) < 0)
        return error_wrap(err, "part %s", number);
    end_part(upload, info.tag, last - first + 1);
    return 0;
}

static void write_parts(const struct s3_upload_parts *upload, struct text *out)
{
    text_append(out, "<CompleteMultipartUpload>");
    for (unsigned int i = 0; i < upload->count; i++) {
        text_format(out, "<Part><PartNumber>%u</PartNumber><ETag>\"", i + 1);
        s3_document_escape(out, upload->tags[i]);
        text_append(out, "\"</ETag></Part>");
    }
    text_append(out, "</CompleteMultipartUpload>");
}

int s3_upload_complete(struct s3_upload_parts *upload, const struct sigv4_pair *condition,
                       struct s3_answer *answer, struct object_info *info, struct error *err)
{
    struct s3_request request = {
        .method = "POST", .key = upload->key, .has_body = true, .is_slow = true};
    AUTO(text) struct text parts = TEXT_INIT(COMPLETE_MAX);
    char sum[HEX_TEXT_SIZE(SHA256_SIZE)];
    uint8_t digest[SHA256_SIZE];
    const char *tag;
    int64_t when;

    write_parts(upload, &parts);
    sha256_bytes(text_string(&parts), parts.length, digest);
    (void) hex_encode(digest, sizeof(digest), sum);
    request.body = (struct outbound_body){.bytes = text_string(&parts), .length = parts.length};
    request.body_sum = sum;
    s3_request_query(&request, "uploadId", upload->id);
    s3_request_header(&request, "content-type", "application/xml");
    if (condition)
        s3_request_header(&request, condition->name, condition->value);
    if (s3_call(upload->client, upload->work, &request, answer, err) < 0 ||
        s3_document_tag(text_string(&answer->http.body), answer->http.body.length,
                        &answer->http.pool, &tag, &when, err) < 0)
        return -1;
    info->size = upload->size;
    /* The date is in the headers, the tag is not. */
    (void) s3_info_put(upload->client, &answer->http, info, NULL);
    return s3_info_tag(info, tag, err);
}

void s3_upload_abort(struct s3_upload_parts *upload)
{
    struct s3_request request = {.method = "DELETE", .key = upload->key};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    atomic_bool not_cancelled = false;
    struct objects_work work = *upload->work;
    struct error ignored = ERROR_INIT;

    if (!upload->id)
        return;
    work.cancelled = &not_cancelled;
    s3_request_query(&request, "uploadId", upload->id);
    for (int i = 0; i < ABORT_TRIES; i++) {
        if (s3_exchange(upload->client, &work, &request, &answer, &ignored) == 0 &&
            answer.http.status < 500)
            break;
    }
    upload->id = NULL;
}
