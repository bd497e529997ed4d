#include "api/agentpod/agentpod_parts.h"

#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "json/json_read.h"

/* NULL unless it is an array or object within limits. */
static json_t *agentpod_parts_read(const char *text)
{
    const struct json_limits limits = {
        .size = strlen(text), .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX};

    return json_read(text, limits.size, &limits, NULL);
}

char *agentpod_parts_first_text(const char *parts)
{
    AUTO(json) json_t *list = agentpod_parts_read(parts);
    json_t *part;
    size_t i;

    json_array_foreach (list, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const char *text = json_string_value(json_object_get(part, "text"));

        if (type && text && strcmp(type, "text") == 0)
            return mem_copy_text(text);
    }
    return mem_copy_text("");
}

char *agentpod_parts_member(const char *object, const char *key)
{
    AUTO(json) json_t *value = agentpod_parts_read(object);
    const char *text = json_string_value(json_object_get(value, key));

    return mem_copy_text(text ? text : "");
}
