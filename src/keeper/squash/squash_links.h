/* Inside the writer of squashfs: files with several names, until the last of them came. */
#pragma once

#include <sys/stat.h>

#include "base/table.h"
#include "keeper/squash/squash_format.h"

struct squash_link {
    struct table_link link;
    dev_t device;
    ino_t inode;
    uint64_t left;    /* names that did not come yet: 0 and it is in no table */
    uint64_t waiting; /* names on the belt */
    uint64_t place;   /* of the inode, once it is written */
    uint32_t number;
    enum squash_type type;
};

struct squash_links {
    struct table table;
    uint64_t seed;
};

void squash_links_init(struct squash_links *links);
void squash_links_done(struct squash_links *links);

/* NULL: no name of it came before. Borrowed. */
struct squash_link *squash_links_find(const struct squash_links *links, const struct stat *status);

/* Note the first name, which waits. */
struct squash_link *squash_links_add(struct squash_links *links, const struct stat *status);

/* One more came and waits. More than the file said it has are files of their own. */
void squash_links_again(struct squash_links *links, struct squash_link *link);

/* One waits no more: it is written, or never will be. */
void squash_link_taken(struct squash_link *link);
