#include "api/native/sandbox_fields.h"

#include "base/clock.h"
#include "base/memory.h"
#include "model/spec_json.h"

static void write_unenforced(struct json_writer *json, const struct sandbox *sandbox)
{
    if (!sandbox->unenforced)
        return;
    json_key(json, "unenforced");
    json_begin_array(json);
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++)
        if (sandbox->unenforced & 1U << i)
            json_put_text(json, limit_fields[i].name);
    json_end_array(json);
}

static void write_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(wall_ms, text);
    json_add_text(json, key, wall_ms ? text : NULL);
}

static void write_fields(struct json_writer *json, const struct sandbox *sandbox,
                         bool shows_secrets, bool is_brief)
{
    json_begin_object(json);
    json_add_text(json, "id", sandbox->id.text);
    json_add_text(json, "name", sandbox->spec.name);
    json_add_text(json, "owner", sandbox->owner.text);
    json_add_text(json, "status", sandbox_status_text(sandbox->status));
    json_add_text(json, "tier", sandbox_tier_text(sandbox_tier(sandbox)));
    json_add_text(json, "reason", sandbox->reason ? sandbox->reason : "");
    sandbox_spec_write_api(json, &sandbox->spec, shows_secrets);
    if (is_brief)
        json_add_boolean(json, "brief", true);
    write_unenforced(json, sandbox);
    write_time(json, "createdAt", sandbox->created_ms);
    write_time(json, "updatedAt", sandbox->updated_ms);
    write_time(json, "activeAt", sandbox->active_ms);
    write_time(json, "startedAt", sandbox->started_ms);
    json_end_object(json);
}

void sandbox_fields_write(struct json_writer *json, const struct sandbox *sandbox,
                          const struct caller *caller)
{
    write_fields(json, sandbox, caller_may_enter(caller), false);
}

void sandbox_fields_write_brief(struct json_writer *json, const struct sandbox *sandbox,
                                const struct caller *caller)
{
    bool is_brief = caller_may_enter(caller) && sandbox_spec_is_long(&sandbox->spec);

    write_fields(json, sandbox, caller_may_enter(caller) && !is_brief, is_brief);
}
