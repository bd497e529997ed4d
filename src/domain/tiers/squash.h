/* The squasher: lists of layers that grew long become one layer, in the background.
 *
 *     offloaded sandbox, stored snapshot   layers onto a new disk ─┐
 *     snapshot that is here                its own disk ───────────┴─► packed whole, put
 *       ──► commit (the list is that layer) ──► the new disk goes
 *
 * A row changes only after the new layer is safe, and only when its list is still the one that was
 * read: whoever woke or stored the disk meanwhile was first, and the new layer is garbage. The old
 * layers are left to the collector; what else names them keeps them.
 *
 * One at a time, looked for once a second. What failed is left alone for SQUASH_AGAIN_MS, and the
 * others have their turn after SQUASH_PAUSE_MS: it may be the store that fails. Nothing is
 * collected meanwhile (domain_internal.h: saves). How long a list may be is `squash_above` of the
 * domain's options. */
#pragma once

#define SQUASH_PAUSE_MS (20 * 1000)
#define SQUASH_AGAIN_MS (5 * 60 * 1000)
