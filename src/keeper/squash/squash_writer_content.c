#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "keeper/squash/squash_writer_internal.h"
#include "sys/file/sys_file.h"

struct source {
    struct squash_writer *writer;
    const struct tree_step *step;
    int fd; /* borrowed */
    bool has_holes;
    uint64_t hole_end; /* up to here there is nothing */
};

static int read_error(const struct source *source, int system, struct error *err)
{
    return tree_step_error(source->step, system, "read", err);
}

static int changed(const struct tree_step *step, struct error *err)
{
    (void) tree_step_error(step, 0, "archive", err);
    err->code = ERR_CONFLICT;
    return error_wrap(err, "it changed meanwhile");
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
           one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static int check_same(const struct source *source, struct error *err)
{
    struct stat status;

    if (fstat(source->fd, &status) < 0)
        return read_error(source, errno, err);
    return is_same(&status, &source->step->status) ? 0 : changed(source->step, err);
}

static int read_at(const struct source *source, uint8_t *buffer, size_t length, uint64_t offset,
                   struct error *err)
{
    ssize_t got = sys_file_pread_full(source->fd, buffer, length, (off_t) offset);

    if (got < 0)
        return read_error(source, (int) got, err);
    return (size_t) got == length ? 0 : changed(source->step, err);
}

/* --- fragments ------------------------------------------------------------------------------ */

/* Blocks are given away as they are, in order; a hole never is. */
static int submit(struct squash_writer *writer, struct squash_node *node, const uint8_t *bytes,
                  size_t length, struct error *err)
{
    int result = sqfs_block_processor_submit_block(
        writer->processor, node, SQFS_BLK_IGNORE_SPARSE | SQFS_BLK_DONT_HASH, bytes, length);

    if (result == 0 && writer->output.error)
        result = SQFS_ERROR_IO;
    return result < 0 ? squash_library_error(result, &writer->output, err) : 0;
}

int squash_writer_flush_fragment(struct squash_writer *writer, struct error *err)
{
    if (writer->fragment_used == 0)
        return 0;
    if (submit(writer, NULL, writer->fragment, writer->fragment_used, err) < 0)
        return -1;
    writer->fragment_used = 0;
    writer->fragment_count++;
    return 0;
}

static int read_fragment(struct source *source, struct squash_node *node, struct error *err)
{
    struct squash_writer *writer = source->writer;
    size_t size = (size_t) source->step->status.st_size;

    if (size > SQUASH_BLOCK_SIZE - writer->fragment_used &&
        squash_writer_flush_fragment(writer, err) < 0)
        return -1;
    node->inode->data.file_ext.fragment_idx = writer->fragment_count;
    node->inode->data.file_ext.fragment_offset = (uint32_t) writer->fragment_used;
    if (read_at(source, writer->fragment + writer->fragment_used, size, 0, err) < 0)
        return -1;
    writer->fragment_used += size;
    return 0;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Whether the bytes are in a hole. Filesystems that do not know say no. */
static bool is_hole(struct source *source, uint64_t offset, size_t length)
{
    off_t data;

    if (!source->has_holes)
        return false;
    if (offset + length <= source->hole_end)
        return true;
    data = lseek(source->fd, (off_t) offset, SEEK_DATA);
    if (data >= 0)
        source->hole_end = (uint64_t) data;
    else if (errno == ENXIO) /* nothing but a hole up to the end */
        source->hole_end = UINT64_MAX;
    return offset + length <= source->hole_end;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static int read_blocks(struct source *source, struct squash_node *node, struct error *err)
{
    struct squash_writer *writer = source->writer;
    sqfs_inode_generic_t *inode = node->inode;
    uint64_t size = inode->data.file_ext.file_size;
    size_t block = 0;

    for (uint64_t at = 0; at < size; at += SQUASH_BLOCK_SIZE, block++) {
        size_t length = size - at < SQUASH_BLOCK_SIZE ? (size_t) (size - at) : SQUASH_BLOCK_SIZE;
        bool is_sparse = is_hole(source, at, length);

        if (!is_sparse && read_at(source, writer->buffer, length, at, err) < 0)
            return -1;
        if (is_sparse || is_zero(writer->buffer, length)) {
            inode->data.file_ext.sparse += length;
            continue;
        }
        inode->extra[block] = SQUASH_NONE; /* no hole; its size comes when it is packed */
        if (submit(writer, node, writer->buffer, length, err) < 0)
            return -1;
    }
    return 0;
}

/* --- all ------------------------------------------------------------------------------------ */

int squash_writer_content(struct squash_writer *writer, const struct tree_step *step,
                          struct squash_node *node, struct error *err)
{
    AUTO(close)
    int fd =
        sys_file_open(step->folder, step->at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    struct source source = {.writer = writer, .step = step, .fd = fd};
    uint64_t size = (uint64_t) step->status.st_size;
    int result;

    if (fd < 0)
        return tree_step_error(step, fd, "open", err);
    if (check_same(&source, err) < 0)
        return -1;
    source.has_holes = (uint64_t) step->status.st_blocks * 512 < size;
    if (size == 0)
        return 0;
    if (size < SQUASH_BLOCK_SIZE)
        result = read_fragment(&source, node, err);
    else
        result = read_blocks(&source, node, err);
    if (result < 0)
        return -1;
    writer->totals.bytes += size;
    return check_same(&source, err);
}
