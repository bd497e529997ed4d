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

/* A value on its way: which field, what it is called there, and in which form. */
struct spec_passage {
    const struct spec_field *field;
    const char *key;
    const struct json_place *object; /* reading: where it is a member */
    struct json_writer *json;        /* writing */
    bool is_row;
    bool is_change;     /* reading: null removes a pair */
    bool shows_secrets; /* writing */
};

/* Whether it is said; null counts as nothing. */
static bool is_said(const struct spec_passage *passage)
{
    json_t *value = json_object_get(passage->object->value, passage->key);

    return value && !json_is_null(value);
}

/* --- texts ----------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= NAME_LENGTH_MAX && !strchr("._-", name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == length && !id_is_valid(name);
}

static int text_read(const struct spec_passage *passage, char **text, struct error *err)
{
    const char *read = NULL;

    if (json_field_text(passage->object, passage->key, JSON_OPTIONAL, passage->field->most, &read,
                        err) < 0)
        return -1;
    if (!read)
        return 0;
    if (passage->field->type == SPEC_NAME && !is_name(read))
        return json_refuse_field(passage->object, passage->key, SPEC_NAME_RULE ", and no id", err);
    free(*text);
    *text = mem_copy_text(read);
    return 0;
}

static void text_write(const struct spec_passage *passage, const char *text)
{
    if (!text && passage->field->type == SPEC_FOLDER)
        text = FOLDER_DEFAULT;
    json_put_text(passage->json, text);
}

static int commands_read(const struct spec_passage *passage, struct sandbox_texts *commands,
                         struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts read = {.count = 0};

    if (json_field_texts(passage->object, passage->key, JSON_OPTIONAL, passage->field->least,
                         passage->field->most, &pool, &read, err) < 0)
        return -1;
    if (!is_said(passage))
        return 0;
    sandbox_texts_done(commands);
    for (size_t i = 0; i < read.count; i++)
        sandbox_texts_add(commands, read.items[i]);
    return 0;
}

static void commands_write(const struct spec_passage *passage, const struct sandbox_texts *commands)
{
    json_begin_array(passage->json);
    for (size_t i = 0; i < commands->count; i++)
        json_put_text(passage->json, commands->items[i]);
    json_end_array(passage->json);
}

/* --- pairs ----------------------------------------------------------------------------------- */

static int count_refuse(const struct spec_passage *passage, struct error *err)
{
    return error_set(err, ERR_INVALID, 0, "field '%s' has more than %zu entries", passage->key,
                     (size_t) passage->field->least);
}

/* An object of strings, put over what is there. */
static int pairs_read(const struct spec_passage *passage, struct sandbox_pairs *pairs,
                      struct error *err)
{
    /* The names of an object differ: what is put over nothing need not be looked for. */
    void (*put)(struct sandbox_pairs * pairs, const char *name, const char *value) =
        pairs->count ? sandbox_pairs_set : sandbox_pairs_add;
    struct json_place place;
    const char *name;
    json_t *value;

    if (json_field_object(passage->object, passage->key, JSON_OPTIONAL, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    if (json_object_size(place.value) > passage->field->least)
        return count_refuse(passage, err);
    json_object_foreach (place.value, name, value) {
        const char *text = NULL;

        if (!(passage->is_change && json_is_null(value)) &&
            json_field_text(&place, name, JSON_REQUIRED, passage->field->most, &text, err) < 0)
            return -1;
        put(pairs, name, text);
    }
    return 0;
}

static void pairs_write(const struct spec_passage *passage, const struct sandbox_pairs *pairs)
{
    bool shows = passage->shows_secrets || passage->field->type != SPEC_VARIABLES;

    json_begin_object(passage->json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(passage->json, pairs->items[i].name, shows ? pairs->items[i].value : NULL);
    json_end_object(passage->json);
}

/* --- limits ---------------------------------------------------------------------------------- */

/* In a row wider than what requests may say, so that nothing that was ever kept is refused; swap
 * without a limit is -1. */
static int limit_read(const struct json_place *object, const struct limit_field *field, bool is_row,
                      uint64_t *value, struct error *err)
{
    int64_t number = (int64_t) *value, most = field->most;

    if (is_row)
        most = field->type == LIMIT_SIZE ? INT64_MAX : UINT32_MAX;
    else if (field->type == LIMIT_SIZE)
        return json_field_size(object, field->name, JSON_OPTIONAL, (uint64_t) most, value, err);
    else if (field->type == LIMIT_SHARE)
        return json_field_thousandths(object, field->name, JSON_OPTIONAL, (uint64_t) most, value,
                                      err);
    if (json_field_integer(object, field->name, JSON_OPTIONAL,
                           is_row && field == &limit_fields[LIMIT_SWAP] ? -1 : 0, most, &number,
                           err) < 0)
        return -1;
    *value = (uint64_t) number;
    return 0;
}

static int limits_read(const struct spec_passage *passage, struct limits *limits, struct error *err)
{
    const char *names[LIMIT_FIELD_COUNT];
    struct json_place object;

    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++)
        names[i] = limit_fields[i].name;
    if (json_field_object(passage->object, passage->key, JSON_OPTIONAL, &object, err) < 0)
        return -1;
    if (!object.value)
        return 0;
    if (!passage->is_row && json_known_fields(&object, names, LIMIT_FIELD_COUNT, err) < 0)
        return -1;
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        uint64_t value = limit_get(limits, &limit_fields[i]);

        if (limit_read(&object, &limit_fields[i], passage->is_row, &value, err) < 0)
            return -1;
        limit_set(limits, &limit_fields[i], value);
    }
    return 0;
}

static void limits_write(const struct spec_passage *passage, const struct limits *limits)
{
    json_begin_object(passage->json);
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        const struct limit_field *field = &limit_fields[i];
        uint64_t value = limit_get(limits, field);

        if (value && field->type == LIMIT_SHARE && !passage->is_row)
            json_add_thousandths(passage->json, field->name, value);
        else if (value)
            json_add_integer(passage->json, field->name, value > INT64_MAX ? -1 : (int64_t) value);
    }
    json_end_object(passage->json);
}

/* --- the network ----------------------------------------------------------------------------- */

static const char *const network_modes[] = {NETWORK_MODES(WORD_TEXT)};

static int network_read(const struct spec_passage *passage, struct sandbox_network *network,
                        struct error *err)
{
    const char *text = NULL;

    if (json_field_text(passage->object, passage->key, JSON_OPTIONAL, NETWORK_TEXT_MAX, &text,
                        err) < 0)
        return -1;
    if (!text)
        return 0;
    for (size_t i = 0; i < ARRAY_COUNT(network_modes); i++) {
        if (strcmp(text, network_modes[i]) == 0) {
            *network = (struct sandbox_network){true, (enum network_mode) i};
            return 0;
        }
    }
    return json_refuse_field(passage->object, passage->key, "none or nat", err);
}

static int rules_read(const struct spec_passage *passage, struct sandbox_rules *rules,
                      struct error *err)
{
    struct json_place array, item;
    size_t count;

    if (json_field_array(passage->object, passage->key, JSON_OPTIONAL, &array, err) < 0)
        return -1;
    if (!array.value)
        return 0;
    count = json_array_size(array.value);
    if (count > passage->field->least)
        return count_refuse(passage, err);
    free(rules->items);
    *rules = (struct sandbox_rules){.items = NULL};
    if (count)
        rules->items = mem_alloc_array(count, sizeof(*rules->items));
    for (; rules->count < count; rules->count++) {
        struct network_rule *rule = &rules->items[rules->count];

        if (json_item_object(&array, rules->count, &item, err) < 0 ||
            (passage->is_row ? spec_rule_read_row(&item, rule, err)
                             : spec_rule_read_api(&item, rule, err)) < 0)
            return -1;
    }
    return 0;
}

static void rules_write(const struct spec_passage *passage, const struct sandbox_rules *rules)
{
    json_begin_array(passage->json);
    for (size_t i = 0; i < rules->count; i++)
        (passage->is_row ? spec_rule_write_row : spec_rule_write_api)(passage->json,
                                                                      &rules->items[i]);
    json_end_array(passage->json);
}

/* A policy is kept in its one form, whoever wrote it. */
static int policy_read(const struct spec_passage *passage, char **policy, struct error *err)
{
    AUTO(egress_policy) struct egress_policy read = EGRESS_POLICY_INIT;
    AUTO(text) struct text text = TEXT_INIT(EGRESS_POLICY_MAX);
    struct json_place object;
    struct json_writer json;

    if (json_field_object(passage->object, passage->key, JSON_OPTIONAL, &object, err) < 0 ||
        (object.value && egress_policy_read(&object, &read, err) < 0))
        return -1;
    if (!object.value && !passage->is_change)
        return 0;
    free(*policy);
    *policy = NULL;
    if (!object.value)
        return 0;
    json_writer_init_text(&json, &text);
    egress_policy_write(&json, &read);
    if (json_writer_finish(&json) < 0)
        return json_refuse_field(passage->object, passage->key, "at most 64 KB", err);
    *policy = text_take(&text);
    return 0;
}

static void policy_write(const struct spec_passage *passage, const char *policy)
{
    json_put_raw(passage->json, policy, strlen(policy));
}

/* --- numbers --------------------------------------------------------------------------------- */

/* Of a tier 0 is the daemon's default. Never is 0 in requests and answers, -1 in rows. */
static int time_read(const struct spec_passage *passage, uint64_t *time_ms, struct error *err)
{
    const struct spec_field *field = passage->field;
    bool is_tier = field->type == SPEC_TIER;
    int64_t number = (int64_t) *time_ms;

    if (passage->is_row) {
        if (json_field_integer(passage->object, passage->key, JSON_OPTIONAL, is_tier ? -1 : 0,
                               (int64_t) field->most, &number, err) < 0)
            return -1;
        *time_ms = (uint64_t) number;
        return 0;
    }
    if (json_field_duration(passage->object, passage->key, JSON_OPTIONAL, field->most, time_ms,
                            err) < 0)
        return -1;
    if (is_tier && *time_ms == 0 && is_said(passage))
        *time_ms = SANDBOX_NEVER;
    return 0;
}

static void time_write(const struct spec_passage *passage, uint64_t time_ms)
{
    if (passage->is_row)
        json_put_integer(passage->json, (int64_t) time_ms);
    else
        json_put_thousandths(passage->json, time_ms == SANDBOX_NEVER ? 0 : time_ms);
}

static int count_read(const struct spec_passage *passage, uint32_t *count, struct error *err)
{
    int64_t number = *count;

    if (json_field_integer(passage->object, passage->key, JSON_OPTIONAL,
                           (int64_t) passage->field->least, (int64_t) passage->field->most, &number,
                           err) < 0)
        return -1;
    *count = (uint32_t) number;
    return 0;
}

/* --- one field ------------------------------------------------------------------------------- */

static int field_read(const struct spec_passage *passage, struct sandbox_spec *spec,
                      struct error *err)
{
    void *at = (char *) spec + passage->field->offset;

    switch (passage->field->type) {
    case SPEC_NAME:
    case SPEC_TEXT:
    case SPEC_FOLDER:
        return text_read(passage, at, err);
    case SPEC_VARIABLES:
    case SPEC_LABELS:
    case SPEC_BINDS:
        return pairs_read(passage, at, err);
    case SPEC_COMMANDS:
        return commands_read(passage, at, err);
    case SPEC_DURATION:
    case SPEC_TIER:
        return time_read(passage, at, err);
    case SPEC_COUNT:
        return count_read(passage, at, err);
    case SPEC_FLAG:
        return json_field_boolean(passage->object, passage->key, JSON_OPTIONAL, at, err);
    case SPEC_LIMITS:
        return limits_read(passage, at, err);
    case SPEC_NETWORK:
        return network_read(passage, at, err);
    case SPEC_RULES:
        return rules_read(passage, at, err);
    case SPEC_POLICY:
        return policy_read(passage, at, err);
    case SPEC_TYPE_COUNT:
        break;
    }
    return -1;
}

static void field_write(const struct spec_passage *passage, const struct sandbox_spec *spec)
{
    const void *at = (const char *) spec + passage->field->offset;

    if (passage->field->type == SPEC_COMMANDS && !passage->shows_secrets)
        return;
    json_key(passage->json, passage->key);
    switch (passage->field->type) {
    case SPEC_NAME:
    case SPEC_TEXT:
    case SPEC_FOLDER:
        text_write(passage, *(char *const *) at);
        break;
    case SPEC_VARIABLES:
    case SPEC_LABELS:
    case SPEC_BINDS:
        pairs_write(passage, at);
        break;
    case SPEC_COMMANDS:
        commands_write(passage, at);
        break;
    case SPEC_DURATION:
    case SPEC_TIER:
        time_write(passage, *(const uint64_t *) at);
        break;
    case SPEC_COUNT:
        json_put_integer(passage->json, *(const uint32_t *) at);
        break;
    case SPEC_FLAG:
        json_put_boolean(passage->json, *(const bool *) at);
        break;
    case SPEC_LIMITS:
        limits_write(passage, at);
        break;
    case SPEC_NETWORK:
        json_put_text(passage->json, network_modes[((const struct sandbox_network *) at)->mode]);
        break;
    case SPEC_RULES:
        rules_write(passage, at);
        break;
    case SPEC_POLICY:
        policy_write(passage, *(char *const *) at);
        break;
    case SPEC_TYPE_COUNT:
        break;
    }
}

/* What says nothing is left out, but for what answers always show. */
static void fields_write(struct json_writer *json, const struct sandbox_spec *spec, bool is_row,
                         bool shows_secrets)
{
    static const struct sandbox_spec nothing = SANDBOX_SPEC_INIT;

    SPEC_EACH (field) {
        const struct spec_passage passage = {.field = field,
                                             .key = is_row ? field->row : field->name,
                                             .json = json,
                                             .is_row = is_row,
                                             .shows_secrets = shows_secrets};

        if (field->type != SPEC_NAME &&
            ((field->is_always && !is_row) || !spec_field_equal(field, spec, &nothing)))
            field_write(&passage, spec);
    }
}

/* --- the API's form -------------------------------------------------------------------------- */

static int known_check(const struct json_place *body, enum spec_where where,
                       const char *const *more, struct error *err)
{
    const char *names[SPEC_FIELD_COUNT + 8];
    size_t count = 0;

    SPEC_EACH (field)
        if (field->where & where)
            names[count++] = field->name;
    while (more && *more && count < ARRAY_COUNT(names))
        names[count++] = *more++;
    return json_known_fields(body, names, count, err);
}

/* In a change null is said of a time that has a default: it is that again; and of a policy: there is
 * none any more. */
static bool is_changed(const struct spec_passage *passage)
{
    bool takes_null = passage->field->type == SPEC_TIER || passage->field->type == SPEC_POLICY;

    return is_said(passage) ||
           (takes_null && json_object_get(passage->object->value, passage->key));
}

int sandbox_spec_read_api(const struct json_place *body, enum spec_where where,
                          const char *const *more, struct sandbox_spec *spec,
                          unsigned int *ret_fields, struct error *err)
{
    unsigned int fields = 0;

    if (known_check(body, where, more, err) < 0)
        return -1;
    SPEC_EACH (field) {
        const struct spec_passage passage = {
            .object = body, .field = field, .key = field->name, .is_change = where == SPEC_CHANGE};

        if (!(field->where & where))
            continue;
        if (field_read(&passage, spec, err) < 0)
            return -1;
        if (is_changed(&passage))
            fields |= 1U << (field - spec_fields);
    }
    if (ret_fields)
        *ret_fields = fields;
    return 0;
}

void sandbox_spec_write_api(struct json_writer *json, const struct sandbox_spec *spec,
                            bool shows_secrets)
{
    fields_write(json, spec, false, shows_secrets);
}

/* Of variables and commands together; one that is in a list has a few short ones. */
#define SHOWN_IN_LISTS ((size_t) 4096)

bool sandbox_spec_is_long(const struct sandbox_spec *spec)
{
    size_t length = 0;

    for (size_t i = 0; i < spec->environment.count && length <= SHOWN_IN_LISTS; i++)
        length += strlen(spec->environment.items[i].value);
    for (size_t i = 0; i < spec->startup.count && length <= SHOWN_IN_LISTS; i++)
        length += strlen(spec->startup.items[i]);
    return length > SHOWN_IN_LISTS;
}

void sandbox_spec_shorten(struct sandbox_spec *spec)
{
    for (size_t i = 0; i < spec->environment.count; i++)
        spec->environment.items[i].value[0] = '\0';
    sandbox_texts_done(&spec->startup);
}

/* --- the rows' form -------------------------------------------------------------------------- */

int sandbox_spec_read_members(const struct json_place *object, struct sandbox_spec *spec,
                              struct error *err)
{
    SPEC_EACH (field) {
        const struct spec_passage passage = {
            .object = object, .field = field, .key = field->row, .is_row = true};

        if (field->row && field_read(&passage, spec, err) < 0)
            return -1;
    }
    return 0;
}

void sandbox_spec_write_members(struct json_writer *json, const struct sandbox_spec *spec)
{
    fields_write(json, spec, true, true);
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
