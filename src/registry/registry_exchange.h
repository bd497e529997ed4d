/* One request to a registry, or to where it sends us, and its answer. Blocks: the process that
 * pulls does nothing else.
 *
 * Two sets of connections, because two kinds of hosts are talked to. The registry was named by the
 * operator and may be anywhere. Where it sends us (blob stores, token servers) is a stranger's
 * word: only public addresses, and the networks that the operator allowed, or this machine when
 * the registry is on it. Neither ever follows a redirect from https to http. */
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "net/outbound/outbound.h"
#include "net/url.h"
#include "registry/registry_challenge.h"
#include "registry/registry_document.h"

#define REGISTRY_IDLE_MS       ((uint64_t) 30 * 1000) /* without a byte */
#define REGISTRY_DOCUMENT_MS   ((uint64_t) 60 * 1000) /* for a whole document */
#define REGISTRY_REDIRECTS_MAX 5
#define REGISTRY_SIZE_UNKNOWN  UINT64_MAX

struct registry_link; /* the loop and both sets of connections */

struct registry_link_settings {
    bool allow_loopback; /* strangers may be on this machine */
    const char *allow;   /* networks they may be in: "10.0.0.0/8,fd00::/8" */
    const char *ca_file; /* PEM file trusted beside the system's; NULL: none */
};

/* Returns 0 and a link that the caller frees, or -1 with ERR_INVALID. outbound_global_init was
 * called. */
int registry_link_new(const struct registry_link_settings *settings,
                      struct registry_link **ret_link, struct error *err);

/* Accepts NULL. */
void registry_link_free(struct registry_link *link);

AUTO_DEFINE_PTR(registry_link, struct registry_link, registry_link_free);

/* Where bytes of a success go. Return 0, or -1 with `err`, which ends the exchange for good. */
struct registry_sink {
    int (*begin)(void *context, uint64_t offset, struct error *err); /* the next byte is this one */
    int (*take)(void *context, const char *bytes, size_t length, struct error *err);
    void *context;
};

struct registry_request {
    const char *url;
    bool is_stranger;                 /* not the host that the operator named */
    const char *accept;               /* NULL: anything */
    const char *authorization;        /* NULL: none */
    uint64_t offset;                  /* from which byte on; 0: all */
    const struct registry_sink *sink; /* NULL: into the answer */
};

struct registry_answer {
    struct pool pool;
    int status;                          /* 0: none came */
    const char *location;                /* "" when it has none */
    uint64_t retry_after_s;              /* 0: not said */
    struct registry_challenge challenge; /* of a 401 */
    struct text body;                    /* of failures, and of successes without a sink */
    bool sink_failed;                    /* the error is the sink's */
    bool is_past_end;                    /* what there is ends before the offset */
};

#define REGISTRY_ANSWER_INIT                                                                       \
    {                                                                                              \
        .location = "", .challenge = REGISTRY_CHALLENGE_INIT,                                      \
        .body = TEXT_INIT(REGISTRY_DOCUMENT_MAX)                                                   \
    }

void registry_answer_done(struct registry_answer *answer);

AUTO_DEFINE(registry_answer, struct registry_answer, registry_answer_done);

/* Into an empty answer. Returns 0 when a whole one came, whatever its status; -1 with `err`: the
 * connection's or the sink's failure. An answer may have been begun then. */
int registry_exchange(struct registry_link *link, const struct registry_request *request,
                      struct registry_answer *answer, struct error *err);
