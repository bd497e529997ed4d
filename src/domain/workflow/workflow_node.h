/* The kinds of nodes there are. Most only compute: parameters, with their templates filled, and what is
 * known so far give a result. Some take time, and are done by workflow_run.c. Pure. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

enum workflow_work {
    WORKFLOW_COMPUTE,
    WORKFLOW_WAIT,    /* for a time */
    WORKFLOW_APPROVE, /* for somebody: resume is yes, terminate is no */
    WORKFLOW_ASK,     /* a task for an agent */
};

/* `node` is normal, `parameters` are filled; the scope has "trigger" and "steps". Returns the data of the
 * result, owned, or NULL with the failure. */
struct workflow_input {
    json_t *node, *parameters, *scope;
    const char *time; /* now, as text */
};
typedef json_t *workflow_compute(const struct workflow_input *input, struct error *err);

struct workflow_kind {
    const char *type;
    enum workflow_work work;
    workflow_compute *compute;
    const char *missing; /* why it cannot be done here, and what can; NULL: it can */
};

/* NULL: there is no such type. */
const struct workflow_kind *workflow_kind_find(const char *type);
