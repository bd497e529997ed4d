#include "api/native/sandbox_fields.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_measure.h"

#define NAME_MAX_LENGTH 63
#define PATH_LENGTH_MAX ((size_t) 4095)
#define CPU_MAX         ((uint64_t) 1000 * 1000) /* thousandths: a thousand processors */
#define COUNT_MAX       INT64_C(10000000)

/* --- writing --------------------------------------------------------------------------------- */

static void write_pairs(struct json_writer *json, const char *key,
                        const struct sandbox_pairs *pairs, bool shows_values)
{
    json_key(json, key);
    json_begin_object(json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(json, pairs->items[i].name, shows_values ? pairs->items[i].value : NULL);
    json_end_object(json);
}

static void write_limit(struct json_writer *json, const char *key, uint64_t limit)
{
    if (limit)
        json_add_integer(json, key, limit > INT64_MAX ? -1 : (int64_t) limit);
}

static const struct {
    unsigned int bit;
    const char *name;
} limit_names[] = {
    {LIMIT_BIT(MEMORY), "memory"}, {LIMIT_BIT(SWAP), "swap"}, {LIMIT_BIT(PIDS), "pids"},
    {LIMIT_BIT(CPU), "cpu"},       {LIMIT_BIT(DISK), "disk"}, {LIMIT_BIT(FILES), "files"},
};

static void write_limits(struct json_writer *json, const struct limits *limits)
{
    json_key(json, "limits");
    json_begin_object(json);
    write_limit(json, "memory", limits->memory_bytes);
    write_limit(json, "swap", limits->swap_bytes);
    write_limit(json, "pids", limits->pids);
    if (limits->cpu_millis)
        json_add_thousandths(json, "cpu", limits->cpu_millis);
    write_limit(json, "disk", limits->disk_bytes);
    write_limit(json, "files", limits->files);
    json_end_object(json);
}

static void write_unenforced(struct json_writer *json, const struct sandbox *sandbox)
{
    if (!sandbox->unenforced)
        return;
    json_key(json, "unenforced");
    json_begin_array(json);
    for (size_t i = 0; i < ARRAY_COUNT(limit_names); i++) {
        if (sandbox->unenforced & limit_names[i].bit)
            json_put_text(json, limit_names[i].name);
    }
    json_end_array(json);
}

static void write_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(wall_ms, text);
    json_add_text(json, key, wall_ms ? text : NULL);
}

static const char *const protocol_names[] = {
    [NETWORK_ANY] = "any", [NETWORK_TCP] = "tcp", [NETWORK_UDP] = "udp"};

static void write_rules(struct json_writer *json, const struct sandbox_spec *spec)
{
    json_key(json, "rules");
    json_begin_array(json);
    for (size_t i = 0; i < spec->rule_count; i++) {
        const struct network_rule *rule = &spec->rules[i];
        char text[64];

        json_begin_object(json);
        json_add_boolean(json, "allow", rule->allow);
        (void) snprintf(text, sizeof(text), "%u.%u.%u.%u/%u", rule->to.address >> 24,
                        (rule->to.address >> 16) & 255, (rule->to.address >> 8) & 255,
                        rule->to.address & 255, (unsigned int) rule->to.bits);
        json_add_text(json, "to", text);
        json_add_text(json, "protocol", protocol_names[rule->protocol]);
        (void) snprintf(text, sizeof(text), "%u-%u", (unsigned int) rule->ports.first,
                        (unsigned int) rule->ports.last);
        json_add_text(json, "ports", text);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_snapshots(struct json_writer *json, const struct sandbox_spec *spec)
{
    if (spec->snapshot_every_ms)
        json_add_thousandths(json, "snapshotEvery", spec->snapshot_every_ms);
    if (spec->snapshot_keep)
        json_add_integer(json, "snapshotKeep", spec->snapshot_keep);
    if (spec->snapshot_keep_for_ms)
        json_add_thousandths(json, "snapshotKeepFor", spec->snapshot_keep_for_ms);
}

/* Seconds, 0 for never; what is left to the daemon is not shown. */
static void write_tier(struct json_writer *json, const char *key, uint64_t time_ms)
{
    if (time_ms)
        json_add_thousandths(json, key, time_ms == SANDBOX_NEVER ? 0 : time_ms);
}

static void write_tiers(struct json_writer *json, const struct sandbox_spec *spec)
{
    write_tier(json, "freezeFor", spec->freeze_for_ms);
    write_tier(json, "hibernateAfter", spec->hibernate_after_ms);
    write_tier(json, "offloadAfter", spec->offload_after_ms);
}

static void write_startup(struct json_writer *json, const struct sandbox_spec *spec)
{
    if (!spec->startup_count)
        return;
    json_key(json, "startup");
    json_begin_array(json);
    for (size_t i = 0; i < spec->startup_count; i++)
        json_put_text(json, spec->startup[i]);
    json_end_array(json);
}

void sandbox_fields_write_spec(struct json_writer *json, const struct sandbox_spec *spec,
                               bool shows_values)
{
    json_add_text(json, "image", spec->image);
    json_add_text(json, "kind", spec->kind);
    json_add_text(json, "folder", spec->folder ? spec->folder : "/workspace");
    write_pairs(json, "labels", &spec->labels, true);
    write_pairs(json, "env", &spec->environment, shows_values);
    if (spec->has_network || spec->network != NETWORK_NONE)
        json_add_text(json, "network", spec->network == NETWORK_NAT ? "nat" : "none");
    if (spec->rule_count)
        write_rules(json, spec);
    if (spec->binds.count)
        write_pairs(json, "binds", &spec->binds, true);
    json_add_thousandths(json, "sleepAfter", spec->sleep_after_ms);
    json_add_boolean(json, "keepAlive", spec->keep_alive);
    json_add_boolean(json, "sync", spec->sync);
    json_add_thousandths(json, "maxRuntime", spec->max_runtime_ms);
    json_add_thousandths(json, "lifetime", spec->lifetime_ms);
    write_tiers(json, spec);
    if (shows_values)
        write_startup(json, spec);
    write_snapshots(json, spec);
    write_limits(json, &spec->limits);
}

void sandbox_fields_write(struct json_writer *json, const struct sandbox *sandbox,
                          const struct caller *caller)
{
    json_begin_object(json);
    json_add_text(json, "id", sandbox->id.text);
    json_add_text(json, "name", sandbox->spec.name);
    json_add_text(json, "owner", sandbox->owner.text);
    json_add_text(json, "status", sandbox_status_text(sandbox->status));
    json_add_text(json, "tier", sandbox_tier_text(sandbox_tier(sandbox)));
    json_add_text(json, "reason", sandbox->reason ? sandbox->reason : "");
    sandbox_fields_write_spec(json, &sandbox->spec, caller_may_enter(caller));
    write_unenforced(json, sandbox);
    write_time(json, "createdAt", sandbox->created_ms);
    write_time(json, "updatedAt", sandbox->updated_ms);
    write_time(json, "activeAt", sandbox->active_ms);
    write_time(json, "startedAt", sandbox->started_ms);
    json_end_object(json);
}

/* --- reading --------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= NAME_MAX_LENGTH && !strchr("._-", name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

static int read_name(const struct json_place *body, char **ret_name, struct error *err)
{
    const char *name = NULL;

    if (json_field_text(body, "name", JSON_OPTIONAL, SANDBOX_NAME_MAX, &name, err) < 0)
        return -1;
    if (!name)
        return 0;
    if (!is_name(name) || id_is_valid(name))
        return json_refuse_field(body, "name", NATIVE_NAME_RULE ", and no id", err);
    free(*ret_name);
    *ret_name = mem_copy_text(name);
    return 0;
}

static int read_text(const struct json_place *body, const char *key, size_t maximum,
                     char **ret_text, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(body, key, JSON_OPTIONAL, maximum, &text, err) < 0)
        return -1;
    if (text) {
        free(*ret_text);
        *ret_text = mem_copy_text(text);
    }
    return 0;
}

/* An object of strings; null as a value only where something can be removed. */
static int read_pairs(const struct json_place *body, const char *key, size_t count_max,
                      size_t length_max, bool removes, struct sandbox_pairs *pairs,
                      struct error *err)
{
    struct json_place place;
    const char *name;
    json_t *value;

    if (json_field_object(body, key, JSON_OPTIONAL, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    if (json_object_size(place.value) > count_max)
        return error_set(err, ERR_INVALID, 0, "field '%s' has more than %zu entries", key,
                         count_max);
    json_object_foreach (place.value, name, value) {
        const char *text = NULL;

        if (!(removes && json_is_null(value)) &&
            json_field_text(&place, name, JSON_REQUIRED, length_max, &text, err) < 0)
            return -1;
        sandbox_pairs_set(pairs, name, text ? text : "");
        if (!text) {
            free(pairs->items[pairs->count - 1].value);
            pairs->items[pairs->count - 1].value = NULL;
        }
    }
    return 0;
}

static int read_count(const struct json_place *body, const char *key, uint32_t *count,
                      struct error *err)
{
    int64_t number = *count;

    if (json_field_integer(body, key, JSON_OPTIONAL, 0, COUNT_MAX, &number, err) < 0)
        return -1;
    *count = (uint32_t) number;
    return 0;
}

static int read_limits(const struct json_place *body, struct limits *limits, bool *ret_is_there,
                       struct error *err)
{
    static const char *const names[] = {"memory", "swap", "pids", "cpu", "disk", "files"};
    uint64_t cpu = limits->cpu_millis;
    struct json_place place;

    if (json_field_object(body, "limits", JSON_OPTIONAL, &place, err) < 0)
        return -1;
    *ret_is_there = place.value != NULL;
    if (!place.value)
        return 0;
    if (json_known_fields(&place, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_size(&place, "memory", JSON_OPTIONAL, INT64_MAX, &limits->memory_bytes, err) <
            0 ||
        json_field_size(&place, "swap", JSON_OPTIONAL, INT64_MAX, &limits->swap_bytes, err) < 0 ||
        json_field_size(&place, "disk", JSON_OPTIONAL, INT64_MAX, &limits->disk_bytes, err) < 0 ||
        json_field_thousandths(&place, "cpu", JSON_OPTIONAL, CPU_MAX, &cpu, err) < 0 ||
        read_count(&place, "pids", &limits->pids, err) < 0 ||
        read_count(&place, "files", &limits->files, err) < 0)
        return -1;
    limits->cpu_millis = (uint32_t) cpu;
    return 0;
}

static int read_network(const struct json_place *body, struct sandbox_spec *spec, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(body, "network", JSON_OPTIONAL, 16, &text, err) < 0)
        return -1;
    if (!text)
        return 0;
    if (strcmp(text, "none") != 0 && strcmp(text, "nat") != 0)
        return json_refuse_field(body, "network", "none or nat", err);
    spec->has_network = true;
    spec->network = text[1] == 'a' ? NETWORK_NAT : NETWORK_NONE;
    return 0;
}

/* "10.0.0.0/8" or one address. */
static int parse_range(const char *text, struct network_rule *rule)
{
    const char *slash = strchr(text, '/');
    char address[INET_ADDRSTRLEN];
    size_t length = slash ? (size_t) (slash - text) : strlen(text);
    struct in_addr parsed;
    int64_t bits = 32;

    if (length >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, length);
    address[length] = '\0';
    if (inet_pton(AF_INET, address, &parsed) != 1 ||
        (slash && number_parse(slash + 1, 0, 32, &bits) < 0))
        return -EINVAL;
    rule->to.address = ntohl(parsed.s_addr);
    rule->to.bits = (uint8_t) bits;
    return 0;
}

/* "443" or "8000-8999". */
static int parse_ports(const char *text, struct network_rule *rule)
{
    size_t first_length = strcspn(text, "-");
    const char *second = text[first_length] ? text + first_length + 1 : text;
    uint64_t first, last;

    if (number_parse_digits(text, first_length, 65535, &first) < 0 ||
        number_parse_digits(second, strlen(second), 65535, &last) < 0 || first > last)
        return -EINVAL;
    rule->ports.first = (uint16_t) first;
    rule->ports.last = (uint16_t) last;
    return 0;
}

static int parse_protocol(const char *text, struct network_rule *rule)
{
    for (size_t i = 0; i < ARRAY_COUNT(protocol_names); i++) {
        if (strcmp(text, protocol_names[i]) == 0) {
            rule->protocol = (enum network_protocol) i;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_rule(const struct json_place *item, struct network_rule *rule, struct error *err)
{
    static const char *const names[] = {"allow", "to", "protocol", "ports"};
    const char *to = "0.0.0.0/0", *protocol = "any", *ports = "0-65535";

    if (json_known_fields(item, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_boolean(item, "allow", JSON_REQUIRED, &rule->allow, err) < 0 ||
        json_field_text(item, "to", JSON_OPTIONAL, 32, &to, err) < 0 ||
        json_field_text(item, "protocol", JSON_OPTIONAL, 8, &protocol, err) < 0 ||
        json_field_text(item, "ports", JSON_OPTIONAL, 16, &ports, err) < 0)
        return -1;
    if (parse_range(to, rule) < 0)
        return json_refuse_field(item, "to", "an IPv4 address or a range like 10.0.0.0/8", err);
    if (parse_protocol(protocol, rule) < 0)
        return json_refuse_field(item, "protocol", "any, tcp or udp", err);
    if (parse_ports(ports, rule) < 0)
        return json_refuse_field(item, "ports", "a port like 443 or a range like 8000-8999", err);
    return 0;
}

static int read_rules(const struct json_place *body, struct sandbox_spec *spec, struct error *err)
{
    struct json_place array, item;
    size_t count;

    if (json_field_array(body, "rules", JSON_OPTIONAL, &array, err) < 0)
        return -1;
    count = array.value ? json_array_size(array.value) : 0;
    if (count > SANDBOX_RULES_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'rules' has more than %d entries",
                         SANDBOX_RULES_MAX);
    if (!array.value)
        return 0;
    free(spec->rules);
    spec->rules = NULL;
    spec->rule_count = 0;
    if (!count)
        return 0;
    spec->rules = mem_alloc_array(count, sizeof(*spec->rules));
    for (; spec->rule_count < count; spec->rule_count++) {
        if (json_item_object(&array, spec->rule_count, &item, err) < 0 ||
            read_rule(&item, &spec->rules[spec->rule_count], err) < 0)
            return -1;
    }
    return 0;
}

static int read_snapshots(const struct json_place *body, struct sandbox_spec *spec,
                          struct error *err)
{
    if (json_field_duration(body, "snapshotEvery", JSON_OPTIONAL, SANDBOX_DURATION_MAX,
                            &spec->snapshot_every_ms, err) < 0 ||
        json_field_duration(body, "snapshotKeepFor", JSON_OPTIONAL, SANDBOX_DURATION_MAX,
                            &spec->snapshot_keep_for_ms, err) < 0)
        return -1;
    return read_count(body, "snapshotKeep", &spec->snapshot_keep, err);
}

/* 0 is never; what is not said is the daemon's. */
static int read_tier(const struct json_place *body, const char *key, uint64_t *time_ms,
                     struct error *err)
{
    uint64_t read_ms = *time_ms;

    if (json_field_duration(body, key, JSON_OPTIONAL, SANDBOX_DURATION_MAX, &read_ms, err) < 0)
        return -1;
    if (json_object_get(body->value, key) && !json_is_null(json_object_get(body->value, key)))
        *time_ms = read_ms ? read_ms : SANDBOX_NEVER;
    return 0;
}

static int read_startup(const struct json_place *body, struct sandbox_spec *spec, struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts commands = {.count = 0};
    json_t *value = json_object_get(body->value, "startup");

    if (json_field_texts(body, "startup", JSON_OPTIONAL, SANDBOX_STARTUP_MAX,
                         SANDBOX_STARTUP_COMMAND_MAX, &pool, &commands, err) < 0)
        return -1;
    if (!value || json_is_null(value))
        return 0;
    sandbox_startup_done(spec);
    for (size_t i = 0; i < commands.count; i++)
        sandbox_startup_add(spec, commands.items[i]);
    return 0;
}

static int read_tiers(const struct json_place *body, struct sandbox_spec *spec, struct error *err)
{
    if (read_tier(body, "freezeFor", &spec->freeze_for_ms, err) < 0 ||
        read_tier(body, "hibernateAfter", &spec->hibernate_after_ms, err) < 0 ||
        read_tier(body, "offloadAfter", &spec->offload_after_ms, err) < 0)
        return -1;
    return read_startup(body, spec, err);
}

static int read_times(const struct json_place *body, struct sandbox_spec *spec, struct error *err)
{
    if (json_field_duration(body, "sleepAfter", JSON_OPTIONAL, SANDBOX_DURATION_MAX,
                            &spec->sleep_after_ms, err) < 0 ||
        json_field_duration(body, "maxRuntime", JSON_OPTIONAL, SANDBOX_DURATION_MAX,
                            &spec->max_runtime_ms, err) < 0 ||
        json_field_duration(body, "lifetime", JSON_OPTIONAL, SANDBOX_DURATION_MAX,
                            &spec->lifetime_ms, err) < 0)
        return -1;
    if (json_field_boolean(body, "keepAlive", JSON_OPTIONAL, &spec->keep_alive, err) < 0 ||
        json_field_boolean(body, "sync", JSON_OPTIONAL, &spec->sync, err) < 0)
        return -1;
    if (read_tiers(body, spec, err) < 0)
        return -1;
    return read_snapshots(body, spec, err);
}

/* All but the name; fields that are missing stay. */
static int read_spec(const struct json_place *body, struct sandbox_spec *ret_spec,
                     struct error *err)
{
    bool has_limits;

    if (read_text(body, "image", SANDBOX_NAME_MAX, &ret_spec->image, err) < 0 ||
        read_text(body, "folder", PATH_LENGTH_MAX, &ret_spec->folder, err) < 0 ||
        read_pairs(body, "labels", SANDBOX_LABELS_MAX, SANDBOX_LABEL_MAX, false, &ret_spec->labels,
                   err) < 0 ||
        read_pairs(body, "env", SANDBOX_VARIABLES_MAX, SANDBOX_TEXT_MAX, false,
                   &ret_spec->environment, err) < 0 ||
        read_pairs(body, "binds", SANDBOX_BINDS_MAX, PATH_LENGTH_MAX, false, &ret_spec->binds,
                   err) < 0 ||
        read_limits(body, &ret_spec->limits, &has_limits, err) < 0 ||
        read_network(body, ret_spec, err) < 0 || read_rules(body, ret_spec, err) < 0)
        return -1;
    return read_times(body, ret_spec, err);
}

#define TIER_FIELDS "freezeFor", "hibernateAfter", "offloadAfter", "startup"

#define SPEC_FIELDS                                                                                \
    "image", "labels", "env", "limits", "network", "rules", "binds", "folder", "sleepAfter",       \
        "keepAlive", "sync", "maxRuntime", "lifetime", "snapshotEvery", "snapshotKeep",            \
        "snapshotKeepFor", TIER_FIELDS

int sandbox_fields_read(const struct json_place *body, struct sandbox_spec *spec, struct error *err)
{
    static const char *const names[] = {"name", "template", SPEC_FIELDS};

    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0 ||
        read_name(body, &spec->name, err) < 0)
        return -1;
    free(spec->kind);
    spec->kind = mem_copy_text("native");
    return read_spec(body, spec, err);
}

int sandbox_fields_read_template(const struct json_place *body, struct sandbox_spec *spec,
                                 struct error *err)
{
    static const char *const names[] = {"snapshot", SPEC_FIELDS};

    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0)
        return -1;
    return read_spec(body, spec, err);
}

/* --- changes --------------------------------------------------------------------------------- */

static unsigned int changed(const struct json_place *body, const char *key, unsigned int bit)
{
    json_t *value = json_object_get(body->value, key);

    return value && !json_is_null(value) ? bit : 0;
}

/* The same where null means something: the daemon's default again. */
static unsigned int said(const struct json_place *body, const char *key, unsigned int bit)
{
    return json_object_get(body->value, key) ? bit : 0;
}

#define CHANGE_FIELDS                                                                              \
    "name", "labels", "env", "limits", "sleepAfter", "keepAlive", "sync", "maxRuntime",            \
        "lifetime", "snapshotEvery", "snapshotKeep", "snapshotKeepFor", TIER_FIELDS

static int read_change(const struct json_place *body, struct sandbox_fields_change *ret_change,
                       struct error *err)
{
    struct sandbox_spec *spec = &ret_change->spec;
    bool has_limits = false;

    if (read_name(body, &spec->name, err) < 0 || read_times(body, spec, err) < 0 ||
        read_limits(body, &spec->limits, &has_limits, err) < 0 ||
        read_pairs(body, "labels", SANDBOX_LABELS_MAX, SANDBOX_LABEL_MAX, true, &ret_change->labels,
                   err) < 0 ||
        read_pairs(body, "env", SANDBOX_VARIABLES_MAX, SANDBOX_TEXT_MAX, true,
                   &ret_change->environment, err) < 0)
        return -1;
    ret_change->update = (struct sandbox_update){
        .changes = changed(body, "name", SANDBOX_CHANGE_NAME) |
                   changed(body, "sleepAfter", SANDBOX_CHANGE_SLEEP_AFTER) |
                   changed(body, "keepAlive", SANDBOX_CHANGE_KEEP_ALIVE) |
                   changed(body, "sync", SANDBOX_CHANGE_SYNC) |
                   changed(body, "maxRuntime", SANDBOX_CHANGE_MAX_RUNTIME) |
                   changed(body, "lifetime", SANDBOX_CHANGE_LIFETIME) |
                   changed(body, "snapshotEvery", SANDBOX_CHANGE_SNAPSHOT_EVERY) |
                   changed(body, "snapshotKeep", SANDBOX_CHANGE_SNAPSHOT_KEEP) |
                   changed(body, "snapshotKeepFor", SANDBOX_CHANGE_SNAPSHOT_KEEP_FOR) |
                   said(body, "freezeFor", SANDBOX_CHANGE_FREEZE_FOR) |
                   said(body, "hibernateAfter", SANDBOX_CHANGE_HIBERNATE_AFTER) |
                   said(body, "offloadAfter", SANDBOX_CHANGE_OFFLOAD_AFTER) |
                   changed(body, "startup", SANDBOX_CHANGE_STARTUP) |
                   (has_limits ? SANDBOX_CHANGE_LIMITS : 0u),
        .spec = spec,
        .environment = ret_change->environment.count ? &ret_change->environment : NULL,
        .labels = ret_change->labels.count ? &ret_change->labels : NULL,
    };
    return 0;
}

int sandbox_fields_read_change(const struct json_place *body, const struct sandbox *sandbox,
                               struct sandbox_fields_change *ret_change, struct error *err)
{
    static const char *const names[] = {CHANGE_FIELDS};

    *ret_change = (struct sandbox_fields_change){.spec = SANDBOX_SPEC_INIT};
    ret_change->spec.limits = sandbox->spec.limits;
    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0)
        return -1;
    return read_change(body, ret_change, err);
}

int sandbox_fields_read_fork(const struct json_place *body,
                             struct sandbox_fields_change *ret_change, struct error *err)
{
    static const char *const names[] = {"count", "freeze", CHANGE_FIELDS};

    *ret_change = (struct sandbox_fields_change){.spec = SANDBOX_SPEC_INIT};
    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0)
        return -1;
    return read_change(body, ret_change, err);
}

void sandbox_fields_change_done(struct sandbox_fields_change *change)
{
    struct sandbox_spec pairs = {.environment = change->environment, .labels = change->labels};

    sandbox_spec_done(&pairs);
    sandbox_spec_done(&change->spec);
}
