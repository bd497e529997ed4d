#include "vault/mirror_list.h"

#include <stdio.h>
#include <string.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/format/tar_header.h"
#include "base/path.h"
#include "json/json_read.h"
#include "json/name_escape.h"
#include "vault/mover.h"

#define MODE_MAX 07777

void mirror_entry_done(struct mirror_entry *entry)
{
    json_decref(entry->root);
    entry->root = NULL;
    text_done(&entry->name);
    text_done(&entry->target);
}

/* The bytes that an escaped text stands for. Nothing has a NUL in its name. */
static int unescape(struct text *bytes, const char *text)
{
    text_clear(bytes);
    if (!name_unescape(bytes, text, strlen(text)) || bytes->overflowed)
        return -1;
    return strlen(text_string(bytes)) == bytes->length ? 0 : -1;
}

/* The folder itself, or relative and down all the way. */
static bool leads_down(const char *path)
{
    return strcmp(path, ".") == 0 || path_is_relative(path);
}

static enum mirror_type type_of(const char *text)
{
    static const char *const names[] = {
        [MIRROR_FILE] = "file", [MIRROR_FOLDER] = "folder", [MIRROR_LINK] = "link"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], text) == 0)
            return (enum mirror_type) i;
    }
    return MIRROR_OTHER;
}

static int read_mode(const char *text, uint32_t *ret_mode)
{
    uint32_t mode = 0;

    for (; *text; text++) {
        if (*text < '0' || *text > '7')
            return -1;
        mode = mode << 3 | (uint32_t) (*text - '0');
        if (mode > MODE_MAX)
            return -1;
    }
    *ret_mode = mode;
    return 0;
}

static int read_common(struct mirror_entry *entry, const struct json_place *top)
{
    const char *type = NULL, *mode = "0";
    int64_t ns = 0;

    entry->mtime = 0;
    if (json_field_text(top, "path", JSON_REQUIRED, MOVER_LINE_MAX, &entry->path, NULL) < 0 ||
        json_field_text(top, "type", JSON_REQUIRED, 32, &type, NULL) < 0 ||
        json_field_text(top, "mode", JSON_OPTIONAL, 8, &mode, NULL) < 0 ||
        json_field_integer(top, "mtime", JSON_OPTIONAL, INT64_MIN, INT64_MAX, &entry->mtime, NULL) <
            0 ||
        json_field_integer(top, "mtime_ns", JSON_OPTIONAL, 0, 999999999, &ns, NULL) < 0)
        return -1;
    entry->mtime_ns = (uint32_t) ns;
    entry->type = type_of(type);
    if (read_mode(mode, &entry->mode) < 0 || unescape(&entry->name, entry->path) < 0 ||
        !entry->name.length || !leads_down(text_string(&entry->name)))
        return -1;
    return 0;
}

static int read_kind(struct mirror_entry *entry, const struct json_place *top)
{
    const char *hex = NULL, *target = NULL;
    int64_t size = 0;
    size_t count = 0;

    entry->size = 0;
    if (entry->type == MIRROR_FILE) {
        if (json_field_integer(top, "size", JSON_REQUIRED, 0, INT64_MAX, &size, NULL) < 0 ||
            json_field_text(top, "sha256", JSON_REQUIRED, 64, &hex, NULL) < 0 ||
            hex_decode(hex, strlen(hex), entry->sum, sizeof(entry->sum), &count) < 0 ||
            count != sizeof(entry->sum))
            return -1;
        entry->size = (uint64_t) size;
    } else if (entry->type == MIRROR_LINK) {
        if (json_field_text(top, "target", JSON_REQUIRED, MOVER_LINE_MAX, &target, NULL) < 0 ||
            unescape(&entry->target, target) < 0 || !entry->target.length)
            return -1;
    }
    return 0;
}

int mirror_entry_read(struct mirror_entry *entry, const char *line, size_t length,
                      struct error *err)
{
    struct json_limits limits = {.size = MOVER_LINE_MAX, .depth = 3, .values = 64};
    struct json_place top;

    json_decref(entry->root);
    entry->root = json_read(line, length, &limits, NULL);
    if (!entry->root || json_root_object(entry->root, &top, NULL) < 0 ||
        read_common(entry, &top) < 0 || read_kind(entry, &top) < 0)
        return error_set(err, ERR_UPSTREAM, 0, "a line of the list makes no sense");
    return 0;
}

/* A slash sorts before all bytes: what is in "a" comes before "a-b". */
static int rank(unsigned char byte)
{
    return byte == '/' ? 0 : byte + 1;
}

int mirror_compare(const struct mirror_entry *one, const struct mirror_entry *other)
{
    const char *a = text_string(&one->name), *b = text_string(&other->name);
    bool a_is_top = strcmp(a, ".") == 0, b_is_top = strcmp(b, ".") == 0;

    if (a_is_top || b_is_top)
        return b_is_top - a_is_top;
    while (*a && *a == *b) {
        a++;
        b++;
    }
    if (!*a || !*b)
        return (*a != '\0') - (*b != '\0');
    return rank((unsigned char) *a) - rank((unsigned char) *b);
}

void mirror_key(char ret_key[static OBJECTS_KEY_MAX + 1], const char *prefix, const char *list_key,
                const struct mirror_entry *entry)
{
    int length = snprintf(ret_key, OBJECTS_KEY_MAX + 1, "%s%s", prefix, entry->path);
    uint8_t sum[SHA256_SIZE];
    char hex[HEX_TEXT_SIZE(SHA256_SIZE)];

    if (length <= OBJECTS_KEY_MAX && strcmp(ret_key, list_key) != 0)
        return;
    sha256_bytes(entry->path, strlen(entry->path), sum);
    (void) hex_encode(sum, sizeof(sum), hex);
    (void) snprintf(ret_key, OBJECTS_KEY_MAX + 1, "%s.burrow-long-path/%s", prefix, hex);
}

bool mirror_next_line(struct mirror_cursor *cursor, const char **ret_line, size_t *ret_length)
{
    const char *from = text_string(cursor->text) + cursor->at;
    size_t left = cursor->text->length - cursor->at;
    const char *newline = left ? memchr(from, '\n', left) : NULL;

    if (!left)
        return false;
    *ret_line = from;
    *ret_length = newline ? (size_t) (newline - from) : left;
    cursor->at += *ret_length + (newline != NULL);
    return true;
}

bool mirror_entry_append_tar(struct text *stream, const struct mirror_entry *entry, uint64_t size)
{
    static const char types[] = {[MIRROR_FILE] = TAR_FILE,
                                 [MIRROR_FOLDER] = TAR_FOLDER,
                                 [MIRROR_LINK] = TAR_LINK,
                                 [MIRROR_OTHER] = '\0'};
    const struct tar_entry header = {
        .type = types[entry->type],
        .path = text_string(&entry->name),
        .link = entry->type == MIRROR_LINK ? text_string(&entry->target) : "",
        .size = entry->type == MIRROR_FILE ? size : 0,
        .mode = entry->mode,
        .mtime = {.tv_sec = entry->mtime, .tv_nsec = entry->mtime_ns},
    };

    if (header.type)
        tar_header_append(stream, &header);
    return header.type;
}
