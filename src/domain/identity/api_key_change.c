/* Making and revoking keys. */
#include <stdio.h>
#include <string.h>

#include "base/encoding/encode.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/event/event.h"
#include "domain/identity/api_key_internal.h"
#include "domain/identity/owner.h"
#include "domain/standing.h"
#include "json/json_write.h"

#define SECRET_RANDOM  32
#define SECRET_MIN     40 /* of one that is adopted */
#define EVENT_TEXT_MAX ((size_t) 4096)

struct api_key_change {
    struct domain_change base;
    struct id id;         /* of the key that is revoked, or was there; it may go meanwhile */
    struct api_key *made; /* owned, until it is kept */
    char secret[API_KEY_TEXT_SIZE];
    api_key_done *done;
    void *context;
};

static struct api_key_change *key_change_new(struct domain *domain, const struct caller *caller,
                                             domain_change_end *end, api_key_done *done,
                                             void *context)
{
    struct api_key_change *change = domain_change_new(sizeof(*change), domain, caller, end);

    change->done = done;
    change->context = context;
    return change;
}

/* Answers with the key that was meant, if it is still there. */
static void key_change_end(struct api_key_change *change, const struct error *failure)
{
    struct api_key *key = failure ? NULL : api_key_find_id(change->base.domain, &change->id);

    change->done(change->context, failure, key, *change->secret && key ? change->secret : NULL);
    explicit_bzero(change->secret, sizeof(change->secret));
    api_key_free(change->made);
    free(change);
}

/* --- what is told ---------------------------------------------------------------------------- */

static void key_add_event(struct api_key_change *change, struct store_transaction *rows,
                          const struct api_key *key, const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_TEXT_MAX);
    struct json_writer json;

    json_document_begin(&json, &data);
    json_add_text(&json, "keyId", key->id.text);
    json_add_text(&json, "name", key->name);
    json_add_text(&json, "prefix", key->prefix);
    json_add_text(&json, "scope", api_key_scope_text(key->scope));
    if (*key->sandbox.text)
        json_add_text(&json, "sandboxId", key->sandbox.text);
    (void) json_document_end(&json); /* all of its parts are bounded */
    event_add(change->base.domain, rows, &change->base.caller, &key->owner, "system", type,
              text_string(&data));
}

/* --- create ---------------------------------------------------------------------------------- */

static void key_created(struct domain_change *base, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct api_key_change *change = CONTAINER_OF(base, struct api_key_change, base);

    if (receipt) {
        change->id = change->made->id;
        api_key_remember(base->domain, TAKE_PTR(change->made));
    }
    key_change_end(change, failure);
}

static void key_keep(struct api_key_change *change)
{
    struct store_transaction *rows = store_begin(change->base.domain->options.store);

    api_key_put(rows, change->made, true);
    key_add_event(change, rows, change->made, "key.created");
    domain_change_commit(&change->base, rows);
}

static void set_secret(struct api_key *key, const char *secret)
{
    sha256_bytes(secret, strlen(secret), key->hash);
    (void) snprintf(key->prefix, sizeof(key->prefix), "%s", secret);
}

static void make_secret(struct api_key_change *change)
{
    uint8_t random[SECRET_RANDOM];
    size_t length = sizeof(CALLER_SECRET_PREFIX) - 1;

    memcpy(change->secret, CALLER_SECRET_PREFIX, length);
    random_bytes(random, sizeof(random));
    (void) hex_encode(random, sizeof(random), change->secret + length);
    explicit_bzero(random, sizeof(random));
    set_secret(change->made, change->secret);
}

/* The fields a scope needs, and no others. */
static int key_change_check_place(const struct api_key_spec *spec, struct error *err)
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
static int find_owner(struct api_key_change *change, const struct api_key_spec *spec,
                      struct error *err)
{
    const struct caller *caller = &change->base.caller;
    struct api_key *made = change->made;
    const struct sandbox *sandbox;
    const struct owner *owner;

    made->owner = *spec->owner.text ? spec->owner : caller->owner;
    if (*spec->sandbox.text) {
        sandbox = domain_find_sandbox(change->base.domain, caller, spec->sandbox.text, err);
        if (!sandbox)
            return -1;
        if (*spec->owner.text && !id_equal(&spec->owner, &sandbox->owner))
            return error_set(err, ERR_INVALID, 0, "the sandbox belongs to somebody else");
        made->sandbox = sandbox->id;
        made->owner = sandbox->owner;
    }
    owner = owner_find(change->base.domain, &made->owner);
    if (!owner || !caller_sees_owner(caller, &made->owner))
        return error_set(err, ERR_NOT_FOUND, 0, "no such user");
    if (made->scope == CALLER_ADMIN && !owner->is_admin)
        return error_set(err, ERR_INVALID, 0, "only an administrator has an administrator's key");
    return 0;
}

static int set_expiry(struct api_key_change *change, int64_t expires_ms, struct error *err)
{
    const struct domain *domain = change->base.domain;
    const struct api_key *own = api_key_find_id(domain, &change->base.caller.credential);

    if (expires_ms && expires_ms <= domain_wall_ms(domain))
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

static int plan_key(struct api_key_change *change, const struct api_key_spec *spec,
                    struct error *err)
{
    const struct caller *caller = &change->base.caller;

    if (!domain_is_open(change->base.domain, err))
        return -1;
    if (!caller_may_write(caller) || (spec->scope == CALLER_ADMIN && caller->scope < CALLER_ADMIN))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "a key cannot have a wider scope than the one that makes it");
    if (domain_check_name(spec->name, API_KEY_NAME_MAX, "a key's name", err) < 0 ||
        key_change_check_place(spec, err) < 0)
        return -1;
    change->made->name = mem_copy_text(spec->name);
    change->made->scope = spec->scope;
    change->made->port = spec->port;
    if (find_owner(change, spec, err) < 0 || set_expiry(change, spec->expires_ms, err) < 0)
        return -1;
    return check_count(change->base.domain, &change->made->owner, err);
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
    struct api_key_change *change = key_change_new(domain, caller, key_created, done, context);

    change->made = key_new(domain);
    if (plan_key(change, spec, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    make_secret(change);
    key_keep(change);
}

void api_key_adopt(struct domain *domain, const struct id *owner, const char *name,
                   const char *secret, api_key_done *done, void *context)
{
    const struct caller system = caller_system();
    struct api_key_change *change = key_change_new(domain, &system, key_created, done, context);
    struct error *failure = &change->base.failure;
    const struct api_key *known;
    uint8_t hash[SHA256_SIZE];

    sha256_bytes(secret, strlen(secret), hash);
    known = api_key_find_hash(domain, hash);
    if (known)
        change->id = known->id;
    else if (strlen(secret) < SECRET_MIN)
        (void) error_set(failure, ERR_INVALID, 0, "a key must have at least %d characters",
                         SECRET_MIN);
    if (known || failure->code != ERR_NONE || !domain_is_open(domain, failure)) {
        domain_change_refuse(&change->base);
        return;
    }
    change->made = key_new(domain);
    change->made->owner = *owner;
    change->made->scope = CALLER_ADMIN;
    change->made->name = mem_copy_text(name);
    set_secret(change->made, secret);
    key_keep(change);
}

/* --- revoke ---------------------------------------------------------------------------------- */

static void key_revoked(struct domain_change *base, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct api_key_change *change = CONTAINER_OF(base, struct api_key_change, base);
    struct domain *domain = base->domain;
    struct api_key *key = api_key_find_id(domain, &change->id);

    (void) receipt;
    if (failure && !base->is_refused && key)
        key->revoked_ms = 0;
    key_change_end(change, failure);
    standing_changed(domain);
}

void api_key_revoke(struct domain *domain, const struct caller *caller, struct api_key *key,
                    api_key_done *done, void *context)
{
    struct api_key_change *change = key_change_new(domain, caller, key_revoked, done, context);
    struct error *failure = &change->base.failure;
    struct store_transaction *rows;

    change->id = key->id;
    if (domain_is_open(domain, failure) && !caller_may_write(caller))
        (void) error_set(failure, ERR_FORBIDDEN, 0, "this key may only look");
    else if (key->scope == CALLER_ADMIN && caller->scope < CALLER_ADMIN)
        (void) error_set(failure, ERR_FORBIDDEN, 0,
                         "only administrators revoke an administrator's key");
    if (failure->code != ERR_NONE || key->revoked_ms) {
        domain_change_refuse(&change->base);
        return;
    }
    /* From now on, not from the commit on: whoever revokes is in a hurry. */
    key->revoked_ms = domain_wall_ms(domain);
    rows = store_begin(domain->options.store);
    api_key_put(rows, key, false);
    key_add_event(change, rows, key, "key.revoked");
    domain_change_commit(&change->base, rows);
}
