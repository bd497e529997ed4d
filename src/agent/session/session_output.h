/* The output of a session's command as Cloudflare's clients expect it: without NULs, and either in
 * one piece without its last newline, or as lines.
 *
 * Nothing is kept but a newline, or the beginning of a line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A longer line is passed on in pieces. */
#define SESSION_LINE_MAX ((size_t) 64 * 1024)
/* What arrives in larger portions is passed on as several lines at a time. */
#define SESSION_BURST ((size_t) 8 * 1024)

/* Gets what is left of the output, borrowed for the call; never nothing. */
typedef void session_output_sink(void *context, const char *bytes, size_t length);

/* All but the last newline. Starts zeroed. */
struct session_trim {
    bool newline; /* one is held back: it may be the last */
};

void session_trim_feed(struct session_trim *trim, const char *bytes, size_t length,
                       session_output_sink *sink, void *context);

/* Whole lines. */
struct session_lines {
    struct text held; /* owned: the beginning of a line */
    bool open;        /* of the line that goes on something was passed on already */
};

#define SESSION_LINES_INIT                                                                         \
    {                                                                                              \
        .held = TEXT_INIT(2 * SESSION_LINE_MAX)                                                    \
    }

void session_lines_feed(struct session_lines *lines, const char *bytes, size_t length,
                        session_output_sink *sink, void *context);

/* The output has ended: a last line without a newline gets one. */
void session_lines_end(struct session_lines *lines, session_output_sink *sink, void *context);

void session_lines_done(struct session_lines *lines);
