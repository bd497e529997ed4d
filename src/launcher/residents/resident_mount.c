/* Mounts in a running sandbox whose files the daemon serves.
 *
 *     open ──► opened ──attach──► attaching ──► attached ──detach──► detaching ──► gone
 *
 * They are the daemon's: when it dies, the kernel ends them, and what is left of them in a sandbox
 * (processes get ENOTCONN) is replaced when the next daemon attaches something there. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/path.h"
#include "launcher/fuse/fuse_mount.h"
#include "launcher/residents/residents.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

/* A daemon that opened a mount and does not serve it, or a path that does not end. */
#define HELPER_PATIENCE_MS 10000
/* Of one sandbox, those of earlier daemons included. */
#define FOUND_MAX (4 * RESIDENT_MOUNTS_MAX)

struct resident_mount {
    struct list link; /* of resident->served */
    struct resident *resident;
    uint32_t number;
    unsigned int minor;
    char place[WIRE_PATH_MAX + 1];
    int mount; /* owned: until it is attached */
    bool is_attached;
    bool is_orphan; /* of a daemon that is gone */
    bool is_leaving;
    bool is_late;     /* its helper */
    uint64_t request; /* that waits for the helper; 0: nobody */
    int helper;       /* owned: pidfd; -EBADF: none */
    struct event_source exit;
    struct event_timer timer;
};

static struct event_loop *loop_of(const struct resident_mount *mount)
{
    return mount->resident->all->loop;
}

static int control_of(const struct resident *resident)
{
    return resident->all->fuse_control;
}

static void drop(struct resident_mount *mount)
{
    event_loop_remove(loop_of(mount), &mount->exit);
    event_timer_clear(&mount->timer);
    if (mount->helper >= 0)
        fuse_mount_cancel(mount->helper);
    (void) fd_close(mount->mount);
    list_remove(&mount->link);
    mount->resident->served_count--;
    free(mount);
}

static void answer(struct resident *resident, uint64_t request, const struct error *failure)
{
    if (request)
        resident->all->hooks.done(resident->all->hooks.context, request, failure);
}

/* --- the helper ------------------------------------------------------------------------------ */

static int describe(const struct resident_mount *mount, int result, struct error *err)
{
    switch (-result) {
    case EBUSY:
        return error_set(err, ERR_CONFLICT, 0, "something is mounted at %s", mount->place);
    case ELOOP:
    case ENOTDIR:
        return error_set(err, ERR_INVALID, -result, "%s is not a folder that can be reached",
                         mount->place);
    case ENOTCONN:
    case ECONNABORTED:
    case ECANCELED:
        return error_set(err, mount->is_late ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM, 0,
                         "nobody serves the mount for %s", mount->place);
    default:
        return error_set(err, error_code_from_errno(result), result, "mount at %s", mount->place);
    }
}

static void helper_ended(struct event_source *source, uint32_t events)
{
    struct resident_mount *mount = CONTAINER_OF(source, struct resident_mount, exit);
    struct resident *resident = mount->resident;
    uint64_t request = mount->request;
    struct error err = ERROR_INIT;
    int result;

    (void) events;
    event_loop_remove(loop_of(mount), source);
    event_timer_clear(&mount->timer);
    result = fuse_mount_finish(mount->helper);
    mount->helper = fd_close(mount->helper);
    mount->request = 0;
    /* Nothing is mounted there any more, which is what was asked for. */
    if (mount->is_leaving && (result == -EINVAL || result == -ENOENT))
        result = 0;
    if (result < 0)
        (void) describe(mount, result, &err);
    if (mount->is_leaving || result < 0) {
        /* One that cannot be taken away is dead all the same, and the next one replaces it. */
        drop(mount);
    } else {
        mount->is_attached = true;
        mount->mount = fd_close(mount->mount);
        if (mount->is_orphan)
            drop(mount);
    }
    answer(resident, request, result < 0 ? &err : NULL);
}

/* It cannot be killed while it waits for the server, so the server's part goes first. */
static void helper_is_late(struct event_timer *timer)
{
    struct resident_mount *mount = CONTAINER_OF(timer, struct resident_mount, timer);

    mount->is_late = true;
    fuse_mount_abort(control_of(mount->resident), mount->minor);
    fuse_mount_kill(mount->helper);
}

static int start_helper(struct resident_mount *mount, bool replaces, uint64_t request,
                        struct error *err)
{
    const struct resident *resident = mount->resident;
    struct fuse_mount_job job = {.sandbox = resident->sandbox.pidfd,
                                 .mount = mount->mount,
                                 .replaces = replaces,
                                 .place = mount->place};
    int r = sys_process_kill(resident->sandbox.pidfd, 0);

    if (r < 0)
        return error_set(err, ERR_GONE, r, "sandbox %s ended", resident->sandbox.id.text);
    if (fuse_mount_start(&job, &mount->helper, err) < 0)
        return -1;
    mount->exit = (struct event_source){
        .fd = mount->helper, .events = EPOLLIN, .ready = helper_ended, .trace = trace_context};
    mount->timer.fire = helper_is_late;
    mount->request = request;
    r = event_loop_add(loop_of(mount), &mount->exit);
    if (r < 0) {
        fuse_mount_abort(control_of(resident), mount->minor);
        fuse_mount_cancel(TAKE_FD(mount->helper));
        return error_set(err, ERR_INTERNAL, r, "watch a helper for a mount");
    }
    event_timer_set(loop_of(mount), &mount->timer, HELPER_PATIENCE_MS);
    return 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static struct resident_mount *find(struct resident *resident, uint32_t number, struct error *err)
{
    LIST_EACH (&resident->served, at) {
        struct resident_mount *mount = CONTAINER_OF(at, struct resident_mount, link);

        if (mount->number == number && !mount->is_orphan)
            return mount;
    }
    (void) error_set(err, ERR_NOT_FOUND, 0, "sandbox %s has no mount %u", resident->sandbox.id.text,
                     (unsigned int) number);
    return NULL;
}

static int check_place(const struct resident *resident, const char *place, struct error *err)
{
    static const char *const reserved[] = {"/dev", "/proc", "/sys"};

    for (size_t i = 0; i < ARRAY_COUNT(reserved); i++) {
        if (path_is_inside(place, reserved[i]))
            return error_set(err, ERR_INVALID, 0, "nothing can be mounted in %s", reserved[i]);
    }
    LIST_EACH (&resident->served, at) {
        const struct resident_mount *mount = CONTAINER_OF(at, struct resident_mount, link);

        if (!mount->is_orphan &&
            (path_is_inside(place, mount->place) || path_is_inside(mount->place, place)))
            return error_set(err, ERR_CONFLICT, 0, "there is a mount at %s", mount->place);
    }
    return 0;
}

int resident_open_mount(struct resident *resident, const struct wire_open_mount *asked,
                        uint32_t *ret_number, int *ret_server, struct error *err)
{
    struct fuse_mount made = FUSE_MOUNT_INIT;
    struct resident_mount *mount;

    if (!resident->all->can_mount)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0,
                         "this host has no FUSE, which mounts need (`modprobe fuse`)");
    if (check_place(resident, asked->place, err) < 0)
        return -1;
    if (resident->served_count >= RESIDENT_MOUNTS_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "%d mounts are as many as a sandbox has",
                         RESIDENT_MOUNTS_MAX);
    if (fuse_mount_open(resident->sandbox.pid, asked->read_only, &made, err) < 0)
        return -1;
    mount = mem_alloc(sizeof(*mount));
    *mount = (struct resident_mount){.resident = resident,
                                     .number = ++resident->last_mount,
                                     .minor = made.minor,
                                     .mount = made.mount,
                                     .helper = -EBADF};
    (void) snprintf(mount->place, sizeof(mount->place), "%s", asked->place);
    list_append(&resident->served, &mount->link);
    resident->served_count++;
    *ret_number = mount->number;
    *ret_server = made.server;
    return 0;
}

/* What an earlier daemon left at the place: nobody serves it, or nobody should. */
static bool end_old(const struct resident_mount *mount)
{
    unsigned int minors[FOUND_MAX];
    size_t count =
        fuse_mount_find(mount->resident->sandbox.pid, mount->place, minors, ARRAY_COUNT(minors));

    for (size_t i = 0; i < count; i++)
        fuse_mount_abort(control_of(mount->resident), minors[i]);
    return count > 0;
}

int resident_attach_mount(struct resident *resident, uint32_t number, uint64_t request,
                          struct error *err)
{
    struct resident_mount *mount = find(resident, number, err);

    if (!mount)
        return -1;
    if (mount->is_attached || mount->helper >= 0)
        return error_set(err, ERR_CONFLICT, 0, "mount %u is attached, or about to be",
                         (unsigned int) number);
    return start_helper(mount, end_old(mount), request, err);
}

int resident_detach_mount(struct resident *resident, uint32_t number, uint64_t request,
                          struct error *err)
{
    struct resident_mount *mount = find(resident, number, err);

    if (!mount)
        return -1;
    if (mount->helper >= 0)
        return error_set(err, ERR_CONFLICT, 0, "mount %u is about to be attached or detached",
                         (unsigned int) number);
    /* Before anything else: who waits for its files does not wait any longer. */
    fuse_mount_abort(control_of(resident), mount->minor);
    if (!mount->is_attached) {
        drop(mount);
        answer(resident, request, NULL);
        return 0;
    }
    mount->is_leaving = true;
    return start_helper(mount, true, request, err);
}

/* --- ends ------------------------------------------------------------------------------------ */

void resident_abort_mounts(struct resident *resident)
{
    unsigned int minors[FOUND_MAX];
    size_t count = 0;

    LIST_EACH (&resident->served, at)
        fuse_mount_abort(control_of(resident),
                         CONTAINER_OF(at, struct resident_mount, link)->minor);
    if (resident->has_old_mounts)
        count = fuse_mount_find(resident->sandbox.pid, NULL, minors, ARRAY_COUNT(minors));
    for (size_t i = 0; i < count; i++)
        fuse_mount_abort(control_of(resident), minors[i]);
}

void resident_orphan_mounts(struct resident *resident)
{
    LIST_EACH (&resident->served, at) {
        struct resident_mount *mount = CONTAINER_OF(at, struct resident_mount, link);

        mount->is_orphan = true;
        mount->request = 0;
        resident->has_old_mounts = true;
        /* A helper comes to its end: what it waits for is gone with the daemon. */
        if (mount->helper < 0)
            drop(mount);
    }
}

void resident_drop_mounts(struct resident *resident)
{
    struct error err = ERROR_INIT;

    (void) error_set(&err, ERR_GONE, 0, "sandbox %s ended", resident->sandbox.id.text);
    LIST_EACH (&resident->served, at) {
        struct resident_mount *mount = CONTAINER_OF(at, struct resident_mount, link);
        uint64_t request = mount->request;

        fuse_mount_abort(control_of(resident), mount->minor);
        drop(mount);
        answer(resident, request, &err);
    }
}
