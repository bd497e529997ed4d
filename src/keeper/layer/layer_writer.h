/* Writing a layer (layer_format.h): the pieces of records, compressed and summed on their way.
 *
 * The first failure stays and makes the rest do nothing; layer_writer_finish tells it. The writer
 * knows how a field looks, not which field comes next: that is layer_pack.c's. Blocks while the
 * reader is slow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "keeper/layer/layer_format.h"

struct layer_writer;

/* A layer that goes to `fd` (borrowed); its head is written. The caller frees it. */
struct layer_writer *layer_writer_new(int fd, bool is_delta);

/* Accepts NULL. */
void layer_writer_free(struct layer_writer *writer);

AUTO_DEFINE_PTR(layer_writer, struct layer_writer, layer_writer_free);

/* Begin a record: its kind, and its name unless that is NULL. */
void layer_write_record(struct layer_writer *writer, enum layer_kind kind, const char *name);

void layer_write_status(struct layer_writer *writer, const struct stat *status);
void layer_write_number(struct layer_writer *writer, size_t size, uint64_t number);
void layer_write_bytes(struct layer_writer *writer, const void *bytes, size_t length);

/* 0, or the first failure as -errno. */
int layer_writer_error(const struct layer_writer *writer);

/* The trailer and the seal. 0 and what there is to know, or the first failure: -EPIPE when nobody
 * reads. */
int layer_writer_finish(struct layer_writer *writer, struct layer_sums *ret_sums);
