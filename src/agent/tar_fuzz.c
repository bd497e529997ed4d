/* Any bytes, in any pieces, into a folder: nothing outside of it is touched, no link in it leads
 * out, no temporary file stays, and failures have a sentence. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tar_extract.h"
#include "base/tar_header.h"
#include "sys/sys_file.h"
#include "sys/sys_tree.h"

#define OUR_NAMES ".burrow-" /* how temporary files begin */

/* base/outside/witness and base/outside/in, where archives go. */
static char base[] = "/tmp/burrow-tar-fuzz-XXXXXX";
static int outside = -1;

static void check(int promise)
{
    if (!promise)
        abort();
}

static void clean_up(void)
{
    char *slash = strrchr(base, '/');

    (void) close(outside);
    outside = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void) sys_tree_delete(outside, slash + 1);
}

static void prepare(void)
{
    int fd;

    check(mkdtemp(base) != NULL);
    fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(mkdirat(fd, "outside", 0755) == 0);
    outside = openat(fd, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(sys_file_replace(outside, "witness", "unchanged", 9, 0644) == 0);
    (void) close(fd);
    (void) atexit(clean_up);
}

static void check_outside(void)
{
    char *data = NULL;
    size_t length = 0, count = 0;
    DIR *stream = fdopendir(openat(outside, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    check(stream && sys_file_read_all(outside, "witness", 64, &data, &length) == 0);
    check(length == 9 && memcmp(data, "unchanged", 9) == 0);
    free(data);
    while (readdir(stream))
        count++;
    (void) closedir(stream);
    check(count == 4); /* ".", "..", "in" and "witness" */
}

/* Every link, followed as far as it goes, and no name of ours unless the archive itself has one. */
static void check_inside(int folder, const char *root, bool may_be_ours)
{
    DIR *stream = fdopendir(folder);
    struct dirent *entry;

    check(stream != NULL);
    while ((entry = readdir(stream))) {
        char self[64], real[PATH_MAX];
        struct stat status;
        int fd;

        check(may_be_ours || strncmp(entry->d_name, OUR_NAMES, strlen(OUR_NAMES)) != 0);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        check(!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode));
        fd = openat(folder, entry->d_name, O_PATH | O_CLOEXEC);
        if (fd < 0)
            continue;
        (void) snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
        check(realpath(self, real) != NULL);
        check(strncmp(real, root, strlen(root)) == 0);
        (void) close(fd);
        if (S_ISDIR(status.st_mode)) {
            fd = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (fd >= 0)
                check_inside(fd, root, may_be_ours);
        }
    }
    (void) closedir(stream);
}

/* Make the checksums of blocks right that look like headers, so that fuzzing gets behind them. */
static void mend(char *bytes, size_t size)
{
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        unsigned char *block = (unsigned char *) bytes + at;
        unsigned int sum = 8 * ' ';

        if (memcmp(block + 257, "ustar", 5) != 0)
            continue;
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += i >= 148 && i < 156 ? 0 : block[i];
        (void) snprintf((char *) block + 148, 8, "%06o", sum & 0777777);
        block[155] = ' ';
    }
}

static void extract(int root, const char *bytes, size_t size, size_t step)
{
    AUTO(tar_extract) struct tar_extract *archive = tar_extract_new(root, false);
    struct error err = ERROR_INIT;
    int r = 0;

    for (size_t at = 0; at < size && r == 0; at += step)
        r = tar_extract_feed(archive, bytes + at, size - at < step ? size - at : step, &err);
    while (r == 0 && (r = tar_extract_finish(archive, &err)) == 1)
        r = 0;
    check(r == 0 || err.message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + 1);
    char root[PATH_MAX];
    int in;

    if (outside < 0)
        prepare();
    check(mkdirat(outside, "in", 0755) == 0);
    in = openat(outside, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memcpy(bytes, data, size);
    mend(bytes, size);
    extract(in, bytes, size, size ? data[size - 1] * 7u + 1 : 1);
    (void) fchmod(in, 0755); /* the archive may have said otherwise */
    (void) snprintf(root, sizeof(root), "%s/outside/in", base);
    /* closes it */
    check_inside(in, root, memmem(bytes, size, OUR_NAMES, strlen(OUR_NAMES)) != NULL);
    check_outside();
    check(sys_tree_delete(outside, "in") == 0);
    free(bytes);
    return 0;
}
