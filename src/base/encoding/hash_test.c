#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/encoding/encode.h"
#include "base/encoding/hash.h"
#include "base/memory.h"

static void assert_digest(const uint8_t *digest, const char *expected)
{
    char text[HEX_TEXT_SIZE(SHA256_SIZE)];

    (void) hex_encode(digest, SHA256_SIZE, text);
    assert_string_equal(text, expected);
}

/* RFC 4231 test cases 1, 2 and 6. */
static void hmac_agrees_with_the_rfc(void **state)
{
    uint8_t digest[SHA256_SIZE];
    char key[131];

    (void) state;
    memset(key, 0x0b, 20);
    hash_hmac(key, 20, "Hi There", 8, digest);
    assert_digest(digest, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    hash_hmac("Jefe", 4, "what do ya want for nothing?", 28, digest);
    assert_digest(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    hash_hmac(key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First", 54,
              digest);
    assert_digest(digest, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void an_empty_key_and_message_are_allowed(void **state)
{
    uint8_t digest[SHA256_SIZE];

    (void) state;
    hash_hmac(NULL, 0, "", 0, digest);
    assert_digest(digest, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void equality_looks_at_every_byte(void **state)
{
    uint8_t one[SHA256_SIZE] = {0}, two[SHA256_SIZE] = {0};

    (void) state;
    assert_true(hash_equal(one, two, sizeof(one)));
    for (size_t i = 0; i < sizeof(one); i++) {
        two[i] = 1;
        assert_false(hash_equal(one, two, sizeof(one)));
        two[i] = 0;
    }
    assert_true(hash_equal(one, "x", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hmac_agrees_with_the_rfc),
        cmocka_unit_test(an_empty_key_and_message_are_allowed),
        cmocka_unit_test(equality_looks_at_every_byte),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
