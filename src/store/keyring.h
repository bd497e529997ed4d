/* Keys for what is kept encrypted: AES-256-GCM, several keys, the newest seals.
 *
 * The file has mode 0600 and is made at first use; a line per key, "ID HEX", oldest first. A sealed
 * value is: version byte, key id, nonce, ciphertext, tag; and is bound to a context
 * ("webhook.secret/abc"), so that it opens nowhere else.
 *
 * One thread rotates; any may seal and unseal meanwhile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/encoding/sha256.h"
#include "base/error.h"
#include "base/text.h"

#define KEYRING_KEYS_MAX   64
#define KEYRING_SEAL_EXTRA 33 /* bytes that sealing adds */

struct keyring;

/* Open the file beneath `folder`, or make it with one key. NULL with an error that names it: a mode
 * that lets others read is refused. */
struct keyring *keyring_open(int folder, const char *name, struct error *err);

/* A ring with one random key that is nowhere on disk, for tests. */
struct keyring *keyring_new(void);

void keyring_free(struct keyring *keyring);
AUTO_DEFINE_PTR(keyring, struct keyring, keyring_free);

/* Add a newest key to the file beneath `folder` and to the ring. Older ones stay: backups may need
 * them. ERR_CONFLICT when there are KEYRING_KEYS_MAX. */
int keyring_rotate(struct keyring *keyring, int folder, const char *name, struct error *err);

/* Append the sealed form; what does not fit in `out` shows as its overflow. */
void keyring_seal(const struct keyring *keyring, const char *context, const void *bytes,
                  size_t length, struct text *out);

/* Append what was sealed. -1 with ERR_INVALID: not sealed for this context, changed, or by a key
 * that is not in the ring. */
int keyring_unseal(const struct keyring *keyring, const char *context, const void *sealed,
                   size_t length, struct text *out, struct error *err);

/* A secret for one purpose, of the oldest key: the same for as long as there is this file, whatever
 * is rotated. */
void keyring_derive(const struct keyring *keyring, const char *purpose,
                    uint8_t ret_secret[static SHA256_SIZE]);

/* Whether the newest key sealed it. */
bool keyring_is_current(const struct keyring *keyring, const void *sealed, size_t length);
