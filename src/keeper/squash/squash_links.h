/* Inside the writer of squashfs: files with several names, until the last of them is written. */
#pragma once

#include <sys/stat.h>

#include "base/table.h"

struct squash_link {
    struct table_link link;
    dev_t device;
    ino_t inode;
    uint64_t to_come;  /* names that did not come yet */
    uint64_t to_write; /* names that are not written yet: with the last of them it is gone */
    uint64_t place;    /* of the inode, once it is written */
    uint32_t number;
};

struct squash_links {
    struct table table; /* owned, and each of them */
    uint64_t seed;
};

void squash_links_init(struct squash_links *links);
void squash_links_done(struct squash_links *links);

/* One more name of a file came: the link it is a further name of; borrowed. NULL: it is the first.
 * More than the file said it has are files of their own. */
struct squash_link *squash_links_again(struct squash_links *links, const struct stat *status);

/* Note the first name. */
struct squash_link *squash_links_add(struct squash_links *links, const struct stat *status);

/* A name is written. */
void squash_links_written(struct squash_links *links, struct squash_link *link);
