/* What the domain asks of those who drive coding agents: an interface, because the domain speaks no
 * HTTP and reads no output. src/harness has the real one (OpenCode's server, programs that print
 * lines of JSON); tests have their own.
 *
 * The program that speaks for an agent in one sandbox is its agent server. There is one of a kind
 * in a sandbox, started when it is first needed, once for all who ask at the same time. Conversations
 * are threads with it, turns are one prompt and all that follows until it rests.
 *
 * Answers come exactly once, from the loop, never from inside the call. What a call is given is
 * copied, what an answer is given is borrowed for the call. The sandbox must run for as long as a
 * call or a turn lasts (hold a use). Nothing that an agent says is believed about anybody but its
 * own sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"

/* What a sandbox's agent server is started with. All texts may be NULL but `kind`. */
struct harness_place {
    struct id sandbox;
    const char *kind;    /* "opencode", "claude", "codex", "command" */
    const char *folder;  /* where it works; the sandbox's own when NULL */
    const char *config;  /* a JSON object of the caller's; our own members win over his */
    const char *command; /* of the kind "command": a shell command, the prompt in $BURROW_PROMPT */
    const char *permission; /* "allow", "ask", "reject" or a JSON object of OpenCode's */
    const char *models;     /* JSON: route of the broker by provider, {"anthropic": true, ...} */
    uint64_t start_ms;      /* how long it may take to be ready; 0: the daemon's default */
};

enum harness_state { HARNESS_ABSENT, HARNESS_STARTING, HARNESS_READY, HARNESS_FAILED };

/* An agent server as it is. */
struct harness_status {
    enum harness_state state;
    uint16_t port;       /* inside; 0: none, as for those that are one program a turn */
    const char *version; /* as it says; "" while not known */
    unsigned int starts; /* since the sandbox began to run */
    /* Of one that failed: the end of what it wrote to stderr, up to 4 kB; "" otherwise. An error has
     * room for a line of it. */
    const char *last_words;
};

/* ERR_UPSTREAM with the last line it wrote to stderr; ERR_UPSTREAM_TIMEOUT when it was not ready in time. */
typedef void harness_ready_done(void *context, const struct error *failure,
                                const struct harness_status *status);

struct harness_usage {
    uint64_t input, output, reasoning, cache_read, cache_write; /* tokens, as the agent tells */
    uint64_t cost_micros;
    bool is_cost_known;
};

struct harness_prompt {
    struct harness_place place;
    struct id turn;            /* ours; names it after a restart */
    const char *agent_session; /* the agent's own id of the conversation; NULL: begin one */
    const char *title;         /* of a new one; may be NULL */
    const char *parts;         /* a JSON array of OpenCode's parts; [{"type":"text","text":...}] */
    const char *provider, *model; /* may both be NULL: the config's */
    const char *agent;            /* which of OpenCode's agents ("build", "plan"); may be NULL */
};

/* How a turn ended. `answer`: all text of the last message of the agent. */
struct harness_result {
    const char *answer;
    const char *parts; /* JSON array, of that message, as OpenCode has them */
    const char *info;  /* JSON object of that message, or "{}" */
    const char *provider, *model;
    struct harness_usage usage;
    bool was_cancelled;
};

/* What a turn tells, in order. Each may be called from any turn of the loop until `ended`, which is the
 * last. `part` and `tool` are JSON objects in OpenCode's form, also from other kinds. */
struct harness_listener {
    /* Known as soon as there is one; keep it: with it the turn is found again after a restart. */
    void (*began)(void *context, const char *agent_session);
    void (*delta)(void *context, const char *part_id, const char *field, const char *text,
                  size_t length);
    /* A part that is complete, or has another state: text, reasoning, tool, step-start, ... */
    void (*part)(void *context, const char *part_id, const char *json);
    /* The agent asks and waits. `request` is its own id. */
    void (*permission)(void *context, const char *request, const char *json);
    void (*question)(void *context, const char *request, const char *json);
    /* Somebody answered, here or inside. */
    void (*answered)(void *context, const char *request, const char *reply);
    /* ERR_UPSTREAM "agent_lost": its server is gone and the turn with it; other failures as the agent
     * tells them. With a failure the result has what is known (may be NULL). */
    void (*ended)(void *context, const struct error *failure, const struct harness_result *result);
};

struct harness_turn;
typedef void harness_done(void *context, const struct error *failure);

struct harness {
    void *self;

    /* Start the agent server unless it is there, and answer when it can be prompted. */
    void (*ensure)(void *self, const struct harness_place *place, harness_ready_done *done,
                   void *context);
    /* As it is, without asking it. */
    void (*look)(void *self, const struct id *sandbox, const char *kind,
                 struct harness_status *ret_status);

    /* Ensures the server first. At most one turn of a conversation at a time. Never NULL. */
    struct harness_turn *(*prompt)(void *self, const struct harness_prompt *prompt,
                                   const struct harness_listener *listener, void *context);
    /* Follow a turn of before a restart of the daemon. Never prompts: when the agent rests, `ended` tells its
     * last message; when its server is gone, that it is lost. */
    struct harness_turn *(*find)(void *self, const struct harness_prompt *prompt,
                                 const struct harness_listener *listener, void *context);
    /* `ended` comes soon, with was_cancelled unless it was over already. */
    void (*cancel)(void *self, struct harness_turn *turn);
    /* Nothing more is told, `ended` included; what the agent does goes on. */
    void (*leave)(void *self, struct harness_turn *turn);

    /* "once", "always" or "reject" to a permission; a question takes JSON (answers) or NULL, to refuse. */
    void (*answer_permission)(void *self, struct harness_turn *turn, const char *request,
                              const char *reply, const char *message, harness_done *done,
                              void *context);
    void (*answer_question)(void *self, struct harness_turn *turn, const char *request,
                            const char *answers, harness_done *done, void *context);

    /* Flush what it keeps on disk, before the sandbox loses its memory. */
    void (*quiesce)(void *self, const struct id *sandbox, harness_done *done, void *context);
    /* The sandbox stopped or is gone: forget its agent servers. Turns end as lost. */
    void (*forget)(void *self, const struct id *sandbox);
};
