/* A Dockerfile, read: which steps make an image, in their order.
 *
 *     FROM debian                        once, first; only ARG may come before it
 *     ARG VERSION=1                      a variable of the build alone
 *     ENV PATH=/opt/bin:$PATH            also for what runs in the image; `ENV NAME all of it`, too
 *     WORKDIR src                        where the steps below run, and the image's commands
 *     USER daemon                        as whom
 *     COPY --chown=1000 a b/ /srv/       from the context; as words or as a JSON array
 *     RUN make && make install           /bin/sh -c; a JSON array is run as it is
 *     EXPOSE 80 53/udp
 *     CMD ["serve"]                      and ENTRYPOINT: words, or a line for /bin/sh -c
 *
 * Lines go on behind a backslash at their end; lines that begin with '#' are comments, also in
 * between. Everything else that Dockerfiles may hold is refused with its line, never passed over:
 * an image that was built without a step is worse than none. Pure: nothing is expanded here
 * (recipe_text.h) and nothing is done. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/pool.h"

#define RECIPE_SIZE_MAX  ((size_t) 1 << 20)
#define RECIPE_STEPS_MAX ((size_t) 512)
#define RECIPE_WORDS_MAX ((size_t) 256) /* of one step */

enum recipe_kind {
    RECIPE_FROM,
    RECIPE_ARG,
    RECIPE_ENV,
    RECIPE_WORKDIR,
    RECIPE_USER,
    RECIPE_COPY,
    RECIPE_RUN,
    RECIPE_EXPOSE,
    RECIPE_CMD,
    RECIPE_ENTRYPOINT,
    RECIPE_KINDS
};

struct recipe_step {
    enum recipe_kind kind;
    size_t line;        /* where it begins, from 1 */
    const char *text;   /* as one line, for people */
    const char *rest;   /* behind the instruction and its options */
    const char *owner;  /* COPY --chown; NULL: none */
    const char **words; /* of `rest`; quotes and variables are as they were written */
    size_t word_count;  /* of RUN, CMD and ENTRYPOINT: 0 unless is_json */
    bool is_json;       /* the words are texts of a JSON array */
};

struct recipe {
    struct recipe_step *steps;
    size_t count;
};

/* Read one; everything in it lives in `pool`. 0, or -1 with ERR_INVALID ("line 3: ...") or
 * ERR_TOO_LARGE. */
int recipe_read(const char *bytes, size_t length, struct pool *pool, struct recipe *ret_recipe,
                struct error *err);

/* The word of a kind, "RUN". */
const char *recipe_kind_text(enum recipe_kind kind);
