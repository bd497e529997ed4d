/* What lies below an image between two steps of a build: all that a sandbox makes of itself when
 * its image lacks it, so that a step finds it and none of it becomes part of the step's layer.
 *
 *     DATA/images/.ground/    dev  proc  sys  workspace  etc/resolv.conf
 *
 * Other images need none: their sandboxes make the same on disks of their own. */
#pragma once

#include "launcher/image/image.h"

#define IMAGE_RESOLVER_SIZE 32

/* The resolv.conf that images are given: it names the resolver of sandboxes (router_resolver.h). */
void image_ground_resolver(char ret_text[static IMAGE_RESOLVER_SIZE]);

/* The folder, O_PATH and the caller's; made when missing. Or -1 with `err`. */
int image_ground_open(struct image_registry *registry, struct error *err);
