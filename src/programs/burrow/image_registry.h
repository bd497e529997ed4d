/* The registry of images, which is the launcher's: read and changed by asking `burrow-launcher
 * image`. All functions block and return 0, or -1 with `err`, which has the launcher's own words.
 */
#pragma once

#include "base/error.h"
#include "wire/wire_image.h"

/* Where it is; NULL: the launcher's defaults. */
struct image_place {
    const char *data, *run;
};

/* Keep `burrow image prune` away from layers and steps until the descriptor, which is the caller's,
 * is closed. Waits for one that runs. */
int image_registry_hold(const struct image_place *place, int *ret_held, struct error *err);

/* What is registered under a name. ERR_NOT_FOUND, also for a step that is not there (any more). */
int image_registry_show(const struct image_place *place, const char *name,
                        struct wire_image *ret_image, struct error *err);

/* What an image without layers of its own is besides its name, as text (free with free): another
 * when its folder or, of `host`, this machine's packages have changed. */
int image_registry_identify(const struct image_place *place, const char *name, char **ret_identity,
                            struct error *err);

/* Register it. */
int image_registry_set(const struct image_place *place, const char *name,
                       const struct wire_image *image, struct error *err);

/* Add the layer in `file`, from its beginning; its name becomes the topmost layer of `image`. */
int image_registry_add_layer(const struct image_place *place, int file, struct wire_image *image,
                             struct error *err);
