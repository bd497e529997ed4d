#include "agent/api_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "json/json_write.h"
#include "net/http/http_server.h"

static const struct {
    const char *text;
    int status;
} codes[] = {
#define X(name, number) [API_##name] = {#name, number},
    API_CODES(X)
#undef X
};

const char *api_code_text(enum api_code code)
{
    return codes[code].text;
}

int api_code_status(enum api_code code)
{
    return codes[code].status;
}

int api_error_status(const struct api_error *error)
{
    return error->status ? error->status : api_code_status(error->code);
}

void api_error_done(struct api_error *error)
{
    text_done(&error->context);
}

void api_error_fill(struct api_error *error, enum api_code code, const char *format, ...)
{
    va_list arguments;

    error->code = code;
    va_start(arguments, format);
    (void) vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
}

int api_error_field(struct api_error *error, const char *field, const char *message)
{
    struct json_writer json;

    text_clear(&error->context);
    json_document_begin(&json, &error->context);
    json_begin_array_at(&json, "validationErrors");
    json_begin_object(&json);
    json_add_text(&json, "field", field);
    json_add_text(&json, "message", message);
    json_add_text(&json, "code", "invalid");
    json_end_object(&json);
    json_end_array(&json);
    (void) json_document_end(&json); /* the texts are short */
    return api_error_set(error, API_VALIDATION_FAILED, "%s: %s", field, message);
}

void api_error_write(const struct api_error *error, const struct clock *clock, struct text *body)
{
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(clock_wall_ms(clock), time);
    json_document_begin(&json, body);
    if (error->plain)
        json_add_text(&json, "error", error->message);
    json_add_text(&json, "code", api_code_text(error->code));
    if (!error->plain)
        json_add_text(&json, "message", error->message);
    json_key(&json, error->plain ? "details" : "context");
    if (error->context.length && !error->context.overflowed)
        json_put_raw(&json, text_string(&error->context), error->context.length);
    else
        json_put_raw(&json, "{}", 2);
    if (error->operation)
        json_add_text(&json, "operation", error->operation);
    json_add_integer(&json, "httpStatus", api_error_status(error));
    json_add_text(&json, "timestamp", time);
    if (error->suggestion)
        json_add_text(&json, "suggestion", error->suggestion);
    (void) json_document_end(&json); /* only fails for a body that is full: then it is cut */
}

void api_error_reply(struct http_request *request, const struct api_error *error)
{
    AUTO(text) struct text body = TEXT_INIT(API_CONTEXT_MAX + 8192);

    api_error_write(error, http_server_clock(http_request_server(request)), &body);
    http_reply(request, api_error_status(error), "application/json", text_string(&body),
               body.length);
}

/* What the server itself refuses. The status is the server's; the code is the nearest clients
 * know. */
static enum api_code nearest_code(enum err_code code)
{
    switch (code) {
    case ERR_INVALID:
    case ERR_TOO_LARGE:
        return API_VALIDATION_FAILED;
    case ERR_FORBIDDEN:
    case ERR_UNAUTHENTICATED:
        return API_PERMISSION_DENIED;
    case ERR_UNAVAILABLE:
        return API_CONTAINER_UNAVAILABLE;
    case ERR_INTERNAL:
        return API_INTERNAL_ERROR;
    default:
        return API_UNKNOWN_ERROR;
    }
}

void api_error_from(struct api_error *error, const struct error *from)
{
    error->status = error_http_status(from->code);
    if (from->code == ERR_NOT_FOUND)
        api_error_fill(error, API_UNKNOWN_ERROR, "The requested endpoint was not found");
    else
        api_error_fill(error, nearest_code(from->code), "%s", from->message);
}

void api_error_encode(const struct http_request *request, const struct error *error,
                      struct text *body, const char **ret_content_type)
{
    AUTO(api_error) struct api_error ours = API_ERROR_INIT;

    api_error_from(&ours, error);
    api_error_write(&ours, http_server_clock(http_request_server(request)), body);
    *ret_content_type = "application/json";
}
