#include "base/encoding/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>

static void must(bool worked)
{
    if (worked)
        return;
    (void) fprintf(stderr, "burrow: SHA-256 of OpenSSL failed\n");
    abort();
}

void hash_hmac(const void *key, size_t key_size, const void *bytes, size_t count,
               uint8_t ret_digest[static SHA256_SIZE])
{
    /* HMAC counts the key in an int and takes NULL for "the key of before". */
    must(key_size <= INT32_MAX);
    must(HMAC(EVP_sha256(), key_size ? key : "", (int) key_size, bytes, count, ret_digest, NULL));
}

bool hash_equal(const void *a, const void *b, size_t count)
{
    return CRYPTO_memcmp(a, b, count) == 0;
}
