/* The log: one structured line per fact, JSON on a file or pipe, readable text on a terminal.
 *
 *     LOG_INFO(log, "sandbox created", log_text("sandbox", id), log_number("ms", 3));
 *
 *     {"time":"2026-11-15T20:18:28.123Z","level":"info","message":"sandbox created",...}
 *     20:18:28.123 info  sandbox created  sandbox=... ms=3
 *
 * The names "request" and "sandbox" carry request and sandbox ids everywhere; a line without them
 * gets those of the trace (trace.h): for whom this is being done. At LOG_LEVEL_DEBUG every entry of
 * the trace is a line as well, written with the next log_flush.
 *
 * Secrets do not belong in a log: fields whose name says they hold one (authorization, cookie,
 * password, secret, token, key and names that end in those words) are written as "[hidden]",
 * whatever their value. Control characters and invalid UTF-8 in values are escaped, so that a value
 * cannot forge a line.
 *
 * Lines are buffered and written by log_flush, which the loop calls once per turn: under load many
 * lines share one write(2). Errors and warnings are flushed at once. A reader that stalls (a full
 * pipe) never blocks us: up to LOG_BUFFER_MAX bytes wait, then lines are dropped and their number
 * is said in the first line that fits again.
 *
 * One thread uses a log. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/clock.h"

#define LOG_BUFFER_MAX (1 << 20)
#define LOG_LINE_MAX   8192

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_JSON, LOG_FORMAT_TEXT };

enum log_field_type { LOG_FIELD_NONE, LOG_FIELD_TEXT, LOG_FIELD_NUMBER, LOG_FIELD_BOOLEAN };

struct log_field {
    const char *name;
    enum log_field_type type;
    const char *text; /* borrowed for the call; may be NULL: the field is left out */
    size_t length;    /* of text */
    int64_t number;
};

struct log;

/* A log that writes to `fd` (borrowed: outlives the log). LOG_FORMAT_AUTO means readable text on a
 * terminal and JSON elsewhere. `clock` is borrowed. */
struct log *log_new(int fd, enum log_format format, enum log_level minimum,
                    const struct clock *clock);

/* Flush what can be flushed without blocking for more than a second, and free. Accepts NULL. */
void log_free(struct log *log);

AUTO_DEFINE_PTR(log, struct log, log_free);

/* Add one line. `log` may be NULL: nothing is written. Fields of type LOG_FIELD_NONE are skipped.
 */
void log_write(struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t count);

/* Whether a line of that level would be written: guards costly arguments. */
bool log_enabled(const struct log *log, enum log_level level);

/* Write what is buffered, as far as the reader takes it without blocking. */
void log_flush(struct log *log);

/* Call `on_line` with every line that is written from now on, borrowed for the call. It must not
 * write to the log. At most one listener. */
void log_listen(struct log *log,
                void (*on_line)(void *data, const char *message, const char *line, size_t length),
                void *data);

/* Lines lost so far because the reader stalled. */
uint64_t log_dropped(const struct log *log);

/* "debug", "info", "warning", "error" -> level; -EINVAL for anything else. */
int log_level_from_text(const char *text, enum log_level *ret_level);

struct log_field log_text(const char *name, const char *text);
struct log_field log_bytes(const char *name, const char *bytes, size_t length);
struct log_field log_number(const char *name, int64_t number);
struct log_field log_boolean(const char *name, bool value);

#define LOG_AT(log, level, message, ...)                                                           \
    log_write((log), (level), (message),                                                           \
              (const struct log_field[]){{.type = LOG_FIELD_NONE}, ##__VA_ARGS__},                 \
              sizeof((const struct log_field[]){{.type = LOG_FIELD_NONE}, ##__VA_ARGS__}) /        \
                  sizeof(struct log_field))

#define LOG_DEBUG(log, message, ...)   LOG_AT(log, LOG_LEVEL_DEBUG, message, ##__VA_ARGS__)
#define LOG_INFO(log, message, ...)    LOG_AT(log, LOG_LEVEL_INFO, message, ##__VA_ARGS__)
#define LOG_WARNING(log, message, ...) LOG_AT(log, LOG_LEVEL_WARNING, message, ##__VA_ARGS__)
#define LOG_ERROR(log, message, ...)   LOG_AT(log, LOG_LEVEL_ERROR, message, ##__VA_ARGS__)
