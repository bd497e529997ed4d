/* The hub of all file watches: the agent's only inotify instance, opened for the first folder and
 * closed a moment after the last.
 *
 * A folder that several trees contain has one kernel watch, a point, and a link for each of them.
 * The kernel knows folders, not paths: a folder seen at two paths has one point too.
 *
 * Positions are places in the kernel's queue of events. What happened before watch_hub_end() was
 * asked is told before watch_hub_position() has reached what it returned: so one can wait for the
 * past.
 *
 * inotify_add_watch wants a path. Paths change under our hands and /proc may be missing, so for the
 * moment of the call the folder is made the current one: nothing else in the agent, threads of
 * libuv included, may use relative paths. All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "base/list.h"
#include "base/table.h"
#include "net/loop.h"

struct watch_hub_point;
struct watch_hub_instance;

struct watch_hub_link {
    struct list link;              /* in the point */
    struct watch_hub_point *point; /* NULL: watches nothing */
    /* Told everything about the folder. `event->name` is empty (length 0) for itself; after
     * IN_IGNORED the link watches nothing. May watch and unwatch any link. */
    void (*on_event)(struct watch_hub_link *link, const struct inotify_event *event);
};

struct watch_hub {
    struct loop *loop;                          /* borrowed */
    struct watch_hub_instance *instance;        /* owned; NULL: nothing is watched */
    struct table points;                        /* by number */
    uint64_t position;                          /* bytes of events read, of all instances */
    struct deadline idle;                       /* nothing was watched for a while */
    void (*on_overflow)(struct watch_hub *hub); /* the kernel dropped events */
    void (*on_read)(struct watch_hub *hub);     /* some events were told */
};

void watch_hub_init(struct watch_hub *hub, struct loop *loop,
                    void (*on_overflow)(struct watch_hub *hub),
                    void (*on_read)(struct watch_hub *hub));

/* Tell `link` about the folder open as `folder`. `attributes`: changes of mode, owner and times
 * too. A link that watched another folder does so no more. Returns 0, or -errno: -ENOSPC and
 * -EMFILE for the limits of inotify (watch_hub_limit_text), -EACCES for folders we may not read. */
int watch_hub_watch(struct watch_hub *hub, struct watch_hub_link *link, int folder,
                    bool attributes);

/* Safe on a link that watches nothing, as long as it was zeroed. */
void watch_hub_unwatch(struct watch_hub *hub, struct watch_hub_link *link);

uint64_t watch_hub_position(const struct watch_hub *hub);
uint64_t watch_hub_end(const struct watch_hub *hub);

/* A sentence on the limit behind an error of watch_hub_watch. */
#define WATCH_HUB_LIMIT_TEXT_SIZE 256
void watch_hub_limit_text(int error, char ret_text[static WATCH_HUB_LIMIT_TEXT_SIZE]);
