/* Patterns of file watches agree with a matcher that tries every way. The input is a pattern, a
 * newline, and a path. */
#include <stdlib.h>
#include <string.h>

#include "base/format/ignore_pattern.c"
#include "base/pool.h"

#define SHORT_PATTERN 12
#define SHORT_PATH    16

/* --- the reference: from the definition in ignore_pattern.h, for ASCII
 * ---------------------------------- */

static bool matches_all(const char *pattern, const char *path, const char *end, bool is_first)
{
    if (!*pattern)
        return path == end;
    if (pattern[0] == '*' && pattern[1] == '*') {
        const char *rest = pattern + strspn(pattern, "*");

        if (is_first && *rest == '/') { /* nothing, or something that ends in '/' */
            if (matches_all(rest + 1, path, end, true))
                return true;
            for (; path < end; path++) {
                if (*path == '/' && matches_all(rest + 1, path + 1, end, true))
                    return true;
            }
            return false;
        }
        for (; path <= end; path++) {
            if (matches_all(rest, path, end, false))
                return true;
        }
        return false;
    }
    if (*pattern == '*') {
        for (; path <= end; path++) {
            if (matches_all(pattern + 1, path, end, false))
                return true;
            if (path < end && *path == '/')
                return false;
        }
        return false;
    }
    if (path == end || (*pattern == '?' ? *path == '/' : *pattern != *path))
        return false;
    return matches_all(pattern + 1, path + 1, end, *pattern == '/');
}

static bool reference_finds(const char *pattern, const char *path, bool is_absolute)
{
    size_t length = strlen(path);

    for (size_t begin = 0; begin <= length; begin++) {
        if (begin > 0 && (is_absolute || path[begin - 1] != '/'))
            continue;
        for (size_t end = begin; end <= length; end++) {
            if ((path[end] == '\0' || path[end] == '/') &&
                matches_all(pattern, path + begin, path + end, true))
                return true;
        }
    }
    return false;
}

/* --------------------------------------------------------------------------------------------- */

static bool is_ascii(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char) *text >= 0x80)
            return false;
    }
    return true;
}

static void compare_all(const char *pattern, const char *path, const struct ignore_pattern *glob,
                        bool found)
{
    char copy[SHORT_PATTERN + 1] = {0};
    size_t length;

    while (*pattern == '/' || (pattern[0] == '.' && pattern[1] == '/'))
        pattern += *pattern == '/' ? 1 : 2;
    length = strlen(pattern);
    /* A '/' at the end that belongs to "**" stays. */
    while (length > 0 && pattern[length - 1] == '/' &&
           !(length > 2 && glob->tokens[glob->count - 1].kind == TOKEN_FOLDERS &&
             memcmp(pattern + length - 3, "**/", 3) == 0))
        length--;
    memcpy(copy, pattern, length);
    if (reference_finds(copy, path, glob->is_absolute) != found)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    char *text, *path;
    AUTO(ignore_pattern) struct ignore_pattern glob = {.tokens = NULL};
    bool found;

    if (size > 8192)
        return 0;
    text = pool_copy_bytes(&pool, data, size);
    path = strchr(text, '\n');
    if (!path)
        return 0;
    *path++ = '\0';
    if (ignore_pattern_read(text, strlen(text), IGNORE_WATCH, &glob) < 0)
        return 0;
    found = ignore_pattern_finds(&glob, path, pool_format(&pool, "/%s", path));
    if (strlen(text) <= SHORT_PATTERN && strlen(path) <= SHORT_PATH && is_ascii(text) &&
        is_ascii(path))
        compare_all(text, path, &glob, found);
    return 0;
}
