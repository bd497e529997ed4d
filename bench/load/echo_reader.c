#include "load/echo_reader.h"

#include <errno.h>
#include <string.h>

#define FRAME_FIN          0x80
#define FRAME_MASKED       0x80
#define FRAME_CONTINUATION 0x00
#define FRAME_BINARY       0x02
#define NUMBER_SIZE        sizeof(uint64_t)

void echo_reader_begin(struct echo_reader *reader, const unsigned char *expected, uint64_t length)
{
    *reader = (struct echo_reader){.expected = expected, .expected_length = length};
}

static size_t head_size(const struct echo_reader *reader)
{
    if (reader->head_length < 2)
        return 2;
    switch (reader->head[1]) {
    case 126:
        return 4;
    case 127:
        return 10;
    default:
        return 2;
    }
}

static int on_head(struct echo_reader *reader)
{
    unsigned char opcode = reader->head[0] & 0x7f;

    if (reader->head[1] & FRAME_MASKED)
        return -EPROTO;
    if (opcode != (reader->started ? FRAME_CONTINUATION : FRAME_BINARY))
        return -EPROTO;
    reader->started = true;
    reader->last_frame = reader->head[0] & FRAME_FIN;
    reader->frame_left = reader->head[1];
    if (reader->head_length > 2) {
        reader->frame_left = 0;
        for (size_t i = 2; i < reader->head_length; i++)
            reader->frame_left = reader->frame_left << 8 | reader->head[i];
    }
    reader->in_payload = true;
    return 0;
}

static void on_frame_end(struct echo_reader *reader)
{
    reader->in_payload = false;
    reader->head_length = 0;
    reader->done = reader->last_frame;
    if (reader->done && reader->length != reader->expected_length)
        reader->differs = true;
}

static void take_payload(struct echo_reader *reader, const unsigned char *bytes, size_t length)
{
    size_t number = 0;

    while (reader->length + number < NUMBER_SIZE && number < length) {
        unsigned char *place = (unsigned char *) &reader->number + reader->length + number;

        *place = bytes[number++];
    }
    if (reader->length + length > reader->expected_length ||
        (reader->expected &&
         memcmp(bytes + number, reader->expected + reader->length + number, length - number) != 0))
        reader->differs = true;
    reader->length += length;
    reader->frame_left -= length;
}

ssize_t echo_reader_feed(struct echo_reader *reader, const unsigned char *bytes, size_t length)
{
    size_t used = 0;

    while (used < length && !reader->done) {
        size_t part = length - used;

        if (!reader->in_payload) {
            reader->head[reader->head_length++] = bytes[used++];
            if (reader->head_length == head_size(reader) && on_head(reader) < 0)
                return -EPROTO;
        } else {
            if (part > reader->frame_left)
                part = (size_t) reader->frame_left;
            take_payload(reader, bytes + used, part);
            used += part;
        }
        if (reader->in_payload && reader->frame_left == 0)
            on_frame_end(reader);
    }
    return (ssize_t) used;
}
