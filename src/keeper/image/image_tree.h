/* One layer of an image, a tar from anybody, as the tree that overlay takes as a lower layer.
 *
 *     .wh.NAME        NAME is gone: a character device 0/0 of that name
 *     .wh..wh..opq    nothing of the folder shines through: user.overlay.opaque on it
 *     .wh..wh.*       other marks of aufs: left out
 *
 * No entry leads out of the tree: "..", a way through a link, and a hard link to something that is
 * not in this layer are refused. Links themselves may say anything, for they are only followed in
 * the sandbox. Devices are left out and counted: no sandbox could use them. Owners that no sandbox
 * has (above 65535) become 65534. Of attributes those in `user.` are kept. Times of files are kept,
 * those of folders are the moment of the import.
 *
 * What may come is limited (struct image_limits) over all layers together. Failures are -1 with
 * `err`: ERR_INVALID for what the archive does wrong, ERR_TOO_LARGE, ERR_NO_SPACE. */
#pragma once

#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"

/* Of one import: bytes of files, and entries with the folders that are made on the way to them, all
 * layers together, and what must stay free on the disk: the pool may be a sparse file on it, which
 * must never find it full. */
#define IMAGE_BYTES_MAX   ((uint64_t) 64 << 30)
#define IMAGE_ENTRIES_MAX ((uint64_t) 4 << 20)
#define IMAGE_FREE_MIN    ((uint64_t) 2 << 30)

struct image_limits {
    uint64_t bytes, entries, free;
};

/* What came so far. */
struct image_counts {
    uint64_t bytes, entries, devices;
};

struct image_tree;

/* For the tree in `folder` (borrowed, empty, open for reading). `limits` and `counts` are borrowed,
 * the latter goes on from layer to layer. The caller frees it. */
struct image_tree *image_tree_new(int folder, const struct image_limits *limits,
                                  struct image_counts *counts);

/* Accepts NULL. */
void image_tree_free(struct image_tree *tree);

AUTO_DEFINE_PTR(image_tree, struct image_tree, image_tree_free);

/* The next piece of the tar. */
int image_tree_feed(struct image_tree *tree, const char *bytes, size_t length, struct error *err);

/* There is no more. */
int image_tree_finish(struct image_tree *tree, struct error *err);
