/* Any bytes read as a layer, both as they are and wrapped in a right frame, so that mutations reach
 * the records: the reader ends in bounded memory, and what it hands out keeps the rules it states.
 *
 * The first byte of the input says which: odd, the rest is the stream; even, it is the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "keeper/layer/layer_reader.h"
#include "sys/file/sys_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void write_all(int fd, const void *bytes, size_t length)
{
    must(sys_file_write_full(fd, bytes, length) == 0);
}

/* The stream as a file whose sums are right: a trailer is put behind it when it ends in an E. */
static void write_wrapped(int fd, const uint8_t *stream, size_t size)
{
    size_t room = ZSTD_compressBound(size + SHA256_SIZE);
    AUTO(free) uint8_t *whole = mem_alloc(size + SHA256_SIZE), *frame = mem_alloc(room);
    uint8_t seal[LAYER_SEAL_SIZE];
    size_t length;

    memcpy(whole, stream, size);
    sha256_bytes(stream, size, whole + size);
    length = ZSTD_compress(frame, room, whole, size + SHA256_SIZE, 1);
    must(!ZSTD_isError(length));
    write_all(fd, frame, length);
    layer_put_number(seal, 4, LAYER_SEAL_MAGIC);
    layer_put_number(seal + 4, 4, SHA256_SIZE);
    sha256_bytes(frame, length, seal + 8);
    write_all(fd, seal, sizeof(seal));
}

static void check_name(const struct layer_record *record)
{
    bool is_top = record->depth == 0;

    if (record->kind == LAYER_LEAVE)
        return;
    must((*record->name == '\0') == is_top);
    must(!strchr(record->name, '/') && strlen(record->name) <= NAME_MAX);
    must(strcmp(record->name, ".") != 0 && strcmp(record->name, "..") != 0);
}

/* All pieces: in order, and within the file. */
static int read_pieces(struct layer_reader *reader, const struct layer_record *record,
                       struct error *err)
{
    struct layer_piece piece;
    uint64_t end = 0;
    int result;

    if (record->kind != LAYER_FILE)
        return 0;
    while ((result = layer_reader_piece(reader, &piece, err)) == 1) {
        must(piece.offset >= end && piece.length > 0 && piece.length <= LAYER_WINDOW);
        end = piece.offset + piece.length;
        must(end <= record->size && end > piece.offset);
    }
    return result;
}

static int read_attributes(struct layer_reader *reader, const struct layer_record *record,
                           struct error *err)
{
    char last[UINT8_MAX + 1] = "";
    struct layer_attribute attribute;
    int result;

    if (record->kind == LAYER_ENTER || record->kind == LAYER_HARD_LINK ||
        record->kind == LAYER_REMOVED)
        return 0;
    while ((result = layer_reader_attribute(reader, &attribute, err)) == 1) {
        must(strcmp(attribute.name, last) > 0 && attribute.length <= LAYER_ATTRIBUTE_MAX);
        memcpy(last, attribute.name, sizeof(last));
    }
    return result;
}

static int read_all(struct layer_reader *reader, struct error *err)
{
    struct layer_record record;
    size_t depth = 0;
    bool is_delta;

    if (layer_reader_begin(reader, &is_delta, err) < 0)
        return -1;
    for (;;) {
        if (layer_reader_next(reader, &record, err) < 0)
            return -1;
        if (record.kind == LAYER_END) {
            must(depth == 0);
            return 0;
        }
        must(is_delta || (record.kind != LAYER_REMOVED && record.kind != LAYER_CHANGED));
        depth -= record.kind == LAYER_LEAVE;
        must(record.depth == depth);
        check_name(&record);
        depth += record.kind == LAYER_ENTER;
        if (read_pieces(reader, &record, err) < 0 || read_attributes(reader, &record, err) < 0)
            return -1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(close) int fd = -EBADF;
    AUTO(layer_reader) struct layer_reader *reader = NULL;
    struct error err = ERROR_INIT;
    int result;

    if (size == 0)
        return 0;
    fd = memfd_create("layer", MFD_CLOEXEC);
    must(fd >= 0);
    if (data[0] & 1)
        write_wrapped(fd, data + 1, size - 1);
    else
        write_all(fd, data + 1, size - 1);
    must(lseek(fd, 0, SEEK_SET) == 0);
    reader = layer_reader_new(fd);
    result = read_all(reader, &err);
    must((result < 0) == (err.code != ERR_NONE));
    if (result < 0)
        must(err.code == ERR_INVALID && *err.message);
    return 0;
}
