/* A disk in the object store, as the column `stored` of a sandbox says it:
 *
 *     {"layers":[{"id":"<hex>","sha256":"<hex>","size":n}, ...],"bytes":n}
 *
 * The oldest layer comes first. Objects are "layers/<owner>/<id>" (vault.h). */
#pragma once

#include "base/auto.h"
#include "base/text.h"
#include "domain/vault.h"

#define STORED_DISK_LAYERS_MAX 1024
#define STORED_DISK_MAX        ((size_t) 512 * 1024) /* as JSON */

struct stored_disk {
    struct vault_layer *layers; /* owned */
    size_t count;
    uint64_t bytes; /* uncompressed, of all of them */
};

void stored_disk_done(struct stored_disk *disk);
AUTO_DEFINE(stored_disk, struct stored_disk, stored_disk_done);

/* Of each layer id, sum and size are written and read. Too much sets text->overflowed. */
void stored_disk_write(const struct stored_disk *disk, struct text *text);

/* Fills `ret_disk` (the caller's, to be freed), or fails with ERR_INTERNAL: a row of ours that
 * cannot be read. */
int stored_disk_read(const char *json, struct stored_disk *ret_disk, struct error *err);
