/* The words behind `burrow run`: which sandbox, and which command in it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "cli/run/run_message.h"
#include "model/limits.h"
#include "model/network_rule.h"

#define RUN_BINDS_MAX     16
#define RUN_VARIABLES_MAX 1024
#define RUN_WORDS_MAX     16384
#define RUN_TIMEOUT_MS    (UINT64_C(30) * 24 * 3600 * 1000)

/* A folder of this machine, seen read-only in the sandbox. */
struct run_bind {
    const char *source; /* as given: may be relative */
    const char *place;
};

struct run_options {
    const char *image; /* NULL: the default */
    struct limits limits;
    unsigned int chosen; /* LIMIT_BIT(...): those that were named, not defaults */
    enum network_mode network;
    struct run_variable *variables; /* in the pool; the last of a name counts */
    size_t variable_count;
    struct run_bind binds[RUN_BINDS_MAX];
    size_t bind_count;
    const char *directory;      /* in the sandbox; NULL: the usual one */
    uint64_t timeout_ms;        /* 0: none */
    const char *data;           /* NULL: the launcher's default */
    const char *run_folder;     /* likewise */
    const char *cgroup;         /* likewise */
    const char *network_name;   /* likewise */
    const char *memory_text;    /* the memory limit as it was given, for messages */
    const char *const *command; /* NULL at the end; empty with an image: the one that it names */
    size_t command_count;
    bool terminal;
    bool plan;
    bool help;
};

/* Read them. `environment` is for --env NAME without a value. Texts are borrowed from `words` and
 * `environment`, or live in the pool. Returns 0, or -1 with ERR_INVALID and a sentence. */
int run_options_read(int count, char *const *words, const char *const *environment,
                     struct pool *pool, struct run_options *ret_options, struct error *err);

/* What --help says: every option, its default, and what the exit status means. */
void run_options_describe(struct text *text);
