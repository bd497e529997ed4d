#include "base/table.h"

#include <string.h>

#include "base/memory.h"

#define BUCKETS_MIN ((size_t) 16)

/* Both halves of the product: every bit of the input reaches every bit of the result. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

uint64_t table_hash(uint64_t seed, const void *bytes, size_t length)
{
    const char *at = bytes;
    uint64_t hash = seed ^ length;

    while (length > 0) {
        size_t step = length < sizeof(uint64_t) ? length : sizeof(uint64_t);
        uint64_t word = 0;

        memcpy(&word, at, step);
        hash = mix(hash ^ word ^ UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93) ^ seed);
        at += step;
        length -= step;
    }
    return mix(hash ^ UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db));
}

static struct table_link **bucket_of(const struct table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static void grow(struct table *table)
{
    struct table_link **old = table->buckets;
    size_t old_count = table->bucket_count;

    table->bucket_count = old_count ? old_count * 2 : BUCKETS_MIN;
    table->buckets = mem_alloc_array(table->bucket_count, sizeof(struct table_link *));
    for (size_t i = 0; i < old_count; i++) {
        struct table_link *next;

        for (struct table_link *link = old[i]; link; link = next) {
            struct table_link **bucket = bucket_of(table, link->hash);

            next = link->next;
            link->next = *bucket;
            *bucket = link;
        }
    }
    free(old);
}

void table_add(struct table *table, struct table_link *link)
{
    struct table_link **bucket;

    if (table->count >= table->bucket_count)
        grow(table);
    bucket = bucket_of(table, link->hash);
    link->next = *bucket;
    *bucket = link;
    table->count++;
}

void table_remove(struct table *table, struct table_link *link)
{
    struct table_link **at = bucket_of(table, link->hash);

    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    link->next = NULL;
    if (--table->count == 0)
        table_done(table);
}

static struct table_link *skip_to(struct table_link *link, uint64_t hash)
{
    while (link && link->hash != hash)
        link = link->next;
    return link;
}

struct table_link *table_find(const struct table *table, uint64_t hash)
{
    return table->bucket_count ? skip_to(*bucket_of(table, hash), hash) : NULL;
}

struct table_link *table_next(const struct table_link *link)
{
    return skip_to(link->next, link->hash);
}

void table_done(struct table *table)
{
    free(table->buckets);
    *table = (struct table) TABLE_INIT;
}
