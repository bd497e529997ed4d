#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/encoding/sha256.c"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/encoding/encode.h"

static void assert_hex(const uint8_t digest[static SHA256_SIZE], const char *expected)
{
    char hex[HEX_TEXT_SIZE(SHA256_SIZE)];

    (void) hex_encode(digest, SHA256_SIZE, hex);
    assert_string_equal(hex, expected);
}

static void assert_digest(const char *text, const char *expected)
{
    uint8_t digest[SHA256_SIZE];

    sha256_bytes(text, strlen(text), digest);
    assert_hex(digest, expected);
}

/* FIPS 180-4's own examples. */
static void the_examples_of_the_standard_hold(void **state)
{
    (void) state;
    assert_digest("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_letters_in_pieces_hold_too(void **state)
{
    static const char piece[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    uint8_t digest[SHA256_SIZE];
    struct sha256 sha;

    (void) state;
    assert_int_equal(sizeof(piece) - 1, 100);
    sha256_init(&sha);
    for (int i = 0; i < 10000; i++)
        sha256_add(&sha, piece, sizeof(piece) - 1);
    sha256_finish(&sha, digest);
    assert_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void fill(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t) (i * 7 + 3);
}

/* Every place where the end of a message can lie within its blocks. */
static void all_lengths_agree_with_openssl(void **state)
{
    uint8_t bytes[300], ours[SHA256_SIZE], theirs[SHA256_SIZE];

    (void) state;
    fill(bytes, sizeof(bytes));
    for (size_t length = 0; length <= sizeof(bytes); length++) {
        sha256_bytes(bytes, length, ours);
        assert_int_equal(EVP_Digest(bytes, length, theirs, NULL, EVP_sha256(), NULL), 1);
        assert_memory_equal(ours, theirs, SHA256_SIZE);
    }
}

static void how_a_message_is_cut_does_not_matter(void **state)
{
    uint8_t bytes[200], whole[SHA256_SIZE], cut[SHA256_SIZE];
    struct sha256 sha;

    (void) state;
    fill(bytes, sizeof(bytes));
    sha256_bytes(bytes, sizeof(bytes), whole);
    for (size_t size = 1; size <= sizeof(bytes); size++) {
        sha256_init(&sha);
        for (size_t at = 0; at < sizeof(bytes); at += size)
            sha256_add(&sha, bytes + at, sizeof(bytes) - at < size ? sizeof(bytes) - at : size);
        sha256_add(&sha, NULL, 0);
        sha256_finish(&sha, cut);
        assert_memory_equal(cut, whole, SHA256_SIZE);
    }
}

/* Whatever this machine has, the code for machines without the instructions is tested too. */
static void blocks_come_out_the_same_with_and_without_instructions(void **state)
{
    uint32_t by_hand[SHA256_WORDS] = {1, 2, 3, 4, 5, 6, 7, 8}, by_instruction[SHA256_WORDS];
    uint8_t bytes[SHA256_BLOCK * 5];

    (void) state;
    if (!sha256_x86_is_there()) {
        (void) printf("# skip: this processor has no SHA instructions\n");
        skip();
    }
    fill(bytes, sizeof(bytes));
    memcpy(by_instruction, by_hand, sizeof(by_hand));
    for (size_t i = 0; i < 5; i++)
        add_block(by_hand, bytes + i * SHA256_BLOCK);
    sha256_x86_add_blocks(by_instruction, bytes, 5);
    assert_memory_equal(by_hand, by_instruction, sizeof(by_hand));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_hold),
        cmocka_unit_test(a_million_letters_in_pieces_hold_too),
        cmocka_unit_test(all_lengths_agree_with_openssl),
        cmocka_unit_test(how_a_message_is_cut_does_not_matter),
        cmocka_unit_test(blocks_come_out_the_same_with_and_without_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
