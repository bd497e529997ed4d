/* For tests of people, keys and logins: a domain on a store in memory and a provider that only
 * remembers, with a clock that stands still. Included by test programs only. */
#pragma once

#include "base/clock.h"
#include "domain/domain.h"
#include "domain/event/audit.h"
#include "domain/identity/api_key.h"
#include "domain/identity/login.h"
#include "domain/identity/owner.h"
#include "domain/sandbox/sandboxes.h"
#include "net/net_testing.h"
#include "provider/provider_fake.h"
#include "store/keyring.h"
#include "store/store_sqlite.h"

#define HOUSE_NOW_MS INT64_C(1800000000000)

struct house {
    struct loop loop;
    struct clock_manual clock;
    struct keyring *keyring;
    struct store *store;
    struct domain *domain;
    struct loop_task turn;
    struct quota default_quota;
    unsigned int rights_changed; /* standing.h */

    /* What the last call answered. */
    int answers;
    struct error failure;
    struct owner *owner;
    struct api_key *key;
    struct login *login;
    struct sandbox *sandbox;
    char secret[128];
};

/* --- a domain -------------------------------------------------------------------------------- */

static inline void house_turn(struct loop_task *task)
{
    domain_turn(CONTAINER_OF(task, struct house, turn)->domain);
}

static inline void house_defer(void *context)
{
    struct house *house = context;

    loop_defer(&house->loop, &house->turn);
}

static inline void house_standing_changed(void *context)
{
    ((struct house *) context)->rights_changed++;
}

/* Whether that was told since it was asked last. */
static inline bool house_rights_changed(struct house *house)
{
    unsigned int changes = house->rights_changed;

    house->rights_changed = 0;
    return changes > 0;
}

static inline void house_lost(void *context, const struct error *reason)
{
    (void) context;
    fail_msg("%s", reason->message);
}

static inline void house_answered(void *context, const struct error *failure)
{
    struct house *house = context;

    house->answers++;
    house->failure = failure ? *failure : (struct error) ERROR_INIT;
}

static inline enum err_code house_wait(struct house *house)
{
    assert_int_equal(house->answers, 0); /* never from inside the call */
    TURN_UNTIL(&house->loop, house->answers);
    assert_int_equal(house->answers, 1);
    house->answers = 0;
    return house->failure.code;
}

static inline void house_open_domain(struct house *house)
{
    const struct provider_fake_options fake = {.loop = &house->loop};
    const struct domain_options options = {
        .store = house->store,
        .provider = provider_fake_new(&fake),
        .clock = &house->clock.clock,
        .node = "test",
        .default_quota = house->default_quota,
        .lost = house_lost,
        .standing_changed = house_standing_changed,
        .defer = house_defer,
        .context = house,
    };

    house->domain = domain_new(&options);
    domain_open(house->domain, house_answered, house);
    assert_int_equal(house_wait(house), ERR_NONE);
}

static inline void house_close_domain(struct house *house)
{
    domain_close(house->domain, house_answered, house);
    TURN_UNTIL(&house->loop, house->answers);
    house->answers = 0;
    loop_task_cancel(&house->turn);
}

static inline void house_begin(struct house *house)
{
    struct error err = ERROR_INIT;
    struct store_sqlite_options options = {.loop = &house->loop, .path = ":memory:"};

    *house = (struct house){.answers = 0};
    assert_int_equal(loop_init(&house->loop, NULL), 0);
    clock_manual_init(&house->clock, HOUSE_NOW_MS);
    loop_task_init(&house->turn, house_turn);
    house->keyring = keyring_new();
    options.keyring = house->keyring;
    house->store = store_sqlite_new(&options, &err);
    if (!house->store)
        fail_msg("%s", err.message);
    house_open_domain(house);
}

static inline void house_kept(void *context, const struct error *failure,
                              const struct store_receipt *receipt)
{
    (void) receipt;
    house_answered(context, failure);
}

static inline void house_end(struct house *house)
{
    house_close_domain(house);
    store_close(house->store, house_kept, house);
    TURN_UNTIL(&house->loop, house->answers);
    keyring_free(house->keyring);
    loop_run(&house->loop);
    loop_done(&house->loop);
}

/* As after a restart: all that was not kept is gone. */
static inline void house_restart(struct house *house)
{
    house_close_domain(house);
    house_open_domain(house);
}

static inline void house_advance(struct house *house, uint64_t milliseconds)
{
    clock_manual_advance(&house->clock, milliseconds);
    domain_tick(house->domain);
}

/* --- calls that wait ------------------------------------------------------------------------- */

static inline void house_got_owner(void *context, const struct error *failure, struct owner *owner)
{
    struct house *house = context;

    house->owner = owner;
    house_answered(house, failure);
}

static inline void house_got_key(void *context, const struct error *failure, struct api_key *key,
                                 const char *secret)
{
    struct house *house = context;

    house->key = key;
    (void) snprintf(house->secret, sizeof(house->secret), "%s", secret ? secret : "");
    house_answered(house, failure);
}

static inline void house_got_login(void *context, const struct error *failure, struct login *login,
                                   const char *token)
{
    struct house *house = context;

    house->login = login;
    (void) snprintf(house->secret, sizeof(house->secret), "%s", token ? token : "");
    house_answered(house, failure);
}

static inline struct owner *house_owner(struct house *house, const char *name, const char *email,
                                        bool is_admin)
{
    const struct caller system = caller_system();
    const struct owner_spec spec = {
        .name = name, .email = email, .password = email ? "hash" : NULL, .is_admin = is_admin};

    owner_create(house->domain, &system, &spec, house_got_owner, house);
    assert_int_equal(house_wait(house), ERR_NONE);
    return house->owner;
}

static inline struct caller house_caller(const struct owner *owner, enum caller_scope scope)
{
    return (struct caller){.scope = scope, .owner = owner->id, .address = "192.0.2.7"};
}

static inline enum err_code house_make_key(struct house *house, const struct caller *caller,
                                           const struct api_key_spec *spec)
{
    api_key_create(house->domain, caller, spec, house_got_key, house);
    return house_wait(house);
}

/* A key of this scope; its secret is in house->secret. */
static inline struct api_key *house_key(struct house *house, const struct owner *owner,
                                        enum caller_scope scope)
{
    const struct caller system = caller_system();
    const struct api_key_spec spec = {.name = "test", .scope = scope, .owner = owner->id};

    assert_int_equal(house_make_key(house, &system, &spec), ERR_NONE);
    return house->key;
}

static inline struct login *house_log_in(struct house *house, struct owner *owner)
{
    const struct caller nobody = {.scope = CALLER_NOBODY, .address = "192.0.2.7"};

    login_create(house->domain, &nobody, owner, "test/1.0", house_got_login, house);
    assert_int_equal(house_wait(house), ERR_NONE);
    return house->login;
}

static inline void house_got_sandbox(void *context, const struct error *failure,
                                     struct sandbox *sandbox, bool is_new)
{
    struct house *house = context;

    (void) is_new;
    house->sandbox = sandbox;
    house_answered(house, failure);
}

static inline struct sandbox *house_sandbox(struct house *house, const struct owner *owner)
{
    const struct caller caller = house_caller(owner, CALLER_WRITE);
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    sandbox_create(house->domain, &caller, &spec, house_got_sandbox, house);
    assert_int_equal(house_wait(house), ERR_NONE);
    return house->sandbox;
}

static inline void house_destroyed(void *context, const struct error *failure,
                                   struct sandbox *sandbox)
{
    (void) sandbox;
    house_answered(context, failure);
}

static inline void house_destroy(struct house *house, struct sandbox *sandbox)
{
    const struct caller system = caller_system();

    sandbox_destroy(house->domain, &system, sandbox, house_destroyed, house);
    assert_int_equal(house_wait(house), ERR_NONE);
}

/* The scope that a secret opens; CALLER_NOBODY for none. */
static inline enum caller_scope house_scope_of_key(struct house *house, const char *secret)
{
    struct caller caller = {.scope = CALLER_NOBODY};
    struct error err = ERROR_INIT;

    if (api_key_check(house->domain, secret, &caller, &err) == 0)
        return caller.scope;
    assert_int_equal(err.code, ERR_UNAUTHENTICATED);
    return CALLER_NOBODY;
}

static inline enum caller_scope house_scope_of_login(struct house *house, const char *token)
{
    struct caller caller = {.scope = CALLER_NOBODY};
    struct error err = ERROR_INIT;

    if (login_check(house->domain, token, &caller, NULL, &err) == 0)
        return caller.scope;
    assert_int_equal(err.code, ERR_UNAUTHENTICATED);
    return CALLER_NOBODY;
}

/* --- the audit log --------------------------------------------------------------------------- */

struct house_audit {
    struct house *house;
    size_t count;
    struct {
        char action[64], outcome[32], detail[300], owner[ID_SIZE], address[64];
    } entries[64]; /* newest first */
};

static inline void house_got_audit(void *context, const struct error *failure,
                                   const struct audit_entry *entries, size_t count)
{
    struct house_audit *audit = context;

    audit->count = count;
    for (size_t i = 0; i < count && i < ARRAY_COUNT(audit->entries); i++) {
        (void) snprintf(audit->entries[i].action, 64, "%s", entries[i].action);
        (void) snprintf(audit->entries[i].outcome, 32, "%s", entries[i].outcome);
        (void) snprintf(audit->entries[i].detail, 300, "%s", entries[i].detail);
        (void) snprintf(audit->entries[i].owner, ID_SIZE, "%s", entries[i].owner);
        (void) snprintf(audit->entries[i].address, 64, "%s", entries[i].address);
    }
    house_answered(audit->house, failure);
}

static inline void house_read_audit(struct house *house, struct house_audit *ret_audit)
{
    const struct caller system = caller_system();
    size_t before, rounds = 0;

    *ret_audit = (struct house_audit){.house = house};
    /* Entries are written behind, a batch at a time: read until no more come. */
    do {
        before = ret_audit->count;
        audit_page(house->domain, &system, 0, AUDIT_PAGE_MAX, house_got_audit, ret_audit);
        assert_int_equal(house_wait(house), ERR_NONE);
        rounds = ret_audit->count == before ? rounds + 1 : 0;
    } while (rounds < 3);
}
