/* The context of a build: a folder of whoever builds, from which COPY takes.
 *
 *     sources     paths or patterns ("src/a?.c", "*.txt", each name for itself), from the top of
 * the context on; never out of it. What .dockerignore names is not there (context_ignore.h) a
 * folder    its content is copied, not the folder itself a link      is copied as a link and never
 * followed
 *
 * What is copied becomes a tar archive, sorted by name, and a digest that says what is in it:
 * names, types, modes, contents, link targets; not times and owners. Blocks; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/encoding/sha256.h"
#include "base/error.h"

#define CONTEXT_ENTRIES_MAX ((size_t) 1 << 20)
#define CONTEXT_DEPTH_MAX   128
#define CONTEXT_NAMES_MAX   ((size_t) 1 << 20)   /* in one folder */
#define CONTEXT_FREE_MIN    ((uint64_t) 2 << 30) /* stays free where the archive is written */

struct context;

/* Open the folder at `path` and read its .dockerignore. NULL with `err`. */
struct context *context_open(const char *path, struct error *err);

/* A file at the top of the context, whole, with a NUL behind it (free with free). A link is not
 * followed: root reads it, and whoever made the context must not choose what. 0, or -1 with `err`:
 * ERR_NOT_FOUND, ERR_INVALID for what is no file, ERR_TOO_LARGE beyond `limit`. */
int context_read(const struct context *context, const char *name, size_t limit, char **ret_bytes,
                 size_t *ret_length, struct error *err);

/* Accepts NULL. */
void context_close(struct context *context);
AUTO_DEFINE_PTR(context, struct context, context_close);

struct context_order {
    const char *const *sources;
    size_t count;
    const char *name;  /* of the copy, when it is one file; NULL: its own */
    const char *below; /* folders of the archive that are made first and get all of it ("a/b") */
    uid_t uid;         /* whose all of it is */
    gid_t gid;
    int archive; /* borrowed: where the tar goes; -EBADF: only the digest is wanted */
};

struct context_result {
    uint8_t digest[SHA256_SIZE]; /* the same for every `name`, `below`, owner */
    bool is_one_file;            /* one source, and it is no folder */
    size_t entries;
};

/* Copy. 0, or -1 with `err`: ERR_NOT_FOUND when nothing has that name, ERR_INVALID for a path that
 * leads out or something that cannot be copied (a socket), ERR_TOO_LARGE, ERR_NO_SPACE. */
int context_copy(const struct context *context, const struct context_order *order,
                 struct context_result *ret_result, struct error *err);
