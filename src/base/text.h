/* A growable string with a stated maximum.
 *
 * Appending past the maximum changes nothing but a flag that stays set (`overflowed`), so a
 * sequence of appends is checked once at its end. `data` is always NUL-terminated once anything
 * was appended, may hold NUL bytes inside, and is owned by the text. Not thread-safe.
 *
 *     AUTO(text) struct text line = TEXT_INIT(4096);
 *     text_append(&line, "hello ");
 *     text_format(&line, "%d", 42);
 *     if (line.overflowed) ... */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"

struct text {
    char *data; /* owned; NULL while empty */
    size_t length;
    size_t capacity; /* bytes at data, NUL included */
    size_t maximum;  /* longest length allowed */
    bool overflowed;
};

#define TEXT_INIT(limit)                                                                           \
    {                                                                                              \
        .maximum = (limit)                                                                         \
    }

void text_append(struct text *text, const char *string);
void text_append_bytes(struct text *text, const void *bytes, size_t length);
void text_append_char(struct text *text, char c);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_format_list(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Room for `extra` more bytes to be written at the returned place and then counted with
 * text_commit; NULL (and overflowed) when that would pass the maximum. */
char *text_reserve(struct text *text, size_t extra);
void text_commit(struct text *text, size_t used);

/* Drop `count` bytes at the front: what a reader has consumed. */
void text_consume(struct text *text, size_t count);

/* Empty but keep the memory. */
void text_clear(struct text *text);

/* Give the string away (never NULL; the caller frees it) and leave an empty text behind. */
char *text_take(struct text *text);

/* The string, "" when nothing was appended yet. Borrowed until the next change. */
const char *text_string(const struct text *text);

void text_done(struct text *text);

AUTO_DEFINE(text, struct text, text_done);
