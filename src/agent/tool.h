/* A tool: a program of the image that a service runs to its end, git or mksquashfs.
 *
 *     tool_start ──► on_input ... ──► on_end
 *
 * What it writes is kept within bounds: the beginning of stdout, which is the answer, and the end
 * of stderr, which is the reason. The owner keeps the struct alive from tool_start to on_end; after
 * that it may be started again. Nothing is called back from inside. Only on the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/exec/exec.h"
#include "base/text.h"

struct agent;

/* The last of stderr that is kept. */
#define TOOL_COMPLAINT_MAX ((size_t) 8 * 1024)

/* What a program that does not exist, and one that ran out of time, end with in a shell. */
#define TOOL_EXIT_MISSING   127
#define TOOL_EXIT_TIMED_OUT 124

struct tool_options {
    const char *const *arguments;   /* a program and what it gets; never a shell's line */
    const char *const *environment; /* NULL: the agent's */
    const char *directory;          /* NULL: / */
    size_t output_max;              /* of stdout that is kept; 0: none */
    bool stream_input;              /* stdin is what tool_write says */
    int channel;                    /* borrowed for the call: its descriptor 3. 0: none */
    uint64_t timeout_ms;            /* after which it is killed; 0: none */
};

struct tool {
    /* The owner's own. */
    void (*on_end)(struct tool *tool, const struct exec_result *result);
    void (*on_input)(struct tool *tool, size_t length); /* as in exec_events; optional */

    /* Between on_end and the next start: the beginning of stdout. */
    struct text output;
    bool output_cut; /* there was more */

    struct agent *agent; /* from here on: private */
    struct exec *exec;   /* NULL: it does not run */
    struct text complaint;
    bool complaint_cut;
    struct exec_result failure; /* of a start that could not be tried */
    struct loop_task task;
};

/* Before the first start; the callbacks are set afterwards. */
void tool_init(struct tool *tool, struct agent *agent);

/* Free what was kept. It must not run. */
void tool_done(struct tool *tool);

/* Start it. Whatever goes wrong is told by on_end. */
void tool_start(struct tool *tool, const struct tool_options *options);

bool tool_is_running(const struct tool *tool);

/* See exec_write and exec_end_input. */
void tool_write(struct tool *tool, const void *bytes, size_t length);
void tool_end_input(struct tool *tool);

/* Ask it to end, or make it; on_end comes as usual. Safe when it does not run. */
void tool_terminate(struct tool *tool);
void tool_kill(struct tool *tool);

/* The end of stderr, whole lines only when it was cut. Borrowed until the next start. */
const char *tool_complaint(const struct tool *tool);

/* There is no such program. */
bool tool_is_missing(const struct exec_result *result);

/* As a shell would say it; -1 when nobody knows. */
int tool_exit_code(const struct exec_result *result);

/* It ran and ended with 0. */
bool tool_succeeded(const struct exec_result *result);
