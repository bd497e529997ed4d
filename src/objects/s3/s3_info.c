/* What headers say about an object. */
#include <string.h>

#include "base/encoding/encode.h"
#include "base/number.h"
#include "objects/s3/s3_operations.h"

#define MS_PER_SECOND 1000

static int64_t read_date(const char *text)
{
    time_t seconds = text ? curl_getdate(text, NULL) : -1;

    return seconds < 0 ? 0 : (int64_t) seconds * MS_PER_SECOND;
}

int s3_info_tag(struct object_info *info, const char *tag, struct error *err)
{
    size_t length = tag ? strlen(tag) : 0;

    if (length >= 2 && tag[0] == '"' && tag[length - 1] == '"') {
        tag++;
        length -= 2;
    }
    if (length == 0 || length >= OBJECTS_TAG_SIZE)
        return error_set(err, ERR_UPSTREAM, 0, "the store gave an object no ETag, or a long one");
    for (size_t i = 0; i < length; i++) {
        if (tag[i] <= ' ' || tag[i] > '~' || tag[i] == '"')
            return error_set(err, ERR_UPSTREAM, 0, "the store gave an object a malformed ETag");
    }
    memcpy(info->tag, tag, length);
    info->tag[length] = '\0';
    return 0;
}

static void read_sum(const char *text, struct object_info *info)
{
    size_t count = 0;

    info->has_sum = text &&
                    hex_decode(text, strlen(text), info->sum, sizeof(info->sum), &count) == 0 &&
                    count == sizeof(info->sum);
}

/* Strangers' objects may have more of it than ours: what is over the limits is left out. */
static void read_metadata(const struct outbound_answer *answer, struct pool *pool,
                          struct object_info *info)
{
    struct object_pair *pairs = pool_alloc(pool, OBJECTS_METADATA_COUNT * sizeof(*pairs));
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < answer->header_count && count < OBJECTS_METADATA_COUNT; i++) {
        const struct outbound_header *header = &answer->headers[i];
        size_t length = strlen(header->name) - strlen(S3_META) + strlen(header->value);

        if (strncmp(header->name, S3_META, strlen(S3_META)) != 0 ||
            strncmp(header->name, S3_META_OURS, strlen(S3_META_OURS)) == 0 ||
            bytes + length > OBJECTS_METADATA_MAX)
            continue;
        bytes += length;
        pairs[count].name = pool_copy_text(pool, header->name + strlen(S3_META));
        pairs[count++].value = pool_copy_text(pool, header->value);
    }
    info->metadata = count ? pairs : NULL;
    info->metadata_count = count;
}

int s3_info_read(const struct outbound_answer *answer, struct pool *pool,
                 struct object_info *ret_info, struct error *err)
{
    const char *length = outbound_answer_header(answer, "content-length");
    struct object_info info = {0};

    if (!length || number_parse_digits(length, strlen(length), INT64_MAX, &info.size) < 0)
        return error_set(err, ERR_UPSTREAM, 0, "the store does not say how long an object is");
    if (s3_info_tag(&info, outbound_answer_header(answer, "etag"), err) < 0)
        return -1;
    info.modified_ms = read_date(outbound_answer_header(answer, "last-modified"));
    read_sum(outbound_answer_header(answer, S3_META_SUM), &info);
    read_metadata(answer, pool, &info);
    *ret_info = info;
    return 0;
}

int s3_info_put(const struct s3_client *client, const struct outbound_answer *answer,
                struct object_info *info, struct error *err)
{
    info->modified_ms = read_date(outbound_answer_header(answer, "last-modified"));
    if (!info->modified_ms)
        info->modified_ms = read_date(outbound_answer_header(answer, "date"));
    if (!info->modified_ms)
        info->modified_ms = clock_wall_ms(client->clock);
    return s3_info_tag(info, outbound_answer_header(answer, "etag"), err);
}
