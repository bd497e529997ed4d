/* The job `scan`: what is in one folder of a view, with sums of the contents.
 *
 * `options` is one JSON object:
 *
 *     {"folder":"/workspace","excludes":["node_modules",".cache"],"limitFiles":100000,
 *      "limitBytes":1073741824}
 *
 * folder      as the sandbox names it: links on the way to it lead where they lead inside. Escaped
 *             as in name_escape.h
 * excludes    whole names, likewise escaped: what has one is left out, with all that is in it
 * limitFiles  more files, folders and links together, or more content (limitBytes), fail the job
 * limitBytes  with ERR_TOO_LARGE. Both are optional
 *
 * A line per entry in the order of the walk, the folder itself first:
 *
 *     {"path":".","type":"folder","mode":"0755","mtime":1700000000,"mtime_ns":5}
 *     {"path":"src/a.c","type":"file","mode":"0644","mtime":1700000000,"mtime_ns":5,"size":3,
 *      "sha256":"..."}
 *     {"path":"now","type":"link","mode":"0777","mtime":1700000000,"mtime_ns":5,"target":"src"}
 *
 * Types are those of tree_list.h; other than these three they have no further members. Paths are
 * relative to the folder and escaped. Ends with
 *
 *     {"scanned":{"files":1,"folders":1,"links":1,"others":0,"bytes":3,"skipped":2,"too_long":0}}
 *
 * skipped counts what the excludes left out (a folder is one), too_long what has a path of more
 * than TREE_LIST_PATH_MAX bytes and is left out for that, with all that is in it. */
#pragma once

#include "base/error.h"
#include "keeper/output.h"

#define TREE_SCAN_OPTIONS_MAX ((size_t) 256 << 10)
#define TREE_SCAN_EXCLUDES    1000

/* Scan a folder of `view` as `options` (a pipe or file, read to its end) say. 0, or -1 with `err`:
 * ERR_INVALID for the options or a folder that is none, ERR_NOT_FOUND without it, ERR_TOO_LARGE.
 * May block for long. */
int tree_scan(int view, int options, struct output *output, struct error *err);
