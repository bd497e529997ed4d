/* The job `pack`: what a disk holds beyond its image, as one layer (layer_format.h).
 *
 * `tree` is the disk's upper folder, which nothing writes to. Without a base the layer is all of
 * it. With one, an older snapshot of the same disk, it is what leads from the base to the tree:
 * unpacking the base's layers and then this one gives the tree.
 *
 * The id depends on nothing but names, types, modes, owners, modification times, attributes
 * (attributes.h says which), link targets, content, and which names are one file. So packing what
 * was unpacked gives the same id, on any filesystem. Blocks of 4 KiB that hold only zeros count as
 * holes, whether they were written or not. Left out and counted are sockets, device nodes that are
 * no whiteouts, and other attributes. Whiteouts that overlay made one file are told one by one.
 *
 * What is the same in the base is found by file_compare.h: on the pool by the extents that both
 * share, elsewhere by reading. Neither times nor inode numbers are believed: a file that was
 * changed and got its old time back is in the layer. A file whose content is the same is told
 * without it. A file that was renamed, or whose set of names changed, is told whole.
 *
 * Ends with one line:
 *
 *     {"layer":{"id":"<sha256>","size":123,"bytes":456,"sha256":"<of the compressed bytes>",
 *      "files":3,"entries":9,"removed":1,"skipped":0,"attributes_left_out":0}}
 *
 * size      bytes written to `data`; bytes: of the stream before compression
 * files     regular files whose content is in it
 * entries   everything that is told, folders on the way included
 * skipped   sockets and devices of a whole layer; a delta does not count them
 *
 * Memory does not grow with the tree, except for files with several names (linked_files.h). */
#pragma once

#include "base/error.h"
#include "keeper/output.h"
#include "keeper/tree/tree_walk.h"

/* Pack `tree` into `data` (a pipe or file, written from where it stands). `base` is NULL for the
 * whole tree. 0, or -1 with `err`: ERR_TOO_LARGE when more files have several names than can be
 * remembered, ERR_CANCELLED when nobody reads `data`. May block for long. */
int layer_pack(const struct tree *tree, const struct tree *base, int data, struct output *output,
               struct error *err);
