/* One sandbox from its creation to its end, step by step, with the time each step took.
 *
 *     sandbox_life_create(&life, ...) -> sandbox_life_exec -> ... -> sandbox_life_destroy
 *
 * Each calls its `next` once, later, from the loop. The command is always /bin/true, without a
 * shell, through the agent's HTTP API. What fails ends the program. */
#pragma once

#include <stdbool.h>

#include "load/sandbox_session.h"
#include "net/http/http_client.h"

struct sandbox_life;

typedef void sandbox_life_step(struct sandbox_life *life);

struct sandbox_life {
    struct sandbox_session *session; /* borrowed */
    void *owner;                     /* the caller's */
    struct id id;
    bool was_ready; /* it came out of the stock */
    /* The clock of load/samples.h, at the call and at the answer of the step of that name. */
    uint64_t create_begin, create_end, exec_begin, exec_end, destroy_begin, destroy_end;

    /* The life's own. */
    sandbox_life_step *next;
    struct http_origin *agent;
    bool has_succeeded; /* the command: exit code 0 was seen */
};

/* `ready`: one out of the stock will do. All limits are set. */
void sandbox_life_create(struct sandbox_life *life, struct sandbox_session *session, bool ready,
                         sandbox_life_step *next);

void sandbox_life_exec(struct sandbox_life *life, sandbox_life_step *next);

void sandbox_life_destroy(struct sandbox_life *life, sandbox_life_step *next);
