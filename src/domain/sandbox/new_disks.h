/* New disks: of sandboxes that were just created, and that a power cut would take away.
 *
 * A create is answered before its disk is on disk: waiting for that would make it slow, and nothing
 * is in it yet. The row says so instead ("newDisk"). Some seconds later the provider is asked to
 * sync disks, all new ones together, and their rows follow:
 *
 *     create ──► row: new ──► answered ─ ─ ─► provider_sync_disks ──► rows: not new
 *
 * So recovery knows what a disk is that is not there: one that was new is made again at the next
 * start, empty as it was; any other is damage (recovery.h). Disks that are copies, or come back
 * from the object store, are on disk before they are told of, and are never new. */
#pragma once

#include "domain/domain_internal.h"

/* How often disks are synced while there are new ones: not more often than a filesystem commits by
 * itself. */
#define NEW_DISKS_EVERY_S 5

/* Rows that are kept together: the largest ones fit into a transaction. */
#define NEW_DISKS_AT_ONCE 32

/* It has one, is_disk_new says so and so does its row: see to it. */
void new_disk_watch(struct domain *domain, struct sandbox *sandbox);
