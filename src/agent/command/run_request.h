/* What a client says on /burrow/run, read and checked: first the command, then orders about it. See
 * agent/command/run.h. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/api_error.h"
#include "agent/exec/exec.h"
#include "agent/variables.h"
#include "base/pool.h"

#define RUN_ARGUMENTS_MAX     ((size_t) 16384)
#define RUN_TEXT_MAX          ((size_t) 1024 * 1024)
#define RUN_PATH_MAX          ((size_t) 4095)
#define RUN_USER_MAX          ((size_t) 64)
#define RUN_TERMINAL_NAME_MAX ((size_t) 64)
#define RUN_TERMINAL_SIZE_MAX 4096 /* columns or rows */
#define RUN_TIMEOUT_MAX       (INT64_C(365) * 24 * 3600 * 1000)

struct run_request {
    const char *const *arguments; /* NULL: `command` is for the shell */
    const char *command;
    const char *directory; /* NULL: the usual one */
    const char *user;      /* NULL: the agent's own */
    struct variables variables;
    uint64_t timeout_ms; /* 0: none */
    bool has_terminal;
    struct exec_terminal terminal;
    const char *terminal_name; /* for TERM */
};

/* {"argv":[...] or "command":"...", "cwd", "env", "user", "timeout",
 * "terminal":{"columns","rows","name"}}. What is returned lives in the pool or in `message`.
 * Returns 0, or -1 with the error to tell. */
int run_request_read(json_t *message, struct pool *pool, struct run_request *ret_request,
                     struct api_error *error);

enum run_order_type { RUN_ORDER_RESIZE, RUN_ORDER_SIGNAL, RUN_ORDER_EOF, RUN_ORDER_CLOSE };

struct run_order {
    enum run_order_type type;
    struct exec_terminal size;
    int signal;
    enum exec_output output; /* to close */
};

/* {"type":"resize","columns","rows"}, {"type":"signal","signal":"INT"}, {"type":"eof"} or
 * {"type":"close","channel":1}. */
int run_order_read(json_t *message, struct run_order *ret_order, struct api_error *error);

/* The number of "INT", "KILL" and so on; 0 when there is no such signal. */
int run_signal_number(const char *name);
