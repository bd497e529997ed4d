#include "model/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/number.h"
#include "model/spec_json.h"

/* --- the rows -------------------------------------------------------------------------------- */

#define SPEC_NO_OPTION(meaning_)                     .meaning = (meaning_)
#define SPEC_LIMIT_OPTIONS(meaning_)                 .meaning = (meaning_)
#define SPEC_OPTION(option_, letter, word, meaning_) .option = (option_), .meaning = (meaning_)
#define SPEC_OPTIONS                                 SPEC_OPTION

#define SPEC_SHOWN_ALWAYS   true
#define SPEC_SHOWN_WHEN_SET false

#define SPEC_ROW(member, TYPE, name_, row_, least_, most_, WHERE, SHOWN, ...)                      \
    [SPEC_INDEX_##member] = {.name = (name_),                                                      \
                             .row = (row_),                                                        \
                             .type = SPEC_##TYPE,                                                  \
                             .offset = offsetof(struct sandbox_spec, member),                      \
                             .least = (least_),                                                    \
                             .most = (most_),                                                      \
                             .where = 0 SPEC_IN_CREATE_##WHERE(| SPEC_CREATE)                      \
                                 SPEC_IN_TEMPLATE_##WHERE(| SPEC_TEMPLATE)                         \
                                     SPEC_IN_CHANGE_##WHERE(| SPEC_CHANGE),                        \
                             .is_always = SPEC_SHOWN_##SHOWN,                                      \
                             __VA_ARGS__},

const struct spec_field spec_fields[SPEC_FIELD_COUNT] = {SPEC_FIELDS(SPEC_ROW)};

#define LIMIT_ROW(member, TYPE, limit, name_, most_, ...)                                          \
    [LIMIT_##limit] = {.name = (name_),                                                            \
                       .type = LIMIT_##TYPE,                                                       \
                       .offset = offsetof(struct limits, member),                                  \
                       .most = (most_),                                                            \
                       __VA_ARGS__},

const struct limit_field limit_fields[LIMIT_FIELD_COUNT] = {LIMIT_FIELDS(LIMIT_ROW)};

_Static_assert(SPEC_FIELD_COUNT <= 32, "a set of them fits");

/* --- limits ---------------------------------------------------------------------------------- */

uint64_t limit_get(const struct limits *limits, const struct limit_field *field)
{
    const void *at = (const char *) limits + field->offset;

    return field->type == LIMIT_SIZE ? *(const uint64_t *) at : *(const uint32_t *) at;
}

void limit_set(struct limits *limits, const struct limit_field *field, uint64_t value)
{
    void *at = (char *) limits + field->offset;

    if (field->type == LIMIT_SIZE)
        *(uint64_t *) at = value;
    else
        *(uint32_t *) at = (uint32_t) value;
}

bool limits_equal(const struct limits *a, const struct limits *b)
{
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++)
        if (limit_get(a, &limit_fields[i]) != limit_get(b, &limit_fields[i]))
            return false;
    return true;
}

void limits_merge(struct limits *limits, const struct limits *wanted)
{
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        uint64_t value = limit_get(wanted, &limit_fields[i]);

        if (value)
            limit_set(limits, &limit_fields[i], value);
    }
}

/* Texts and sums of the store are signed: nothing may pass INT64_MAX, but swap without a limit. */
static int limits_check(const struct spec_field *field, const void *at, struct error *err)
{
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        const struct limit_field *limit = &limit_fields[i];
        uint64_t value = limit_get(at, limit);

        if (value <= (uint64_t) limit->most || (i == LIMIT_SWAP && value == LIMITS_SWAP_UNLIMITED))
            continue;
        return error_set(err, ERR_INVALID, 0, "%s.%s must be at most %lld%s", field->name,
                         limit->name,
                         (long long) limit->most / (limit->type == LIMIT_SHARE ? 1000 : 1),
                         limit->type == LIMIT_SIZE ? " bytes" : "");
    }
    return 0;
}

static bool limits_equal_at(const void *a, const void *b)
{
    return limits_equal(a, b);
}

static void limits_merge_at(void *at, const void *wanted)
{
    limits_merge(at, wanted);
}

/* --- texts ----------------------------------------------------------------------------------- */

static void text_done_at(void *at)
{
    free(*(char **) at);
}

static void text_copy_at(void *at)
{
    char **text = at;

    *text = *text ? mem_copy_text(*text) : NULL;
}

static bool text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool text_equal_at(const void *a, const void *b)
{
    return text_equal(*(char *const *) a, *(char *const *) b);
}

/* Readable and on one line: it ends up in lists, logs and headers. */
static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char) *at < 0x20 || *at == 0x7f)
            return false;
    return utf8_is_valid(text, strlen(text));
}

static int plain_check(const char *field, const char *text, size_t least, size_t most,
                       struct error *err)
{
    size_t length = strlen(text);

    if (length < least || length > most || !is_plain(text))
        return error_set(err, ERR_INVALID, 0, "%s must be %zu to %zu characters on one line", field,
                         least, most);
    return 0;
}

static int text_check(const struct spec_field *field, const void *at, struct error *err)
{
    const char *text = *(char *const *) at;

    return text ? plain_check(field->name, text, field->least, field->most, err) : 0;
}

static int folder_check(const struct spec_field *field, const void *at, struct error *err)
{
    const char *folder = *(char *const *) at;

    if (text_check(field, at, err) < 0)
        return -1;
    if (folder && *folder != '/')
        return error_set(err, ERR_INVALID, 0, "%s must begin with '/'", field->name);
    return 0;
}

static void commands_done_at(void *at)
{
    sandbox_texts_done(at);
}

static void commands_copy_at(void *at)
{
    *(struct sandbox_texts *) at = sandbox_texts_copy(at);
}

static bool commands_equal_at(const void *a, const void *b)
{
    const struct sandbox_texts *x = a, *y = b;

    for (size_t i = 0; x->count == y->count && i < x->count; i++)
        if (strcmp(x->items[i], y->items[i]) != 0)
            return false;
    return x->count == y->count;
}

static int commands_check(const struct spec_field *field, const void *at, struct error *err)
{
    const struct sandbox_texts *commands = at;

    if (commands->count > field->least)
        return error_set(err, ERR_INVALID, 0, "%s: %zu commands; at most %zu", field->name,
                         commands->count, (size_t) field->least);
    for (size_t i = 0; i < commands->count; i++) {
        size_t length = strlen(commands->items[i]);

        if (length == 0 || length > field->most || !utf8_is_valid(commands->items[i], length))
            return error_set(err, ERR_INVALID, 0, "%s[%zu] must be 1 to %zu bytes of UTF-8",
                             field->name, i, (size_t) field->most);
    }
    return 0;
}

/* --- pairs ----------------------------------------------------------------------------------- */

static void pairs_done_at(void *at)
{
    sandbox_pairs_done(at);
}

static void pairs_copy_at(void *at)
{
    *(struct sandbox_pairs *) at = sandbox_pairs_copy(at);
}

static void pairs_merge_at(void *at, const void *wanted)
{
    sandbox_pairs_merge(at, wanted);
}

static bool pairs_equal_at(const void *a, const void *b)
{
    const struct sandbox_pairs *x = a, *y = b;

    for (size_t i = 0; x->count == y->count && i < x->count; i++)
        if (strcmp(x->items[i].name, y->items[i].name) != 0 ||
            !text_equal(x->items[i].value, y->items[i].value))
            return false;
    return x->count == y->count;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
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

static int variable_check(const struct spec_field *field, const struct sandbox_pair *pair,
                          struct error *err)
{
    if (!is_variable_name(pair->name))
        return error_set(err, ERR_INVALID, 0,
                         "%s: '%.64s' cannot be the name of a variable: use letters, digits and "
                         "'_', no digit first, at most %d",
                         field->name, pair->name, SANDBOX_WORD_MAX);
    if (strlen(pair->value) > field->most)
        return error_set(err, ERR_INVALID, 0, "%s: '%s' is longer than %zu bytes", field->name,
                         pair->name, (size_t) field->most);
    if (!utf8_is_valid(pair->value, strlen(pair->value)))
        return error_set(err, ERR_INVALID, 0, "%s: '%s' is not UTF-8", field->name, pair->name);
    return 0;
}

static int label_check(const struct spec_field *field, const struct sandbox_pair *pair,
                       struct error *err)
{
    if (!is_label_name(pair->name))
        return error_set(err, ERR_INVALID, 0,
                         "%s: '%.64s' cannot be the name of a label: use letters, digits and '_', "
                         "behind the first also '.', '-' and '/', at most %d",
                         field->name, pair->name, SANDBOX_WORD_MAX);
    if (strlen(pair->value) > field->most || !is_plain(pair->value))
        return error_set(err, ERR_INVALID, 0, "%s: '%s' must be at most %zu characters on one line",
                         field->name, pair->name, (size_t) field->most);
    return 0;
}

static int bind_check(const struct spec_field *field, const struct sandbox_pair *pair,
                      struct error *err)
{
    if (plain_check("binds: a place", pair->name, 1, SANDBOX_PATH_MAX, err) < 0)
        return -1;
    return plain_check("binds: a folder's name", pair->value, 1, field->most, err);
}

typedef int pair_check(const struct spec_field *field, const struct sandbox_pair *pair,
                       struct error *err);

static int pairs_check(const struct spec_field *field, const void *at, struct error *err)
{
    static pair_check *const checks[SPEC_TYPE_COUNT] = {
        [SPEC_VARIABLES] = variable_check, [SPEC_LABELS] = label_check, [SPEC_BINDS] = bind_check};
    const struct sandbox_pairs *pairs = at;

    if (pairs->count > field->least)
        return error_set(err, ERR_INVALID, 0, "%s: %zu entries; at most %zu", field->name,
                         pairs->count, (size_t) field->least);
    for (size_t i = 0; i < pairs->count; i++)
        if (checks[field->type](field, &pairs->items[i], err) < 0)
            return -1;
    return 0;
}

/* --- rules ----------------------------------------------------------------------------------- */

static void rules_done_at(void *at)
{
    free(((struct sandbox_rules *) at)->items);
}

static void rules_copy_at(void *at)
{
    struct sandbox_rules *rules = at;
    struct network_rule *items = NULL;

    if (rules->count) {
        items = mem_alloc_array(rules->count, sizeof(*items));
        memcpy(items, rules->items, rules->count * sizeof(*items));
    }
    rules->items = items;
}

static bool rules_equal_at(const void *a, const void *b)
{
    const struct sandbox_rules *x = a, *y = b;

    for (size_t i = 0; x->count == y->count && i < x->count; i++) {
        const struct network_rule *one = &x->items[i], *other = &y->items[i];

        if (one->allow != other->allow || one->to.address != other->to.address ||
            one->to.bits != other->to.bits || one->protocol != other->protocol ||
            one->ports.first != other->ports.first || one->ports.last != other->ports.last)
            return false;
    }
    return x->count == y->count;
}

static int rules_check(const struct spec_field *field, const void *at, struct error *err)
{
    const struct sandbox_rules *rules = at;

    if (rules->count > field->least)
        return error_set(err, ERR_INVALID, 0, "%s: %zu entries; at most %zu", field->name,
                         rules->count, (size_t) field->least);
    for (size_t i = 0; i < rules->count; i++)
        if (rules->items[i].to.bits > 32 ||
            rules->items[i].ports.first > rules->items[i].ports.last)
            return error_set(err, ERR_INVALID, 0,
                             "%s[%zu]: at most 32 bits, and ports from low to high", field->name,
                             i);
    return 0;
}

/* --- numbers --------------------------------------------------------------------------------- */

static bool time_equal_at(const void *a, const void *b)
{
    return *(const uint64_t *) a == *(const uint64_t *) b;
}

static bool count_equal_at(const void *a, const void *b)
{
    return *(const uint32_t *) a == *(const uint32_t *) b;
}

static bool flag_equal_at(const void *a, const void *b)
{
    return *(const bool *) a == *(const bool *) b;
}

static bool network_equal_at(const void *a, const void *b)
{
    const struct sandbox_network *x = a, *y = b;

    return x->is_set == y->is_set && x->mode == y->mode;
}

static int time_check(const struct spec_field *field, const void *at, struct error *err)
{
    char least[NUMBER_TEXT_SIZE], most[NUMBER_TEXT_SIZE];
    uint64_t time_ms = *(const uint64_t *) at;

    if (time_ms == 0 || (time_ms >= field->least && time_ms <= field->most) ||
        (field->type == SPEC_TIER && time_ms == SANDBOX_NEVER))
        return 0;
    number_format_duration(field->least, least);
    number_format_duration(field->most, most);
    if (field->least)
        return error_set(err, ERR_INVALID, 0, "%s must be 0, or from %s to %s", field->name, least,
                         most);
    return error_set(err, ERR_INVALID, 0, "%s must be at most %s", field->name, most);
}

static int count_check(const struct spec_field *field, const void *at, struct error *err)
{
    uint32_t count = *(const uint32_t *) at;

    if (count < field->least || count > field->most)
        return error_set(err, ERR_INVALID, 0, "%s must be from %zu to %zu", field->name,
                         (size_t) field->least, (size_t) field->most);
    return 0;
}

/* --- the types ------------------------------------------------------------------------------- */

struct spec_kind {
    size_t size;
    bool (*equal)(const void *a, const void *b);
    int (*check)(const struct spec_field *field, const void *at, struct error *err);
    void (*done)(void *at);                      /* NULL: it owns nothing */
    void (*copy)(void *at);                      /* what was borrowed becomes its own */
    void (*merge)(void *at, const void *wanted); /* NULL: the wanted one instead */
};

#define PAIRS_KIND                                                                                 \
    {                                                                                              \
        sizeof(struct sandbox_pairs), pairs_equal_at, pairs_check, pairs_done_at, pairs_copy_at,   \
            pairs_merge_at                                                                         \
    }

static const struct spec_kind kinds[SPEC_TYPE_COUNT] = {
    [SPEC_NAME] = {sizeof(char *), text_equal_at, text_check, text_done_at, text_copy_at, NULL},
    [SPEC_TEXT] = {sizeof(char *), text_equal_at, text_check, text_done_at, text_copy_at, NULL},
    [SPEC_FOLDER] = {sizeof(char *), text_equal_at, folder_check, text_done_at, text_copy_at, NULL},
    [SPEC_VARIABLES] = PAIRS_KIND,
    [SPEC_LABELS] = PAIRS_KIND,
    [SPEC_BINDS] = PAIRS_KIND,
    [SPEC_COMMANDS] = {sizeof(struct sandbox_texts), commands_equal_at, commands_check,
                       commands_done_at, commands_copy_at, NULL},
    [SPEC_DURATION] = {sizeof(uint64_t), time_equal_at, time_check, NULL, NULL, NULL},
    [SPEC_TIER] = {sizeof(uint64_t), time_equal_at, time_check, NULL, NULL, NULL},
    [SPEC_COUNT] = {sizeof(uint32_t), count_equal_at, count_check, NULL, NULL, NULL},
    [SPEC_FLAG] = {sizeof(bool), flag_equal_at, NULL, NULL, NULL, NULL},
    [SPEC_LIMITS] = {sizeof(struct limits), limits_equal_at, limits_check, NULL, NULL,
                     limits_merge_at},
    [SPEC_NETWORK] = {sizeof(struct sandbox_network), network_equal_at, NULL, NULL, NULL, NULL},
    [SPEC_RULES] = {sizeof(struct sandbox_rules), rules_equal_at, rules_check, rules_done_at,
                    rules_copy_at, NULL},
};

#define EACH_FIELD(field)                                                                          \
    for (const struct spec_field *field = spec_fields; field < spec_fields + SPEC_FIELD_COUNT;     \
         field++)

static void *field_at(struct sandbox_spec *spec, const struct spec_field *field)
{
    return (char *) spec + field->offset;
}

static const void *field_of(const struct sandbox_spec *spec, const struct spec_field *field)
{
    return (const char *) spec + field->offset;
}

/* --- the whole ------------------------------------------------------------------------------- */

void sandbox_spec_done(struct sandbox_spec *spec)
{
    EACH_FIELD(field)
    if (kinds[field->type].done)
        kinds[field->type].done(field_at(spec, field));
    *spec = (struct sandbox_spec){.name = NULL};
}

struct sandbox_spec sandbox_spec_copy(const struct sandbox_spec *spec)
{
    struct sandbox_spec copy = *spec;

    EACH_FIELD(field)
    if (kinds[field->type].copy)
        kinds[field->type].copy(field_at(&copy, field));
    return copy;
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct error *err)
{
    EACH_FIELD(field)
    if (kinds[field->type].check && kinds[field->type].check(field, field_of(spec, field), err) < 0)
        return -1;
    if (sandbox_spec_size(spec) > SANDBOX_SPEC_MAX)
        return error_set(err, ERR_INVALID, 0,
                         "env, labels and startup are more than %zu bytes together, as JSON",
                         SANDBOX_SPEC_MAX);
    return 0;
}

bool spec_field_equal(const struct spec_field *field, const struct sandbox_spec *a,
                      const struct sandbox_spec *b)
{
    return kinds[field->type].equal(field_of(a, field), field_of(b, field));
}

bool sandbox_spec_equal(const struct sandbox_spec *a, const struct sandbox_spec *b)
{
    EACH_FIELD(field)
    if (!spec_field_equal(field, a, b))
        return false;
    return true;
}

/* --- changes --------------------------------------------------------------------------------- */

void sandbox_change_done(struct sandbox_change *change)
{
    sandbox_spec_done(&change->spec);
    change->fields = 0;
}

struct sandbox_change sandbox_change_copy(const struct sandbox_change *change)
{
    return (struct sandbox_change){.fields = change->fields,
                                   .spec = sandbox_spec_copy(&change->spec)};
}

static void field_replace(const struct spec_kind *kind, void *at, const void *wanted)
{
    if (kind->done)
        kind->done(at);
    memcpy(at, wanted, kind->size);
    if (kind->copy)
        kind->copy(at);
}

void sandbox_spec_apply(struct sandbox_spec *spec, const struct sandbox_change *change)
{
    EACH_FIELD(field)
    {
        const struct spec_kind *kind = &kinds[field->type];
        const void *wanted = field_of(&change->spec, field);

        if (!(change->fields & 1U << (field - spec_fields)))
            continue;
        if (kind->merge)
            kind->merge(field_at(spec, field), wanted);
        else
            field_replace(kind, field_at(spec, field), wanted);
    }
}
