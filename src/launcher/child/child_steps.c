#include "launcher/child/child_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/trace.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount.h"

#define STATUS_FAILED 127

_Noreturn void child_steps_run(const struct child_steps *steps, void *child, const int *status)
{
    struct child_failure failure = {0};

    trace_name(steps->name);
    for (size_t i = 0; i < steps->count; i++) {
        TRACE_WITH("child", steps->text(i));
        failure.error = steps->run(child, i);
        if (failure.error < 0) {
            failure.step = (int) i;
            (void) sys_file_write_full(*status, &failure, sizeof(failure));
            break;
        }
    }
    _exit(STATUS_FAILED);
}

int child_steps_read(const struct child_steps *steps, int status, bool *ret_is_whole,
                     struct error *err)
{
    struct child_failure failure;
    ssize_t got = sys_file_read_full(status, &failure, sizeof(failure));

    if (ret_is_whole)
        *ret_is_whole = got == 0 || got == (ssize_t) sizeof(failure);
    if (got != (ssize_t) sizeof(failure))
        return 0;
    return error_set(err, ERR_INTERNAL, failure.error, "%s",
                     failure.step >= 0 && (size_t) failure.step < steps->count
                         ? steps->text((size_t) failure.step)
                         : "an unknown step");
}

int child_result(long result)
{
    return result < 0 ? -errno : 0;
}

/* Plain calls: glibc's own would signal threads that do not exist here (see sys_clone.h). */
int child_become_root(void)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

int child_place_descriptors(int *descriptors, size_t count, size_t open_count, int first,
                            int parking)
{
    /* Out of the way first, so that no target is overwritten before it was moved. */
    for (size_t i = 0; i < count; i++) {
        descriptors[i] = fcntl(descriptors[i], F_DUPFD_CLOEXEC, parking);
        if (descriptors[i] < 0)
            return -errno;
    }
    for (size_t i = 0; i < count; i++) {
        if (dup3(descriptors[i], first + (int) i, i < open_count ? 0 : O_CLOEXEC) < 0)
            return -errno;
    }
    return 0;
}

int child_pivot_to(const char *path)
{
    int r;

    if (chdir(path) < 0)
        return -errno;
    r = sys_mount_pivot_root(".", ".");
    if (r == 0)
        r = sys_mount_unmount(".", SYS_UNMOUNT_DETACH);
    return r < 0 ? r : child_result(chdir("/"));
}
