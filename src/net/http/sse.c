#include "net/http/sse.h"

#include <errno.h>
#include <string.h>

void sse_begin(struct http_request *request)
{
    (void) http_reply_header(request, "Cache-Control", "no-cache");
    (void) http_reply_header(request, "X-Accel-Buffering", "no"); /* nginx would hold events back */
    http_reply_begin(request, 200, "text/event-stream", HTTP_LENGTH_UNKNOWN);
}

static bool is_one_line(const char *value)
{
    return !strpbrk(value, "\r\n");
}

static void append_field(struct text *out, const char *name, const char *value)
{
    if (!value || !is_one_line(value))
        return;
    text_append(out, name);
    text_append(out, value);
    text_append_char(out, '\n');
}

/* Every line of the data gets its own "data: "; CR, LF and CRLF all end a line. */
static void append_data(struct text *out, const char *data, size_t length)
{
    const char *at = data, *end = data + length;

    for (;;) {
        const char *stop = at;

        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        text_append(out, "data: ");
        text_append_bytes(out, at, (size_t) (stop - at));
        text_append_char(out, '\n');
        if (stop == end)
            return;
        at = stop + (stop[0] == '\r' && stop + 1 < end && stop[1] == '\n' ? 2 : 1);
    }
}

void sse_send(struct http_request *request, const char *id, const char *type, const char *data,
              size_t length)
{
    AUTO(text) struct text event = TEXT_INIT(STREAM_QUEUE_MAX);

    append_field(&event, "id: ", id);
    append_field(&event, "event: ", type);
    append_data(&event, data, length);
    text_append_char(&event, '\n');
    http_reply_write(request, text_string(&event), event.length);
}

void sse_keep_alive(struct http_request *request)
{
    http_reply_write(request, ":\n\n", 3);
}

const char *sse_last_event_id(struct http_request *request)
{
    const char *id = http_request_header(request, "last-event-id");

    return id && *id ? id : http_request_query(request, "lastEventId");
}

/* --- reading -------------------------------------------------------------------------------- */

void sse_reader_init(struct sse_reader *reader,
                     void (*on_event)(struct sse_reader *reader, const struct sse_event *event))
{
    *reader = (struct sse_reader){
        .on_event = on_event,
        .line = TEXT_INIT(SSE_EVENT_MAX + SSE_FIELD_MAX),
        .data = TEXT_INIT(SSE_EVENT_MAX),
        .type = TEXT_INIT(SSE_FIELD_MAX),
        .id = TEXT_INIT(SSE_FIELD_MAX),
    };
}

void sse_reader_done(struct sse_reader *reader)
{
    text_done(&reader->line);
    text_done(&reader->data);
    text_done(&reader->type);
    text_done(&reader->id);
}

static void dispatch(struct sse_reader *reader)
{
    struct sse_event event = {
        .type = reader->type.length ? text_string(&reader->type) : "message",
        .id = text_string(&reader->id),
        .data = text_string(&reader->data),
        .length = reader->data.length,
    };

    if (reader->has_data)
        reader->on_event(reader, &event);
    text_clear(&reader->data);
    text_clear(&reader->type);
    reader->has_data = false;
}

static void take_field(struct sse_reader *reader, const char *name, size_t name_length,
                       const char *value, size_t length)
{
    if (name_length == 4 && memcmp(name, "data", 4) == 0) {
        if (reader->has_data)
            text_append_char(&reader->data, '\n');
        text_append_bytes(&reader->data, value, length);
        reader->has_data = true;
    } else if (name_length == 5 && memcmp(name, "event", 5) == 0) {
        text_clear(&reader->type);
        text_append_bytes(&reader->type, value, length);
    } else if (name_length == 2 && memcmp(name, "id", 2) == 0 && !memchr(value, '\0', length)) {
        text_clear(&reader->id);
        text_append_bytes(&reader->id, value, length);
    } /* retry and unknown fields are of no use to us */
    reader->broken |= reader->data.overflowed || reader->type.overflowed || reader->id.overflowed;
}

static void sse_take_line(struct sse_reader *reader)
{
    const char *line = text_string(&reader->line);
    size_t length = reader->line.length;
    const char *colon;

    if (!reader->started) {
        reader->started = true;
        if (length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
            line += 3;
            length -= 3;
        }
    }
    colon = memchr(line, ':', length);
    if (!length) {
        dispatch(reader);
    } else if (!colon) {
        take_field(reader, line, length, "", 0);
    } else if (colon != line) { /* a line that begins with a colon is a comment */
        const char *value = colon + 1;
        size_t value_length = length - (size_t) (value - line);

        if (value_length && *value == ' ') {
            value++;
            value_length--;
        }
        take_field(reader, line, (size_t) (colon - line), value, value_length);
    }
    text_clear(&reader->line);
}

int sse_reader_feed(struct sse_reader *reader, const char *bytes, size_t length)
{
    const char *end = bytes + length;

    while (bytes < end && !reader->broken) {
        const char *stop = bytes;

        if (reader->after_cr) {
            reader->after_cr = false;
            if (*bytes == '\n') {
                bytes++;
                continue;
            }
        }
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        text_append_bytes(&reader->line, bytes, (size_t) (stop - bytes));
        reader->broken |= reader->line.overflowed;
        if (stop == end)
            break;
        reader->after_cr = *stop == '\r';
        bytes = stop + 1;
        sse_take_line(reader);
    }
    return reader->broken ? -EMSGSIZE : 0;
}
