#include "keeper/archive/tar_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

#define BLOCK       ((size_t) 512)
#define BUFFER_SIZE ((size_t) 256 << 10)
#define RECORDS_MAX ((size_t) 128 << 10)

/* The largest numbers in seven and eleven octal digits. */
#define SMALL_MAX UINT64_C(07777777)
#define LARGE_MAX UINT64_C(077777777777)

/* Offsets in a header block. */
enum {
    AT_NAME = 0,
    AT_MODE = 100,
    AT_UID = 108,
    AT_GID = 116,
    AT_SIZE = 124,
    AT_MTIME = 136,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_TARGET = 157,
    AT_MAGIC = 257,
};

#define TEXT_SIZE 100 /* of a name or target */

void tar_stream_init(struct tar_stream *stream, int fd)
{
    *stream = (struct tar_stream){
        .fd = fd, .records = TEXT_INIT(RECORDS_MAX), .buffer = mem_alloc(BUFFER_SIZE)};
}

void tar_stream_done(struct tar_stream *stream)
{
    text_done(&stream->records);
    free(stream->buffer);
    stream->buffer = NULL;
}

static int flush(struct tar_stream *stream)
{
    int result = sys_file_write_full(stream->fd, stream->buffer, stream->used);

    stream->used = 0;
    return result;
}

static int put(struct tar_stream *stream, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    while (length) {
        size_t room = BUFFER_SIZE - stream->used;
        size_t part = length < room ? length : room;
        int result = 0;

        memcpy(stream->buffer + stream->used, at, part);
        stream->used += part;
        at += part;
        length -= part;
        if (stream->used == BUFFER_SIZE)
            result = flush(stream);
        if (result < 0)
            return result;
    }
    return 0;
}

static size_t padding_of(uint64_t size)
{
    return (size_t) (-size % BLOCK);
}

static int pad(struct tar_stream *stream, size_t length)
{
    static const uint8_t zeros[2 * BLOCK];

    return put(stream, zeros, length);
}

/* --- headers -------------------------------------------------------------------------------- */

static void put_octal(uint8_t *field, size_t digits, uint64_t number)
{
    for (size_t i = digits; i-- > 0; number >>= 3)
        field[i] = (uint8_t) ('0' + (number & 7));
}

static void put_text(uint8_t *field, const char *text)
{
    size_t length = strlen(text);

    memcpy(field, text, length < TEXT_SIZE ? length : TEXT_SIZE);
}

/* With the sum of all bytes, in which the sum itself counts as eight spaces. */
static int put_block(struct tar_stream *stream, uint8_t block[static BLOCK])
{
    unsigned int sum = 0;

    memcpy(block + AT_MAGIC,
           "ustar\0"
           "00",
           8);
    memset(block + AT_SUM, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += block[i];
    put_octal(block + AT_SUM, 6, sum);
    block[AT_SUM + 6] = '\0';
    return put(stream, block, BLOCK);
}

static void fill_block(uint8_t block[static BLOCK], const struct tar_stream_entry *entry)
{
    memset(block, 0, BLOCK);
    put_text(block + AT_NAME, entry->path);
    put_text(block + AT_TARGET, entry->target);
    put_octal(block + AT_MODE, 7, entry->mode);
    put_octal(block + AT_UID, 7, entry->uid > SMALL_MAX ? 0 : entry->uid);
    put_octal(block + AT_GID, 7, entry->gid > SMALL_MAX ? 0 : entry->gid);
    put_octal(block + AT_SIZE, 11, entry->size > LARGE_MAX ? 0 : entry->size);
    put_octal(block + AT_MTIME, 11, entry->mtime);
    block[AT_TYPE] = (uint8_t) entry->type;
}

/* "25 mtime=1234567890.123\n": the length counts itself. */
void tar_stream_record(struct tar_stream *stream, const char *key, const void *value, size_t length)
{
    size_t rest = strlen(key) + length + 3;
    size_t total = rest + 1;
    char digits[24];

    while ((size_t) snprintf(digits, sizeof(digits), "%zu", total) + rest != total)
        total = rest + strlen(digits);
    text_append(&stream->records, digits);
    text_append_char(&stream->records, ' ');
    text_append(&stream->records, key);
    text_append_char(&stream->records, '=');
    text_append_bytes(&stream->records, value, length);
    text_append_char(&stream->records, '\n');
}

size_t tar_stream_records(const struct tar_stream *stream)
{
    return stream->records.length;
}

static void add_number(struct tar_stream *stream, const char *key, uint64_t number,
                       uint64_t maximum)
{
    char digits[24];

    if (number <= maximum)
        return;
    (void) snprintf(digits, sizeof(digits), "%" PRIu64, number);
    tar_stream_record(stream, key, digits, strlen(digits));
}

static void add_text(struct tar_stream *stream, const char *key, const char *text)
{
    if (strlen(text) > TEXT_SIZE)
        tar_stream_record(stream, key, text, strlen(text));
}

static int put_records(struct tar_stream *stream)
{
    const struct tar_stream_entry entry = {.type = 'x',
                                           .path = "PaxHeaders/entry",
                                           .target = "",
                                           .size = stream->records.length,
                                           .mode = 0644};
    uint8_t block[BLOCK];
    int result;

    fill_block(block, &entry);
    result = put_block(stream, block);
    if (result == 0)
        result = put(stream, stream->records.data, stream->records.length);
    if (result == 0)
        result = pad(stream, padding_of(stream->records.length));
    text_clear(&stream->records);
    return result;
}

int tar_stream_entry(struct tar_stream *stream, const struct tar_stream_entry *entry)
{
    uint8_t block[BLOCK];
    int result = 0;

    add_text(stream, "path", entry->path);
    add_text(stream, "linkpath", entry->target);
    add_number(stream, "size", entry->size, LARGE_MAX);
    add_number(stream, "uid", entry->uid, SMALL_MAX);
    add_number(stream, "gid", entry->gid, SMALL_MAX);
    if (stream->records.overflowed)
        return -EOVERFLOW;
    if (stream->records.length)
        result = put_records(stream);
    fill_block(block, entry);
    stream->left = entry->size;
    stream->padding = padding_of(entry->size);
    return result < 0 ? result : put_block(stream, block);
}

int tar_stream_bytes(struct tar_stream *stream, const void *bytes, size_t length)
{
    int result = length > stream->left ? -EINVAL : put(stream, bytes, length);

    if (result < 0)
        return result;
    stream->left -= length;
    return stream->left ? 0 : pad(stream, stream->padding);
}

int tar_stream_end(struct tar_stream *stream)
{
    int result = pad(stream, 2 * BLOCK);

    return result < 0 ? result : flush(stream);
}
