/* What a client asks of commands.execute and commands.executeStream, read and checked.
 *
 * Cloudflare's fields, and some of ours: `argv` instead of `command` (no shell), `stdin` with
 * `stdinEncoding`, `encoding` ("utf-8" or "base64") for the output, `user` (a name or number, not
 * in sessions), and `plain`: an answer without command, session and time. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/api_error.h"
#include "agent/variables.h"
#include "base/pool.h"

#define EXECUTE_BODY_MAX      ((size_t) 8 * 1024 * 1024)
#define EXECUTE_COMMAND_MAX   ((size_t) 1024 * 1024)
#define EXECUTE_PATH_MAX      ((size_t) 4095)
#define EXECUTE_USER_MAX      ((size_t) 64)
#define EXECUTE_ARGUMENTS_MAX ((size_t) 16384)
#define EXECUTE_TIMEOUT_MAX   (INT64_C(365) * 24 * 3600 * 1000)

struct execute_request {
    const char *command;          /* for the shell; with `arguments` only to be repeated */
    const char *const *arguments; /* NULL: the shell decides */
    const char *directory;        /* NULL: the usual one */
    const char *user;             /* NULL: the agent's own */
    struct variables variables;
    const char *input; /* NULL: none */
    size_t input_length;
    uint64_t timeout_ms; /* 0: none */
    bool base64;
    bool background;
    bool plain; /* say nothing that the client knows already */
};

/* Everything returned lives in the pool or in `body`. Returns 0, or -1 with the error to answer. */
int execute_request_read(json_t *body, struct pool *pool, struct execute_request *ret_request,
                         struct api_error *error);
