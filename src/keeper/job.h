/* The jobs of burrow-keeper: what it does to the one tree it was given.
 *
 *     delete FOLDER           everything in it
 *     measure FOLDER          tree_measure.h
 *     list FOLDER             tree_list.h
 *     copy FOLDER TARGET      tree_copy.h
 *
 * A job tells its outcome as lines of JSON. One that failed tells it as its last line:
 *
 *     {"error":{"code":"no_space","message":"copy 'u/a': No space left on device","errno":28}} */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "keeper/output.h"

struct job_kind {
    const char *name;
    bool has_target;
    /* 0, or -1 with `err`. `target` is -EBADF for a job without. */
    int (*run)(int folder, int target, struct output *output, struct error *err);
};

/* The kind with that name, or NULL. Static. */
const struct job_kind *job_find(const char *name);

/* Run it to its end, its report and output included. Returns the exit status of the program: 0, or
 * 1 with `err` filled (and told, unless nobody reads). May block for long. */
int job_run(const struct job_kind *kind, int folder, int target, struct output *output,
            struct error *err);

/* Tell a failure that came before the job could run. Returns the exit status, 1. */
int job_fail(struct output *output, const struct error *err);
