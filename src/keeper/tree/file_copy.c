#include "keeper/tree/file_copy.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

#include "sys/file/sys_file.h"

/* The next piece that is no hole: from `*start` to `*end`. 1, 0 when only a hole is left, or
 * -errno. */
static int find_data(int source, off_t size, off_t *start, off_t *end)
{
    off_t data = lseek(source, *start, SEEK_DATA), hole;

    if (data < 0 && errno == ENXIO)
        return 0;
    if (data < 0 && errno == EINVAL) {
        /* A filesystem that knows no holes. */
        *end = size;
        return 1;
    }
    if (data < 0)
        return -errno;
    hole = lseek(source, data, SEEK_HOLE);
    if (hole < 0)
        return -errno;
    *start = data;
    *end = hole < size ? hole : size;
    return data < size;
}

static int copy_range(int source, off_t start, off_t end, int target, void *buffer,
                      size_t buffer_size)
{
    while (start < end) {
        size_t wanted =
            (uint64_t) (end - start) < buffer_size ? (size_t) (end - start) : buffer_size;
        ssize_t got = sys_file_pread_full(source, buffer, wanted, start);
        int result;

        if (got < 0)
            return (int) got;
        if (got == 0)
            return -EIO;
        result = sys_file_pwrite_full(target, buffer, (size_t) got, start);
        if (result < 0)
            return result;
        start += got;
    }
    return 0;
}

int file_copy(int source, uint64_t size, int target, void *buffer, size_t buffer_size,
              uint64_t *written)
{
    off_t start = 0, end = 0;

    /* First, so that a hole at the end is one. */
    if (ftruncate(target, (off_t) size) < 0)
        return -errno;
    while (start < (off_t) size) {
        int result = find_data(source, (off_t) size, &start, &end);

        if (result <= 0)
            return result;
        result = copy_range(source, start, end, target, buffer, buffer_size);
        if (result < 0)
            return result;
        *written += (uint64_t) (end - start);
        start = end;
    }
    return 0;
}
