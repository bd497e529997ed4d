#include "agent/filewatch/file_watch_hub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/watch.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Events read in one go: a few hundred, told within a millisecond. */
#define READ_SIZE 16384

/* close(2) of the instance waits until the kernel has freed all watches that were given back, which
 * for many takes a while: by now it has. */
#define IDLE_MS 1000

/* IN_EXCL_UNLINK: what is written to a file without a name has no path. */
#define POINT_MASK                                                                                 \
    (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |            \
     IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK | IN_MASK_ADD)

struct watch_hub_point {
    struct table_link by_number;
    int number;        /* of the kernel */
    struct list links; /* of watch_hub_link */
    bool telling;
};

struct watch_hub_instance {
    struct watch watch;
    struct watch_hub *hub; /* NULL: let go */
    int home;              /* owned: the current folder, to come back to */
};

/* --- the instance ---------------------------------------------------------------------------- */

static void instance_closed(struct watch *watch)
{
    struct watch_hub_instance *instance = CONTAINER_OF(watch, struct watch_hub_instance, watch);

    (void) fd_close(instance->home);
    free(instance);
}

static void close_idle(struct deadline *deadline)
{
    struct watch_hub *hub = CONTAINER_OF(deadline, struct watch_hub, idle);
    struct watch_hub_instance *instance = hub->instance;

    if (!instance || hub->points.count > 0)
        return;
    hub->position = watch_hub_end(hub); /* nobody waits for what is thrown away */
    hub->instance = NULL;
    instance->hub = NULL;
    watch_close(&instance->watch);
}

static void close_if_idle(struct watch_hub *hub)
{
    if (hub->instance && hub->points.count == 0)
        deadline_set(&hub->idle, IDLE_MS);
}

static void read_events(struct watch *watch);

static int open_instance(struct watch_hub *hub)
{
    struct watch_hub_instance *instance;
    AUTO(close) int home = -EBADF;
    AUTO(close) int fd = -EBADF;
    int r;

    if (hub->instance)
        return 0;
    home = sys_file_open(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0);
    if (home < 0)
        home = sys_file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
    if (home < 0)
        return home;
    fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return -errno;
    instance = mem_alloc(sizeof(*instance));
    r = watch_init(&instance->watch, hub->loop, fd, read_events, instance_closed);
    if (r < 0) {
        free(instance);
        return r;
    }
    (void) TAKE_FD(fd);
    instance->home = TAKE_FD(home);
    instance->hub = hub;
    hub->instance = instance;
    watch_for(&instance->watch, UV_READABLE);
    return 0;
}

/* --- points ---------------------------------------------------------------------------------- */

static uint64_t watch_hub_hash_of(int number)
{
    return table_hash(0, &number, sizeof(number)); /* the kernel chooses them */
}

static struct watch_hub_point *find_point(const struct watch_hub *hub, int number)
{
    struct table_link *at = table_find(&hub->points, watch_hub_hash_of(number));

    for (; at; at = table_next(at)) {
        struct watch_hub_point *point = CONTAINER_OF(at, struct watch_hub_point, by_number);

        if (point->number == number)
            return point;
    }
    return NULL;
}

static struct watch_hub_point *get_point(struct watch_hub *hub, int number)
{
    struct watch_hub_point *point = find_point(hub, number);

    if (point)
        return point;
    point = mem_alloc(sizeof(*point));
    point->number = number;
    point->by_number.hash = watch_hub_hash_of(number);
    list_init(&point->links);
    table_add(&hub->points, &point->by_number);
    return point;
}

static void free_point(struct watch_hub *hub, struct watch_hub_point *point)
{
    table_remove(&hub->points, &point->by_number);
    free(point);
}

static void free_if_unused(struct watch_hub *hub, struct watch_hub_point *point)
{
    if (point->telling || !list_is_empty(&point->links))
        return;
    (void) inotify_rm_watch(hub->instance->watch.fd, point->number); /* it may be gone already */
    free_point(hub, point);
}

static int add_to_kernel(struct watch_hub *hub, int folder, bool attributes)
{
    uint32_t mask = POINT_MASK | (attributes ? (uint32_t) IN_ATTRIB : 0);
    int number, error;

    if (fchdir(folder) < 0)
        return -errno;
    number = inotify_add_watch(hub->instance->watch.fd, ".", mask);
    error = errno;
    if (fchdir(hub->instance->home) < 0 && chdir("/") < 0)
        abort(); /* even "/" is closed to us: nothing would work any more */
    return number < 0 ? -error : number;
}

int watch_hub_watch(struct watch_hub *hub, struct watch_hub_link *link, int folder, bool attributes)
{
    struct watch_hub_point *point;
    int r = open_instance(hub);

    if (r < 0)
        return r;
    r = add_to_kernel(hub, folder, attributes);
    if (r < 0) {
        close_if_idle(hub);
        return r;
    }
    point = get_point(hub, r);
    if (link->point == point)
        return 0;
    watch_hub_unwatch(hub, link);
    list_append(&point->links, &link->link);
    link->point = point;
    return 0;
}

void watch_hub_unwatch(struct watch_hub *hub, struct watch_hub_link *link)
{
    struct watch_hub_point *point = link->point;

    if (!point)
        return;
    list_remove(&link->link);
    link->point = NULL;
    free_if_unused(hub, point);
    close_if_idle(hub);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Links come and go while they are told: each is moved back into the point before. */
static void watch_hub_tell(struct watch_hub *hub, struct watch_hub_point *point,
                           const struct inotify_event *event)
{
    struct list waiting, *at;

    list_init(&waiting);
    while ((at = list_first(&point->links))) {
        list_remove(at);
        list_append(&waiting, at);
    }
    point->telling = true;
    while ((at = list_first(&waiting))) {
        struct watch_hub_link *link = CONTAINER_OF(at, struct watch_hub_link, link);

        list_remove(at);
        if (event->mask & IN_IGNORED)
            link->point = NULL;
        else
            list_append(&point->links, at);
        link->on_event(link, event);
    }
    point->telling = false;
    if (event->mask & IN_IGNORED)
        free_point(hub, point); /* the kernel has let go; new links have a new number */
    else
        free_if_unused(hub, point);
}

static void tell_all(struct watch_hub *hub, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        const struct inotify_event *event = (const void *) (bytes + at);
        struct watch_hub_point *point;

        at += sizeof(*event) + event->len;
        hub->position += sizeof(*event) + event->len;
        if (event->mask & IN_Q_OVERFLOW) {
            hub->on_overflow(hub);
            continue;
        }
        point = find_point(hub, event->wd);
        if (point) /* or it is of a watch that was given up with events still queued */
            watch_hub_tell(hub, point, event);
    }
}

static void read_events(struct watch *watch)
{
    struct watch_hub_instance *instance = CONTAINER_OF(watch, struct watch_hub_instance, watch);
    struct watch_hub *hub = instance->hub;
    _Alignas(struct inotify_event) char bytes[READ_SIZE];
    ssize_t length = read(watch->fd, bytes, sizeof(bytes));

    if (length <= 0 || !hub)
        return;
    tell_all(hub, bytes, (size_t) length);
    hub->on_read(hub);
}

uint64_t watch_hub_position(const struct watch_hub *hub)
{
    return hub->position;
}

uint64_t watch_hub_end(const struct watch_hub *hub)
{
    int queued = 0;

    if (hub->instance && ioctl(hub->instance->watch.fd, FIONREAD, &queued) < 0)
        queued = 0;
    return hub->position + (uint64_t) queued;
}

void watch_hub_init(struct watch_hub *hub, struct loop *loop,
                    void (*on_overflow)(struct watch_hub *hub),
                    void (*on_read)(struct watch_hub *hub))
{
    *hub = (struct watch_hub){.loop = loop, .on_overflow = on_overflow, .on_read = on_read};
    deadline_init(loop, &hub->idle, close_idle);
}

/* --- limits ---------------------------------------------------------------------------------- */

/* "fs.inotify.max_user_watches (65536)"; a user namespace may have a lower one of its own. */
static void watch_hub_describe(const char *name, const char *own_name, char *ret_text, size_t size)
{
    AUTO(free) char *limit = NULL, *own = NULL;
    char path[64];
    size_t length;

    (void) snprintf(path, sizeof(path), "/proc/sys/fs/inotify/%s", name);
    if (sys_file_read_all(AT_FDCWD, path, 64, &limit, &length) < 0)
        limit = mem_copy_text("unknown");
    (void) snprintf(path, sizeof(path), "/proc/sys/user/%s", own_name);
    if (sys_file_read_all(AT_FDCWD, path, 64, &own, &length) < 0)
        own = mem_copy_text("unknown");
    limit[strcspn(limit, "\n")] = '\0';
    own[strcspn(own, "\n")] = '\0';
    (void) snprintf(ret_text, size, "fs.inotify.%s (%s) or user.%s (%s)", name, limit, own_name,
                    own);
}

void watch_hub_limit_text(int error, char ret_text[static WATCH_HUB_LIMIT_TEXT_SIZE])
{
    char limit[160];

    if (error == -ENOSPC) {
        watch_hub_describe("max_user_watches", "max_inotify_watches", limit, sizeof(limit));
        (void) snprintf(ret_text, WATCH_HUB_LIMIT_TEXT_SIZE, "the limit %s is reached", limit);
    } else if (error == -EMFILE) {
        watch_hub_describe("max_user_instances", "max_inotify_instances", limit, sizeof(limit));
        (void) snprintf(ret_text, WATCH_HUB_LIMIT_TEXT_SIZE,
                        "the limit %s or that of open files is reached", limit);
    } else {
        (void) snprintf(ret_text, WATCH_HUB_LIMIT_TEXT_SIZE, "%s", strerror(-error));
    }
}
