/* Credentials: secrets of an owner for hosts of the outside world. The egress broker puts them into
 * requests on their way out; they never enter a sandbox, and nobody can read a value again.
 *
 * In memory, kept in the store: the secret parts in one sealed column. A credential is for the hosts
 * it names, whatever a policy says: a key of one API is never sent to another host. Those that expire
 * and can be renewed (oauth, github-app) are renewed before that (egress_renewal.h). */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "domain/broker.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "model/egress_policy.h"
#include "model/pairs.h"

#define EGRESS_HOSTS_MAX  32
#define EGRESS_SECRET_MAX ((size_t) 16 * 1024) /* of one secret text */
#define EGRESS_TEXT_MAX   2048                 /* of one that is shown */

#define EGRESS_KINDS(W)                                                                            \
    W(EGRESS_HEADER, "header", "any header, by its name")                                          \
    W(EGRESS_BEARER, "bearer", "Authorization: Bearer")                                            \
    W(EGRESS_BASIC, "basic", "Authorization: Basic, of user:password")                             \
    W(EGRESS_ANTHROPIC, "anthropic", "a key of Anthropic's API")                                   \
    W(EGRESS_OPENAI, "openai", "a key of OpenAI's API, or one like it")                            \
    W(EGRESS_GOOGLE, "google", "a key of Google's API")                                            \
    W(EGRESS_OAUTH, "oauth", "a refresh token: access tokens are asked for when needed")           \
    W(EGRESS_GITHUB_APP, "github-app", "an installation of an app of GitHub's")

enum egress_kind { EGRESS_KINDS(WORD_CONSTANT) EGRESS_KIND_COUNT };

/* Its texts: T(member, "name", SECRET or SHOWN, kinds that need it, kinds that may have it). */
#define EGRESS_OF(kind) (1u << EGRESS_##kind)
#define EGRESS_KEYS                                                                                \
    (EGRESS_OF(HEADER) | EGRESS_OF(BEARER) | EGRESS_OF(BASIC) | EGRESS_OF(ANTHROPIC) |             \
     EGRESS_OF(OPENAI) | EGRESS_OF(GOOGLE))
#define EGRESS_MODELS                                                                              \
    (EGRESS_OF(BEARER) | EGRESS_OF(HEADER) | EGRESS_OF(ANTHROPIC) | EGRESS_OF(OPENAI) |            \
     EGRESS_OF(GOOGLE) | EGRESS_OF(OAUTH) | EGRESS_OF(GITHUB_APP))
#define EGRESS_TEXTS(T)                                                                            \
    T(value, "value", SECRET, EGRESS_KEYS, EGRESS_KEYS | EGRESS_OF(OAUTH))                         \
    T(refresh_token, "refreshToken", SECRET, EGRESS_OF(OAUTH), EGRESS_OF(OAUTH))                   \
    T(client_secret, "clientSecret", SECRET, 0, EGRESS_OF(OAUTH))                                  \
    T(private_key, "privateKey", SECRET, EGRESS_OF(GITHUB_APP), EGRESS_OF(GITHUB_APP))             \
    T(header, "header", SHOWN, EGRESS_OF(HEADER), EGRESS_OF(HEADER))                               \
    T(base, "base", SHOWN, 0, EGRESS_MODELS)                                                       \
    T(account, "account", SHOWN, 0, EGRESS_OF(OPENAI) | EGRESS_OF(OAUTH))                          \
    T(api, "api", SHOWN, 0, EGRESS_OF(OAUTH))                                                      \
    T(token_url, "tokenUrl", SHOWN, EGRESS_OF(OAUTH), EGRESS_OF(OAUTH))                            \
    T(client_id, "clientId", SHOWN, 0, EGRESS_OF(OAUTH))                                           \
    T(scope, "scope", SHOWN, 0, EGRESS_OF(OAUTH))                                                  \
    T(app_id, "appId", SHOWN, EGRESS_OF(GITHUB_APP), EGRESS_OF(GITHUB_APP))                        \
    T(installation_id, "installationId", SHOWN, EGRESS_OF(GITHUB_APP), EGRESS_OF(GITHUB_APP))

#define EGRESS_TEXT_MEMBER(member, ...) char *member;

struct egress_credential {
    struct table_link by_name; /* owner and name */
    struct list link;          /* all, oldest first */
    struct id owner;
    char *name; /* owned, like all here */
    enum egress_kind kind;
    struct sandbox_texts hosts;
    EGRESS_TEXTS(EGRESS_TEXT_MEMBER)
    int64_t expires_ms; /* of the value; 0: never */
    int64_t used_ms, created_ms, updated_ms;
    struct share_claim claim;

    /* The domain's own: egress_renewal.c. */
    bool is_renewing, is_used_unkept;
    uint64_t renew_ns;    /* monotonic: not before that, because it failed */
    unsigned int failed;  /* times in a row */
    char *failure;        /* of the last one; NULL: none */
    struct list waiting;  /* of egress_waiting: who needs a new value */
    unsigned int changes; /* on their way to the store: no other row of it is written */
    unsigned int holds;   /* it is freed when nobody holds it */
    bool is_gone;
};

/* What is one of its texts, for rows and requests. */
struct egress_text {
    const char *name;
    size_t offset;
    bool is_secret;
    unsigned int needed, allowed; /* by kind */
};
#define EGRESS_TEXT_ONE(...) +1
enum { EGRESS_TEXT_COUNT = 0 EGRESS_TEXTS(EGRESS_TEXT_ONE) };
extern const struct egress_text egress_texts[EGRESS_TEXT_COUNT];

const char *egress_kind_text(enum egress_kind kind);

/* --- made and gone --------------------------------------------------------------------------- */

/* `credential` is NULL on failure and after a delete; borrowed. */
typedef void egress_credential_done(void *context, const struct error *failure,
                                    const struct egress_credential *credential);

/* Read one from a request's body: kind, value and so on. The caller's, to be freed; NULL with
 * ERR_INVALID. */
struct egress_credential *egress_credential_read(const struct json_place *body, const char *name,
                                                 struct error *err);

/* Make it, or replace what was there, for the caller's owner. It is taken. ERR_QUOTA. */
void egress_credential_put(struct domain *domain, const struct caller *caller,
                           struct egress_credential *credential, egress_credential_done *done,
                           void *context);

/* What was open with it is cut. */
void egress_credential_delete(struct domain *domain, const struct caller *caller, const char *name,
                              egress_credential_done *done, void *context);

/* Of the caller's owner; NULL with ERR_NOT_FOUND. A key for one sandbox sees none. */
const struct egress_credential *egress_credential_find(const struct domain *domain,
                                                       const struct caller *caller,
                                                       const char *name, struct error *err);
void egress_credential_each(const struct domain *domain, const struct caller *caller,
                            void (*each)(void *context, const struct egress_credential *credential),
                            void *context);

/* What may be told of it: everything but its secrets. */
void egress_credential_write(struct json_writer *json, const struct egress_credential *credential);

void egress_credential_free(struct egress_credential *credential);
AUTO_DEFINE_PTR(egress_credential, struct egress_credential, egress_credential_free);

/* --- used ------------------------------------------------------------------------------------ */

struct egress_credential *egress_credential_of(const struct domain *domain, const struct id *owner,
                                               const char *name);

/* Whether it may be sent there. */
bool egress_credential_is_for(const struct egress_credential *credential, const char *host);

/* Which API it is for; EGRESS_API_NONE: none. */
enum egress_api egress_credential_api(const struct egress_credential *credential);

/* How it proves who asks, in the headers of a request to `host`. */
struct egress_proof {
    struct broker_header headers[BROKER_HEADERS_MAX];
    size_t count;
    char *text; /* owned: wiped when it is done */
};
void egress_credential_prove(const struct egress_credential *credential, const char *host,
                             struct egress_proof *ret_proof);
void egress_proof_done(struct egress_proof *proof);
AUTO_DEFINE(egress_proof, struct egress_proof, egress_proof_done);

/* It was sent just now. */
void egress_credential_used(struct domain *domain, struct egress_credential *credential);
