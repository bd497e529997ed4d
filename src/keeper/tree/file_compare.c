#include "keeper/tree/file_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "sys/file/sys_extents.h"
#include "sys/file/sys_file.h"

#define PIECE_SIZE ((size_t) 256 << 10)

/* Up to here reading takes no longer than asking where it lies. */
#define SMALL_SIZE 16384

void file_compare_init(struct file_compare *compare, int newer, int older)
{
    *compare = (struct file_compare){
        .has_extents = sys_extents_comparable(newer, older),
        .newer = mem_alloc(PIECE_SIZE),
        .older = mem_alloc(PIECE_SIZE),
    };
}

void file_compare_done(struct file_compare *compare)
{
    free(compare->newer);
    free(compare->older);
    *compare = (struct file_compare){0};
}

static int open_file(int folder, const char *name, uint64_t size)
{
    AUTO(close) int fd = sys_file_open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat status;

    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || (uint64_t) status.st_size != size)
        return -ESTALE;
    return TAKE_FD(fd);
}

/* Where the next content begins, or `size` when only a hole is left. Of what has no holes: `at`. */
static int64_t next_data(int fd, int64_t at, int64_t size)
{
    int64_t data = lseek(fd, at, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? size : errno == EINVAL ? at : -errno;
    return data < size ? data : size;
}

static int compare_piece(struct file_compare *compare, int newer, int older, int64_t at,
                         size_t length)
{
    ssize_t left = sys_file_pread_full(newer, compare->newer, length, at);
    ssize_t right = sys_file_pread_full(older, compare->older, length, at);

    if (left < 0 || right < 0)
        return (int) (left < 0 ? left : right);
    if (left != (ssize_t) length || right != (ssize_t) length)
        return -ESTALE;
    return memcmp(compare->newer, compare->older, length) == 0;
}

static int compare_content(struct file_compare *compare, int newer, int older, int64_t size)
{
    int64_t at = 0;

    while (at < size) {
        int64_t left = next_data(newer, at, size), right = next_data(older, at, size);
        size_t length;
        int result;

        if (left < 0 || right < 0)
            return (int) (left < 0 ? left : right);
        at = left < right ? left : right;
        length = size - at < (int64_t) PIECE_SIZE ? (size_t) (size - at) : PIECE_SIZE;
        result = length ? compare_piece(compare, newer, older, at, length) : 1;
        if (result != 1)
            return result;
        at += (int64_t) length;
    }
    return 1;
}

int file_compare(struct file_compare *compare, int newer, const char *newer_name, int older,
                 const char *older_name, uint64_t size)
{
    AUTO(close) int left = open_file(newer, newer_name, size);
    AUTO(close) int right = left < 0 ? -EBADF : open_file(older, older_name, size);

    if (left < 0 || right < 0)
        return left < 0 ? left : right;
    if (size == 0)
        return 1;
    /* A place that cannot be told is no failure: then the content tells. */
    if (compare->has_extents && size > SMALL_SIZE && sys_extents_same(left, right) == 1)
        return 1;
    return compare_content(compare, left, right, (int64_t) size);
}
