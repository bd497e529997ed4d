/* A sandbox in this dialect's JSON: what it looks like, and what may be wished for.
 *
 * Durations are read as "30s", "5m", "1h" or seconds and written as seconds; sizes are read as
 * "512M" or bytes and written as bytes; cpu is a number of processors. Unknown fields are refused.
 */
#pragma once

#include "domain/caller.h"
#include "domain/sandbox/sandboxes.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define NATIVE_NAME_RULE "1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"

/* One object. Values of variables are shown to those only who could read them inside. */
void sandbox_fields_write(struct json_writer *json, const struct sandbox *sandbox,
                          const struct caller *caller);

/* What was wished for, as members of an object that is open. */
void sandbox_fields_write_spec(struct json_writer *json, const struct sandbox_spec *spec,
                               bool shows_values);

/* The body of a create, over a spec: SANDBOX_SPEC_INIT, or what a template says (whose name in the
 * body is the caller's business). The spec is the caller's, to be freed also on failure. Returns 0,
 * or -1 with ERR_INVALID. */
int sandbox_fields_read(const struct json_place *body, struct sandbox_spec *spec,
                        struct error *err);

/* The same for the body of a template, which has no name and may have a snapshot (the caller's
 * business). */
int sandbox_fields_read_template(const struct json_place *body, struct sandbox_spec *spec,
                                 struct error *err);

/* The body of a change. It points into itself: do not copy it. */
struct sandbox_fields_change {
    struct sandbox_update update;
    struct sandbox_spec spec;
    struct sandbox_pairs environment, labels; /* values may be NULL: removed */
};

/* `sandbox` has the limits that stay. Call sandbox_fields_change_done also on failure. */
int sandbox_fields_read_change(const struct json_place *body, const struct sandbox *sandbox,
                               struct sandbox_fields_change *ret_change, struct error *err);

/* The same for the body of a fork, which may have a count and freeze (the caller's business). */
int sandbox_fields_read_fork(const struct json_place *body,
                             struct sandbox_fields_change *ret_change, struct error *err);
void sandbox_fields_change_done(struct sandbox_fields_change *change);

AUTO_DEFINE(sandbox_fields_change, struct sandbox_fields_change, sandbox_fields_change_done);
