/* How OpenCode is started in a sandbox, and what the sandbox's agent says of its process. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "domain/harness.h"

#define OPENCODE_START_MAX ((size_t) 256 * 1024)

/* The body of POST /api/process/start. 0, or -1 with ERR_INVALID or ERR_TOO_LARGE. */
int opencode_start_write(const struct harness_place *place, struct text *body, struct error *err);

struct opencode_process {
    bool is_alive;
    int exit_code; /* -1: not known */
};

/* GET /api/process/ID: 0, or -1 when it is none. */
int opencode_process_read(const char *bytes, size_t length, struct opencode_process *ret_process);

/* It ended because there is no such program. */
bool opencode_process_is_missing(const struct opencode_process *process);

/* GET /api/process/ID/logs: at most `most` bytes of the end of stderr, of stdout when that is empty.
 * Owned; NULL when there is nothing. */
char *opencode_log_end(const char *bytes, size_t length, size_t most);

/* The last line with something in it; borrowed. */
const char *opencode_last_line(const char *text);

/* GET /global/health: "1.18.34", or "". */
void opencode_health_version(const char *bytes, size_t length, char *ret_version, size_t size);
