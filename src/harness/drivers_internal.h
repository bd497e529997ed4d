/* Inside the harness: what its modules share. Nothing else includes this. */
#pragma once

#include "base/list.h"
#include "harness/drivers.h"
#include "harness/query.h"
#include "harness/roll.h"

struct drivers {
    struct drivers_options options;
    struct harness harness;
    struct list servers; /* of opencode_server */
    struct list turns;   /* of harness_turn */
    struct roll roll;
    void (*done)(void *context);
    void *context;
};

/* What each kind of turn can do; the functions of struct harness. */
struct turn_driver {
    void (*cancel)(struct harness_turn *turn);
    void (*leave)(struct harness_turn *turn);
    void (*answer)(struct harness_turn *turn, bool is_question, const char *request,
                   const char *reply, const char *message, harness_done *done, void *context);
    /* The sandbox stopped: ends as lost. */
    void (*lose)(struct harness_turn *turn);
};

/* The head of each kind of turn. */
struct harness_turn {
    struct list link; /* of drivers->turns */
    struct drivers *drivers;
    const struct turn_driver *driver;
    struct id sandbox;
};

/* Ask the container API of a sandbox. */
struct query *drivers_ask_agent(struct drivers *drivers, const struct id *sandbox,
                                const struct query_request *request, query_done *done,
                                void *context);

/* Turns of the two kinds. */
struct harness_turn *opencode_turn_begin(struct drivers *drivers,
                                         const struct harness_prompt *prompt, bool is_find,
                                         const struct harness_listener *listener, void *context);
struct harness_turn *command_turn_begin(struct drivers *drivers,
                                        const struct harness_prompt *prompt, bool is_find,
                                        const struct harness_listener *listener, void *context);

/* An answer to a caller, from the loop. */
void drivers_answer_later(struct drivers *drivers, harness_done *done, void *context,
                          const struct error *failure);
