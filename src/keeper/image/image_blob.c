#include "keeper/image/image_blob.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/encoding/encode.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

#define INPUT_SIZE ((size_t) 128 * 1024)

/* 128 MiB: what zstd itself takes without being asked. */
#define WINDOW_LOG_MAX 27

/* zlib: gzip only. */
#define GZIP_WINDOW (15 + 16)

enum kind { KIND_UNKNOWN, KIND_PLAIN, KIND_GZIP, KIND_ZSTD };

struct image_blob {
    struct image_place place; /* what is not yet read of it */
    enum kind kind;
    struct sha256 raw, plain;
    uint8_t *input;    /* owned */
    size_t used, held; /* of the input */
    bool between;      /* gzip members or zstd frames: here it may end */
    bool begun;        /* there was a member */
    z_stream gzip;
    ZSTD_DStream *zstd; /* owned */
};

struct image_blob *image_blob_new(const struct image_place *place)
{
    struct image_blob *blob = mem_alloc(sizeof(*blob));

    blob->place = *place;
    blob->input = mem_alloc(INPUT_SIZE);
    sha256_init(&blob->raw);
    sha256_init(&blob->plain);
    return blob;
}

void image_blob_free(struct image_blob *blob)
{
    if (!blob)
        return;
    if (blob->kind == KIND_GZIP)
        (void) inflateEnd(&blob->gzip);
    (void) ZSTD_freeDStream(blob->zstd);
    free(blob->input);
    free(blob);
}

/* The next of what lies there, when all that is held is used. */
static int fill(struct image_blob *blob, struct error *err)
{
    size_t wanted = blob->place.size < INPUT_SIZE ? (size_t) blob->place.size : INPUT_SIZE;
    ssize_t got;

    if (blob->used < blob->held || !wanted)
        return 0;
    got = sys_file_pread_full(blob->place.file, blob->input, wanted, blob->place.offset);
    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read the image");
    if ((size_t) got != wanted)
        return error_set(err, ERR_INVALID, 0, "the image is cut off");
    sha256_add(&blob->raw, blob->input, wanted);
    blob->place.offset += (off_t) wanted;
    blob->place.size -= wanted;
    blob->used = 0;
    blob->held = wanted;
    return 0;
}

static int find_kind(struct image_blob *blob)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};

    blob->kind = KIND_PLAIN;
    blob->between = true;
    if (blob->held >= sizeof(gzip) && memcmp(blob->input, gzip, sizeof(gzip)) == 0) {
        if (inflateInit2(&blob->gzip, GZIP_WINDOW) != Z_OK)
            return -1;
        blob->kind = KIND_GZIP;
    } else if (blob->held >= sizeof(zstd) && memcmp(blob->input, zstd, sizeof(zstd)) == 0) {
        blob->kind = KIND_ZSTD;
        blob->zstd = ZSTD_createDStream();
        if (!blob->zstd ||
            ZSTD_isError(ZSTD_DCtx_setParameter(blob->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
            return -1;
    }
    return 0;
}

static size_t take_plain(struct image_blob *blob, uint8_t *bytes, size_t size)
{
    size_t count = blob->held - blob->used;

    count = count < size ? count : size;
    memcpy(bytes, blob->input + blob->used, count);
    blob->used += count;
    return count;
}

/* Each returns how many bytes came, perhaps none yet, or -1 for what is no such stream. */
static ssize_t take_gzip(struct image_blob *blob, uint8_t *bytes, size_t size)
{
    z_stream *gzip = &blob->gzip;
    int r;

    /* What follows the last member and is no other is left alone, as gunzip does. */
    if (blob->between && blob->begun && blob->input[blob->used] != 0x1f) {
        blob->used = blob->held;
        return 0;
    }
    blob->between = false;
    blob->begun = true;
    gzip->next_in = blob->input + blob->used;
    gzip->avail_in = (uInt) (blob->held - blob->used);
    gzip->next_out = bytes;
    gzip->avail_out = (uInt) size;
    r = inflate(gzip, Z_NO_FLUSH);
    blob->used = blob->held - gzip->avail_in;
    size -= gzip->avail_out;
    if (r == Z_STREAM_END) {
        blob->between = true;
        return inflateReset(gzip) == Z_OK ? (ssize_t) size : -1;
    }
    return r == Z_OK || r == Z_BUF_ERROR ? (ssize_t) size : -1;
}

static ssize_t take_zstd(struct image_blob *blob, uint8_t *bytes, size_t size)
{
    ZSTD_inBuffer from = {blob->input + blob->used, blob->held - blob->used, 0};
    ZSTD_outBuffer to = {bytes, size, 0};
    size_t r = ZSTD_decompressStream(blob->zstd, &to, &from);

    if (ZSTD_isError(r))
        return -1;
    blob->used += from.pos;
    blob->between = r == 0;
    return (ssize_t) to.pos;
}

static ssize_t take(struct image_blob *blob, uint8_t *bytes, size_t size)
{
    switch (blob->kind) {
    case KIND_GZIP:
        return take_gzip(blob, bytes, size);
    case KIND_ZSTD:
        return take_zstd(blob, bytes, size);
    default:
        return (ssize_t) take_plain(blob, bytes, size);
    }
}

ssize_t image_blob_read(struct image_blob *blob, void *ret_bytes, size_t size, struct error *err)
{
    ssize_t count = 0;

    while (count == 0) {
        if (fill(blob, err) < 0)
            return -1;
        if (blob->kind == KIND_UNKNOWN && find_kind(blob) < 0)
            return error_set(err, ERR_UNAVAILABLE, 0, "there is no memory to decompress the image");
        if (blob->used == blob->held && blob->between)
            return 0;
        count = take(blob, ret_bytes, size);
        if (count < 0 ||
            (count == 0 && blob->used == blob->held && !blob->place.size && !blob->between))
            return error_set(err, ERR_INVALID, 0, "a compressed layer is damaged or cut off");
    }
    sha256_add(&blob->plain, ret_bytes, (size_t) count);
    return count;
}

static void finish(struct sha256 *sha, char ret_text[static 2 * SHA256_SIZE + 1])
{
    uint8_t digest[SHA256_SIZE];

    sha256_finish(sha, digest);
    (void) hex_encode(digest, sizeof(digest), ret_text);
}

int image_blob_sums(struct image_blob *blob, char ret_raw[static 2 * SHA256_SIZE + 1],
                    char ret_plain[static 2 * SHA256_SIZE + 1], struct error *err)
{
    while (blob->place.size) {
        blob->used = blob->held;
        if (fill(blob, err) < 0)
            return -1;
    }
    finish(&blob->raw, ret_raw);
    finish(&blob->plain, ret_plain);
    return 0;
}
