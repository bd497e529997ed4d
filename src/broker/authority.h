/* The certificate authority of one sandbox: what TLS is ended with for hosts that have a credential.
 *
 * EC P-256, no authority below it, good for the named hosts (and the names below them, which name
 * constraints always allow) and for nothing else, AUTHORITY_DAYS long. Its leaves are good for a
 * day. The key leaves this module as PEM for the domain, which seals it, and in no other way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "net/tls.h"

#define AUTHORITY_DAYS      30
#define AUTHORITY_LEFT_DAYS 2 /* one with less time left is made anew */
#define LEAF_HOURS          24
#define LEAF_RENEW_HOURS    12 /* a leaf is used this long */

struct broker_authority;

/* Make one for these hosts (names or addresses, at least one). NULL with ERR_INVALID or
 * ERR_INTERNAL. `now_s` is seconds since 1970. */
struct broker_authority *authority_new(const char *const *hosts, size_t count, int64_t now_s,
                                       struct error *err);

/* One that was made before. NULL with ERR_INVALID when it cannot be used. */
struct broker_authority *authority_load(const char *certificate, const char *key,
                                        struct error *err);

void authority_free(struct broker_authority *authority);

AUTO_DEFINE_PTR(authority, struct broker_authority, authority_free);

/* Whether it is good for these hosts, and for some time. It may be good for more: programs that trust
 * it are left in peace. */
bool authority_covers(const struct broker_authority *authority, const char *const *hosts,
                      size_t count, int64_t now_s);

/* PEM; borrowed. */
const char *authority_certificate(const struct broker_authority *authority);
const char *authority_key(const struct broker_authority *authority);

/* What to end TLS for `host` with: a fresh leaf. NULL with ERR_FORBIDDEN for a host that it is not
 * good for, ERR_INTERNAL. The caller's. */
struct tls_context *authority_issue(const struct broker_authority *authority, const char *host,
                                    int64_t now_s, struct error *err);
