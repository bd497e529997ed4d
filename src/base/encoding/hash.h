/* SHA-256, HMAC-SHA-256 and comparing secrets, on OpenSSL.
 *
 * Nothing here fails: an OpenSSL that lacks SHA-256 or memory ends the program, because no caller
 * could go on without. Different objects may be used by different threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

#define HASH_SIZE 32

/* The digest of bytes that are all at hand. */
void hash_bytes(const void *bytes, size_t count, uint8_t ret_digest[static HASH_SIZE]);

/* The digest of bytes that come in pieces. */
struct hash;

struct hash *hash_new(void);
void hash_add(struct hash *hash, const void *bytes, size_t count);

/* The digest of all that was added; the object is then ready for the next message. */
void hash_finish(struct hash *hash, uint8_t ret_digest[static HASH_SIZE]);

/* Accepts NULL. */
void hash_free(struct hash *hash);

AUTO_DEFINE_PTR(hash, struct hash, hash_free);

/* HMAC-SHA-256 (RFC 2104) of bytes that are all at hand. */
void hash_hmac(const void *key, size_t key_size, const void *bytes, size_t count,
               uint8_t ret_digest[static HASH_SIZE]);

/* Whether two secrets of the same size are equal, in a time that does not depend on where they
 * differ. */
bool hash_equal(const void *a, const void *b, size_t count);
