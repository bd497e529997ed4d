/* The list of the last sync, beside which the new one is laid: what is the same, what is gone.
 *
 *     past.text = the lines;  mirror_past_begin(&past);
 *     for each entry of the new list: mirror_past_has(&past, entry)
 *     mirror_past_end(&past);
 *     while ((gone = mirror_past_next_gone(&past))) ...
 *
 * A list that is out of order or no list says nothing: then nothing is the same, and nothing is
 * gone, because files that are still there could look so. */
#pragma once

#include "vault/mirror_list.h"

/* Where lines of a list begin. */
struct mirror_places {
    size_t *items; /* owned */
    size_t count, room;
};

void mirror_places_add(struct mirror_places *places, size_t place);

struct mirror_past {
    struct text text; /* filled by the caller */
    struct mirror_cursor cursor;
    struct mirror_entry entry;
    size_t place;              /* of its line */
    bool has_begun;            /* `entry` is a line, perhaps one that was passed */
    bool has_entry;            /* it was not passed yet */
    bool is_bad;               /* nothing it says is believed */
    bool swaps;                /* a file is there for a folder, or a folder for a file */
    struct mirror_places gone; /* files whose objects go */
    size_t next_gone;
};

#define MIRROR_PAST_INIT(maximum)                                                                  \
    {                                                                                              \
        .text = TEXT_INIT(maximum), .entry = MIRROR_ENTRY_INIT                                     \
    }

void mirror_past_done(struct mirror_past *past);

void mirror_past_begin(struct mirror_past *past);

/* Believe nothing of it. */
void mirror_past_forget(struct mirror_past *past);

/* Whether it has this file with this content. Entries come in the order of lists. */
bool mirror_past_has(struct mirror_past *past, const struct mirror_entry *entry);

/* The new list is complete. */
void mirror_past_end(struct mirror_past *past);

/* The next file that is gone, borrowed until the next call; NULL: that was the last. */
const struct mirror_entry *mirror_past_next_gone(struct mirror_past *past);
