#include "vault/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define HASTE_COUNT (VAULT_LATER + 1)

/* Whoever has an operation that waits or runs. */
struct turn_owner {
    struct list link;
    struct id id;
    size_t running, running_but_wakes;
    struct list waiting[HASTE_COUNT]; /* of turn */
};

void turns_init(struct turns *turns, struct shares *shares)
{
    *turns = (struct turns){.shares = shares};
    list_init(&turns->owners);
}

/* --- owners ---------------------------------------------------------------------------------- */

static struct turn_owner *turn_owner_open(struct turns *turns, const struct id *id)
{
    struct turn_owner *owner;

    LIST_EACH (&turns->owners, at) {
        owner = CONTAINER_OF(at, struct turn_owner, link);
        if (strcmp(owner->id.text, id->text) == 0)
            return owner;
    }
    owner = mem_alloc(sizeof(*owner));
    owner->id = *id;
    for (int haste = 0; haste < HASTE_COUNT; haste++)
        list_init(&owner->waiting[haste]);
    list_append(&turns->owners, &owner->link);
    return owner;
}

static bool turn_owner_waits(const struct turn_owner *owner)
{
    for (int haste = 0; haste < HASTE_COUNT; haste++)
        if (!list_is_empty(&owner->waiting[haste]))
            return true;
    return false;
}

static void turn_owner_drop_unused(struct turn_owner *owner)
{
    if (owner->running || turn_owner_waits(owner))
        return;
    list_remove(&owner->link);
    free(owner);
}

/* --- whose turn it is ------------------------------------------------------------------------ */

static bool turns_others_wait(const struct turns *turns, const struct turn_owner *owner)
{
    LIST_EACH (&turns->owners, at) {
        const struct turn_owner *other = CONTAINER_OF(at, struct turn_owner, link);

        if (other != owner && turn_owner_waits(other))
            return true;
    }
    return false;
}

static bool turn_owner_may(const struct turns *turns, const struct turn_owner *owner,
                           enum vault_haste haste)
{
    size_t most;

    if (haste == VAULT_WAKE)
        return turns->running < TURNS_MAX && owner->running < TURNS_BUT_WAKES;
    most = turns_others_wait(turns, owner) ? TURNS_CROWDED : TURNS_OF_ONE;
    return turns->running < TURNS_MAX && turns->running_but_wakes < TURNS_BUT_WAKES &&
           owner->running_but_wakes < most;
}

/* The first of an owner's that may go; those that are urgent, or the others. */
static struct mover_turn *turn_owner_next(const struct turns *turns, struct turn_owner *owner,
                                          enum vault_haste from, enum vault_haste to)
{
    for (enum vault_haste haste = from; haste <= to; haste++) {
        struct list *first = list_first(&owner->waiting[haste]);

        if (first && turn_owner_may(turns, owner, haste))
            return CONTAINER_OF(first, struct mover_turn, link);
    }
    return NULL;
}

static struct mover_turn *turns_next(const struct turns *turns)
{
    static const enum vault_haste rounds[][2] = {{VAULT_WAKE, VAULT_WAKE},
                                                 {VAULT_ASKED, VAULT_LATER}};

    for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
        LIST_EACH (&turns->owners, at) {
            struct turn_owner *owner = CONTAINER_OF(at, struct turn_owner, link);
            struct mover_turn *turn = turn_owner_next(turns, owner, rounds[i][0], rounds[i][1]);

            if (turn)
                return turn;
        }
    }
    return NULL;
}

static void turn_count(struct mover_turn *turn, size_t more)
{
    bool is_wake = turn->haste == VAULT_WAKE;

    turn->owner->running += more;
    turn->turns->running += more;
    turn->owner->running_but_wakes += is_wake ? 0 : more;
    turn->turns->running_but_wakes += is_wake ? 0 : more;
}

static void turns_go(struct turns *turns)
{
    struct mover_turn *turn;

    while ((turn = turns_next(turns))) {
        list_remove(&turn->link);
        turn->is_running = true;
        turn_count(turn, 1);
        /* The next turn is somebody else's. */
        list_remove(&turn->owner->link);
        list_append(&turns->owners, &turn->owner->link);
        turn->go(turn);
    }
}

/* --- one of them ----------------------------------------------------------------------------- */

int turn_ask(struct turns *turns, struct mover_turn *turn, const struct vault_asker *asker,
             void (*go)(struct mover_turn *turn), struct error *err)
{
    if (asker->is_claimed)
        turn->claim = (struct share_claim) SHARE_CLAIM_NONE;
    else if (asker->haste != VAULT_ASKED)
        share_claim_anyway(turns->shares, &asker->who, SHARE_DISK_JOBS, 1, &turn->claim);
    else if (share_claim(turns->shares, &asker->who, SHARE_DISK_JOBS, 1, &turn->claim, err) < 0)
        return -1;
    turn->turns = turns;
    turn->owner = turn_owner_open(turns, &asker->who.owner);
    turn->haste = asker->haste;
    turn->go = go;
    list_append(&turn->owner->waiting[turn->haste], &turn->link);
    turns_go(turns);
    return 0;
}

void turn_end(struct mover_turn *turn)
{
    struct turn_owner *owner = turn->owner;

    share_release(&turn->claim);
    if (!owner)
        return;
    if (turn->is_running)
        turn_count(turn, (size_t) -1);
    else
        list_remove(&turn->link);
    turn->owner = NULL;
    turn->is_running = false;
    turn_owner_drop_unused(owner);
    turns_go(turn->turns);
}

bool turn_waits(const struct mover_turn *turn)
{
    return turn->owner && !turn->is_running;
}
