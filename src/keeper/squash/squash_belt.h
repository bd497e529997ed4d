/* The belt: things to archive go on at one end and come off at the other, in the same order, with
 * their bytes packed by other threads meanwhile.
 *
 *     put ──► [thing] [thing + block] [thing] ... ──► take
 *                          │   ▲
 *                          ▼   │
 *                         threads
 *
 * Putting and taking is done by one thread, the owner's: things are taken off while new ones are
 * put on a full belt, and all of them at the end. So whoever takes a thing knows that everything
 * before it was taken. Without threads (where none can be started) putting does the packing. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "keeper/squash/squash_codec.h"

/* A thing with its bytes, as it comes off. All borrowed for the call. */
struct squash_parcel {
    unsigned int kind; /* of the thing: the owner's */
    void *thing;
    const uint8_t *bytes; /* packed, or as they were */
    size_t size;
    size_t length; /* as they were; 0: a thing without bytes */
    bool is_packed;
};

/* 0, or -1 with `err`: then nothing more is taken. */
typedef int squash_belt_take(void *owner, const struct squash_parcel *parcel, struct error *err);

struct squash_belt_options {
    enum squash_compression compression;
    int level;
    size_t block_size;
    unsigned int threads;
    squash_belt_take *take;
    void *owner; /* borrowed */
};

struct squash_belt;

struct squash_belt *squash_belt_new(const struct squash_belt_options *options);

/* Stops the threads. Things that are still on it are given to `drop`, for the owner to free.
 * Accepts NULL. */
void squash_belt_free(struct squash_belt *belt, void (*drop)(unsigned int kind, void *thing));

/* Put a thing on. Returns 0, or -1 with `err` of a take: then the thing is still the caller's. */
int squash_belt_put(struct squash_belt *belt, unsigned int kind, void *thing, struct error *err);

/* The same with `length` bytes, 1 to the block size, in `*buffer`: it was made by
 * squash_belt_buffer, and is exchanged for another one. */
int squash_belt_put_block(struct squash_belt *belt, unsigned int kind, void *thing,
                          uint8_t **buffer, size_t length, struct error *err);

/* A buffer of the block size. The caller frees it. */
uint8_t *squash_belt_buffer(const struct squash_belt *belt);

/* Take everything off. */
int squash_belt_flush(struct squash_belt *belt, struct error *err);
