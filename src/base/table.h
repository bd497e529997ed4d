/* A hash table whose links live inside the objects: no allocation per object, lookup in O(1).
 *
 *     struct table names = TABLE_INIT;
 *     thing->link.hash = table_hash(seed, thing->name, strlen(thing->name));
 *     table_add(&names, &thing->link);
 *     for (struct table_link *at = table_find(&names, hash); at; at = table_next(at)) {
 *         struct thing *t = CONTAINER_OF(at, struct thing, link);
 *         if (strcmp(t->name, name) == 0) ...
 *     }
 *
 * The table compares hashes, its user compares keys. It grows by itself and shrinks only when it
 * becomes empty. Whoever lets strangers choose keys takes a random seed. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

struct table_link {
    struct table_link *next;
    uint64_t hash; /* set before table_add */
};

struct table {
    struct table_link **buckets; /* owned; NULL while empty */
    size_t bucket_count;         /* a power of two, or 0 */
    size_t count;
};

#define TABLE_INIT                                                                                 \
    {                                                                                              \
        .buckets = NULL                                                                            \
    }

/* A well mixed hash of `length` bytes. */
uint64_t table_hash(uint64_t seed, const void *bytes, size_t length);

/* The link must be in no table. Objects with the same hash may be in it already. */
void table_add(struct table *table, struct table_link *link);

/* The link must be in this table. */
void table_remove(struct table *table, struct table_link *link);

/* The first object with this hash, or NULL; and the one behind it. */
struct table_link *table_find(const struct table *table, uint64_t hash);
struct table_link *table_next(const struct table_link *link);

/* Forget all objects, which are the caller's, and free the buckets. */
void table_done(struct table *table);

AUTO_DEFINE(table, struct table, table_done);
