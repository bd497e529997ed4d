/* What the files of domain/workspace share. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox_use.h"
#include "domain/vault.h"
#include "domain/workspace/workspace.h"

#define WORKSPACE_KEY_SIZE (sizeof("workspaces//.json") + ID_LENGTH)

/* How many syncs and restores go on at once; the others wait. */
#define WORKSPACE_RUNS_MAX 4

struct workspace {
    struct table_link by_sandbox;
    struct list link; /* all */
    struct id sandbox, owner;
    struct workspace_state state;
    char prefix[WORKSPACE_KEY_SIZE];
    char manifest[VAULT_SUM_SIZE * 2 + 1]; /* SHA-256 of the list, in hex; "": none yet */
    bool is_kept;                          /* it has a row */
    bool is_orphan;                        /* its sandbox is gone */
    bool is_purged;                        /* that is under way */
    struct list orders;                    /* of struct order: those that wait */
    struct list due;                       /* of workspaces.due, while orders wait */
    bool is_running;
};

struct workspaces {
    struct table by_sandbox;
    struct list all;
    struct list due;  /* of workspace.due */
    struct list runs; /* of struct run: workspace_sync.c */
    size_t run_count;
    uint64_t bytes; /* of all */
    char *exclude_text;
    const char **excludes; /* owned; in exclude_text */
    size_t exclude_count;
    uint64_t look_ns;
};

/* The key of its list. */
void workspace_manifest(char ret_key[static WORKSPACE_KEY_SIZE], const struct id *sandbox);

/* NULL: there is none. */
struct workspace *workspace_by_sandbox(const struct domain *domain, const struct id *sandbox);

/* That of a sandbox; made in memory when there is none. */
struct workspace *workspace_need(struct domain *domain, const struct sandbox *sandbox);

void workspace_fill_row(const struct workspace *workspace,
                        struct store_value values[static STORE_WORKSPACE_COLUMN_COUNT]);
void workspace_set_state(struct domain *domain, struct workspace *workspace,
                         const struct workspace_state *state);

/* A run of it is over: away with it, where there is no reason to keep it. */
void workspace_rest(struct domain *domain, struct workspace *workspace);

/* The sandbox is gone: those that wait are told. */
void workspace_fail_orders(struct workspace *workspace);

/* Whoever waits and may go. */
void workspace_go_on(struct domain *domain);

/* For a sandbox that is busy falling asleep (sandbox_hooks.h): nothing is waited for but its turn.
 * Without a vault, or a wish for it, the answer comes from inside, as a success. */
void workspace_sync_to_sleep(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                             void *context);
