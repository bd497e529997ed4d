/* Inside the writer of squashfs: its state, and what its parts call of each other.
 *
 *     squash_writer.c           steps of the walk become nodes
 *     squash_writer_content.c   content becomes blocks, which threads of libsquashfs pack
 *     squash_writer_tables.c    nodes whose blocks are all written become inodes and names
 *
 * What an inode says of its blocks is known when they are written. So nodes wait, up to
 * SQUASH_NODES_MAX of them, then for all blocks before them, and are taken in their order. */
#pragma once

#include <sqfs/block.h>
#include <sqfs/block_processor.h>
#include <sqfs/block_writer.h>
#include <sqfs/dir_writer.h>
#include <sqfs/frag_table.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/meta_writer.h>
#include <sqfs/xattr_writer.h>

#include "base/text.h"
#include "keeper/squash/squash_format.h"
#include "keeper/squash/squash_library.h"
#include "keeper/squash/squash_links.h"
#include "keeper/squash/squash_writer.h"
#include "keeper/tree/attributes.h"

#define SQUASH_NODES_MAX 4096

enum squash_node_kind {
    SQUASH_NODE_ENTER, /* a folder, whose inode is written when it is left */
    SQUASH_NODE_LEAVE,
    SQUASH_NODE_OTHER, /* anything else */
    SQUASH_NODE_AGAIN, /* a further name of a file */
};

struct squash_node {
    enum squash_node_kind kind;
    mode_t type;                 /* S_IFMT of the mode */
    sqfs_inode_generic_t *inode; /* owned; NULL for _LEAVE and _AGAIN */
    uint32_t parent, xattr;      /* of folders */
    uint32_t written;            /* of files: entries of the inode's block list */
    struct squash_link *link;    /* borrowed: a file with several names */
    char name[];
};

/* A table that grows in memory until its place in the file is known. */
struct squash_table {
    struct squash_output output;
    sqfs_meta_writer_t *meta; /* owned */
};

/* A folder whose names still come. */
struct squash_open_folder {
    struct squash_node *node; /* owned */
    struct text listing;      /* entries with their names, one after the other */
    uint32_t folders;         /* among them */
};

struct squash_writer {
    struct squash_writer_options options;
    struct squash_totals totals;
    struct squash_output output;
    sqfs_compressor_t *compressor;     /* owned, as all of the library's */
    sqfs_block_processor_t *processor; /* packs */
    sqfs_block_writer_t block_writer;  /* takes what is packed, in order */
    struct squash_table inodes, folders;
    sqfs_dir_writer_t *folder_writer;
    sqfs_frag_table_t *fragments;
    sqfs_id_table_t *ids;
    sqfs_xattr_writer_t *xattrs;
    uint32_t xattr_count; /* different sets */
    uint64_t xattrs_size; /* of them, in memory */
    struct attributes attributes;
    struct squash_links links;

    struct squash_node *nodes[SQUASH_NODES_MAX]; /* owned: that wait */
    size_t node_count;
    uint32_t inode_count;
    uint32_t *parents; /* owned: numbers of the folders on the way */
    size_t depth, depth_capacity;
    uint8_t *buffer;   /* owned: the next block */
    uint8_t *fragment; /* owned: the fragment that is being filled */
    size_t fragment_used;
    uint32_t fragment_count; /* complete ones */
    uint32_t made_at;

    struct squash_open_folder *open; /* owned */
    size_t open_count, open_capacity;
    size_t listed; /* bytes in their listings */
    uint64_t root; /* place of the top's inode, once it is written */
};

/* Accepts NULL. */
void squash_node_free(struct squash_node *node);

AUTO_DEFINE_PTR(squash_node, struct squash_node, squash_node_free);

/* squash_writer_content.c: read the content of a file and describe it in `node`. */
int squash_writer_content(struct squash_writer *writer, const struct tree_step *step,
                          struct squash_node *node, struct error *err);
/* Give the fragment away, if there is something in it. */
int squash_writer_flush_fragment(struct squash_writer *writer, struct error *err);

/* squash_writer_tables.c */
typedef int squash_block_taker(sqfs_block_writer_t *base, void *user, sqfs_u32 size,
                               sqfs_u32 checksum, sqfs_u32 flags, const sqfs_u8 *bytes,
                               sqfs_u64 *ret_location);
squash_block_taker squash_writer_take_block;
/* Wait for all blocks and take all nodes. */
int squash_writer_take_nodes(struct squash_writer *writer, struct error *err);

int squash_too_large(struct error *err, const char *what);
