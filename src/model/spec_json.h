/* The spec of a sandbox as JSON, in two forms.
 *
 *     of the API   what requests say and answers show: durations are read as "30s", "5m", "1h" or
 *                  seconds and written as seconds; sizes are read as "512M" or bytes; cpu is a
 *                  number of processors; network rules are texts
 *     of rows      what the store keeps for ever: milliseconds, bytes, numbers. What is as in
 *                  SANDBOX_SPEC_INIT is left out, and so is the name, which has a column of its
 *                  own. Fields that are not known are ignored, so that an older daemon reads what
 *                  a newer one wrote
 *
 * Errors are ERR_INVALID with the path of the field, as in json_read.h. Pure. */
#pragma once

#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "model/spec.h"

#define SPEC_NAME_RULE "1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"

/* Read what may be said there, over what `spec` says (its owner frees it also on failure), and with
 * SPEC_CHANGE as a change: a pair that is null is removed, and a time that is null is the daemon's
 * default again. Fields that may not be said there and are not in `more` (NULL at its end; may be
 * NULL), which are the caller's business, are refused. `ret_fields` gets the SPEC_BITs of what was
 * said; may be NULL. */
int sandbox_spec_read_api(const struct json_place *body, enum spec_where where,
                          const char *const *more, struct sandbox_spec *spec,
                          unsigned int *ret_fields, struct error *err);

/* All of it as members of an object that is open. Values of variables and commands, which may hold
 * secrets, are shown when asked for. */
void sandbox_spec_write_api(struct json_writer *json, const struct sandbox_spec *spec,
                            bool shows_secrets);

/* Whether its variables and commands are too much to be shown for each of a list. */
bool sandbox_spec_is_long(const struct sandbox_spec *spec);

/* Values of variables become empty, and commands go: what answers show that keep secrets back. */
void sandbox_spec_shorten(struct sandbox_spec *spec);

/* The row's form: the members of an object, beside which there may be others. */
int sandbox_spec_read_members(const struct json_place *object, struct sandbox_spec *spec,
                              struct error *err);
void sandbox_spec_write_members(struct json_writer *json, const struct sandbox_spec *spec);

/* The same as a whole text. Writing: too much sets text->overflowed. Reading fills `ret_spec` (the
 * caller's, to be freed) or fails and frees. */
void sandbox_spec_write(const struct sandbox_spec *spec, struct text *text);
int sandbox_spec_read(const char *json, size_t length, struct sandbox_spec *ret_spec,
                      struct error *err);

/* A text of rows, parsed within its limits; an owned value, and the place of the object in it. NULL
 * with ERR_INVALID or ERR_TOO_LARGE. */
json_t *sandbox_spec_parse(const char *json, size_t length, struct json_place *ret_root,
                           struct error *err);

/* Its length in that form, without making it. */
size_t sandbox_spec_size(const struct sandbox_spec *spec);
