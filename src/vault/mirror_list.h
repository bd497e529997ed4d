/* The list of a mirror: one line of JSON per entry of a folder, as the keeper's `scan` tells them
 * (keeper/tree/tree_scan.h), in the order of a walk: by the bytes of names, a folder before what is
 * in it.
 *
 *     {"path":"src/a.c","type":"file","mode":"0644","mtime":1700000000,"mtime_ns":5,"size":3,
 *      "sha256":"..."}
 *
 * Paths are relative, text with escapes: \xHH for bytes that are no UTF-8, \\ for a backslash.
 *
 * Lists come from keepers and stores, so each line is checked: no path leads out of the folder. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/text.h"
#include "objects/objects.h"

/* The longest path, as bytes. */
#define MIRROR_PATH_MAX 4096

enum mirror_type { MIRROR_FILE, MIRROR_FOLDER, MIRROR_LINK, MIRROR_OTHER };

/* What a line says. Texts are borrowed from `root`. */
struct mirror_entry {
    json_t *root;     /* owned */
    struct text name; /* the path as bytes, owned; "." is the folder itself */
    const char *path; /* as the line has it */
    enum mirror_type type;
    uint32_t mode;
    int64_t mtime;
    uint32_t mtime_ns;
    uint64_t size;      /* of files */
    uint8_t sum[32];    /* of files */
    struct text target; /* of links: bytes, owned */
};

#define MIRROR_ENTRY_INIT                                                                          \
    {                                                                                              \
        .name = TEXT_INIT(MIRROR_PATH_MAX), .target = TEXT_INIT(MIRROR_PATH_MAX)                   \
    }

void mirror_entry_done(struct mirror_entry *entry);

AUTO_DEFINE(mirror_entry, struct mirror_entry, mirror_entry_done);

/* Read one line in place of what the entry had. -1 with ERR_UPSTREAM: it is none. */
int mirror_entry_read(struct mirror_entry *entry, const char *line, size_t length,
                      struct error *err);

/* The order of lists: below, at or above 0. */
int mirror_compare(const struct mirror_entry *one, const struct mirror_entry *other);

/* Under which key the content of a file is: its path behind the prefix, so that people find it.
 * Paths that make no key (too long, or the key of the list itself) have their sum there instead. */
void mirror_key(char ret_key[static OBJECTS_KEY_MAX + 1], const char *prefix, const char *list_key,
                const struct mirror_entry *entry);

/* Lines of a text, one after the other. */
struct mirror_cursor {
    const struct text *text; /* borrowed */
    size_t at;               /* of the line that is next */
};

/* False at the end. The line is without its newline. */
bool mirror_next_line(struct mirror_cursor *cursor, const char **ret_line, size_t *ret_length);

/* Append to a tar, for an agent to extract, what comes before the content of an entry; a file has
 * `size` bytes of it, whatever its line says. Owners are root. False: such an entry (a pipe) has no
 * place there, nothing was appended. */
bool mirror_entry_append_tar(struct text *stream, const struct mirror_entry *entry, uint64_t size);
