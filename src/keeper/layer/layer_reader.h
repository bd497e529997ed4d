/* Reading a layer (layer_format.h) that may come from anywhere.
 *
 * Every rule of the format is checked, in bounded memory; what comes out may be used as it is: a
 * name is one component, sizes fit, folders are left as often as they are entered. What is not
 * known before the end is whether the sums are right: so nothing that was read may be believed
 * before layer_reader_next returned LAYER_END.
 *
 *     next      F             piece, piece, ... (until 0), then attribute, attribute, ... (until 0)
 *     next      U L P W C     attribute, attribute, ... (until 0)
 *     next      D H R         -
 *     next      E             the end
 *     again                   another layer behind it, which begins with `begin`; or nothing
 *
 * The parts of a record must all be read before the next. Failures are -1 with `err`: ERR_INVALID
 * with a message that names the place, or what reading the descriptor failed with. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "keeper/layer/layer_format.h"

struct layer_record {
    enum layer_kind kind;
    char name[NAME_MAX + 1];
    size_t depth; /* 0 for the top, 1 for what is in it */
    struct layer_status status;
    bool linked;     /* has several names */
    uint64_t number; /* H: which linked entry; linked: its own, from 1 */
    uint64_t size;   /* F */
    char target[LAYER_TARGET_MAX + 1];
};

struct layer_piece {
    uint64_t offset;
    const void *bytes; /* borrowed until the next call */
    size_t length;
};

struct layer_attribute {
    char name[UINT8_MAX + 1];
    const void *value; /* borrowed until the next call */
    size_t length;
};

struct layer_reader;

/* A layer that comes from `fd`, borrowed. The caller frees it. */
struct layer_reader *layer_reader_new(int fd);

/* Accepts NULL. */
void layer_reader_free(struct layer_reader *reader);

AUTO_DEFINE_PTR(layer_reader, struct layer_reader, layer_reader_free);

/* Read the head. */
int layer_reader_begin(struct layer_reader *reader, bool *ret_is_delta, struct error *err);

int layer_reader_next(struct layer_reader *reader, struct layer_record *ret_record,
                      struct error *err);

/* After LAYER_END: 1 when another layer follows, 0 when the descriptor has ended. */
int layer_reader_again(struct layer_reader *reader, struct error *err);

/* 1 and a part of the record, 0 when there are no more. */
int layer_reader_piece(struct layer_reader *reader, struct layer_piece *ret_piece,
                       struct error *err);
int layer_reader_attribute(struct layer_reader *reader, struct layer_attribute *ret_attribute,
                           struct error *err);

/* After LAYER_END. */
void layer_reader_sums(const struct layer_reader *reader, struct layer_sums *ret_sums);

/* Fill `err` for what failed at the record that was read last: "what 'path': reason". A long path
 * is shown by its end. Returns -1. */
int layer_reader_error(const struct layer_reader *reader, enum err_code code, int system,
                       const char *what, struct error *err);
