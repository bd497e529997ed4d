/* WebSocket frames (RFC 6455, section 5): reading and writing the header, masking the payload.
 *
 *      byte 0          byte 1                                   then
 *     +-+---+-------+ +-+-------------+ +------------------------+ +----------+ +---------
 *     |F|RSV|opcode | |M|   length    | | 16 or 64 bit length    | | mask key | | payload
 *     |I|   |       | |A|   0 - 125   | | when the 7 bits are    | | 4 bytes, | |
 *     |N| 0 |       | |S|             | | 126 or 127             | | if MASK  | |
 *     +-+---+-------+ +-+-------------+ +------------------------+ +----------+ +---------
 *
 * Strict on what it accepts: reserved bits and opcodes, a length that is not in its shortest form,
 * long or fragmented control frames and a mask on the wrong side are all refused, each as soon as
 * its byte is there. What a frame means (fragments, UTF-8, close codes) is websocket_reader's.
 * Pure: no allocation, no system calls, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEBSOCKET_HEADER_MAX  14
#define WEBSOCKET_CONTROL_MAX 125
#define WEBSOCKET_KEY_SIZE    4

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0x0,
    WEBSOCKET_TEXT = 0x1,
    WEBSOCKET_BINARY = 0x2,
    WEBSOCKET_CLOSE = 0x8,
    WEBSOCKET_PING = 0x9,
    WEBSOCKET_PONG = 0xa,
};

/* Which side we are: a server gets masked frames and sends plain ones, a client the reverse. */
enum websocket_role { WEBSOCKET_SERVER, WEBSOCKET_CLIENT };

struct websocket_frame {
    enum websocket_opcode opcode;
    bool final;
    bool masked;
    uint8_t key[WEBSOCKET_KEY_SIZE]; /* only when masked */
    uint64_t length;                 /* of the payload; below 2^63 */
};

static inline bool websocket_opcode_is_control(enum websocket_opcode opcode)
{
    return (opcode & 0x8) != 0;
}

/* Reads one header that arrives in any number of pieces. Initialise with
 * WEBSOCKET_FRAME_PARSER_INIT(our role); ready for the next header after each complete one. */
struct websocket_frame_parser {
    enum websocket_role role;
    uint8_t have; /* bytes of the header so far */
    uint8_t need; /* its size, as far as known */
    uint8_t bytes[WEBSOCKET_HEADER_MAX];
};

#define WEBSOCKET_FRAME_PARSER_INIT(our_role)                                                      \
    {                                                                                              \
        .role = (our_role), .need = 2                                                              \
    }

/* Read header bytes from the front of `*bytes`, moving `*bytes` and `*length` past them.
 * Returns 1 and the frame when its header is complete (the payload follows at `*bytes`), 0 when
 * all bytes were used and more are needed, or -EPROTO with a sentence for people in `*ret_fault`
 * (static). After -EPROTO the parser must not be used again. */
int websocket_frame_parse(struct websocket_frame_parser *parser, const char **bytes, size_t *length,
                          struct websocket_frame *ret_frame, const char **ret_fault);

/* Write the shortest header for `frame` and return its size. The caller keeps the rules of
 * control frames (final, at most WEBSOCKET_CONTROL_MAX bytes). */
size_t websocket_frame_write(const struct websocket_frame *frame,
                             char ret_bytes[static WEBSOCKET_HEADER_MAX]);

/* Mask or unmask (the same thing) `length` bytes that start `offset` bytes into their payload, on
 * the way from `from` to `to`. Both may be the same place, but must not overlap otherwise. */
void websocket_mask(char *to, const char *from, size_t length,
                    const uint8_t key[static WEBSOCKET_KEY_SIZE], uint64_t offset);
