#include <string.h>
#include <strings.h>

#include "api/auth/auth_internal.h"
#include "base/auto.h"
#include "base/number.h"

/* What Better Auth's clients switch on; the others get our own word. */
static const struct {
    const char *pattern;
    enum err_code code;
    const char *word;
} words[] = {
    {"/api/auth/sign-in/email", ERR_UNAUTHENTICATED, "INVALID_EMAIL_OR_PASSWORD"},
    {"/api/auth/sign-up/email", ERR_CONFLICT, "USER_ALREADY_EXISTS"},
    {"/api/auth/sign-up/email", ERR_FORBIDDEN, "SIGNUP_DISABLED"},
};

static const char *word_of(const struct http_request *request, enum err_code code)
{
    const struct http_route *route = request->match.route;

    for (size_t i = 0; route && i < ARRAY_COUNT(words); i++) {
        if (words[i].code == code && strcmp(words[i].pattern, route->pattern) == 0)
            return words[i].word;
    }
    return error_code_text(code);
}

/* The value of the Retry-After that goes out with this reply; 0: none. */
static int64_t seconds_to_wait(const struct http_request *request)
{
    const char *at = strcasestr(text_string(&request->extra_headers), "retry-after: ");
    uint64_t seconds = 0;

    if (at) {
        at += strlen("retry-after: ");
        (void) number_parse_digits(at, strspn(at, "0123456789"), UINT32_MAX, &seconds);
    }
    return (int64_t) seconds;
}

void auth_encode_error(const struct http_request *request, const struct error *error,
                       struct text *body, const char **ret_content_type)
{
    int64_t seconds = seconds_to_wait(request);
    struct json_writer json;

    json_document_begin(&json, body);
    json_add_text(&json, "error", http_status_text(error_http_status(error->code)));
    json_add_text(&json, "message", error->message);
    json_add_text(&json, "code", word_of(request, error->code));
    if (seconds)
        json_add_integer(&json, "retryAfter", seconds);
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    *ret_content_type = "application/json";
}
