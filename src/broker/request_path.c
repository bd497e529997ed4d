#include "broker/request_path.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define UNESCAPES_MAX 3 /* deeper ones nobody undoes */

static int path_hex(char c)
{
    return isdigit((unsigned char) c) ? c - '0' : tolower((unsigned char) c) - 'a' + 10;
}

static bool is_unreserved(unsigned char c)
{
    return isalnum(c) || (c && strchr("-._~", c));
}

/* --- what two servers read differently --------------------------------------------------------- */

/* Undo all escapes in place. Returns whether there were any. */
static bool path_unescape(char *path)
{
    char *to = path;
    bool any = false;

    for (const char *at = path; *at; at++) {
        if (at[0] == '%' && isxdigit((unsigned char) at[1]) && isxdigit((unsigned char) at[2])) {
            *to = (char) (path_hex(at[1]) << 4 | path_hex(at[2]));
            at += 2;
            any = true;
        } else {
            *to = *at;
        }
        if (!*to++)
            return false; /* a NUL: the caller finds what is behind it cut off */
    }
    *to = '\0';
    return any;
}

/* Whether a segment is "." or "..", perhaps with parameters (";x") that some servers drop. */
static bool path_has_dots(const char *path)
{
    for (const char *at = path; *at;) {
        size_t length;

        at += strspn(at, "/\\");
        length = strcspn(at, "/\\;");
        if ((length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += strcspn(at, "/\\");
    }
    return false;
}

static bool path_has_controls(const char *path)
{
    for (; *path; path++) {
        if ((unsigned char) *path < 0x20 || *path == 0x7f)
            return true;
    }
    return false;
}

static bool path_has_nul(const char *path)
{
    return strstr(path, "%00") != NULL;
}

/* `path` has no dots of its own any more. */
static bool path_is_ambiguous(const char *path, struct pool *pool)
{
    char *copy = pool_copy_text(pool, path);

    if (path_has_nul(copy) || path_has_dots(copy))
        return true;
    for (size_t i = 0; i < UNESCAPES_MAX && path_unescape(copy); i++) {
        if (path_has_nul(copy) || path_has_dots(copy) || path_has_controls(copy))
            return true;
    }
    return false;
}

/* --- the one form ----------------------------------------------------------------------------- */

static size_t path_write_escape(char *out, const char *at)
{
    unsigned char byte = (unsigned char) (path_hex(at[1]) << 4 | path_hex(at[2]));

    if (is_unreserved(byte)) {
        *out = (char) byte;
        return 1;
    }
    (void) snprintf(out, 4, "%%%02X", byte);
    return 3;
}

static char *path_normalise(struct url_span raw, struct pool *pool)
{
    char *path = pool_alloc_raw(pool, raw.length + 4), *to = path;

    for (size_t i = 0; i < raw.length; i++) {
        if (raw.text[i] == '%') {
            to += path_write_escape(to, raw.text + i);
            i += 2;
        } else {
            *to++ = raw.text[i];
        }
    }
    *to = '\0';
    return path;
}

/* RFC 3986 5.2.4, in place. */
static void path_resolve(char *path)
{
    char *to = path;
    const char *at = path;

    while (*at) { /* at a slash */
        size_t length = 1 + strcspn(at + 1, "/");
        bool is_last = at[length] == '\0';

        if (length == 2 && at[1] == '.') {
            if (is_last)
                *to++ = '/';
        } else if (length == 3 && at[1] == '.' && at[2] == '.') {
            while (to > path && *--to != '/')
                ;
            if (is_last)
                *to++ = '/';
        } else {
            memmove(to, at, length);
            to += length;
        }
        at += length;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

int request_path_read(struct url_span raw, struct pool *pool, const char **ret_path,
                      struct error *err)
{
    char *path;

    if (!raw.length || raw.text[0] != '/' || !url_escapes_are_sound(raw))
        return error_set(err, ERR_INVALID, 0, "the path is malformed");
    path = path_normalise(raw, pool);
    path_resolve(path);
    if (path_is_ambiguous(path, pool))
        return error_set(err, ERR_INVALID, 0,
                         "the path may be read in two ways: write it without escaped dots, "
                         "slashes and control characters");
    *ret_path = path;
    return 0;
}

int request_path_route(const char *path, struct pool *pool, const char **ret_route,
                       const char **ret_rest, struct error *err)
{
    size_t length = strspn(path + 1, "abcdefghijklmnopqrstuvwxyz0123456789-_");
    const char *rest = path + 1 + length;

    if (!length || length > 64 || (*rest && *rest != '/'))
        return error_set(err, ERR_NOT_FOUND, 0,
                         "there is no such route here: use /ROUTE/... of an API that this sandbox "
                         "may use, or a proxy request");
    *ret_route = pool_copy_bytes(pool, path + 1, length);
    *ret_rest = *rest ? rest : "/";
    return 0;
}

const char *request_query_edit(struct url_span query, const char *name, const char *value,
                               struct pool *pool)
{
    AUTO(text) struct text out = TEXT_INIT(URL_LENGTH_MAX * 4);
    struct url_parameter parameter;
    bool was_put = false;

    while (url_query_next(&query, &parameter)) {
        const char *plain = NULL;

        if (url_decode_copy(parameter.name, URL_DECODE_QUERY, pool, &plain) < 0 ||
            strcmp(plain, name) == 0) {
            if (!plain || !value || was_put)
                continue; /* a name that cannot be read may be ours, too */
            text_append(&out, out.length ? "&" : "");
            text_format(&out, "%s=", name);
            url_encode(&out, value, strlen(value));
            was_put = true;
            continue;
        }
        text_append(&out, out.length ? "&" : "");
        text_append_bytes(&out, parameter.name.text, parameter.name.length);
        if (parameter.value.text) {
            text_append_char(&out, '=');
            text_append_bytes(&out, parameter.value.text, parameter.value.length);
        }
    }
    if (value && !was_put) {
        text_append(&out, out.length ? "&" : "");
        text_format(&out, "%s=", name);
        url_encode(&out, value, strlen(value));
    }
    return out.length ? pool_copy_text(pool, text_string(&out)) : NULL;
}
