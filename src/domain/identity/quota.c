#include "domain/identity/quota.h"

#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "json/json_measure.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define QUOTA_JSON_MAX 4096
#define QUOTA_TEXT_MAX 32

enum field_type { FIELD_COUNT, FIELD_SHARE, FIELD_SIZE };

struct quota_field {
    const char *name;
    enum field_type type;
    size_t offset;
};

#define FIELD(name_, type_, member)                                                                \
    {                                                                                              \
        name_, type_, offsetof(struct quota, member)                                               \
    }

static const struct quota_field fields[] = {
    FIELD("sandboxes", FIELD_COUNT, sandboxes),
    FIELD("running", FIELD_COUNT, running),
    FIELD("memory", FIELD_SIZE, memory_bytes),
    FIELD("cpu", FIELD_SHARE, cpu_millis),
    FIELD("disk", FIELD_SIZE, disk_bytes),
    FIELD("snapshots", FIELD_COUNT, snapshots),
    FIELD("storage", FIELD_SIZE, storage_bytes),
    FIELD("requestsPerMinute", FIELD_COUNT, requests_per_minute),
};

static uint64_t quota_get(const struct quota *quota, const struct quota_field *field)
{
    const char *at = (const char *) quota + field->offset;

    return field->type == FIELD_SIZE ? *(const uint64_t *) (const void *) at
                                     : *(const uint32_t *) (const void *) at;
}

static void quota_set(struct quota *quota, const struct quota_field *field, uint64_t value)
{
    char *at = (char *) quota + field->offset;

    if (field->type == FIELD_SIZE)
        *(uint64_t *) (void *) at = value;
    else
        *(uint32_t *) (void *) at = (uint32_t) value;
}

static int quota_read_size(const struct json_place *root, const struct quota_field *field,
                           uint64_t *ret_value, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(root, field->name, JSON_OPTIONAL, QUOTA_TEXT_MAX, &text, err) < 0)
        return -1;
    if (number_parse_size(text, INT64_MAX, ret_value) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "field '%s' must be bytes, or a text such as \"512M\" or \"4G\"",
                         field->name);
    return 0;
}

static int read_field(const struct json_place *root, const struct quota_field *field,
                      struct quota *quota, struct error *err)
{
    json_t *value = json_object_get(root->value, field->name);
    int64_t maximum = field->type == FIELD_SIZE ? INT64_MAX : UINT32_MAX;
    int64_t number = (int64_t) quota_get(quota, field);
    uint64_t size;

    if (field->type == FIELD_SIZE && json_is_string(value)) {
        if (quota_read_size(root, field, &size, err) < 0)
            return -1;
        quota_set(quota, field, size);
        return 0;
    }
    if (json_field_integer(root, field->name, JSON_OPTIONAL, 0, maximum, &number, err) < 0)
        return -1;
    quota_set(quota, field, (uint64_t) number);
    return 0;
}

int quota_read(const char *json, struct quota *quota, struct error *err)
{
    const struct json_limits limits = {.size = QUOTA_JSON_MAX, .depth = 4, .values = 64};
    AUTO(json) json_t *value = json_read(json, strlen(json), &limits, err);
    const char *names[ARRAY_COUNT(fields)];
    struct quota read = *quota;
    struct json_place root;

    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        names[i] = fields[i].name;
    if (!value || json_root_object(value, &root, err) < 0 ||
        json_known_fields(&root, names, ARRAY_COUNT(names), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (read_field(&root, &fields[i], &read, err) < 0)
            return -1;
    *quota = read;
    return 0;
}

int quota_from_api(const struct json_place *quotas, char **ret_json, struct error *err)
{
    AUTO(json) json_t *row = json_copy(quotas->value);

    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        uint64_t amount = 0;

        json_t *said = json_object_get(row, fields[i].name);

        if (fields[i].type != FIELD_SHARE || !said || json_is_null(said))
            continue;
        if (json_field_thousandths(quotas, fields[i].name, JSON_REQUIRED, QUOTA_CPUS_MAX * 1000,
                                   &amount, err) < 0)
            return error_set(
                err, ERR_INVALID, 0,
                "field 'quotas.%s' counts CPUs, 1.5 is one and a half; at most %d, and "
                "0 is no limit",
                fields[i].name, QUOTA_CPUS_MAX);
        (void) json_object_set_new(row, fields[i].name, json_integer((json_int_t) amount));
    }
    *ret_json = json_dumps(row, JSON_COMPACT);
    return *ret_json ? 0 : error_set(err, ERR_INVALID, 0, "field 'quotas' cannot be read");
}

void quota_write_api(const struct quota *quota, struct text *text)
{
    struct json_writer json;

    json_document_begin(&json, text);
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        uint64_t value = quota_get(quota, &fields[i]);

        if (fields[i].type == FIELD_SHARE)
            json_add_thousandths(&json, fields[i].name, value);
        else
            json_add_integer(&json, fields[i].name, (int64_t) value);
    }
    (void) json_document_end(&json); /* text->overflowed says so */
}
