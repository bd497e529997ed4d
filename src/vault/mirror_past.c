#include "vault/mirror_past.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void mirror_places_add(struct mirror_places *places, size_t place)
{
    if (places->count == places->room) {
        places->room = places->room ? places->room * 2 : 256;
        places->items = mem_resize(places->items, places->room * sizeof(size_t));
    }
    places->items[places->count++] = place;
}

void mirror_past_done(struct mirror_past *past)
{
    text_done(&past->text);
    mirror_entry_done(&past->entry);
    free(past->gone.items);
}

void mirror_past_forget(struct mirror_past *past)
{
    past->is_bad = true;
    past->has_entry = false;
    past->gone.count = 0;
    past->cursor.at = past->text.length;
}

/* The next entry, whose order is checked. */
static void advance(struct mirror_past *past)
{
    struct mirror_entry last = past->entry;
    const char *line;
    size_t length, place = past->cursor.at;

    past->has_entry = false;
    if (past->is_bad || !mirror_next_line(&past->cursor, &line, &length))
        return;
    past->entry = (struct mirror_entry) MIRROR_ENTRY_INIT;
    if (mirror_entry_read(&past->entry, line, length, NULL) < 0 ||
        (past->has_begun && mirror_compare(&last, &past->entry) >= 0))
        mirror_past_forget(past);
    else
        past->has_entry = true;
    past->has_begun = true;
    past->place = place;
    mirror_entry_done(&last);
}

void mirror_past_begin(struct mirror_past *past)
{
    past->cursor =
        (struct mirror_cursor){.text = &past->text, .at = past->is_bad ? past->text.length : 0};
    advance(past);
}

/* What comes before `limit` (NULL: all of the rest) is gone. */
static void pass(struct mirror_past *past, const struct mirror_entry *limit)
{
    while (past->has_entry && (!limit || mirror_compare(&past->entry, limit) < 0)) {
        if (past->entry.type == MIRROR_FILE)
            mirror_places_add(&past->gone, past->place);
        advance(past);
    }
}

bool mirror_past_has(struct mirror_past *past, const struct mirror_entry *entry)
{
    const struct mirror_entry *old = &past->entry;
    bool is_same;

    pass(past, entry);
    if (!past->has_entry || mirror_compare(old, entry) != 0)
        return false;
    is_same = old->type == MIRROR_FILE && entry->type == MIRROR_FILE && old->size == entry->size &&
              memcmp(old->sum, entry->sum, sizeof(old->sum)) == 0;
    if ((old->type == MIRROR_FOLDER) != (entry->type == MIRROR_FOLDER))
        past->swaps = true;
    /* Its object goes, unless the new file takes its place. */
    if (old->type == MIRROR_FILE && entry->type != MIRROR_FILE)
        mirror_places_add(&past->gone, past->place);
    advance(past);
    return is_same;
}

void mirror_past_end(struct mirror_past *past)
{
    pass(past, NULL);
}

const struct mirror_entry *mirror_past_next_gone(struct mirror_past *past)
{
    struct mirror_cursor cursor = {.text = &past->text};
    const char *line;
    size_t length;

    if (past->next_gone == past->gone.count)
        return NULL;
    cursor.at = past->gone.items[past->next_gone++];
    /* Each line was read before. */
    if (!mirror_next_line(&cursor, &line, &length) ||
        mirror_entry_read(&past->entry, line, length, NULL) < 0)
        return NULL;
    return &past->entry;
}
