/* Writing a squashfs 4.0 image: the steps of a walk (tree_walk.h) in, a file out.
 *
 *     squash_writer_enter      folder              TREE_ENTER
 *     squash_writer_add        anything else       TREE_ENTRY
 *     squash_writer_leave                          TREE_LEAVE
 *     squash_writer_finish     after the top was left
 *
 * Files smaller than a block share fragments, all others are blocks of their own: most small files
 * cost no system call to write. A block of zeros takes no place. The format is libsquashfs's work
 * (docs/decisions/0018-libsquashfs.md): its threads pack blocks while the next ones are read.
 *
 * In memory, packed, is what a mount needs to know of each file: 10 to 30 bytes; and all different
 * attributes, twice. Bounds, each with its error ERR_TOO_LARGE: SQUASH_TABLES_MAX for these,
 * SQUASH_LISTINGS_MAX for the names of folders that are not complete yet, SQUASH_LINKS_MAX files
 * whose further names did not come yet. */
#pragma once

#include "keeper/squash/squash_codec.h"
#include "keeper/tree/tree_walk.h"

#define SQUASH_BLOCK_SIZE   ((size_t) 128 << 10)
#define SQUASH_TABLES_MAX   ((uint64_t) 160 << 20)
#define SQUASH_LISTINGS_MAX ((size_t) 96 << 20)
#define SQUASH_LINKS_MAX    ((size_t) 1 << 20)
#define SQUASH_IDS_MAX      UINT16_MAX

struct squash_writer_options {
    enum squash_compression compression;
    int level;
    unsigned int threads;
    uint64_t file_max; /* the longest file */
};

/* What was written so far. */
struct squash_totals {
    uint64_t files; /* names of all that is no folder */
    uint64_t folders;
    uint64_t bytes;               /* content */
    uint64_t attributes_left_out; /* other than user. and security.capability */
    uint64_t times_changed;       /* before 1970 or behind 2106 */
};

struct squash_writer;

/* Write to `file`, which is empty, from its beginning; borrowed. 0, or -1 with `err`: not a single
 * thread can be started. */
int squash_writer_new(int file, const struct squash_writer_options *options,
                      struct squash_writer **ret_writer, struct error *err);

/* Accepts NULL, and one in any state. */
void squash_writer_free(struct squash_writer *writer);

AUTO_DEFINE_PTR(squash_writer, struct squash_writer, squash_writer_free);

/* Each 0, or -1 with `err` that names the step's path where it is about it. Then the writer can
 * only be freed. They change the working directory. May block. */
int squash_writer_enter(struct squash_writer *writer, const struct tree_step *step,
                        struct error *err);
int squash_writer_add(struct squash_writer *writer, const struct tree_step *step,
                      struct error *err);
int squash_writer_leave(struct squash_writer *writer, struct error *err);

/* Write the tables and the superblock. The file's size, a multiple of 4096. */
int squash_writer_finish(struct squash_writer *writer, uint64_t *ret_size, struct error *err);

const struct squash_totals *squash_writer_totals(const struct squash_writer *writer);
