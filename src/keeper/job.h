/* The jobs of burrow-keeper: what it does to the trees it was given.
 *
 *     delete DISK             everything in it
 *     measure DISK            tree_measure.h
 *     list DISK               tree_list.h
 *     copy DISK TARGET        tree_copy.h
 *     copy-live DISK TARGET   tree_copy.h, while somebody works in it; input: a time, later its end
 *     diff DISK BASE          tree_diff.h
 *     pack DISK [BASE]        layer_pack.h; data: the layer
 *     unpack TARGET           layer_unpack.h; input: layers, the oldest first
 *     archive DISK            archive_make.h, a view; input: options, data: a file
 *     unarchive               archive_unpack.h; input: a file, data: a tar stream
 *     scan DISK               tree_scan.h, a view; input: options
 *     read DISK               tree_read.h, a view; input: paths, data: contents
 *     import BASE TARGET      image_import.h; BASE: the layers there are, input: an archive
 *     import-layout DISK BASE TARGET  the same; DISK: an OCI layout
 *     add-layer TARGET        layer_unpack.h, within the limits of an import; input: the layer
 *
 * DISK and BASE are read (delete alone changes its DISK), TARGET is written. Of a job that works on
 * a view, DISK shows what the sandbox saw; all others see the upper folder of the overlay, with its
 * whiteouts. Descriptor 0 is the input, 1 the report, 2 the log, and 3 the data of jobs that have
 * some.
 *
 * DISK and BASE of `copy`, `diff` and `pack` may be stacks of layers, the topmost first:
 * "/a:/b:/c".
 *
 * A job tells its outcome as lines of JSON. One that failed tells it as its last line:
 *
 *     {"error":{"code":"no_space","message":"copy 'u/a': No space left on device","errno":28}} */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "keeper/output.h"
#include "keeper/tree/tree_walk.h"

/* Where the data of a job is. */
#define JOB_DATA_FD 3

/* What a job works with; -EBADF for what it has not. All borrowed. */
struct job {
    int disk, base, target;
    struct tree disk_tree, base_tree; /* of the same, with all their layers */
    int input, data;
    struct output *output;
};

struct job_kind {
    const char *name;
    bool has_disk, has_base, has_target;
    bool may_lack_base;
    bool takes_stacks;
    bool has_data;
    /* 0, or -1 with `err`. */
    int (*run)(const struct job *job, struct error *err);
};

/* The kind with that name, or NULL. Static. */
const struct job_kind *job_find(const char *name);

/* How many folders it is told at least and at most: disk, base, target, in this order. */
int job_folders_min(const struct job_kind *kind);
int job_folders_max(const struct job_kind *kind);

/* Run it to its end, its report and output included. Returns the exit status of the program: 0, or
 * 1 with `err` filled (and told, unless nobody reads). May block for long. */
int job_run(const struct job_kind *kind, const struct job *job, struct error *err);

/* Tell a failure that came before the job could run. Returns the exit status, 1. */
int job_fail(struct output *output, const struct error *err);

/* Print what each job is told, a line each, to standard error. */
void job_print_usage(void);
