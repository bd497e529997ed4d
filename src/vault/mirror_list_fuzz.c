/* A list of a mirror as a store gives it: whatever it says, no path leads out of its folder, keys
 * fit, the order is one, and what becomes of it is whole blocks of tar. */
#include <stdlib.h>
#include <string.h>

#include "base/format/tar_header.h"
#include "vault/mirror_doubts.h"
#include "vault/mirror_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_path(const char *path)
{
    must(*path && *path != '/' && strlen(path) <= MIRROR_PATH_MAX);
    if (strcmp(path, ".") == 0)
        return;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size_t length = strcspn(part, "/");

        must(length > 0 && !(length == 1 && part[0] == '.') &&
             !(length == 2 && part[0] == '.' && part[1] == '.'));
    }
}

static void check_entry(const struct mirror_entry *entry)
{
    AUTO(text) struct text stream = TEXT_INIT(64 * 1024);
    char key[OBJECTS_KEY_MAX + 1];

    check_path(text_string(&entry->name));
    mirror_key(key, "workspaces/x/", "workspaces/x/list", entry);
    must(strlen(key) <= OBJECTS_KEY_MAX && strcmp(key, "workspaces/x/list") != 0);
    must(strncmp(key, "workspaces/x/", 13) == 0);
    if (mirror_entry_append_tar(&stream, entry, entry->size))
        must(stream.length && stream.length % TAR_BLOCK == 0 && !stream.overflowed);
    must(mirror_compare(entry, entry) == 0);
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* The same lines as doubts. */
static void check_doubts(const struct text *lines)
{
    AUTO(mirror_doubts) struct mirror_doubts doubts = MIRROR_DOUBTS_INIT(1 << 20);
    const char *unseen;

    text_append_bytes(&doubts.text, text_string(lines), lines->length);
    mirror_doubts_read(&doubts);
    for (size_t i = 0; i < doubts.count; i++) {
        must(i == 0 || strcmp(doubts.items[i - 1].path, doubts.items[i].path) < 0);
        if (i % 2)
            must(mirror_doubts_have(&doubts, doubts.items[i].path));
    }
    for (size_t i = 0; i < doubts.count; i += 2) {
        unseen = mirror_doubts_next_unseen(&doubts);
        must(unseen && strcmp(unseen, doubts.items[i].path) == 0);
    }
    must(!mirror_doubts_next_unseen(&doubts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(text) struct text list = TEXT_INIT(1 << 20);
    AUTO(mirror_entry) struct mirror_entry last = MIRROR_ENTRY_INIT;
    AUTO(mirror_entry) struct mirror_entry entry = MIRROR_ENTRY_INIT;
    struct mirror_cursor cursor = {.text = &list};
    const char *line;
    size_t length, total = 0;
    bool has_last = false;

    text_append_bytes(&list, data, size);
    while (mirror_next_line(&cursor, &line, &length)) {
        struct mirror_entry swap = last;

        must(!memchr(line, '\n', length));
        total += length + 1;
        must(total <= list.length + 1);
        if (mirror_entry_read(&entry, line, length, NULL) < 0)
            continue;
        check_entry(&entry);
        if (has_last)
            must(sign(mirror_compare(&last, &entry)) == -sign(mirror_compare(&entry, &last)));
        last = entry;
        entry = swap;
        has_last = true;
    }
    check_doubts(&list);
    return 0;
}
