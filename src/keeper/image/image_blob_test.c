#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "keeper/image/image_blob.h"
#include "sys/file/sys_file.h"

#define PLAIN_SIZE ((size_t) 700000)
#define ROOM       (PLAIN_SIZE * 2 + 4096)

static uint8_t plain[PLAIN_SIZE];

static int fill_plain(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t) (i * 7 % 251 + (i >> 12));
    return 0;
}

static size_t gzip(const uint8_t *from, size_t length, uint8_t *to)
{
    z_stream stream = {.next_in = (uint8_t *) (uintptr_t) from,
                       .avail_in = (uInt) length,
                       .next_out = to,
                       .avail_out = (uInt) ROOM};

    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    length = stream.total_out;
    (void) deflateEnd(&stream);
    return length;
}

static int make_file(const uint8_t *bytes, size_t length)
{
    int file = memfd_create("blob", MFD_CLOEXEC);

    assert_int_equal(sys_file_pwrite_full(file, "before", 6, 0), 0);
    assert_int_equal(sys_file_pwrite_full(file, bytes, length, 6), 0);
    assert_int_equal(sys_file_pwrite_full(file, "behind", 6, (off_t) length + 6), 0);
    return file;
}

/* How many bytes came, all of them right; -1: refused. */
static ssize_t read_all(const uint8_t *bytes, size_t length, char ret_plain[static 65])
{
    AUTO(close) int file = make_file(bytes, length);
    const struct image_place place = {file, 6, length};
    AUTO(image_blob) struct image_blob *blob = image_blob_new(&place);
    AUTO(free) uint8_t *out = mem_alloc(5000);
    struct error err = ERROR_INIT;
    char raw[65];
    size_t total = 0;
    ssize_t got;

    while ((got = image_blob_read(blob, out, 5000, &err)) > 0) {
        assert_true(total + (size_t) got <= sizeof(plain));
        assert_memory_equal(out, plain + total, (size_t) got);
        total += (size_t) got;
    }
    if (got < 0) {
        assert_int_equal(err.code, ERR_INVALID);
        return -1;
    }
    assert_int_equal(image_blob_sums(blob, raw, ret_plain, &err), 0);
    return (ssize_t) total;
}

static void every_compression_gives_the_same_bytes_and_the_same_sum(void **state)
{
    AUTO(free) uint8_t *packed = mem_alloc(ROOM);
    char first[65], sum[65];
    size_t length, half = sizeof(plain) / 2;

    (void) state;
    assert_int_equal(read_all(plain, sizeof(plain), first), sizeof(plain));
    length = gzip(plain, sizeof(plain), packed);
    assert_int_equal(read_all(packed, length, sum), sizeof(plain));
    assert_string_equal(sum, first);
    /* Two members, and zeros behind them. */
    length = gzip(plain, half, packed);
    length += gzip(plain + half, sizeof(plain) - half, packed + length);
    memset(packed + length, 0, 600);
    assert_int_equal(read_all(packed, length + 600, sum), sizeof(plain));
    assert_string_equal(sum, first);
    length = ZSTD_compress(packed, ROOM, plain, half, 1);
    length += ZSTD_compress(packed + length, ROOM - length, plain + half, sizeof(plain) - half, 1);
    assert_int_equal(read_all(packed, length, sum), sizeof(plain));
    assert_string_equal(sum, first);
}

static void what_is_cut_off_or_damaged_is_refused(void **state)
{
    AUTO(free) uint8_t *packed = mem_alloc(ROOM);
    size_t length;
    char sum[65];

    (void) state;
    length = gzip(plain, sizeof(plain), packed);
    assert_int_equal(read_all(packed, length - 1, sum), -1);
    assert_int_equal(read_all(packed, 20, sum), -1);
    packed[length - 6] ^= 1;
    assert_int_equal(read_all(packed, length, sum), -1);
    length = ZSTD_compress(packed, ROOM, plain, sizeof(plain), 1);
    assert_int_equal(read_all(packed, length - 1, sum), -1);
    assert_int_equal(read_all(packed, 4, sum), -1);
}

static void nothing_is_nothing_and_a_file_that_is_too_short_is_refused(void **state)
{
    AUTO(close) int file = make_file(plain, 100);
    const struct image_place place = {file, 50, 1000};
    AUTO(image_blob) struct image_blob *blob = image_blob_new(&place);
    struct error err = ERROR_INIT;
    uint8_t out[2000];
    char sum[65];

    (void) state;
    assert_int_equal(read_all(plain, 0, sum), 0);
    assert_string_equal(sum, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(image_blob_read(blob, out, sizeof(out), &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_compression_gives_the_same_bytes_and_the_same_sum),
        cmocka_unit_test(what_is_cut_off_or_damaged_is_refused),
        cmocka_unit_test(nothing_is_nothing_and_a_file_that_is_too_short_is_refused),
    };

    return cmocka_run_group_tests_name("image_blob", tests, fill_plain, NULL);
}
