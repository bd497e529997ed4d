/* Network slots: which sandbox has which number, and with it which address and name of its link.
 *
 * One folder, shared by all programs that make sandboxes on this machine (`burrow serve` and
 * `burrow run`), holds two symbolic links per slot:
 *
 *     7 -> mfz2k....1804289     the slot is taken by that sandbox, with that mark
 *     mfz2k... -> 7             where to find it
 *
 * symlink(2) creates a name with its content in one step or fails with EEXIST, so the first of them
 * is lock and record at once: no two programs get the same slot and a crash leaves no lock behind.
 * The folder belongs on a tmpfs (/run): after a reboot nothing is taken. Slots are chosen at
 * random, so that an address comes back late; the mark, a random number too, tells one owner of a
 * slot from the next.
 *
 * All functions return -errno on failure and do not block. Slot numbers run from 1 to `count`. */
#pragma once

#include <stdint.h>

#include "base/id.h"

/* Marks are the indexes of links; below are those of links that are not sandboxes'. */
#define NETWORK_MARK_MIN (1 << 20)

struct network_slot {
    uint32_t number;
    uint32_t mark; /* NETWORK_MARK_MIN to INT32_MAX */
    struct id id;
};

/* Take a slot for the sandbox. -EEXIST when it has one, -ENOSPC when all are taken (a few
 * microseconds in general; up to a second to find that the last of 65,000 are gone). */
int network_slot_take(int folder, uint32_t count, const struct id *id,
                      struct network_slot *ret_slot);

/* Give it back. -ENOENT when it is not taken by this owner. */
int network_slot_release(int folder, const struct network_slot *slot);

/* Is the slot taken, by this owner? 1, 0 or -errno. */
int network_slot_is_taken(int folder, const struct network_slot *slot);

/* The slot of a sandbox, also one that was taken or released halfway; -ENOENT when it has none,
 * which takes as long as looking at all. */
int network_slot_find(int folder, const struct id *id, struct network_slot *ret_slot);

typedef void network_slot_function(void *context, const struct network_slot *slot);

/* All that are taken. The callback may release the one it is told. */
int network_slot_each(int folder, network_slot_function *call, void *context);
