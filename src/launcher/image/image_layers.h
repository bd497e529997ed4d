/* The layers of imported images: one tree each, named by the SHA-256 of its uncompressed tar, and
 * shared by all images that have it.
 *
 *     DATA/images/.layers/<digest>/     a tree, as overlay has it: whiteouts are character devices
 *                                       0/0, opaque folders have user.overlay.opaque; owners are
 *                                       those that the image says
 *     DATA/images/.layers/.new-XXXX/    an import that is under way, or was cut off
 *
 * A layer appears whole, by renaming, and never changes. Nothing takes one away while a sandbox
 * may use it: see image_layers_prune. All return 0 (or a descriptor), or -1 with `err`. */
#pragma once

#include "launcher/image/image.h"

/* The tree of a layer, O_PATH and the caller's. ERR_NOT_FOUND. */
int image_layer_open(struct image_registry *registry, const char *digest, struct error *err);

/* The folder of all, open for reading and the caller's; made when missing. */
int image_layers_open(struct image_registry *registry, struct error *err);

/* Who makes an image holds the layers from before it looks which are there until the image is
 * registered: a lock (sys/file/sys_lock.h) that many have at once, and that keeps prune away.
 * Returns a descriptor of the caller's, which is the lock. Waits for a prune. */
int image_layers_hold(struct image_registry *registry, struct error *err);

/* The same against all others, for prune. ERR_CONFLICT: somebody makes an image. */
int image_layers_hold_alone(struct image_registry *registry, struct error *err);

/* Delete layers that no image names, and what imports and builds left: only while no sandbox runs,
 * and with the layers held alone, which comes before looking for sandboxes. ERR_CONFLICT, and
 * nothing is deleted: the entry of an image is damaged. Slow. `*ret_count`: how many. */
int image_layers_prune(struct image_registry *registry, size_t *ret_count, struct error *err);
