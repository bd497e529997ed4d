/* Inside keeper/layer_pack: entries of a tree as records of a layer (layer_format.h).
 *
 * A folder is told only when something in it is, so the records of the folders on the way are
 * written before the first that needs them. Paths must come in the order of the walk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "keeper/layer/layer_writer.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/linked_files.h"
#include "keeper/tree/tree_walk.h"

struct layer_records {
    struct layer_writer *writer; /* owned */
    /* Folders whose record is written and that are not left. */
    size_t told;                  /* how many, the top included */
    size_t told_length;           /* of the path of the last of them */
    struct attributes attributes; /* owned */
    uint8_t *buffer;              /* owned: a window of a file */
    uint64_t linked;              /* entries with several names that were told */
    uint64_t files, entries, removed, attributes_left_out;
};

/* Records that go to `data`, borrowed. */
void layer_records_init(struct layer_records *records, int data, bool is_delta);
void layer_records_done(struct layer_records *records);

/* What becomes part of a layer. A socket is nothing without its process, and a device node of a
 * sandbox opens nothing. */
bool layer_records_take(const struct stat *status);

/* Whether the folder of this step (TREE_ENTER or _LEAVE) was told. */
bool layer_records_has(const struct layer_records *records, const struct tree_step *step);

/* Into this folder. */
void layer_records_enter(struct layer_records *records, const struct tree_step *step);

/* Out of it again: its status and attributes. 0 or -errno, like all that follow. */
int layer_records_leave(struct layer_records *records, const struct tree_step *step);

/* An entry that is no folder, whole, or as a further name of what was told before. `file` is what
 * it is when it has several names, or NULL; its number is set. */
int layer_records_add(struct layer_records *records, const struct tree_step *step,
                      struct linked_file *file);

/* A file that keeps its content. */
int layer_records_change(struct layer_records *records, const struct tree_step *step);

/* A path of the base that is gone. */
void layer_records_remove(struct layer_records *records, const struct tree_step *step);
