/* The job `read`: the contents of named files of a view.
 *
 * `paths` are lines of JSON, the first of which names the folder, as for tree_scan.h:
 *
 *     {"folder":"/workspace"}
 *     {"path":"src/a.c"}
 *     {"path":"src/b.c"}
 *
 * Paths are as a scan tells them: relative, escaped, not through links that lead out of the folder.
 * For each, in this order, `data` gets its length as eight bytes, the lowest first, and then so
 * many bytes of content. A file that is missing or is no regular file has the length
 * TREE_READ_MISSING and no bytes. Ends with
 *
 *     {"read":{"files":2,"missing":0,"bytes":123}}
 *
 * A line is answered before the next is read, so whoever writes paths must read contents too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "keeper/output.h"

#define TREE_READ_MISSING  UINT64_MAX
#define TREE_READ_LINE_MAX ((size_t) 128 << 10)

/* Read what `paths` (a pipe or file, read to its end) name in `view` into `data`. 0, or -1 with
 * `err`: ERR_INVALID for a line that is none, ERR_NOT_FOUND without the folder, ERR_CANCELLED when
 * nobody reads `data`. May block for long. */
int tree_read(int view, int paths, int data, struct output *output, struct error *err);
