/* Any bytes, in any pieces, as a layer: nothing outside of the tree is touched, nothing in it is a
 * device but a whiteout, limits hold, and failures have a sentence. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tar_header.h"
#include "keeper/image_tree.h"
#include "sys/sys_file.h"
#include "sys/sys_tree.h"

#define BYTES_MAX   10000
#define ENTRIES_MAX 20

/* base/witness and base/in, where layers go. */
static char base[] = "/tmp/burrow-image-fuzz-XXXXXX";
static int outside = -1;
static int home = -1; /* attributes are written from within their folder; the fuzzer's paths are
                         relative */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void clean_up(void)
{
    int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void) sys_tree_delete(parent, strrchr(base, '/') + 1);
    (void) close(parent);
}

static void prepare(void)
{
    must(mkdtemp(base) != NULL);
    outside = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(home >= 0);
    must(outside >= 0 && sys_file_replace(outside, "witness", "unchanged", 9, 0644) == 0);
    (void) umask(0);
    (void) atexit(clean_up);
}

static void check_outside(void)
{
    char *data = NULL;
    size_t length = 0, count = 0;
    DIR *stream = fdopendir(openat(outside, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    must(stream && sys_file_read_all(outside, "witness", 64, &data, &length) == 0);
    must(length == 9 && memcmp(data, "unchanged", 9) == 0);
    while (readdir(stream))
        count++;
    must(count == 4); /* with . and .. */
    (void) closedir(stream);
    free(data);
}

static int check_one(const char *path, const struct stat *status, int flag, struct FTW *where)
{
    (void) path;
    (void) flag;
    (void) where;
    must(!S_ISBLK(status->st_mode) && !S_ISSOCK(status->st_mode));
    must(!S_ISCHR(status->st_mode) || status->st_rdev == 0);
    must(status->st_uid <= 65535 && status->st_gid <= 65535);
    return 0;
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

static void unpack(int folder, const char *bytes, size_t size, size_t step)
{
    const struct image_limits limits = {.bytes = BYTES_MAX, .entries = ENTRIES_MAX};
    struct image_counts counts = {0};
    AUTO(image_tree) struct image_tree *tree = image_tree_new(folder, &limits, &counts);
    struct error err = ERROR_INIT;
    int r = 0;

    for (size_t at = 0; at < size && r == 0; at += step)
        r = image_tree_feed(tree, bytes + at, size - at < step ? size - at : step, &err);
    if (r == 0)
        r = image_tree_finish(tree, &err);
    must(r == 0 || (err.code != ERR_NONE && err.message[0]));
    must(r < 0 || (counts.bytes <= BYTES_MAX && counts.entries <= ENTRIES_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + 1);
    char path[sizeof(base) + 4];
    int in;

    if (outside < 0)
        prepare();
    must(bytes && mkdirat(outside, "in", 0755) == 0);
    in = openat(outside, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(in >= 0);
    memcpy(bytes, data, size);
    mend(bytes, size);
    unpack(in, bytes, size, size ? data[size - 1] * 7u + 1 : 1);
    must(fchdir(home) == 0);
    (void) close(in);
    (void) snprintf(path, sizeof(path), "%s/in", base);
    must(nftw(path, check_one, 16, FTW_PHYS) == 0);
    check_outside();
    must(sys_tree_delete(outside, "in") == 0);
    free(bytes);
    return 0;
}
