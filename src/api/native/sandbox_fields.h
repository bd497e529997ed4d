/* A sandbox in this dialect's JSON. Its spec, which is a part of it and what requests say, is that of
 * model/spec_json.h. */
#pragma once

#include "domain/caller.h"
#include "domain/sandbox/sandboxes.h"
#include "json/json_write.h"

/* One object. Values of variables are shown to those only who could read them inside. */
void sandbox_fields_write(struct json_writer *json, const struct sandbox *sandbox,
                          const struct caller *caller);

/* The same as one of several: where variables and commands are long they are left out, which
 * "brief" says. */
void sandbox_fields_write_brief(struct json_writer *json, const struct sandbox *sandbox,
                                const struct caller *caller);
