#include "keeper/squash/squash_links.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/memory.h"

void squash_links_init(struct squash_links *links)
{
    *links = (struct squash_links){.table = TABLE_INIT};
    /* Who fills a disk does not choose inode numbers; without a seed it is only slower. */
    if (getrandom(&links->seed, sizeof(links->seed), GRND_NONBLOCK) < 0)
        links->seed = 0;
}

void squash_links_done(struct squash_links *links)
{
    for (size_t i = 0; i < links->table.bucket_count; i++) {
        struct table_link *next;

        for (struct table_link *at = links->table.buckets[i]; at; at = next) {
            next = at->next;
            free(CONTAINER_OF(at, struct squash_link, link));
        }
    }
    table_done(&links->table);
}

static uint64_t hash_of(const struct squash_links *links, const struct stat *status)
{
    uint64_t key[2] = {status->st_dev, status->st_ino};

    return table_hash(links->seed, key, sizeof(key));
}

struct squash_link *squash_links_again(struct squash_links *links, const struct stat *status)
{
    struct table_link *at = table_find(&links->table, hash_of(links, status));

    for (; at; at = table_next(at)) {
        struct squash_link *link = CONTAINER_OF(at, struct squash_link, link);

        if (link->device == status->st_dev && link->inode == status->st_ino && link->to_come) {
            link->to_come--;
            return link;
        }
    }
    return NULL;
}

struct squash_link *squash_links_add(struct squash_links *links, const struct stat *status)
{
    struct squash_link *link = mem_alloc(sizeof(*link));

    link->link.hash = hash_of(links, status);
    link->device = status->st_dev;
    link->inode = status->st_ino;
    link->to_come = status->st_nlink - 1;
    link->to_write = status->st_nlink;
    table_add(&links->table, &link->link);
    return link;
}

void squash_links_written(struct squash_links *links, struct squash_link *link)
{
    if (--link->to_write)
        return;
    table_remove(&links->table, &link->link);
    free(link);
}
