/* OpenCode's server in one sandbox: started once for all who want it, watched, and started again. What
 * happens when is decided in server_life.h; here it is done.
 *
 * It is a background process of the sandbox under a name of ours, so that a daemon that was restarted
 * finds it again. All turns share one stream of its events. */
#pragma once

#include "base/list.h"
#include "domain/harness.h"
#include "harness/drivers_internal.h"
#include "harness/opencode_event.h"
#include "harness/query.h"
#include "harness/server_life.h"

#define OPENCODE_PORT    4096
#define OPENCODE_PROCESS "burrow-agent-opencode"

struct opencode_server;

/* Somebody who waits for it to be ready: told once, from the loop. */
struct server_waiter {
    struct list link;
    uint64_t number;    /* the server's: in which order they came */
    bool only_if_there; /* nothing is started for this one */
    void (*ready)(struct server_waiter *waiter, const struct error *failure);
};

/* Somebody who hears its events. Unlinks itself never from inside. */
struct server_follower {
    struct list link;
    void (*event)(struct server_follower *follower, const struct opencode_event *event);
    /* The stream broke off and is there again: events were missed. */
    void (*resumed)(struct server_follower *follower);
    void (*lost)(struct server_follower *follower, const struct error *failure);
};

struct opencode_server *opencode_server_new(struct drivers *drivers, const struct id *sandbox);

/* Its place is taken over when nothing of it runs. 0, or -1 with ERR_INVALID. */
int opencode_server_place(struct opencode_server *server, const struct harness_place *place,
                          struct error *err);

void opencode_server_want(struct opencode_server *server, struct server_waiter *waiter);
void opencode_server_follow(struct opencode_server *server, struct server_follower *follower);

/* Ask it, whatever state it is in. */
struct query *opencode_server_ask(struct opencode_server *server,
                                  const struct query_request *request, query_done *done,
                                  void *context);

void opencode_server_look(const struct opencode_server *server, struct harness_status *ret_status);

/* It speaks as 1.0 did. */
bool opencode_server_is_old(const struct opencode_server *server);

/* The server of a sandbox, of any one for NULL; NULL when there is none. */
struct opencode_server *opencode_server_find(struct drivers *drivers, const struct id *sandbox);

/* The sandbox is gone or stopped: all who wait or follow are told that it is lost, and it goes. */
void opencode_server_forget(struct opencode_server *server, const struct error *why);
