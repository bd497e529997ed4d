/* What a client wants to have watched, read and checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/call.h"
#include "agent/filewatch/file_watch_tree.h"
#include "base/format/ignore_pattern.h"

#define WATCH_PATTERNS_MAX 128

/* Of all patterns together. Every event is compared with all of them, and in the worst case every
 * character of its path with every character of theirs. */
#define WATCH_PATTERNS_SIZE_MAX ((size_t) 4 * 1024)

struct watch_request {
    const char *path;            /* normalized */
    const char *const *patterns; /* sorted, each once */
    size_t pattern_count;
    bool includes; /* the patterns are what is of interest; or what is not */
    bool recursive;
    unsigned changes;  /* bits by enum watch_change */
    const char *since; /* a version; NULL: none was given */
    const char *key;   /* the same for all who want the same */
};

/* Read the arguments of a call; all is of its pool. On failure the call is answered and -1
 * returned. Paths are inside `root`, by their text. */
int watch_request_read(struct call *call, const char *root, struct watch_request *ret_request);

/* The name clients know a change by. */
const char *watch_change_text(enum watch_change change);

/* A filter: what of all changes a request is about. */
struct watch_filter {
    struct ignore_pattern *patterns; /* owned */
    size_t count;
    bool includes;
    unsigned changes;
};

/* Make a filter that lives longer than the request. */
void watch_filter_init(struct watch_filter *filter, const struct watch_request *request);
void watch_filter_done(struct watch_filter *filter);

/* Whether a path passes. */
bool watch_filter_passes(const struct watch_filter *filter, const char *relative,
                         const char *absolute);
