/* Stands in for launcher/fuse_mount: mounts in memory whose helpers have ended as soon as they
 * began. */
#include <sys/eventfd.h>

#include "base/auto.h"
#include "launcher/fuse/fuse_mount.h"
#include "launcher/service_fuzz_host.h"

int fuse_mount_try(void)
{
    return 0;
}

int fuse_mount_open(pid_t sandbox, bool read_only, struct fuse_mount *ret_mount, struct error *err)
{
    (void) sandbox;
    (void) read_only;
    if (host_fails(NULL, err))
        return -1;
    *ret_mount = (struct fuse_mount){
        .mount = eventfd(0, EFD_CLOEXEC), .server = eventfd(0, EFD_CLOEXEC), .minor = 1};
    return 0;
}

int fuse_mount_control(void)
{
    return eventfd(0, EFD_CLOEXEC);
}

void fuse_mount_abort(int control, unsigned int minor)
{
    must(control > 0 && minor == 1);
}

size_t fuse_mount_find(pid_t pid, const char *place, unsigned int *ret_minors, size_t maximum)
{
    (void) pid;
    must(maximum > 0);
    *ret_minors = 1;
    return !place; /* of an earlier daemon, and never at a place that is asked for */
}

int fuse_mount_start(const struct fuse_mount_job *job, int *ret_helper, struct error *err)
{
    must(job->sandbox >= 0 && *job->place == '/');
    must(job->mount >= 0 || job->replaces);
    if (host_fails(NULL, err))
        return -1;
    *ret_helper = eventfd(1, EFD_CLOEXEC);
    return 0;
}

int fuse_mount_finish(int helper)
{
    must(helper >= 0);
    return host_fails(NULL, NULL) ? -EBUSY : 0;
}

void fuse_mount_kill(int helper)
{
    must(helper >= 0);
}

void fuse_mount_cancel(int helper)
{
    must(helper >= 0);
    (void) fd_close(helper);
}
