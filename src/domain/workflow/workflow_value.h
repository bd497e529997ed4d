/* Values in workflows: found by paths, put into templates, compared. Pure.
 *
 *     trigger.data.items[0].name       steps.fetch.data["content type"]
 *     "Hello {{trigger.data.name}}"    a text that is one template becomes the value itself
 *
 * The scope is an object: {"trigger": ..., "steps": {...}}. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* What is at the path, borrowed; NULL: nothing. */
json_t *workflow_value_at(json_t *scope, const char *path);

/* A copy with every template in it replaced; what a path does not find is "" within a text, and null as
 * a whole. NULL with ERR_INVALID: a template that is not closed, or asks for the daemon's environment,
 * or the result is too large. */
json_t *workflow_value_fill(json_t *value, json_t *scope, struct error *err);

/* "equals", "contains", "greaterThan", ...: 1, 0, or -1 with ERR_INVALID for an unknown operator. A
 * value that is not there is NULL. */
int workflow_value_compare(const char *operator, json_t * actual, json_t *expected,
                           struct error *err);

/* "30s", "5 minutes", 1500 (ms) as milliseconds; false: none. */
bool workflow_value_duration(json_t *value, uint64_t *ret_ms);
