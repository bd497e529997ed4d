/* What `burrow image` does beyond a list of folders: images that are imported. Words are those of
 * the command line; messages go to `err`, everything else to standard output. A registry that is
 * not there yet is NULL where nothing is made. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "launcher/image/image.h"

/* A line for a layer that was imported. */
void verb_image_show_layer(void *context, uint64_t number, uint64_t count, bool is_new);

/* NAME FILE|DIR: a `docker save` archive or an OCI layout. */
int verb_image_import(struct image_registry *images, const char *run, char **words,
                      struct error *err);

/* NAME: what is known of it. */
int verb_image_inspect(struct image_registry *images, char **words, struct error *err);

/* Delete layers that no image names. Refused while sandboxes run. */
int verb_image_prune(struct image_registry *images, const char *run, struct error *err);
