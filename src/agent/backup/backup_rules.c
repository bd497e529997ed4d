#include "agent/backup/backup_rules.h"

#include <ctype.h>
#include <string.h>

#include "base/path.h"

static const char *const folders[] = {"/workspace", "/home", "/tmp", "/var/tmp", "/app"};
static const char *const formats[] = {"gzip", "lz4", "zstd"};

static const char *check_path(const char *path)
{
    if (path[0] != '/')
        return "must be an absolute path";
    if (strlen(path) > BACKUP_PATH_MAX)
        return "is too long";
    if (strstr(path, ".."))
        return "must not contain '..'";
    return NULL;
}

const char *backup_rules_folder(const char *path)
{
    const char *reason = check_path(path);

    if (reason)
        return reason;
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++)
        if (path_is_inside(path, folders[i]))
            return NULL;
    return "must be under /workspace, /home, /tmp, /var/tmp or /app";
}

const char *backup_rules_archive(const char *path)
{
    const char *reason = check_path(path);
    size_t length = strlen(path);

    if (reason)
        return reason;
    if (strncmp(path, BACKUP_FOLDER, strlen(BACKUP_FOLDER)) != 0)
        return "must use the designated backup directory " BACKUP_FOLDER;
    if (path[length - 1] == '/' || strcmp(path + length - 2, "/.") == 0)
        return "must name a file";
    return NULL;
}

const char *backup_rules_compression(const char *format)
{
    for (size_t i = 0; i < ARRAY_COUNT(formats); i++) {
        if (strcmp(format, formats[i]) == 0)
            return NULL;
    }
    return "must be one of gzip, lz4, zstd";
}

/* --- excludes -------------------------------------------------------------------------------- */

/* The pattern without steps that mean any depth, and without slashes around it. */
static void normalise(struct text *out, const char *pattern)
{
    while (pattern[0] == '/' || strncmp(pattern, "./", 2) == 0)
        pattern += pattern[0] == '/' ? 1 : 2;
    for (const char *step = pattern; *step;) {
        size_t length = strcspn(step, "/");

        if (step[length] && (length == 0 || (length == 2 && strncmp(step, "**", 2) == 0))) {
            step += length + 1;
            continue;
        }
        if (out->length && length)
            text_append_char(out, '/');
        /* All that is in a folder: mksquashfs knows one star for it. */
        text_append_bytes(out, step, length == 2 && strncmp(step, "**", 2) == 0 ? 1 : length);
        step += length + (step[length] == '/');
    }
}

const char *backup_rules_exclude(const char *pattern)
{
    AUTO(text) struct text normal = TEXT_INIT(2 * BACKUP_PATH_MAX);

    if (strlen(pattern) > BACKUP_PATH_MAX)
        return "is too long";
    for (const char *at = pattern; *at; at++) {
        if (iscntrl((unsigned char) *at))
            return "must not contain control characters";
    }
    normalise(&normal, pattern);
    if (!normal.length)
        return "names nothing";
    if (strcmp(normal.data, "*") == 0 && strchr(pattern, '/'))
        return "excludes everything";
    return NULL;
}

/* Blanks at the ends and '#' at the beginning mean something in an exclude file. */
static void append_line(struct text *lines, const char *prefix, const char *bytes, size_t length)
{
    text_append(lines, prefix);
    if (strchr("# \t", bytes[0]) && !prefix[0])
        text_append_char(lines, '\\');
    if (length > 1 && isblank((unsigned char) bytes[length - 1])) {
        text_append_bytes(lines, bytes, length - 1);
        text_append_char(lines, '\\');
        bytes += length - 1;
        length = 1;
    }
    text_append_bytes(lines, bytes, length);
    text_append_char(lines, '\n');
}

void backup_rules_add_pattern(struct text *lines, const char *pattern)
{
    AUTO(text) struct text normal = TEXT_INIT(2 * BACKUP_PATH_MAX);

    normalise(&normal, pattern);
    append_line(lines, "", normal.data, normal.length);
    /* mksquashfs takes "... a/b" for all of every "a": such a one is looked for at the top only. */
    if (!memchr(normal.data, '/', normal.length))
        append_line(lines, "... ", normal.data, normal.length);
}

bool backup_rules_add_path(struct text *lines, const char *path, size_t length)
{
    AUTO(text) struct text escaped = TEXT_INIT(2 * BACKUP_PATH_MAX + 8);
    /* A name like the sign of a pattern for any depth. Its first dot must stay as it is: no escape
     * matches that of a hidden file. */
    bool is_any_depth = length > 4 && strncmp(path, "... ", 4) == 0;

    while (length && path[length - 1] == '/')
        length--;
    if (!length || length > BACKUP_PATH_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (iscntrl((unsigned char) path[i]))
            return false;
        if (strchr("\\*?[]()!+@", path[i]) || (i == 1 && is_any_depth))
            text_append_char(&escaped, '\\');
        text_append_char(&escaped, path[i]);
    }
    append_line(lines, "", escaped.data, escaped.length);
    return true;
}
