/* burrow-admin image show|identify|set|layer: what `burrow image build` does to the registry.
 * Not for people. All return 0, or -1 with `err`. */
#pragma once

#include "launcher/image/image.h"

/* NAME: print its entry as wire/wire_image.h has it. One that is a folder or `host` has nothing but
 * itself as a base. A step that is not there, or lacks a layer by now, prints nothing. */
int verb_image_show(struct image_registry *images, char **words, struct error *err);

/* NAME, a folder or `host`: print what it is besides its name, for keys of steps. */
int verb_image_identify(struct image_registry *images, char **words, struct error *err);

/* NAME: register what stdin says; all of its layers must be there. */
int verb_image_set(struct image_registry *images, char **words, struct error *err);

/* Add the layer that is stdin, a file, and print its name. */
int verb_image_layer(struct image_registry *images, const char *run, struct error *err);
