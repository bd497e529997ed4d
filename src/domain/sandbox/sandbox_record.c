#include "domain/sandbox/sandbox_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define REASON_MAX  256
#define WORD_MAX    4096
#define ADDRESS_MAX UINT32_MAX

/* --- writing --------------------------------------------------------------------------------- */

static void write_pairs(struct json_writer *json, const char *key,
                        const struct sandbox_pairs *pairs)
{
    if (pairs->count == 0)
        return;
    json_key(json, key);
    json_begin_object(json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(json, pairs->items[i].name, pairs->items[i].value);
    json_end_object(json);
}

static void write_number(struct json_writer *json, const char *key, uint64_t number)
{
    if (number)
        json_add_integer(json, key, (int64_t) number);
}

static void write_text(struct json_writer *json, const char *key, const char *text)
{
    if (text)
        json_add_text(json, key, text);
}

static void write_limits(struct json_writer *json, const struct limits *limits)
{
    json_key(json, "limits");
    json_begin_object(json);
    write_number(json, "memory", limits->memory_bytes);
    write_number(json, "swap", limits->swap_bytes); /* no limit: -1 */
    write_number(json, "pids", limits->pids);
    write_number(json, "cpu", limits->cpu_millis);
    write_number(json, "disk", limits->disk_bytes);
    write_number(json, "files", limits->files);
    json_end_object(json);
}

static void write_rules(struct json_writer *json, const struct sandbox_spec *spec)
{
    if (spec->rule_count == 0)
        return;
    json_key(json, "rules");
    json_begin_array(json);
    for (size_t i = 0; i < spec->rule_count; i++) {
        const struct network_rule *rule = &spec->rules[i];

        json_begin_object(json);
        json_add_boolean(json, "allow", rule->allow);
        json_add_integer(json, "address", rule->to.address);
        json_add_integer(json, "bits", rule->to.bits);
        json_add_integer(json, "protocol", rule->protocol);
        json_add_integer(json, "first", rule->ports.first);
        json_add_integer(json, "last", rule->ports.last);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_startup(struct json_writer *json, const struct sandbox_spec *spec)
{
    if (spec->startup_count == 0)
        return;
    json_key(json, "startup");
    json_begin_array(json);
    for (size_t i = 0; i < spec->startup_count; i++)
        json_put_text(json, spec->startup[i]);
    json_end_array(json);
}

/* Never is -1. */
static void write_tiers(struct json_writer *json, const struct sandbox_spec *spec)
{
    write_number(json, "freezeForMs", spec->freeze_for_ms);
    write_number(json, "hibernateAfterMs", spec->hibernate_after_ms);
    write_number(json, "offloadAfterMs", spec->offload_after_ms);
}

static void write_fields(struct json_writer *json, const struct sandbox_spec *spec)
{
    write_text(json, "image", spec->image);
    write_text(json, "kind", spec->kind);
    write_text(json, "folder", spec->folder);
    write_pairs(json, "environment", &spec->environment);
    write_pairs(json, "labels", &spec->labels);
    write_pairs(json, "binds", &spec->binds);
    write_limits(json, &spec->limits);
    write_rules(json, spec);
    if (spec->network == NETWORK_NAT || spec->has_network)
        json_add_text(json, "network", spec->network == NETWORK_NAT ? "nat" : "none");
    if (spec->sleep_after_ms != SANDBOX_SLEEP_AFTER_DEFAULT_MS)
        json_add_integer(json, "sleepAfterMs", (int64_t) spec->sleep_after_ms);
    if (spec->keep_alive)
        json_add_boolean(json, "keepAlive", true);
    if (spec->sync)
        json_add_boolean(json, "sync", true);
    write_number(json, "maxRuntimeMs", spec->max_runtime_ms);
    write_number(json, "lifetimeMs", spec->lifetime_ms);
    write_number(json, "snapshotEveryMs", spec->snapshot_every_ms);
    write_number(json, "snapshotKeepForMs", spec->snapshot_keep_for_ms);
    write_number(json, "snapshotKeep", spec->snapshot_keep);
    write_tiers(json, spec);
    write_startup(json, spec);
}

void sandbox_spec_write(const struct sandbox_spec *spec, struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    write_fields(&json, spec);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* text->overflowed says so */
}

static void write_record(const struct sandbox *sandbox, const struct sandbox_next *next,
                         struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    write_fields(&json, next->spec);
    if (sandbox->is_ended_by_request)
        json_add_boolean(&json, "endedByRequest", true);
    if (sandbox->is_rebuilding)
        json_add_boolean(&json, "rebuilding", true);
    if (sandbox->is_disk_new)
        json_add_boolean(&json, "newDisk", true);
    write_number(&json, "unenforced", sandbox->unenforced);
    if (*next->base.text)
        json_add_text(&json, "base", next->base.text);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* checked when the spec was taken: it fits */
}

/* --- reading --------------------------------------------------------------------------------- */

static int read_text(const struct json_place *root, const char *key, char **ret_text,
                     struct error *err)
{
    const char *text = NULL;

    if (json_field_text(root, key, JSON_OPTIONAL, WORD_MAX, &text, err) < 0)
        return -1;
    *ret_text = text ? mem_copy_text(text) : NULL;
    return 0;
}

static int read_pairs(const struct json_place *root, const char *key, size_t count_max,
                      struct sandbox_pairs *pairs, struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_pairs found = {.count = 0};

    if (json_field_pairs(root, key, JSON_OPTIONAL, count_max, SANDBOX_TEXT_MAX, &pool, &found,
                         err) < 0)
        return -1;
    for (size_t i = 0; i < found.count; i++)
        sandbox_pairs_set(pairs, found.items[i].name, found.items[i].text);
    return 0;
}

static int read_unsigned(const struct json_place *object, const char *key, uint64_t maximum,
                         uint64_t *ret_number, struct error *err)
{
    int64_t number = (int64_t) *ret_number;

    if (json_field_integer(object, key, JSON_OPTIONAL, 0, (int64_t) maximum, &number, err) < 0)
        return -1;
    *ret_number = (uint64_t) number;
    return 0;
}

static int read_limits(const struct json_place *root, struct limits *limits, struct error *err)
{
    struct json_place object;
    int64_t swap = 0;
    uint64_t pids = 0, cpu = 0, files = 0;

    if (json_field_object(root, "limits", JSON_OPTIONAL, &object, err) < 0)
        return -1;
    if (!object.value)
        return 0;
    if (read_unsigned(&object, "memory", INT64_MAX, &limits->memory_bytes, err) < 0 ||
        json_field_integer(&object, "swap", JSON_OPTIONAL, -1, INT64_MAX, &swap, err) < 0 ||
        read_unsigned(&object, "pids", UINT32_MAX, &pids, err) < 0 ||
        read_unsigned(&object, "cpu", UINT32_MAX, &cpu, err) < 0 ||
        read_unsigned(&object, "disk", INT64_MAX, &limits->disk_bytes, err) < 0 ||
        read_unsigned(&object, "files", UINT32_MAX, &files, err) < 0)
        return -1;
    limits->swap_bytes = (uint64_t) swap;
    limits->pids = (uint32_t) pids;
    limits->cpu_millis = (uint32_t) cpu;
    limits->files = (uint32_t) files;
    return 0;
}

static int read_rule(const struct json_place *item, struct network_rule *rule, struct error *err)
{
    int64_t address, bits, protocol, first, last;

    if (json_field_boolean(item, "allow", JSON_REQUIRED, &rule->allow, err) < 0 ||
        json_field_integer(item, "address", JSON_REQUIRED, 0, ADDRESS_MAX, &address, err) < 0 ||
        json_field_integer(item, "bits", JSON_REQUIRED, 0, 32, &bits, err) < 0 ||
        json_field_integer(item, "protocol", JSON_REQUIRED, 0, NETWORK_UDP, &protocol, err) < 0 ||
        json_field_integer(item, "first", JSON_REQUIRED, 0, UINT16_MAX, &first, err) < 0 ||
        json_field_integer(item, "last", JSON_REQUIRED, 0, UINT16_MAX, &last, err) < 0)
        return -1;
    rule->to.address = (uint32_t) address;
    rule->to.bits = (uint8_t) bits;
    rule->protocol = (enum network_protocol) protocol;
    rule->ports.first = (uint16_t) first;
    rule->ports.last = (uint16_t) last;
    return 0;
}

static int read_rules(const struct json_place *root, struct sandbox_spec *spec, struct error *err)
{
    struct json_place array, item;
    size_t count;

    if (json_field_array(root, "rules", JSON_OPTIONAL, &array, err) < 0)
        return -1;
    count = array.value ? json_array_size(array.value) : 0;
    if (count > SANDBOX_RULES_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d rules", SANDBOX_RULES_MAX);
    if (count == 0)
        return 0;
    spec->rules = mem_alloc_array(count, sizeof(*spec->rules));
    for (size_t i = 0; i < count; i++) {
        if (json_item_object(&array, i, &item, err) < 0 ||
            read_rule(&item, &spec->rules[i], err) < 0)
            return -1;
        spec->rule_count++;
    }
    return 0;
}

static int read_network(const struct json_place *root, struct sandbox_spec *spec, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(root, "network", JSON_OPTIONAL, WORD_MAX, &text, err) < 0)
        return -1;
    if (!text)
        return 0;
    spec->has_network = true;
    if (strcmp(text, "nat") == 0)
        spec->network = NETWORK_NAT;
    else if (strcmp(text, "none") != 0)
        return error_set(err, ERR_INVALID, 0, "field 'network' must be nat or none");
    return 0;
}

static int read_snapshots(const struct json_place *root, struct sandbox_spec *spec,
                          struct error *err)
{
    uint64_t keep = spec->snapshot_keep;

    if (read_unsigned(root, "snapshotEveryMs", SANDBOX_DURATION_MAX, &spec->snapshot_every_ms,
                      err) < 0 ||
        read_unsigned(root, "snapshotKeepForMs", SANDBOX_DURATION_MAX, &spec->snapshot_keep_for_ms,
                      err) < 0 ||
        read_unsigned(root, "snapshotKeep", SANDBOX_SNAPSHOT_KEEP_MAX, &keep, err) < 0)
        return -1;
    spec->snapshot_keep = (uint32_t) keep;
    return 0;
}

static int read_tier(const struct json_place *root, const char *key, uint64_t *ret_ms,
                     struct error *err)
{
    int64_t number = 0;

    if (json_field_integer(root, key, JSON_OPTIONAL, -1, (int64_t) SANDBOX_DURATION_MAX, &number,
                           err) < 0)
        return -1;
    *ret_ms = number < 0 ? SANDBOX_NEVER : (uint64_t) number;
    return 0;
}

static int read_tiers(const struct json_place *root, struct sandbox_spec *spec, struct error *err)
{
    if (read_tier(root, "freezeForMs", &spec->freeze_for_ms, err) < 0 ||
        read_tier(root, "hibernateAfterMs", &spec->hibernate_after_ms, err) < 0)
        return -1;
    return read_tier(root, "offloadAfterMs", &spec->offload_after_ms, err);
}

static int read_startup(const struct json_place *root, struct sandbox_spec *spec, struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts commands = {.count = 0};

    if (json_field_texts(root, "startup", JSON_OPTIONAL, SANDBOX_STARTUP_MAX,
                         SANDBOX_STARTUP_COMMAND_MAX, &pool, &commands, err) < 0)
        return -1;
    for (size_t i = 0; i < commands.count; i++)
        sandbox_startup_add(spec, commands.items[i]);
    return 0;
}

static int read_fields(const struct json_place *root, struct sandbox_spec *spec, struct error *err)
{
    if (read_text(root, "image", &spec->image, err) < 0 ||
        read_text(root, "kind", &spec->kind, err) < 0 ||
        read_text(root, "folder", &spec->folder, err) < 0 ||
        read_pairs(root, "environment", SANDBOX_VARIABLES_MAX, &spec->environment, err) < 0 ||
        read_pairs(root, "labels", SANDBOX_LABELS_MAX, &spec->labels, err) < 0 ||
        read_pairs(root, "binds", SANDBOX_BINDS_MAX, &spec->binds, err) < 0 ||
        read_limits(root, &spec->limits, err) < 0 || read_rules(root, spec, err) < 0 ||
        read_network(root, spec, err) < 0)
        return -1;
    if (read_unsigned(root, "sleepAfterMs", SANDBOX_DURATION_MAX, &spec->sleep_after_ms, err) < 0 ||
        json_field_boolean(root, "keepAlive", JSON_OPTIONAL, &spec->keep_alive, err) < 0 ||
        json_field_boolean(root, "sync", JSON_OPTIONAL, &spec->sync, err) < 0 ||
        read_unsigned(root, "maxRuntimeMs", SANDBOX_DURATION_MAX, &spec->max_runtime_ms, err) < 0 ||
        read_snapshots(root, spec, err) < 0 || read_tiers(root, spec, err) < 0 ||
        read_startup(root, spec, err) < 0)
        return -1;
    return read_unsigned(root, "lifetimeMs", SANDBOX_DURATION_MAX, &spec->lifetime_ms, err);
}

/* The JSON that may hold a spec: a little longer than what is written, as texts of JSON are. */
static json_t *read_json(const char *bytes, size_t length, struct json_place *ret_root,
                         struct error *err)
{
    const struct json_limits limits = {
        .size = SANDBOX_SPEC_MAX + WORD_MAX, .depth = 8, .values = JSON_VALUES_MAX};
    json_t *json = json_read(bytes, length, &limits, err);

    if (json && json_root_object(json, ret_root, err) < 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

int sandbox_spec_read(const char *json, size_t length, struct sandbox_spec *ret_spec,
                      struct error *err)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct json_place root;
    AUTO(json) json_t *value = read_json(json, length, &root, err);

    if (!value || read_fields(&root, &spec, err) < 0)
        return -1;
    *ret_spec = spec;
    spec = (struct sandbox_spec){.name = NULL};
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------ */

struct sandbox_next sandbox_next(const struct sandbox *sandbox)
{
    return (struct sandbox_next){.spec = &sandbox->spec,
                                 .status = sandbox->status,
                                 .stored = sandbox->stored,
                                 .base = sandbox->base};
}

void sandbox_row_init(struct sandbox_row *row, const struct sandbox *sandbox,
                      const struct sandbox_next *next)
{
    const struct sandbox_next now = sandbox_next(sandbox);

    next = next ? next : &now;
    *row = (struct sandbox_row){.spec = TEXT_INIT(SANDBOX_SPEC_MAX + WORD_MAX)};
    write_record(sandbox, next, &row->spec);
    row->values[STORE_SANDBOX_ID] = store_text(sandbox->id.text);
    row->values[STORE_SANDBOX_OWNER] = store_text(sandbox->owner.text);
    row->values[STORE_SANDBOX_NODE] = store_text(sandbox->node);
    row->values[STORE_SANDBOX_EPOCH] = store_integer(sandbox->epoch);
    row->values[STORE_SANDBOX_NAME] = store_text(next->spec->name);
    row->values[STORE_SANDBOX_STATUS] = store_text(sandbox_status_text(next->status));
    row->values[STORE_SANDBOX_REASON] = store_text(sandbox->reason);
    row->values[STORE_SANDBOX_SPEC] = store_text(text_string(&row->spec));
    row->values[STORE_SANDBOX_INSIDE] = store_text(sandbox->inside);
    row->values[STORE_SANDBOX_CREATED] = store_integer(sandbox->created_ms);
    row->values[STORE_SANDBOX_UPDATED] = store_integer(sandbox->updated_ms);
    row->values[STORE_SANDBOX_ACTIVE] = store_integer(sandbox->active_ms);
    row->values[STORE_SANDBOX_STARTED] =
        sandbox->started_ms ? store_integer(sandbox->started_ms) : store_null();
    row->values[STORE_SANDBOX_STORED] = store_text(next->stored);
}

void sandbox_row_done(struct sandbox_row *row)
{
    text_done(&row->spec);
}

static char *copy_value(const struct store_value *value)
{
    return value->is_null ? NULL : mem_copy_bytes(value->bytes, value->length);
}

static int copy_id(const struct store_value *value, struct id *ret_id)
{
    if (value->is_null || value->length > ID_LENGTH)
        return -1;
    memcpy(ret_id->text, value->bytes, value->length);
    ret_id->text[value->length] = '\0';
    return 0;
}

static int read_record(const struct store_value *value, struct sandbox *sandbox, struct error *err)
{
    struct json_place root;
    AUTO(json) json_t *json = read_json(value->bytes, value->length, &root, err);
    uint64_t unenforced = 0;
    const char *base = NULL;

    if (!json || read_fields(&root, &sandbox->spec, err) < 0 ||
        json_field_boolean(&root, "endedByRequest", JSON_OPTIONAL, &sandbox->is_ended_by_request,
                           err) < 0 ||
        json_field_boolean(&root, "rebuilding", JSON_OPTIONAL, &sandbox->is_rebuilding, err) < 0 ||
        json_field_boolean(&root, "newDisk", JSON_OPTIONAL, &sandbox->is_disk_new, err) < 0 ||
        read_unsigned(&root, "unenforced", UINT32_MAX, &unenforced, err) < 0 ||
        json_field_text(&root, "base", JSON_OPTIONAL, ID_LENGTH, &base, err) < 0)
        return -1;
    sandbox->unenforced = (unsigned int) unenforced;
    (void) snprintf(sandbox->base.text, sizeof(sandbox->base.text), "%s", base ? base : "");
    return 0;
}

static int read_row(const struct store_value *row, struct sandbox *sandbox, struct error *err)
{
    const struct store_value *node = &row[STORE_SANDBOX_NODE];

    if (copy_id(&row[STORE_SANDBOX_ID], &sandbox->id) < 0 || !id_is_valid(sandbox->id.text) ||
        copy_id(&row[STORE_SANDBOX_OWNER], &sandbox->owner) < 0)
        return error_set(err, ERR_INTERNAL, 0, "its id or its owner's is none");
    if (node->length >= sizeof(sandbox->node))
        return error_set(err, ERR_INTERNAL, 0, "its node's name is too long");
    memcpy(sandbox->node, node->bytes, node->length);
    if (sandbox_status_from_text(row[STORE_SANDBOX_STATUS].bytes, &sandbox->status) < 0)
        return error_set(err, ERR_INTERNAL, 0, "its status is none");
    if (read_record(&row[STORE_SANDBOX_SPEC], sandbox, err) < 0)
        return -1;
    sandbox->epoch = row[STORE_SANDBOX_EPOCH].integer;
    sandbox->spec.name = copy_value(&row[STORE_SANDBOX_NAME]);
    free(sandbox->reason);
    sandbox->reason = copy_value(&row[STORE_SANDBOX_REASON]);
    sandbox->inside = copy_value(&row[STORE_SANDBOX_INSIDE]);
    sandbox->created_ms = row[STORE_SANDBOX_CREATED].integer;
    sandbox->updated_ms = row[STORE_SANDBOX_UPDATED].integer;
    sandbox->active_ms = row[STORE_SANDBOX_ACTIVE].integer;
    sandbox->started_ms =
        row[STORE_SANDBOX_STARTED].is_null ? 0 : row[STORE_SANDBOX_STARTED].integer;
    sandbox->stored = copy_value(&row[STORE_SANDBOX_STORED]);
    return 0;
}

struct sandbox *sandbox_from_row(const struct store_value *row, struct error *err)
{
    AUTO(sandbox) struct sandbox *sandbox = sandbox_new();

    if (read_row(row, sandbox, err) < 0) {
        err->code = ERR_INTERNAL;
        (void) error_wrap(err, "the row of sandbox '%.26s'", row[STORE_SANDBOX_ID].bytes);
        return NULL;
    }
    return TAKE_PTR(sandbox);
}

/* --- memory ---------------------------------------------------------------------------------- */

struct sandbox *sandbox_new(void)
{
    struct sandbox *sandbox = mem_alloc(sizeof(*sandbox));

    sandbox->spec = (struct sandbox_spec) SANDBOX_SPEC_INIT;
    sandbox->reason = mem_copy_text("");
    list_init(&sandbox->link);
    list_init(&sandbox->waiting);
    list_init(&sandbox->wanted);
    list_init(&sandbox->unkept);
    list_init(&sandbox->new_disk);
    return sandbox;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    sandbox_spec_done(&sandbox->spec);
    free(sandbox->reason);
    free(sandbox->inside);
    free(sandbox->stored);
    free(sandbox);
}

void sandbox_set_reason(struct sandbox *sandbox, const char *format, ...)
{
    char reason[REASON_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(reason, sizeof(reason), format, arguments); /* cut: it is for people */
    va_end(arguments);
    free(sandbox->reason);
    sandbox->reason = mem_copy_text(reason);
}
