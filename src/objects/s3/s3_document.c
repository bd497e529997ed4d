#include "objects/s3/s3_document.h"

#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "net/url.h"
#include "objects/s3/s3_xml.h"

/* What one document is read into. Only the fields of its kind are used. */
struct document {
    struct pool *pool;
    const char *root; /* what it must be, NULL: whatever */
    bool is_root_wrong;
    const char *problem; /* of a value; NULL: none */
    bool is_escaped;     /* keys are escaped like in a URL */
    bool is_truncated;
    const char *key;
    const char *id;
    const char *code;
    const char *tag;
    int64_t modified_ms;
    uint64_t size;
    struct s3_failure failure;
    struct s3_listed *entries;
    const char **keys;
    struct s3_upload *uploads;
    size_t count;
};

static bool is(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static const char *copy(struct document *document, const char *text)
{
    return pool_copy_text(document->pool, text);
}

/* With milliseconds or without: both are seen. */
static int64_t read_time(const char *text)
{
    char exact[CLOCK_TEXT_SIZE] = "";
    int64_t ms = 0;
    size_t length = strlen(text);

    if (clock_parse(text, &ms) == 0)
        return ms;
    if (length != strlen("2026-01-01T00:00:00Z"))
        return 0;
    memcpy(exact, text, length - 1);
    memcpy(exact + length - 1, ".000Z", sizeof(".000Z"));
    return clock_parse(exact, &ms) == 0 ? ms : 0;
}

static const char *unquoted(struct document *document, const char *tag)
{
    size_t length = strlen(tag);

    if (length >= 2 && tag[0] == '"' && tag[length - 1] == '"')
        return pool_copy_bytes(document->pool, tag + 1, length - 2);
    return copy(document, tag);
}

static void read_size(struct document *document, const char *text)
{
    if (number_parse_digits(text, strlen(text), INT64_MAX, &document->size) < 0)
        document->problem = "a size that is no number";
}

static void check_root(void *context, const char *parent, const char *name)
{
    struct document *document = context;

    if (!*parent && document->root && !is(name, document->root))
        document->is_root_wrong = true;
}

static int read_document(const char *bytes, size_t length, struct document *document,
                         void (*on_close)(void *, const char *, const char *, const char *),
                         struct error *err)
{
    const struct s3_xml_events events = {.on_open = check_root, .on_close = on_close};

    if (s3_xml_read(bytes, length, &events, document, err) < 0)
        return -1;
    if (document->is_root_wrong)
        return error_set(err, ERR_UPSTREAM, 0, "the store's answer is not a <%s>", document->root);
    if (document->problem)
        return error_set(err, ERR_UPSTREAM, 0, "the store's answer has %s", document->problem);
    return 0;
}

/* --- <Error> -----------------------------------------------------------------------------------
 */

static void close_failure(void *context, const char *parent, const char *name, const char *text)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"Code", offsetof(struct s3_failure, code)},
        {"Message", offsetof(struct s3_failure, message)},
        {"Region", offsetof(struct s3_failure, region)},
        {"Endpoint", offsetof(struct s3_failure, endpoint)},
        {"ServerTime", offsetof(struct s3_failure, server_time)},
        {"RequestTime", offsetof(struct s3_failure, request_time)},
    };
    struct document *document = context;

    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (is(parent, "Error") && is(name, fields[i].name))
            *(const char **) (void *) ((char *) &document->failure + fields[i].offset) =
                copy(document, text);
    }
}

int s3_document_failure(const char *bytes, size_t length, struct pool *pool,
                        struct s3_failure *ret_failure, struct error *err)
{
    struct document document = {.pool = pool, .root = "Error", .failure = {"", "", "", "", "", ""}};

    if (read_document(bytes, length, &document, close_failure, err) < 0)
        return -1;
    *ret_failure = document.failure;
    return 0;
}

bool s3_document_is_failure(const char *bytes, size_t length)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct s3_failure failure;

    return s3_document_failure(bytes, length, &pool, &failure, NULL) == 0;
}

/* --- <ListBucketResult> ------------------------------------------------------------------------
 */

static void add_entry(struct document *document, bool is_folder)
{
    const char *key = document->key;

    if (document->count == S3_ENTRIES_MAX) {
        document->problem = "too many entries";
        return;
    }
    if (!key || !*key) {
        document->problem = "an entry without a key";
        return;
    }
    document->entries[document->count++] = (struct s3_listed){
        .key = key,
        .is_folder = is_folder,
        .size = document->size,
        .modified_ms = document->modified_ms,
        .tag = document->tag ? document->tag : "",
    };
}

static void open_entry(struct document *document)
{
    document->key = document->tag = NULL;
    document->size = 0;
    document->modified_ms = 0;
}

static void close_listing(void *context, const char *parent, const char *name, const char *text)
{
    struct document *document = context;

    if ((is(parent, "Contents") && is(name, "Key")) ||
        (is(parent, "CommonPrefixes") && is(name, "Prefix"))) {
        document->key = copy(document, text);
    } else if (is(parent, "Contents") && is(name, "Size")) {
        read_size(document, text);
    } else if (is(parent, "Contents") && is(name, "LastModified")) {
        document->modified_ms = read_time(text);
    } else if (is(parent, "Contents") && is(name, "ETag")) {
        document->tag = unquoted(document, text);
    } else if (is(parent, "ListBucketResult") && is(name, "Contents")) {
        add_entry(document, false);
        open_entry(document);
    } else if (is(parent, "ListBucketResult") && is(name, "CommonPrefixes")) {
        add_entry(document, true);
        open_entry(document);
    } else if (is(parent, "ListBucketResult") && is(name, "EncodingType")) {
        document->is_escaped = is(text, "url");
    } else if (is(parent, "ListBucketResult") && is(name, "IsTruncated")) {
        document->is_truncated = is(text, "true");
    }
}

/* AWS writes a space as '+' and a plus as "%2B". */
static int unescape_keys(struct document *document, struct error *err)
{
    for (size_t i = 0; i < document->count; i++) {
        struct s3_listed *entry = &document->entries[i];
        struct url_span raw = url_span(entry->key, strlen(entry->key));

        if (url_decode_copy(raw, URL_DECODE_QUERY, document->pool, &entry->key) < 0)
            return error_set(err, ERR_UPSTREAM, 0, "the store listed a key with a bad escape");
    }
    return 0;
}

int s3_document_listing(const char *bytes, size_t length, struct pool *pool,
                        struct s3_listing *ret_listing, struct error *err)
{
    struct document document = {.pool = pool, .root = "ListBucketResult"};

    document.entries = pool_alloc(pool, S3_ENTRIES_MAX * sizeof(*document.entries));
    if (read_document(bytes, length, &document, close_listing, err) < 0 ||
        (document.is_escaped && unescape_keys(&document, err) < 0))
        return -1;
    *ret_listing = (struct s3_listing){.entries = document.entries,
                                       .count = document.count,
                                       .is_truncated = document.is_truncated};
    return 0;
}

/* --- uploads, copies ---------------------------------------------------------------------------
 */

static void close_upload_id(void *context, const char *parent, const char *name, const char *text)
{
    struct document *document = context;

    if (is(parent, document->root) && is(name, "UploadId"))
        document->id = copy(document, text);
}

int s3_document_upload_id(const char *bytes, size_t length, struct pool *pool, const char **ret_id,
                          struct error *err)
{
    struct document document = {.pool = pool, .root = "InitiateMultipartUploadResult"};

    if (read_document(bytes, length, &document, close_upload_id, err) < 0)
        return -1;
    if (!document.id || !*document.id)
        return error_set(err, ERR_UPSTREAM, 0, "the store gave an upload no id");
    *ret_id = document.id;
    return 0;
}

static void close_tag(void *context, const char *parent, const char *name, const char *text)
{
    struct document *document = context;

    if (!*parent && is(name, "Error"))
        document->is_root_wrong = true;
    if (is(name, "ETag"))
        document->tag = unquoted(document, text);
    if (is(name, "LastModified"))
        document->modified_ms = read_time(text);
}

int s3_document_tag(const char *bytes, size_t length, struct pool *pool, const char **ret_tag,
                    int64_t *ret_modified_ms, struct error *err)
{
    struct document document = {.pool = pool};

    if (read_document(bytes, length, &document, close_tag, err) < 0)
        return -1;
    if (!document.tag || !*document.tag)
        return error_set(err, ERR_UPSTREAM, 0, "the store's answer has no ETag");
    *ret_tag = document.tag;
    *ret_modified_ms = document.modified_ms;
    return 0;
}

/* --- <DeleteResult> ----------------------------------------------------------------------------
 */

static void close_undeleted(void *context, const char *parent, const char *name, const char *text)
{
    struct document *document = context;

    if (is(parent, "Error") && is(name, "Key")) {
        document->key = copy(document, text);
    } else if (is(parent, "Error") && is(name, "Code")) {
        document->code = copy(document, text);
    } else if (is(parent, "DeleteResult") && is(name, "Error")) {
        if (document->count == S3_ENTRIES_MAX || !document->key)
            document->problem = "too many failures, or one without a key";
        else if (!document->code || !is(document->code, "NoSuchKey"))
            document->keys[document->count++] = document->key;
        document->key = document->code = NULL;
    }
}

int s3_document_undeleted(const char *bytes, size_t length, struct pool *pool,
                          struct s3_undeleted *ret_undeleted, struct error *err)
{
    struct document document = {.pool = pool, .root = "DeleteResult"};

    document.keys = pool_alloc(pool, S3_ENTRIES_MAX * sizeof(*document.keys));
    if (read_document(bytes, length, &document, close_undeleted, err) < 0)
        return -1;
    *ret_undeleted = (struct s3_undeleted){.keys = document.keys, .count = document.count};
    return 0;
}

/* --- <ListMultipartUploadsResult> --------------------------------------------------------------
 */

static void close_uploads(void *context, const char *parent, const char *name, const char *text)
{
    struct document *document = context;

    if (is(parent, "Upload") && is(name, "Key")) {
        document->key = copy(document, text);
    } else if (is(parent, "Upload") && is(name, "UploadId")) {
        document->id = copy(document, text);
    } else if (is(parent, "Upload") && is(name, "Initiated")) {
        document->modified_ms = read_time(text);
    } else if (is(parent, document->root) && is(name, "Upload")) {
        if (document->count == S3_ENTRIES_MAX || !document->key || !document->id)
            document->problem = "too many uploads, or one without key or id";
        else
            document->uploads[document->count++] = (struct s3_upload){
                .key = document->key, .id = document->id, .started_ms = document->modified_ms};
        document->key = document->id = NULL;
        document->modified_ms = 0;
    }
}

int s3_document_uploads(const char *bytes, size_t length, struct pool *pool,
                        struct s3_uploads *ret_uploads, struct error *err)
{
    struct document document = {.pool = pool, .root = "ListMultipartUploadsResult"};

    document.uploads = pool_alloc(pool, S3_ENTRIES_MAX * sizeof(*document.uploads));
    if (read_document(bytes, length, &document, close_uploads, err) < 0)
        return -1;
    *ret_uploads = (struct s3_uploads){.uploads = document.uploads, .count = document.count};
    return 0;
}

/* --- writing -----------------------------------------------------------------------------------
 */

void s3_document_escape(struct text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            text_append(out, "&amp;");
        else if (*text == '<')
            text_append(out, "&lt;");
        else if (*text == '>')
            text_append(out, "&gt;");
        else
            text_append_char(out, *text);
    }
}

bool s3_document_can_hold(const char *text)
{
    for (const char *at = text; *at; at++) {
        if ((unsigned char) *at < ' ')
            return false;
    }
    /* U+FFFE and U+FFFF are no characters of XML. */
    return !strstr(text, "\xef\xbf\xbe") && !strstr(text, "\xef\xbf\xbf");
}
