/* Reading JSON that comes from outside: parsed within limits, then fetched field by field.
 *
 *     AUTO(json) json_t *body = json_read(bytes, length, &limits, err);
 *     struct json_place root;
 *     const char *command;
 *     int64_t timeout_ms = 30000;
 *
 *     if (!body || json_root_object(body, &root, err) < 0 ||
 *         json_field_text(&root, "command", JSON_REQUIRED, COMMAND_MAX, &command, err) < 0 ||
 *         json_field_integer(&root, "timeout", JSON_OPTIONAL, 1, 3600000, &timeout_ms, err) < 0)
 *         return -1;
 *
 * The functions that return int give 0, or -1 with ERR_INVALID and a message that names the whole
 * path of the field: "field 'options.env[2]' must be a string, not a number". An optional field
 * that is absent or null leaves `ret_` as it was, so the caller sets the default before. What is
 * returned is borrowed from the json_t. No message repeats a value, which may be a secret.
 * Different values may be used by different threads. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/pool.h"

struct json_limits {
    size_t size;   /* bytes of text */
    size_t depth;  /* arrays and objects inside each other */
    size_t values; /* opening brackets and commas: "[]" takes two bytes here, a hundred in memory */
    bool nul;      /* texts, but not keys, may hold \u0000: ask json_string_length */
};

#define JSON_SIZE_MAX   (1 << 20)
#define JSON_DEPTH_MAX  64
#define JSON_VALUES_MAX 65536

AUTO_DEFINE_PTR(json, json_t, json_decref);

/* Parse one array or object (RFC 8259; duplicate keys, NUL characters and anything behind it are
 * refused). `limits` may be NULL for the maxima above. Returns an owned value, or NULL with
 * ERR_INVALID ("invalid JSON at line 2, column 7: ...") or ERR_TOO_LARGE. */
json_t *json_read(const char *bytes, size_t length, const struct json_limits *limits,
                  struct error *err);

/* Once, before the first value: objects are hashed with a number that nobody can guess. Without
 * this jansson reads /dev/urandom when it makes its first object, and guesses where there is none.
 */
void json_seed(void);

/* A value and the way to it, for messages. Places live on the stack of who descends: `parent` and
 * `key` are borrowed and must outlive the place. */
struct json_place {
    json_t *value;                   /* borrowed */
    const struct json_place *parent; /* NULL at the root */
    const char *key;                 /* in an object, or NULL */
    size_t index;                    /* in an array */
};

enum json_need { JSON_OPTIONAL, JSON_REQUIRED };

/* The place of the whole document, which must be an object. */
int json_root_object(json_t *value, struct json_place *ret_place, struct error *err);

/* Refuse fields that are not among `count` names: "unknown field 'x'". */
int json_known_fields(const struct json_place *object, const char *const names[], size_t count,
                      struct error *err);

/* Refuse a field for a reason of one's own: "field 'a.b' must be <form>". Returns -1. */
int json_refuse_field(const struct json_place *object, const char *key, const char *form,
                      struct error *err);

/* A string of at most `maximum` bytes, without NUL characters. */
int json_field_text(const struct json_place *object, const char *key, enum json_need need,
                    size_t maximum, const char **ret_text, struct error *err);

/* An integer from `minimum` to `maximum`; 5.0 is none. */
int json_field_integer(const struct json_place *object, const char *key, enum json_need need,
                       int64_t minimum, int64_t maximum, int64_t *ret_number, struct error *err);

int json_field_boolean(const struct json_place *object, const char *key, enum json_need need,
                       bool *ret_value, struct error *err);

/* Go down into an object or array. When an optional one is absent, ret_place->value is NULL. */
int json_field_object(const struct json_place *object, const char *key, enum json_need need,
                      struct json_place *ret_place, struct error *err);
int json_field_array(const struct json_place *object, const char *key, enum json_need need,
                     struct json_place *ret_place, struct error *err);

/* The object at `index` of an array; json_array_size(array->value) counts them. */
int json_item_object(const struct json_place *array, size_t index, struct json_place *ret_place,
                     struct error *err);

struct json_texts {
    const char **items; /* from the pool; the strings are borrowed from the json_t */
    size_t count;
};

/* An array of at most `count_max` strings of at most `maximum` bytes. */
int json_field_texts(const struct json_place *object, const char *key, enum json_need need,
                     size_t count_max, size_t maximum, struct pool *pool,
                     struct json_texts *ret_texts, struct error *err);
