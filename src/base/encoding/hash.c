#include "base/encoding/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#include "base/memory.h"

struct hash {
    EVP_MD_CTX *context; /* owned */
};

static void must(bool worked)
{
    if (worked)
        return;
    (void) fprintf(stderr, "burrow: SHA-256 of OpenSSL failed\n");
    abort();
}

void hash_bytes(const void *bytes, size_t count, uint8_t ret_digest[static HASH_SIZE])
{
    must(EVP_Digest(bytes, count, ret_digest, NULL, EVP_sha256(), NULL) == 1);
}

struct hash *hash_new(void)
{
    struct hash *hash = mem_alloc(sizeof(*hash));

    hash->context = EVP_MD_CTX_new();
    must(hash->context && EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) == 1);
    return hash;
}

void hash_add(struct hash *hash, const void *bytes, size_t count)
{
    must(EVP_DigestUpdate(hash->context, bytes, count) == 1);
}

void hash_finish(struct hash *hash, uint8_t ret_digest[static HASH_SIZE])
{
    must(EVP_DigestFinal_ex(hash->context, ret_digest, NULL) == 1);
    must(EVP_DigestInit_ex(hash->context, NULL, NULL) == 1);
}

void hash_free(struct hash *hash)
{
    if (!hash)
        return;
    EVP_MD_CTX_free(hash->context);
    free(hash);
}

void hash_hmac(const void *key, size_t key_size, const void *bytes, size_t count,
               uint8_t ret_digest[static HASH_SIZE])
{
    /* HMAC counts the key in an int and takes NULL for "the key of before". */
    must(key_size <= INT32_MAX);
    must(HMAC(EVP_sha256(), key_size ? key : "", (int) key_size, bytes, count, ret_digest, NULL));
}

bool hash_equal(const void *a, const void *b, size_t count)
{
    return CRYPTO_memcmp(a, b, count) == 0;
}
