#include <inttypes.h>
#include <string.h>

#include "base/encoding/hash.h"
#include "base/number.h"
#include "objects/objects_transfer.h"
#include "objects/s3/s3_operations.h"

/* A read that breaks off is tried again as often as any request; after this much has come, it may
 * break off as often once more. */
#define FORGIVEN_BYTES ((uint64_t) 1024 * 1024)

struct get {
    struct s3_client *client;
    struct objects_work *work;
    const char *key; /* whole */
    const struct object_range *range;
    struct objects_sink *sink;
    struct object_info info;
    bool is_known;      /* info, first and last: an answer has come */
    uint64_t first;     /* of the bytes wanted */
    uint64_t length;    /* of them, once known */
    uint64_t got;       /* of them, so far */
    char *memory;       /* of the pool, when there is no descriptor */
    struct sha256 *sum; /* borrowed; NULL: only a part is read */
};

/* "bytes 0-9/443" */
static int read_content_range(const char *text, uint64_t *ret_first, uint64_t *ret_last,
                              uint64_t *ret_total)
{
    static const char unit[] = "bytes ";
    const char *dash = text ? strchr(text, '-') : NULL, *slash = text ? strchr(text, '/') : NULL;

    if (!dash || !slash || dash > slash || strncmp(text, unit, strlen(unit)) != 0)
        return -EINVAL;
    text += strlen(unit);
    if (text > dash ||
        number_parse_digits(text, (size_t) (dash - text), INT64_MAX, ret_first) < 0 ||
        number_parse_digits(dash + 1, (size_t) (slash - dash) - 1, INT64_MAX, ret_last) < 0 ||
        number_parse_digits(slash + 1, strlen(slash + 1), INT64_MAX, ret_total) < 0)
        return -EINVAL;
    return *ret_first <= *ret_last && *ret_last < *ret_total ? 0 : -EINVAL;
}

/* The first answer says what the object is. */
static int learn(struct get *get, const struct object_info *info, uint64_t length,
                 struct error *err)
{
    get->info = *info;
    get->length = length;
    get->is_known = true;
    if (get->sink->fd >= 0)
        return 0;
    if (length > OBJECTS_BYTES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the object is too large to be held in memory");
    get->memory = pool_alloc_raw(get->work->pool, (size_t) length + 1);
    get->memory[length] = '\0';
    return 0;
}

/* A later one must speak of the same object, and of what is missing. */
static int compare(const struct get *get, const struct object_info *info, uint64_t length,
                   struct error *err)
{
    if (strcmp(info->tag, get->info.tag) != 0 || info->size != get->info.size ||
        length != get->length - get->got)
        return error_set(err, ERR_UPSTREAM, 0,
                         "%s: another object came when a read that broke off was taken up again",
                         get->client->text);
    return 0;
}

static int take_head(void *context, const struct outbound_answer *answer, struct error *err)
{
    struct get *get = context;
    uint64_t first = 0, last = 0, total = 0, wanted = get->first + get->got, length;
    struct object_info info;

    if (s3_info_read(answer, get->work->pool, &info, err) < 0)
        return -1;
    length = info.size;
    if (answer->status == 206) {
        if (read_content_range(outbound_answer_header(answer, "content-range"), &first, &last,
                               &total) < 0 ||
            first != wanted || last - first + 1 != length ||
            (get->range && get->range->length && length > get->range->length))
            return error_set(err, ERR_UPSTREAM, 0, "%s: it sent another range than was asked for",
                             get->client->text);
        info.size = total;
    } else if (wanted != 0 || (get->range && get->range->length && length > get->range->length)) {
        return error_set(err, ERR_UPSTREAM, 0, "%s: it does not know ranges", get->client->text);
    }
    return get->is_known ? compare(get, &info, length, err) : learn(get, &info, length, err);
}

static int take_bytes(void *context, const void *bytes, size_t length, struct error *err)
{
    struct get *get = context;

    if (length > get->length - get->got)
        return error_set(err, ERR_UPSTREAM, 0, "%s: it sent more than it said", get->client->text);
    if (get->memory)
        memcpy(get->memory + get->got, bytes, length);
    else if (objects_sink_write(get->work, get->sink, bytes, length, get->got, err) < 0)
        return -1;
    if (get->sum)
        sha256_add(get->sum, bytes, length);
    get->got += length;
    return 0;
}

/* "bytes=10-19", or NULL for all of it. */
static const char *range_text(const struct get *get)
{
    uint64_t first = get->first + get->got, left = get->range ? get->range->length : 0;

    if (!get->range && !get->got)
        return NULL;
    if (get->is_known)
        left = get->length - get->got;
    if (left == 0 || left - 1 > INT64_MAX - first)
        return pool_format(get->work->pool, "bytes=%" PRIu64 "-", first);
    return pool_format(get->work->pool, "bytes=%" PRIu64 "-%" PRIu64, first, first + left - 1);
}

static int ask(struct get *get, const char *only_tag, struct s3_answer *answer, struct error *err)
{
    const char *tag = get->is_known ? get->info.tag : only_tag;
    struct s3_request request = {.method = "GET",
                                 .key = get->key,
                                 .on_head = take_head,
                                 .on_bytes = take_bytes,
                                 .context = get};

    s3_request_header(&request, "range", range_text(get));
    if (tag)
        s3_request_header(&request, "if-match", pool_format(get->work->pool, "\"%s\"", tag));
    if (s3_exchange(get->client, get->work, &request, answer, err) < 0)
        return -1;
    if (answer->http.status == 200 || answer->http.status == 206) {
        atomic_store(&get->client->bucket_seen, true);
        return 0;
    }
    (void) s3_error_of(get->client, answer, err);
    if (answer->http.status == 412 && get->is_known && !only_tag)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "%s: the object was replaced while it was read; read it again",
                         get->client->text);
    return -1;
}

static int receive(struct get *get, const char *only_tag, struct error *err)
{
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    uint64_t forgiven = 0;

    for (unsigned int attempt = 1;; attempt++) {
        struct error failure = ERROR_INIT;

        if (ask(get, only_tag, &answer, &failure) == 0)
            return 0;
        if (answer.is_transient && get->is_known && get->got == get->length)
            return 0; /* nothing is missing */
        if (get->got - forgiven >= FORGIVEN_BYTES) {
            forgiven = get->got;
            attempt = 1;
            answer.stalls = 0;
        }
        if (!answer.is_transient || attempt >= get->client->limits.attempts_max) {
            *err = failure;
            return -1;
        }
        if (s3_back_off(get->client, get->work, attempt, err) < 0)
            return -1;
    }
}

static int check_whole(struct get *get, struct error *err)
{
    uint8_t digest[SHA256_SIZE];

    if (get->got != get->length)
        return error_set(err, ERR_UPSTREAM, 0, "%s: the object ended too early", get->client->text);
    if (!get->sum || !get->info.has_sum)
        return 0;
    sha256_finish(get->sum, digest);
    if (!hash_equal(digest, get->info.sum, sizeof(digest)))
        return error_set(err, ERR_UPSTREAM, 0,
                         "%s: the bytes are not those that were put (their sum differs)",
                         get->client->text);
    return 0;
}

int s3_get(struct s3_client *client, struct objects_work *work, const char *key,
           const struct object_range *range, const char *only_tag, struct objects_sink *sink,
           struct object_info *ret_info, struct error *err)
{
    struct sha256 sum;
    struct get get = {
        .client = client,
        .work = work,
        .range = range,
        .first = range ? range->offset : 0,
        .sink = sink,
        .sum = range ? NULL : &sum,
    };

    sha256_init(&sum);
    if (range && range->offset > INT64_MAX)
        return error_set(err, ERR_RANGE, 0, "the range lies behind the end of the object");
    if (s3_client_key(client, work->pool, key, &get.key, err) < 0 ||
        receive(&get, only_tag, err) < 0 || check_whole(&get, err) < 0)
        return -1;
    sink->bytes = get.memory;
    sink->length = get.memory ? (size_t) get.length : 0;
    *ret_info = get.info;
    return 0;
}
