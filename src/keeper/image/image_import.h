/* The jobs `import` and `import-layout`: an image from anybody (image_manifest.h), as trees that
 * overlay takes as lower layers (image_tree.h).
 *
 * Into the target come a folder for each layer that `layers` does not have, named by its digest,
 * and a file `image` (wire/wire_image.h). The digest of every part is checked: of what lies in the
 * archive where the manifest tells it, and of every unpacked tar. After a failure the target is
 * worth nothing.
 *
 *     {"layer":{"digest":"...","number":1,"of":5,"new":true}}      a line for each
 *     {"imported":{"layers":5,"new":2,"entries":3000,"bytes":12345,"devices_left_out":0}} */
#pragma once

#include "base/error.h"
#include "keeper/image/image_tree.h"
#include "keeper/output.h"

/* What the target has beside the layers. */
#define IMAGE_IMPORT_FILE "image"

struct image_import {
    int archive; /* a regular file; or -EBADF, then: */
    int layout;  /* a folder */
    int layers;  /* the folder of those that are here already */
    int target;  /* an empty folder */
    struct image_limits limits;
};

/* All descriptors are borrowed. Sets the umask to 0. 0, or -1 with `err`: what image_manifest_read,
 * image_source_archive and image_tree_feed say, ERR_INVALID for a digest that is wrong. May block
 * for long. */
int image_import(const struct image_import *import, struct output *output, struct error *err);
