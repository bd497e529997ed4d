/* Reading a squashfs 4.0 image that anybody made.
 *
 * Every number in it may lie: each is checked before it is used. Whoever reads gets the error
 * "the archive is broken: ..." (ERR_INVALID), and never more memory than a few blocks of data and
 * SQUASH_IMAGE_CACHE blocks of metadata. What leads from folder to folder is the caller's to bound:
 * an image may be full of loops. */
#pragma once

#include <stdbool.h>

#include "base/auto.h"
#include "base/error.h"
#include "keeper/squash/squash_format.h"

#define SQUASH_IMAGE_CACHE     64
#define SQUASH_XATTR_VALUE_MAX 65536
#define SQUASH_XATTR_COUNT_MAX 4096
#define SQUASH_XATTR_NAME_MAX  255

struct squash_image;

/* Open what is in `file`, a regular file, borrowed. 0, or -1 with `err`. */
int squash_image_new(int file, struct squash_image **ret_image, struct error *err);

/* Accepts NULL. */
void squash_image_free(struct squash_image *image);

AUTO_DEFINE_PTR(squash_image, struct squash_image, squash_image_free);

const struct squash_superblock *squash_image_superblock(const struct squash_image *image);

/* A place in metadata, and where that may end. */
struct squash_cursor {
    uint64_t block; /* in the file */
    uint64_t end;
    uint32_t offset; /* in the unpacked block */
};

struct squash_inode {
    enum squash_type type; /* one of the first seven */
    uint16_t mode;
    uint32_t uid, gid;
    uint32_t mtime;
    uint32_t number; /* 1 to the superblock's count */
    uint32_t links;
    uint32_t xattr; /* or SQUASH_NONE */
    uint32_t device;

    uint64_t size; /* of files; of links: the length of the target, 1 to SQUASH_TARGET_MAX */
    uint64_t start;
    uint32_t fragment, fragment_offset;
    struct squash_cursor rest; /* of files: sizes of blocks; of links: the target */

    uint32_t listing_size; /* of folders */
    struct squash_cursor listing;
};

/* All of these: 0, or -1 with `err`. */

/* The inode at a place: the superblock's root, or a folder's entry. */
int squash_image_inode(struct squash_image *image, uint64_t place, struct squash_inode *ret_inode,
                       struct error *err);

/* The target of a link, with a NUL behind it. */
int squash_image_target(struct squash_image *image, const struct squash_inode *inode,
                        char ret_target[static SQUASH_TARGET_MAX + 1], struct error *err);

/* Going through a folder. Names come in the order of their bytes, without "/" and NUL, none of them
 * "." or "..": all else is broken. */
struct squash_folder {
    struct squash_cursor cursor;
    uint32_t left;     /* bytes of the listing */
    uint32_t run_left; /* entries behind the last header */
    uint64_t run_block;
    uint32_t run_number;
    enum squash_type type; /* of the entry, as the next two */
    uint64_t place;
    uint32_t number;
    char name[SQUASH_NAME_MAX + 1]; /* "" before the first */
};

void squash_folder_init(struct squash_folder *folder, const struct squash_inode *inode);

/* 1 when there is another entry, 0 at the end, -1 with `err`. */
int squash_folder_next(struct squash_image *image, struct squash_folder *folder, struct error *err);

/* Takes bytes. 0, or -1 with `err`. */
typedef int squash_image_sink(void *context, const uint8_t *bytes, size_t length,
                              struct error *err);

/* The content of a file, in pieces of at most a block. */
int squash_image_content(struct squash_image *image, const struct squash_inode *inode,
                         squash_image_sink *sink, void *context, struct error *err);

/* Takes an attribute with its whole name. */
typedef int squash_image_attribute(void *context, const char *name, const uint8_t *value,
                                   size_t length, struct error *err);

/* The attributes of an inode. */
int squash_image_attributes(struct squash_image *image, const struct squash_inode *inode,
                            squash_image_attribute *take, void *context, struct error *err);
