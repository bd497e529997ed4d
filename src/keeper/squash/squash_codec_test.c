#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "keeper/squash/squash_codec.h"
/* After the headers it needs. */
#include <cmocka.h>

#define SIZE ((size_t) 128 << 10)

static const char *const names[] = {"lz4", "zstd", "gzip", "xz"};

static void fill_text(uint8_t *bytes)
{
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t) ("what repeats itself becomes small "[i * i % 34] + i / 5000 % 3);
}

static void fill_noise(uint8_t *bytes)
{
    uint64_t state = 88172645463325252u;

    for (size_t i = 0; i < SIZE; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (uint8_t) (state >> 32);
    }
}

static struct squash_codec *codec_for(const char *name, int level)
{
    return squash_codec_new(squash_codec_find(name)->compression, level, SIZE);
}

static void what_was_packed_is_unpacked(void **state)
{
    static uint8_t bytes[SIZE], packed[SIZE], back[SIZE];

    (void) state;
    fill_text(bytes);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct squash_codec_name *name = squash_codec_find(names[i]);

        for (int level = name->level_min; level <= name->level_max; level += 4) {
            AUTO(squash_codec) struct squash_codec *codec = codec_for(names[i], level);

            for (size_t length = SIZE; length > 1000; length /= 3) {
                size_t size = squash_codec_pack(codec, bytes, length, packed);

                assert_in_range(size, 1, length - 1);
                memset(back, 0, SIZE);
                assert_int_equal(squash_codec_unpack(codec, packed, size, back, SIZE), length);
                assert_memory_equal(back, bytes, length);
                /* Room for exactly that much is enough, and one byte less is not. */
                assert_int_equal(squash_codec_unpack(codec, packed, size, back, length), length);
                assert_int_equal(squash_codec_unpack(codec, packed, size, back, length - 1), -EIO);
            }
        }
    }
}

static void what_does_not_become_smaller_is_said_so(void **state)
{
    static uint8_t bytes[SIZE], packed[SIZE];

    (void) state;
    fill_noise(bytes);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        AUTO(squash_codec) struct squash_codec *codec = codec_for(names[i], 1);

        assert_int_equal(squash_codec_pack(codec, bytes, SIZE, packed), 0);
        assert_int_equal(squash_codec_pack(codec, bytes, 1, packed), 0);
        assert_int_equal(squash_codec_pack(codec, bytes, 2, packed), 0);
    }
}

static void noise_cannot_be_unpacked(void **state)
{
    static uint8_t bytes[SIZE], back[SIZE];

    (void) state;
    fill_noise(bytes);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        AUTO(squash_codec) struct squash_codec *codec = codec_for(names[i], 1);

        for (size_t at = 0; at < 64; at++)
            assert_true(squash_codec_unpack(codec, bytes + at, 4000, back, SIZE) < 0);
        assert_true(squash_codec_unpack(codec, bytes, 0, back, SIZE) <= 0);
    }
}

static void names_and_numbers_lead_to_the_same(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct squash_codec_name *name = squash_codec_find(names[i]);

        assert_ptr_equal(squash_codec_of(name->compression), name);
        assert_in_range(name->level_default, name->level_min, name->level_max);
    }
    assert_null(squash_codec_find("lzo"));
    assert_null(squash_codec_of(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_unpacked),
        cmocka_unit_test(what_does_not_become_smaller_is_said_so),
        cmocka_unit_test(noise_cannot_be_unpacked),
        cmocka_unit_test(names_and_numbers_lead_to_the_same),
    };

    return cmocka_run_group_tests_name("squash_codec", tests, NULL, NULL);
}
