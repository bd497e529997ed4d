/* Puts: one request up to a part's size, an upload in parts above.
 *
 * An answer that is lost makes a put that happened look like one that did not: tried again, a
 * condition no longer holds, an upload no longer exists. So conditional puts and uploads carry a
 * random number as metadata (S3_META_PUT); when it is found there, the put was ours. */
#include <string.h>
#include <sys/stat.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/id.h"
#include "base/memory.h"
#include "objects/objects_transfer.h"
#include "objects/s3/s3_operations.h"
#include "sys/file/sys_file.h"

#define LOCK_WAIT_NS 5000000

struct put {
    struct s3_client *client;
    struct objects_work *work;
    const char *key; /* whole */
    const struct object_put_options *options;
    const struct objects_source *source;
    struct object_info info;
    char sum[HEX_TEXT_SIZE(OBJECTS_SUM_SIZE)]; /* of the whole, when info.has_sum */
    struct id id;
    struct sigv4_pair headers[S3_HEADERS_MAX];
    size_t header_count;
    struct sigv4_pair condition; /* name NULL: none */
};

static void add_header(struct put *put, const char *name, const char *value)
{
    put->headers[put->header_count++] = (struct sigv4_pair){name, value};
}

/* The object's own headers. */
static void make_headers(struct put *put, bool needs_id)
{
    const struct object_put_options *options = put->options;
    struct pool *pool = put->work->pool;

    put->header_count = 0;
    add_header(put, "content-type",
               options->media_type ? options->media_type : "application/octet-stream");
    for (size_t i = 0; i < options->metadata_count && i < OBJECTS_METADATA_COUNT; i++)
        add_header(put, pool_format(pool, S3_META "%s", options->metadata[i].name),
                   options->metadata[i].value);
    if (put->info.has_sum)
        add_header(put, S3_META_SUM, put->sum);
    if (needs_id)
        add_header(put, S3_META_PUT, put->id.text);
}

static void set_sum(struct put *put)
{
    put->info.has_sum = true;
    (void) hex_encode(put->info.sum, sizeof(put->info.sum), put->sum);
}

static void count_done(struct put *put, uint64_t bytes)
{
    (void) atomic_fetch_add(put->work->done_bytes, bytes);
}

/* --- conditions --------------------------------------------------------------------------------
 */

static int check_condition(struct put *put, struct error *err)
{
    const struct object_put_options *options = put->options;
    struct object_info there;
    struct error failure = ERROR_INIT;

    if (s3_head_whole(put->client, put->work, put->key, &there, NULL, &failure) < 0) {
        if (failure.code != ERR_NOT_FOUND) {
            *err = failure;
            return -1;
        }
        return options->only_tag
                   ? error_set(err, ERR_CONFLICT, 0, "the object to be replaced is not there")
                   : 0;
    }
    if (options->only_new)
        return error_set(err, ERR_CONFLICT, 0, "the key is taken");
    if (strcmp(options->only_tag, there.tag) != 0)
        return error_set(err, ERR_CONFLICT, 0, "the object was replaced meanwhile");
    return 0;
}

static void set_condition(struct put *put)
{
    const struct object_put_options *options = put->options;

    if (options->only_new)
        put->condition = (struct sigv4_pair){"if-none-match", "*"};
    else if (options->only_tag)
        put->condition = (struct sigv4_pair){
            "if-match", pool_format(put->work->pool, "\"%s\"", options->only_tag)};
}

/* Waits for others of this handle, but not longer than somebody wants it. By trying: the
 * ThreadSanitizer of gcc 12 does not know pthread_mutex_clocklock. */
static int lock_key(struct put *put, struct error *err)
{
    pthread_mutex_t *lock = s3_client_lock(put->client, put->key);
    const struct timespec pause = {.tv_nsec = LOCK_WAIT_NS};

    while (pthread_mutex_trylock(lock) != 0) {
        if (objects_work_go_on(put->work, err) < 0)
            return -1;
        (void) nanosleep(&pause, NULL); /* a signal makes it shorter, no harm */
    }
    return 0;
}

/* Do the last step, which makes the object appear, under the condition. `send` gets the condition,
 * or NULL for a store that knows none. */
static int finish(struct put *put,
                  int (*send)(struct put *put, const void *data, const struct sigv4_pair *condition,
                              struct s3_answer *answer, struct error *err),
                  const void *data, struct error *err)
{
    const struct sigv4_pair *condition = put->condition.name ? &put->condition : NULL;
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    int result;

    if (condition && lock_key(put, err) < 0)
        return -1;
    result = condition ? check_condition(put, err) : 0;
    if (result == 0) {
        result = send(put, data, condition, &answer, err);
        if (result < 0 && condition && answer.http.status == 501)
            result = send(put, data, NULL, &answer, err);
        if (result < 0 && (answer.http.status == 412 || answer.http.status == 404) &&
            s3_put_happened(put->client, put->work, put->key, put->id.text, &put->info))
            result = 0;
    }
    if (condition)
        (void) pthread_mutex_unlock(s3_client_lock(put->client, put->key));
    return result;
}

/* --- one request -------------------------------------------------------------------------------
 */

static int send_whole(struct put *put, const void *data, const struct sigv4_pair *condition,
                      struct s3_answer *answer, struct error *err)
{
    struct s3_request request = {.method = "PUT", .key = put->key, .has_body = true};

    request.body = *(const struct outbound_body *) data;
    request.body_sum = put->sum;
    for (size_t i = 0; i < put->header_count; i++)
        s3_request_header(&request, put->headers[i].name, put->headers[i].value);
    if (condition)
        s3_request_header(&request, condition->name, condition->value);
    if (s3_call(put->client, put->work, &request, answer, err) < 0)
        return -1;
    return s3_info_put(put->client, &answer->http, &put->info, err);
}

/* The sum is set already. */
static int put_whole(struct put *put, const struct outbound_body *body, struct error *err)
{
    put->info.size = body->length;
    make_headers(put, put->condition.name != NULL);
    return finish(put, send_whole, body, err);
}

/* --- in parts ----------------------------------------------------------------------------------
 */

static int send_completion(struct put *put, const void *data, const struct sigv4_pair *condition,
                           struct s3_answer *answer, struct error *err)
{
    struct s3_upload_parts upload = *(const struct s3_upload_parts *) data;

    return s3_upload_complete(&upload, condition, answer, &put->info, err);
}

static int begin_upload(struct put *put, struct s3_upload_parts *ret_upload, struct error *err)
{
    *ret_upload =
        (struct s3_upload_parts){.client = put->client, .work = put->work, .key = put->key};
    /* What cannot succeed shall not be uploaded first. */
    if (put->condition.name && check_condition(put, err) < 0)
        return -1;
    make_headers(put, true);
    return s3_upload_begin(ret_upload, put->headers, put->header_count, err);
}

static int end_upload(struct put *put, struct s3_upload_parts *upload, int result,
                      struct error *err)
{
    if (result == 0) {
        put->info.size = upload->size;
        result = finish(put, send_completion, upload, err);
    }
    if (result < 0)
        s3_upload_abort(upload);
    return result;
}

/* Bytes in memory or a file: the sums of the whole and of every part in one pass. */
static int sum_parts(struct put *put, uint64_t total, uint64_t part_size, uint8_t *ret_sums,
                     struct error *err)
{
    struct sha256 whole, part;
    AUTO(free) char *buffer = mem_alloc(OBJECTS_BLOCK);
    const struct objects_source *source = put->source;
    uint64_t at = 0;

    sha256_init(&whole);
    while (at < total) {
        uint64_t in_part = part_size - at % part_size;
        size_t step = OBJECTS_BLOCK;
        const char *bytes = buffer;

        if (step > total - at)
            step = (size_t) (total - at);
        if (step > in_part)
            step = (size_t) in_part;
        if (source->bytes) {
            bytes = (const char *) source->bytes + at;
        } else {
            ssize_t got = sys_file_pread_full(source->fd, buffer, step, (off_t) at);

            if (got < 0 || (size_t) got < step)
                return error_set(err, ERR_INTERNAL, got < 0 ? (int) got : 0,
                                 "read what is to be put");
        }
        if (at % part_size == 0)
            sha256_init(&part);
        sha256_add(&whole, bytes, step);
        sha256_add(&part, bytes, step);
        at += step;
        if (at == total || at % part_size == 0)
            sha256_finish(&part, ret_sums + (at - 1) / part_size * SHA256_SIZE);
        if (objects_work_go_on(put->work, err) < 0)
            return -1;
    }
    sha256_finish(&whole, put->info.sum);
    set_sum(put);
    return 0;
}

static struct outbound_body piece(const struct objects_source *source, uint64_t offset,
                                  uint64_t length)
{
    if (source->bytes)
        return (struct outbound_body){.bytes = (const char *) source->bytes + offset,
                                      .length = length};
    return (struct outbound_body){.fd = source->fd, .offset = offset, .length = length};
}

static int send_parts(struct put *put, struct s3_upload_parts *upload, uint64_t total,
                      uint64_t part_size, const uint8_t *sums, struct error *err)
{
    char sum[HEX_TEXT_SIZE(SHA256_SIZE)];

    for (uint64_t at = 0; at < total; at += part_size) {
        uint64_t length = total - at < part_size ? total - at : part_size;
        struct outbound_body body = piece(put->source, at, length);

        (void) hex_encode(sums + at / part_size * SHA256_SIZE, SHA256_SIZE, sum);
        if (s3_upload_part(upload, &body, sum, err) < 0)
            return -1;
        count_done(put, length);
    }
    return 0;
}

static int put_known(struct put *put, uint64_t total, struct error *err)
{
    uint64_t part_size = s3_part_size(put->client, total);
    size_t parts = (size_t) ((total + part_size - 1) / part_size);
    AUTO(free) uint8_t *sums = mem_alloc_array(parts ? parts : 1, SHA256_SIZE);
    struct outbound_body body = piece(put->source, 0, total);
    struct s3_upload_parts upload;

    if (sum_parts(put, total, part_size, sums, err) < 0)
        return -1;
    if (parts <= 1) {
        if (put_whole(put, &body, err) < 0)
            return -1;
        count_done(put, total);
        return 0;
    }
    if (begin_upload(put, &upload, err) < 0)
        return -1;
    return end_upload(put, &upload, send_parts(put, &upload, total, part_size, sums, err), err);
}

/* --- streams -----------------------------------------------------------------------------------
 */

/* Parts of a stream from `first`, of which `length` bytes are there already. */
static int send_stream(struct put *put, struct s3_upload_parts *upload, char *buffer, size_t length,
                       struct error *err)
{
    size_t part_size = (size_t) put->client->limits.part_size;
    char sum[HEX_TEXT_SIZE(SHA256_SIZE)];
    uint8_t digest[SHA256_SIZE];

    while (length) {
        struct outbound_body body = {.bytes = buffer, .length = length};
        ssize_t got;

        sha256_bytes(buffer, length, digest);
        (void) hex_encode(digest, sizeof(digest), sum);
        if (s3_upload_part(upload, &body, sum, err) < 0)
            return -1;
        if (length < part_size)
            return 0;
        got = objects_source_read(put->work, put->source, buffer, part_size, upload->size, err);
        if (got < 0)
            return -1;
        length = (size_t) got;
    }
    return 0;
}

static int put_stream(struct put *put, struct error *err)
{
    size_t part_size = (size_t) put->client->limits.part_size;
    AUTO(free) char *buffer = mem_alloc(part_size);
    struct s3_upload_parts upload;
    ssize_t got = objects_source_read(put->work, put->source, buffer, part_size, 0, err);

    if (got < 0)
        return -1;
    if ((size_t) got < part_size) { /* it ended: now it is known */
        struct outbound_body body = {.bytes = buffer, .length = (uint64_t) got};

        sha256_bytes(buffer, (size_t) got, put->info.sum);
        set_sum(put);
        return put_whole(put, &body, err);
    }
    if (begin_upload(put, &upload, err) < 0)
        return -1;
    return end_upload(put, &upload, send_stream(put, &upload, buffer, (size_t) got, err), err);
}

/* --- all of them -------------------------------------------------------------------------------
 */

static int put_source(struct put *put, struct error *err)
{
    struct stat status;

    if (put->source->is_stream)
        return put_stream(put, err);
    if (put->source->bytes || put->source->fd < 0)
        return put_known(put, put->source->length, err);
    if (fstat(put->source->fd, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the file to be put");
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERR_INVALID, 0, "what is to be put is not a regular file");
    return put_known(put, (uint64_t) status.st_size, err);
}

int s3_put(struct s3_client *client, struct objects_work *work, const char *key,
           const struct objects_source *source, const struct object_put_options *options,
           struct object_info *ret_info, struct error *err)
{
    static const struct object_put_options none;
    struct put put = {.client = client,
                      .work = work,
                      .source = source,
                      .options = options ? options : &none,
                      .id = id_new()};

    if (s3_client_key(client, work->pool, key, &put.key, err) < 0)
        return -1;
    set_condition(&put);
    if (put_source(&put, err) < 0)
        return -1;
    put.info.metadata = put.options->metadata;
    put.info.metadata_count = put.options->metadata_count;
    *ret_info = put.info;
    return 0;
}
