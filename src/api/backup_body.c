#include "api/backup_body.h"

#include "base/clock.h"
#include "base/number.h"
#include "json/json_measure.h"

#define MS 1000

static int read_ttl(const struct json_place *body, int64_t *ret_ttl, struct error *err)
{
    json_t *value = json_object_get(body->value, "ttl");
    uint64_t length_ms = 0;

    if (!json_is_string(value))
        return json_field_integer(body, "ttl", JSON_OPTIONAL, 1, BACKUP_TTL_MAX, ret_ttl, err);
    if (number_parse_duration(json_string_value(value), (uint64_t) BACKUP_TTL_MAX * MS,
                              &length_ms) < 0 ||
        length_ms < MS)
        return json_refuse_field(body, "ttl", "a time such as \"3d\", or seconds", err);
    *ret_ttl = (int64_t) (length_ms / MS);
    return 0;
}

int backup_body_read(const struct json_place *body, struct pool *pool, struct backup_spec *ret_spec,
                     struct error *err)
{
    struct backup_spec spec = {.ttl = 0};
    struct json_texts excludes = {.count = 0};

    if (json_field_text(body, "dir", JSON_OPTIONAL, BACKUP_DIR_MAX, &spec.dir, err) < 0 ||
        json_field_text(body, "name", JSON_OPTIONAL, BACKUP_NAME_MAX, &spec.name, err) < 0 ||
        read_ttl(body, &spec.ttl, err) < 0 ||
        json_field_boolean(body, "useGitignore", JSON_OPTIONAL, &spec.gitignore, err) < 0 ||
        json_field_boolean(body, "gitignore", JSON_OPTIONAL, &spec.gitignore, err) < 0 ||
        json_field_texts(body, "excludes", JSON_OPTIONAL, BACKUP_EXCLUDES_MAX, BACKUP_EXCLUDE_MAX,
                         pool, &excludes, err) < 0 ||
        json_field_text(body, "compression", JSON_OPTIONAL, BACKUP_NAME_MAX, &spec.compression,
                        err) < 0) {
        if (err->code == ERR_INVALID)
            err->code = ERR_BACKUP_INVALID;
        return -1;
    }
    spec.excludes = excludes.items;
    spec.exclude_count = excludes.count;
    *ret_spec = spec;
    return 0;
}

int backup_body_read_handle(const struct json_place *body, const char *key, const char **ret_id,
                            const char **ret_dir, struct error *err)
{
    json_t *value = json_object_get(body->value, key);
    struct json_place handle;
    int r;

    *ret_id = *ret_dir = NULL;
    if (json_is_string(value)) {
        r = json_field_text(body, key, JSON_REQUIRED, BACKUP_NAME_MAX, ret_id, err);
    } else {
        r = json_field_object(body, key, JSON_REQUIRED, &handle, err);
        if (r == 0)
            r = json_field_text(&handle, "id", JSON_REQUIRED, BACKUP_NAME_MAX, ret_id, err);
        if (r == 0)
            r = json_field_text(&handle, "dir", JSON_OPTIONAL, BACKUP_DIR_MAX, ret_dir, err);
    }
    if (r < 0 && err->code == ERR_INVALID)
        err->code = ERR_BACKUP_INVALID;
    return r;
}

void backup_body_write(struct json_writer *json, const struct backup *backup, bool is_new)
{
    char time[CLOCK_TEXT_SIZE];

    json_begin_object(json);
    json_add_text(json, "id", backup->id);
    json_add_text(json, "dir", backup->dir);
    json_add_text(json, "name", backup->name);
    json_add_integer(json, "sizeBytes", (int64_t) backup->size);
    json_add_integer(json, "ttl", backup->ttl);
    clock_format(backup->created_ms, time);
    json_add_text(json, "createdAt", time);
    clock_format(backup->expires_ms, time);
    json_add_text(json, "expiresAt", time);
    json_add_text(json, "sandboxId", backup->sandbox.text);
    if (is_new)
        json_add_thousandths(json, "pauseMs", backup->pause_us);
    json_end_object(json);
}
