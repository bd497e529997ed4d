#include "api/http/api.h"

#include <stdarg.h>
#include <stdio.h>

#include "json/json_write.h"

void api_fail(struct http_request *request, enum err_code code, const char *format, ...)
{
    struct error error = {.code = code};
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(error.message, sizeof(error.message), format, arguments);
    va_end(arguments);
    http_reply_error(request, &error);
}

void error_body_write(const struct http_request *request, const struct error *error,
                      struct text *body, const char **ret_content_type)
{
    struct json_writer json;

    json_document_begin(&json, body);
    json_begin_object_at(&json, "error");
    json_add_text(&json, "code", error_code_text(error->code));
    json_add_text(&json, "message", error->message);
    json_add_text(&json, "requestId", request->id.text);
    json_end_object(&json);
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    *ret_content_type = "application/json";
}
