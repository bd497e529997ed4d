#include "model/spec_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/memory.h"
#include "json/json_measure.h"
#include "model/spec_rules.h"

#define NAME_LENGTH_MAX  63
#define NETWORK_TEXT_MAX 16
#define ROW_MORE_MAX     4096 /* what a row may be longer than it is written, as texts of JSON are */
#define FOLDER_DEFAULT   "/workspace"

/* A field that is read: where it is, and how its owner calls it there. */
struct spec_reading {
    const struct json_place *object;
    const struct spec_field *field;
    const char *key;
    bool is_change;
};

/* Whether it is said; null counts as nothing. */
static bool is_said(const struct spec_reading *reading)
{
    json_t *value = json_object_get(reading->object->value, reading->key);

    return value && !json_is_null(value);
}

/* --- texts ----------------------------------------------------------------------------------- */

static int text_read(const struct spec_reading *reading, void *at, struct error *err)
{
    char **text = at;
    const char *read = NULL;

    if (json_field_text(reading->object, reading->key, JSON_OPTIONAL, reading->field->most, &read,
                        err) < 0)
        return -1;
    if (!read)
        return 0;
    free(*text);
    *text = mem_copy_text(read);
    return 0;
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= NAME_LENGTH_MAX && !strchr("._-", name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

static int name_read(const struct spec_reading *reading, void *at, struct error *err)
{
    char *const *name = at;

    if (text_read(reading, at, err) < 0)
        return -1;
    if (is_said(reading) && (!is_name(*name) || id_is_valid(*name)))
        return json_refuse_field(reading->object, reading->key, SPEC_NAME_RULE ", and no id", err);
    return 0;
}

static void text_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_add_text(json, key, *(char *const *) at);
}

static void folder_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    const char *folder = *(char *const *) at;

    (void) shows;
    json_add_text(json, key, folder ? folder : FOLDER_DEFAULT);
}

static int commands_read(const struct spec_reading *reading, void *at, struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts read = {.count = 0};

    if (json_field_texts(reading->object, reading->key, JSON_OPTIONAL, reading->field->least,
                         reading->field->most, &pool, &read, err) < 0)
        return -1;
    if (!is_said(reading))
        return 0;
    sandbox_texts_done(at);
    for (size_t i = 0; i < read.count; i++)
        sandbox_texts_add(at, read.items[i]);
    return 0;
}

static void commands_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    const struct sandbox_texts *commands = at;

    if (!shows)
        return;
    json_key(json, key);
    json_begin_array(json);
    for (size_t i = 0; i < commands->count; i++)
        json_put_text(json, commands->items[i]);
    json_end_array(json);
}

/* --- pairs ----------------------------------------------------------------------------------- */

/* An object of strings, put over what is there. */
static int pairs_read(const struct spec_reading *reading, void *at, struct error *err)
{
    struct json_place place;
    const char *name;
    json_t *value;

    if (json_field_object(reading->object, reading->key, JSON_OPTIONAL, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    if (json_object_size(place.value) > reading->field->least)
        return error_set(err, ERR_INVALID, 0, "field '%s' has more than %zu entries", reading->key,
                         (size_t) reading->field->least);
    json_object_foreach (place.value, name, value) {
        const char *text = NULL;

        if (!(reading->is_change && json_is_null(value)) &&
            json_field_text(&place, name, JSON_REQUIRED, reading->field->most, &text, err) < 0)
            return -1;
        sandbox_pairs_set(at, name, text);
    }
    return 0;
}

static void pairs_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    const struct sandbox_pairs *pairs = at;

    json_key(json, key);
    json_begin_object(json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(json, pairs->items[i].name, shows ? pairs->items[i].value : NULL);
    json_end_object(json);
}

static void open_pairs_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    pairs_write(json, key, at, true);
}

/* --- limits ---------------------------------------------------------------------------------- */

static int limit_read(const struct json_place *object, const struct limit_field *field,
                      uint64_t *value, struct error *err)
{
    int64_t number = (int64_t) *value;

    if (field->type == LIMIT_SIZE)
        return json_field_size(object, field->name, JSON_OPTIONAL, (uint64_t) field->most, value,
                               err);
    if (field->type == LIMIT_SHARE)
        return json_field_thousandths(object, field->name, JSON_OPTIONAL, (uint64_t) field->most,
                                      value, err);
    if (json_field_integer(object, field->name, JSON_OPTIONAL, 0, field->most, &number, err) < 0)
        return -1;
    *value = (uint64_t) number;
    return 0;
}

static int limits_read(const struct spec_reading *reading, void *at, struct error *err)
{
    const char *names[LIMIT_FIELD_COUNT];
    struct json_place object;

    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++)
        names[i] = limit_fields[i].name;
    if (json_field_object(reading->object, reading->key, JSON_OPTIONAL, &object, err) < 0)
        return -1;
    if (!object.value)
        return 0;
    if (json_known_fields(&object, names, LIMIT_FIELD_COUNT, err) < 0)
        return -1;
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        uint64_t value = limit_get(at, &limit_fields[i]);

        if (limit_read(&object, &limit_fields[i], &value, err) < 0)
            return -1;
        limit_set(at, &limit_fields[i], value);
    }
    return 0;
}

static void limits_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_key(json, key);
    json_begin_object(json);
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        const struct limit_field *field = &limit_fields[i];
        uint64_t value = limit_get(at, field);

        if (value && field->type == LIMIT_SHARE)
            json_add_thousandths(json, field->name, value);
        else if (value)
            json_add_integer(json, field->name, value > INT64_MAX ? -1 : (int64_t) value);
    }
    json_end_object(json);
}

/* Wider than what the API takes: nothing that was ever kept is refused. No limit of swap is -1. */
static int limits_read_row(const struct spec_reading *reading, void *at, struct error *err)
{
    struct json_place object;

    if (json_field_object(reading->object, reading->key, JSON_OPTIONAL, &object, err) < 0)
        return -1;
    for (size_t i = 0; object.value && i < LIMIT_FIELD_COUNT; i++) {
        int64_t number = 0, least = i == LIMIT_SWAP ? -1 : 0;
        int64_t most = limit_fields[i].type == LIMIT_SIZE ? INT64_MAX : UINT32_MAX;

        if (json_field_integer(&object, limit_fields[i].name, JSON_OPTIONAL, least, most, &number,
                               err) < 0)
            return -1;
        limit_set(at, &limit_fields[i], (uint64_t) number);
    }
    return 0;
}

static void limits_write_row(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_key(json, key);
    json_begin_object(json);
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        uint64_t value = limit_get(at, &limit_fields[i]);

        if (value)
            json_add_integer(json, limit_fields[i].name, (int64_t) value);
    }
    json_end_object(json);
}

/* --- the network ----------------------------------------------------------------------------- */

static const char *const network_modes[] = {NETWORK_MODES(WORD_TEXT)};

static int network_read(const struct spec_reading *reading, void *at, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(reading->object, reading->key, JSON_OPTIONAL, NETWORK_TEXT_MAX, &text,
                        err) < 0)
        return -1;
    if (!text)
        return 0;
    for (size_t i = 0; i < ARRAY_COUNT(network_modes); i++) {
        if (strcmp(text, network_modes[i]) == 0) {
            *(struct sandbox_network *) at =
                (struct sandbox_network){.is_set = true, .mode = (enum network_mode) i};
            return 0;
        }
    }
    return json_refuse_field(reading->object, reading->key, "none or nat", err);
}

static void network_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_add_text(json, key, network_modes[((const struct sandbox_network *) at)->mode]);
}

typedef int rule_read(const struct json_place *item, struct network_rule *rule, struct error *err);

static int rules_read_each(const struct spec_reading *reading, struct sandbox_rules *rules,
                           rule_read *read, struct error *err)
{
    struct json_place array, item;
    size_t count;

    if (json_field_array(reading->object, reading->key, JSON_OPTIONAL, &array, err) < 0)
        return -1;
    if (!array.value)
        return 0;
    count = json_array_size(array.value);
    if (count > reading->field->least)
        return error_set(err, ERR_INVALID, 0, "field '%s' has more than %zu entries", reading->key,
                         (size_t) reading->field->least);
    free(rules->items);
    *rules = (struct sandbox_rules){.items = NULL};
    if (count)
        rules->items = mem_alloc_array(count, sizeof(*rules->items));
    for (; rules->count < count; rules->count++)
        if (json_item_object(&array, rules->count, &item, err) < 0 ||
            read(&item, &rules->items[rules->count], err) < 0)
            return -1;
    return 0;
}

static int rules_read(const struct spec_reading *reading, void *at, struct error *err)
{
    return rules_read_each(reading, at, spec_rule_read_api, err);
}

static int rules_read_row(const struct spec_reading *reading, void *at, struct error *err)
{
    return rules_read_each(reading, at, spec_rule_read_row, err);
}

static void rules_write_each(struct json_writer *json, const char *key,
                             const struct sandbox_rules *rules,
                             void (*write)(struct json_writer *, const struct network_rule *))
{
    json_key(json, key);
    json_begin_array(json);
    for (size_t i = 0; i < rules->count; i++)
        write(json, &rules->items[i]);
    json_end_array(json);
}

static void rules_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    rules_write_each(json, key, at, spec_rule_write_api);
}

static void rules_write_row(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    rules_write_each(json, key, at, spec_rule_write_row);
}

/* --- numbers --------------------------------------------------------------------------------- */

static int time_read(const struct spec_reading *reading, void *at, struct error *err)
{
    return json_field_duration(reading->object, reading->key, JSON_OPTIONAL, reading->field->most,
                               at, err);
}

/* 0 is never; what is not said is the daemon's. */
static int tier_read(const struct spec_reading *reading, void *at, struct error *err)
{
    uint64_t *time_ms = at;

    if (time_read(reading, at, err) < 0)
        return -1;
    if (is_said(reading) && *time_ms == 0)
        *time_ms = SANDBOX_NEVER;
    return 0;
}

static void time_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    uint64_t time_ms = *(const uint64_t *) at;

    (void) shows;
    json_add_thousandths(json, key, time_ms == SANDBOX_NEVER ? 0 : time_ms);
}

/* Never is -1. */
static int time_read_row(const struct spec_reading *reading, void *at, struct error *err)
{
    uint64_t *time_ms = at;
    int64_t least = reading->field->type == SPEC_TIER ? -1 : 0, number = (int64_t) *time_ms;

    if (json_field_integer(reading->object, reading->key, JSON_OPTIONAL, least,
                           (int64_t) reading->field->most, &number, err) < 0)
        return -1;
    *time_ms = (uint64_t) number;
    return 0;
}

static void time_write_row(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_add_integer(json, key, (int64_t) * (const uint64_t *) at);
}

static int count_read(const struct spec_reading *reading, void *at, struct error *err)
{
    uint32_t *count = at;
    int64_t number = *count;

    if (json_field_integer(reading->object, reading->key, JSON_OPTIONAL,
                           (int64_t) reading->field->least, (int64_t) reading->field->most, &number,
                           err) < 0)
        return -1;
    *count = (uint32_t) number;
    return 0;
}

static void count_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_add_integer(json, key, *(const uint32_t *) at);
}

static int flag_read(const struct spec_reading *reading, void *at, struct error *err)
{
    return json_field_boolean(reading->object, reading->key, JSON_OPTIONAL, at, err);
}

static void flag_write(struct json_writer *json, const char *key, const void *at, bool shows)
{
    (void) shows;
    json_add_boolean(json, key, *(const bool *) at);
}

/* --- the types ------------------------------------------------------------------------------- */

typedef int field_read(const struct spec_reading *reading, void *at, struct error *err);
typedef void field_write(struct json_writer *json, const char *key, const void *at, bool shows);

struct spec_form {
    field_read *read;
    field_write *write;
};

static const struct spec_form api_forms[SPEC_TYPE_COUNT] = {
    [SPEC_NAME] = {name_read, text_write},
    [SPEC_TEXT] = {text_read, text_write},
    [SPEC_FOLDER] = {text_read, folder_write},
    [SPEC_VARIABLES] = {pairs_read, pairs_write},
    [SPEC_LABELS] = {pairs_read, open_pairs_write},
    [SPEC_BINDS] = {pairs_read, open_pairs_write},
    [SPEC_COMMANDS] = {commands_read, commands_write},
    [SPEC_DURATION] = {time_read, time_write},
    [SPEC_TIER] = {tier_read, time_write},
    [SPEC_COUNT] = {count_read, count_write},
    [SPEC_FLAG] = {flag_read, flag_write},
    [SPEC_LIMITS] = {limits_read, limits_write},
    [SPEC_NETWORK] = {network_read, network_write},
    [SPEC_RULES] = {rules_read, rules_write},
};

static const struct spec_form row_forms[SPEC_TYPE_COUNT] = {
    [SPEC_TEXT] = {text_read, text_write},
    [SPEC_FOLDER] = {text_read, text_write},
    [SPEC_VARIABLES] = {pairs_read, pairs_write},
    [SPEC_LABELS] = {pairs_read, pairs_write},
    [SPEC_BINDS] = {pairs_read, pairs_write},
    [SPEC_COMMANDS] = {commands_read, commands_write},
    [SPEC_DURATION] = {time_read_row, time_write_row},
    [SPEC_TIER] = {time_read_row, time_write_row},
    [SPEC_COUNT] = {count_read, count_write},
    [SPEC_FLAG] = {flag_read, flag_write},
    [SPEC_LIMITS] = {limits_read_row, limits_write_row},
    [SPEC_NETWORK] = {network_read, network_write},
    [SPEC_RULES] = {rules_read_row, rules_write_row},
};

#define EACH_FIELD(field)                                                                          \
    for (const struct spec_field *field = spec_fields; field < spec_fields + SPEC_FIELD_COUNT;     \
         field++)

static const struct sandbox_spec nothing_said = SANDBOX_SPEC_INIT;

/* --- the API's form -------------------------------------------------------------------------- */

static int known_check(const struct json_place *body, enum spec_where where,
                       const char *const *more, struct error *err)
{
    const char *names[SPEC_FIELD_COUNT + 8];
    size_t count = 0;

    EACH_FIELD(field)
    if (field->where & where)
        names[count++] = field->name;
    while (more && *more && count < ARRAY_COUNT(names))
        names[count++] = *more++;
    return json_known_fields(body, names, count, err);
}

/* In a change null is said of a time that has a default: it is that again. */
static bool is_changed(const struct spec_reading *reading)
{
    return is_said(reading) || (reading->field->type == SPEC_TIER &&
                                json_object_get(reading->object->value, reading->key));
}

int sandbox_spec_read_api(const struct json_place *body, enum spec_where where,
                          const char *const *more, struct sandbox_spec *spec,
                          unsigned int *ret_fields, struct error *err)
{
    unsigned int fields = 0;

    if (known_check(body, where, more, err) < 0)
        return -1;
    EACH_FIELD(field)
    {
        const struct spec_reading reading = {
            .object = body, .field = field, .key = field->name, .is_change = where == SPEC_CHANGE};

        if (!(field->where & where))
            continue;
        if (api_forms[field->type].read(&reading, (char *) spec + field->offset, err) < 0)
            return -1;
        if (is_changed(&reading))
            fields |= 1U << (field - spec_fields);
    }
    if (ret_fields)
        *ret_fields = fields;
    return 0;
}

void sandbox_spec_write_api(struct json_writer *json, const struct sandbox_spec *spec,
                            bool shows_secrets)
{
    EACH_FIELD(field)
    if (field->type != SPEC_NAME &&
        (field->is_always || !spec_field_equal(field, spec, &nothing_said)))
        api_forms[field->type].write(json, field->name, (const char *) spec + field->offset,
                                     shows_secrets);
}

/* --- the rows' form -------------------------------------------------------------------------- */

int sandbox_spec_read_members(const struct json_place *object, struct sandbox_spec *spec,
                              struct error *err)
{
    EACH_FIELD(field)
    {
        const struct spec_reading reading = {.object = object, .field = field, .key = field->row};

        if (field->row &&
            row_forms[field->type].read(&reading, (char *) spec + field->offset, err) < 0)
            return -1;
    }
    return 0;
}

void sandbox_spec_write_members(struct json_writer *json, const struct sandbox_spec *spec)
{
    EACH_FIELD(field)
    if (field->row && !spec_field_equal(field, spec, &nothing_said))
        row_forms[field->type].write(json, field->row, (const char *) spec + field->offset, true);
}

static void object_write(struct json_writer *json, const struct sandbox_spec *spec)
{
    json_begin_object(json);
    sandbox_spec_write_members(json, spec);
    json_end_object(json);
    (void) json_writer_finish(json); /* what it writes to says when it is too much */
}

void sandbox_spec_write(const struct sandbox_spec *spec, struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    object_write(&json, spec);
}

static int bytes_count(void *context, const char *bytes, size_t length)
{
    (void) bytes;
    *(size_t *) context += length;
    return 0;
}

size_t sandbox_spec_size(const struct sandbox_spec *spec)
{
    struct json_writer json;
    size_t size = 0;

    json_writer_init_sink(&json, bytes_count, &size);
    object_write(&json, spec);
    return size;
}

json_t *sandbox_spec_parse(const char *json, size_t length, struct json_place *ret_root,
                           struct error *err)
{
    const struct json_limits limits = {
        .size = SANDBOX_SPEC_MAX + ROW_MORE_MAX, .depth = 8, .values = JSON_VALUES_MAX};
    json_t *value = json_read(json, length, &limits, err);

    if (value && json_root_object(value, ret_root, err) < 0) {
        json_decref(value);
        return NULL;
    }
    return value;
}

int sandbox_spec_read(const char *json, size_t length, struct sandbox_spec *ret_spec,
                      struct error *err)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct json_place root;
    AUTO(json) json_t *value = sandbox_spec_parse(json, length, &root, err);

    if (!value || sandbox_spec_read_members(&root, &spec, err) < 0)
        return -1;
    *ret_spec = spec;
    spec = (struct sandbox_spec){.name = NULL};
    return 0;
}
