#include "net/websocket/websocket_boundary.h"

#include <endian.h>
#include <string.h>

#define BITS_OPCODE  0x0f
#define BIT_MASK     0x80
#define BITS_LENGTH  0x7f
#define LENGTH_IS_16 126
#define LENGTH_IS_64 127

static size_t header_size(uint8_t second)
{
    size_t size = 2;

    if ((second & BITS_LENGTH) == LENGTH_IS_16)
        size += sizeof(uint16_t);
    else if ((second & BITS_LENGTH) == LENGTH_IS_64)
        size += sizeof(uint64_t);
    return size + (second & BIT_MASK ? WEBSOCKET_KEY_SIZE : 0);
}

static uint64_t payload_length(const uint8_t *header)
{
    uint16_t short_length;
    uint64_t long_length;

    switch (header[1] & BITS_LENGTH) {
    case LENGTH_IS_16:
        memcpy(&short_length, header + 2, sizeof(short_length));
        return be16toh(short_length);
    case LENGTH_IS_64:
        memcpy(&long_length, header + 2, sizeof(long_length));
        return be64toh(long_length);
    default:
        return header[1] & BITS_LENGTH;
    }
}

void websocket_boundary_pass(struct websocket_boundary *boundary, const char *bytes, size_t length)
{
    while (length) {
        size_t skipped = boundary->left < length ? (size_t) boundary->left : length;

        boundary->left -= skipped;
        bytes += skipped;
        length -= skipped;
        if (!length)
            return;
        boundary->header[boundary->have++] = (uint8_t) *bytes++;
        length--;
        if (boundary->have < 2 || boundary->have < header_size(boundary->header[1]))
            continue;
        boundary->left = payload_length(boundary->header);
        boundary->has_close |= (boundary->header[0] & BITS_OPCODE) == WEBSOCKET_CLOSE;
        boundary->have = 0;
    }
}
