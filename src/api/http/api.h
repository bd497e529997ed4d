/* What all dialects share: the context of every route table (request->context).
 *
 * A dialect is a folder with one route table. Its handlers translate: they read the request in
 * their own shape, call the domain or a sandbox's agent, and write the answer in their own shape.
 * No handler decides who may do what (admission and the domain do), picks a status by hand (the
 * code of an error does) or talks to an agent by itself (visit.h, agent_call.h do). */
#pragma once

#include "api/access/access.h"
#include "base/clock.h"
#include "base/encoding/sha256.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "domain/domain.h"
#include "net/http/http_request.h"
#include "net/http/http_route.h"
#include "net/loop.h"

struct agents;
struct kept_documents;
struct long_reads;
struct auth;
struct preview;
struct shares;
struct api_counters;
struct message_meter;
struct agentpod_providers;
struct idempotency;
struct bridge_pool_ops;

struct api {
    struct loop *loop; /* borrowed, like all of these */
    struct domain *domain;
    struct agents *agents;   /* connections to sandboxes' agents */
    struct auth *auth;       /* accounts and logins; set by auth_new */
    struct preview *preview; /* NULL: no previews */
    struct shares *shares;   /* NULL: nothing is counted (share/share.h) */
    const struct clock *clock;
    struct log *log;
    struct message_meter *messages; /* agent/message_meter.h; never NULL where there are agents */
    const struct agentpod_providers *providers; /* agentpod/agentpod_provider.h */
    struct api_counters *counters;
    struct idempotency *idempotency; /* NULL: the header Idempotency-Key is ignored */
    /* The tables of all dialects: what the documents describe. */
    const struct http_mount *mounts;
    size_t mount_count;
    struct long_reads *long_reads;    /* NULL: lists do not take turns */
    struct kept_documents *documents; /* those documents; NULL: written anew for each who asks */
    const char *backup_folder;        /* where copies of the store go; NULL: there are none */
    const struct bridge_pool_ops *bridge_pool; /* NULL: there is no warm pool */
    uint8_t cursor_secret[SHA256_SIZE];        /* native/event_cursor.h */
};

static inline struct api *api_of(const struct http_request *request)
{
    return request->context;
}

/* Answer with an error: fills and sends. */
void api_fail(struct http_request *request, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The body of an error reply in our own shape; dialects with another shape have their own encoder.
 *
 *     {"error":{"code":"not_found","message":"no route for this path","requestId":"..."}}
 *
 * Fits http_mount and http_server_options. */
/* Fits http_mount and http_server_options. */
void error_body_write(const struct http_request *request, const struct error *error,
                      struct text *body, const char **ret_content_type);
