/* Logins: browsers that showed a password. The cookie holds LOGIN_TOKEN_PREFIX and 256 random bits
 * in hex; its SHA-256 is kept. */
#pragma once

#include "base/encoding/sha256.h"
#include "base/list.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/identity/owner.h"

#define LOGIN_TOKEN_PREFIX CALLER_SECRET_PREFIX "login_"
#define LOGIN_TOKEN_SIZE   (sizeof(LOGIN_TOKEN_PREFIX) + 64)
#define LOGIN_LIFETIME_MS  ((int64_t) 7 * 24 * 3600 * 1000)
#define LOGIN_REFRESH_MS   ((int64_t) 24 * 3600 * 1000) /* older ones are prolonged when used */
#define LOGINS_PER_OWNER   100                          /* more: the oldest goes */

struct login {
    struct table_link by_hash, by_id;
    struct list link;
    struct id id, owner;
    uint8_t hash[SHA256_SIZE];
    int64_t created_ms, expires_ms;
    char *address, *program; /* owned */
    bool is_ended;           /* its end is on its way to the store */
};

typedef void login_done(void *context, const struct error *failure, struct login *login,
                        const char *token);

/* The password was right (checked by the api, off the loop). */
void login_create(struct domain *domain, const struct caller *caller, struct owner *owner,
                  const char *program, login_done *done, void *context);

/* Whoever holds this token; as api_key_check. One without the prefix is none, though a row of an
 * older Burrow knew it: it could be passed on to strangers. */
int login_check(struct domain *domain, const char *token, struct caller *caller,
                struct login **ret_login, struct error *err);

/* NULL: it has ended, or there never was one. */
struct login *login_find_id(const struct domain *domain, const struct id *id);

/* It opens nothing from the call on. `done` may be NULL, and is given neither login nor token. */
void login_end(struct domain *domain, struct login *login, login_done *done, void *context);
/* All of one owner that can still be used. */
void login_each(const struct domain *domain, const struct id *owner,
                void (*each)(void *context, const struct login *login), void *context);

/* For the domain's own modules: the rows are gone, forget the logins. */
void login_forget_all(struct domain *domain, const struct id *owner);
