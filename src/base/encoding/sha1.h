/* SHA-1, for the one protocol that asks for it: the WebSocket handshake (RFC 6455, section 4.2.2).
 *
 * Broken as a hash for signatures: use base/encoding/sha256.h for everything that must resist
 * somebody. It is written out here because the agent is a static program without OpenSSL. Pure, any
 * thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE 20

/* The digest of bytes that are all at hand. */
void sha1_bytes(const void *bytes, size_t count, uint8_t ret_digest[static SHA1_SIZE]);
