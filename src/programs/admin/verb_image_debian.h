/* burrow-admin image debian: a Debian system from packages (launcher/image/debian_build.h),
 * imported as any image is, by a keeper. For `burrow image build --debian`. */
#pragma once

#include "launcher/image/image.h"

/* NAME PACKAGES SUITE SOURCE, where "" is the usual. 0, or -1 with `err`. */
int verb_image_debian(struct image_registry *images, const char *run, char **words,
                      struct error *err);
