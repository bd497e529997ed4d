/* Blocks of objects in memory, for all mounts of a daemon.
 *
 * Two limits: of one user (a mount), so that a sandbox that reads everything pushes out its own
 * blocks only, and of all together. Where one is passed, what was not read for the longest time
 * goes. A block is named by the version of the bytes it is of (mount_tree.h): old versions are
 * never asked for again and go by themselves. One thread. */
#pragma once

#include "base/list.h"
#include "base/table.h"

struct mount_cache {
    struct table blocks;
    struct list recent; /* of all blocks; what was read last is last */
    size_t bytes, limit;
    uint64_t seed;
};

struct mount_cache_user {
    struct mount_cache *cache; /* borrowed */
    struct list recent;        /* of its own blocks */
    size_t bytes, limit;
    uint64_t hits, misses;
};

void mount_cache_init(struct mount_cache *cache, size_t limit);
/* All users must be done. */
void mount_cache_done(struct mount_cache *cache);

void mount_cache_user_init(struct mount_cache_user *user, struct mount_cache *cache, size_t limit);
void mount_cache_user_done(struct mount_cache_user *user);

/* The bytes of a block, borrowed until something is added; NULL: not here. */
const char *mount_cache_find(struct mount_cache_user *user, uint64_t version, uint64_t index,
                             size_t *ret_length);

/* Whether it is here, without counting as a use. */
bool mount_cache_has(struct mount_cache_user *user, uint64_t version, uint64_t index);

/* Copies the bytes. What is larger than a limit is not kept. */
void mount_cache_add(struct mount_cache_user *user, uint64_t version, uint64_t index,
                     const void *bytes, size_t length);
