/* Building an image by a Dockerfile: each step that does something is done in a sandbox of its own,
 * on what the steps before it made, and what it changed becomes a layer.
 *
 *     parent image ──► sandbox: RUN, COPY or WORKDIR ──► its disk, packed by a keeper
 *                                                       ──► a layer ──► the image step-<key>
 *
 * The key says all that the outcome depends on (recipe/draft.h), so a step whose key is known is
 * not done again. The name that is built is registered last: a build that fails has changed nothing
 * but what it remembers of the steps that went well. Blocks, and tells on stdout what it does. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "programs/burrow/image_registry.h"
#include "programs/burrow/workshop.h"

struct image_build {
    const char *name;             /* of the image to be */
    const char *folder;           /* the context */
    const char *file;             /* the Dockerfile; NULL: that of the context */
    const char *const *arguments; /* NAME=VALUE for ARG; NULL at the end */
    bool no_cache;                /* do every step, known or not */
    struct image_place place;
    struct workshop_options workshop;
};

/* 0, or -1 with `err`, which names the line of the step that failed. */
int image_build(const struct image_build *options, struct error *err);
