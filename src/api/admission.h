/* Admission: who may talk to the daemon at all, decided before any handler runs.
 *
 * With keys (the default) a route that is not public needs "Authorization: Bearer KEY".
 *
 * Without keys (--no-auth) anybody who reaches the socket is let in, and a web browser on the same
 * machine reaches loopback for any page it shows. So two things are checked there: Host must be a
 * name of this machine (a foreign name that resolves to 127.0.0.1 is DNS rebinding), and a request
 * that a page made must come from our own origin. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "net/http_request.h"

#define ADMISSION_HOSTS_MAX 32

struct admission {
    bool without_keys;
    uint8_t key_hash[HASH_SIZE];      /* SHA-256 of the administrator's key */
    char *hosts[ADMISSION_HOSTS_MAX]; /* owned: lower case, no port */
    size_t host_count;
};

/* `hosts` are further names to accept, separated by commas (may be ""); localhost and the loopback
 * addresses always are. Returns 0, or -1 with ERR_INVALID for a malformed name or too many. */
int admission_init(struct admission *admission, bool without_keys, const char *hosts,
                   struct error *err);

/* The key that opens everything. */
void admission_set_key(struct admission *admission, const char *key);

void admission_done(struct admission *admission);

/* For http_server_options: before routing, and once the route is known. `data` is the admission. */
int admission_check_source(struct http_request *request, void *data, struct error *err);
int admission_check_access(struct http_request *request, void *data, struct error *err);
