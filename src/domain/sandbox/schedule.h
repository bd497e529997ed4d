/* Sandboxes by when to look at them: a heap, so that those with nothing to come cost nothing.
 *
 * A sandbox is in it at most once, at sandbox.look_ns; whoever pops it finds out what is due, if
 * anything: a time that moved later is not moved in the heap, only found out then. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sandbox;

struct schedule {
    struct sandbox **items; /* owned; the sandboxes are borrowed */
    size_t count, capacity;
};

/* Look at it at `look_ns`, or sooner when it is in there for sooner. */
void schedule_add(struct schedule *schedule, struct sandbox *sandbox, uint64_t look_ns);

/* Safe when it is not in there. */
void schedule_remove(struct schedule *schedule, struct sandbox *sandbox);

/* Take out the next one that is due at `now_ns`, or NULL. */
struct sandbox *schedule_pop(struct schedule *schedule, uint64_t now_ns);

/* Free the heap; the sandboxes in it may be gone already. */
void schedule_done(struct schedule *schedule);
