#include "objects/objects_transfer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file/sys_file.h"

/* How long a call that was cancelled may wait for its pipe all the same. */
#define STEP_MS 20

int objects_work_go_on(const struct objects_work *work, struct error *err)
{
    if (!atomic_load(work->cancelled))
        return 0;
    return error_set(err, ERR_CANCELLED, 0, "the call was cancelled");
}

/* Wait until something can be done with a pipe. */
static int wait_for(const struct objects_work *work, int fd, short events, struct error *err)
{
    int r;

    do {
        if (objects_work_go_on(work, err) < 0)
            return -1;
        r = sys_file_poll(fd, events, STEP_MS);
    } while (r == 0);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "wait for a pipe") : 0;
}

static ssize_t read_stream(const struct objects_work *work, int fd, char *buffer, size_t size,
                           struct error *err)
{
    size_t done = 0;

    while (done < size) {
        ssize_t count;

        if (wait_for(work, fd, POLLIN, err) < 0)
            return -1;
        count = read(fd, buffer + done, size - done);
        if (count == 0)
            break;
        if (count > 0)
            done += (size_t) count;
        else if (errno != EAGAIN && errno != EINTR)
            return error_set(err, error_code_from_errno(errno), errno, "read what is to be put");
    }
    return (ssize_t) done;
}

static ssize_t read_next(const struct objects_work *work, const struct objects_source *source,
                         void *buffer, size_t size, uint64_t offset, struct error *err)
{
    ssize_t count;

    if (objects_work_go_on(work, err) < 0)
        return -1;
    if (source->bytes) {
        size_t left = source->length - (size_t) offset;

        size = size < left ? size : left;
        memcpy(buffer, (const char *) source->bytes + offset, size);
        return (ssize_t) size;
    }
    if (source->is_stream)
        return read_stream(work, source->fd, buffer, size, err);
    count = sys_file_pread_full(source->fd, buffer, size, (off_t) offset);
    if (count < 0)
        return error_set(err, error_code_from_errno((int) count), (int) count,
                         "read what is to be put");
    return count;
}

ssize_t objects_source_read(const struct objects_work *work, const struct objects_source *source,
                            void *buffer, size_t size, uint64_t offset, struct error *err)
{
    ssize_t count = read_next(work, source, buffer, size, offset, err);

    if (count > 0)
        atomic_fetch_add(work->done_bytes, (uint_least64_t) count);
    return count;
}

/* What may be written without waiting behind our back: a pipe that is ready takes at least
 * PIPE_BUF, and one that does not block says itself how much. */
static size_t most_at_once(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && flags & O_NONBLOCK ? SSIZE_MAX : PIPE_BUF;
}

static int write_stream(const struct objects_work *work, int fd, const char *bytes, size_t length,
                        struct error *err)
{
    size_t most = most_at_once(fd);

    while (length > 0) {
        ssize_t count;

        if (wait_for(work, fd, POLLOUT, err) < 0)
            return -1;
        count = write(fd, bytes, length < most ? length : most);
        if (count > 0) {
            bytes += count;
            length -= (size_t) count;
        } else if (count < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            return error_set(err, ERR_CANCELLED, errno, "nobody reads what was asked for");
        } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return error_set(err, error_code_from_errno(errno), errno, "write what was asked for");
        }
    }
    return 0;
}

int objects_sink_write(const struct objects_work *work, const struct objects_sink *sink,
                       const void *bytes, size_t length, uint64_t offset, struct error *err)
{
    struct stat status;
    int r;

    if (objects_work_go_on(work, err) < 0)
        return -1;
    if (fstat(sink->fd, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at where to write");
    if (!S_ISREG(status.st_mode))
        return write_stream(work, sink->fd, bytes, length, err);
    r = sys_file_pwrite_sparse(sink->fd, bytes, length, (off_t) offset);
    if (r < 0)
        return error_set(err, r == -EFBIG ? ERR_NO_SPACE : error_code_from_errno(r), r,
                         "write what was asked for");
    return 0;
}
