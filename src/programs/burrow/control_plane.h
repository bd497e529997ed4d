/* The control plane: store, domain and everything that needs them, put together.
 *
 * Opened while the daemon starts, and ready later, from the loop, once the rows are in memory and
 * the sandboxes of earlier times are found; until then routes with a key answer 503. Without its
 * launcher the daemon is of no use any more: `lost` is called once, and the daemon ends, to be
 * started again by the next launcher. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "api/access/admission.h"
#include "api/access/lasting.h"
#include "api/agent/agents.h"
#include "api/agent/message_meter.h"
#include "api/agentpod/agentpod_provider.h"
#include "api/agentpod/agentpod_webhook.h"
#include "api/auth/auth.h"
#include "api/bridge/bridge_pool.h"
#include "api/http/api.h"
#include "api/preview/preview.h"
#include "api/token_client.h"
#include "api/webhook_sender.h"
#include "base/error.h"
#include "base/log.h"
#include "broker/engine.h"
#include "domain/domain.h"
#include "harness/drivers.h"
#include "net/http/http_route.h"
#include "net/loop.h"
#include "programs/burrow/data_folder.h"
#include "programs/burrow/object_stores.h"
#include "programs/burrow/sandbox_reach.h"
#include "programs/burrow/settings.h"
#include "programs/burrow/stored_state.h"
#include "store/keyring.h"
#include "store/store.h"

struct control_plane {
    int data;                    /* borrowed: the data folder */
    uint64_t disk_floor;         /* bytes of its disk that stay free */
    struct loop *loop;           /* borrowed */
    struct log *log;             /* borrowed */
    struct admission *admission; /* borrowed: told when callers can be known */
    struct keyring *keyring;
    struct store *store;
    struct shares *shares;
    struct object_stores objects;
    struct agents *agents;
    struct sandbox_reach reach;
    struct drivers *drivers; /* of coding agents */
    struct stored_state stored;
    struct domain *domain;
    struct provider *provider; /* the domain's; NULL: there are no sandboxes */
    struct lasting *lasting;
    struct preview *preview;
    struct webhook_sender *sender;
    struct token_client *tokens;
    struct tls_context *upstream_tls; /* what upstreams of the broker are verified with */
    struct broker_engine *broker_engine;
    struct broker broker; /* the domain's; of the engine */
    struct auth *auth;
    struct api api;
    struct agentpod_webhook incoming;
    struct agentpod_providers providers;
    struct message_meter messages;
    struct bridge_pool_ops pool;
    size_t stock;  /* that is to be kept ready */
    char *backups; /* owned: the folder for copies of the store */
    uv_timer_t tick;
    uv_timer_t later; /* what the domain wants before the next tick */
    struct loop_task turn;
    char *key;             /* owned: the administrator's, until it is in the store */
    const char *waits_for; /* static: what keeps it from being ready; NULL: nothing */
    void (*ready)(void *context);
    void (*lost)(void *context);
    void (*closed)(void *context);
    void *context;
    bool is_lost;
    bool is_closing;
};

/* How many clients may be connected: what the settings say, and at most half of all descriptors. */
size_t control_plane_connections(const struct settings *settings);

/* `ready` and `lost` are called from the loop, each at most once. `key` is copied; NULL without keys. Returns 0, or
 * -1 when what is on disk, or what the environment names, cannot be used; control_plane_close
 * cleans up then, too. */
int control_plane_open(struct control_plane *plane, struct loop *loop, struct log *log,
                       const struct settings *settings, struct data_folder *data,
                       struct admission *admission, const char *key, void (*ready)(void *context),
                       void (*lost)(void *context), void *context, struct error *err);

/* The tables of all dialects, at most CONTROL_PLANE_MOUNTS_MAX. Returns how many. */
#define CONTROL_PLANE_MOUNTS_MAX 8
size_t control_plane_mounts(struct control_plane *plane,
                            struct http_mount ret_mounts[static CONTROL_PLANE_MOUNTS_MAX]);

/* Let go of everything; sandboxes go on. `closed` (may be NULL) is called from the loop, with the
 * context of open. May be called again, which does nothing. */
void control_plane_close(struct control_plane *plane, void (*closed)(void *context));
