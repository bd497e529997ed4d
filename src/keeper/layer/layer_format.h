/* The bytes of a layer: what one state of a tree has that an earlier one has not.
 *
 *     file      one zstd frame with its checksum, then a skippable frame (RFC 8878 section 3.1.2)
 *               with the SHA-256 of the first one's bytes. `zstd -d` reads it
 *     stream    head, records, trailer: what is in the first frame
 *
 * Numbers are unsigned and little endian; `u16` is one of 16 bits. A text is its length and as many
 * bytes, without NUL.
 *
 *     head      "\x89" "BURROW\n", u32 version, u32 flags (LAYER_DELTA: it needs what it was made
 *               against)
 *     record    u8 kind, then by kind
 *       D         name                                       into a folder, new or not
 *       U         status                                     out of it; now it is as it shall be
 *       F         name, status, u8 linked, u64 size, pieces, attributes              file
 *       L         name, status, u8 linked, target (u16 text), attributes             link
 *       P         name, status, u8 linked, attributes                                fifo
 *       W         name, status, attributes                                           whiteout
 *       H         name, u64 number              a further name of the number-th linked entry
 *       R         name                          gone, with everything in it          (delta only)
 *       C         name, status, attributes      a file that keeps its content        (delta only)
 *       E         trailer: u64 records before, u64 bytes before, then the SHA-256 of all before
 *     name      u8 text: 1 to 255 bytes, no "/", not "." or ".."; empty for the top alone
 *     status    u16 mode (the lower 12 bits), u32 uid, u32 gid, i64 seconds, u32 nanoseconds (of
 *               modification). That of U is followed by attributes
 *     attributes  { name (u8 text), value (u32 text) } in the order of the names, then a u8 of 0
 *     pieces    { u32 length, u64 offset, bytes } in order, then a u32 of 0. What lies between is a
 *               hole
 *
 * Records begin with D of the top and end with its U, and in between go down and up as the tree
 * does. Within a folder names grow (by bytes), so each comes once. A piece is a run of blocks of
 * LAYER_BLOCK bytes that are not all zero, cut where LAYER_WINDOW divides the offset: so the same
 * content always becomes the same pieces.
 *
 * The id of a layer is the SHA-256 in its trailer, which says what the layer means and nothing
 * about how it was compressed. A delta may replace what is there: what a record makes takes the
 * place of whatever has its name, except that D goes into a folder that exists. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/encoding/sha256.h"
#include "keeper/output.h"

#define LAYER_MAGIC                                                                                \
    "\x89"                                                                                         \
    "BURROW\n"
#define LAYER_MAGIC_SIZE 8
#define LAYER_VERSION    1

#define LAYER_DELTA 1u

#define LAYER_BLOCK  ((size_t) 4096)
#define LAYER_WINDOW ((size_t) 256 << 10)

/* The skippable frame: its magic, the length of what is in it, the sum. */
#define LAYER_SEAL_MAGIC 0x184d2a5bu
#define LAYER_SEAL_SIZE  (4 + 4 + SHA256_SIZE)

/* A reader takes no frame that needs more memory than 2 to this. Ours needs far less. */
#define LAYER_WINDOW_LOG_MAX 23

/* Bounds on a way from the top, for readers; walks of trees have the same. */
#define LAYER_DEPTH_MAX ((size_t) 1 << 20)
#define LAYER_PATH_MAX  ((size_t) 128 << 20)

#define LAYER_TARGET_MAX    (PATH_MAX - 1)
#define LAYER_ATTRIBUTE_MAX 65536

enum layer_kind {
    LAYER_ENTER = 'D',
    LAYER_LEAVE = 'U',
    LAYER_FILE = 'F',
    LAYER_LINK = 'L',
    LAYER_FIFO = 'P',
    LAYER_WHITEOUT = 'W',
    LAYER_HARD_LINK = 'H',
    LAYER_REMOVED = 'R',
    LAYER_CHANGED = 'C',
    LAYER_END = 'E',
};

struct layer_status {
    uint16_t mode;
    uint32_t uid, gid;
    int64_t seconds;
    uint32_t nanoseconds;
};

/* What is known of a layer at its end. */
struct layer_sums {
    uint8_t id[SHA256_SIZE];
    uint8_t sha256[SHA256_SIZE]; /* of the file */
    uint64_t size;               /* of the file */
    uint64_t bytes;              /* of the stream */
    uint64_t records;
};

/* What both jobs tell about a layer: members of the object that `json` is in. */
void layer_sums_tell(const struct layer_sums *sums, struct json_writer *json);

/* A number of `size` bytes, the lowest first. */
void layer_put_number(uint8_t *bytes, size_t size, uint64_t number);
uint64_t layer_get_number(const uint8_t *bytes, size_t size);
