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
    char text[HEX_TEXT_SIZE(HASH_SIZE)];

    (void) hex_encode(digest, HASH_SIZE, text);
    assert_string_equal(text, expected);
}

/* FIPS 180-2 examples. */
static void known_messages_have_known_digests(void **state)
{
    uint8_t digest[HASH_SIZE];

    (void) state;
    hash_bytes("", 0, digest);
    assert_digest(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_bytes("abc", 3, digest);
    assert_digest(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, digest);
    assert_digest(digest, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void pieces_hash_like_the_whole(void **state)
{
    AUTO(hash) struct hash *hash = hash_new();
    uint8_t whole[HASH_SIZE], pieces[HASH_SIZE];
    char message[500];

    (void) state;
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (char) (i * 7);
    hash_bytes(message, sizeof(message), whole);
    /* the same object for every round: finishing makes it ready again */
    for (size_t step = 1; step <= sizeof(message); step += 13) {
        for (size_t i = 0; i < sizeof(message); i += step) {
            size_t left = sizeof(message) - i;

            hash_add(hash, message + i, left < step ? left : step);
        }
        hash_finish(hash, pieces);
        assert_memory_equal(pieces, whole, HASH_SIZE);
    }
}

static void a_million_letters_have_their_digest(void **state)
{
    AUTO(hash) struct hash *hash = hash_new();
    uint8_t digest[HASH_SIZE];
    char letters[1000];

    (void) state;
    memset(letters, 'a', sizeof(letters));
    for (int i = 0; i < 1000; i++)
        hash_add(hash, letters, sizeof(letters));
    hash_finish(hash, digest);
    assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231 test cases 1, 2 and 6. */
static void hmac_agrees_with_the_rfc(void **state)
{
    uint8_t digest[HASH_SIZE];
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
    uint8_t digest[HASH_SIZE];

    (void) state;
    hash_hmac(NULL, 0, "", 0, digest);
    assert_digest(digest, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void equality_looks_at_every_byte(void **state)
{
    uint8_t one[HASH_SIZE] = {0}, two[HASH_SIZE] = {0};

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
        cmocka_unit_test(known_messages_have_known_digests),
        cmocka_unit_test(pieces_hash_like_the_whole),
        cmocka_unit_test(a_million_letters_have_their_digest),
        cmocka_unit_test(hmac_agrees_with_the_rfc),
        cmocka_unit_test(an_empty_key_and_message_are_allowed),
        cmocka_unit_test(equality_looks_at_every_byte),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
