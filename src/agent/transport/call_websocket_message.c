#include "agent/transport/call_websocket_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "json/json_read.h"
#include "json/json_write.h"

/* As for bodies of plain HTTP, and one more for what is around them. */
#define DEPTH_MAX  65
#define VALUES_MAX ((size_t) 1 << 20)

#define STATUS_INVALID 400

static int websocket_message_fail(struct call_websocket_fault *fault, const char *code,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

static int websocket_message_fail(struct call_websocket_fault *fault, const char *code,
                                  const char *format, ...)
{
    va_list arguments;

    fault->code = code;
    fault->status = STATUS_INVALID;
    va_start(arguments, format);
    (void) vsnprintf(fault->message, sizeof(fault->message), format, arguments);
    va_end(arguments);
    return -1;
}

/* Browsers and fetch escape what must not stand in a path; here it arrives as the client wrote it.
 * A fragment is not sent. */
static const char *escape_path(struct pool *pool, const char *path)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = strcspn(path, "#"), used = 0;
    char *escaped = pool_alloc_raw(pool, length * 3 + 1);

    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char) path[i];

        if (byte > ' ' && byte < 0x7f && !strchr("\"<>`{}", byte)) {
            escaped[used++] = (char) byte;
            continue;
        }
        escaped[used++] = '%';
        escaped[used++] = digits[byte >> 4];
        escaped[used++] = digits[byte & 0xf];
    }
    escaped[used] = '\0';
    return escaped;
}

static int read_path(const struct json_place *root, struct pool *pool, struct url_target *ret,
                     struct error *err)
{
    const char *path;

    if (json_field_text(root, "path", JSON_REQUIRED, URL_LENGTH_MAX, &path, err) < 0)
        return -1;
    if (path[0] != '/')
        return error_set(err, ERR_INVALID, 0, "field 'path' must begin with '/'");
    path = escape_path(pool, path);
    return url_target_parse(path, strlen(path), ret, err);
}

static int read_request(const struct json_place *root, struct pool *pool,
                        struct call_websocket_message *message, struct error *err)
{
    struct json_place headers = {.value = NULL};
    json_t *body = json_object_get(root->value, "body");

    if (json_field_text(root, "method", JSON_REQUIRED, CALL_WEBSOCKET_METHOD_MAX, &message->method,
                        err) < 0 ||
        read_path(root, pool, &message->target, err) < 0 ||
        json_field_object(root, "headers", JSON_OPTIONAL, &headers, err) < 0)
        return -1;
    message->headers = headers.value;
    message->body = json_is_null(body) ? NULL : body;
    return 0;
}

static int read_message(const struct json_place *root, struct pool *pool,
                        struct call_websocket_message *message, struct error *err)
{
    const char *type;

    if (json_field_text(root, "type", JSON_REQUIRED, 16, &type, err) < 0)
        return -1;
    if (strcmp(type, "request") == 0) {
        message->type = CALL_WEBSOCKET_REQUEST;
        return read_request(root, pool, message, err);
    }
    if (strcmp(type, "cancel") == 0) {
        message->type = CALL_WEBSOCKET_CANCEL;
        return 0;
    }
    return error_set(err, ERR_INVALID, 0, "field 'type' must be 'request' or 'cancel'");
}

int call_websocket_read(const char *bytes, size_t length, struct pool *pool, json_t **ret_root,
                        struct call_websocket_message *ret_message,
                        struct call_websocket_fault *ret_fault)
{
    const struct json_limits limits = {
        .size = length + 1, .depth = DEPTH_MAX, .values = VALUES_MAX};
    struct call_websocket_message message = {.type = CALL_WEBSOCKET_REQUEST};
    struct error err = ERROR_INIT;
    struct json_place root;

    *ret_fault = (struct call_websocket_fault){.id = NULL};
    *ret_root = json_read(bytes, length, &limits, &err);
    if (!*ret_root)
        return websocket_message_fail(ret_fault, CALL_WEBSOCKET_PARSE_ERROR, "%s", err.message);
    if (json_root_object(*ret_root, &root, &err) < 0 ||
        json_field_text(&root, "id", JSON_REQUIRED, CALL_WEBSOCKET_ID_MAX, &message.id, &err) < 0)
        return websocket_message_fail(ret_fault, CALL_WEBSOCKET_INVALID_REQUEST, "%s", err.message);
    ret_fault->id = message.id;
    if (read_message(&root, pool, &message, &err) < 0)
        return websocket_message_fail(ret_fault, CALL_WEBSOCKET_INVALID_REQUEST, "%s", err.message);
    *ret_message = message;
    return 0;
}

const char *call_websocket_header(const struct call_websocket_message *message, const char *name)
{
    const char *key;
    json_t *value;

    json_object_foreach (message->headers, key, value) {
        if (strcasecmp(key, name) == 0)
            return json_string_value(value);
    }
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void websocket_message_begin(struct json_writer *json, struct text *out, const char *type,
                                    const char *id)
{
    json_document_begin(json, out);
    json_add_text(json, "type", type);
    if (id)
        json_add_text(json, "id", id);
}

void call_websocket_write_head(struct text *out, const char *id, int status, bool has_body)
{
    struct json_writer json;

    websocket_message_begin(&json, out, "response", id);
    json_add_integer(&json, "status", status);
    json_add_boolean(&json, "done", true);
    (void) json_document_end(&json); /* `out` says when it overflowed */
    if (out->overflowed)
        return;
    out->data[--out->length] = '\0'; /* the '}' comes later */
    if (has_body)
        text_append(out, ",\"body\":");
}

int call_websocket_write_stream(struct text *out, const char *id, const char *event,
                                const char *data, size_t length)
{
    struct json_writer json;

    websocket_message_begin(&json, out, "stream", id);
    if (event)
        json_add_text(&json, "event", event);
    json_key(&json, "data");
    json_put_bytes(&json, data, length);
    return json_document_end(&json) < 0 ? -1 : 0;
}

void call_websocket_write_error(struct text *out, const struct call_websocket_fault *fault)
{
    struct json_writer json;

    websocket_message_begin(&json, out, "error", fault->id);
    json_add_text(&json, "code", fault->code);
    json_add_text(&json, "message", fault->message);
    json_add_integer(&json, "status", fault->status);
    (void) json_document_end(&json); /* it is short, and `out` has room */
}
