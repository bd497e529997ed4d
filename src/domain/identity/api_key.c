#include "domain/identity/api_key.h"

#include <string.h>

#include "base/encoding/hash.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/event/audit.h"
#include "domain/identity/api_key_internal.h"
#include "domain/identity/owner.h"
#include "domain/standing.h"

static const char *const scope_texts[] = {
    [CALLER_PORT] = "port",   [CALLER_READ] = "read",   [CALLER_SANDBOX] = "sandbox",
    [CALLER_WRITE] = "write", [CALLER_ADMIN] = "admin",
};

const char *api_key_scope_text(enum caller_scope scope)
{
    return scope < ARRAY_COUNT(scope_texts) ? scope_texts[scope] : NULL;
}

int api_key_scope_from_text(const char *text, enum caller_scope *ret_scope, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(scope_texts); i++) {
        if (scope_texts[i] && strcmp(scope_texts[i], text) == 0) {
            *ret_scope = (enum caller_scope) i;
            return 0;
        }
    }
    return error_set(err, ERR_INVALID, 0, "a scope is admin, write, read, sandbox or port");
}

/* --- looking --------------------------------------------------------------------------------- */

static uint64_t hash_of_hash(const struct domain *domain, const uint8_t hash[SHA256_SIZE])
{
    return table_hash(domain->seed, hash, SHA256_SIZE);
}

struct api_key *api_key_find_hash(const struct domain *domain, const uint8_t hash[SHA256_SIZE])
{
    for (struct table_link *at = table_find(&domain->api_keys->by_hash, hash_of_hash(domain, hash));
         at; at = table_next(at)) {
        struct api_key *key = CONTAINER_OF(at, struct api_key, by_hash);

        if (hash_equal(key->hash, hash, SHA256_SIZE))
            return key;
    }
    return NULL;
}

struct api_key *api_key_find_id(const struct domain *domain, const struct id *id)
{
    for (struct table_link *at = table_find(&domain->api_keys->by_id, domain_id_hash(domain, id));
         at; at = table_next(at)) {
        struct api_key *key = CONTAINER_OF(at, struct api_key, by_id);

        if (id_equal(&key->id, id))
            return key;
    }
    return NULL;
}

/* A narrow key sees itself only; the others all of the owner's. */
static bool api_key_is_seen(const struct caller *caller, const struct api_key *key)
{
    if (caller->scope == CALLER_SANDBOX || caller->scope == CALLER_PORT)
        return id_equal(&caller->credential, &key->id);
    return caller_sees_owner(caller, &key->owner);
}

struct api_key *api_key_find(struct domain *domain, const struct caller *caller,
                             const char *id_or_prefix, struct error *err)
{
    bool is_hidden = false;

    LIST_EACH (&domain->api_keys->all, at) {
        struct api_key *key = CONTAINER_OF(at, struct api_key, link);

        if (strcmp(key->id.text, id_or_prefix) != 0 && strcmp(key->prefix, id_or_prefix) != 0)
            continue;
        if (api_key_is_seen(caller, key))
            return key;
        is_hidden = true;
    }
    (void) error_set(err, ERR_NOT_FOUND, 0, "no such key");
    if (is_hidden && err)
        audit_add(domain, caller, "key.find", id_or_prefix, err);
    return NULL;
}

void api_key_each(const struct domain *domain, const struct caller *caller,
                  void (*each)(void *context, struct api_key *key), void *context)
{
    LIST_EACH (&domain->api_keys->all, at) {
        struct api_key *key = CONTAINER_OF(at, struct api_key, link);

        if (api_key_is_seen(caller, key))
            each(context, key);
    }
}

/* --- who holds it ---------------------------------------------------------------------------- */

static bool is_good(const struct api_key *key, int64_t now_ms)
{
    return !key->revoked_ms && (!key->expires_ms || now_ms < key->expires_ms);
}

/* The row is written behind, to about a minute: lists show it, nothing depends on it. */
static void note_use(struct domain *domain, struct api_key *key, int64_t now_ms)
{
    struct store_transaction *transaction;
    bool is_recent =
        key->used_ms && now_ms - key->used_ms < API_KEY_USED_MS && now_ms >= key->used_ms;

    if (is_recent || domain->stage != DOMAIN_OPEN)
        return;
    key->used_ms = now_ms;
    transaction = store_begin(domain->options.store);
    api_key_put(transaction, key, false);
    domain_commit(domain, transaction, NULL, NULL);
}

int api_key_check(struct domain *domain, const char *secret, struct caller *caller,
                  struct error *err)
{
    int64_t now_ms = domain_wall_ms(domain);
    uint8_t hash[SHA256_SIZE];
    struct api_key *key;
    const struct owner *owner;

    sha256_bytes(secret, strlen(secret), hash);
    key = api_key_find_hash(domain, hash);
    owner = key ? owner_find(domain, &key->owner) : NULL;
    if (!owner || owner->is_disabled || !is_good(key, now_ms))
        return error_set(err, ERR_UNAUTHENTICATED, 0, "this key is not known");
    caller->scope = key->scope;
    /* Whoever is no administrator any more has no administrator's key. */
    if (key->scope == CALLER_ADMIN && !owner->is_admin)
        caller->scope = CALLER_WRITE;
    caller->owner = key->owner;
    caller->credential = key->id;
    caller->sandbox = key->sandbox;
    caller->port = key->port;
    note_use(domain, key, now_ms);
    return 0;
}

/* --- in memory ------------------------------------------------------------------------------- */

void api_key_free(struct api_key *key)
{
    if (!key)
        return;
    free(key->name);
    free(key);
}

void api_key_remember(struct domain *domain, struct api_key *key)
{
    key->by_hash.hash = hash_of_hash(domain, key->hash);
    key->by_id.hash = domain_id_hash(domain, &key->id);
    table_add(&domain->api_keys->by_hash, &key->by_hash);
    table_add(&domain->api_keys->by_id, &key->by_id);
    list_append(&domain->api_keys->all, &key->link);
    domain->api_keys->count++;
}

static void api_key_forget(struct domain *domain, struct api_key *key)
{
    table_remove(&domain->api_keys->by_hash, &key->by_hash);
    table_remove(&domain->api_keys->by_id, &key->by_id);
    list_remove(&key->link);
    domain->api_keys->count--;
    api_key_free(key);
}

void api_key_forget_all(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->api_keys->all, at) {
        struct api_key *key = CONTAINER_OF(at, struct api_key, link);

        if (id_equal(&key->owner, owner))
            api_key_forget(domain, key);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

static struct store_value time_or_null(int64_t time_ms)
{
    return time_ms ? store_integer(time_ms) : store_null();
}

void api_key_put(struct store_transaction *transaction, const struct api_key *key, bool is_new)
{
    bool has_sandbox = *key->sandbox.text;
    struct store_value row[STORE_API_KEY_COLUMN_COUNT] = {
        [STORE_API_KEY_ID] = store_text(key->id.text),
        [STORE_API_KEY_OWNER] = store_text(key->owner.text),
        [STORE_API_KEY_NAME] = store_text(key->name),
        [STORE_API_KEY_PREFIX] = store_text(key->prefix),
        [STORE_API_KEY_HASH] = store_bytes(key->hash, SHA256_SIZE),
        [STORE_API_KEY_SCOPE] = store_text(api_key_scope_text(key->scope)),
        [STORE_API_KEY_SANDBOX] = has_sandbox ? store_text(key->sandbox.text) : store_null(),
        [STORE_API_KEY_PORT] = key->port ? store_integer(key->port) : store_null(),
        [STORE_API_KEY_EXPIRES] = time_or_null(key->expires_ms),
        [STORE_API_KEY_REVOKED] = time_or_null(key->revoked_ms),
        [STORE_API_KEY_USED] = time_or_null(key->used_ms),
        [STORE_API_KEY_CREATED] = store_integer(key->created_ms),
    };

    if (is_new)
        store_insert(transaction, STORE_API_KEY, row);
    else
        store_update(transaction, STORE_API_KEY, row);
}

/* Revoked or expired so long ago that nobody asks any more. */
static bool is_stale(const struct api_key *key, int64_t now_ms)
{
    int64_t end_ms = key->revoked_ms ? key->revoked_ms : key->expires_ms;

    return end_ms && now_ms - end_ms > API_KEY_SHOWN_MS;
}

static void delete_row(struct domain *domain, const struct api_key *key)
{
    const struct store_condition it = {
        .column = STORE_API_KEY_ID, .comparison = STORE_EQUAL, .value = store_text(key->id.text)};
    struct store_transaction *transaction = store_begin(domain->options.store);

    store_delete(transaction, STORE_API_KEY, &it, 1);
    domain_commit(domain, transaction, NULL, NULL);
}

static int load_row(struct domain *domain, const struct store_value *row, struct error *err)
{
    AUTO(api_key) struct api_key *key = mem_alloc(sizeof(*key));
    const char *prefix = row[STORE_API_KEY_PREFIX].bytes;

    key->id = domain_row_id(&row[STORE_API_KEY_ID]);
    key->owner = domain_row_id(&row[STORE_API_KEY_OWNER]);
    key->name = mem_copy_text(row[STORE_API_KEY_NAME].bytes);
    if (row[STORE_API_KEY_HASH].length != SHA256_SIZE || strlen(prefix) >= sizeof(key->prefix) ||
        api_key_scope_from_text(row[STORE_API_KEY_SCOPE].bytes, &key->scope, err) < 0)
        return error_set(err, ERR_INTERNAL, 0, "the row of key %s is damaged", key->id.text);
    memcpy(key->prefix, prefix, strlen(prefix) + 1);
    memcpy(key->hash, row[STORE_API_KEY_HASH].bytes, SHA256_SIZE);
    key->sandbox = domain_row_id(&row[STORE_API_KEY_SANDBOX]);
    key->port = (uint16_t) row[STORE_API_KEY_PORT].integer;
    key->expires_ms = row[STORE_API_KEY_EXPIRES].integer;
    key->revoked_ms = row[STORE_API_KEY_REVOKED].integer;
    key->used_ms = row[STORE_API_KEY_USED].integer;
    key->created_ms = row[STORE_API_KEY_CREATED].integer;
    if (is_stale(key, domain_wall_ms(domain)))
        delete_row(domain, key);
    else
        api_key_remember(domain, TAKE_PTR(key));
    return 0;
}

static void api_keys_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_API_KEY, STORE_API_KEY_CREATED, load_row, done, context);
}

/* --- the module ------------------------------------------------------------------------------ */

static void api_keys_begin(struct domain *domain)
{
    domain->api_keys = mem_alloc(sizeof(*domain->api_keys));
    list_init(&domain->api_keys->all);
}

static void api_keys_end(struct domain *domain)
{
    struct api_keys *keys = TAKE_PTR(domain->api_keys);

    if (!keys)
        return;
    LIST_EACH (&keys->all, at)
        api_key_free(CONTAINER_OF(at, struct api_key, link));
    table_done(&keys->by_hash);
    table_done(&keys->by_id);
    free(keys);
}

/* A key for one sandbox goes with it. */
static void api_keys_destroying(struct domain *domain, struct store_transaction *change,
                                const struct sandbox *sandbox)
{
    const struct store_condition narrow = {.column = STORE_API_KEY_SANDBOX,
                                           .comparison = STORE_EQUAL,
                                           .value = store_text(sandbox->id.text)};

    (void) domain;
    store_delete(change, STORE_API_KEY, &narrow, 1);
}

static void api_keys_destroyed(struct domain *domain, const struct id *sandbox)
{
    LIST_EACH (&domain->api_keys->all, at) {
        struct api_key *key = CONTAINER_OF(at, struct api_key, link);

        if (id_equal(&key->sandbox, sandbox))
            api_key_forget(domain, key);
    }
    standing_changed(domain);
}

const struct domain_module domain_api_keys = {
    .name = "keys",
    .begin = api_keys_begin,
    .load = api_keys_load,
    .destroying = api_keys_destroying,
    .destroyed = api_keys_destroyed,
    .end = api_keys_end,
};
