#include "keeper/layer/layer_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

#define FILE_BUFFER_SIZE   ((size_t) 256 << 10)
#define STREAM_BUFFER_SIZE ((size_t) 256 << 10)

struct layer_input {
    int fd;          /* borrowed */
    ZSTD_DCtx *zstd; /* owned */
    struct sha256 stream, file;
    uint64_t position; /* in the stream, of who reads it */
    uint64_t size;     /* of the file, as far as zstd has taken it */
    bool has_ended;    /* the frame */
    bool is_full;      /* zstd may hold back what did not fit in the stream's buffer */
    size_t in_at, in_end;
    size_t out_at, out_end;
    size_t summed; /* of the stream's buffer, in `stream` already */
    uint8_t in[FILE_BUFFER_SIZE];
    uint8_t out[STREAM_BUFFER_SIZE];
};

struct layer_input *layer_input_new(int fd)
{
    struct layer_input *input = mem_alloc(sizeof(*input));

    input->fd = fd;
    input->zstd = ZSTD_createDCtx();
    if (input->zstd)
        (void) ZSTD_DCtx_setParameter(input->zstd, ZSTD_d_windowLogMax, LAYER_WINDOW_LOG_MAX);
    sha256_init(&input->stream);
    sha256_init(&input->file);
    return input;
}

void layer_input_free(struct layer_input *input)
{
    if (!input)
        return;
    (void) ZSTD_freeDCtx(input->zstd);
    free(input);
}

static ssize_t read_some(int fd, void *buffer, size_t size)
{
    ssize_t got;

    do
        got = read(fd, buffer, size);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* More of the file; -1 at its end. */
static int fill_in(struct layer_input *input, struct error *err)
{
    ssize_t got = read_some(input->fd, input->in, sizeof(input->in));

    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read the layer");
    if (got == 0)
        return error_set(err, ERR_INVALID, 0, "the layer is cut off");
    input->in_at = 0;
    input->in_end = (size_t) got;
    return 0;
}

static void sum_stream(struct layer_input *input)
{
    sha256_add(&input->stream, input->out + input->summed, input->out_at - input->summed);
    input->summed = input->out_at;
}

static int decompress(struct layer_input *input, struct error *err)
{
    ZSTD_inBuffer in = {input->in, input->in_end, input->in_at};
    ZSTD_outBuffer out = {input->out, sizeof(input->out), 0};
    size_t left = ZSTD_decompressStream(input->zstd, &out, &in);

    if (ZSTD_isError(left))
        return error_set(err, ERR_INVALID, 0, "the layer is damaged: %s", ZSTD_getErrorName(left));
    sha256_add(&input->file, input->in + input->in_at, in.pos - input->in_at);
    input->size += in.pos - input->in_at;
    input->in_at = in.pos;
    input->out_at = input->summed = 0;
    input->out_end = out.pos;
    input->has_ended = left == 0;
    input->is_full = out.pos == out.size;
    return 0;
}

/* More of the stream: at least a byte, unless the frame ends. */
static int fill_out(struct layer_input *input, struct error *err)
{
    if (!input->zstd)
        return error_set(err, ERR_UNAVAILABLE, ENOMEM, "read the layer");
    sum_stream(input);
    while (input->out_at == input->out_end && !input->has_ended) {
        if (input->in_at == input->in_end && !input->is_full && fill_in(input, err) < 0)
            return -1;
        if (decompress(input, err) < 0)
            return -1;
    }
    return 0;
}

int layer_input_read(struct layer_input *input, void *bytes, size_t length, struct error *err)
{
    uint8_t *at = bytes;

    while (length) {
        size_t there = input->out_end - input->out_at;
        size_t part = there < length ? there : length;

        if (there == 0) {
            if (fill_out(input, err) < 0)
                return -1;
            if (input->out_at == input->out_end)
                return error_set(err, ERR_INVALID, 0, "the layer ends too early");
            continue;
        }
        memcpy(at, input->out + input->out_at, part);
        input->out_at += part;
        input->position += part;
        at += part;
        length -= part;
    }
    return 0;
}

uint64_t layer_input_position(const struct layer_input *input)
{
    return input->position;
}

void layer_input_digest(struct layer_input *input, uint8_t ret_digest[static SHA256_SIZE])
{
    struct sha256 sum;

    sum_stream(input);
    sum = input->stream;
    sha256_finish(&sum, ret_digest);
}

/* The file's next bytes as they are, `length` of them or all that are left. */
static int read_plain(struct layer_input *input, uint8_t *bytes, size_t length, size_t *ret_length,
                      struct error *err)
{
    size_t there = input->in_end - input->in_at;
    ssize_t got;

    there = there < length ? there : length;
    memcpy(bytes, input->in + input->in_at, there);
    input->in_at += there;
    got = sys_file_read_full(input->fd, bytes + there, length - there);
    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read the layer");
    *ret_length = there + (size_t) got;
    return 0;
}

int layer_input_finish(struct layer_input *input, struct layer_sums *sums, struct error *err)
{
    uint8_t told[LAYER_SEAL_SIZE], seal[LAYER_SEAL_SIZE];
    struct sha256 frame;
    size_t length;

    if (fill_out(input, err) < 0)
        return -1;
    if (input->out_at < input->out_end)
        return error_set(err, ERR_INVALID, 0, "something follows the end of the layer");
    if (read_plain(input, told, sizeof(told), &length, err) < 0)
        return -1;
    frame = input->file;
    layer_put_number(seal, 4, LAYER_SEAL_MAGIC);
    layer_put_number(seal + 4, 4, SHA256_SIZE);
    sha256_finish(&frame, seal + 8);
    if (length != sizeof(seal) || memcmp(seal, told, sizeof(seal)) != 0)
        return error_set(err, ERR_INVALID, 0, "the layer is damaged: its sum is wrong");
    sha256_add(&input->file, seal, sizeof(seal));
    sha256_finish(&input->file, sums->sha256);
    sums->size = input->size + sizeof(seal);
    return 0;
}

int layer_input_again(struct layer_input *input, struct error *err)
{
    ssize_t got = 0;

    if (input->in_at == input->in_end) {
        got = read_some(input->fd, input->in, sizeof(input->in));
        if (got < 0)
            return error_set(err, error_code_from_errno((int) got), (int) got, "read the layer");
        input->in_at = 0;
        input->in_end = (size_t) got;
    }
    if (input->in_at == input->in_end)
        return 0;
    (void) ZSTD_DCtx_reset(input->zstd, ZSTD_reset_session_only);
    sha256_init(&input->stream);
    sha256_init(&input->file);
    input->position = input->size = 0;
    input->has_ended = input->is_full = false;
    input->out_at = input->out_end = input->summed = 0;
    return 1;
}
