#include "agent/output_text.h"

#include <string.h>

#include "base/encoding/encode.h"
#include "json/json_write.h"

/* Bytes that are base64-encoded at a time; a multiple of three. */
#define BASE64_STEP 3072

/* A JSON string without its quotes: the first byte written is one, and so is the last. */
struct unquoted {
    struct text *json;
    bool begun;
};

static int append_unquoted(void *context, const char *bytes, size_t length)
{
    struct unquoted *unquoted = context;
    size_t skip = unquoted->begun || !length ? 0 : 1;

    unquoted->begun = true;
    text_append_bytes(unquoted->json, bytes + skip, length - skip);
    return unquoted->json->overflowed ? -EOVERFLOW : 0;
}

static void append_escaped(struct text *json, const char *bytes, size_t length)
{
    struct unquoted unquoted = {.json = json};
    struct json_writer writer;

    if (!length)
        return;
    json_writer_init_sink(&writer, append_unquoted, &unquoted);
    json_put_bytes(&writer, bytes, length);
    if (json_writer_finish(&writer) == 0)
        json->data[--json->length] = '\0';
}

static void append_base64(struct text *json, const char *bytes, size_t length)
{
    while (length) {
        size_t step = length < BASE64_STEP ? length : BASE64_STEP;
        char *room = text_reserve(json, BASE64_TEXT_SIZE(step));

        if (!room)
            return;
        text_commit(json, base64_encode(BASE64_STANDARD, bytes, step, room));
        bytes += step;
        length -= step;
    }
}

static void append(const struct output_text *output, struct text *json, const char *bytes,
                   size_t length)
{
    if (output->base64)
        append_base64(json, bytes, length);
    else
        append_escaped(json, bytes, length);
}

/* How long the character is that begins with this byte; 1 for what begins none. */
static size_t character_length(unsigned char lead)
{
    if (lead >= 0xf0 && lead <= 0xf4)
        return 4;
    if (lead >= 0xe0)
        return lead <= 0xef ? 3 : 1;
    return lead >= 0xc2 && lead <= 0xdf ? 2 : 1;
}

size_t output_text_unfinished(const char *bytes, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char) bytes[length - back];

        if ((byte & 0xc0) != 0x80)
            return character_length(byte) > back ? back : 0;
    }
    return 0;
}

static size_t held_back(const struct output_text *output, const char *bytes, size_t length)
{
    return output->base64 ? length % 3 : output_text_unfinished(bytes, length);
}

/* Complete what was carried over with the first of the new bytes; returns how many were used. */
static size_t use_carry(struct output_text *output, struct text *json, const char *bytes,
                        size_t length)
{
    size_t used = 0;

    while (output->carried && used < length) {
        output->carry[output->carried++] = (unsigned char) bytes[used++];
        if (!held_back(output, (char *) output->carry, output->carried) ||
            output->carried == sizeof(output->carry)) {
            append(output, json, (char *) output->carry, output->carried);
            output->carried = 0;
        }
    }
    return used;
}

void output_text_feed(struct output_text *output, struct text *json, const char *bytes,
                      size_t length)
{
    size_t used = use_carry(output, json, bytes, length);
    size_t held;

    if (used == length)
        return;
    bytes += used;
    length -= used;
    held = held_back(output, bytes, length);
    append(output, json, bytes, length - held);
    memcpy(output->carry, bytes + length - held, held);
    output->carried = held;
}

void output_text_flush(struct output_text *output, struct text *json)
{
    append(output, json, (char *) output->carry, output->carried);
    output->carried = 0;
}
