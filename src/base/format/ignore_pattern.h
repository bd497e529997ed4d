/* One pattern for names or paths, as git, mksquashfs and Docker write them.
 *
 *     ?         any byte but '/'              \x   x itself
 *     *         any bytes but '/'             [a-z] [!a-z] [^a-z] [[:digit:]]   one byte of these
 *     **        in a path, as a whole step: any number of folders, or at the end all in one;
 *               Docker's also within a step: any bytes
 *
 * The time to compare is at most the product of both lengths, whatever they hold. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/* Bytes of a pattern; longer ones are refused. Paths that are compared may have any length. */
#define IGNORE_PATTERN_MAX ((size_t) 4096)

enum ignore_dialect {
    IGNORE_GIT_NAME, /* for one name: "**" is "*" */
    IGNORE_GIT_PATH,
    IGNORE_DOCKER, /* for paths; [!a] is a '!' or an a */
    IGNORE_SHELL, /* for one name: wildcards do not match a dot at its beginning, '[' without an end
                     is itself */
};

struct ignore_token;

struct ignore_pattern {
    struct ignore_token *tokens; /* owned */
    size_t count;
    uint64_t (*classes)[4]; /* owned: a bit for each byte */
    size_t class_count;
    bool is_literal;        /* no wildcards */
    bool hidden_is_literal; /* IGNORE_SHELL */
};

/* Returns 0, or -EINVAL for a pattern that can match nothing or is too long; then there is nothing
 * to free. */
int ignore_pattern_read(const char *text, size_t length, enum ignore_dialect dialect,
                        struct ignore_pattern *ret_pattern);

void ignore_pattern_done(struct ignore_pattern *pattern);

AUTO_DEFINE(ignore_pattern, struct ignore_pattern, ignore_pattern_done);

bool ignore_pattern_matches(const struct ignore_pattern *pattern, const char *text, size_t length);

/* The memory it takes. */
size_t ignore_pattern_size(const struct ignore_pattern *pattern);
