#include "api/http/api.h"

#include <stdarg.h>
#include <stdio.h>

void api_fail(struct http_request *request, enum err_code code, const char *format, ...)
{
    struct error error = {.code = code};
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(error.message, sizeof(error.message), format, arguments);
    va_end(arguments);
    http_reply_error(request, &error);
}
