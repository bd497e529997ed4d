/* Any bytes as an image: an error that has a reason, or a stream of whole blocks. The stream may
 * not become longer than STREAM_MAX: an image of a few bytes can promise gigabytes of zeros. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keeper/archive/archive_unpack.h"
#include "sys/file/sys_file.h"

#define STREAM_MAX ((off_t) 2 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* A file that cannot grow. */
static int new_stream(void)
{
    int fd = memfd_create("stream", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    must(fd >= 0 && ftruncate(fd, STREAM_MAX) == 0);
    must(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(close) int file = memfd_create("image", MFD_CLOEXEC);
    AUTO(close) int stream = new_stream();
    AUTO(close) int said = open("/dev/null", O_WRONLY | O_CLOEXEC);
    static struct output output;
    struct error err = ERROR_INIT;
    off_t length;

    must(file >= 0 && said >= 0 && sys_file_pwrite_full(file, data, size, 0) == 0);
    output_init(&output, said);
    if (archive_unpack(file, stream, &output, &err) < 0) {
        must(err.code != ERR_NONE && err.message[0]);
        return 0;
    }
    length = lseek(stream, 0, SEEK_CUR);
    must(length >= 1024 && length % 512 == 0);
    return 0;
}
