/* A provider `local` with a launcher of its own, for load programs.
 *
 * Whatever fails ends the program (load/fail.h); the launcher then takes down what it made. */
#pragma once

#include "net/loop.h"
#include "provider/launcher_process.h"
#include "provider/provider.h"

struct sandbox_session_options {
    struct launcher_process_options launcher;
    const char *image; /* NULL: the provider's default */
    size_t stock;
};

struct sandbox_session {
    struct loop loop;
    struct log *log; /* owned */
    struct launcher_process launcher;
    struct provider *provider; /* owned */
};

void sandbox_session_open(struct sandbox_session *session,
                          const struct sandbox_session_options *options);

/* Run the loop until something calls loop_stop. */
void sandbox_session_run(struct sandbox_session *session);

/* Blocks until the launcher has taken down everything. */
void sandbox_session_close(struct sandbox_session *session);
