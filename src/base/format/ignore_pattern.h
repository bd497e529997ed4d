/* One pattern for names or paths, as git, mksquashfs, Docker and file watches write them.
 *
 *     ?         any byte but '/'              \x   x itself
 *     *         any bytes but '/'             [a-z] [!a-z] [^a-z] [[:digit:]]   one byte of these
 *     **        in a path, as a whole step: any number of folders, or at the end all in one;
 *               Docker's and a watch's also within a step: any bytes
 *
 * A watch's pattern names whole names of a path, anywhere in it: "src" finds src, src/a.c and
 * lib/src/a.c but not src2; "*.ts" finds x/a.ts. So whatever is below a folder that is found is
 * found too. One that begins with '/' is for absolute paths, from their beginning. "./" in front
 * and '/' behind mean nothing, '?' is one character of UTF-8 (or a byte that is none), and a
 * backslash is one.
 *
 * The time to compare is at most the product of both lengths, whatever they hold. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/* Bytes of a pattern; longer ones are refused. Paths that are compared may have any length. */
#define IGNORE_PATTERN_MAX ((size_t) 4096)
#define IGNORE_WATCH_MAX   ((size_t) 1024)

enum ignore_dialect {
    IGNORE_GIT_NAME, /* for one name: "**" is "*" */
    IGNORE_GIT_PATH,
    IGNORE_DOCKER, /* for paths; [!a] is a '!' or an a */
    IGNORE_SHELL, /* for one name: wildcards do not match a dot at its beginning, '[' without an end
                     is itself */
    IGNORE_WATCH, /* for parts of paths; the []{} of other dialects are refused */
};

struct ignore_token;

struct ignore_pattern {
    struct ignore_token *tokens; /* owned */
    size_t count;
    uint64_t (*classes)[4]; /* owned: a bit for each byte */
    size_t class_count;
    bool is_literal; /* no wildcards */
    bool is_part;    /* IGNORE_WATCH, as is_absolute */
    bool is_absolute;
    bool hidden_is_literal; /* IGNORE_SHELL */
};

/* Returns 0, or -EINVAL for a pattern that can match nothing or is too long; then there is nothing
 * to free. */
int ignore_pattern_read(const char *text, size_t length, enum ignore_dialect dialect,
                        struct ignore_pattern *ret_pattern);

void ignore_pattern_done(struct ignore_pattern *pattern);

AUTO_DEFINE(ignore_pattern, struct ignore_pattern, ignore_pattern_done);

bool ignore_pattern_matches(const struct ignore_pattern *pattern, const char *text, size_t length);

/* Whether a watch's pattern is found in `relative`, a path without '/' in front; or in `absolute`,
 * when it is for those. */
bool ignore_pattern_finds(const struct ignore_pattern *pattern, const char *relative,
                          const char *absolute);

/* The memory it takes. */
size_t ignore_pattern_size(const struct ignore_pattern *pattern);
