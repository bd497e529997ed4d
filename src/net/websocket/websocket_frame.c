#include "net/websocket/websocket_frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define BIT_FINAL    0x80
#define BITS_RSV     0x70
#define BITS_OPCODE  0x0f
#define BIT_MASK     0x80
#define BITS_LENGTH  0x7f
#define LENGTH_IS_16 126
#define LENGTH_IS_64 127

static int websocket_frame_refuse(const char **ret_fault, const char *fault)
{
    *ret_fault = fault;
    return -EPROTO;
}

static bool opcode_is_known(uint8_t opcode)
{
    return opcode <= WEBSOCKET_BINARY || (opcode >= WEBSOCKET_CLOSE && opcode <= WEBSOCKET_PONG);
}

static int check_first_byte(uint8_t byte, const char **ret_fault)
{
    if (byte & BITS_RSV)
        return websocket_frame_refuse(ret_fault, "reserved bit set without an extension");
    if (!opcode_is_known(byte & BITS_OPCODE))
        return websocket_frame_refuse(ret_fault, "unknown opcode");
    if (websocket_opcode_is_control(byte & BITS_OPCODE) && !(byte & BIT_FINAL))
        return websocket_frame_refuse(ret_fault, "fragmented control frame");
    return 0;
}

static int check_second_byte(const struct websocket_frame_parser *parser, const char **ret_fault)
{
    bool masked = parser->bytes[1] & BIT_MASK;

    if (masked && parser->role == WEBSOCKET_CLIENT)
        return websocket_frame_refuse(ret_fault, "masked frame from a server");
    if (!masked && parser->role == WEBSOCKET_SERVER)
        return websocket_frame_refuse(ret_fault, "unmasked frame from a client");
    if (websocket_opcode_is_control(parser->bytes[0] & BITS_OPCODE) &&
        (parser->bytes[1] & BITS_LENGTH) > WEBSOCKET_CONTROL_MAX)
        return websocket_frame_refuse(ret_fault, "control frame longer than 125 bytes");
    return 0;
}

static uint8_t header_size(uint8_t second)
{
    uint8_t size = 2;

    if ((second & BITS_LENGTH) == LENGTH_IS_16)
        size += sizeof(uint16_t);
    else if ((second & BITS_LENGTH) == LENGTH_IS_64)
        size += sizeof(uint64_t);
    return size + (second & BIT_MASK ? WEBSOCKET_KEY_SIZE : 0);
}

static int read_length(const uint8_t *bytes, uint64_t *ret_length, const char **ret_fault)
{
    uint16_t short_length;
    uint64_t long_length;

    switch (bytes[1] & BITS_LENGTH) {
    case LENGTH_IS_16:
        memcpy(&short_length, bytes + 2, sizeof(short_length));
        *ret_length = be16toh(short_length);
        if (*ret_length < LENGTH_IS_16)
            return websocket_frame_refuse(ret_fault, "length not in its shortest form");
        return 0;
    case LENGTH_IS_64:
        memcpy(&long_length, bytes + 2, sizeof(long_length));
        *ret_length = be64toh(long_length);
        if (*ret_length <= UINT16_MAX)
            return websocket_frame_refuse(ret_fault, "length not in its shortest form");
        if (*ret_length > INT64_MAX)
            return websocket_frame_refuse(ret_fault, "length with the top bit set");
        return 0;
    default:
        *ret_length = bytes[1] & BITS_LENGTH;
        return 0;
    }
}

/* The header is complete: say what it is and get ready for the next. */
static int websocket_frame_finish(struct websocket_frame_parser *parser,
                                  struct websocket_frame *ret_frame, const char **ret_fault)
{
    uint64_t length;
    int r = read_length(parser->bytes, &length, ret_fault);

    if (r < 0)
        return r;
    ret_frame->opcode = parser->bytes[0] & BITS_OPCODE;
    ret_frame->final = parser->bytes[0] & BIT_FINAL;
    ret_frame->masked = parser->bytes[1] & BIT_MASK;
    ret_frame->length = length;
    if (ret_frame->masked)
        memcpy(ret_frame->key, parser->bytes + parser->need - WEBSOCKET_KEY_SIZE,
               WEBSOCKET_KEY_SIZE);
    parser->have = 0;
    parser->need = 2;
    return 1;
}

int websocket_frame_parse(struct websocket_frame_parser *parser, const char **bytes, size_t *length,
                          struct websocket_frame *ret_frame, const char **ret_fault)
{
    int r = 0;

    while (parser->have < parser->need) {
        if (*length == 0)
            return 0;
        parser->bytes[parser->have++] = (uint8_t) * (*bytes)++;
        --*length;
        if (parser->have == 1) {
            r = check_first_byte(parser->bytes[0], ret_fault);
        } else if (parser->have == 2) {
            r = check_second_byte(parser, ret_fault);
            parser->need = header_size(parser->bytes[1]);
        }
        if (r < 0)
            return r;
    }
    return websocket_frame_finish(parser, ret_frame, ret_fault);
}

size_t websocket_frame_write(const struct websocket_frame *frame,
                             char ret_bytes[static WEBSOCKET_HEADER_MAX])
{
    uint8_t mask_bit = frame->masked ? BIT_MASK : 0;
    uint16_t short_length = htobe16((uint16_t) frame->length);
    uint64_t long_length = htobe64(frame->length);
    size_t size = 2;

    ret_bytes[0] = (char) (frame->opcode | (frame->final ? BIT_FINAL : 0));
    if (frame->length < LENGTH_IS_16) {
        ret_bytes[1] = (char) (mask_bit | frame->length);
    } else if (frame->length <= UINT16_MAX) {
        ret_bytes[1] = (char) (mask_bit | LENGTH_IS_16);
        memcpy(ret_bytes + size, &short_length, sizeof(short_length));
        size += sizeof(short_length);
    } else {
        ret_bytes[1] = (char) (mask_bit | LENGTH_IS_64);
        memcpy(ret_bytes + size, &long_length, sizeof(long_length));
        size += sizeof(long_length);
    }
    if (frame->masked) {
        memcpy(ret_bytes + size, frame->key, WEBSOCKET_KEY_SIZE);
        size += WEBSOCKET_KEY_SIZE;
    }
    return size;
}

/* A register's worth of bytes; the compiler makes SSE2, NEON or plain words of it. */
typedef uint8_t mask_block __attribute__((vector_size(16)));

static inline void mask_one_block(char *to, const char *from, mask_block pattern)
{
    mask_block block;

    memcpy(&block, from, sizeof(block));
    block ^= pattern;
    memcpy(to, &block, sizeof(block));
}

void websocket_mask(char *to, const char *from, size_t length,
                    const uint8_t key[static WEBSOCKET_KEY_SIZE], uint64_t offset)
{
    const size_t step = sizeof(mask_block);
    mask_block pattern = {0};
    size_t i = 0;

    /* Blocks are a multiple of the key's size, so one pattern turned to the phase of the first
     * byte serves all blocks, wherever they lie in memory. */
    for (size_t j = 0; j < step; j++)
        pattern[j] = key[(offset + j) % WEBSOCKET_KEY_SIZE];
    for (; length - i >= 4 * step; i += 4 * step) {
        mask_one_block(to + i, from + i, pattern);
        mask_one_block(to + i + step, from + i + step, pattern);
        mask_one_block(to + i + 2 * step, from + i + 2 * step, pattern);
        mask_one_block(to + i + 3 * step, from + i + 3 * step, pattern);
    }
    for (; length - i >= step; i += step)
        mask_one_block(to + i, from + i, pattern);
    for (; i < length; i++)
        to[i] = (char) (from[i] ^ pattern[i % step]);
}
