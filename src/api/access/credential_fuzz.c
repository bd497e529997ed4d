/* Three lines of any bytes: Authorization, Cookie, query. A credential that is found is short and
 * printable, and was somewhere in the input; the same input gives the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/access/credential.h"
#include "base/auto.h"

#define INPUT_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct credential *credential)
{
    size_t length;

    if ((credential->source == CREDENTIAL_NONE) != !credential->secret)
        abort();
    if (!credential->secret)
        return;
    length = strlen(credential->secret);
    if (length > CREDENTIAL_SECRET_MAX)
        abort();
    for (size_t i = 0; i < length; i++) {
        if (credential->secret[i] <= ' ' || credential->secret[i] >= 0x7f)
            abort();
    }
}

/* Cut off the next line; what a header value cannot hold ends it. */
static char *next_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');

    if (end)
        *end = '\0';
    *rest = end ? end + 1 : line + strlen(line);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    char text[INPUT_MAX + 1], *rest = text;
    struct http_header headers[2] = {{.name = "Authorization"}, {.name = "Cookie"}};
    struct http_head head = {.headers = headers, .header_count = 2};
    struct credential one, other;
    struct url_span query;

    if (size > INPUT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    headers[0].value = next_line(&rest);
    headers[1].value = next_line(&rest);
    query = url_span(rest, strlen(rest));
    one = credential_find(&head, query, false, &pool);
    check(&one);
    other = credential_find(&head, query, false, &pool);
    if (one.source != other.source ||
        (one.secret && (!other.secret || strcmp(one.secret, other.secret) != 0)))
        abort();
    if (one.source != CREDENTIAL_QUERY && one.secret && *one.secret &&
        !strstr(headers[0].value, one.secret) && !strstr(headers[1].value, one.secret))
        abort();
    other = credential_find(&head, url_span(NULL, 0), true, &pool);
    check(&other);
    if (other.source == CREDENTIAL_QUERY)
        abort();
    return 0;
}
