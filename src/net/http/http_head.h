/* The head of an HTTP message: request line or status line, and every header in order.
 *
 * Filled by net/http_parser; all strings live in the pool of the message, are NUL-terminated, hold
 * no NUL and no control character, and are as the peer sent them (names keep their case), which is
 * what a transparent proxy needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/pool.h"
#include "base/text.h"

struct http_header {
    const char *name;
    const char *value; /* blanks around it removed */
    uint32_t name_length;
    uint32_t value_length;
};

/* One of literals, for tables; and one of texts that are known later, which it borrows. */
#define HTTP_HEADER(key, text)                                                                     \
    {                                                                                              \
        .name = (key), .value = (text), .name_length = sizeof(key) - 1,                            \
        .value_length = sizeof(text) - 1                                                           \
    }

static inline struct http_header http_header_of(const char *name, const char *value)
{
    return (struct http_header){.name = name,
                                .value = value,
                                .name_length = (uint32_t) strlen(name),
                                .value_length = (uint32_t) strlen(value)};
}

#define HTTP_LENGTH_UNKNOWN (-1)

struct http_head {
    const char *method; /* requests: "GET", ... static */
    const char *target; /* requests: as sent */
    const char *reason; /* responses: as sent, may be "" */
    size_t target_length;
    int status;             /* responses */
    int minor;              /* of HTTP/1.x: 0 or 1 */
    bool chunked;           /* the body comes in chunks */
    bool keep_alive;        /* the connection may carry another message after this one */
    bool upgrade;           /* asks for, or agrees to, another protocol */
    int64_t content_length; /* HTTP_LENGTH_UNKNOWN when not given */
    struct http_header *headers;
    size_t header_count;
};

/* The value of the first header of that name (any case), or NULL. */
const char *http_head_get(const struct http_head *head, const char *name);

/* All values of that name joined with ", ", which means the same for lists (RFC 9110 5.3); NULL
 * when there is none. In the pool when there are several. */
const char *http_head_join(const struct http_head *head, const char *name, struct pool *pool);

/* How many headers have that name. */
size_t http_head_count(const struct http_head *head, const char *name);

/* Whether the message has a body, be it empty. */
static inline bool http_head_has_body(const struct http_head *head)
{
    return head->chunked || head->content_length > 0;
}

/* The same on a header value of one's own. */
bool http_list_has_token(const char *list, const char *token);

/* Whether `name` may be a header name and `value` a header value: what keeps a caller from writing
 * two headers, or a whole reply, through one. */
bool http_name_is_valid(const char *name);
bool http_value_is_valid(const char *value);

/* The usual words for a status ("Not Found"), "" for one without. */
const char *http_status_text(int status);

/* "Sun, 06 Nov 1994 08:49:37 GMT" for the Date header. */
#define HTTP_DATE_SIZE 30
void http_date(int64_t wall_ms, char ret_text[static HTTP_DATE_SIZE]);
