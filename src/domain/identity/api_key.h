/* API keys: "burrow_" + 8 characters to find it by + 56 of secret (hex, 256 random bits in all).
 * Kept as SHA-256, shown once, scoped, expiring, revocable. All in memory: looking one up is a hash
 * and a comparison. */
#pragma once

#include "base/encoding/sha256.h"
#include "base/list.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"

#define API_KEY_TEXT_SIZE  (7 + 64 + 1)
#define API_KEY_NAME_MAX   100
#define API_KEYS_MAX       100000
#define API_KEYS_PER_OWNER 1000

/* How exactly the time of the last use is kept on disk. */
#define API_KEY_USED_MS ((int64_t) 60 * 1000)

/* Revoked and expired keys are shown this long, then forgotten at the next start. */
#define API_KEY_SHOWN_MS ((int64_t) 30 * 24 * 3600 * 1000)

struct api_key {
    struct table_link by_hash, by_id;
    struct list link;
    struct id id, owner;
    char *name; /* owned */
    char prefix[16];
    uint8_t hash[SHA256_SIZE];
    enum caller_scope scope; /* CALLER_ADMIN, _WRITE, _READ, _SANDBOX, _PORT */
    struct id sandbox;
    uint16_t port;
    int64_t created_ms, expires_ms, revoked_ms, used_ms; /* 0: never */
};

struct api_key_spec {
    const char *name;
    enum caller_scope scope;
    struct id owner;   /* administrators may make one for others; else the caller's own */
    struct id sandbox; /* for the narrow scopes */
    uint16_t port;
    int64_t expires_ms; /* wall time; 0: never */
};

/* `secret` is told here and nowhere else. Nobody makes a key wider than the own one, nor one that
 * lasts longer than the own key. */
typedef void api_key_done(void *context, const struct error *failure, struct api_key *key,
                          const char *secret);
void api_key_create(struct domain *domain, const struct caller *caller,
                    const struct api_key_spec *spec, api_key_done *done, void *context);

/* A key whose secret is given: the administrator's first one, from a file. Does nothing when it is
 * there already. */
void api_key_adopt(struct domain *domain, const struct id *owner, const char *name,
                   const char *secret, api_key_done *done, void *context);

void api_key_revoke(struct domain *domain, const struct caller *caller, struct api_key *key,
                    api_key_done *done, void *context);

/* By id or prefix among those the caller sees; NULL with ERR_NOT_FOUND. */
struct api_key *api_key_find(struct domain *domain, const struct caller *caller,
                             const char *id_or_prefix, struct error *err);
void api_key_each(const struct domain *domain, const struct caller *caller,
                  void (*each)(void *context, struct api_key *key), void *context);

/* Whoever holds this secret: fills scope, owner, credential, sandbox and port of `caller`. Returns
 * 0, or -1 with ERR_UNAUTHENTICATED (not known, expired, revoked or its owner disabled: all alike).
 */
int api_key_check(struct domain *domain, const char *secret, struct caller *caller,
                  struct error *err);

/* "admin", "write", "read", "sandbox", "port"; NULL for scopes that no key has. And back: -1 with
 * ERR_INVALID. */
const char *api_key_scope_text(enum caller_scope scope);
int api_key_scope_from_text(const char *text, enum caller_scope *ret_scope, struct error *err);

/* For the domain's own modules: the rows are gone, forget the keys. */
void api_key_forget_all(struct domain *domain, const struct id *owner);
