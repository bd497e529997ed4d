/* A walk: several questions to a sandbox's agent, one after the other, written down as a table.
 *
 *     static const struct visit_step steps[] = {
 *         {"look for a clone", .ask = ask_look, .take = take_look},
 *         {"clone", .ask = ask_clone},
 *         {"write the files", .ask = ask_file, .repeats = true},
 *     };
 *     static const struct visit_plan plan = {steps, ARRAY_COUNT(steps), finished};
 *
 *     visit_walk_begin(&mine->walk, visit, &plan);
 *
 * The first failure ends it and is answered in the dialect of the route. A client that leaves ends
 * it like any visit.
 *
 * The walk lives in the handler's own data, in the request's pool, and uses visit->data: functions
 * of steps find their data around it (CONTAINER_OF). All of the loop's thread, none blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/agent/agent_call.h"
#include "api/agent/visit.h"

struct visit_walk;

struct visit_step {
    const char *name; /* for people: put before the message of a failure */
    /* Fill in what to ask; what it points to lives in the request's pool. False: nothing (more). */
    bool (*ask)(struct visit_walk *walk, struct agent_request *request);
    /* Look at the answer, whatever its status: 0, or -1 with the failure. NULL: any good one will
     * do (agent_reply_error). */
    int (*take)(struct visit_walk *walk, const struct agent_reply *reply, struct error *err);
    bool repeats; /* until there is nothing more to ask */
};

struct visit_plan {
    const struct visit_step *steps;
    size_t count;
    /* All went well: answer. */
    void (*finished)(struct visit_walk *walk);
    /* It ended otherwise and is, or will be, answered: free what is not in the pool. May be NULL.
     * One of the two is the last call. */
    void (*dropped)(struct visit_walk *walk);
};

struct visit_walk {
    struct visit *visit;           /* borrowed */
    const struct visit_plan *plan; /* borrowed: static */
    size_t at;
};

void visit_walk_begin(struct visit_walk *walk, struct visit *visit, const struct visit_plan *plan);
