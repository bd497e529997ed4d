#include "net/http/http_head.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/clock.h"

#define MS_PER_DAY    INT64_C(86400000)
#define EPOCH_WEEKDAY 4 /* a Thursday */

static bool has_name(const struct http_header *header, const char *name, size_t length)
{
    return header->name_length == length && strncasecmp(header->name, name, length) == 0;
}

const char *http_head_get(const struct http_head *head, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < head->header_count; i++) {
        if (has_name(&head->headers[i], name, length))
            return head->headers[i].value;
    }
    return NULL;
}

const char *http_head_join(const struct http_head *head, const char *name, struct pool *pool)
{
    size_t length = strlen(name);
    const char *joined = NULL;

    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];

        if (has_name(header, name, length))
            joined = joined ? pool_format(pool, "%s, %s", joined, header->value) : header->value;
    }
    return joined;
}

size_t http_head_count(const struct http_head *head, const char *name)
{
    size_t length = strlen(name), count = 0;

    for (size_t i = 0; i < head->header_count; i++)
        count += has_name(&head->headers[i], name, length);
    return count;
}

bool http_list_has_token(const char *list, const char *token)
{
    size_t length = strlen(token);

    while (*list) {
        size_t part;

        list += strspn(list, " \t,");
        part = strcspn(list, ",");
        while (part && (list[part - 1] == ' ' || list[part - 1] == '\t'))
            part--;
        if (part == length && strncasecmp(list, token, length) == 0)
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

/* RFC 9110 5.6.2: token characters. */
static bool is_token_char(unsigned char c)
{
    return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_name_is_valid(const char *name)
{
    if (!*name)
        return false;
    for (; *name; name++) {
        if (!is_token_char((unsigned char) *name))
            return false;
    }
    return true;
}

bool http_value_is_valid(const char *value)
{
    for (; *value; value++) {
        unsigned char c = (unsigned char) *value;

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static const struct {
    int status;
    const char *text;
} status_texts[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < ARRAY_COUNT(status_texts); i++) {
        if (status_texts[i].status == status)
            return status_texts[i].text;
    }
    return "";
}

void http_date(int64_t wall_ms, char ret_text[static HTTP_DATE_SIZE])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char time[CLOCK_TEXT_SIZE]; /* 2026-11-15T20:18:28.123Z */
    int64_t day;
    int month;

    /* Not strftime: its names follow the locale, these must not. Nor gmtime_r, which reads the
     * description of the local time zone when it is first called. */
    clock_format(wall_ms, time);
    (void) clock_parse(time, &wall_ms); /* within four digits of years */
    day = wall_ms / MS_PER_DAY - (wall_ms % MS_PER_DAY < 0);
    month = (time[5] - '0') * 10 + time[6] - '0';
    (void) snprintf(ret_text, HTTP_DATE_SIZE, "%.3s, %.2s %.3s %.4s %.8s GMT",
                    days + 3 * ((day % 7 + 7 + EPOCH_WEEKDAY) % 7), time + 8,
                    months + 3 * (month - 1), time, time + 11);
}
