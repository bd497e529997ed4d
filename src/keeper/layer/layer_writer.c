#include "keeper/layer/layer_writer.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

/* The fastest level that is worth its name: faster than most disks and networks. */
#define LEVEL 1

#define GATHER_SIZE     ((size_t) 128 << 10)
#define COMPRESSED_SIZE ((size_t) 256 << 10)

struct layer_writer {
    int fd;          /* borrowed */
    int error;       /* 0, or the first -errno */
    ZSTD_CCtx *zstd; /* owned */
    struct sha256 stream, file;
    uint64_t bytes, size, records;
    size_t gathered, compressed;
    uint8_t gather[GATHER_SIZE];  /* small fields, on their way to zstd */
    uint8_t out[COMPRESSED_SIZE]; /* on its way to fd */
};

static void flush_out(struct layer_writer *writer)
{
    sha256_add(&writer->file, writer->out, writer->compressed);
    writer->size += writer->compressed;
    if (!writer->error && writer->compressed)
        writer->error = sys_file_write_full(writer->fd, writer->out, writer->compressed);
    writer->compressed = 0;
}

/* Everything of `bytes` into the frame, and with `end` the end of the frame too. */
static void compress(struct layer_writer *writer, const void *bytes, size_t length,
                     ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = {bytes, length, 0};
    size_t left = 1;

    while (!writer->error && (end == ZSTD_e_end ? left > 0 : in.pos < in.size)) {
        ZSTD_outBuffer out = {writer->out, sizeof(writer->out), writer->compressed};

        left = ZSTD_compressStream2(writer->zstd, &out, &in, end);
        if (ZSTD_isError(left)) {
            writer->error = -EIO;
            return;
        }
        writer->compressed = out.pos;
        if (writer->compressed == sizeof(writer->out))
            flush_out(writer);
    }
}

/* Bytes of the stream, as they are. */
static void put(struct layer_writer *writer, const void *bytes, size_t length)
{
    sha256_add(&writer->stream, bytes, length);
    writer->bytes += length;
    compress(writer, bytes, length, ZSTD_e_continue);
}

static void flush_gathered(struct layer_writer *writer)
{
    size_t length = writer->gathered;

    writer->gathered = 0;
    if (length)
        put(writer, writer->gather, length);
}

void layer_write_bytes(struct layer_writer *writer, const void *bytes, size_t length)
{
    if (length > sizeof(writer->gather) - writer->gathered)
        flush_gathered(writer);
    if (length > sizeof(writer->gather)) {
        put(writer, bytes, length);
        return;
    }
    if (length)
        memcpy(writer->gather + writer->gathered, bytes, length);
    writer->gathered += length;
}

void layer_write_number(struct layer_writer *writer, size_t size, uint64_t number)
{
    uint8_t bytes[8];

    layer_put_number(bytes, size, number);
    layer_write_bytes(writer, bytes, size);
}

void layer_write_record(struct layer_writer *writer, enum layer_kind kind, const char *name)
{
    layer_write_number(writer, 1, (uint64_t) kind);
    if (name) {
        size_t length = strlen(name);

        layer_write_number(writer, 1, length);
        layer_write_bytes(writer, name, length);
    }
    writer->records++;
}

void layer_write_status(struct layer_writer *writer, const struct stat *status)
{
    layer_write_number(writer, 2, status->st_mode & 07777);
    layer_write_number(writer, 4, status->st_uid);
    layer_write_number(writer, 4, status->st_gid);
    layer_write_number(writer, 8, (uint64_t) status->st_mtim.tv_sec);
    layer_write_number(writer, 4, (uint64_t) status->st_mtim.tv_nsec);
}

int layer_writer_error(const struct layer_writer *writer)
{
    return writer->error;
}

struct layer_writer *layer_writer_new(int fd, bool is_delta)
{
    struct layer_writer *writer = mem_alloc(sizeof(*writer));

    writer->fd = fd;
    writer->zstd = ZSTD_createCCtx();
    if (!writer->zstd ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
        writer->error = -ENOMEM;
    sha256_init(&writer->stream);
    sha256_init(&writer->file);
    layer_write_bytes(writer, LAYER_MAGIC, LAYER_MAGIC_SIZE);
    layer_write_number(writer, 4, LAYER_VERSION);
    layer_write_number(writer, 4, is_delta ? LAYER_DELTA : 0);
    return writer;
}

void layer_writer_free(struct layer_writer *writer)
{
    if (!writer)
        return;
    (void) ZSTD_freeCCtx(writer->zstd);
    free(writer);
}

/* The sum of the frame that just ended, as a frame of its own. */
static void write_seal(struct layer_writer *writer)
{
    struct sha256 sum = writer->file;
    uint8_t seal[LAYER_SEAL_SIZE];

    layer_put_number(seal, 4, LAYER_SEAL_MAGIC);
    layer_put_number(seal + 4, 4, SHA256_SIZE);
    sha256_finish(&sum, seal + 8);
    memcpy(writer->out, seal, sizeof(seal));
    writer->compressed = sizeof(seal);
    flush_out(writer);
}

int layer_writer_finish(struct layer_writer *writer, struct layer_sums *ret_sums)
{
    struct layer_sums sums = {.records = writer->records};
    struct sha256 id;

    layer_write_record(writer, LAYER_END, NULL);
    layer_write_number(writer, 8, sums.records);
    layer_write_number(writer, 8, writer->bytes + writer->gathered);
    flush_gathered(writer);
    id = writer->stream;
    sha256_finish(&id, sums.id);
    put(writer, sums.id, sizeof(sums.id));
    compress(writer, NULL, 0, ZSTD_e_end);
    flush_out(writer);
    write_seal(writer);
    sha256_finish(&writer->file, sums.sha256);
    sums.bytes = writer->bytes;
    sums.size = writer->size;
    if (!writer->error)
        *ret_sums = sums;
    return writer->error;
}
