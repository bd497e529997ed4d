/* A conversation with one repository of one registry (the OCI distribution API, reading only).
 *
 *     GET /v2/<path>/manifests/<tag or digest>
 *     GET /v2/<path>/blobs/<digest>
 *
 * What stands between us and the bytes is settled here: who we are (nobody, a name and a password,
 * or a token that those or nobody get from a token server), redirects, and trying again: where an
 * answer broke off the next one goes on, as long as the registry gives parts.
 *
 * Credentials go to the registry, and to the token server that it names (over https, unless the
 * registry itself is spoken to in plain http): never to where a blob is redirected. With
 * credentials a token is asked for reading this one repository, whatever the registry says it
 * wants. Blocks; one thread. */
#pragma once

#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "registry/registry_reference.h"

#define REGISTRY_ATTEMPTS_MAX    5   /* in a row without getting further */
#define REGISTRY_FIRST_ATTEMPTS  2   /* while the registry never answered */
#define REGISTRY_TOTAL_ATTEMPTS  100 /* for one thing */
#define REGISTRY_BACKOFF_MS      250 /* doubled each time, with jitter */
#define REGISTRY_BACKOFF_MAX_MS  8000
#define REGISTRY_RETRY_AFTER_MAX 30                   /* seconds that the registry may ask for */
#define REGISTRY_FURTHER         ((uint64_t) 1 << 20) /* so many bytes count as getting further */
#define REGISTRY_CREDENTIALS_MAX ((size_t) 16 * 1024)
#define REGISTRY_SIZE_UNKNOWN    UINT64_MAX

struct registry_client;

struct registry_client_settings {
    struct registry_reference reference;
    const char *credentials; /* "NAME:PASSWORD"; NULL: nobody */
    bool plain_http;         /* http, also to other machines */
    const char *allow;       /* networks it may send us to; see registry_exchange.h */
    const char *ca_file;     /* PEM file trusted beside the system's; NULL: none */
    /* A line for people: why it takes longer. May be NULL. */
    void (*tell)(void *context, const char *line);
    void *context;
};

/* Texts are borrowed and outlive it. Returns 0, or -1 with ERR_INVALID. */
int registry_client_new(const struct registry_client_settings *settings,
                        struct registry_client **ret_client, struct error *err);

/* Accepts NULL. */
void registry_client_free(struct registry_client *client);

AUTO_DEFINE_PTR(registry_client, struct registry_client, registry_client_free);

struct registry_wanted {
    const char *kind;  /* "manifests" or "blobs" */
    const char *name;  /* a tag, or "sha256:..." */
    uint64_t size;     /* exactly; or REGISTRY_SIZE_UNKNOWN */
    uint64_t size_max; /* for that case */
    /* `restart` forgets what came so far; it is called before the first byte, too. Both return 0,
     * or -1 with `err`, which ends it. */
    int (*restart)(void *context, struct error *err);
    int (*take)(void *context, const char *bytes, size_t length, struct error *err);
    void *context;
};

/* Get it. Returns 0 when `take` got all bytes, or -1 with ERR_NOT_FOUND, ERR_UNAUTHENTICATED,
 * ERR_FORBIDDEN, ERR_RATE_LIMITED, ERR_UPSTREAM, ERR_UPSTREAM_TIMEOUT, ERR_TOO_LARGE, or what the
 * callbacks said. */
int registry_client_get(struct registry_client *client, const struct registry_wanted *wanted,
                        struct error *err);
