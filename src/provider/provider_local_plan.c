#include "provider/provider_local_plan.h"

#include <string.h>

#include "base/encoding/sha256.h"
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

/* The launcher learns which sandboxes belong together, and not to whom. */
static struct id name_owner(const struct id *owner)
{
    static const char purpose[] = "burrow owner of CPU time";
    struct sha256 sha;
    uint8_t digest[SHA256_SIZE];

    if (!owner->text[0])
        return (struct id){""};
    sha256_init(&sha);
    sha256_add(&sha, purpose, sizeof(purpose));
    sha256_add(&sha, owner->text, ID_LENGTH);
    sha256_finish(&sha, digest);
    return id_from_bytes(digest);
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
    ret_plan->owner = name_owner(&spec->owner);
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
