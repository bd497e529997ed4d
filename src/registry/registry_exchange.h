/* One request to a registry, followed to where it sends us, and the answer. Blocks: the process
 * that pulls does nothing else.
 *
 * Two sets of connections, because two kinds of hosts are talked to. The registry was named by the
 * operator and may be anywhere. Where it sends us (blob stores, token servers) is a stranger's
 * word: only public addresses, and the networks that the operator allowed, or this machine when
 * the registry is on it. Once a redirect has left the host that was asked, no credentials go along,
 * wherever the next one leads. None is followed from https to http. */
#pragma once

#include "net/outbound/curl_exchange.h"
#include "registry/registry_reference.h"

#define REGISTRY_CONNECT_MS    ((uint64_t) 10 * 1000)
#define REGISTRY_IDLE_MS       ((uint64_t) 30 * 1000) /* without a byte */
#define REGISTRY_REDIRECTS_MAX 5

/* Connections to one registry, and to its strangers. The texts are borrowed. */
struct registry_link {
    CURL *named;                     /* owned: to the host that the operator named */
    CURL *others;                    /* owned: to where that one sends us */
    struct address_rules strangers;  /* where those may be */
    struct registry_reference *home; /* borrowed */
    struct url_host host;            /* the registry's */
    const char *ca_file;             /* PEM file trusted beside the system's; NULL: none */
};

/* `allow`: networks strangers may be in, "10.0.0.0/8,fd00::/8"; NULL: none. Returns 0, or -1 with
 * ERR_INVALID. outbound_global_init was called. */
int registry_link_init(struct registry_link *link, struct registry_reference *home,
                       const char *allow, const char *ca_file, struct error *err);
void registry_link_done(struct registry_link *link);

struct registry_request {
    const char *url;
    const char *accept;        /* NULL: anything */
    const char *authorization; /* NULL: none */
    uint64_t offset;           /* from which byte on; 0: all */
    uint64_t total_ms;         /* for all of it; 0: as long as it takes */
    /* As in struct outbound_request; NULL: into the answer. */
    int (*on_head)(void *context, const struct outbound_answer *answer, struct error *err);
    int (*on_bytes)(void *context, const void *bytes, size_t length, struct error *err);
    void *context;
};

/* Returns 0 when a whole answer came, whatever its status, or -1 with `err`. `ret_is_stranger`: it
 * came from another host than was asked. */
int registry_exchange(struct registry_link *link, const struct registry_request *request,
                      struct outbound_answer *answer, bool *ret_is_stranger, struct error *err);
