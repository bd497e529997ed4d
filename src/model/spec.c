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
static int limits_check(const struct spec_field *field, const struct limits *limits,
                        struct error *err)
{
    for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++) {
        const struct limit_field *limit = &limit_fields[i];
        uint64_t value = limit_get(limits, limit);

        if (value <= (uint64_t) limit->most || (i == LIMIT_SWAP && value == LIMITS_SWAP_UNLIMITED))
            continue;
        return error_set(err, ERR_INVALID, 0, "%s.%s must be at most %lld%s", field->name,
                         limit->name,
                         (long long) limit->most / (limit->type == LIMIT_SHARE ? 1000 : 1),
                         limit->type == LIMIT_SIZE ? " bytes" : "");
    }
    return 0;
}

/* --- checks of texts ------------------------------------------------------------------------- */

/* Readable and on one line: it ends up in lists, logs and headers. */
static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char) *at < 0x20 || *at == 0x7f)
            return false;
    return utf8_is_valid(text, strlen(text));
}

static int plain_check(const char *field, const char *text, size_t most, struct error *err)
{
    if (!*text || strlen(text) > most || !is_plain(text))
        return error_set(err, ERR_INVALID, 0, "%s must be 1 to %zu characters on one line", field,
                         most);
    return 0;
}

static int text_check(const struct spec_field *field, const char *text, struct error *err)
{
    if (!text)
        return 0;
    if (plain_check(field->name, text, field->most, err) < 0)
        return -1;
    if (field->type == SPEC_FOLDER && *text != '/')
        return error_set(err, ERR_INVALID, 0, "%s must begin with '/'", field->name);
    return 0;
}

static int commands_check(const struct spec_field *field, const struct sandbox_texts *commands,
                          struct error *err)
{
    for (size_t i = 0; i < commands->count; i++) {
        size_t length = strlen(commands->items[i]);

        if (length == 0 || length > field->most || !utf8_is_valid(commands->items[i], length))
            return error_set(err, ERR_INVALID, 0, "%s[%zu] must be 1 to %zu bytes of UTF-8",
                             field->name, i, (size_t) field->most);
    }
    return 0;
}

/* --- checks of pairs ------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters, digits and '_', no digit first; of labels a digit may be, and `more` behind it. */
static bool is_word(const char *name, bool may_begin_with_digit, const char *more)
{
    if (!is_letter(*name) && !(may_begin_with_digit && is_digit(*name)))
        return false;
    for (const char *at = name; *at; at++)
        if (!is_letter(*at) && !is_digit(*at) && !strchr(more, *at))
            return false;
    return strlen(name) <= SANDBOX_WORD_MAX;
}

static int variable_check(const struct spec_field *field, const struct sandbox_pair *pair,
                          struct error *err)
{
    if (!is_word(pair->name, false, ""))
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
    if (!is_word(pair->name, true, ".-/"))
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
    if (plain_check("binds: a place", pair->name, SANDBOX_PATH_MAX, err) < 0)
        return -1;
    return plain_check("binds: a folder's name", pair->value, field->most, err);
}

static int pairs_check(const struct spec_field *field, const struct sandbox_pairs *pairs,
                       struct error *err)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const struct sandbox_pair *pair = &pairs->items[i];

        if ((field->type == SPEC_VARIABLES ? variable_check(field, pair, err)
             : field->type == SPEC_LABELS  ? label_check(field, pair, err)
                                           : bind_check(field, pair, err)) < 0)
            return -1;
    }
    return 0;
}

/* --- checks of rules and numbers ------------------------------------------------------------- */

static int rules_check(const struct spec_field *field, const struct sandbox_rules *rules,
                       struct error *err)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->items[i].to.bits > 32 ||
            rules->items[i].ports.first > rules->items[i].ports.last)
            return error_set(err, ERR_INVALID, 0,
                             "%s[%zu]: at most 32 bits, and ports from low to high", field->name,
                             i);
    return 0;
}

static int policy_check(const struct spec_field *field, const char *policy, struct error *err)
{
    AUTO(egress_policy) struct egress_policy read = EGRESS_POLICY_INIT;

    if (policy && egress_policy_parse(policy, strlen(policy), &read, err) < 0)
        return error_wrap(err, "%s", field->name);
    return 0;
}

static int time_check(const struct spec_field *field, uint64_t time_ms, struct error *err)
{
    char least[NUMBER_TEXT_SIZE], most[NUMBER_TEXT_SIZE];

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

static int count_check(const struct spec_field *field, uint64_t count, const char *what,
                       uint64_t most, struct error *err)
{
    if (count > most)
        return error_set(err, ERR_INVALID, 0, "%s: %zu%s; at most %zu", field->name, (size_t) count,
                         what, (size_t) most);
    return 0;
}

/* --- the types ------------------------------------------------------------------------------- */

/* What is done with a value depends on its C type alone, but for its check. */
enum spec_form {
    FORM_TEXT,
    FORM_PAIRS,
    FORM_TEXTS,
    FORM_RULES,
    FORM_LIMITS,
    FORM_NETWORK,
    FORM_PLAIN
};

static const struct {
    enum spec_form form;
    size_t size;
} forms[SPEC_TYPE_COUNT] = {
    [SPEC_NAME] = {FORM_TEXT, sizeof(char *)},
    [SPEC_TEXT] = {FORM_TEXT, sizeof(char *)},
    [SPEC_FOLDER] = {FORM_TEXT, sizeof(char *)},
    [SPEC_VARIABLES] = {FORM_PAIRS, sizeof(struct sandbox_pairs)},
    [SPEC_LABELS] = {FORM_PAIRS, sizeof(struct sandbox_pairs)},
    [SPEC_BINDS] = {FORM_PAIRS, sizeof(struct sandbox_pairs)},
    [SPEC_COMMANDS] = {FORM_TEXTS, sizeof(struct sandbox_texts)},
    [SPEC_RULES] = {FORM_RULES, sizeof(struct sandbox_rules)},
    [SPEC_POLICY] = {FORM_TEXT, sizeof(char *)},
    [SPEC_LIMITS] = {FORM_LIMITS, sizeof(struct limits)},
    [SPEC_DURATION] = {FORM_PLAIN, sizeof(uint64_t)},
    [SPEC_TIER] = {FORM_PLAIN, sizeof(uint64_t)},
    [SPEC_COUNT] = {FORM_PLAIN, sizeof(uint32_t)},
    [SPEC_FLAG] = {FORM_PLAIN, sizeof(bool)},
    [SPEC_NETWORK] = {FORM_NETWORK, sizeof(struct sandbox_network)},
};

static void value_done(enum spec_form form, void *at)
{
    if (form == FORM_TEXT)
        free(*(char **) at);
    else if (form == FORM_PAIRS)
        sandbox_pairs_done(at);
    else if (form == FORM_TEXTS)
        sandbox_texts_done(at);
    else if (form == FORM_RULES)
        free(((struct sandbox_rules *) at)->items);
}

static struct network_rule *rules_copy(const struct sandbox_rules *rules)
{
    struct network_rule *copy = NULL;

    if (rules->count) {
        copy = mem_alloc_array(rules->count, sizeof(*copy));
        memcpy(copy, rules->items, rules->count * sizeof(*copy));
    }
    return copy;
}

/* What was borrowed becomes its own. */
static void value_copy(enum spec_form form, void *at)
{
    char **text = at;
    struct sandbox_rules *rules = at;

    if (form == FORM_TEXT)
        *text = *text ? mem_copy_text(*text) : NULL;
    else if (form == FORM_PAIRS)
        *(struct sandbox_pairs *) at = sandbox_pairs_copy(at);
    else if (form == FORM_TEXTS)
        *(struct sandbox_texts *) at = sandbox_texts_copy(at);
    else if (form == FORM_RULES)
        rules->items = rules_copy(rules);
}

static bool rules_equal(const struct sandbox_rules *a, const struct sandbox_rules *b)
{
    for (size_t i = 0; a->count == b->count && i < a->count; i++) {
        const struct network_rule *one = &a->items[i], *other = &b->items[i];

        if (one->allow != other->allow || one->to.address != other->to.address ||
            one->to.bits != other->to.bits || one->protocol != other->protocol ||
            one->ports.first != other->ports.first || one->ports.last != other->ports.last)
            return false;
    }
    return a->count == b->count;
}

static bool text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool value_equal(const struct spec_field *field, const void *a, const void *b)
{
    const struct sandbox_network *network = a, *other_network = b;

    switch (forms[field->type].form) {
    case FORM_TEXT:
        return text_equal(*(char *const *) a, *(char *const *) b);
    case FORM_PAIRS:
        return sandbox_pairs_equal(a, b);
    case FORM_TEXTS:
        return sandbox_texts_equal(a, b);
    case FORM_RULES:
        return rules_equal(a, b);
    case FORM_LIMITS:
        return limits_equal(a, b);
    case FORM_NETWORK:
        return network->is_set == other_network->is_set && network->mode == other_network->mode;
    case FORM_PLAIN:
        break;
    }
    return memcmp(a, b, forms[field->type].size) == 0;
}

static int value_check(const struct spec_field *field, const void *at, struct error *err)
{
    const struct sandbox_pairs *pairs = at;
    const struct sandbox_texts *commands = at;
    const struct sandbox_rules *rules = at;

    switch (forms[field->type].form) {
    case FORM_TEXT:
        return field->type == SPEC_POLICY ? policy_check(field, *(char *const *) at, err)
                                          : text_check(field, *(char *const *) at, err);
    case FORM_PAIRS:
        return count_check(field, pairs->count, " entries", field->least, err) < 0
                   ? -1
                   : pairs_check(field, pairs, err);
    case FORM_TEXTS:
        return count_check(field, commands->count, " commands", field->least, err) < 0
                   ? -1
                   : commands_check(field, commands, err);
    case FORM_RULES:
        return count_check(field, rules->count, " entries", field->least, err) < 0
                   ? -1
                   : rules_check(field, rules, err);
    case FORM_LIMITS:
        return limits_check(field, at, err);
    case FORM_NETWORK:
    case FORM_PLAIN:
        break;
    }
    if (field->type == SPEC_COUNT)
        return count_check(field, *(const uint32_t *) at, "", field->most, err);
    return field->type == SPEC_DURATION || field->type == SPEC_TIER
               ? time_check(field, *(const uint64_t *) at, err)
               : 0;
}

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
    SPEC_EACH (field)
        value_done(forms[field->type].form, field_at(spec, field));
    *spec = (struct sandbox_spec){.name = NULL};
}

struct sandbox_spec sandbox_spec_copy(const struct sandbox_spec *spec)
{
    struct sandbox_spec copy = *spec;

    SPEC_EACH (field)
        value_copy(forms[field->type].form, field_at(&copy, field));
    return copy;
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct error *err)
{
    SPEC_EACH (field)
        if (value_check(field, field_of(spec, field), err) < 0)
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
    return value_equal(field, field_of(a, field), field_of(b, field));
}

bool sandbox_spec_equal(const struct sandbox_spec *a, const struct sandbox_spec *b)
{
    SPEC_EACH (field)
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

void sandbox_spec_apply(struct sandbox_spec *spec, const struct sandbox_change *change)
{
    SPEC_EACH (field) {
        enum spec_form form = forms[field->type].form;
        const void *wanted = field_of(&change->spec, field);
        void *at = field_at(spec, field);

        if (!(change->fields & 1U << (field - spec_fields)))
            continue;
        if (form == FORM_PAIRS) {
            sandbox_pairs_merge(at, wanted);
        } else if (form == FORM_LIMITS) {
            limits_merge(at, wanted);
        } else {
            value_done(form, at);
            memcpy(at, wanted, forms[field->type].size);
            value_copy(form, at);
        }
    }
}
