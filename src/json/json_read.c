#include "json/json_read.h"

#include <string.h>
#include <sys/random.h>

#include "base/text.h"
#include "json/json_parser.h"

/* How much of a path or of a foreign name a message shows. */
#define SHOWN_PATH_MAX 160
#define SHOWN_NAME_MAX 64

static const struct json_limits default_limits = {
    .size = JSON_SIZE_MAX,
    .depth = JSON_DEPTH_MAX,
    .values = JSON_VALUES_MAX,
};

void json_seed(void)
{
    size_t seed;

    if (getrandom(&seed, sizeof(seed), 0) == (ssize_t) sizeof(seed))
        json_object_seed(seed | 1); /* 0 would leave it to jansson */
}

static const char *const type_names[] = {
    [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
    [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "a boolean",
    [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
};

static int refuse_at(const char *bytes, size_t position, enum err_code code, size_t limit,
                     const char *what, struct error *err)
{
    size_t line = 1, line_start = 0;

    for (size_t i = 0; i < position; i++) {
        if (bytes[i] == '\n') {
            line++;
            line_start = i + 1;
        }
    }
    return error_set(err, code, 0, "invalid JSON at line %zu, column %zu: more than %zu %s", line,
                     position - line_start + 1, limit, what);
}

/* Where the string that begins at `position` ends; its closing quote or the end of the text. */
static size_t skip_string(const char *bytes, size_t length, size_t position)
{
    for (size_t i = position + 1; i < length; i++) {
        if (bytes[i] == '\\')
            i++;
        else if (bytes[i] == '"')
            return i;
    }
    return length;
}

/* Count brackets and commas before jansson allocates anything: its own depth limit is 2048 and it
 * has none for the number of values. In a text that is not JSON the counts may be wrong, but then
 * jansson refuses it. */
static int check_limits(const char *bytes, size_t length, const struct json_limits *limits,
                        struct error *err)
{
    size_t depth = 0, values = 0;

    if (length > limits->size)
        return error_set(err, ERR_TOO_LARGE, 0, "JSON text of %zu bytes, at most %zu are allowed",
                         length, limits->size);
    for (size_t i = 0; i < length; i++) {
        bool opens = bytes[i] == '[' || bytes[i] == '{';

        if (bytes[i] == '"')
            i = skip_string(bytes, length, i);
        else if (opens && ++depth > limits->depth)
            return refuse_at(bytes, i, ERR_INVALID, limits->depth, "levels of nesting", err);
        else if ((opens || bytes[i] == ',') && ++values > limits->values)
            return refuse_at(bytes, i, ERR_TOO_LARGE, limits->values, "values", err);
        else if ((bytes[i] == ']' || bytes[i] == '}') && depth)
            depth--;
    }
    return 0;
}

/* jansson shows the token where it stopped. That helps, but the token may be a password: only the
 * name of a duplicate key is kept. */
static void hide_token(json_error_t *failure)
{
    char *near = strstr(failure->text, " near '");

    if (near && json_error_code(failure) != json_error_duplicate_key)
        *near = '\0';
    if (json_error_code(failure) == json_error_null_character)
        (void) snprintf(failure->text, sizeof(failure->text), "\\u0000 is not allowed");
}

/* Why a text is no JSON: jansson has the words. It takes NUL bytes behind numbers, though. */
static void json_read_explain(const char *bytes, size_t length, const struct json_limits *limits,
                              struct error *err)
{
    size_t flags = JSON_REJECT_DUPLICATES | (limits->nul ? JSON_ALLOW_NUL : 0);
    json_error_t failure;
    AUTO(json) json_t *value = json_loadb(bytes, length, flags, &failure);

    if (value) {
        (void) error_set(err, ERR_INVALID, 0, "invalid JSON: it holds a NUL byte");
        return;
    }
    hide_token(&failure);
    (void) error_set(err, ERR_INVALID, 0, "invalid JSON at line %d, column %d: %s", failure.line,
                     failure.column, failure.text);
}

json_t *json_read(const char *bytes, size_t length, const struct json_limits *limits,
                  struct error *err)
{
    json_t *value;

    if (!limits)
        limits = &default_limits;
    if (check_limits(bytes, length, limits, err) < 0)
        return NULL;
    value = length ? json_parse(bytes, length, limits) : NULL;
    if (!value)
        json_read_explain(bytes, length, limits, err);
    return value;
}

static void append_path(struct text *path, const struct json_place *place)
{
    if (place->parent)
        append_path(path, place->parent);
    if (place->key)
        text_format(path, "%s%.*s", path->length ? "." : "", SHOWN_NAME_MAX, place->key);
    else if (place->parent)
        text_format(path, "[%zu]", place->index);
}

/* "field 'a.b[2]' must be ...". */
static int json_read_refuse(const struct json_place *place, struct error *err, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

static int json_read_refuse(const struct json_place *place, struct error *err, const char *format,
                            ...)
{
    AUTO(text) struct text path = TEXT_INIT(SHOWN_PATH_MAX);
    AUTO(text) struct text reason = TEXT_INIT(ERROR_MESSAGE_MAX);
    va_list arguments;

    append_path(&path, place);
    va_start(arguments, format);
    text_format_list(&reason, format, arguments);
    va_end(arguments);
    if (!path.length)
        return error_set(err, ERR_INVALID, 0, "the JSON document %s", text_string(&reason));
    return error_set(err, ERR_INVALID, 0, "field '%s%s' %s", text_string(&path),
                     path.overflowed ? "..." : "", text_string(&reason));
}

static int refuse_type(const struct json_place *place, const char *wanted, struct error *err)
{
    return json_read_refuse(place, err, "must be %s, not %s", wanted,
                            type_names[json_typeof(place->value)]);
}

int json_refuse_field(const struct json_place *object, const char *key, const char *form,
                      struct error *err)
{
    struct json_place place = {.parent = object, .key = key};

    return json_read_refuse(&place, err, "must be %s", form);
}

/* Fills `ret_place`; its value is NULL when the field is optional and absent or null. */
static int json_read_find(const struct json_place *object, const char *key, enum json_need need,
                          struct json_place *ret_place, struct error *err)
{
    struct json_place place = {
        .value = json_object_get(object->value, key),
        .parent = object,
        .key = key,
    };

    if (!place.value && need == JSON_REQUIRED) {
        (void) json_read_refuse(&place, err, "is required");
        return -1; /* spelt out: the analyzer does not look into variadic functions */
    }
    if (json_is_null(place.value) && need == JSON_OPTIONAL)
        place.value = NULL;
    *ret_place = place;
    return 0;
}

static int check_type(const struct json_place *place, json_type type, struct error *err)
{
    return json_typeof(place->value) == type ? 0 : refuse_type(place, type_names[type], err);
}

int json_root_object(json_t *value, struct json_place *ret_place, struct error *err)
{
    const struct json_place place = {.value = value};

    if (check_type(&place, JSON_OBJECT, err) < 0)
        return -1;
    *ret_place = place;
    return 0;
}

static bool is_known(const char *key, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, names[i]) == 0)
            return true;
    }
    return false;
}

int json_known_fields(const struct json_place *object, const char *const names[], size_t count,
                      struct error *err)
{
    AUTO(text) struct text path = TEXT_INIT(SHOWN_PATH_MAX);
    const char *key;
    json_t *value;

    json_object_foreach (object->value, key, value) {
        const struct json_place place = {.parent = object, .key = key};

        if (is_known(key, names, count))
            continue;
        append_path(&path, &place);
        return error_set(err, ERR_INVALID, 0, "unknown field '%s%s'", text_string(&path),
                         path.overflowed ? "..." : "");
    }
    return 0;
}

static int json_read_check_text(const struct json_place *place, size_t maximum,
                                const char **ret_text, struct error *err)
{
    size_t length;

    if (check_type(place, JSON_STRING, err) < 0)
        return -1;
    length = json_string_length(place->value);
    if (length > maximum)
        return json_read_refuse(place, err, "is longer than %zu bytes", maximum);
    if (memchr(json_string_value(place->value), '\0', length))
        return json_read_refuse(place, err, "contains a NUL character");
    *ret_text = json_string_value(place->value);
    return 0;
}

int json_field_text(const struct json_place *object, const char *key, enum json_need need,
                    size_t maximum, const char **ret_text, struct error *err)
{
    struct json_place place;

    if (json_read_find(object, key, need, &place, err) < 0)
        return -1;
    return place.value ? json_read_check_text(&place, maximum, ret_text, err) : 0;
}

int json_field_integer(const struct json_place *object, const char *key, enum json_need need,
                       int64_t minimum, int64_t maximum, int64_t *ret_number, struct error *err)
{
    struct json_place place;
    int64_t number;

    if (json_read_find(object, key, need, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    if (json_is_real(place.value))
        return json_read_refuse(&place, err, "must be an integer, not a fraction");
    if (!json_is_integer(place.value))
        return refuse_type(&place, "an integer", err);
    number = json_integer_value(place.value);
    if (number < minimum || number > maximum)
        return json_read_refuse(&place, err, "must be from %lld to %lld", (long long) minimum,
                                (long long) maximum);
    *ret_number = number;
    return 0;
}

int json_field_boolean(const struct json_place *object, const char *key, enum json_need need,
                       bool *ret_value, struct error *err)
{
    struct json_place place;

    if (json_read_find(object, key, need, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    if (!json_is_boolean(place.value))
        return refuse_type(&place, "a boolean", err);
    *ret_value = json_is_true(place.value);
    return 0;
}

static int descend(const struct json_place *object, const char *key, enum json_need need,
                   json_type type, struct json_place *ret_place, struct error *err)
{
    struct json_place place;

    if (json_read_find(object, key, need, &place, err) < 0)
        return -1;
    if (place.value && check_type(&place, type, err) < 0)
        return -1;
    *ret_place = place;
    return 0;
}

int json_field_object(const struct json_place *object, const char *key, enum json_need need,
                      struct json_place *ret_place, struct error *err)
{
    return descend(object, key, need, JSON_OBJECT, ret_place, err);
}

int json_field_array(const struct json_place *object, const char *key, enum json_need need,
                     struct json_place *ret_place, struct error *err)
{
    return descend(object, key, need, JSON_ARRAY, ret_place, err);
}

int json_item_object(const struct json_place *array, size_t index, struct json_place *ret_place,
                     struct error *err)
{
    const struct json_place place = {
        .value = json_array_get(array->value, index),
        .parent = array,
        .index = index,
    };

    if (!place.value)
        return json_read_refuse(&place, err, "is required");
    if (check_type(&place, JSON_OBJECT, err) < 0)
        return -1;
    *ret_place = place;
    return 0;
}

int json_field_texts(const struct json_place *object, const char *key, enum json_need need,
                     size_t count_max, size_t maximum, struct pool *pool,
                     struct json_texts *ret_texts, struct error *err)
{
    struct json_place array;
    const char **items;
    size_t count;

    if (json_field_array(object, key, need, &array, err) < 0)
        return -1;
    if (!array.value)
        return 0;
    count = json_array_size(array.value);
    if (count > count_max)
        return json_read_refuse(&array, err, "has more than %zu items", count_max);
    items = pool_alloc(pool, count * sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        const struct json_place item = {
            .value = json_array_get(array.value, i),
            .parent = &array,
            .index = i,
        };

        if (json_read_check_text(&item, maximum, &items[i], err) < 0)
            return -1;
    }
    *ret_texts = (struct json_texts){.items = items, .count = count};
    return 0;
}
