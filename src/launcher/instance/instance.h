/* The folder of one launcher in RUN: what it knows of its sandboxes, and their agents' sockets.
 *
 *     RUN/serve/             of the launcher of a daemon
 *     RUN/once-<pid>/        of a launcher that serves one conversation (`burrow run`)
 *       lock                 held as long as the launcher lives
 *       records/             one per sandbox (record.h), root's
 *       agents/<id>.sock     listening sockets, the daemon's user's, 0700
 *
 * Whoever can take the lock of another's folder knows that it is dead and may clean up. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"

#define INSTANCE_NAME_MAX 64
#define INSTANCE_PATH_MAX 192 /* a path in it must fit into the address of a socket's user */

struct instance {
    char path[INSTANCE_PATH_MAX];
    uid_t user; /* the daemon's */
    gid_t group;
    int folder;  /* owned */
    int lock;    /* owned */
    int records; /* owned */
    int agents;  /* owned */
};

/* Make or open it and take its lock. ERR_CONFLICT: another launcher has it. Returns 0 or -1. */
int instance_open(struct instance *instance, const char *run, const char *name, uid_t user,
                  gid_t group, struct error *err);

/* Close it; the folder stays. */
void instance_close(struct instance *instance);

/* Close it and take the folder away, which must not hold records any more. */
void instance_remove(struct instance *instance);

/* Call `found` with the name of every instance in `run` whose name begins with `prefix` and whose
 * launcher is dead. `prefix` is followed by its pid. Never fails: what cannot be looked at is
 * skipped. Waits some seconds for one that is dying. */
void instance_find_dead(const char *run, const char *prefix,
                        void (*found)(void *context, const char *name), void *context);

/* Whether a living instance other than `own` has a record of this sandbox. */
bool instance_others_have(const char *run, const char *own, const struct id *id);
