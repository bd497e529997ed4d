/* Any bytes as the options of a scan (first byte even) or as the paths of a read (odd), on a small
 * tree: never more than a refusal, and what comes out is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "keeper/layer/layer_format.h"
#include "keeper/tree/tree_read.h"
#include "keeper/tree/tree_scan.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define CONTENT "content"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int make_memory(const void *bytes, size_t length)
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    must(fd >= 0 && sys_file_write_full(fd, bytes, length) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* One folder with a file of that content, a link out of it and one back. It is read only, so one
 * does for all inputs. */
static struct {
    char path[32];
    int folder;
} view = {.folder = -EBADF};

static void remove_view(void)
{
    (void) sys_tree_empty(view.folder);
    (void) rmdir(view.path);
}

static void make_view(void)
{
    if (view.folder >= 0)
        return;
    (void) snprintf(view.path, sizeof(view.path), "/tmp/burrow-fuzz-XXXXXX");
    must(mkdtemp(view.path) != NULL);
    view.folder = sys_file_open(AT_FDCWD, view.path, O_RDONLY | O_DIRECTORY, 0);
    must(view.folder >= 0 && mkdirat(view.folder, "work", 0700) == 0);
    must(sys_file_replace(view.folder, "work/a", CONTENT, strlen(CONTENT), 0600) == 0);
    must(symlinkat("/etc", view.folder, "work/out") == 0);
    must(symlinkat("work", view.folder, "in") == 0);
    must(atexit(remove_view) == 0);
}

/* Frames up to the end, each with the only content there is. */
static void check_data(int data)
{
    uint8_t length[8];
    char content[sizeof(CONTENT)];

    must(lseek(data, 0, SEEK_SET) == 0);
    while (sys_file_read_full(data, length, sizeof(length)) == sizeof(length)) {
        if (layer_get_number(length, sizeof(length)) == TREE_READ_MISSING)
            continue;
        must(layer_get_number(length, sizeof(length)) == strlen(CONTENT));
        must(sys_file_read_full(data, content, strlen(CONTENT)) == (ssize_t) strlen(CONTENT));
        must(memcmp(content, CONTENT, strlen(CONTENT)) == 0);
    }
}

static void run(bool reads, const uint8_t *data, size_t size)
{
    AUTO(close) int input = make_memory(data, size), contents = make_memory("", 0);
    AUTO(close) int report = make_memory("", 0);
    AUTO(free) struct output *output = malloc(sizeof(*output));
    struct error err = ERROR_INIT;
    int result;

    must(output != NULL);
    output_init(output, report);
    result = reads ? tree_read(view.folder, input, contents, output, &err)
                   : tree_scan(view.folder, input, output, &err);
    must(output_flush(output) == 0);
    must((result < 0) == (err.code != ERR_NONE) && err.code != ERR_INTERNAL);
    if (result == 0)
        check_data(contents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    make_view();
    run(data[0] & 1, data + 1, size - 1);
    return 0;
}
