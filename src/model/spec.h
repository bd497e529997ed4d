/* What may be wished for of a sandbox: struct sandbox_spec, made from the rows of spec.def, and what
 * can be done with one. Its JSON is in spec_json.h. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "model/egress_policy.h"
#include "model/limits.h"
#include "model/network_rule.h"
#include "model/pairs.h"
#include "model/spec.def"

#define SANDBOX_NAME_MAX      128
#define SANDBOX_WORD_MAX      128 /* of images, kinds, names of labels and folders */
#define SANDBOX_PATH_MAX      1024
#define SANDBOX_VARIABLES_MAX 256
#define SANDBOX_LABELS_MAX    64
#define SANDBOX_TEXT_MAX      ((size_t) 32 * 1024)  /* of one variable's value */
#define SANDBOX_SPEC_MAX      ((size_t) 256 * 1024) /* of the whole spec as JSON */
#define SANDBOX_RULES_MAX     64
#define SANDBOX_BINDS_MAX     16
#define SANDBOX_LABEL_MAX     1024                                     /* of one label's value */
#define SANDBOX_DURATION_MAX  ((uint64_t) 10 * 365 * 24 * 3600 * 1000) /* ms: ten years */

/* Snapshots made by themselves: not more often, and how many are kept when nothing is said. With
 * snapshotKeepFor and no number, all that are young enough are kept. */
#define SANDBOX_SNAPSHOT_EVERY_MIN_MS ((uint64_t) 60 * 1000)
#define SANDBOX_SNAPSHOT_KEEP_MAX     10000
#define SANDBOX_SNAPSHOT_KEEP_DEFAULT 24

#define SANDBOX_STARTUP_MAX         16
#define SANDBOX_STARTUP_COMMAND_MAX ((size_t) 8 * 1024)

/* For a time that has a default of the daemon's, which 0 stands for. */
#define SANDBOX_NEVER UINT64_MAX

#define SANDBOX_SLEEP_AFTER_DEFAULT_MS ((uint64_t) 10 * 60 * 1000)

struct sandbox_network {
    bool is_set; /* else the daemon's default is meant */
    enum network_mode mode;
};

struct sandbox_rules {
    struct network_rule *items; /* owned */
    size_t count;
};

#define SPEC_C_NAME      char *
#define SPEC_C_TEXT      char *
#define SPEC_C_FOLDER    char *
#define SPEC_C_VARIABLES struct sandbox_pairs
#define SPEC_C_LABELS    struct sandbox_pairs
#define SPEC_C_BINDS     struct sandbox_pairs /* place -> name of a registered folder */
#define SPEC_C_COMMANDS  struct sandbox_texts
#define SPEC_C_DURATION  uint64_t
#define SPEC_C_TIER      uint64_t
#define SPEC_C_COUNT     uint32_t
#define SPEC_C_FLAG      bool
#define SPEC_C_LIMITS    struct limits
#define SPEC_C_NETWORK   struct sandbox_network
#define SPEC_C_RULES     struct sandbox_rules
#define SPEC_C_POLICY    char *

#define SPEC_MEMBER(member, TYPE, ...) SPEC_C_##TYPE member;

/* All that it points to is owned; sandbox_spec_done frees it. */
struct sandbox_spec {
    SPEC_FIELDS(SPEC_MEMBER)
};

#define SANDBOX_SPEC_INIT                                                                          \
    {                                                                                              \
        .sleep_after_ms = SANDBOX_SLEEP_AFTER_DEFAULT_MS                                           \
    }

void sandbox_spec_done(struct sandbox_spec *spec);
AUTO_DEFINE(sandbox_spec, struct sandbox_spec, sandbox_spec_done);

/* A deep copy. */
struct sandbox_spec sandbox_spec_copy(const struct sandbox_spec *spec);

/* Lengths, counts, names of variables ([A-Za-z_][A-Za-z0-9_]*) and labels, limits, rules, and that
 * the whole is at most SANDBOX_SPEC_MAX as JSON. Returns 0, or -1 with ERR_INVALID, the field's name
 * and what is allowed. What a sandbox may be called is the dialect's rule, but for the length. */
int sandbox_spec_check(const struct sandbox_spec *spec, struct error *err);

bool sandbox_spec_equal(const struct sandbox_spec *a, const struct sandbox_spec *b);

/* --- changes --------------------------------------------------------------------------------- */

#define SPEC_INDEX(member, ...) SPEC_INDEX_##member,
enum spec_index { SPEC_FIELDS(SPEC_INDEX) SPEC_FIELD_COUNT };

/* One field in a set: SPEC_BIT(sleep_after_ms). */
#define SPEC_BIT(member) (1U << SPEC_INDEX_##member)

/* What shall be different. Limits that are 0 stay as they are, and so do pairs that are not named; a
 * pair whose value is NULL is removed. */
struct sandbox_change {
    unsigned int fields; /* SPEC_BIT: the others of `spec` mean nothing */
    struct sandbox_spec spec;
};

void sandbox_change_done(struct sandbox_change *change);
AUTO_DEFINE(sandbox_change, struct sandbox_change, sandbox_change_done);
struct sandbox_change sandbox_change_copy(const struct sandbox_change *change);

void sandbox_spec_apply(struct sandbox_spec *spec, const struct sandbox_change *change);

bool limits_equal(const struct limits *a, const struct limits *b);

/* Limits that `wanted` does not say, being 0, stay as they are. */
void limits_merge(struct limits *limits, const struct limits *wanted);

/* --- the rows of spec.def -------------------------------------------------------------------- */

enum spec_type {
    SPEC_NAME,
    SPEC_TEXT,
    SPEC_FOLDER,
    SPEC_VARIABLES,
    SPEC_LABELS,
    SPEC_BINDS,
    SPEC_COMMANDS,
    SPEC_DURATION,
    SPEC_TIER,
    SPEC_COUNT,
    SPEC_FLAG,
    SPEC_LIMITS,
    SPEC_NETWORK,
    SPEC_RULES,
    SPEC_POLICY,
    SPEC_TYPE_COUNT
};

enum spec_where { SPEC_CREATE = 1, SPEC_TEMPLATE = 2, SPEC_CHANGE = 4 };

struct spec_field {
    const char *name, *row;
    enum spec_type type;
    size_t offset; /* in struct sandbox_spec */
    uint64_t least, most;
    unsigned int where;  /* enum spec_where */
    bool is_always;      /* shown */
    const char *option;  /* NULL: none, or those of its limits */
    const char *meaning; /* a phrase for the help and the documents */
};

extern const struct spec_field spec_fields[SPEC_FIELD_COUNT];

#define SPEC_EACH(field)                                                                           \
    for (const struct spec_field *field = spec_fields; field < spec_fields + SPEC_FIELD_COUNT;     \
         field++)

/* Whether that field is the same in both. */
bool spec_field_equal(const struct spec_field *field, const struct sandbox_spec *a,
                      const struct sandbox_spec *b);

enum limit_type { LIMIT_SIZE, LIMIT_NUMBER, LIMIT_SHARE };

struct limit_field {
    const char *name;
    enum limit_type type;
    size_t offset; /* in struct limits */
    int64_t most;
    const char *option, *meaning;
};

/* By enum limit. */
#define LIMIT_ONE(...) +1
enum { LIMIT_FIELD_COUNT = 0 LIMIT_FIELDS(LIMIT_ONE) };
extern const struct limit_field limit_fields[LIMIT_FIELD_COUNT];

uint64_t limit_get(const struct limits *limits, const struct limit_field *field);
void limit_set(struct limits *limits, const struct limit_field *field, uint64_t value);
