/* Making and revoking keys. */
#include <stdio.h>
#include <string.h>

#include "base/encoding/encode.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/identity/api_key_internal.h"
#include "domain/identity/owner.h"
#include "json/json_write.h"

#define SECRET_PREFIX  "burrow_"
#define SECRET_RANDOM  32
#define SECRET_MIN     40 /* of one that is adopted */
#define EVENT_TEXT_MAX ((size_t) 4096)

struct change {
    struct domain_task task;
    struct domain *domain;
    struct id id;         /* of the key that is revoked, or was there; it may go meanwhile */
    struct api_key *made; /* owned, until it is kept */
    char secret[API_KEY_TEXT_SIZE];
    api_key_done *done;
    void *context;
    struct error failure;
};

static struct change *change_new(struct domain *domain, api_key_done *done, void *context)
{
    struct change *change = mem_alloc(sizeof(*change));

    change->domain = domain;
    change->done = done;
    change->context = context;
    return change;
}

static void change_free(struct change *change)
{
    explicit_bzero(change->secret, sizeof(change->secret));
    api_key_free(change->made);
    free(change);
}

static void answer(struct domain_task *task)
{
    struct change *change = CONTAINER_OF(task, struct change, task);
    bool failed = change->failure.code != ERR_NONE;

    change->done(change->context, failed ? &change->failure : NULL,
                 failed ? NULL : api_key_find_id(change->domain, &change->id), NULL);
    change_free(change);
}

static void answer_later(struct change *change)
{
    domain_defer(change->domain, &change->task, answer);
}

/* --- what is told ---------------------------------------------------------------------------- */

static void add_event(struct change *change, struct store_transaction *transaction,
                      const struct caller *caller, const struct api_key *key, const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_TEXT_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &data);
    json_begin_object(&json);
    json_add_text(&json, "keyId", key->id.text);
    json_add_text(&json, "name", key->name);
    json_add_text(&json, "prefix", key->prefix);
    json_add_text(&json, "scope", api_key_scope_text(key->scope));
    if (*key->sandbox.text)
        json_add_text(&json, "sandboxId", key->sandbox.text);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* all of its parts are bounded */
    event_add(change->domain, transaction, caller, &key->owner, "system", type, text_string(&data));
}

/* --- create ---------------------------------------------------------------------------------- */

static void kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct api_key *key = change->made;

    if (failure) {
        change->failure = *failure;
        answer(&change->task);
        return;
    }
    change->made = NULL;
    api_key_remember(change->domain, key);
    event_kept(change->domain, receipt);
    change->done(change->context, NULL, key, *change->secret ? change->secret : NULL);
    change_free(change);
}

static void keep(struct change *change, const struct caller *caller)
{
    struct store_transaction *transaction = store_begin(change->domain->options.store);

    api_key_put(transaction, change->made, true);
    add_event(change, transaction, caller, change->made, "key.created");
    domain_commit(change->domain, transaction, kept, change);
}

static void set_secret(struct api_key *key, const char *secret)
{
    hash_bytes(secret, strlen(secret), key->hash);
    (void) snprintf(key->prefix, sizeof(key->prefix), "%s", secret);
}

static void make_secret(struct change *change)
{
    uint8_t random[SECRET_RANDOM];
    size_t length = sizeof(SECRET_PREFIX) - 1;

    memcpy(change->secret, SECRET_PREFIX, length);
    random_bytes(random, sizeof(random));
    (void) hex_encode(random, sizeof(random), change->secret + length);
    explicit_bzero(random, sizeof(random));
    set_secret(change->made, change->secret);
}

static int check_name(const char *name, struct error *err)
{
    size_t length = name ? strlen(name) : 0;

    if (!length || length > API_KEY_NAME_MAX || !utf8_is_valid(name, length))
        return error_set(err, ERR_INVALID, 0, "a key's name has 1 to %d bytes of UTF-8",
                         API_KEY_NAME_MAX);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char) name[i] < ' ' || name[i] == 0x7f)
            return error_set(err, ERR_INVALID, 0, "a key's name has no control characters");
    }
    return 0;
}

/* The fields a scope needs, and no others. */
static int check_place(const struct api_key_spec *spec, struct error *err)
{
    bool is_narrow = spec->scope == CALLER_SANDBOX || spec->scope == CALLER_PORT;

    if (!api_key_scope_text(spec->scope))
        return error_set(err, ERR_INVALID, 0, "no key has this scope");
    if (is_narrow != (*spec->sandbox.text != '\0'))
        return error_set(err, ERR_INVALID, 0,
                         "the scopes sandbox and port need a sandbox, the others have none");
    if ((spec->scope == CALLER_PORT) != (spec->port != 0))
        return error_set(err, ERR_INVALID, 0, "the scope port needs a port, the others have none");
    return 0;
}

/* A sandbox's key belongs to the sandbox's owner, also when an administrator makes it. */
static int find_owner(struct change *change, const struct caller *caller,
                      const struct api_key_spec *spec, struct error *err)
{
    struct api_key *made = change->made;
    const struct sandbox *sandbox;
    const struct owner *owner;

    made->owner = *spec->owner.text ? spec->owner : caller->owner;
    if (*spec->sandbox.text) {
        sandbox = domain_find_sandbox(change->domain, caller, spec->sandbox.text, err);
        if (!sandbox)
            return -1;
        if (*spec->owner.text && !id_equal(&spec->owner, &sandbox->owner))
            return error_set(err, ERR_INVALID, 0, "the sandbox belongs to somebody else");
        made->sandbox = sandbox->id;
        made->owner = sandbox->owner;
    }
    owner = owner_find(change->domain, &made->owner);
    if (!owner || !caller_sees_owner(caller, &made->owner))
        return error_set(err, ERR_NOT_FOUND, 0, "no such user");
    if (made->scope == CALLER_ADMIN && !owner->is_admin)
        return error_set(err, ERR_INVALID, 0, "only an administrator has an administrator's key");
    return 0;
}

static int set_expiry(struct change *change, const struct caller *caller, int64_t expires_ms,
                      struct error *err)
{
    const struct api_key *own = api_key_find_id(change->domain, &caller->credential);

    if (expires_ms && expires_ms <= domain_wall_ms(change->domain))
        return error_set(err, ERR_INVALID, 0, "a key expires in the future");
    if (own && own->expires_ms && !expires_ms)
        expires_ms = own->expires_ms;
    if (own && own->expires_ms && expires_ms > own->expires_ms)
        return error_set(err, ERR_FORBIDDEN, 0, "a key lasts no longer than the one that made it");
    change->made->expires_ms = expires_ms;
    return 0;
}

static int check_count(const struct domain *domain, const struct id *owner, struct error *err)
{
    size_t count = 0;

    LIST_EACH (&domain->api_keys->all, at)
        count += id_equal(&CONTAINER_OF(at, struct api_key, link)->owner, owner);
    if (count >= API_KEYS_PER_OWNER || domain->api_keys->count >= API_KEYS_MAX)
        return error_set(err, ERR_QUOTA, 0, "there are %zu keys of this user, at most %d", count,
                         API_KEYS_PER_OWNER);
    return 0;
}

static int plan(struct change *change, const struct caller *caller, const struct api_key_spec *spec,
                struct error *err)
{
    if (!domain_is_open(change->domain, err))
        return -1;
    if (!caller_may_write(caller) || (spec->scope == CALLER_ADMIN && caller->scope < CALLER_ADMIN))
        return error_set(err, ERR_FORBIDDEN, 0, "nobody makes a key wider than the own one");
    if (check_name(spec->name, err) < 0 || check_place(spec, err) < 0)
        return -1;
    change->made->name = mem_copy_text(spec->name);
    change->made->scope = spec->scope;
    change->made->port = spec->port;
    if (find_owner(change, caller, spec, err) < 0 ||
        set_expiry(change, caller, spec->expires_ms, err) < 0)
        return -1;
    return check_count(change->domain, &change->made->owner, err);
}

static struct api_key *key_new(const struct domain *domain)
{
    struct api_key *key = mem_alloc(sizeof(*key));

    key->id = id_new();
    key->created_ms = domain_wall_ms(domain);
    return key;
}

void api_key_create(struct domain *domain, const struct caller *caller,
                    const struct api_key_spec *spec, api_key_done *done, void *context)
{
    struct change *change = change_new(domain, done, context);

    change->made = key_new(domain);
    if (plan(change, caller, spec, &change->failure) < 0) {
        answer_later(change);
        return;
    }
    make_secret(change);
    keep(change, caller);
}

void api_key_adopt(struct domain *domain, const struct id *owner, const char *name,
                   const char *secret, api_key_done *done, void *context)
{
    struct change *change = change_new(domain, done, context);
    const struct caller system = caller_system();
    const struct api_key *known;
    uint8_t hash[HASH_SIZE];

    hash_bytes(secret, strlen(secret), hash);
    known = api_key_find_hash(domain, hash);
    if (known)
        change->id = known->id;
    else if (strlen(secret) < SECRET_MIN)
        (void) error_set(&change->failure, ERR_INVALID, 0, "this key is too short to be one");
    if (known || change->failure.code != ERR_NONE || !domain_is_open(domain, &change->failure)) {
        answer_later(change);
        return;
    }
    change->made = key_new(domain);
    change->made->owner = *owner;
    change->made->scope = CALLER_ADMIN;
    change->made->name = mem_copy_text(name);
    set_secret(change->made, secret);
    keep(change, &system);
}

/* --- revoke ---------------------------------------------------------------------------------- */

static void revoked(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct api_key *key = api_key_find_id(change->domain, &change->id);

    if (failure) {
        if (key)
            key->revoked_ms = 0;
        change->failure = *failure;
    } else {
        event_kept(change->domain, receipt);
    }
    answer(&change->task);
}

void api_key_revoke(struct domain *domain, const struct caller *caller, struct api_key *key,
                    api_key_done *done, void *context)
{
    struct change *change = change_new(domain, done, context);
    struct store_transaction *transaction;

    change->id = key->id;
    if (domain_is_open(domain, &change->failure) && !caller_may_write(caller))
        (void) error_set(&change->failure, ERR_FORBIDDEN, 0, "this key may only look");
    else if (key->scope == CALLER_ADMIN && caller->scope < CALLER_ADMIN)
        (void) error_set(&change->failure, ERR_FORBIDDEN, 0,
                         "only administrators revoke an administrator's key");
    if (change->failure.code != ERR_NONE || key->revoked_ms) {
        answer_later(change);
        return;
    }
    /* From now on, not from the commit on: whoever revokes is in a hurry. */
    key->revoked_ms = domain_wall_ms(domain);
    transaction = store_begin(domain->options.store);
    api_key_put(transaction, key, false);
    add_event(change, transaction, caller, key, "key.revoked");
    domain_commit(domain, transaction, revoked, change);
}
