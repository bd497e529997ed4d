#include "agent/rpc/rpc_expression.h"

#include <string.h>

#include "agent/operation.h"
#include "base/clock.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_write.h"

/* The last moment that has a year of four digits. */
#define DATE_MAX_MS 253402300799999.0

/* --- reading --------------------------------------------------------------------------------- */

static const char *name_of(json_t *expression)
{
    const char *name = json_string_value(json_array_get(expression, 0));

    return name ? name : "";
}

static bool is_literal_array(json_t *expression)
{
    return json_array_size(expression) == 1 && json_is_array(json_array_get(expression, 0));
}

enum rpc_reference rpc_expression_reference(json_t *expression, int64_t *ret_id)
{
    const char *name = json_is_array(expression) ? name_of(expression) : "";
    json_t *id = json_array_get(expression, 1);

    if (!json_is_integer(id))
        return RPC_NO_REFERENCE;
    *ret_id = json_integer_value(id);
    if (strcmp(name, "export") == 0 || strcmp(name, "promise") == 0 ||
        strcmp(name, "writable") == 0)
        return RPC_STUB;
    return strcmp(name, "readable") == 0 ? RPC_READABLE : RPC_NO_REFERENCE;
}

typedef void visitor(void *context, enum rpc_reference kind, int64_t id);

static void visit_items(json_t *array, visitor *visit, void *context)
{
    json_t *item;
    size_t i;

    json_array_foreach (array, i, item) {
        rpc_expression_visit(item, visit, context);
    }
}

/* Two expressions hold lists of others that are not wrapped. */
static void visit_special(json_t *expression, visitor *visit, void *context)
{
    const char *name = name_of(expression);
    json_t *item;
    size_t i;

    if (strcmp(name, "pipeline") == 0 || strcmp(name, "remap") == 0) {
        visit_items(json_array_get(expression, 3), visit, context);
        return;
    }
    json_array_foreach (expression, i, item) {
        if (json_is_array(item) || json_is_object(item))
            rpc_expression_visit(item, visit, context);
    }
}

void rpc_expression_visit(json_t *expression, visitor *visit, void *context)
{
    enum rpc_reference kind;
    const char *key;
    json_t *member;
    int64_t id;

    if (json_is_object(expression)) {
        json_object_foreach (expression, key, member) {
            rpc_expression_visit(member, visit, context);
        }
        return;
    }
    if (!json_is_array(expression))
        return;
    kind = rpc_expression_reference(expression, &id);
    if (kind != RPC_NO_REFERENCE)
        visit(context, kind, id);
    else if (is_literal_array(expression))
        visit_items(json_array_get(expression, 0), visit, context);
    else
        visit_special(expression, visit, context);
}

static int rpc_expression_refuse(struct error *err, const char *what)
{
    return error_set(err, ERR_INVALID, 0, "%s", what);
}

static int read_date(json_t *expression, json_t **ret_value, struct error *err)
{
    json_t *time = json_array_get(expression, 1);
    double ms = json_number_value(time);
    char text[CLOCK_TEXT_SIZE];

    if (!json_is_number(time) && !json_is_null(time))
        return rpc_expression_refuse(err, "a date without its time");
    if (json_is_null(time) || !(ms >= 0 && ms <= DATE_MAX_MS)) {
        *ret_value = json_null();
        return 0;
    }
    clock_format((int64_t) ms, text);
    *ret_value = json_string(text);
    return 0;
}

static int read_big_integer(json_t *expression, json_t **ret_value, struct error *err)
{
    const char *text = json_string_value(json_array_get(expression, 1));
    int64_t number;

    if (!text || number_parse(text, INT64_MIN, INT64_MAX, &number) < 0)
        return rpc_expression_refuse(err, "an integer that is too large, or none");
    *ret_value = json_integer(number);
    return 0;
}

static int read_undefined(json_t *expression, json_t **ret_value, struct error *err)
{
    (void) expression;
    (void) err;
    *ret_value = NULL;
    return 0;
}

static int read_no_number(json_t *expression, json_t **ret_value, struct error *err)
{
    (void) expression;
    (void) err;
    *ret_value = json_null();
    return 0;
}

static const struct {
    const char *name;
    int (*read)(json_t *expression, json_t **ret_value, struct error *err);
} specials[] = {
    {"undefined", read_undefined}, {"date", read_date},      {"bigint", read_big_integer},
    {"inf", read_no_number},       {"-inf", read_no_number}, {"nan", read_no_number},
};

static int read_special(json_t *expression, json_t **ret_value, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(specials); i++) {
        if (strcmp(specials[i].name, name_of(expression)) == 0)
            return specials[i].read(expression, ret_value, err);
    }
    return rpc_expression_refuse(
        err, "a value that no argument can have: a stub, a promise, bytes, an error...");
}

static int rpc_expression_read_value(json_t *expression, size_t depth, json_t **ret_value,
                                     struct error *err);

static int read_object(json_t *expression, size_t depth, json_t **ret_value, struct error *err)
{
    json_t *object = json_object();
    json_t *member, *value;
    const char *key;

    json_object_foreach (expression, key, member) {
        if (rpc_expression_read_value(member, depth + 1, &value, err) < 0) {
            json_decref(object);
            return -1;
        }
        if (value)
            (void) json_object_set_new_nocheck(object, key, value);
    }
    *ret_value = object;
    return 0;
}

static int read_array(json_t *items, size_t depth, json_t **ret_value, struct error *err)
{
    json_t *array = json_array();
    json_t *item, *value;
    size_t i;

    json_array_foreach (items, i, item) {
        if (rpc_expression_read_value(item, depth + 1, &value, err) < 0) {
            json_decref(array);
            return -1;
        }
        (void) json_array_append_new(array, value ? value : json_null());
    }
    *ret_value = array;
    return 0;
}

static int rpc_expression_read_value(json_t *expression, size_t depth, json_t **ret_value,
                                     struct error *err)
{
    if (depth > RPC_DEPTH_MAX)
        return rpc_expression_refuse(err, "too much nesting");
    if (json_is_object(expression))
        return read_object(expression, depth, ret_value, err);
    if (json_is_array(expression))
        return is_literal_array(expression)
                   ? read_array(json_array_get(expression, 0), depth, ret_value, err)
                   : read_special(expression, ret_value, err);
    if (json_is_string(expression) &&
        strlen(json_string_value(expression)) != json_string_length(expression))
        return rpc_expression_refuse(err, "\\u0000 is not allowed");
    *ret_value = json_incref(expression);
    return 0;
}

int rpc_expression_value(json_t *expression, json_t **ret_value, struct error *err)
{
    return rpc_expression_read_value(expression, 0, ret_value, err);
}

/* capnweb leaves the padding out, our decoder wants it. */
static int decode(const char *text, size_t length, char *ret_bytes, size_t *ret_length)
{
    size_t whole = length / 4 * 4, rest = length - whole, count, more = 0;
    char tail[4] = {'=', '=', '=', '='};

    if (rest && length && text[length - 1] == '=')
        return -EINVAL;
    memcpy(tail, text + whole, rest);
    if (base64_decode(BASE64_STANDARD, text, whole, ret_bytes, whole, &count) < 0)
        return -EINVAL;
    if (rest && base64_decode(BASE64_STANDARD, tail, sizeof(tail), ret_bytes + count, 3, &more) < 0)
        return -EINVAL;
    *ret_length = count + more;
    return 0;
}

int rpc_expression_bytes(json_t *expression, char **ret_bytes, size_t *ret_length,
                         struct error *err)
{
    json_t *text = json_array_get(expression, 1);
    AUTO(free) char *bytes = NULL;

    if (json_is_string(expression)) {
        *ret_length = json_string_length(expression);
        *ret_bytes = mem_copy_bytes(json_string_value(expression), *ret_length);
        return 0;
    }
    if (strcmp(name_of(expression), "bytes") != 0 || !json_is_string(text))
        return rpc_expression_refuse(err, "only bytes and text can be written to a pipe");
    bytes = mem_alloc(BASE64_BYTES_MAX(json_string_length(text)) + 1);
    if (decode(json_string_value(text), json_string_length(text), bytes, ret_length) < 0)
        return rpc_expression_refuse(err, "bytes that are not base64");
    *ret_bytes = TAKE_PTR(bytes);
    return 0;
}

/* --- writing --------------------------------------------------------------------------------- */

/* How many bytes go out as they are: up to and without the next one that means something. */
static size_t plain_length(const struct rpc_wrap *wrap, const char *json, size_t length)
{
    size_t i = 0;

    if (wrap->in_string) {
        while (i < length && json[i] != '"' && json[i] != '\\')
            i++;
    } else {
        while (i < length && json[i] != '"' && json[i] != '[' && json[i] != ']')
            i++;
    }
    return i;
}

static void append_one(struct rpc_wrap *wrap, struct text *out, char c)
{
    text_append_char(out, c);
    if (wrap->escaped)
        wrap->escaped = false;
    else if (c == '"')
        wrap->in_string = !wrap->in_string;
    else if (wrap->in_string && c == '\\')
        wrap->escaped = true;
    else if (!wrap->in_string && (c == '[' || c == ']'))
        text_append_char(out, c);
}

void rpc_wrap_append(struct rpc_wrap *wrap, struct text *out, const char *json, size_t length)
{
    size_t i = 0;

    while (i < length) {
        size_t plain = wrap->escaped ? 0 : plain_length(wrap, json + i, length - i);

        text_append_bytes(out, json + i, plain);
        i += plain;
        if (i < length)
            append_one(wrap, out, json[i++]);
    }
}

/* The expression as a tree: a new reference. */
static json_t *wrapped(json_t *value)
{
    json_t *result, *member;
    const char *key;
    size_t i;

    if (json_is_object(value)) {
        member = json_object_get(value, OPERATION_RAW);
        if (member && json_object_size(value) == 1)
            return json_incref(member);
        result = json_object();
        json_object_foreach (value, key, member) {
            (void) json_object_set_new_nocheck(result, key, wrapped(member));
        }
        return result;
    }
    if (!json_is_array(value))
        return json_incref(value);
    result = json_array();
    json_array_foreach (value, i, member) {
        (void) json_array_append_new(result, wrapped(member));
    }
    member = json_array();
    (void) json_array_append_new(member, result);
    return member;
}

static int rpc_expression_append(const char *bytes, size_t length, void *context)
{
    text_append_bytes(context, bytes, length);
    return 0;
}

void rpc_expression_write(struct text *out, json_t *value)
{
    json_t *expression = wrapped(value);

    (void) json_dump_callback(expression, rpc_expression_append, out,
                              JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(expression);
}

void rpc_expression_write_bytes(struct text *out, const void *bytes, size_t length)
{
    size_t size = BASE64_TEXT_SIZE(length);
    char *place;

    text_append(out, "[\"bytes\",\"");
    place = text_reserve(out, size);
    if (!place)
        return;
    size = base64_encode(BASE64_STANDARD, bytes, length, place);
    while (size && place[size - 1] == '=')
        size--;
    text_commit(out, size);
    text_append(out, "\"]");
}

static void put_details(struct json_writer *json, const struct api_error *error)
{
    AUTO(text) struct text details = TEXT_INIT(API_CONTEXT_MAX * 2);
    struct rpc_wrap wrap = {.in_string = false};

    if (error->context.length && !error->context.overflowed)
        rpc_wrap_append(&wrap, &details, text_string(&error->context), error->context.length);
    else
        text_append(&details, "{}");
    json_key(json, "details");
    json_put_raw(json, text_string(&details), details.length);
}

void rpc_expression_write_error(struct text *out, const struct api_error *error)
{
    struct json_writer json;

    json_writer_init_text(&json, out);
    json_begin_array(&json);
    json_put_text(&json, "error");
    json_put_text(&json, "Error");
    json_put_text(&json, error->message);
    json_put_null(&json);
    json_begin_object(&json);
    json_add_text(&json, "code", api_code_text(error->code));
    put_details(&json, error);
    json_add_integer(&json, "httpStatus", api_error_status(error));
    if (error->operation)
        json_add_text(&json, "operation", error->operation);
    if (error->suggestion)
        json_add_text(&json, "suggestion", error->suggestion);
    json_end_object(&json);
    json_end_array(&json);
    (void) json_writer_finish(&json); /* only a full text fails it, which the caller sees */
}
