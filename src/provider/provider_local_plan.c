#include "provider/provider_local_plan.h"

#include <string.h>

#include "base/encoding/utf8.h"
#include "json/json_write.h"
#include "provider/provider_local.h"

/* The codec checks characters; here only the length, which must fit before anything is copied. */
static int copy_text(char *ret_text, size_t size, const char *text, const char *what,
                     struct error *err)
{
    size_t length = text ? strnlen(text, size) : size;

    if (length >= size)
        return error_set(err, ERR_INVALID, 0, "%s: missing, or longer than %zu characters", what,
                         size - 1);
    memcpy(ret_text, text, length + 1);
    return 0;
}

static int plan_rules(const struct provider_spec *spec, struct wire_plan *plan, struct error *err)
{
    if (spec->rule_count > WIRE_RULES_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d network rules", WIRE_RULES_MAX);
    if (spec->rule_count)
        memcpy(plan->rules.items, spec->rules, spec->rule_count * sizeof(*spec->rules));
    plan->rules.count = (uint16_t) spec->rule_count;
    return 0;
}

static int plan_binds(const struct provider_spec *spec, struct wire_plan *plan, struct error *err)
{
    if (spec->bind_count > WIRE_BINDS_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d binds", WIRE_BINDS_MAX);
    for (size_t i = 0; i < spec->bind_count; i++) {
        struct wire_bind *bind = &plan->binds.items[i];

        if (copy_text(bind->source, sizeof(bind->source), spec->binds[i].source, "name of a bind",
                      err) < 0 ||
            copy_text(bind->place, sizeof(bind->place), spec->binds[i].place, "place of a bind",
                      err) < 0)
            return -1;
    }
    plan->binds.count = (uint16_t) spec->bind_count;
    return 0;
}

int provider_local_plan(const struct provider_spec *spec, const char *image,
                        struct wire_plan *ret_plan, struct error *err)
{
    struct wire_plan_bytes bytes;

    memset(ret_plan, 0, sizeof(*ret_plan));
    ret_plan->id = spec->id;
    ret_plan->origin = disk_ref_or_none(spec->origin);
    if (spec->hold_origin)
        ret_plan->flags |= WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN);
    ret_plan->network = spec->network;
    ret_plan->limits = spec->limits;
    if (copy_text(ret_plan->hostname, sizeof(ret_plan->hostname), spec->hostname, "hostname", err) <
            0 ||
        copy_text(ret_plan->image, sizeof(ret_plan->image), spec->image ?: image, "image", err) <
            0 ||
        plan_rules(spec, ret_plan, err) < 0 || plan_binds(spec, ret_plan, err) < 0)
        return -1;
    return wire_plan_encode(ret_plan, &bytes, err);
}

int provider_local_print_plan(const struct provider_spec *spec, struct text *text,
                              struct error *err)
{
    struct wire_plan plan;

    if (provider_local_plan(spec, PROVIDER_LOCAL_IMAGE, &plan, err) < 0)
        return -1;
    wire_plan_print(&plan, text);
    return 0;
}

/* The agent's own rule for names. */
static bool is_variable_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return *name && strchr(letters, *name) && name[strspn(name, more)] == '\0';
}

static int check_variable(const struct provider_spec *spec, size_t index, struct error *err)
{
    const struct provider_variable *variable = &spec->environment[index];

    if (!is_variable_name(variable->name))
        return error_set(err, ERR_INVALID, 0, "not the name of a variable: '%s'", variable->name);
    if (!utf8_is_valid(variable->value, strlen(variable->value)))
        return error_set(err, ERR_INVALID, 0, "the value of %s is not UTF-8", variable->name);
    for (size_t i = 0; i < index; i++) {
        if (strcmp(spec->environment[i].name, variable->name) == 0)
            return error_set(err, ERR_INVALID, 0, "%s is set twice", variable->name);
    }
    return 0;
}

int provider_local_environment_json(const struct provider_spec *spec, char **ret_json,
                                    struct error *err)
{
    AUTO(text) struct text body = TEXT_INIT(PROVIDER_LOCAL_ENVIRONMENT_MAX);
    struct json_writer json;

    *ret_json = NULL;
    if (spec->environment_count == 0)
        return 0;
    if (spec->environment_count > PROVIDER_LOCAL_VARIABLES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "more than %d variables",
                         PROVIDER_LOCAL_VARIABLES_MAX);
    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_key(&json, "env");
    json_begin_object(&json);
    for (size_t i = 0; i < spec->environment_count; i++) {
        if (check_variable(spec, i, err) < 0)
            return -1;
        json_add_text(&json, spec->environment[i].name, spec->environment[i].value);
    }
    json_end_object(&json);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "the environment is larger than %d bytes",
                         PROVIDER_LOCAL_ENVIRONMENT_MAX);
    *ret_json = text_take(&body);
    return 0;
}
