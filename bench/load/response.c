#include "load/response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void response_begin(struct response *response)
{
    response->state = RESPONSE_STATUS;
    response->status = 0;
    response->chunked = false;
    response->has_length = false;
    response->remaining = 0;
    response->body_bytes = 0;
    response->line_length = 0;
}

bool response_is_done(const struct response *response)
{
    return response->state == RESPONSE_DONE;
}

static int on_status(struct response *response, const char *line)
{
    char *end = NULL;
    unsigned long status;

    if (strncmp(line, "HTTP/1.1 ", 9) != 0)
        return -EPROTO;
    status = strtoul(line + 9, &end, 10);
    if (end != line + 12 || status < 100)
        return -EPROTO;
    response->status = (int) status;
    response->state = RESPONSE_HEADER;
    return 0;
}

static int parse_length(const char *text, int base, uint64_t *ret)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, base);
    if (end == text || errno)
        return -EPROTO;
    *ret = value;
    return 0;
}

static int on_head_end(struct response *response)
{
    if (response->status < 200) {
        response_begin(response);
        return 0;
    }
    if (response->status == 204 || response->status == 304) {
        response->state = RESPONSE_DONE;
        return 0;
    }
    if (response->chunked) {
        response->state = RESPONSE_CHUNK_SIZE;
        return 0;
    }
    if (!response->has_length)
        return -EPROTO;
    response->state = response->remaining ? RESPONSE_BODY : RESPONSE_DONE;
    return 0;
}

static int on_header(struct response *response, const char *line)
{
    if (!*line)
        return on_head_end(response);
    if (strncasecmp(line, "content-length:", 15) == 0) {
        response->has_length = true;
        return parse_length(line + 15, 10, &response->remaining);
    }
    if (strncasecmp(line, "transfer-encoding:", 18) == 0)
        response->chunked = strcasestr(line + 18, "chunked") != NULL;
    return 0;
}

static int on_chunk_size(struct response *response, const char *line)
{
    int r = parse_length(line, 16, &response->remaining);

    if (r < 0)
        return r;
    response->state = response->remaining ? RESPONSE_CHUNK_DATA : RESPONSE_TRAILER;
    return 0;
}

static int on_chunk_end(struct response *response, const char *line)
{
    response->state = RESPONSE_CHUNK_SIZE;
    return *line ? -EPROTO : 0;
}

static int on_trailer(struct response *response, const char *line)
{
    if (!*line)
        response->state = RESPONSE_DONE;
    return 0;
}

/* States made of lines; the others are made of counted bytes. */
static int (*const line_handlers[])(struct response *response, const char *line) = {
    [RESPONSE_STATUS] = on_status,         [RESPONSE_HEADER] = on_header,
    [RESPONSE_CHUNK_SIZE] = on_chunk_size, [RESPONSE_CHUNK_END] = on_chunk_end,
    [RESPONSE_TRAILER] = on_trailer,       [RESPONSE_DONE] = NULL,
};

uint64_t response_skippable(const struct response *response)
{
    bool counted = response->state == RESPONSE_BODY || response->state == RESPONSE_CHUNK_DATA;

    return counted ? response->remaining : 0;
}

void response_skip(struct response *response, uint64_t count)
{
    response->remaining -= count;
    response->body_bytes += count;
    if (response->remaining == 0)
        response->state =
            response->state == RESPONSE_CHUNK_DATA ? RESPONSE_CHUNK_END : RESPONSE_DONE;
}

/* Take bytes up to and with the line feed; a whole line goes to the handler of the state. */
static ssize_t feed_line(struct response *response, const char *bytes, size_t length)
{
    const char *feed = memchr(bytes, '\n', length);
    size_t part = feed ? (size_t) (feed - bytes) : length;
    size_t used = feed ? part + 1 : part;
    int r;

    if (response->line_length + part >= sizeof(response->line))
        return -EMSGSIZE;
    memcpy(response->line + response->line_length, bytes, part);
    response->line_length += part;
    if (!feed)
        return (ssize_t) used;
    if (response->line_length && response->line[response->line_length - 1] == '\r')
        response->line_length--;
    response->line[response->line_length] = '\0';
    response->line_length = 0;
    if (!line_handlers[response->state])
        return -EPROTO; /* not a state made of lines */
    r = line_handlers[response->state](response, response->line);
    return r < 0 ? r : (ssize_t) used;
}

ssize_t response_feed(struct response *response, const char *bytes, size_t length)
{
    size_t used = 0;

    while (used < length && response->state != RESPONSE_DONE) {
        uint64_t skip = response_skippable(response);

        if (skip) {
            if (skip > length - used)
                skip = length - used;
            response_skip(response, skip);
            used += skip;
        } else {
            ssize_t part = feed_line(response, bytes + used, length - used);

            if (part < 0)
                return part;
            used += (size_t) part;
        }
    }
    return (ssize_t) used;
}
