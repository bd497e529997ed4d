/* What the domain asks of a sandbox's agent: an interface, because the domain speaks no HTTP.
 * The api layer has the one that does (api/inside_agent.h); tests have their own.
 *
 * Each answer comes exactly once, from the loop, never from inside the call. An agent is not
 * trusted: what it says about itself decides only about its own sandbox. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"

/* What goes on inside: GET /burrow/activity. */
struct inside_activity {
    bool is_busy;     /* running commands, open streams and terminals, processes marked busy */
    uint64_t idle_ms; /* since the last of that; 0 while busy */
};

typedef void inside_activity_done(void *context, const struct error *failure,
                                  const struct inside_activity *activity);
/* `text` is JSON of the agent's, borrowed; NULL on failure. */
typedef void inside_text_done(void *context, const struct error *failure, const char *text);
typedef void inside_done(void *context, const struct error *failure);

/* What it takes, what it answers. */
enum inside_operation {
    INSIDE_EXECUTE,    /* {"argv", "cwd"}: {"exitCode", "stdout", "stderr"} */
    INSIDE_CHECK_OUT,  /* {"repoUrl", "targetDir", "branch", "depth"} */
    INSIDE_WRITE_FILE, /* {"path", "content", "encoding"}; folders above it are made */
};

struct inside {
    void *self;
    void (*activity)(void *self, const struct id *sandbox, inside_activity_done *done,
                     void *context);
    /* Flush and hold still before a freeze or stop; and go on. */
    void (*quiesce)(void *self, const struct id *sandbox, inside_done *done, void *context);
    void (*resume)(void *self, const struct id *sandbox, inside_done *done, void *context);
    /* Sessions with cwd and environment, to be given to the next agent on the same disk; and with
     * them, as members before them, what set_environment takes: "replace" and "env". */
    void (*save)(void *self, const struct id *sandbox, inside_text_done *done, void *context);
    void (*restore)(void *self, const struct id *sandbox, const char *text, inside_done *done,
                    void *context);
    /* Variables for everything started from now on: the whole set. */
    void (*set_environment)(void *self, const struct id *sandbox, const char *json,
                            inside_done *done, void *context);
    /* Names that lead to the egress broker, and whom to trust there: {"hosts": [{"address", "name"}],
     * "authority": PEM or null}. The whole of it: what was told before is forgotten. */
    void (*set_way_out)(void *self, const struct id *sandbox, const char *json, inside_done *done,
                        void *context);
    /* Start a shell command in the background; answered when it runs, not when it ends. */
    void (*start_process)(void *self, const struct id *sandbox, const char *command,
                          inside_done *done, void *context);
    /* Make `folder` exactly what comes out of the descriptor `tar` (duplicated), a tar stream until
     * its end; after a failure it has what it had before. */
    void (*extract)(void *self, const struct id *sandbox, const char *folder, int tar,
                    inside_done *done, void *context);
    /* One of the agent's own operations: JSON in, JSON back. */
    void (*operate)(void *self, const struct id *sandbox, enum inside_operation operation,
                    const char *json, uint64_t timeout_ms, inside_text_done *done, void *context);
    /* The sandbox is gone or stopped: forget connections to it. No answer. */
    void (*forget)(void *self, const struct id *sandbox);
};
