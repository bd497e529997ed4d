#include "json/json_scan.h"

#include <string.h>

void json_scan_init(struct json_scan *scan, json_scan_found *found, void *context)
{
    *scan = (struct json_scan){.found = found, .context = context};
}

void json_scan_reset(struct json_scan *scan)
{
    json_scan_init(scan, scan->found, scan->context);
}

/* --- where we are ----------------------------------------------------------------------------- */

static bool scan_is_tracked(const struct json_scan *scan)
{
    return scan->depth <= JSON_SCAN_TRACKED && !scan->path_is_lost;
}

static bool scan_in_object(const struct json_scan *scan)
{
    return scan->depth && scan->kinds[(scan->depth - 1) / 8] & (1u << (scan->depth - 1) % 8);
}

static void scan_tell(struct json_scan *scan, enum json_scan_kind kind)
{
    if (!scan_is_tracked(scan))
        return;
    scan->path[scan->path_length] = '\0';
    scan->text[scan->text_length] = '\0';
    scan->found(scan->context, scan, kind, scan->path, scan->text);
}

/* A value is complete: its path ends where that of its container does. */
static void scan_value_done(struct json_scan *scan)
{
    if (scan->depth <= JSON_SCAN_TRACKED) {
        scan->path_length = scan->path_ends[scan->depth];
        scan->path_is_lost = scan->path_length == JSON_SCAN_PATH_MAX;
        scan->members[scan->depth] = true;
    }
    scan->state = scan->depth ? JSON_SCAN_AFTER : JSON_SCAN_VALUE;
}

static void scan_open(struct json_scan *scan, bool is_object)
{
    uint8_t bit;

    if (scan->depth == JSON_SCAN_DEPTH_MAX) {
        scan->state = JSON_SCAN_LOST;
        return;
    }
    scan->text_length = 0;
    scan->is_object = is_object;
    scan_tell(scan, JSON_SCAN_OPEN);
    bit = (uint8_t) (1u << scan->depth % 8);
    if (is_object)
        scan->kinds[scan->depth / 8] |= bit;
    else
        scan->kinds[scan->depth / 8] &= (uint8_t) ~bit;
    scan->depth++;
    if (scan->depth <= JSON_SCAN_TRACKED + 1) {
        /* One whose path is lost is told of nothing inside: its end is beyond every path. */
        scan->path_ends[scan->depth] =
            scan->path_is_lost ? (size_t) JSON_SCAN_PATH_MAX : scan->path_length;
        scan->members[scan->depth] = false;
    }
    scan->state = is_object ? JSON_SCAN_KEY : JSON_SCAN_VALUE;
}

static void scan_close(struct json_scan *scan)
{
    if (!scan->depth) {
        scan->state = JSON_SCAN_VALUE;
        return;
    }
    scan->text_length = 0;
    scan->is_object = scan_in_object(scan);
    scan->has_members = scan->depth <= JSON_SCAN_TRACKED && scan->members[scan->depth];
    if (scan->depth <= JSON_SCAN_TRACKED + 1) {
        scan->path_length = scan->path_ends[scan->depth];
        scan->path_is_lost = scan->path_length == JSON_SCAN_PATH_MAX;
    }
    scan->depth--;
    scan_tell(scan, JSON_SCAN_CLOSE);
    scan_value_done(scan);
}

/* The key is in `text`: the path goes on with it. */
static void scan_key_done(struct json_scan *scan)
{
    size_t from = scan->depth <= JSON_SCAN_TRACKED ? scan->path_ends[scan->depth] : 0;
    size_t dot = from > 0;

    scan->state = JSON_SCAN_COLON;
    scan->path_is_lost = scan->depth > JSON_SCAN_TRACKED ||
                         scan->text_length == JSON_SCAN_TEXT_MAX ||
                         from + dot + scan->text_length >= JSON_SCAN_PATH_MAX;
    if (scan->path_is_lost)
        return;
    if (dot)
        scan->path[from] = '.';
    memcpy(scan->path + from + dot, scan->text, scan->text_length);
    scan->path_length = from + dot + scan->text_length;
}

/* --- strings ---------------------------------------------------------------------------------- */

static void scan_keep(struct json_scan *scan, const char *bytes, size_t length)
{
    size_t room = JSON_SCAN_TEXT_MAX - scan->text_length;

    if (length > room)
        length = room;
    memcpy(scan->text + scan->text_length, bytes, length);
    scan->text_length += length;
}

static void scan_string_begins(struct json_scan *scan, bool is_key)
{
    scan->in_key = is_key;
    scan->text_length = 0;
    scan->state = JSON_SCAN_STRING;
}

static void scan_string_done(struct json_scan *scan)
{
    if (scan->in_key) {
        scan_key_done(scan);
        return;
    }
    scan_tell(scan, JSON_SCAN_TEXT);
    scan_value_done(scan);
}

/* As much of a string as needs no thought. Returns how many bytes that was. */
static size_t scan_string(struct json_scan *scan, const char *bytes, size_t length)
{
    size_t plain = 0;

    while (plain < length && bytes[plain] != '"' && bytes[plain] != '\\')
        plain++;
    for (size_t i = 0; i < plain && scan->text_length < JSON_SCAN_TEXT_MAX; i++) {
        char c = bytes[i] & 0x80 ? '?' : bytes[i];

        scan_keep(scan, &c, 1);
    }
    if (plain == length)
        return length;
    if (bytes[plain] == '\\')
        scan->state = JSON_SCAN_ESCAPE;
    else
        scan_string_done(scan);
    return plain + 1;
}

static void scan_escape(struct json_scan *scan, char c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = c ? strchr(from, c) : NULL;

    scan->state = JSON_SCAN_STRING;
    if (c == 'u') {
        scan->state = JSON_SCAN_UNICODE;
        scan->code = 0;
        scan->code_left = 4;
    } else {
        scan_keep(scan, at ? &to[at - from] : &c, 1);
    }
}

static void scan_unicode(struct json_scan *scan, char c)
{
    unsigned int digit =
        c >= '0' && c <= '9' ? (unsigned int) (c - '0') : ((unsigned int) c | 0x20) - 'a' + 10;
    char plain;

    scan->code = scan->code << 4 | (digit & 15);
    if (--scan->code_left)
        return;
    plain = scan->code < 0x80 ? (char) scan->code : '?';
    scan_keep(scan, &plain, 1);
    scan->state = JSON_SCAN_STRING;
}

/* --- the rest --------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
           c == 'E';
}

static bool is_number(const struct json_scan *scan)
{
    return scan->text_length &&
           (scan->text[0] == '-' || (scan->text[0] >= '0' && scan->text[0] <= '9'));
}

static void scan_word_done(struct json_scan *scan)
{
    scan_tell(scan, is_number(scan) ? JSON_SCAN_NUMBER : JSON_SCAN_LITERAL);
    scan_value_done(scan);
}

static void scan_value(struct json_scan *scan, char c)
{
    if (c == '{' || c == '[') {
        scan_open(scan, c == '{');
    } else if (c == '"') {
        scan_string_begins(scan, false);
    } else if (c == ']' || c == '}') {
        scan_close(scan);
    } else if (is_word(c)) {
        scan->text_length = 0;
        scan_keep(scan, &c, 1);
        scan->state = JSON_SCAN_WORD;
    }
}

static void scan_between(struct json_scan *scan, char c)
{
    if (c == '}' || c == ']')
        scan_close(scan);
    else if (c == ',')
        scan->state = scan_in_object(scan) ? JSON_SCAN_KEY : JSON_SCAN_VALUE;
}

static void scan_byte(struct json_scan *scan, char c)
{
    if (scan->state == JSON_SCAN_WORD) {
        if (is_word(c)) {
            scan_keep(scan, &c, 1);
            return;
        }
        scan_word_done(scan);
    }
    switch (scan->state) {
    case JSON_SCAN_VALUE:
        scan_value(scan, c);
        break;
    case JSON_SCAN_KEY:
        if (c == '"')
            scan_string_begins(scan, true);
        else if (c == '}' || c == ']')
            scan_close(scan);
        break;
    case JSON_SCAN_COLON:
        if (c == ':')
            scan->state = JSON_SCAN_VALUE;
        break;
    case JSON_SCAN_AFTER:
        scan_between(scan, c);
        break;
    case JSON_SCAN_ESCAPE:
        scan_escape(scan, c);
        break;
    case JSON_SCAN_UNICODE:
        scan_unicode(scan, c);
        break;
    case JSON_SCAN_STRING:
    case JSON_SCAN_WORD:
    case JSON_SCAN_LOST:
        break;
    }
}

void json_scan_feed(struct json_scan *scan, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length && scan->state != JSON_SCAN_LOST;) {
        if (scan->state == JSON_SCAN_STRING)
            at += scan_string(scan, bytes + at, length - at);
        else
            scan_byte(scan, bytes[at++]);
    }
}

void json_scan_finish(struct json_scan *scan)
{
    if (scan->state == JSON_SCAN_WORD)
        scan_word_done(scan);
}
