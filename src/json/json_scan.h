/* JSON looked at while it passes: which values stand where, of documents of any size and in pieces
 * of any size, without keeping them.
 *
 *     json_scan_init(&scan, found, context);
 *     json_scan_feed(&scan, bytes, length);       any number of times
 *
 * `found` is told of every value by its path: the keys that lead to it with dots between, arrays
 * left out ("usage.input_tokens", "choices.delta.content"). Of JSON that a strict parser takes it
 * says the same as that would (json_scan_fuzz.c holds it against jansson); of what is no JSON it
 * says anything. Several documents may follow each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SCAN_PATH_MAX  160  /* longer paths are not told */
#define JSON_SCAN_TEXT_MAX  128  /* of a value; longer texts are cut */
#define JSON_SCAN_TRACKED   8    /* deeper values are not told */
#define JSON_SCAN_DEPTH_MAX 1024 /* deeper documents are not looked at any more */

enum json_scan_kind {
    JSON_SCAN_TEXT,    /* `text` with its escapes undone, ASCII only: others become '?' */
    JSON_SCAN_NUMBER,  /* `text` as written */
    JSON_SCAN_LITERAL, /* true, false, null */
    JSON_SCAN_OPEN,    /* an object or array begins */
    JSON_SCAN_CLOSE,   /* it ends */
};

struct json_scan;

/* `path` is "" for the document itself. Borrowed for the call. */
typedef void json_scan_found(void *context, const struct json_scan *scan, enum json_scan_kind kind,
                             const char *path, const char *text);

enum json_scan_state {
    JSON_SCAN_VALUE,
    JSON_SCAN_KEY,   /* or the end of the object */
    JSON_SCAN_COLON, /* behind a key */
    JSON_SCAN_AFTER, /* behind a value */
    JSON_SCAN_STRING,
    JSON_SCAN_ESCAPE,
    JSON_SCAN_UNICODE,
    JSON_SCAN_WORD, /* a number or literal */
    JSON_SCAN_LOST, /* too deep */
};

struct json_scan {
    json_scan_found *found;
    void *context;
    enum json_scan_state state;
    bool in_key;        /* the string under way is a key */
    bool is_object;     /* what was opened or closed last, for `found` */
    bool has_members;   /* likewise: the container that is open has some */
    unsigned int depth; /* open containers */
    unsigned int code;  /* of \uXXXX so far */
    unsigned int code_left;
    uint8_t kinds[JSON_SCAN_DEPTH_MAX / 8]; /* bit n: the container at depth n + 1 is an object */
    /* Of containers that are tracked: where their own path ends, and whether they have members. */
    size_t path_ends[JSON_SCAN_TRACKED + 2];
    bool members[JSON_SCAN_TRACKED + 2];
    bool path_is_lost; /* the one under way is too long */
    size_t path_length;
    size_t text_length;
    char path[JSON_SCAN_PATH_MAX + 1];
    char text[JSON_SCAN_TEXT_MAX + 1];
};

void json_scan_init(struct json_scan *scan, json_scan_found *found, void *context);

/* Back to the beginning, for the next document, whatever became of this one. */
void json_scan_reset(struct json_scan *scan);

void json_scan_feed(struct json_scan *scan, const char *bytes, size_t length);

/* No more comes: a number at the very end is told. */
void json_scan_finish(struct json_scan *scan);
