/* Inside base/sha256: the same blocks with the SHA instructions of x86 processors (Goldmont, Ice
 * Lake, Zen and later), eight times as fast. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_ROUNDS 64

/* Section 4.2.2 of the standard. */
extern const uint32_t sha256_constants[SHA256_ROUNDS];

/* Whether this processor has them: libc asked it at the start, so this costs nothing. */
bool sha256_x86_is_there(void);

/* Add `count` blocks of 64 bytes to the eight words of a state. Only where the instructions are. */
void sha256_x86_add_blocks(uint32_t *words, const uint8_t *blocks, size_t count);
