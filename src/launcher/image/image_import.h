/* Importing an image: `docker save` archives, OCI layouts as a folder or in one file.
 *
 * The archive is somebody's, so nothing of it is read here. A keeper job
 * (keeper/image/image_import.h) unpacks it into a folder of its own and writes down what it is;
 * what is done here is to look at that in the same mistrust, to move new layers to the others
 * (image_layers.h), and to register the name. Until the last step nothing has changed; what an
 * import that was killed left behind is taken away by image_layers_prune.
 *
 * The keeper checks that a layer's content has its digest. One that was taken over by an archive
 * could lie about that, and so give a wrong content to a digest that is not here yet: who imports
 * what is worth an attack on a parser should do it on a machine of its own. */
#pragma once

#include "launcher/image/image.h"
#include "launcher/keeper/keeper_job.h"

struct image_import {
    const char *name; /* under which it is registered, in place of what has that name */
    int source;       /* borrowed: the archive, a regular file, or the layout, a folder */
    /* After each layer; may be NULL. `is_new`: it was not here before. */
    void (*progress)(void *context, uint64_t number, uint64_t count, bool is_new);
    void *context;
};

/* `keepers` needs no pool and no images. Returns 0, or -1 with `err`: what the keeper said, or
 * ERR_INVALID for a name that cannot be or a source that is neither. Acknowledged means on disk. As
 * slow as the image is large. */
int image_import(struct image_registry *registry, const struct keeper_host *keepers,
                 const struct image_import *import, struct error *err);

/* Add a layer that was packed from the disk of a sandbox (keeper/layer/layer_format.h, a whole
 * one): a regular file, from its beginning. A keeper unpacks it; its name is the SHA-256 of the
 * file, which is ours and not what the keeper says. One that is there already is left as it is. 0
 * and the name, or -1 with `err`, and nothing was changed. Blocks for as long as it takes. */
int image_layer_add(struct image_registry *registry, const struct keeper_host *keepers, int file,
                    char ret_digest[static IMAGE_DIGEST_SIZE], struct error *err);
