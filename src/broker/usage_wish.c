#include "broker/usage_wish.h"

#include <string.h>

#define WISH    "\"include_usage\":true"
#define OPTIONS "\"stream_options\":{" WISH "}"

static void wish_literal(struct usage_wish *wish, const char *path, const char *text)
{
    if (strcmp(path, "stream") == 0) {
        wish->is_stream = strcmp(text, "true") == 0;
        wish->is_no_stream = !wish->is_stream;
    } else if (strcmp(path, "stream_options.include_usage") == 0) {
        wish->has_usage = true;
        wish->instead = strcmp(text, "false") == 0  ? "true "
                        : strcmp(text, "null") == 0 ? "true"
                                                    : NULL;
    } else if (strcmp(path, "stream_options") == 0 && !wish->is_no_stream) {
        wish->has_options = true;
        wish->instead = "{" WISH "}";
    }
}

static void wish_closed(struct usage_wish *wish, const struct json_scan *scan, const char *path)
{
    if (strcmp(path, "stream_options") == 0 && scan->is_object && !wish->has_usage)
        wish->before = scan->has_members ? "," WISH : WISH;
    if (*path || scan->depth)
        return;
    wish->ends = true;
    if (scan->is_object && wish->is_stream && !wish->has_options)
        wish->before = scan->has_members ? "," OPTIONS : OPTIONS;
}

static void wish_found(void *context, const struct json_scan *scan, enum json_scan_kind kind,
                       const char *path, const char *text)
{
    struct usage_wish *wish = context;

    if (kind == JSON_SCAN_LITERAL) {
        wish_literal(wish, path, text);
    } else if (kind == JSON_SCAN_OPEN && strcmp(path, "stream_options") == 0) {
        wish->has_options = true;
        wish->has_usage = false;
    } else if (kind == JSON_SCAN_CLOSE) {
        wish_closed(wish, scan, path);
    }
}

void usage_wish_init(struct usage_wish *wish)
{
    memset(wish, 0, sizeof(*wish));
    wish->room = USAGE_WISH_ROOM;
    json_scan_init(&wish->scan, wish_found, wish);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void wish_send_held(struct usage_wish *wish, struct text *out)
{
    size_t length = wish->instead ? strlen(wish->instead) : 0;
    size_t more = length > wish->held_length ? length - wish->held_length : 0;

    if (length && more <= wish->room) {
        text_append_bytes(out, wish->instead, length);
        wish->room -= more;
    } else {
        text_append_bytes(out, wish->held, wish->held_length);
    }
    wish->held_length = 0;
    wish->instead = NULL;
}

static void wish_send_before(struct usage_wish *wish, struct text *out)
{
    size_t length = wish->before ? strlen(wish->before) : 0;

    if (length <= wish->room) {
        text_append_bytes(out, wish->before, length);
        wish->room -= length;
    }
    wish->before = NULL;
}

static void wish_pad(struct usage_wish *wish, struct text *out)
{
    while (wish->room) {
        text_append_char(out, ' ');
        wish->room--;
    }
}

static void wish_byte(struct usage_wish *wish, char c, struct text *out)
{
    json_scan_feed(&wish->scan, &c, 1);
    if (wish->scan.state == JSON_SCAN_WORD && wish->held_length < sizeof(wish->held)) {
        wish->held[wish->held_length++] = c;
        return;
    }
    wish_send_held(wish, out);
    wish_send_before(wish, out);
    if (wish->ends)
        wish_pad(wish, out);
    wish->ends = false;
    text_append_char(out, c);
}

/* Of a string nothing is of interest but its end. */
static size_t wish_string(struct usage_wish *wish, const char *bytes, size_t length,
                          struct text *out)
{
    size_t plain = 0;

    while (plain < length && bytes[plain] != '"' && bytes[plain] != '\\')
        plain++;
    json_scan_feed(&wish->scan, bytes, plain);
    text_append_bytes(out, bytes, plain);
    return plain;
}

void usage_wish_feed(struct usage_wish *wish, const char *bytes, size_t length, struct text *out)
{
    for (size_t at = 0; at < length;) {
        if (wish->scan.state == JSON_SCAN_STRING)
            at += wish_string(wish, bytes + at, length - at, out);
        if (at < length)
            wish_byte(wish, bytes[at++], out);
    }
}

void usage_wish_finish(struct usage_wish *wish, struct text *out)
{
    json_scan_finish(&wish->scan);
    wish_send_held(wish, out);
    wish_pad(wish, out);
}
