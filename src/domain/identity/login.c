#include "domain/identity/login.h"

#include <string.h>

#include "base/encoding/encode.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"

#define TOKEN_RANDOM  32
#define PROGRAM_MAX   256 /* bytes of the User-Agent that are kept */
#define SWEEP_SECONDS 3600

_Static_assert(LOGIN_TOKEN_SIZE == HEX_TEXT_SIZE(TOKEN_RANDOM), "a token is 256 bits in hex");

struct logins {
    struct table by_hash;
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

static uint64_t hash_of_hash(const struct domain *domain, const uint8_t hash[HASH_SIZE])
{
    return table_hash(domain->seed, hash, HASH_SIZE);
}

static struct login *find_hash(const struct domain *domain, const uint8_t hash[HASH_SIZE])
{
    for (struct table_link *at = table_find(&domain->logins->by_hash, hash_of_hash(domain, hash));
         at; at = table_next(at)) {
        struct login *login = CONTAINER_OF(at, struct login, by_hash);

        if (hash_equal(login->hash, hash, HASH_SIZE))
            return login;
    }
    return NULL;
}

static void remember(struct domain *domain, struct login *login)
{
    login->by_hash.hash = hash_of_hash(domain, login->hash);
    table_add(&domain->logins->by_hash, &login->by_hash);
    list_append(&domain->logins->all, &login->link);
}

static void forget(struct domain *domain, struct login *login)
{
    table_remove(&domain->logins->by_hash, &login->by_hash);
    list_remove(&login->link);
    login_free(login);
}

void login_forget_all(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->logins->all, at) {
        struct login *login = CONTAINER_OF(at, struct login, link);

        if (id_equal(&login->owner, owner))
            forget(domain, login);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

static void put(struct store_transaction *transaction, const struct login *login, bool is_new)
{
    const struct store_value row[STORE_LOGIN_COLUMN_COUNT] = {
        [STORE_LOGIN_HASH] = store_bytes(login->hash, HASH_SIZE),
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
                                       .value = store_bytes(login->hash, HASH_SIZE)};

    store_delete(transaction, STORE_LOGIN, &it, 1);
}

static int load_row(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct login *login;

    if (row[STORE_LOGIN_HASH].length != HASH_SIZE)
        return error_set(err, ERR_INTERNAL, 0, "the row of a login is damaged");
    login = mem_alloc(sizeof(*login));
    memcpy(login->hash, row[STORE_LOGIN_HASH].bytes, HASH_SIZE);
    login->id = domain_row_id(&row[STORE_LOGIN_ID]);
    login->owner = domain_row_id(&row[STORE_LOGIN_OWNER]);
    login->address = mem_copy_text(row[STORE_LOGIN_ADDRESS].bytes);
    login->program = mem_copy_text(row[STORE_LOGIN_PROGRAM].bytes);
    login->created_ms = row[STORE_LOGIN_CREATED].integer;
    login->expires_ms = row[STORE_LOGIN_EXPIRES].integer;
    remember(domain, login);
    return 0;
}

static void load(struct domain *domain, domain_done *done, void *context)
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
    put(transaction, login, false);
    domain_commit(domain, transaction, NULL, NULL);
}

int login_check(struct domain *domain, const char *token, struct caller *caller,
                struct login **ret_login, struct error *err)
{
    int64_t now_ms = domain_wall_ms(domain);
    uint8_t hash[HASH_SIZE];
    struct login *login;
    const struct owner *owner;

    hash_bytes(token, strlen(token), hash);
    login = find_hash(domain, hash);
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

/* --- changes --------------------------------------------------------------------------------- */

struct change {
    struct domain_task task;
    struct domain *domain;
    struct login *made;      /* owned, until it is kept */
    uint8_t hash[HASH_SIZE]; /* of the one that ends */
    uint8_t oldest[HASH_SIZE];
    bool has_oldest;
    char token[LOGIN_TOKEN_SIZE];
    login_done *done;
    void *context;
    struct error failure;
};

static struct change *change_new(struct domain *domain, login_done *done, void *context)
{
    struct change *change = mem_alloc(sizeof(*change));

    change->domain = domain;
    change->done = done;
    change->context = context;
    return change;
}

static void change_free(struct change *change)
{
    explicit_bzero(change->token, sizeof(change->token));
    login_free(change->made);
    free(change);
}

static void answer(struct domain_task *task)
{
    struct change *change = CONTAINER_OF(task, struct change, task);
    bool failed = change->failure.code != ERR_NONE;

    if (change->done)
        change->done(change->context, failed ? &change->failure : NULL, NULL, NULL);
    change_free(change);
}

static void created(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct login *login = change->made, *oldest;

    (void) receipt;
    if (failure) {
        change->failure = *failure;
        answer(&change->task);
        return;
    }
    change->made = NULL;
    remember(change->domain, login);
    oldest = change->has_oldest ? find_hash(change->domain, change->oldest) : NULL;
    if (oldest)
        forget(change->domain, oldest);
    change->done(change->context, NULL, login, change->token);
    change_free(change);
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
    struct change *change = change_new(domain, done, context);
    struct store_transaction *transaction;
    struct login *oldest = one_too_many(domain, &owner->id);
    uint8_t random[TOKEN_RANDOM];

    /* While a new password is on its way an old one opens nothing. */
    if (domain_is_open(domain, &change->failure) && owner->is_unkept)
        (void) error_set(&change->failure, ERR_CONFLICT, 0, "this user is being changed");
    if (change->failure.code != ERR_NONE) {
        domain_defer(domain, &change->task, answer);
        return;
    }
    change->made = login_new(domain, owner, caller, program);
    random_bytes(random, sizeof(random));
    (void) hex_encode(random, sizeof(random), change->token);
    explicit_bzero(random, sizeof(random));
    hash_bytes(change->token, strlen(change->token), change->made->hash);
    transaction = store_begin(domain->options.store);
    put(transaction, change->made, true);
    if (oldest) {
        memcpy(change->oldest, oldest->hash, HASH_SIZE);
        change->has_oldest = true;
        delete_row(transaction, oldest);
    }
    domain_commit(domain, transaction, created, change);
}

static void ended(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct login *login = find_hash(change->domain, change->hash);

    (void) receipt;
    if (failure) {
        change->failure = *failure;
        if (login)
            login->is_ended = false;
    } else if (login) {
        forget(change->domain, login);
    }
    answer(&change->task);
}

void login_end(struct domain *domain, struct login *login, login_done *done, void *context)
{
    struct change *change = change_new(domain, done, context);
    struct store_transaction *transaction;

    if (!domain_is_open(domain, &change->failure)) {
        domain_defer(domain, &change->task, answer);
        return;
    }
    login->is_ended = true; /* from now on, not from the commit on */
    memcpy(change->hash, login->hash, HASH_SIZE);
    transaction = store_begin(domain->options.store);
    delete_row(transaction, login);
    domain_commit(domain, transaction, ended, change);
}

void login_end_all(struct domain *domain, const struct id *owner)
{
    const struct store_condition mine = {
        .column = STORE_LOGIN_OWNER, .comparison = STORE_EQUAL, .value = store_text(owner->text)};
    struct store_transaction *transaction = store_begin(domain->options.store);

    store_delete(transaction, STORE_LOGIN, &mine, 1);
    domain_commit(domain, transaction, NULL, NULL);
    login_forget_all(domain, owner);
}

/* --- the module ------------------------------------------------------------------------------ */

static void begin(struct domain *domain)
{
    domain->logins = mem_alloc(sizeof(*domain->logins));
    list_init(&domain->logins->all);
}

static void end(struct domain *domain)
{
    struct logins *logins = TAKE_PTR(domain->logins);

    if (!logins)
        return;
    LIST_EACH (&logins->all, at)
        login_free(CONTAINER_OF(at, struct login, link));
    table_done(&logins->by_hash);
    free(logins);
}

/* Expired ones open nothing; once an hour their rows go too. */
static void tick(struct domain *domain)
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
            forget(domain, login);
    }
    transaction = store_begin(domain->options.store);
    store_delete(transaction, STORE_LOGIN, &old, 1);
    domain_commit(domain, transaction, NULL, NULL);
}

const struct domain_module domain_logins = {
    .name = "logins", .begin = begin, .load = load, .tick = tick, .end = end};
