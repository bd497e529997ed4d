#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/encoding/sha1.h"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/encoding/encode.h"

static void assert_digest(const char *text, const char *expected)
{
    uint8_t digest[SHA1_SIZE];
    char hex[HEX_TEXT_SIZE(SHA1_SIZE)];

    sha1_bytes(text, strlen(text), digest);
    (void) hex_encode(digest, sizeof(digest), hex);
    assert_string_equal(hex, expected);
}

/* FIPS 180-4's own examples. */
static void the_examples_of_the_standard_hold(void **state)
{
    (void) state;
    assert_digest("", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_digest("abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

/* Every place where the end of a message can lie within its blocks. */
static void all_lengths_agree_with_another_implementation(void **state)
{
    unsigned char bytes[300], theirs[EVP_MAX_MD_SIZE];
    uint8_t ours[SHA1_SIZE];

    (void) state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char) (i * 7 + 3);
    for (size_t length = 0; length <= sizeof(bytes); length++) {
        assert_int_equal(EVP_Digest(bytes, length, theirs, NULL, EVP_sha1(), NULL), 1);
        sha1_bytes(bytes, length, ours);
        assert_memory_equal(ours, theirs, SHA1_SIZE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_hold),
        cmocka_unit_test(all_lengths_agree_with_another_implementation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
