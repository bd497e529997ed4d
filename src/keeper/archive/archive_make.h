/* The job `archive`: a folder of a sandbox's disk as a squashfs 4.0 image.
 *
 * Options are one JSON object:
 *
 *     {"folder":"/workspace","compression":"lz4","level":1,"threads":2,
 *      "gitignore":false,"excludes":["node_modules","*.log"]}
 *
 * folder       absolute, as the sandbox sees it: links on the way to it lead where they lead there,
 *              never out of the view. All others may be left out.
 * compression  lz4 (the default), zstd, gzip, xz; `level` as squash_codec.h says
 * threads      that compress, ARCHIVE_THREADS_MAX at most
 * gitignore,
 * excludes     what is left out: ignore_rules.h
 *
 * Kept are files, folders, links, hard links, fifos, sockets and device nodes; modes, owners,
 * attributes in `user.` (not overlay's) and `security.capability`; holes, as blocks of zeros; and
 * times of change to the second, from 1970 to 2106: others become the nearest. The link count is
 * the tree's, also of names that were left out. The archive depends on the tree and the options
 * only, not on threads or time.
 *
 * Nobody may change the tree meanwhile; what changes or vanishes is an error that names the path.
 * So is a path that no tar reader would take back (SQUASH_PATH_MAX), a file of more than
 * ARCHIVE_FILE_MAX, and a tree whose tables do not fit into the bounds of squash_writer.h.
 *
 * While it runs, at most four times a second, and at its end it tells:
 *
 *     {"progress":{"files":1000,"bytes":123456}}
 *     {"archived":{"files":1000,"folders":10,"bytes":123456,"size":65536,"sha256":"...",
 *      "ignored":3,"attributes_left_out":0,"times_changed":0}}
 *
 * files are names of all that is no folder, bytes is their content, size that of the image.
 * ignored counts what was left out by the options, a folder with all in it as one. */
#pragma once

#include "base/error.h"
#include "keeper/output.h"

#define ARCHIVE_OPTIONS_MAX     ((size_t) 4 << 20)
#define ARCHIVE_EXCLUDES_MAX    ((size_t) 10000)
#define ARCHIVE_THREADS_MAX     16
#define ARCHIVE_THREADS_DEFAULT 2
#define ARCHIVE_FILE_MAX        ((uint64_t) 1 << 40)

/* Archive a folder beneath `view` into `file`, a regular file, empty, open for reading and writing.
 * `options` is read to its end. Uses threads and changes the working directory. 0, or -1 with
 * `err`: ERR_INVALID (options, or the folder is none), ERR_NOT_FOUND (the folder), ERR_TOO_LARGE,
 * or what the system said. May block for long. */
int archive_make(int view, int options, int file, struct output *output, struct error *err);
