#include "domain/identity/login.h"

#include <stdio.h>
#include <string.h>

#include "base/encoding/encode.h"
#include "base/encoding/hash.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/standing.h"

#define TOKEN_RANDOM  32
#define PROGRAM_MAX   256 /* bytes of the User-Agent that are kept */
#define SWEEP_SECONDS 3600

_Static_assert(LOGIN_TOKEN_SIZE == sizeof(LOGIN_TOKEN_PREFIX) - 1 + HEX_TEXT_SIZE(TOKEN_RANDOM),
               "a token is its prefix and 256 bits in hex");

struct logins {
    struct table by_hash, by_id;
    struct list all; /* oldest first */
    uint64_t swept_ns;
};

/* --- in memory ------------------------------------------------------------------------------- */

static void login_free(struct login *login)
{
    if (!login)
        return;
    free(login->address);
    free(login->program);
    free(login);
}

static uint64_t hash_of_hash(const struct domain *domain, const uint8_t hash[SHA256_SIZE])
{
    return table_hash(domain->seed, hash, SHA256_SIZE);
}

static struct login *find_hash(const struct domain *domain, const uint8_t hash[SHA256_SIZE])
{
    for (struct table_link *at = table_find(&domain->logins->by_hash, hash_of_hash(domain, hash));
         at; at = table_next(at)) {
        struct login *login = CONTAINER_OF(at, struct login, by_hash);

        if (hash_equal(login->hash, hash, SHA256_SIZE))
            return login;
    }
    return NULL;
}

struct login *login_find_id(const struct domain *domain, const struct id *id)
{
    for (struct table_link *at = table_find(&domain->logins->by_id, domain_id_hash(domain, id)); at;
         at = table_next(at)) {
        struct login *login = CONTAINER_OF(at, struct login, by_id);

        if (id_equal(&login->id, id))
            return login;
    }
    return NULL;
}

static void login_remember(struct domain *domain, struct login *login)
{
    login->by_hash.hash = hash_of_hash(domain, login->hash);
    login->by_id.hash = domain_id_hash(domain, &login->id);
    table_add(&domain->logins->by_hash, &login->by_hash);
    table_add(&domain->logins->by_id, &login->by_id);
    list_append(&domain->logins->all, &login->link);
}

static void login_forget(struct domain *domain, struct login *login)
{
    table_remove(&domain->logins->by_hash, &login->by_hash);
    table_remove(&domain->logins->by_id, &login->by_id);
    list_remove(&login->link);
    login_free(login);
}

void login_forget_all(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->logins->all, at) {
        struct login *login = CONTAINER_OF(at, struct login, link);

        if (id_equal(&login->owner, owner))
            login_forget(domain, login);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

static void login_put(struct store_transaction *transaction, const struct login *login, bool is_new)
{
    const struct store_value row[STORE_LOGIN_COLUMN_COUNT] = {
        [STORE_LOGIN_HASH] = store_bytes(login->hash, SHA256_SIZE),
        [STORE_LOGIN_OWNER] = store_text(login->owner.text),
        [STORE_LOGIN_ID] = store_text(login->id.text),
        [STORE_LOGIN_ADDRESS] = store_text(login->address),
        [STORE_LOGIN_PROGRAM] = store_text(login->program),
        [STORE_LOGIN_CREATED] = store_integer(login->created_ms),
        [STORE_LOGIN_EXPIRES] = store_integer(login->expires_ms),
    };

    /* An update, not a put: what a change of password has deleted does not come back. */
    if (is_new)
        store_insert(transaction, STORE_LOGIN, row);
    else
        store_update(transaction, STORE_LOGIN, row);
}

static void delete_row(struct store_transaction *transaction, const struct login *login)
{
    const struct store_condition it = {.column = STORE_LOGIN_HASH,
                                       .comparison = STORE_EQUAL,
                                       .value = store_bytes(login->hash, SHA256_SIZE)};

    store_delete(transaction, STORE_LOGIN, &it, 1);
}

static int load_row(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct login *login;

    if (row[STORE_LOGIN_HASH].length != SHA256_SIZE)
        return error_set(err, ERR_INTERNAL, 0, "the row of a login is damaged");
    login = mem_alloc(sizeof(*login));
    memcpy(login->hash, row[STORE_LOGIN_HASH].bytes, SHA256_SIZE);
    login->id = domain_row_id(&row[STORE_LOGIN_ID]);
    login->owner = domain_row_id(&row[STORE_LOGIN_OWNER]);
    login->address = mem_copy_text(row[STORE_LOGIN_ADDRESS].bytes);
    login->program = mem_copy_text(row[STORE_LOGIN_PROGRAM].bytes);
    login->created_ms = row[STORE_LOGIN_CREATED].integer;
    login->expires_ms = row[STORE_LOGIN_EXPIRES].integer;
    login_remember(domain, login);
    return 0;
}

static void logins_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_LOGIN, STORE_LOGIN_ID, load_row, done, context);
}

/* --- who holds it ---------------------------------------------------------------------------- */

/* Used after a day: it lasts a week from now. Written behind; losing that costs a login. */
static void prolong(struct domain *domain, struct login *login, int64_t now_ms)
{
    struct store_transaction *transaction;

    if (login->expires_ms - now_ms > LOGIN_LIFETIME_MS - LOGIN_REFRESH_MS ||
        domain->stage != DOMAIN_OPEN)
        return;
    login->expires_ms = now_ms + LOGIN_LIFETIME_MS;
    transaction = store_begin(domain->options.store);
    login_put(transaction, login, false);
    domain_commit(domain, transaction, NULL, NULL);
}

int login_check(struct domain *domain, const char *token, struct caller *caller,
                struct login **ret_login, struct error *err)
{
    int64_t now_ms = domain_wall_ms(domain);
    uint8_t hash[SHA256_SIZE];
    struct login *login;
    const struct owner *owner;

    sha256_bytes(token, strlen(token), hash);
    login = strncmp(token, LOGIN_TOKEN_PREFIX, sizeof(LOGIN_TOKEN_PREFIX) - 1) == 0
                ? find_hash(domain, hash)
                : NULL;
    owner = login ? owner_find(domain, &login->owner) : NULL;
    if (!owner || owner->is_disabled || login->is_ended || now_ms >= login->expires_ms)
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this key is not known");
    caller->scope = owner->is_admin ? CALLER_ADMIN : CALLER_WRITE;
    caller->owner = login->owner;
    caller->credential = login->id;
    prolong(domain, login, now_ms);
    if (ret_login)
        *ret_login = login;
    return 0;
}

void login_each(const struct domain *domain, const struct id *owner,
                void (*each)(void *context, const struct login *login), void *context)
{
    int64_t now_ms = domain_wall_ms(domain);

    LIST_EACH (&domain->logins->all, at) {
        const struct login *login = CONTAINER_OF(at, struct login, link);

        if (id_equal(&login->owner, owner) && !login->is_ended && now_ms < login->expires_ms)
            each(context, login);
    }
}

/* --- changes --------------------------------------------------------------------------------- */

struct login_change {
    struct domain_change base;
    struct login *made;        /* owned, until it is kept */
    uint8_t hash[SHA256_SIZE]; /* of the one that ends, or is one too many */
    char token[LOGIN_TOKEN_SIZE];
    login_done *done;
    void *context;
};

static void login_change_free(struct login_change *change)
{
    explicit_bzero(change->token, sizeof(change->token));
    login_free(change->made);
    free(change);
}

static void login_created(struct domain_change *base, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct login_change *change = CONTAINER_OF(base, struct login_change, base);
    struct login *login = failure ? NULL : TAKE_PTR(change->made), *oldest;

    (void) receipt;
    if (login) {
        oldest = find_hash(base->domain, change->hash);
        login_remember(base->domain, login);
        if (oldest) {
            login_forget(base->domain, oldest);
            standing_changed(base->domain);
        }
    }
    change->done(change->context, failure, login, login ? change->token : NULL);
    login_change_free(change);
}

/* The oldest of an owner that has as many as it may have; else NULL. */
static struct login *one_too_many(const struct domain *domain, const struct id *owner)
{
    struct login *oldest = NULL;
    size_t count = 0;

    LIST_EACH (&domain->logins->all, at) {
        struct login *login = CONTAINER_OF(at, struct login, link);

        if (!id_equal(&login->owner, owner))
            continue;
        count++;
        if (!oldest)
            oldest = login;
    }
    return count >= LOGINS_PER_OWNER ? oldest : NULL;
}

static struct login *login_new(const struct domain *domain, const struct owner *owner,
                               const struct caller *caller, const char *program)
{
    struct login *login = mem_alloc(sizeof(*login));

    login->id = id_new();
    login->owner = owner->id;
    login->created_ms = domain_wall_ms(domain);
    login->expires_ms = login->created_ms + LOGIN_LIFETIME_MS;
    login->address = mem_copy_text(caller->address);
    login->program =
        mem_copy_bytes(program ? program : "", program ? strnlen(program, PROGRAM_MAX) : 0);
    return login;
}

void login_create(struct domain *domain, const struct caller *caller, struct owner *owner,
                  const char *program, login_done *done, void *context)
{
    struct login_change *change = domain_change_new(sizeof(*change), domain, caller, login_created);
    struct login *oldest = one_too_many(domain, &owner->id);
    struct store_transaction *rows;
    uint8_t random[TOKEN_RANDOM];

    change->done = done;
    change->context = context;
    /* While a new password is on its way an old one opens nothing. */
    if (domain_is_open(domain, &change->base.failure) && owner->is_unkept)
        (void) error_set(&change->base.failure, ERR_CONFLICT, 0, "this user is being changed");
    if (change->base.failure.code != ERR_NONE) {
        domain_change_refuse(&change->base);
        return;
    }
    change->made = login_new(domain, owner, caller, program);
    random_bytes(random, sizeof(random));
    (void) snprintf(change->token, sizeof(change->token), "%s", LOGIN_TOKEN_PREFIX);
    (void) hex_encode(random, sizeof(random), change->token + sizeof(LOGIN_TOKEN_PREFIX) - 1);
    explicit_bzero(random, sizeof(random));
    sha256_bytes(change->token, strlen(change->token), change->made->hash);
    rows = store_begin(domain->options.store);
    login_put(rows, change->made, true);
    if (oldest) {
        memcpy(change->hash, oldest->hash, SHA256_SIZE);
        delete_row(rows, oldest);
    }
    domain_change_commit(&change->base, rows);
}

static void login_ended(struct domain_change *base, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct login_change *change = CONTAINER_OF(base, struct login_change, base);
    struct login *login = base->is_refused ? NULL : find_hash(base->domain, change->hash);

    (void) receipt;
    if (login && failure)
        login->is_ended = false;
    else if (login)
        login_forget(base->domain, login);
    if (change->done)
        change->done(change->context, failure, NULL, NULL);
    standing_changed(base->domain);
    login_change_free(change);
}

void login_end(struct domain *domain, struct login *login, login_done *done, void *context)
{
    struct login_change *change = domain_change_new(sizeof(*change), domain, NULL, login_ended);
    struct store_transaction *rows;

    change->done = done;
    change->context = context;
    if (!domain_is_open(domain, &change->base.failure)) {
        domain_change_refuse(&change->base);
        return;
    }
    login->is_ended = true; /* from now on, not from the commit on */
    memcpy(change->hash, login->hash, SHA256_SIZE);
    rows = store_begin(domain->options.store);
    delete_row(rows, login);
    domain_change_commit(&change->base, rows);
}

/* --- the module ------------------------------------------------------------------------------ */

static void logins_begin(struct domain *domain)
{
    domain->logins = mem_alloc(sizeof(*domain->logins));
    list_init(&domain->logins->all);
}

static void logins_end(struct domain *domain)
{
    struct logins *logins = TAKE_PTR(domain->logins);

    if (!logins)
        return;
    LIST_EACH (&logins->all, at)
        login_free(CONTAINER_OF(at, struct login, link));
    table_done(&logins->by_hash);
    table_done(&logins->by_id);
    free(logins);
}

/* Expired ones open nothing; once an hour their rows go too. */
static void logins_tick(struct domain *domain)
{
    uint64_t now_ns = domain_now_ns(domain);
    int64_t now_ms = domain_wall_ms(domain);
    const struct store_condition old = {
        .column = STORE_LOGIN_EXPIRES, .comparison = STORE_LESS, .value = store_integer(now_ms)};
    struct store_transaction *transaction;

    if (domain->logins->swept_ns &&
        now_ns - domain->logins->swept_ns < (uint64_t) SWEEP_SECONDS * 1000000000)
        return;
    domain->logins->swept_ns = now_ns;
    LIST_EACH (&domain->logins->all, at) {
        struct login *login = CONTAINER_OF(at, struct login, link);

        if (login->expires_ms < now_ms)
            login_forget(domain, login);
    }
    transaction = store_begin(domain->options.store);
    store_delete(transaction, STORE_LOGIN, &old, 1);
    domain_commit(domain, transaction, NULL, NULL);
}

const struct domain_module domain_logins = {.name = "logins",
                                            .begin = logins_begin,
                                            .load = logins_load,
                                            .tick = logins_tick,
                                            .end = logins_end};
