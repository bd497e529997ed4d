/* The job `diff`: what is different between two states of a disk, for people.
 *
 *     {"added":"home/a"}
 *     {"changed":"home/b","what":["content","mode"]}
 *     {"removed":"home/c"}
 *
 * Both trees are upper folders: what a sandbox has beyond its image. The lines speak of what one
 * sees inside, as far as the upper folders tell:
 *
 * a whiteout appears      {"removed":...}   a file of the image, or one that stood in its place
 * a whiteout vanishes     {"added":...}
 * a copy of an image's    {"changed":...,"what":["image"]}: it is the image's in one state and
 * file appears or goes    changed in the other; in which way is not known here. Overlay marks such
 *                         copies (user.overlay.origin) and keeps the mark when they are renamed:
 *                         the new name of an image's file is told likewise
 * a folder goes or comes  the folder and everything of it that lay in the upper folder
 *
 * what    content, mode, owner, time, type, xattrs (not overlay's own marks), target (of a link),
 *         opaque (a folder hides, or hides no longer, the image's), image.
 *         The time of a folder does not count: it follows what is in it, which has lines itself.
 *
 * Paths are escaped as in name_escape.h, and in the order of the walk: by the bytes of the names,
 * folders before what is in them. One longer than TREE_LIST_PATH_MAX has `depth` and `name` beside
 * an empty path. Ends with {"diff":{"added":1,"changed":1,"removed":1}}. Memory: the names of the
 * folders on the way, twice (tree_walk.h). Content is compared as in file_compare.h. */
#pragma once

#include "base/error.h"
#include "keeper/output.h"
#include "keeper/tree/tree_walk.h"

/* Tell what leads from `older` to `newer`, both open for reading; nothing writes to either. 0, or
 * -1 with `err`. May block for long. */
int tree_diff(const struct tree *newer, const struct tree *older, struct output *output,
              struct error *err);
