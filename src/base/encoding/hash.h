/* HMAC-SHA-256 and comparing secrets, on OpenSSL; digests without a key are in sha256.h.
 *
 * Nothing here fails: an OpenSSL that lacks SHA-256 or memory ends the program, because no caller
 * could go on without. Pure, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/encoding/sha256.h"

/* HMAC-SHA-256 (RFC 2104) of bytes that are all at hand. */
void hash_hmac(const void *key, size_t key_size, const void *bytes, size_t count,
               uint8_t ret_digest[static SHA256_SIZE]);

/* Whether two secrets of the same size are equal, in a time that does not depend on where they
 * differ. */
bool hash_equal(const void *a, const void *b, size_t count);
