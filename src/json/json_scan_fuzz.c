/* Of every document that jansson takes, json_scan tells the same values in the same order, in whatever
 * pieces it gets them; of anything else it says something and stops at its bounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json_read.h"
#include "json/json_scan.h"

#define TOLD_MAX  ((size_t) 16 * 1024 * 1024)
#define PLAIN_MAX 32 /* longer texts, and those with '?', are not compared byte by byte */
#define KEY_MAX   60
#define PATH_MAX_ 150

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static const char *plain(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '?' || *at & 0x80)
            return "~";
    }
    return strlen(text) > PLAIN_MAX ? "~" : text;
}

static void tell(struct text *told, enum json_scan_kind kind, const char *path, const char *text)
{
    bool path_is_plain = !strchr(path, '?');

    for (const char *at = path; *at; at++)
        path_is_plain = path_is_plain && !(*at & 0x80);
    text_format(told, "%d %s = %s\n", (int) kind, path_is_plain ? path : "~", text);
}

static void scan_told(void *context, const struct json_scan *scan, enum json_scan_kind kind,
                      const char *path, const char *text)
{
    char number[32];

    if (kind == JSON_SCAN_TEXT) {
        tell(context, kind, path, plain(text));
    } else if (kind == JSON_SCAN_NUMBER) {
        bool is_whole = !strpbrk(text, ".eE");

        (void) snprintf(number, sizeof(number), "%lld", is_whole ? strtoll(text, NULL, 10) : 0);
        tell(context, kind, path, number);
    } else if (kind == JSON_SCAN_LITERAL) {
        tell(context, kind, path, text);
    } else {
        tell(context, kind, path, scan->is_object ? "object" : "array");
        if (kind == JSON_SCAN_CLOSE && scan->depth < JSON_SCAN_TRACKED)
            text_format(context, "%d\n", scan->has_members);
    }
}

/* What jansson found, in the same words. False: it has keys that are told in another way. */
static bool walk(json_t *value, unsigned int depth, const char *path, struct text *told)
{
    enum json_scan_kind kind = json_is_string(value)   ? JSON_SCAN_TEXT
                               : json_is_number(value) ? JSON_SCAN_NUMBER
                                                       : JSON_SCAN_LITERAL;
    bool is_tracked = depth <= JSON_SCAN_TRACKED;
    const char *name = json_is_object(value) ? "object" : "array", *key;
    char text[256];
    json_t *child;

    if (!json_is_object(value) && !json_is_array(value)) {
        (void) snprintf(text, sizeof(text), "%lld",
                        json_is_integer(value) ? (long long) json_integer_value(value) : 0);
        if (is_tracked)
            tell(told, kind, path,
                 kind == JSON_SCAN_TEXT     ? plain(json_string_value(value))
                 : kind == JSON_SCAN_NUMBER ? text
                 : json_is_true(value)      ? "true"
                 : json_is_false(value)     ? "false"
                                            : "null");
        return true;
    }
    if (is_tracked)
        tell(told, JSON_SCAN_OPEN, path, name);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!walk(json_array_get(value, i), depth + 1, path, told))
            return false;
    }
    json_object_foreach (value, key, child) {
        if (strlen(key) > KEY_MAX || strlen(path) + strlen(key) > PATH_MAX_)
            return false;
        (void) snprintf(text, sizeof(text), "%s%s%s", path, *path ? "." : "", key);
        if (!walk(child, depth + 1, text, told))
            return false;
    }
    if (is_tracked)
        tell(told, JSON_SCAN_CLOSE, path, name);
    if (is_tracked && depth < JSON_SCAN_TRACKED)
        text_format(told, "%d\n", json_array_size(value) > 0 || json_object_size(value) > 0);
    return true;
}

static void run(struct text *told, const char *bytes, size_t length, size_t step)
{
    struct json_scan scan;

    json_scan_init(&scan, scan_told, told);
    for (size_t at = 0; at < length; at += step)
        json_scan_feed(&scan, bytes + at, length - at < step ? length - at : step);
    json_scan_finish(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *) data;
    AUTO(text) struct text whole = TEXT_INIT(TOLD_MAX);
    AUTO(text) struct text pieces = TEXT_INIT(TOLD_MAX);
    AUTO(text) struct text expected = TEXT_INIT(TOLD_MAX);
    AUTO(json) json_t *value = NULL;

    if (size > 8192)
        return 0;
    run(&whole, bytes, size, size + 1);
    run(&pieces, bytes, size, 1);
    must(strcmp(text_string(&whole), text_string(&pieces)) == 0);
    json_seed();
    value = json_read(bytes, size, NULL, NULL);
    if (value && walk(value, 0, "", &expected))
        must(strcmp(text_string(&whole), text_string(&expected)) == 0);
    return 0;
}
