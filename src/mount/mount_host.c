/* What all mounts of a daemon share: the cache, and the folder of what is being written. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/memory.h"
#include "mount/mount_internal.h"
#include "sys/file/sys_file.h"

/* Of a daemon that was killed between making one and taking its name away. */
static void remove_left_over(int folder)
{
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!names) {
        (void) fd_close(copy);
        return;
    }
    while ((entry = readdir(names))) {
        if (sys_file_is_temporary_name(entry->d_name))
            (void) unlinkat(folder, entry->d_name, 0);
    }
    (void) closedir(names);
}

struct mount_host *mount_host_new(struct loop *loop, const struct mount_host_options *options,
                                  struct error *err)
{
    AUTO(free) struct mount_host *host = mem_alloc(sizeof(*host));
    int r = sys_file_make_directories(AT_FDCWD, options->spool, 0700);

    if (r == 0)
        r = sys_file_open(AT_FDCWD, options->spool, O_RDONLY | O_DIRECTORY, 0);
    if (r < 0) {
        (void) error_set(err, ERR_INTERNAL, r, "open the folder for files on their way to a store");
        return NULL;
    }
    host->folder = r;
    remove_left_over(host->folder);
    host->loop = loop;
    host->log = options->log;
    host->clock = options->clock;
    host->shares = options->shares;
    host->floor = options->floor;
    host->room = (struct mount_spool_room){.folder = host->folder, .limit = options->spool_limit};
    mount_cache_init(&host->cache, options->cache_limit);
    return TAKE_PTR(host);
}

void mount_host_free(struct mount_host *host)
{
    if (!host)
        return;
    mount_cache_done(&host->cache);
    (void) fd_close(host->folder);
    free(host);
}
