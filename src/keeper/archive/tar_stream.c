#include "keeper/archive/tar_stream.h"

#include <errno.h>

#include "sys/file/sys_file.h"

/* What is gathered before it is written, and more than ever is: a block of an archive and an entry
 * with its attributes. */
#define PIECE    ((size_t) 256 << 10)
#define TEXT_MAX ((size_t) 4 << 20)

void tar_stream_init(struct tar_stream *stream, int fd)
{
    *stream = (struct tar_stream){.fd = fd, .out = TEXT_INIT(TEXT_MAX)};
}

void tar_stream_done(struct tar_stream *stream)
{
    text_done(&stream->out);
}

static int flush_from(struct tar_stream *stream, size_t least)
{
    int result = 0;

    if (stream->out.overflowed)
        return -EOVERFLOW;
    if (stream->out.length < least)
        return 0;
    if (stream->out.length)
        result = sys_file_write_full(stream->fd, stream->out.data, stream->out.length);
    text_clear(&stream->out);
    return result;
}

int tar_stream_entry(struct tar_stream *stream, const struct tar_entry *entry)
{
    tar_header_append(&stream->out, entry);
    stream->left = stream->size = entry->size;
    return flush_from(stream, PIECE);
}

int tar_stream_bytes(struct tar_stream *stream, const void *bytes, size_t length)
{
    if (length > stream->left)
        return -EINVAL;
    text_append_bytes(&stream->out, bytes, length);
    stream->left -= length;
    if (!stream->left)
        tar_padding_append(&stream->out, stream->size);
    return flush_from(stream, PIECE);
}

int tar_stream_end(struct tar_stream *stream)
{
    tar_end_append(&stream->out);
    return flush_from(stream, 0);
}
