#include "programs/burrow/daemon_walls.h"

#include "launcher/wall/seccomp.h"
#include "sys/process/sys_process.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

static int daemon_walls_fail(struct error *err, int result, const char *what)
{
    return error_set(err, ERR_UNAVAILABLE, result, "put walls around the daemon: %s", what);
}

int daemon_walls_raise(bool core_dumps, struct error *err)
{
    struct seccomp_filter filter;
    int r;

    if (IS_SANITIZED)
        return 0;
    r = sys_process_set_no_new_privileges();
    if (r < 0)
        return daemon_walls_fail(err, r, "no new privileges");
    r = core_dumps ? 0 : sys_process_set_dumpable(false);
    if (r < 0)
        return daemon_walls_fail(err, r, "no core dumps");
    r = seccomp_filter_init_daemon(&filter);
    if (r == 0)
        r = seccomp_filter_load(&filter);
    return r < 0 ? daemon_walls_fail(err, r, "the filter for system calls") : 0;
}
