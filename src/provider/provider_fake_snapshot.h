/* Inside the provider `fake`: the snapshots that it remembers, and where disks come from. */
#pragma once

#include "base/list.h"
#include "provider/provider_internal.h"

struct fake_snapshots {
    struct list known;   /* of fake_snapshot */
    struct list origins; /* of fake_origin: the disks that are copies */
};

void fake_snapshots_init(struct fake_snapshots *snapshots);
void fake_snapshots_done(struct fake_snapshots *snapshots);

bool fake_snapshots_has(const struct fake_snapshots *snapshots, const struct id *id);
void fake_snapshots_add(struct fake_snapshots *snapshots, const struct id *id);
void fake_snapshots_remove(struct fake_snapshots *snapshots, const struct id *id);

/* All of them, for the call's result. */
void fake_snapshots_list(const struct fake_snapshots *snapshots, struct provider_call *call);

/* The sandbox's disk is a copy of this from now on. */
void fake_snapshots_set_origin(struct fake_snapshots *snapshots, const struct id *sandbox,
                               const struct disk_ref *disk);
/* NULL: it began empty. Borrowed. */
const struct disk_ref *fake_snapshots_origin(const struct fake_snapshots *snapshots,
                                             const struct id *sandbox);
