#include "json/json_measure.h"

#include <stdio.h>

#include "base/number.h"

enum { ABSENT, FOUND };

typedef int parse_text(const char *text, uint64_t maximum, uint64_t *ret_value);

/* Fetch the field. Returns FOUND, ABSENT or -1. */
static int json_measure_fetch(const struct json_place *object, const char *key, enum json_need need,
                              const char *form, json_t **ret_value, struct error *err)
{
    json_t *value = json_object_get(object->value, key);

    if (!value || json_is_null(value))
        return need == JSON_REQUIRED ? json_refuse_field(object, key, form, err) : ABSENT;
    *ret_value = value;
    return FOUND;
}

/* A number of wholes as thousandths, exactly as far as a double goes. Returns 0 or -1. */
static int scale(json_t *value, uint64_t maximum, uint64_t *ret_thousandths)
{
    double thousandths = json_number_value(value) * 1000;

    if (!(thousandths >= 0) || thousandths > (double) maximum)
        return -1;
    *ret_thousandths = (uint64_t) (thousandths + 0.5);
    return 0;
}

static int read_scaled(const struct json_place *object, const char *key, enum json_need need,
                       const char *form, uint64_t maximum, parse_text *parse, uint64_t *ret_value,
                       struct error *err)
{
    json_t *value = NULL;
    int r = json_measure_fetch(object, key, need, form, &value, err);

    if (r != FOUND)
        return r;
    if (json_is_string(value))
        r = parse(json_string_value(value), maximum, ret_value);
    else if (json_is_number(value))
        r = scale(value, maximum, ret_value);
    else
        r = -1;
    return r < 0 ? json_refuse_field(object, key, form, err) : 0;
}

int json_field_duration(const struct json_place *object, const char *key, enum json_need need,
                        uint64_t maximum_ms, uint64_t *ret_ms, struct error *err)
{
    char longest[NUMBER_TEXT_SIZE];
    char form[NUMBER_TEXT_SIZE + 64];

    number_format_duration(maximum_ms, longest);
    (void) snprintf(form, sizeof(form), "\"30s\", \"5m\", \"1h\" or seconds, up to %s", longest);
    return read_scaled(object, key, need, form, maximum_ms, number_parse_duration, ret_ms, err);
}

int json_field_thousandths(const struct json_place *object, const char *key, enum json_need need,
                           uint64_t maximum, uint64_t *ret_thousandths, struct error *err)
{
    char form[96];

    (void) snprintf(form, sizeof(form), "a number from 0 to %llu, like 0.5",
                    (unsigned long long) maximum / 1000);
    return read_scaled(object, key, need, form, maximum, number_parse_thousandths, ret_thousandths,
                       err);
}

int json_field_size(const struct json_place *object, const char *key, enum json_need need,
                    uint64_t maximum, uint64_t *ret_bytes, struct error *err)
{
    char largest[NUMBER_TEXT_SIZE];
    char form[NUMBER_TEXT_SIZE + 64];
    json_t *value = NULL;
    int r;

    number_format_size(maximum, largest);
    (void) snprintf(form, sizeof(form), "\"512M\", \"2G\" or bytes, up to %s", largest);
    r = json_measure_fetch(object, key, need, form, &value, err);
    if (r != FOUND)
        return r;
    if (json_is_string(value))
        return number_parse_size(json_string_value(value), maximum, ret_bytes) < 0
                   ? json_refuse_field(object, key, form, err)
                   : 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t) json_integer_value(value) > maximum)
        return json_refuse_field(object, key, form, err);
    *ret_bytes = (uint64_t) json_integer_value(value);
    return 0;
}

void json_add_thousandths(struct json_writer *writer, const char *key, uint64_t thousandths)
{
    json_key(writer, key);
    json_put_thousandths(writer, thousandths);
}

void json_put_thousandths(struct json_writer *writer, uint64_t thousandths)
{
    if (thousandths % 1000 == 0)
        json_put_integer(writer, (int64_t) (thousandths / 1000));
    else
        json_put_double(writer, (double) thousandths / 1000);
}
