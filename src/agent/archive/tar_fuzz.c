/* Any bytes, in any pieces, into a folder: nothing outside of it is touched, no link in it leads
 * out, no temporary file stays, and failures have a sentence. */
#include <limits.h>
#include <stdint.h>

#include "agent/archive/tar_extract.h"
#include "sys/file/sys_unpack_testing.h"

#define OUR_NAMES ".burrow-" /* how temporary files begin */

static struct unpack_ground ground = {.folder = -1};

static void clean_up(void)
{
    unpack_ground_remove(&ground);
}

static void prepare(void)
{
    unpack_ground_make(&ground);
    (void) atexit(clean_up);
}

/* Every link, followed as far as it goes, and no name of ours unless the archive itself has one. */
static void check_inside(int folder, const char *root, bool may_be_ours)
{
    DIR *stream = fdopendir(folder);
    struct dirent *entry;

    must(stream != NULL);
    while ((entry = readdir(stream))) {
        char self[64], real[PATH_MAX];
        struct stat status;
        int fd;

        must(may_be_ours || strncmp(entry->d_name, OUR_NAMES, strlen(OUR_NAMES)) != 0);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        must(!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode));
        fd = openat(folder, entry->d_name, O_PATH | O_CLOEXEC);
        if (fd < 0)
            continue;
        (void) snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
        must(realpath(self, real) != NULL);
        must(strncmp(real, root, strlen(root)) == 0);
        (void) close(fd);
        if (S_ISDIR(status.st_mode)) {
            fd = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (fd >= 0)
                check_inside(fd, root, may_be_ours);
        }
    }
    (void) closedir(stream);
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
    must(r == 0 || err.message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *bytes = unpack_mended(data, size);
    char root[PATH_MAX];
    int in;

    if (ground.folder < 0)
        prepare();
    in = unpack_ground_begin(&ground);
    extract(in, bytes, size, size ? data[size - 1] * 7u + 1 : 1);
    (void) fchmod(in, 0755); /* the archive may have said otherwise */
    (void) snprintf(root, sizeof(root), "%s/in", ground.path);
    /* closes it */
    check_inside(in, root, memmem(bytes, size, OUR_NAMES, strlen(OUR_NAMES)) != NULL);
    unpack_ground_end(&ground);
    return 0;
}
