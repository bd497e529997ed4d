#include "agent/backup/backup_upload_request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/backup/backup_request.h"
#include "agent/backup/backup_rules.h"
#include "base/number.h"
#include "net/url.h"

#define TEXT_MAX      ((size_t) 64 * 1024)
#define PART_SIZE_MAX ((int64_t) 5 * 1024 * 1024 * 1024)

static const struct backup_upload_request empty;

/* --- the request ----------------------------------------------------------------------------- */

/* Without TLS only to ourselves, where nobody listens on the way. */
static bool is_allowed_url(const char *text)
{
    struct url url;

    if (url_parse(text, strlen(text), &url, NULL) < 0 || strpbrk(text, "\"\\#"))
        return false;
    return url.scheme == URL_HTTPS ||
           (url.scheme == URL_HTTP && url_span_equals(url.host, "127.0.0.1"));
}

static int read_part(const struct json_place *array, size_t index, struct pool *pool,
                     struct backup_part *ret_part, struct api_error *error)
{
    struct backup_part part = {.url = NULL};
    struct error err = ERROR_INIT;
    struct json_place place;

    if (json_item_object(array, index, &place, &err) < 0 ||
        json_field_integer(&place, "partNumber", JSON_REQUIRED, 1, BACKUP_UPLOAD_PARTS_MAX,
                           &part.number, &err) < 0 ||
        json_field_integer(&place, "offset", JSON_REQUIRED, 0, INT64_MAX - PART_SIZE_MAX,
                           &part.offset, &err) < 0 ||
        json_field_integer(&place, "size", JSON_REQUIRED, 1, PART_SIZE_MAX, &part.size, &err) < 0 ||
        json_field_text(&place, "url", JSON_REQUIRED, TEXT_MAX, &part.url, &err) < 0)
        return api_error_field(error, "parts", err.message);
    if (!is_allowed_url(part.url))
        return backup_request_refuse(error, "parts", "must have https URLs");
    part.url = pool_copy_text(pool, part.url);
    *ret_part = part;
    return 0;
}

static int compare_parts(const void *one, const void *other)
{
    const struct backup_part *a = one, *b = other;

    return a->number < b->number ? -1 : a->number > b->number;
}

static int read_parts(const struct json_place *array, struct pool *pool,
                      struct backup_upload_request *request, struct api_error *error)
{
    request->count = json_array_size(array->value);
    if (request->count > BACKUP_UPLOAD_PARTS_MAX)
        return backup_request_refuse(error, "parts", "are too many");
    request->parts = pool_alloc(pool, request->count * sizeof(*request->parts) + 1);
    for (size_t i = 0; i < request->count; i++) {
        if (read_part(array, i, pool, &request->parts[i], error) < 0)
            return -1;
    }
    qsort(request->parts, request->count, sizeof(*request->parts), compare_parts);
    for (size_t i = 1; i < request->count; i++) {
        if (request->parts[i].number == request->parts[i - 1].number)
            return backup_request_refuse(error, "parts", "must have different numbers");
    }
    return 0;
}

int backup_upload_request_read(json_t *arguments, struct pool *pool,
                               struct backup_upload_request *ret_request, struct api_error *error)
{
    struct backup_upload_request request = empty;
    struct error err = ERROR_INIT;
    struct json_place root, array;
    const char *reason;

    if (json_root_object(arguments, &root, &err) < 0 ||
        json_field_text(&root, "archivePath", JSON_REQUIRED, TEXT_MAX, &request.archive, &err) < 0)
        return api_error_field(error, "archivePath", err.message);
    if (json_field_array(&root, "parts", JSON_REQUIRED, &array, &err) < 0)
        return api_error_field(error, "parts", err.message);
    reason = backup_rules_archive(request.archive);
    if (reason)
        return backup_request_refuse(error, "archivePath", reason);
    if (read_parts(&array, pool, &request, error) < 0)
        return -1;
    request.archive = pool_copy_text(pool, request.archive);
    *ret_request = request;
    return 0;
}

/* --- curl ------------------------------------------------------------------------------------ */

/* Stores want to know the length; curl would send what it reads from a pipe in chunks. */
void backup_upload_config(struct text *config, const struct backup_part *part)
{
    text_format(config,
                "url = \"%s\"\n"
                "header = \"Content-Length: %lld\"\n"
                "header = \"Content-Type: application/octet-stream\"\n"
                "header = \"Transfer-Encoding:\"\n"
                "header = \"Expect:\"\n",
                part->url, (long long) part->size);
}

static int read_status(const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    uint64_t status;

    if (length < 5 || strncmp(line, "HTTP/", 5) != 0 || !space ||
        (size_t) (line + length - space) < 4 || number_parse_digits(space + 1, 3, 999, &status) < 0)
        return -1;
    return (int) status;
}

static void read_etag(const char *line, size_t length, char ret_etag[static BACKUP_UPLOAD_ETAG_MAX])
{
    static const char name[] = "etag:";
    const char *value = line + sizeof(name) - 1, *end = line + length;

    if (length < sizeof(name) - 1 || strncasecmp(line, name, sizeof(name) - 1) != 0)
        return;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if ((size_t) (end - value) >= BACKUP_UPLOAD_ETAG_MAX ||
        memchr(value, '\0', (size_t) (end - value)))
        return;
    memcpy(ret_etag, value, (size_t) (end - value));
    ret_etag[end - value] = '\0';
}

int backup_upload_answer(const char *bytes, size_t length,
                         char ret_etag[static BACKUP_UPLOAD_ETAG_MAX])
{
    const char *end = bytes + length;
    int status = -1;

    ret_etag[0] = '\0';
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t) (end - bytes));
        size_t line = newline ? (size_t) (newline - bytes) : (size_t) (end - bytes);

        if (!newline)
            return -1; /* a head ends with an empty line */
        if (line && bytes[line - 1] == '\r')
            line--;
        if (status < 0)
            status = read_status(bytes, line);
        else
            read_etag(bytes, line, ret_etag);
        if (status < 0)
            return -1;
        bytes = newline + 1;
        if (line)
            continue;
        if (status >= 200)
            return status;
        status = -1; /* 100 Continue and the like: the answer follows */
        ret_etag[0] = '\0';
    }
    return -1;
}
