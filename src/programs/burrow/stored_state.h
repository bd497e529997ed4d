/* What the domain needs for state that is stored: the vault that moves bytes and the mounter that
 * serves buckets, over the daemon's object stores. Wiring only.
 *
 * Life: open before the domain -> stop, before the stores are closed, which are closed before the
 * domain -> done, after the domain. */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "domain/inside.h"
#include "domain/mounter.h"
#include "domain/vault.h"
#include "mount/bucket_mounter.h"
#include "net/address_rules.h"
#include "net/loop.h"
#include "programs/burrow/data_folder.h"
#include "programs/burrow/object_stores.h"
#include "programs/burrow/settings.h"
#include "vault/mover.h"

struct stored_state {
    struct mover *mover; /* NULL: there is no provider */
    struct mount_host *mounts;
    struct bucket_mounter *mounter;
    struct address_rules rules;
    void (*stopped)(void *context);
    void *context;
};

/* `provider` may be NULL. Returns 0, or -1 when a folder cannot be made; stop and done clean up
 * then, too. */
int stored_state_open(struct stored_state *state, struct loop *loop, struct log *log,
                      const struct settings *settings, struct data_folder *data,
                      const struct object_stores *stores, struct provider *provider,
                      const struct inside *inside, struct shares *shares, struct error *err);

/* NULL: not here. */
const struct vault *stored_state_vault(const struct stored_state *state);
const struct mounter *stored_state_mounter(const struct stored_state *state);

/* Answer what is under way, write back what was written through mounts. May answer from inside. */
void stored_state_stop(struct stored_state *state, void (*stopped)(void *context), void *context);

void stored_state_done(struct stored_state *state);
