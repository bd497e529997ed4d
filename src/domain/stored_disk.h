/* A disk in the object store, as the columns `stored` of a sandbox and `layers` of a snapshot say
 * it:
 *
 *     {"layers":[{"id":"<hex>","sha256":"<hex>","size":n}, ...],"bytes":n}
 *
 * The oldest layer comes first. Objects are "layers/<owner>/<id>" (vault.h). */
#pragma once

#include "base/auto.h"
#include "base/text.h"
#include "domain/vault.h"
#include "store/store.h"

#define STORED_DISK_LAYERS_MAX 1024
#define STORED_DISK_MAX        ((size_t) 512 * 1024) /* as JSON */

/* Nothing is put on top of a list this long: the disk is stored whole. Lists that are squashed
 * (squash.h) never come here. */
#define STORED_DISK_LONGEST 64

struct stored_disk {
    struct vault_layer *layers; /* owned */
    size_t count;
    uint64_t bytes; /* uncompressed, of all of them */
};

void stored_disk_done(struct stored_disk *disk);
AUTO_DEFINE(stored_disk, struct stored_disk, stored_disk_done);

/* One more on top. */
void stored_disk_add(struct stored_disk *disk, const struct vault_layer *layer);

/* The row of a layer that is in the object store now. */
void stored_disk_put_row(struct store_transaction *change, const struct id *owner,
                         const struct vault_layer *layer, int64_t now_ms);

/* Of each layer id, sum and size are written and read. Too much sets text->overflowed. */
void stored_disk_write(const struct stored_disk *disk, struct text *text);

/* Fills `ret_disk` (the caller's, to be freed), or fails with ERR_INTERNAL: a row of ours that
 * cannot be read. */
int stored_disk_read(const char *json, struct stored_disk *ret_disk, struct error *err);

/* Whether it surely has not more than `count` layers: for those who look at many, without reading.
 */
bool stored_disk_is_short(const char *json, size_t count);

/* Whether the list `start` is the beginning of `json`, or all of it. As written here: other texts
 * may be the same and are not found. */
bool stored_disk_begins(const char *json, const char *start);
