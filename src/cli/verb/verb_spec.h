/* Options that say what a sandbox shall be, for the verbs that have them: create, fork, template.
 *
 *     static const struct verb_option options[] = {VERB_SPEC_OPTIONS {NULL, 0, NULL, NULL, false}};
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/verb/verb.h"
#include "model/spec.def"

/* A row of model/spec.def as options; the macros of its last column. */
#define SPEC_NO_OPTION(meaning)
#define SPEC_OPTION(name, letter, value, meaning)  {name, letter, value, meaning, false},
#define SPEC_OPTIONS(name, letter, value, meaning) {name, letter, value, meaning, true},
#define SPEC_LIMIT_OPTIONS(meaning)                LIMIT_FIELDS(VERB_LIMIT_OPTION)

#define VERB_LIMIT_OPTION(member, TYPE, limit, name, most, ...) __VA_ARGS__
#define VERB_NEW_OPTION(member, TYPE, name, row, least, most, WHERE, SHOWN, ...)                   \
    SPEC_IN_CREATE_##WHERE(__VA_ARGS__)
#define VERB_CHANGE_OPTION(member, TYPE, name, row, least, most, WHERE, SHOWN, ...)                \
    SPEC_IN_CHANGE_##WHERE(__VA_ARGS__)

/* What may also be changed later; and all that a new one may have. */
#define VERB_CHANGE_OPTIONS SPEC_FIELDS(VERB_CHANGE_OPTION)
#define VERB_SPEC_OPTIONS   SPEC_FIELDS(VERB_NEW_OPTION)

/* A policy (model/egress_policy.h) as people write it: JSON, or "@" and the file it is in. Owned; NULL
 * with ERR_INVALID. */
json_t *verb_read_policy(const char *text, struct error *err);

/* Put into `body` what the options of a call say. Return 0, or -1 with ERR_INVALID. */
int verb_add_changes(const struct verb_call *call, json_t *body, struct error *err);
int verb_add_spec(const struct verb_call *call, json_t *body, struct error *err);
