#include "launcher/cgroup/cgroup_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "launcher/cgroup/cgroup_internal.h"
#include "sys/file/sys_file.h"

/* A v2 file that changes raises POLLPRI until it is read again; before the first reading every
 * poll returns at once. */
static void read_again(int fd)
{
    char text[512];

    /* What it says does not matter, nor whether the group is gone: asking will tell. */
    (void) sys_file_pread_full(fd, text, sizeof(text), 0);
}

static int open_changing_file(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                              const char *file)
{
    char path[CGROUP_FILE_PATH_SIZE];
    int fd;

    cgroup_path(hierarchy, cgroup, CGROUP_WHOLE, file, path);
    fd = sys_file_open(hierarchy->base, path, O_RDONLY, 0);
    if (fd >= 0)
        read_again(fd);
    return fd;
}

/* v1 is told "<eventfd> <descriptor of memory.oom_control>". The latter may be closed then. */
static int register_v1(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                       enum cgroup_part part, int event)
{
    char path[CGROUP_FILE_PATH_SIZE], text[32];
    AUTO(close) int control = -EBADF;

    cgroup_path(hierarchy, cgroup, part, "memory.oom_control", path);
    control = sys_file_open(hierarchy->base, path, O_RDONLY, 0);
    if (control < 0)
        return control;
    (void) snprintf(text, sizeof(text), "%d %d", event, control);
    return cgroup_write(hierarchy, cgroup, part, "cgroup.event_control", text);
}

/* An OOM wakes the listeners of the group that hit its limit and of those beneath, not above: so
 * both ask. */
static int open_v1_memory(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup)
{
    AUTO(close) int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result;

    if (event < 0)
        return -errno;
    result = register_v1(hierarchy, cgroup, CGROUP_AGENT, event);
    if (result == 0)
        result = register_v1(hierarchy, cgroup, CGROUP_WORK, event);
    return result < 0 ? result : TAKE_FD(event);
}

static int fail(const struct cgroup *cgroup, struct cgroup_watch *watch, int result,
                struct error *err)
{
    cgroup_watch_close(watch);
    return error_set(err, cgroup_error_code(result), result, "watch the groups of %s",
                     cgroup->id.text);
}

int cgroup_watch_open(const struct cgroup *cgroup, struct cgroup_watch *ret_watch,
                      struct error *err)
{
    const struct cgroup_hierarchy *memory = cgroup_serving(cgroup->host, CGROUP_MEMORY);
    const struct cgroup_hierarchy *census = cgroup_census(cgroup->host);
    struct cgroup_watch watch = CGROUP_WATCH_INIT;

    if (memory) {
        bool v2 = memory->version == CGROUP_V2;

        watch.memory_events = v2 ? POLLPRI : POLLIN;
        watch.memory = v2 ? open_changing_file(memory, cgroup, "memory.events")
                          : open_v1_memory(memory, cgroup);
        if (watch.memory < 0)
            return fail(cgroup, &watch, watch.memory, err);
    }
    if (census && census->version == CGROUP_V2) {
        watch.state_events = POLLPRI;
        watch.state = open_changing_file(census, cgroup, "cgroup.events");
        if (watch.state < 0)
            return fail(cgroup, &watch, watch.state, err);
    }
    *ret_watch = watch;
    return 0;
}

void cgroup_watch_clear(struct cgroup_watch *watch)
{
    eventfd_t count;

    if (watch->memory >= 0 && watch->memory_events == POLLIN)
        (void) eventfd_read(watch->memory, &count); /* -EAGAIN: nothing to clear */
    if (watch->memory >= 0 && watch->memory_events == POLLPRI)
        read_again(watch->memory);
    if (watch->state >= 0)
        read_again(watch->state);
}

void cgroup_watch_close(struct cgroup_watch *watch)
{
    watch->memory = fd_close(watch->memory);
    watch->state = fd_close(watch->state);
}
