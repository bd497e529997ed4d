#include "cli/verb/verb_spec.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "cli/verb/verb_client.h"
#include "json/json_read.h"
#include "model/spec.h"
#include "sys/file/sys_file.h"

static void text_add(const struct verb_call *call, const char *option, const char *key,
                     json_t *body)
{
    verb_set_text(body, key, verb_value(call, option));
}

static int number_add(const struct verb_call *call, const char *option, const char *key,
                      int64_t most, json_t *body, struct error *err)
{
    const char *text = verb_value(call, option);
    int64_t number;

    if (!text)
        return 0;
    if (number_parse(text, 1, most, &number) < 0)
        return error_set(err, ERR_INVALID, 0, "--%s %s: a number from 1 to %lld", option, text,
                         (long long) most);
    (void) json_object_set_new(body, key, json_integer(number));
    return 0;
}

static int limits_add(const struct verb_call *call, const char *key, json_t *body,
                      struct error *err)
{
    json_t *limits = json_object();

    (void) json_object_set_new(body, key, limits);
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        const struct limit_field *field = &limit_fields[i];

        if (!field->option)
            continue;
        if (field->type != LIMIT_NUMBER)
            text_add(call, field->option, field->name, limits);
        else if (number_add(call, field->option, field->name, field->most, limits, err) < 0)
            return -1;
    }
    return 0;
}

/* "NAME=TEXT" pairs of an option as an object; of variables NAME alone takes ours. */
static int pairs_add(const struct verb_call *call, const struct spec_field *field, json_t *body,
                     struct error *err)
{
    json_t *pairs = json_object();
    size_t count;
    const char *const *values = verb_values(call, field->option, &count);

    (void) json_object_set_new(body, field->name, pairs);
    for (size_t i = 0; i < count; i++) {
        const char *at = strchr(values[i], '='), *value = at ? at + 1 : NULL;
        size_t length = at ? (size_t) (at - values[i]) : strlen(values[i]);

        if (!at && field->type == SPEC_VARIABLES)
            value = getenv(values[i]);
        if (!value || !length)
            return error_set(err, ERR_INVALID, 0, "--%s %s: write NAME=TEXT", field->option,
                             values[i]);
        if (json_object_setn_new(pairs, values[i], length, json_string(value)) < 0)
            return error_set(err, ERR_INVALID, 0, "--%s: it is not UTF-8", field->option);
    }
    return 0;
}

/* "NAME:PLACE" of an option as an object: the API has names by place. */
static int binds_add(const struct verb_call *call, const struct spec_field *field, json_t *body,
                     struct error *err)
{
    json_t *binds = json_object();
    size_t count;
    const char *const *values = verb_values(call, field->option, &count);

    (void) json_object_set_new(body, field->name, binds);
    for (size_t i = 0; i < count; i++) {
        const char *at = strchr(values[i], ':');

        if (!at || at == values[i] || !at[1])
            return error_set(err, ERR_INVALID, 0, "--%s %s: write NAME:PLACE", field->option,
                             values[i]);
        if (json_object_set_new(binds, at + 1, json_stringn(values[i], (size_t) (at - values[i]))) <
            0)
            return error_set(err, ERR_INVALID, 0, "--%s: it is not UTF-8", field->option);
    }
    return 0;
}

static int commands_add(const struct verb_call *call, const char *option, const char *key,
                        json_t *body, struct error *err)
{
    size_t count = 0;
    const char *const *commands = verb_values(call, option, &count);
    json_t *array;

    if (count == 0)
        return 0;
    array = json_array();
    (void) json_object_set_new(body, key, array);
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_string(commands[i])) < 0)
            return error_set(err, ERR_INVALID, 0, "--%s: it is not UTF-8", option);
    return 0;
}

json_t *verb_read_policy(const char *text, struct error *err)
{
    AUTO(free) char *contents = NULL;
    size_t length = strlen(text);
    int failure;

    if (*text == '@') {
        failure = sys_file_read_all(AT_FDCWD, text + 1, EGRESS_POLICY_MAX, &contents, &length);
        if (failure < 0) {
            (void) error_set(err, ERR_INVALID, failure, "cannot read the policy '%s'", text + 1);
            return NULL;
        }
        text = contents;
    }
    return json_read(text, length, NULL, err);
}

/* JSON, or a file of it. What it says is the daemon's to check. */
static int policy_add(const struct verb_call *call, const struct spec_field *field, json_t *body,
                      struct error *err)
{
    const char *text = verb_value(call, field->option);
    json_t *policy = text ? verb_read_policy(text, err) : NULL;

    if (text && !policy)
        return error_wrap(err, "--%s", field->option);
    if (policy)
        (void) json_object_set_new(body, field->name, policy);
    return 0;
}

/* Durations, sizes and shares go as they were written: the daemon reads them. */
static int field_add(const struct verb_call *call, const struct spec_field *field, json_t *body,
                     struct error *err)
{
    if (field->type == SPEC_LIMITS)
        return limits_add(call, field->name, body, err);
    if (!field->option)
        return 0;
    switch (field->type) {
    case SPEC_FLAG:
        if (verb_flag(call, field->option))
            (void) json_object_set_new(body, field->name, json_true());
        return 0;
    case SPEC_COUNT:
        return number_add(call, field->option, field->name, (int64_t) field->most, body, err);
    case SPEC_COMMANDS:
        return commands_add(call, field->option, field->name, body, err);
    case SPEC_VARIABLES:
    case SPEC_LABELS:
        return pairs_add(call, field, body, err);
    case SPEC_BINDS:
        return binds_add(call, field, body, err);
    case SPEC_POLICY:
        return policy_add(call, field, body, err);
    default:
        text_add(call, field->option, field->name, body);
        return 0;
    }
}

static int fields_add(const struct verb_call *call, enum spec_where where, json_t *body,
                      struct error *err)
{
    for (size_t i = 0; i < SPEC_FIELD_COUNT; i++)
        if ((spec_fields[i].where & where) && field_add(call, &spec_fields[i], body, err) < 0)
            return -1;
    return 0;
}

int verb_add_changes(const struct verb_call *call, json_t *body, struct error *err)
{
    return fields_add(call, SPEC_CHANGE, body, err);
}

int verb_add_spec(const struct verb_call *call, json_t *body, struct error *err)
{
    return fields_add(call, SPEC_CREATE, body, err);
}
