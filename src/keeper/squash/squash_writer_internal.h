/* Inside the writer of squashfs: its state, and what its parts call of each other.
 *
 *     squash_writer.c           steps of the walk become nodes on the belt
 *     squash_writer_content.c   content becomes blocks on the belt
 *     squash_writer_take.c      what comes off becomes bytes of the image */
#pragma once

#include "keeper/squash/squash_belt.h"
#include "keeper/squash/squash_links.h"
#include "keeper/squash/squash_listing.h"
#include "keeper/squash/squash_writer.h"
#include "keeper/squash/squash_xattrs.h"
#include "keeper/tree/attributes.h"

/* What is on the belt, and what the thing beside it is. */
enum squash_kind {
    SQUASH_PUT_ENTER,    /* a node: a folder, kept until it is left */
    SQUASH_PUT_LEAVE,    /* NULL */
    SQUASH_PUT_NODE,     /* a node that is complete */
    SQUASH_PUT_AGAIN,    /* struct squash_again */
    SQUASH_PUT_BLOCK,    /* a node that comes later: its next block. Not owned */
    SQUASH_PUT_FRAGMENT, /* NULL */
};

/* A further name of a file. */
struct squash_again {
    struct squash_link *link; /* borrowed */
    size_t name_length;
    char name[];
};

/* A folder whose entries still come off the belt. */
struct squash_open_folder {
    struct squash_node *node; /* owned */
    struct squash_listing listing;
};

struct squash_writer {
    int file; /* borrowed */
    struct squash_writer_options options;
    struct squash_totals totals;
    struct squash_codec *codec; /* owned: for tables */
    struct squash_belt *belt;   /* owned */

    /* Of what goes on the belt. */
    struct squash_links links;
    struct squash_xattrs xattrs;
    struct attributes attributes;
    struct table ids;
    uint32_t *id_list; /* owned: SQUASH_IDS_MAX */
    uint16_t id_count;
    uint32_t inode_count;
    uint32_t *parents; /* owned: numbers of the folders on the way */
    size_t depth, depth_capacity;
    uint8_t *buffer;   /* owned: the next block */
    uint8_t *fragment; /* owned: the fragment that is being filled */
    size_t fragment_used;
    uint32_t fragment_count; /* complete ones */
    uint32_t made_at;

    /* Of what comes off it. */
    uint64_t position; /* in the file */
    struct squash_table inodes, folders, fragments;
    struct squash_open_folder *open; /* owned */
    size_t open_count, open_capacity;
    size_t listed; /* bytes in their listings */
    uint64_t root; /* place of the top's inode, once it is written */
};

/* squash_writer_take.c */
squash_belt_take squash_writer_take;
void squash_writer_drop(unsigned int kind, void *thing);

/* squash_writer_content.c: put the content of a file on the belt and describe it in `node`. */
int squash_writer_content(struct squash_writer *writer, const struct tree_step *step,
                          struct squash_node *node, struct error *err);
/* Put the fragment on, if there is something in it. */
int squash_writer_flush_fragment(struct squash_writer *writer, struct error *err);
