/* SHA-256 (FIPS 180-4), written out: the one digest of all our programs.
 *
 * The launcher wants one digest, at its start: loading OpenSSL for it took 2 ms and left a big
 * library in a process that is root. The keeper is static and parses what strangers made. With the
 * SHA instructions of the processor it is as fast as OpenSSL; without them it does 200 MB/s, half
 * as much. Pure, any thread, nothing fails. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE  32
#define SHA256_BLOCK 64
#define SHA256_WORDS 8

/* A message that comes in pieces; the fields are this module's. */
struct sha256 {
    uint32_t state[SHA256_WORDS];
    uint64_t total;              /* bytes so far */
    uint8_t block[SHA256_BLOCK]; /* the piece that does not fill a block yet */
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *bytes, size_t count);

/* The digest of all that was added. Then `sha` is done with, until the next sha256_init. */
void sha256_finish(struct sha256 *sha, uint8_t ret_digest[static SHA256_SIZE]);

/* The digest of bytes that are all at hand. */
void sha256_bytes(const void *bytes, size_t count, uint8_t ret_digest[static SHA256_SIZE]);
