/* Admission: who asks, and whether that is enough for the route; decided before any handler runs.
 *
 * With keys (the default) every request is given a caller: request_caller(request). Whoever holds a
 * key or the token of a login (credential.h) is its owner; the scope must be enough for the route
 * (access.h); the owner's requests per minute must not be used up. Keys that are not known, have
 * expired, were revoked or belong to somebody disabled are answered all alike. A client address
 * that tries wrong ones again and again is told to wait; right ones work all the same, so that
 * nobody can lock out a neighbour.
 *
 * Without keys (--no-auth) anybody who reaches the socket is the administrator, and a web browser
 * on the same machine reaches loopback for any page it shows. So two things are checked there: Host
 * must be a name of this machine (a foreign name that resolves to 127.0.0.1 is DNS rebinding), and
 * a request that a page made (Sec-Fetch-Site, Origin, else Referer) must come from our own origin.
 *
 * Everything is looked up in memory; nothing waits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/access/client_address.h"
#include "api/access/origins.h"
#include "api/access/throttle.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "net/http/http_request.h"

struct domain;
struct lasting;

#define ADMISSION_HOSTS_MAX 32

/* Wrong keys of one address. */
#define ADMISSION_FAILURES_BURST    20
#define ADMISSION_FAILURES_A_MINUTE 20

struct admission {
    bool without_keys;
    char *hosts[ADMISSION_HOSTS_MAX]; /* owned: lower case, no port */
    size_t host_count;
    struct trusted_proxies proxies;
    struct origins origins;
    struct throttle failures;
    const struct clock *clock; /* borrowed */
    struct domain *domain;     /* borrowed; NULL until admission_open */
    struct lasting *lasting;   /* borrowed; NULL until admission_open, and may stay so */
    struct id administrator;   /* whom everybody is without keys */
};

struct admission_options {
    bool without_keys;
    const char *hosts;         /* names to accept besides localhost and loopback; NULL: none */
    const char *proxies;       /* client_address.h; NULL: none */
    const char *origins;       /* origins.h; NULL: none */
    const struct clock *clock; /* borrowed; NULL: the system's */
};

/* Returns 0, or -1 with ERR_INVALID for a malformed name, range or origin, or too many. Call
 * admission_done either way. */
int admission_init(struct admission *admission, const struct admission_options *options,
                   struct error *err);

/* The domain is there: from now on callers can be known. Before, all but public routes are answered
 * with ERR_UNAVAILABLE. `administrator` is copied. `lasting` is told who came for how long; may be
 * NULL. */
void admission_open(struct admission *admission, struct domain *domain, struct lasting *lasting,
                    const struct id *administrator);

/* It is about to go: as before admission_open. */
void admission_close(struct admission *admission);

void admission_done(struct admission *admission);

/* For http_server_options: before routing, and once the route is known. `data` is the admission.
 * The first also answers browsers that ask before they let a page ask (origins.h). */
int admission_check_source(struct http_request *request, void *data, struct error *err);
int admission_check_access(struct http_request *request, void *data, struct error *err);

/* The same, for on_error: who may not, has as much as allowed or is too fast is in the audit log,
 * whoever found it out, here or in the domain. */
void admission_note_denial(struct http_request *request, const struct error *error, void *data);
