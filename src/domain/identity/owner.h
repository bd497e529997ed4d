/* Owners: the people (and programs) everything belongs to. In memory, kept in the store.
 *
 * One change of an owner at a time: a second one meanwhile is ERR_CONFLICT. There is always an
 * administrator who can get in: the last one is neither deleted, disabled nor made a plain user. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/identity/quota.h"

#define OWNER_NAME_MAX  100
#define OWNER_EMAIL_MAX 254
#define OWNERS_MAX      100000

struct owner {
    struct table_link by_id, by_email;
    struct list link;
    struct id id;
    char *name, *email, *password; /* owned; email and password may be NULL */
    bool is_admin;
    bool is_disabled;
    bool is_unkept;     /* a change of it is on its way to the store */
    struct quota quota; /* what holds for it */
    char *quotas;       /* owned: its own wishes as JSON */
    int64_t created_ms, updated_ms;
    /* For quota.requests_per_minute: a bucket. */
    double tokens;
    uint64_t filled_ns;
};

typedef void owner_done(void *context, const struct error *failure, struct owner *owner);

struct owner_spec {
    const char *name, *email; /* email may be NULL */
    const char *password;     /* Argon2id, encoded; NULL: cannot log in. Hashing is the api's */
    int is_admin;             /* for an update: -1 stays */
    const char *quotas;       /* JSON; NULL: the defaults */
};

/* ERR_CONFLICT: the email is taken. ERR_INVALID. Administrators and the system only. */
void owner_create(struct domain *domain, const struct caller *caller, const struct owner_spec *spec,
                  owner_done *done, void *context);

/* Fields that are NULL stay. `is_disabled`: -1 stays. A new password ends all logins.
 * Administrators and the system may change everything; others their own name, email and password,
 * and no administrator theirs with a lesser key, which would make it a wider one. */
void owner_update(struct domain *domain, const struct caller *caller, struct owner *owner,
                  const struct owner_spec *spec, int is_disabled, owner_done *done, void *context);

/* Only when nothing belongs to it any more (ERR_CONFLICT); its keys and logins go with it. */
void owner_delete(struct domain *domain, const struct caller *caller, struct owner *owner,
                  owner_done *done, void *context);

struct owner *owner_find(const struct domain *domain, const struct id *id);
/* Whether an id that something belongs to is nobody's any more: for those who tidy up. What is no id
 * is somebody else's, and where there is no user at all nobody is said to be gone. */
bool owner_is_gone(const struct domain *domain, const char *id);
struct owner *owner_find_email(const struct domain *domain, const char *email);
/* By id, email or name, for people; NULL with ERR_NOT_FOUND. */
struct owner *owner_named(const struct domain *domain, const char *text, struct error *err);
/* The oldest administrator that is not disabled; NULL when there is none. */
struct owner *owner_first_admin(const struct domain *domain);
size_t owner_count(const struct domain *domain);
void owner_each(const struct domain *domain, void (*each)(void *context, struct owner *owner),
                void *context);

/* One more request of this owner: false when its minute is used up; then in how many seconds. */
bool owner_take_request(struct domain *domain, struct owner *owner, unsigned int *ret_retry_s);
