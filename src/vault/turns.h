/* Turns: whose operation goes next, of those that need a keeper.
 *
 *     turn_ask(turns, &turn, &asker, go, err)   go(&turn), at once or when it is its turn
 *     turn_end(&turn)                           whether it had its turn, waited, or never asked
 *
 * Owners take turns, one operation each, whoever asked first: who asks for many waits for himself.
 * What wakes a sandbox goes before all else; and of one owner's, what he asked for before what
 * Burrow does of its own (enum vault_haste). Of TURNS_MAX some are for wakes alone, and some for others than the one
 * who fills the rest. What was asked for is counted as SHARE_DISK_JOBS from when it asks, and may
 * be refused as that, unless whoever asks has claimed it before he began; wakes and Burrow's own work are as many as there are disks, and only counted.
 *
 * Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "domain/vault.h"
#include "share/share.h"

#define TURNS_MAX       8 /* at once: as many keepers as run beside each other */
#define TURNS_BUT_WAKES 6 /* of them for what wakes no sandbox */
#define TURNS_OF_ONE    4 /* of those for one owner, while nobody else waits */
#define TURNS_CROWDED   2 /* and while somebody does */

struct turns {
    struct shares *shares; /* borrowed; may be NULL */
    struct list owners;    /* of those that wait or run; whoever has waited longest first */
    size_t running, running_but_wakes;
};

struct mover_turn {
    struct list link; /* of its owner's that wait */
    struct turns *turns;
    struct turn_owner *owner; /* NULL: it neither waits nor runs */
    enum vault_haste haste;
    bool is_running;
    struct share_claim claim;
    void (*go)(struct mover_turn *turn);
};

void turns_init(struct turns *turns, struct shares *shares);

/* `turn` is all zeros. -1: there are too many of this owner already. */
int turn_ask(struct turns *turns, struct mover_turn *turn, const struct vault_asker *asker,
             void (*go)(struct mover_turn *turn), struct error *err);

/* Others may go, from inside the call. */
void turn_end(struct mover_turn *turn);

bool turn_waits(const struct mover_turn *turn);
