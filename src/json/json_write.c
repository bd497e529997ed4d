#include "json/json_write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/number.h"

static int append_to_text(void *context, const char *bytes, size_t length)
{
    struct text *text = context;

    text_append_bytes(text, bytes, length);
    return text->overflowed ? -EOVERFLOW : 0;
}

void json_writer_init_text(struct json_writer *writer, struct text *text)
{
    json_writer_init_sink(writer, append_to_text, text);
}

void json_writer_init_sink(struct json_writer *writer, json_sink *sink, void *context)
{
    writer->sink = sink;
    writer->context = context;
    writer->error = 0;
    writer->depth = 0;
    writer->objects = writer->filled = 0;
    writer->has_key = writer->complete = false;
    writer->used = 0;
}

static void json_write_fail(struct json_writer *writer, int error)
{
    if (!writer->error)
        writer->error = error;
}

static void hand_over(struct json_writer *writer, const char *bytes, size_t length)
{
    int result;

    if (writer->error || !length)
        return;
    result = writer->sink(writer->context, bytes, length);
    if (result < 0)
        json_write_fail(writer, result);
}

static void json_write_flush(struct json_writer *writer)
{
    hand_over(writer, writer->buffer, writer->used);
    writer->used = 0;
}

static void json_write_put(struct json_writer *writer, const char *bytes, size_t length)
{
    if (length > sizeof(writer->buffer) - writer->used)
        json_write_flush(writer);
    if (length > sizeof(writer->buffer)) {
        hand_over(writer, bytes, length);
        return;
    }
    memcpy(writer->buffer + writer->used, bytes, length);
    writer->used += length;
}

static void put_char(struct json_writer *writer, char c)
{
    if (writer->used == sizeof(writer->buffer))
        json_write_flush(writer);
    writer->buffer[writer->used++] = c;
}

/* The bit of the innermost open container; only while depth > 0. */
static uint64_t level_bit(const struct json_writer *writer)
{
    return UINT64_C(1) << (writer->depth - 1);
}

static bool in_object(const struct json_writer *writer)
{
    return writer->depth && writer->objects & level_bit(writer);
}

static void separate(struct json_writer *writer)
{
    if (writer->filled & level_bit(writer))
        put_char(writer, ',');
    writer->filled |= level_bit(writer);
}

/* Every value passes here first: whether it may stand at this place, and the comma before it. */
static bool begin_value(struct json_writer *writer)
{
    bool fits = writer->depth ? in_object(writer) == writer->has_key : !writer->complete;

    if (!fits)
        json_write_fail(writer, -EINVAL);
    if (writer->error)
        return false;
    if (!writer->depth)
        writer->complete = true;
    else if (!writer->has_key)
        separate(writer);
    writer->has_key = false;
    return true;
}

static void begin_container(struct json_writer *writer, bool object)
{
    if (!begin_value(writer))
        return;
    if (writer->depth == JSON_WRITE_DEPTH_MAX) {
        json_write_fail(writer, -EOVERFLOW);
        return;
    }
    writer->depth++;
    writer->filled &= ~level_bit(writer);
    writer->objects &= ~level_bit(writer);
    if (object)
        writer->objects |= level_bit(writer);
    put_char(writer, object ? '{' : '[');
}

static void end_container(struct json_writer *writer, bool object)
{
    if (!writer->depth || in_object(writer) != object || writer->has_key)
        json_write_fail(writer, -EINVAL);
    if (writer->error)
        return;
    writer->depth--;
    put_char(writer, object ? '}' : ']');
}

void json_begin_object(struct json_writer *writer)
{
    begin_container(writer, true);
}

void json_end_object(struct json_writer *writer)
{
    end_container(writer, true);
}

void json_begin_array(struct json_writer *writer)
{
    begin_container(writer, false);
}

void json_end_array(struct json_writer *writer)
{
    end_container(writer, false);
}

int json_writer_finish(struct json_writer *writer)
{
    if (writer->depth || !writer->complete)
        json_write_fail(writer, -EINVAL);
    json_write_flush(writer);
    return writer->error;
}

/* How many bytes at the front are copied as they are. */
static size_t plain_length(const char *bytes, size_t length)
{
    size_t i = 0;

    while (length - i >= sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, bytes + i, sizeof(word));
        if (!utf8_is_plain_word(word))
            break;
        i += sizeof(word);
    }
    while (i < length && utf8_is_plain((unsigned char) bytes[i]))
        i++;
    return i;
}

static void put_control(struct json_writer *writer, unsigned int control)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    put_char(writer, '\\');
    if (control < sizeof(letters) && letters[control]) {
        put_char(writer, letters[control]);
        return;
    }
    json_write_put(writer, "u00", 3);
    put_char(writer, digits[control >> 4]);
    put_char(writer, digits[control & 15]);
}

/* One character that is not plain; returns how many bytes it took. */
static size_t put_special(struct json_writer *writer, const char *bytes, size_t length)
{
    uint32_t character = 0;
    size_t size = utf8_decode(bytes, length, &character);

    if (!size) {
        json_write_put(writer, "\xef\xbf\xbd", 3);
        return 1;
    }
    if (character < 0x20) {
        put_control(writer, character);
        return 1;
    }
    if (character == '"' || character == '\\')
        put_char(writer, '\\');
    json_write_put(writer, bytes, size);
    return size;
}

static void put_string(struct json_writer *writer, const char *bytes, size_t length)
{
    size_t i = 0;

    put_char(writer, '"');
    while (i < length && !writer->error) {
        size_t plain = plain_length(bytes + i, length - i);

        json_write_put(writer, bytes + i, plain);
        i += plain;
        if (i < length)
            i += put_special(writer, bytes + i, length - i);
    }
    put_char(writer, '"');
}

void json_document_begin(struct json_writer *writer, struct text *text)
{
    json_writer_init_text(writer, text);
    json_begin_object(writer);
}

int json_document_end(struct json_writer *writer)
{
    json_end_object(writer);
    return json_writer_finish(writer);
}

void json_key(struct json_writer *writer, const char *key)
{
    if (!in_object(writer) || writer->has_key)
        json_write_fail(writer, -EINVAL);
    if (writer->error)
        return;
    separate(writer);
    put_string(writer, key, strlen(key));
    put_char(writer, ':');
    writer->has_key = true;
}

void json_begin_object_at(struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    json_begin_object(writer);
}

void json_begin_array_at(struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    json_begin_array(writer);
}

void json_put_text(struct json_writer *writer, const char *text)
{
    if (text)
        json_put_bytes(writer, text, strlen(text));
    else
        json_put_null(writer);
}

void json_put_bytes(struct json_writer *writer, const void *bytes, size_t length)
{
    if (begin_value(writer))
        put_string(writer, bytes, length);
}

void json_put_raw(struct json_writer *writer, const char *json, size_t length)
{
    if (begin_value(writer))
        json_write_put(writer, json, length);
}

void json_put_integer(struct json_writer *writer, int64_t number)
{
    char text[NUMBER_TEXT_SIZE];

    json_put_raw(writer, text, number_format(number, text));
}

void json_put_double(struct json_writer *writer, double number)
{
    char text[40];
    size_t end;

    if (!isfinite(number)) {
        json_put_null(writer);
        return;
    }
    /* 17 digits always read back as the same double, 15 or 16 often do. */
    for (int digits = 15; digits <= 17; digits++) {
        (void) snprintf(text, sizeof(text) - 2, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    end = strspn(text, "-0123456789");
    if (!text[end])
        memcpy(text + end, ".0", 3);
    else if (text[end] != 'e')
        text[end] = '.'; /* a locale may have put a comma */
    json_put_raw(writer, text, strlen(text));
}

void json_put_boolean(struct json_writer *writer, bool value)
{
    json_put_raw(writer, value ? "true" : "false", value ? 4 : 5);
}

void json_put_null(struct json_writer *writer)
{
    json_put_raw(writer, "null", 4);
}

static void put_object(struct json_writer *writer, json_t *object)
{
    const char *key;
    json_t *value;

    json_begin_object(writer);
    json_object_foreach (object, key, value) {
        json_key(writer, key);
        json_put_value(writer, value);
    }
    json_end_object(writer);
}

static void put_array(struct json_writer *writer, json_t *array)
{
    json_begin_array(writer);
    for (size_t i = 0; i < json_array_size(array); i++)
        json_put_value(writer, json_array_get(array, i));
    json_end_array(writer);
}

void json_put_value(struct json_writer *writer, json_t *value)
{
    if (writer->error) /* also ends the recursion: nesting is bounded by begin_container */
        return;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(writer, value);
        break;
    case JSON_ARRAY:
        put_array(writer, value);
        break;
    case JSON_STRING:
        json_put_bytes(writer, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        json_put_integer(writer, json_integer_value(value));
        break;
    case JSON_REAL:
        json_put_double(writer, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_put_boolean(writer, json_is_true(value));
        break;
    case JSON_NULL:
        json_put_null(writer);
        break;
    }
}

void json_add_text(struct json_writer *writer, const char *key, const char *text)
{
    json_key(writer, key);
    json_put_text(writer, text);
}

void json_add_integer(struct json_writer *writer, const char *key, int64_t number)
{
    json_key(writer, key);
    json_put_integer(writer, number);
}

void json_add_boolean(struct json_writer *writer, const char *key, bool value)
{
    json_key(writer, key);
    json_put_boolean(writer, value);
}

void json_add_null(struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    json_put_null(writer);
}
