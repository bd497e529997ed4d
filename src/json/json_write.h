/* Writing JSON piece by piece, into a text or through a callback, without building a tree.
 *
 *     struct json_writer json;
 *
 *     json_writer_init_text(&json, &body);
 *     json_begin_object(&json);
 *     json_add_text(&json, "id", id.text);
 *     json_key(&json, "ports");
 *     json_begin_array(&json);
 *     json_put_integer(&json, 8080);
 *     json_end_array(&json);
 *     json_end_object(&json);
 *     if (json_writer_finish(&json) < 0) ...
 *
 * No call but the last is checked: the first failure stays and makes the rest do nothing. The
 * failures are -EINVAL for misuse (a value without a key in an object, a key outside of one, the
 * wrong end, no or two values at the top), -EOVERFLOW for too much nesting or a text that is full,
 * and whatever the callback returned. What was written before a failure is not JSON.
 *
 * Strings may hold any bytes: control characters are escaped, invalid UTF-8 becomes U+FFFD. A
 * writer owns nothing and needs no cleanup. Blocks only if the callback does. Not thread-safe. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define JSON_WRITE_DEPTH_MAX 64

/* Takes all `length` bytes and returns 0, or fails with -errno. */
typedef int json_sink(void *context, const char *bytes, size_t length);

struct json_writer {
    json_sink *sink;
    void *context;    /* borrowed: outlives the writer */
    int error;        /* 0 or the first failure */
    unsigned depth;   /* open objects and arrays */
    uint64_t objects; /* bit n: the container at depth n + 1 is an object */
    uint64_t filled;  /* bit n: it has a member, so the next needs a comma */
    bool has_key;     /* a key waits for its value */
    bool complete;    /* the value at the top is there */
    size_t used;
    char buffer[512]; /* gathers small pieces */
};

/* Append to `text`; its own content of before stays. */
void json_writer_init_text(struct json_writer *writer, struct text *text);

void json_writer_init_sink(struct json_writer *writer, json_sink *sink, void *context);

/* Hand over what is gathered. Returns 0 when exactly one complete value was written and taken. */
int json_writer_finish(struct json_writer *writer);

/* The two ends of a document that is one object in a text: json_writer_init_text with
 * json_begin_object, and json_end_object with json_writer_finish. */
void json_document_begin(struct json_writer *writer, struct text *text);
int json_document_end(struct json_writer *writer);

void json_begin_object(struct json_writer *writer);
void json_end_object(struct json_writer *writer);
void json_begin_array(struct json_writer *writer);
void json_end_array(struct json_writer *writer);
void json_key(struct json_writer *writer, const char *key);
/* Key and beginning at once. */
void json_begin_object_at(struct json_writer *writer, const char *key);
void json_begin_array_at(struct json_writer *writer, const char *key);

/* Values. A text that is NULL is written as null. */
void json_put_text(struct json_writer *writer, const char *text);
void json_put_bytes(struct json_writer *writer, const void *bytes, size_t length);
void json_put_integer(struct json_writer *writer, int64_t number);
/* The shortest text that reads back as the same double, always with a '.' or an exponent so that
 * it stays one; NaN and infinity, which JSON lacks, become null. */
void json_put_double(struct json_writer *writer, double number);
void json_put_boolean(struct json_writer *writer, bool value);
void json_put_null(struct json_writer *writer);
/* One value that is JSON already; nobody checks it. */
void json_put_raw(struct json_writer *writer, const char *json, size_t length);
/* A whole tree of jansson's. */
void json_put_value(struct json_writer *writer, json_t *value);

/* Key and value at once. */
void json_add_text(struct json_writer *writer, const char *key, const char *text);
void json_add_integer(struct json_writer *writer, const char *key, int64_t number);
void json_add_boolean(struct json_writer *writer, const char *key, bool value);
void json_add_null(struct json_writer *writer, const char *key);
