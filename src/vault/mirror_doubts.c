#include "vault/mirror_doubts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json/json_write.h"
#include "vault/mirror_list.h"

void mirror_doubts_done(struct mirror_doubts *doubts)
{
    for (size_t i = 0; i < doubts->count; i++)
        free(doubts->items[i].path);
    free(doubts->items);
    text_done(&doubts->text);
    doubts->items = NULL;
    doubts->count = doubts->room = 0;
}

static int compare(const void *one, const void *other)
{
    const struct mirror_doubt *a = one, *b = other;

    return strcmp(a->path, b->path);
}

static void keep(struct mirror_doubts *doubts, const char *path)
{
    if (doubts->count == doubts->room) {
        doubts->room = doubts->room ? doubts->room * 2 : 64;
        doubts->items = mem_resize(doubts->items, doubts->room * sizeof(*doubts->items));
    }
    doubts->items[doubts->count++] = (struct mirror_doubt){.path = mem_copy_text(path)};
}

/* Each path once, in order. */
static void tidy(struct mirror_doubts *doubts)
{
    size_t kept = 0;

    if (!doubts->count)
        return;
    qsort(doubts->items, doubts->count, sizeof(*doubts->items), compare);
    for (size_t i = 1; i < doubts->count; i++) {
        if (compare(&doubts->items[kept], &doubts->items[i]) == 0)
            free(doubts->items[i].path);
        else
            doubts->items[++kept] = doubts->items[i];
    }
    doubts->count = kept + 1;
}

void mirror_doubts_read(struct mirror_doubts *doubts)
{
    AUTO(mirror_entry) struct mirror_entry entry = MIRROR_ENTRY_INIT;
    struct mirror_cursor cursor = {.text = &doubts->text};
    const char *line;
    size_t length;

    while (mirror_next_line(&cursor, &line, &length)) {
        if (mirror_entry_read(&entry, line, length, NULL) < 0)
            doubts->is_bad = true;
        else
            keep(doubts, entry.path);
    }
    tidy(doubts);
}

static struct mirror_doubt *find(const struct mirror_doubts *doubts, const char *path)
{
    const struct mirror_doubt wanted = {.path = (char *) path};

    return doubts->count ? bsearch(&wanted, doubts->items, doubts->count, sizeof(wanted), compare)
                         : NULL;
}

bool mirror_doubts_have(struct mirror_doubts *doubts, const char *path)
{
    struct mirror_doubt *found = find(doubts, path);

    if (found)
        found->is_seen = true;
    return found || doubts->is_bad;
}

const char *mirror_doubts_next_unseen(struct mirror_doubts *doubts)
{
    while (doubts->next < doubts->count) {
        const struct mirror_doubt *doubt = &doubts->items[doubts->next++];

        if (!doubt->is_seen)
            return doubt->path;
    }
    return NULL;
}

int mirror_doubts_add(struct mirror_doubts *doubts, const char *path)
{
    struct json_writer json;

    if (find(doubts, path))
        return 0;
    json_writer_init_text(&json, &doubts->text);
    json_begin_object(&json);
    json_add_text(&json, "path", path);
    json_add_text(&json, "type", "doubt");
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        return -1;
    text_append_char(&doubts->text, '\n');
    return doubts->text.overflowed ? -1 : 0;
}
