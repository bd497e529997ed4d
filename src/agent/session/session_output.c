#include "agent/session/session_output.h"

#include <string.h>

/* The bytes before the next NUL; `*bytes` goes on behind it. */
static size_t next_part(const char **bytes, size_t *length, const char **ret_part)
{
    const char *nul = memchr(*bytes, '\0', *length);
    size_t part = nul ? (size_t) (nul - *bytes) : *length;

    *ret_part = *bytes;
    *bytes += part + (nul != NULL);
    *length -= part + (nul != NULL);
    return part;
}

/* --- without the last newline ---------------------------------------------------------------- */

void session_trim_feed(struct session_trim *trim, const char *bytes, size_t length,
                       session_output_sink *sink, void *context)
{
    while (length) {
        const char *part;
        size_t count = next_part(&bytes, &length, &part);

        if (!count)
            continue;
        if (trim->newline)
            sink(context, "\n", 1);
        trim->newline = part[count - 1] == '\n';
        count -= trim->newline;
        if (count)
            sink(context, part, count);
    }
}

/* --- lines ----------------------------------------------------------------------------------- */

static void pass_held(struct session_lines *lines, session_output_sink *sink, void *context)
{
    if (lines->held.length)
        sink(context, text_string(&lines->held), lines->held.length);
    text_clear(&lines->held);
}

/* A part that ends a line: together with what is held of it. */
static void session_output_pass(struct session_lines *lines, const char *bytes, size_t length,
                                session_output_sink *sink, void *context)
{
    bool joins = lines->held.length && lines->held.length + length <= lines->held.maximum;

    lines->open = false;
    if (joins)
        text_append_bytes(&lines->held, bytes, length);
    pass_held(lines, sink, context);
    if (!joins)
        sink(context, bytes, length);
}

/* The beginning of a line. */
static void session_output_keep(struct session_lines *lines, const char *bytes, size_t length,
                                session_output_sink *sink, void *context)
{
    if (!length)
        return;
    if (lines->held.length + length > SESSION_LINE_MAX) {
        pass_held(lines, sink, context);
        sink(context, bytes, length);
        lines->open = true;
    } else {
        text_append_bytes(&lines->held, bytes, length);
    }
}

static void feed_part(struct session_lines *lines, const char *bytes, size_t length, bool burst,
                      session_output_sink *sink, void *context)
{
    const char *end = bytes + length, *newline;

    while ((newline = burst ? memrchr(bytes, '\n', (size_t) (end - bytes))
                            : memchr(bytes, '\n', (size_t) (end - bytes)))) {
        session_output_pass(lines, bytes, (size_t) (newline + 1 - bytes), sink, context);
        bytes = newline + 1;
    }
    session_output_keep(lines, bytes, (size_t) (end - bytes), sink, context);
}

void session_lines_feed(struct session_lines *lines, const char *bytes, size_t length,
                        session_output_sink *sink, void *context)
{
    bool burst = length > SESSION_BURST;

    while (length) {
        const char *part;
        size_t count = next_part(&bytes, &length, &part);

        feed_part(lines, part, count, burst, sink, context);
    }
}

void session_lines_end(struct session_lines *lines, session_output_sink *sink, void *context)
{
    if (lines->held.length || lines->open)
        session_output_pass(lines, "\n", 1, sink, context);
}

void session_lines_done(struct session_lines *lines)
{
    text_done(&lines->held);
}
