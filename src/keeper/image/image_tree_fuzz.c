/* Any bytes, in any pieces, as a layer: nothing outside of the tree is touched, nothing in it is a
 * device but a whiteout, limits hold, and failures have a sentence. */
#include <ftw.h>

#include "keeper/image/image_tree.h"
#include "sys/file/sys_unpack_testing.h"

#define BYTES_MAX   10000
#define ENTRIES_MAX 20

static struct unpack_ground ground = {.folder = -1};
static int home = -1; /* attributes are written from within their folder; the fuzzer's paths are
                         relative */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void clean_up(void)
{
    unpack_ground_remove(&ground);
}

static void prepare(void)
{
    unpack_ground_make(&ground);
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(home >= 0);
    (void) umask(0);
    (void) atexit(clean_up);
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
    AUTO(free) char *bytes = unpack_mended(data, size);
    char path[sizeof(ground.path) + 4];
    int in;

    if (ground.folder < 0)
        prepare();
    in = unpack_ground_begin(&ground);
    unpack(in, bytes, size, size ? data[size - 1] * 7u + 1 : 1);
    must(fchdir(home) == 0);
    (void) close(in);
    (void) snprintf(path, sizeof(path), "%s/in", ground.path);
    must(nftw(path, check_one, 16, FTW_PHYS) == 0);
    unpack_ground_end(&ground);
    return 0;
}
