/* An image while it is built: what the steps so far have made of the one it began with.
 *
 * Steps that only say something (ENV, USER, CMD, ...) are done here. Those that do something (RUN,
 * COPY, and WORKDIR, whose folder has to be there) are the caller's to do; here is the key by which
 * the outcome of such a step is found again. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/encoding/sha256.h"
#include "base/text.h"
#include "recipe/recipe.h"
#include "wire/wire_image.h"

#define DRAFT_ARGUMENTS_MAX ((size_t) 256)
/* Of all layers that one build makes: the limits of an import. */
#define DRAFT_BYTES_MAX   ((uint64_t) 64 << 30)
#define DRAFT_ENTRIES_MAX ((uint64_t) 4 << 20)
/* Before the digits of a key: the names of images between two steps (launcher/image/image.h). */
#define DRAFT_STEP_PREFIX "step-"
#define DRAFT_STEP_DIGITS 56
#define DRAFT_STEP_SIZE   (sizeof(DRAFT_STEP_PREFIX) + DRAFT_STEP_DIGITS)

struct draft {
    struct wire_image image;     /* owned */
    struct wire_image arguments; /* owned: those of ARG, as its environment */
    struct wire_image before;    /* owned: likewise, those before FROM */
    const char *const *given;    /* borrowed: NAME=VALUE of whoever builds, NULL at the end */
    bool has_command;            /* CMD was among the steps */
    const char *identity;        /* borrowed: of the base, besides its name; NULL: it has layers */
    uint64_t bytes, entries;     /* of the layers that steps made */
};

#define DRAFT_INIT                                                                                 \
    {                                                                                              \
        .image = WIRE_IMAGE_INIT, .arguments = WIRE_IMAGE_INIT, .before = WIRE_IMAGE_INIT          \
    }

void draft_done(struct draft *draft);
AUTO_DEFINE(draft, struct draft, draft_done);

/* Do what can be done here: of RUN and COPY nothing, of WORKDIR its name. FROM: the caller sets the
 * image. 0, or -1 with ERR_INVALID or ERR_TOO_LARGE and the line. */
int draft_apply(struct draft *draft, const struct recipe_step *step, struct error *err);

/* FROM was done: arguments from before it are no more, except to an ARG that names one again and
 * gives it no value. */
void draft_begin(struct draft *draft);

/* Append a text with its variables replaced, those of ENV before those of ARG. 0 or -1. */
int draft_expand(const struct draft *draft, const char *text, struct text *out, struct error *err);

/* Append an absolute path: `path` from the working directory on, in its one spelling. A '/' at the
 * end is lost. */
void draft_path(const struct draft *draft, const char *path, struct text *out);

/* The value of a variable of the environment, borrowed, or NULL. */
const char *draft_variable(const struct draft *draft, const char *name);

/* A step makes a layer with so much in it. 0, or -1 with ERR_TOO_LARGE: a build has no more room on
 * the disk than an import. */
int draft_count(struct draft *draft, uint64_t bytes, uint64_t entries, struct error *err);

/* The name of the image that a step makes of this one. Of a step of COPY `digest` says what is
 * copied; NULL: nothing is. Without a step: the name of the image as it is. */
void draft_key(const struct draft *draft, const struct recipe_step *step, const uint8_t *digest,
               char ret_name[static DRAFT_STEP_SIZE]);
