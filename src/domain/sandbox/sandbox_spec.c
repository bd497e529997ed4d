/* What is wished for: struct sandbox_spec of sandbox.h. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_record.h"

#define SANDBOX_WORD_MAX 128 /* of images, kinds, label names, binds */
#define SANDBOX_PATH_MAX 1024
#define CPU_MILLIS_MAX   10000000

/* --- pairs ----------------------------------------------------------------------------------- */

static void pair_done(struct sandbox_pair *pair)
{
    free(pair->name);
    free(pair->value);
}

void sandbox_pairs_done(struct sandbox_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        pair_done(&pairs->items[i]);
    free(pairs->items);
    *pairs = (struct sandbox_pairs){.count = 0};
}

static struct sandbox_pair *find_pair(const struct sandbox_pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].name, name) == 0)
            return &pairs->items[i];
    return NULL;
}

static void append_pair(struct sandbox_pairs *pairs, const char *name, const char *value)
{
    pairs->items = mem_resize(pairs->items, (pairs->count + 1) * sizeof(*pairs->items));
    pairs->items[pairs->count++] =
        (struct sandbox_pair){.name = mem_copy_text(name), .value = mem_copy_text(value)};
}

void sandbox_pairs_set(struct sandbox_pairs *pairs, const char *name, const char *value)
{
    struct sandbox_pair *pair = find_pair(pairs, name);
    char *copy;

    if (!pair) {
        append_pair(pairs, name, value);
        return;
    }
    copy = mem_copy_text(value);
    free(pair->value);
    pair->value = copy;
}

void sandbox_pairs_remove(struct sandbox_pairs *pairs, const char *name)
{
    struct sandbox_pair *pair = find_pair(pairs, name);

    if (!pair)
        return;
    pair_done(pair);
    pairs->count--;
    memmove(pair, pair + 1, (size_t) ((char *) &pairs->items[pairs->count] - (char *) pair));
}

const char *sandbox_pairs_get(const struct sandbox_pairs *pairs, const char *name)
{
    const struct sandbox_pair *pair = find_pair(pairs, name);

    return pair ? pair->value : NULL;
}

static struct sandbox_pairs copy_pairs(const struct sandbox_pairs *pairs)
{
    struct sandbox_pairs copy = {.count = 0};

    if (pairs->count == 0)
        return copy;
    copy.items = mem_alloc_array(pairs->count, sizeof(*copy.items));
    copy.count = pairs->count;
    for (size_t i = 0; i < pairs->count; i++)
        copy.items[i] = (struct sandbox_pair){.name = mem_copy_text(pairs->items[i].name),
                                              .value = mem_copy_text(pairs->items[i].value)};
    return copy;
}

/* --- startup --------------------------------------------------------------------------------- */

void sandbox_startup_done(struct sandbox_spec *spec)
{
    for (size_t i = 0; i < spec->startup_count; i++)
        free(spec->startup[i]);
    free(spec->startup);
    spec->startup = NULL;
    spec->startup_count = 0;
}

void sandbox_startup_add(struct sandbox_spec *spec, const char *command)
{
    spec->startup = mem_resize(spec->startup, (spec->startup_count + 1) * sizeof(*spec->startup));
    spec->startup[spec->startup_count++] = mem_copy_text(command);
}

void sandbox_startup_copy(struct sandbox_spec *spec, const struct sandbox_spec *from)
{
    spec->startup = NULL;
    spec->startup_count = 0;
    for (size_t i = 0; i < from->startup_count; i++)
        sandbox_startup_add(spec, from->startup[i]);
}

static int check_startup(const struct sandbox_spec *spec, struct error *err)
{
    if (spec->startup_count > SANDBOX_STARTUP_MAX)
        return error_set(err, ERR_INVALID, 0, "startup: %zu commands; at most %d",
                         spec->startup_count, SANDBOX_STARTUP_MAX);
    for (size_t i = 0; i < spec->startup_count; i++) {
        size_t length = strlen(spec->startup[i]);

        if (length == 0 || length > SANDBOX_STARTUP_COMMAND_MAX ||
            !utf8_is_valid(spec->startup[i], length))
            return error_set(err, ERR_INVALID, 0, "startup[%zu] must be 1 to %zu bytes of UTF-8", i,
                             SANDBOX_STARTUP_COMMAND_MAX);
    }
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

void sandbox_spec_done(struct sandbox_spec *spec)
{
    free(spec->name);
    free(spec->image);
    free(spec->kind);
    free(spec->folder);
    sandbox_pairs_done(&spec->environment);
    sandbox_pairs_done(&spec->labels);
    sandbox_pairs_done(&spec->binds);
    free(spec->rules);
    sandbox_startup_done(spec);
    *spec = (struct sandbox_spec){.name = NULL};
}

static char *copy_text(const char *text)
{
    return text ? mem_copy_text(text) : NULL;
}

struct sandbox_spec sandbox_spec_copy(const struct sandbox_spec *spec)
{
    struct sandbox_spec copy = *spec;

    copy.name = copy_text(spec->name);
    copy.image = copy_text(spec->image);
    copy.kind = copy_text(spec->kind);
    copy.folder = copy_text(spec->folder);
    copy.environment = copy_pairs(&spec->environment);
    copy.labels = copy_pairs(&spec->labels);
    copy.binds = copy_pairs(&spec->binds);
    sandbox_startup_copy(&copy, spec);
    copy.rules = NULL;
    if (spec->rule_count) {
        copy.rules = mem_alloc_array(spec->rule_count, sizeof(*copy.rules));
        memcpy(copy.rules, spec->rules, spec->rule_count * sizeof(*copy.rules));
    }
    return copy;
}

/* --- checks ---------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Readable and on one line: it ends up in lists, logs and headers. */
static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char) *at < 0x20 || *at == 0x7f)
            return false;
    return utf8_is_valid(text, strlen(text));
}

static bool is_variable_name(const char *name)
{
    if (!is_letter(*name))
        return false;
    for (const char *at = name; *at; at++)
        if (!is_letter(*at) && !is_digit(*at))
            return false;
    return strlen(name) <= SANDBOX_WORD_MAX;
}

static bool is_label_name(const char *name)
{
    if (!is_letter(*name) && !is_digit(*name))
        return false;
    for (const char *at = name; *at; at++)
        if (!is_letter(*at) && !is_digit(*at) && !strchr(".-/", *at))
            return false;
    return strlen(name) <= SANDBOX_WORD_MAX;
}

static int check_text(const char *field, const char *text, size_t maximum, struct error *err)
{
    if (!text)
        return 0;
    if (!*text || strlen(text) > maximum || !is_plain(text))
        return error_set(err, ERR_INVALID, 0, "%s must be 1 to %zu characters on one line", field,
                         maximum);
    return 0;
}

static int check_texts(const struct sandbox_spec *spec, struct error *err)
{
    if (check_text("name", spec->name, SANDBOX_NAME_MAX, err) < 0 ||
        check_text("image", spec->image, SANDBOX_WORD_MAX, err) < 0 ||
        check_text("kind", spec->kind, SANDBOX_WORD_MAX, err) < 0 ||
        check_text("folder", spec->folder, SANDBOX_PATH_MAX, err) < 0)
        return -1;
    if (spec->folder && *spec->folder != '/')
        return error_set(err, ERR_INVALID, 0, "folder must begin with '/'");
    return 0;
}

static int check_environment(const struct sandbox_pairs *pairs, struct error *err)
{
    if (pairs->count > SANDBOX_VARIABLES_MAX)
        return error_set(err, ERR_INVALID, 0, "environment has %zu variables; at most %d",
                         pairs->count, SANDBOX_VARIABLES_MAX);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct sandbox_pair *pair = &pairs->items[i];

        if (!is_variable_name(pair->name))
            return error_set(err, ERR_INVALID, 0,
                             "environment: '%.64s' is no name of a variable: letters, digits and "
                             "'_', no digit first",
                             pair->name);
        if (strlen(pair->value) > SANDBOX_TEXT_MAX)
            return error_set(err, ERR_INVALID, 0, "environment: '%s' is longer than %zu bytes",
                             pair->name, SANDBOX_TEXT_MAX);
        if (!utf8_is_valid(pair->value, strlen(pair->value)))
            return error_set(err, ERR_INVALID, 0, "environment: '%s' is not UTF-8", pair->name);
    }
    return 0;
}

static int check_labels(const struct sandbox_pairs *pairs, struct error *err)
{
    if (pairs->count > SANDBOX_LABELS_MAX)
        return error_set(err, ERR_INVALID, 0, "labels: %zu of them; at most %d", pairs->count,
                         SANDBOX_LABELS_MAX);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct sandbox_pair *pair = &pairs->items[i];

        if (!is_label_name(pair->name))
            return error_set(err, ERR_INVALID, 0,
                             "labels: '%.64s' is no name of a label: letters, digits, and '_', "
                             "'.', '-', '/' behind the first, at most %d",
                             pair->name, SANDBOX_WORD_MAX);
        if (strlen(pair->value) > SANDBOX_LABEL_MAX || !is_plain(pair->value))
            return error_set(err, ERR_INVALID, 0,
                             "labels: '%s' must be at most %d characters on one line", pair->name,
                             SANDBOX_LABEL_MAX);
    }
    return 0;
}

static int check_binds(const struct sandbox_pairs *binds, struct error *err)
{
    if (binds->count > SANDBOX_BINDS_MAX)
        return error_set(err, ERR_INVALID, 0, "binds: %zu of them; at most %d", binds->count,
                         SANDBOX_BINDS_MAX);
    for (size_t i = 0; i < binds->count; i++)
        if (check_text("binds: a place", binds->items[i].name, SANDBOX_PATH_MAX, err) < 0 ||
            check_text("binds: a folder's name", binds->items[i].value, SANDBOX_WORD_MAX, err) < 0)
            return -1;
    return 0;
}

static int check_rules(const struct sandbox_spec *spec, struct error *err)
{
    if (spec->rule_count > SANDBOX_RULES_MAX)
        return error_set(err, ERR_INVALID, 0, "rules: %zu of them; at most %d", spec->rule_count,
                         SANDBOX_RULES_MAX);
    for (size_t i = 0; i < spec->rule_count; i++) {
        const struct network_rule *rule = &spec->rules[i];

        if (rule->to.bits > 32 || rule->ports.first > rule->ports.last)
            return error_set(err, ERR_INVALID, 0,
                             "rules[%zu]: at most 32 bits, and ports from low to high", i);
    }
    return 0;
}

/* Texts and sums of the store are signed: nothing may pass INT64_MAX. */
static int check_limits(const struct limits *limits, struct error *err)
{
    if (limits->memory_bytes > INT64_MAX || limits->disk_bytes > INT64_MAX ||
        (limits->swap_bytes > INT64_MAX && limits->swap_bytes != UINT64_MAX) ||
        limits->cpu_millis > CPU_MILLIS_MAX)
        return error_set(err, ERR_INVALID, 0, "limits: a number is out of all measure");
    return 0;
}

static int check_duration(const char *field, uint64_t milliseconds, struct error *err)
{
    if (milliseconds > SANDBOX_DURATION_MAX)
        return error_set(err, ERR_INVALID, 0, "%s is longer than ten years", field);
    return 0;
}

/* A time that has a default of the daemon's. */
static int check_tier(const char *field, uint64_t milliseconds, struct error *err)
{
    return milliseconds == SANDBOX_NEVER ? 0 : check_duration(field, milliseconds, err);
}

static int check_tiers(const struct sandbox_spec *spec, struct error *err)
{
    if (check_tier("freezeFor", spec->freeze_for_ms, err) < 0 ||
        check_tier("hibernateAfter", spec->hibernate_after_ms, err) < 0)
        return -1;
    return check_tier("offloadAfter", spec->offload_after_ms, err);
}

static int check_snapshots(const struct sandbox_spec *spec, struct error *err)
{
    if (spec->snapshot_every_ms && spec->snapshot_every_ms < SANDBOX_SNAPSHOT_EVERY_MIN_MS)
        return error_set(err, ERR_INVALID, 0, "snapshotEvery must be a minute or more");
    if (spec->snapshot_keep > SANDBOX_SNAPSHOT_KEEP_MAX)
        return error_set(err, ERR_INVALID, 0, "snapshotKeep must be at most %d",
                         SANDBOX_SNAPSHOT_KEEP_MAX);
    if (check_duration("snapshotEvery", spec->snapshot_every_ms, err) < 0)
        return -1;
    return check_duration("snapshotKeepFor", spec->snapshot_keep_for_ms, err);
}

static int check_size(const struct sandbox_spec *spec, struct error *err)
{
    AUTO(text) struct text json = TEXT_INIT(SANDBOX_SPEC_MAX);

    sandbox_spec_write(spec, &json);
    if (json.overflowed)
        return error_set(err, ERR_INVALID, 0,
                         "environment, labels and startup are more than %zu bytes",
                         SANDBOX_SPEC_MAX);
    return 0;
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct error *err)
{
    if (check_texts(spec, err) < 0 || check_environment(&spec->environment, err) < 0 ||
        check_labels(&spec->labels, err) < 0 || check_binds(&spec->binds, err) < 0 ||
        check_rules(spec, err) < 0 || check_limits(&spec->limits, err) < 0 ||
        check_duration("sleepAfter", spec->sleep_after_ms, err) < 0 ||
        check_duration("maxRuntime", spec->max_runtime_ms, err) < 0 ||
        check_duration("lifetime", spec->lifetime_ms, err) < 0 || check_snapshots(spec, err) < 0 ||
        check_tiers(spec, err) < 0 || check_startup(spec, err) < 0)
        return -1;
    return check_size(spec, err);
}
