/* A part of a message as text: what an agent tells is passed on with an end to its size. Long strings
 * anywhere in it are cut, and then it says "truncated": true. Pure. */
#pragma once

#include <jansson.h>

#include "base/text.h"

#define PART_STRING_MAX ((size_t) 64 * 1024)
#define PART_JSON_MAX   ((size_t) 1024 * 1024)

/* Replace `out` by the part, an object. What is too large even so becomes {"id","type","truncated"}. */
void part_json_write(const json_t *part, struct text *out);
