/* How one line of the log looks: the pure half of log.c, without buffer or descriptor. */
#pragma once

#include "base/log.h"

/* Write one line with its newline at `ret_line`, at most LOG_LINE_MAX bytes; returns its length.
 * `time` is the text of clock_format. What does not fit is cut between characters and fields, and
 * the line says so ("cut":true, or "..." on a terminal); it stays valid JSON and UTF-8. */
size_t log_line_format(enum log_format format, char ret_line[static LOG_LINE_MAX],
                       const char time[static CLOCK_TEXT_SIZE], enum log_level level,
                       const char *message, const struct log_field *fields, size_t count);

/* Whether a field of that name holds a secret. */
bool log_line_hides(const char *name, size_t length);
