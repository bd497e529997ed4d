#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"

static const struct {
    const char *text;
    int status;
} codes[ERR_CODE_COUNT] = {
#define X(name, text, status) [name] = {text, status},
    ERROR_CODES(X)
#undef X
};

/* errno values whose meaning does not depend on the call that gave them. */
static const struct {
    int system;
    enum err_code code;
} errno_codes[] = {
    {ENOENT, ERR_NOT_FOUND},
    {ESRCH, ERR_NOT_FOUND},
    {EACCES, ERR_FORBIDDEN},
    {EPERM, ERR_FORBIDDEN},
    {EEXIST, ERR_CONFLICT},
    {ENOSPC, ERR_NO_SPACE},
    {EDQUOT, ERR_NO_SPACE},
    {EINVAL, ERR_INVALID},
    {ENAMETOOLONG, ERR_INVALID},
    {ELOOP, ERR_INVALID},
    {ETIMEDOUT, ERR_UPSTREAM_TIMEOUT},
    {ECONNREFUSED, ERR_UPSTREAM},
    {ECONNRESET, ERR_UPSTREAM},
    {EPIPE, ERR_UPSTREAM},
    {ENOSYS, ERR_NOT_IMPLEMENTED},
    {EOPNOTSUPP, ERR_NOT_IMPLEMENTED},
    {EMFILE, ERR_UNAVAILABLE},
    {ENFILE, ERR_UNAVAILABLE},
    {ENOMEM, ERR_UNAVAILABLE},
    {ECANCELED, ERR_CANCELLED},
};

static void mark_cut(char *message)
{
    memcpy(message + ERROR_MESSAGE_MAX - 4, "...", 4);
}

static void append_reason(char *message, int system)
{
    size_t used = strlen(message);
    int added =
        snprintf(message + used, ERROR_MESSAGE_MAX - used, ": %s", strerrordesc_np(system) ?: "?");

    if (added >= 0 && (size_t) added >= ERROR_MESSAGE_MAX - used)
        mark_cut(message);
}

void error_fill(struct error *err, enum err_code code, int system, const char *format, ...)
{
    va_list arguments;
    int length;

    if (!err)
        return;
    err->code = code;
    err->system = system < 0 ? -system : system;
    va_start(arguments, format);
    length = vsnprintf(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);
    if (length < 0)
        err->message[0] = '\0';
    else if ((size_t) length >= sizeof(err->message))
        mark_cut(err->message);
    else if (err->system)
        append_reason(err->message, err->system);
}

void error_prefix(struct error *err, const char *format, ...)
{
    char inner[ERROR_MESSAGE_MAX];
    va_list arguments;
    int length, added;

    if (!err)
        return;
    memcpy(inner, err->message, sizeof(inner));
    va_start(arguments, format);
    length = vsnprintf(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t) length >= sizeof(err->message)) {
        mark_cut(err->message);
        return;
    }
    added = snprintf(err->message + length, sizeof(err->message) - (size_t) length, ": %s", inner);
    if (added >= 0 && (size_t) added >= sizeof(err->message) - (size_t) length)
        mark_cut(err->message);
}

void error_clear(struct error *err)
{
    err->code = ERR_NONE;
    err->system = 0;
    err->message[0] = '\0';
}

const char *error_code_text(enum err_code code)
{
    return (unsigned int) code < ERR_CODE_COUNT ? codes[code].text : "internal_error";
}

enum err_code error_code_from_text(const char *text)
{
    int code = 0;

    while (code < ERR_CODE_COUNT && strcmp(codes[code].text, text) != 0)
        code++;
    return (enum err_code) code;
}

int error_http_status(enum err_code code)
{
    return (unsigned int) code < ERR_CODE_COUNT ? codes[code].status : 500;
}

enum err_code error_code_from_errno(int system)
{
    int positive = system < 0 ? -system : system;

    for (size_t i = 0; i < ARRAY_COUNT(errno_codes); i++) {
        if (errno_codes[i].system == positive)
            return errno_codes[i].code;
    }
    return ERR_INTERNAL;
}
