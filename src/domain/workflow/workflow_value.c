#include "domain/workflow/workflow_value.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/text.h"

#define NAME_MAX_ 256
#define FILL_MAX  ((size_t) 256 * 1024)
#define DEPTH_MAX 64

/* --- paths ----------------------------------------------------------------------------------- */

/* The next name of a path: "a", "[0]", "['b c']". Returns behind it; NULL at the end, or when it is
 * malformed. */
static const char *workflow_value_name(const char *at, char ret_name[static NAME_MAX_])
{
    const char *end;
    size_t length;

    while (*at == '.')
        at++;
    if (*at == '[' && (at[1] == '"' || at[1] == '\'')) {
        end = strchr(at + 2, at[1]);
        if (!end || end[1] != ']')
            return NULL;
        length = (size_t) (end - at) - 2;
        at += 2;
        end += 2;
    } else if (*at == '[') {
        end = strchr(at, ']');
        if (!end)
            return NULL;
        length = (size_t) (end - at) - 1;
        at++;
        end++;
    } else {
        length = strcspn(at, ".[");
        end = at + length;
    }
    if (!length || length >= NAME_MAX_)
        return NULL;
    memcpy(ret_name, at, length);
    ret_name[length] = '\0';
    return end;
}

json_t *workflow_value_at(json_t *scope, const char *path)
{
    char name[NAME_MAX_];

    while (scope && *path) {
        path = workflow_value_name(path, name);
        if (!path)
            return NULL;
        if (json_is_array(scope)) {
            if (name[strspn(name, "0123456789")])
                return NULL;
            scope = json_array_get(scope, strtoul(name, NULL, 10));
        } else {
            scope = json_object_get(scope, name);
        }
    }
    return scope;
}

/* --- templates ------------------------------------------------------------------------------- */

static int workflow_value_path(const char *at, const char *end, char ret_path[static NAME_MAX_],
                               struct error *err)
{
    size_t length;

    while (at < end && isspace((unsigned char) *at))
        at++;
    while (end > at && isspace((unsigned char) end[-1]))
        end--;
    length = (size_t) (end - at);
    if (!length || length >= NAME_MAX_)
        return error_set(err, ERR_INVALID, 0, "a template must hold a path of 1 to %d bytes",
                         NAME_MAX_ - 1);
    memcpy(ret_path, at, length);
    ret_path[length] = '\0';
    if (strncmp(ret_path, "env.", 4) == 0)
        return error_set(err, ERR_INVALID, 0,
                         "{{%.64s}}: workflows see no variables of the daemon; put the value into "
                         "triggerData",
                         ret_path);
    return 0;
}

static void workflow_value_print(struct text *out, json_t *value)
{
    AUTO(free) char *text = NULL;

    if (!value || json_is_null(value))
        return;
    if (json_is_string(value)) {
        text_append_bytes(out, json_string_value(value), json_string_length(value));
        return;
    }
    text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    text_append(out, text ? text : "");
}

static json_t *workflow_value_fill_text(const char *text, json_t *scope, struct error *err)
{
    AUTO(text) struct text out = TEXT_INIT(FILL_MAX);
    char path[NAME_MAX_];
    const char *at = text, *open, *end;

    while ((open = strstr(at, "{{"))) {
        end = strstr(open, "}}");
        if (!end) {
            (void) error_set(err, ERR_INVALID, 0, "a template begins with {{ and is not closed");
            return NULL;
        }
        if (workflow_value_path(open + 2, end, path, err) < 0)
            return NULL;
        if (open == text && !end[2]) { /* all of it: the value keeps its type */
            json_t *value = workflow_value_at(scope, path);

            return value ? json_deep_copy(value) : json_null();
        }
        text_append_bytes(&out, at, (size_t) (open - at));
        workflow_value_print(&out, workflow_value_at(scope, path));
        at = end + 2;
    }
    text_append(&out, at);
    if (out.overflowed) {
        (void) error_set(err, ERR_INVALID, 0, "a text with templates becomes larger than %zu kB",
                         FILL_MAX / 1024);
        return NULL;
    }
    return json_stringn(text_string(&out), out.length);
}

static json_t *workflow_value_fill_deep(json_t *value, json_t *scope, unsigned int depth,
                                        struct error *err);

static json_t *workflow_value_fill_object(json_t *object, json_t *scope, unsigned int depth,
                                          struct error *err)
{
    json_t *copy = json_object(), *value;
    const char *key;

    json_object_foreach (object, key, value) {
        json_t *filled = workflow_value_fill_deep(value, scope, depth, err);

        if (!filled || json_object_set_new(copy, key, filled) < 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

static json_t *workflow_value_fill_array(json_t *array, json_t *scope, unsigned int depth,
                                         struct error *err)
{
    json_t *copy = json_array(), *value;
    size_t i;

    json_array_foreach (array, i, value) {
        json_t *filled = workflow_value_fill_deep(value, scope, depth, err);

        if (!filled || json_array_append_new(copy, filled) < 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

static json_t *workflow_value_fill_deep(json_t *value, json_t *scope, unsigned int depth,
                                        struct error *err)
{
    if (depth > DEPTH_MAX) {
        (void) error_set(err, ERR_INVALID, 0, "parameters are nested deeper than %d", DEPTH_MAX);
        return NULL;
    }
    if (json_is_string(value))
        return workflow_value_fill_text(json_string_value(value), scope, err);
    if (json_is_object(value))
        return workflow_value_fill_object(value, scope, depth + 1, err);
    if (json_is_array(value))
        return workflow_value_fill_array(value, scope, depth + 1, err);
    return json_incref(value);
}

json_t *workflow_value_fill(json_t *value, json_t *scope, struct error *err)
{
    return workflow_value_fill_deep(value, scope, 0, err);
}

/* --- comparisons ----------------------------------------------------------------------------- */

static bool workflow_value_number(json_t *value, double *ret_number)
{
    const char *text = json_string_value(value);
    char *end;

    if (json_is_number(value)) {
        *ret_number = json_number_value(value);
        return true;
    }
    if (!text || !*text)
        return false;
    *ret_number = strtod(text, &end);
    return !*end;
}

static bool workflow_value_equal(json_t *a, json_t *b)
{
    double left, right;

    if (!a || !b)
        return !a && !b;
    if (json_equal(a, b))
        return true;
    return workflow_value_number(a, &left) && workflow_value_number(b, &right) && !(left < right) &&
           !(left > right);
}

static bool workflow_value_has(json_t *actual, json_t *expected)
{
    const char *text = json_string_value(actual), *part = json_string_value(expected);
    json_t *item;
    size_t i;

    if (text)
        return part && strstr(text, part);
    json_array_foreach (actual, i, item) {
        if (workflow_value_equal(item, expected))
            return true;
    }
    return false;
}

static bool workflow_value_is_empty(json_t *value)
{
    return !value || json_is_null(value) || (json_is_string(value) && !json_string_length(value)) ||
           (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

/* -1, 0, 1; 2: they have no order. */
static int workflow_value_order(json_t *a, json_t *b)
{
    double left, right;

    if (!workflow_value_number(a, &left) || !workflow_value_number(b, &right))
        return 2;
    return left < right ? -1 : left > right;
}

static bool workflow_value_begins(json_t *actual, json_t *expected, bool at_end)
{
    const char *text = json_string_value(actual), *part = json_string_value(expected);
    size_t length = text ? strlen(text) : 0, size = part ? strlen(part) : 0;

    return text && part && size <= length &&
           memcmp(at_end ? text + length - size : text, part, size) == 0;
}

enum comparison {
    IS_EQUAL,
    IS_NOT_EQUAL,
    HAS,
    HAS_NOT,
    BEGINS,
    ENDS,
    IS_GREATER,
    IS_LESS,
    IS_NOT_LESS,
    IS_NOT_GREATER,
    IS_EMPTY,
    IS_NOT_EMPTY,
    IS_TRUE,
    IS_FALSE,
    COMPARISONS
};

static bool workflow_value_holds(enum comparison comparison, json_t *actual, json_t *expected)
{
    switch (comparison) {
    case IS_EQUAL:
        return workflow_value_equal(actual, expected);
    case IS_NOT_EQUAL:
        return !workflow_value_equal(actual, expected);
    case HAS:
        return workflow_value_has(actual, expected);
    case HAS_NOT:
        return !workflow_value_has(actual, expected);
    case BEGINS:
        return workflow_value_begins(actual, expected, false);
    case ENDS:
        return workflow_value_begins(actual, expected, true);
    case IS_GREATER:
        return workflow_value_order(actual, expected) == 1;
    case IS_LESS:
        return workflow_value_order(actual, expected) == -1;
    case IS_NOT_LESS:
        return workflow_value_order(actual, expected) == 0 ||
               workflow_value_order(actual, expected) == 1;
    case IS_NOT_GREATER:
        return workflow_value_order(actual, expected) <= 0;
    case IS_EMPTY:
        return workflow_value_is_empty(actual);
    case IS_NOT_EMPTY:
        return !workflow_value_is_empty(actual);
    case IS_TRUE:
        return json_is_true(actual);
    case IS_FALSE:
        return json_is_false(actual);
    case COMPARISONS:
        break;
    }
    return false;
}

int workflow_value_compare(const char *operator, json_t * actual, json_t *expected,
                           struct error *err)
{
    static const char *const names[COMPARISONS] = {
        [IS_EQUAL] = "equals",
        [IS_NOT_EQUAL] = "notEquals",
        [HAS] = "contains",
        [HAS_NOT] = "notContains",
        [BEGINS] = "startsWith",
        [ENDS] = "endsWith",
        [IS_GREATER] = "greaterThan",
        [IS_LESS] = "lessThan",
        [IS_NOT_LESS] = "greaterThanOrEqual",
        [IS_NOT_GREATER] = "lessThanOrEqual",
        [IS_EMPTY] = "isEmpty",
        [IS_NOT_EMPTY] = "isNotEmpty",
        [IS_TRUE] = "isTrue",
        [IS_FALSE] = "isFalse",
    };

    for (size_t i = 0; i < COMPARISONS; i++) {
        if (strcmp(names[i], operator) == 0)
            return workflow_value_holds((enum comparison) i, actual, expected);
    }
    return error_set(err, ERR_INVALID, 0, "there is no operator '%.64s' here", operator);
}

/* --- durations ------------------------------------------------------------------------------- */

bool workflow_value_duration(json_t *value, uint64_t *ret_ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {
        {"ms", 1},        {"milliseconds", 1}, {"millisecond", 1}, {"s", 1e3},
        {"second", 1e3},  {"seconds", 1e3},    {"m", 6e4},         {"minute", 6e4},
        {"minutes", 6e4}, {"h", 3.6e6},        {"hour", 3.6e6},    {"hours", 3.6e6},
        {"d", 8.64e7},    {"day", 8.64e7},     {"days", 8.64e7},   {"", 1},
    };
    const char *text = json_string_value(value);
    double number = json_number_value(value);
    char *end = (char *) "";

    if (text)
        number = strtod(text, &end);
    else if (!json_is_number(value))
        return false;
    while (isspace((unsigned char) *end))
        end++;
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (strcmp(units[i].unit, end) == 0 && end != text && number > 0 &&
            number * units[i].ms < 1e12) {
            *ret_ms = (uint64_t) (number * units[i].ms);
            return true;
        }
    }
    return false;
}
