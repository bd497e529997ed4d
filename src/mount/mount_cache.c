#include "mount/mount_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/memory.h"

struct mount_cache_block {
    struct table_link link;
    struct list recent, users;
    struct mount_cache_user *user;
    uint64_t version, index;
    size_t length;
    char bytes[];
};

void mount_cache_init(struct mount_cache *cache, size_t limit)
{
    *cache = (struct mount_cache){.blocks = TABLE_INIT, .limit = limit};
    list_init(&cache->recent);
    random_bytes(&cache->seed, sizeof(cache->seed));
}

void mount_cache_done(struct mount_cache *cache)
{
    table_done(&cache->blocks);
}

void mount_cache_user_init(struct mount_cache_user *user, struct mount_cache *cache, size_t limit)
{
    *user = (struct mount_cache_user){.cache = cache, .limit = limit};
    list_init(&user->recent);
}

static void mount_cache_drop(struct mount_cache_block *block)
{
    struct mount_cache_user *user = block->user;

    table_remove(&user->cache->blocks, &block->link);
    list_remove(&block->recent);
    list_remove(&block->users);
    user->bytes -= block->length;
    user->cache->bytes -= block->length;
    free(block);
}

void mount_cache_user_done(struct mount_cache_user *user)
{
    LIST_EACH (&user->recent, at)
        mount_cache_drop(CONTAINER_OF(at, struct mount_cache_block, users));
}

static uint64_t mount_cache_hash_of(const struct mount_cache_user *user, uint64_t version,
                                    uint64_t index)
{
    const uint64_t name[] = {(uintptr_t) user, version, index};

    return table_hash(user->cache->seed, name, sizeof(name));
}

static struct mount_cache_block *mount_cache_lookup(const struct mount_cache_user *user,
                                                    uint64_t version, uint64_t index)
{
    struct table_link *at =
        table_find(&user->cache->blocks, mount_cache_hash_of(user, version, index));

    for (; at; at = table_next(at)) {
        struct mount_cache_block *block = CONTAINER_OF(at, struct mount_cache_block, link);

        if (block->user == user && block->version == version && block->index == index)
            return block;
    }
    return NULL;
}

static void mount_cache_touch(struct mount_cache_block *block)
{
    list_remove(&block->recent);
    list_append(&block->user->cache->recent, &block->recent);
    list_remove(&block->users);
    list_append(&block->user->recent, &block->users);
}

const char *mount_cache_find(struct mount_cache_user *user, uint64_t version, uint64_t index,
                             size_t *ret_length)
{
    struct mount_cache_block *block = mount_cache_lookup(user, version, index);

    if (!block) {
        user->misses++;
        return NULL;
    }
    user->hits++;
    mount_cache_touch(block);
    *ret_length = block->length;
    return block->bytes;
}

bool mount_cache_has(struct mount_cache_user *user, uint64_t version, uint64_t index)
{
    return mount_cache_lookup(user, version, index);
}

static void mount_cache_make_room(struct mount_cache_user *user, size_t length)
{
    struct mount_cache *cache = user->cache;

    while (user->bytes + length > user->limit)
        mount_cache_drop(CONTAINER_OF(list_first(&user->recent), struct mount_cache_block, users));
    while (cache->bytes + length > cache->limit)
        mount_cache_drop(
            CONTAINER_OF(list_first(&cache->recent), struct mount_cache_block, recent));
}

void mount_cache_add(struct mount_cache_user *user, uint64_t version, uint64_t index,
                     const void *bytes, size_t length)
{
    struct mount_cache_block *block = mount_cache_lookup(user, version, index);

    if (block)
        mount_cache_drop(block);
    if (length > user->limit || length > user->cache->limit)
        return;
    mount_cache_make_room(user, length);
    block = mem_alloc(sizeof(*block) + length);
    block->user = user;
    block->version = version;
    block->index = index;
    block->length = length;
    memcpy(block->bytes, bytes, length);
    block->link.hash = mount_cache_hash_of(user, version, index);
    table_add(&user->cache->blocks, &block->link);
    list_append(&user->cache->recent, &block->recent);
    list_append(&user->recent, &block->users);
    user->bytes += length;
    user->cache->bytes += length;
}
