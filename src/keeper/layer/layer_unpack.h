/* The job `unpack`: layers (layer_format.h) onto a tree, as many as follow each other in its input.
 *
 * A whole layer wants an empty target; one that was packed with a base wants what was unpacked from
 * the base's layers. Everything is made as it was: owners, modes, times of modification (of folders
 * too), attributes, links, hard links, holes, whiteouts. Access times are those of the unpacking.
 *
 * The stream may come from anywhere: it is checked against the rules of the format as it is read,
 * no name leads out of the target, no link is followed, and memory has a bound. Everything up to
 * the last byte of the input is covered by sums; one that is wrong, a missing end or anything
 * behind it that is no layer fails the job with ERR_INVALID. An input that ends between two layers
 * is whole: who asked counts what is told. By then the tree has been changed: a failed unpacking
 * is not taken back.
 *
 * The job `add-layer` is the same for one layer of an image, within the limits of an import
 * (image_tree.h): a step of a build must not fill the disk that all images share.
 *
 * Tells a line for each layer, the last one when all of it is on the disk; its members are those of layer_pack.h, without
 * `skipped` and `attributes_left_out`:
 *
 *     {"layer":{"id":"...","size":123,"bytes":456,"sha256":"...","files":3,"entries":9,
 *      "removed":1}} */
#pragma once

#include "base/error.h"
#include "keeper/image/image_tree.h"
#include "keeper/output.h"

/* Unpack from `input` (a pipe or file, read from where it stands to its end) into `target`, open
 * for reading. Sets the umask to 0. 0, or -1 with `err`: ERR_INVALID for a stream that is no layer,
 * is damaged or does not fit on what is there, ERR_CONFLICT when a whole layer's target is not
 * empty, ERR_NO_SPACE (with ENOSPC or EDQUOT). May block for long. */
int layer_unpack(int target, int input, struct output *output, struct error *err);

/* The same; ERR_TOO_LARGE for more bytes or entries than `limits` (borrowed) has, ERR_NO_SPACE when
 * less would stay free than it says. */
int layer_unpack_within(int target, int input, const struct image_limits *limits,
                        struct output *output, struct error *err);
