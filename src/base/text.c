#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define TEXT_FIRST_CAPACITY 64

static bool make_room(struct text *text, size_t extra)
{
    size_t needed, capacity;

    if (extra > text->maximum || text->length > text->maximum - extra ||
        text->length + extra >= SIZE_MAX / 4) { /* also keeps the sums below from wrapping */
        text->overflowed = true;
        return false;
    }
    needed = text->length + extra + 1;
    if (needed <= text->capacity)
        return true;
    /* Geometric, so that appending byte by byte stays linear; never past the maximum. */
    capacity = text->capacity ? text->capacity * 2 : TEXT_FIRST_CAPACITY;
    if (capacity > text->maximum)
        capacity = text->maximum + 1;
    if (capacity < needed)
        capacity = needed;
    text->data = mem_resize(text->data, capacity);
    text->capacity = capacity;
    return true;
}

void text_append(struct text *text, const char *string)
{
    text_append_bytes(text, string, strlen(string));
}

void text_append_bytes(struct text *text, const void *bytes, size_t length)
{
    if (!make_room(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_append_char(struct text *text, char c)
{
    text_append_bytes(text, &c, 1);
}

void text_format(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text_format_list(text, format, arguments);
    va_end(arguments);
}

void text_format_list(struct text *text, const char *format, va_list arguments)
{
    size_t room = text->data ? text->capacity - text->length : 0;
    va_list again;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(text->data ? text->data + text->length : NULL, room, format, arguments);
    if (length < 0 || !make_room(text, (size_t) length)) {
        text->overflowed = true;
        if (text->data)
            text->data[text->length] = '\0';
    } else {
        if ((size_t) length >= room)
            (void) vsnprintf(text->data + text->length, (size_t) length + 1, format, again);
        text->length += (size_t) length;
    }
    va_end(again);
}

char *text_reserve(struct text *text, size_t extra)
{
    return make_room(text, extra) ? text->data + text->length : NULL;
}

void text_commit(struct text *text, size_t used)
{
    text->length += used;
    text->data[text->length] = '\0';
}

void text_consume(struct text *text, size_t count)
{
    if (!count)
        return;
    text->length -= count;
    memmove(text->data, text->data + count, text->length + 1);
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->overflowed = false;
    if (text->data)
        text->data[0] = '\0';
}

char *text_take(struct text *text)
{
    char *taken = text->data ? TAKE_PTR(text->data) : mem_copy_text("");

    *text = (struct text) TEXT_INIT(text->maximum);
    return taken;
}

const char *text_string(const struct text *text)
{
    return text->data ? text->data : "";
}

void text_done(struct text *text)
{
    free(text->data);
    *text = (struct text) TEXT_INIT(text->maximum);
}
