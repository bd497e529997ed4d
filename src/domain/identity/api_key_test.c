#include "domain/domain_internal.h"
#include "domain/identity/api_key_internal.h"
#include "domain/identity/identity_testing.h"

#define HOUR_MS ((int64_t) 3600 * 1000)

static enum err_code revoke_now(struct house *house, const struct caller *caller,
                                struct api_key *key)
{
    api_key_revoke(house->domain, caller, key, house_got_key, house);
    return house_wait(house);
}

static void a_key_opens_what_it_was_made_for_also_after_a_restart(void **state)
{
    static const enum caller_scope scopes[] = {CALLER_READ, CALLER_WRITE, CALLER_ADMIN};
    struct house house;
    struct id owner;

    (void) state;
    house_begin(&house);
    owner = house_owner(&house, "Ada", NULL, true)->id;
    for (size_t i = 0; i < ARRAY_COUNT(scopes); i++) {
        struct caller caller = {.scope = CALLER_NOBODY};

        (void) house_key(&house, owner_find(house.domain, &owner), scopes[i]);
        assert_int_equal(strlen(house.secret), API_KEY_TEXT_SIZE - 1);
        assert_memory_equal(house.secret, "burrow_", 7);
        assert_memory_equal(house.secret, house.key->prefix, 15);
        assert_int_equal(strlen(house.key->prefix), 15);
        house_restart(&house);
        assert_int_equal(api_key_check(house.domain, house.secret, &caller, NULL), 0);
        assert_int_equal(caller.scope, scopes[i]);
        assert_string_equal(caller.owner.text, owner.text);
        assert_true(id_is_valid(caller.credential.text));
    }
    house_end(&house);
}

static void the_secret_is_kept_nowhere(void **state)
{
    struct house house;
    struct owner *ada;
    uint8_t hash[SHA256_SIZE];

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    (void) house_key(&house, ada, CALLER_WRITE);
    sha256_bytes(house.secret, strlen(house.secret), hash);
    assert_memory_equal(house.key->hash, hash, SHA256_SIZE);
    assert_string_not_equal(house.key->prefix, house.secret);
    house_end(&house);
}

static void what_is_almost_a_key_is_none(void **state)
{
    struct house house;
    char secret[128];

    (void) state;
    house_begin(&house);
    (void) house_key(&house, house_owner(&house, "Ada", NULL, true), CALLER_ADMIN);
    for (size_t i = 0; i < strlen(house.secret); i += 7) {
        memcpy(secret, house.secret, sizeof(secret));
        secret[i] ^= 1;
        assert_int_equal(house_scope_of_key(&house, secret), CALLER_NOBODY);
    }
    memcpy(secret, house.secret, sizeof(secret));
    secret[strlen(secret) - 1] = '\0';
    assert_int_equal(house_scope_of_key(&house, secret), CALLER_NOBODY);
    assert_int_equal(house_scope_of_key(&house, house.key->prefix), CALLER_NOBODY);
    assert_int_equal(house_scope_of_key(&house, ""), CALLER_NOBODY);
    house_end(&house);
}

static void a_key_expires_and_is_revoked(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct owner *ada;
    struct api_key_spec spec = {.name = "k", .scope = CALLER_WRITE};

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    spec.owner = ada->id;
    spec.expires_ms = HOUSE_NOW_MS + HOUR_MS;
    assert_int_equal(house_make_key(&house, &system, &spec), ERR_NONE);
    clock_manual_advance(&house.clock, HOUR_MS - 1);
    assert_int_equal(house_scope_of_key(&house, house.secret), CALLER_WRITE);
    clock_manual_advance(&house.clock, 1);
    assert_int_equal(house_scope_of_key(&house, house.secret), CALLER_NOBODY);
    (void) house_key(&house, ada, CALLER_WRITE);
    {
        char secret[128];

        memcpy(secret, house.secret, sizeof(secret));
        api_key_revoke(house.domain, &system, house.key, house_got_key, &house);
        /* From the call on. */
        assert_int_equal(house_scope_of_key(&house, secret), CALLER_NOBODY);
        assert_int_equal(house_wait(&house), ERR_NONE);
        assert_true(house.key->revoked_ms > 0);
        assert_int_equal(revoke_now(&house, &system, house.key), ERR_NONE);
        house_restart(&house);
        assert_int_equal(house_scope_of_key(&house, secret), CALLER_NOBODY);
    }
    house_end(&house);
}

static void nobody_makes_a_key_wider_than_the_own_one(void **state)
{
    struct house house;
    struct owner *ada, *eve;
    struct caller caller;
    struct api_key_spec spec = {.name = "k", .scope = CALLER_WRITE};

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, false);
    caller = house_caller(eve, CALLER_READ);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_FORBIDDEN);
    caller = house_caller(eve, CALLER_SANDBOX);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_FORBIDDEN);
    caller = house_caller(eve, CALLER_WRITE);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NONE);
    assert_string_equal(house.key->owner.text, eve->id.text);
    spec.owner = ada->id;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NOT_FOUND);
    spec.scope = CALLER_ADMIN;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_FORBIDDEN);
    caller = house_caller(ada, CALLER_WRITE);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_FORBIDDEN);
    caller = house_caller(ada, CALLER_ADMIN);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NONE);
    spec.owner = eve->id;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_INVALID);
    house_end(&house);
}

static void a_key_lasts_no_longer_than_the_one_that_made_it(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct caller caller;
    struct api_key_spec spec = {
        .name = "k", .scope = CALLER_WRITE, .expires_ms = HOUSE_NOW_MS + HOUR_MS};

    (void) state;
    house_begin(&house);
    spec.owner = house_owner(&house, "Ada", NULL, true)->id;
    assert_int_equal(house_make_key(&house, &system, &spec), ERR_NONE);
    caller = house_caller(owner_find(house.domain, &spec.owner), CALLER_WRITE);
    caller.credential = house.key->id;
    spec.expires_ms = HOUSE_NOW_MS + HOUR_MS + 1;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_FORBIDDEN);
    spec.expires_ms = 0;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NONE);
    assert_int_equal(house.key->expires_ms, HOUSE_NOW_MS + HOUR_MS);
    spec.expires_ms = HOUSE_NOW_MS;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_INVALID);
    house_end(&house);
}

static void a_narrow_key_belongs_to_its_sandbox_and_goes_with_it(void **state)
{
    struct house house;
    struct owner *ada, *eve;
    struct sandbox *sandbox;
    struct caller caller, holder = {.scope = CALLER_NOBODY};
    struct api_key_spec spec = {.name = "k", .scope = CALLER_SANDBOX};

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, false);
    sandbox = house_sandbox(&house, eve);
    caller = house_caller(ada, CALLER_ADMIN);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_INVALID);
    spec.sandbox = sandbox->id;
    spec.port = 80;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_INVALID);
    spec.scope = CALLER_PORT;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NONE);
    assert_string_equal(house.key->owner.text, eve->id.text);
    assert_int_equal(api_key_check(house.domain, house.secret, &holder, NULL), 0);
    assert_int_equal(holder.scope, CALLER_PORT);
    assert_int_equal(holder.port, 80);
    assert_string_equal(holder.sandbox.text, sandbox->id.text);
    spec.owner = ada->id;
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_INVALID);
    /* Somebody else's sandbox is not there. */
    caller = house_caller(house_owner(&house, "Bob", NULL, false), CALLER_WRITE);
    spec.owner = (struct id){.text = ""};
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NOT_FOUND);
    house_destroy(&house, sandbox);
    assert_int_equal(house_scope_of_key(&house, house.secret), CALLER_NOBODY);
    house_restart(&house);
    assert_int_equal(house.domain->api_keys->count, 0);
    house_end(&house);
}

static void count_one(void *context, struct api_key *key)
{
    (void) key;
    ++*(size_t *) context;
}

static size_t count_seen(struct house *house, const struct caller *caller)
{
    size_t count = 0;

    api_key_each(house->domain, caller, count_one, &count);
    return count;
}

static void keys_are_seen_by_their_owner_and_administrators(void **state)
{
    struct house house;
    struct owner *ada, *eve;
    struct caller caller;
    struct api_key *key;
    char prefix[16];

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, false);
    key = house_key(&house, ada, CALLER_ADMIN);
    memcpy(prefix, key->prefix, sizeof(prefix));
    (void) house_key(&house, eve, CALLER_WRITE);
    caller = house_caller(eve, CALLER_READ);
    assert_int_equal(count_seen(&house, &caller), 1);
    assert_null(api_key_find(house.domain, &caller, key->id.text, NULL));
    assert_null(api_key_find(house.domain, &caller, prefix, NULL));
    assert_non_null(api_key_find(house.domain, &caller, house.key->prefix, NULL));
    caller = house_caller(ada, CALLER_ADMIN);
    assert_int_equal(count_seen(&house, &caller), 2);
    assert_ptr_equal(api_key_find(house.domain, &caller, prefix, NULL), key);
    caller = house_caller(eve, CALLER_SANDBOX);
    assert_int_equal(count_seen(&house, &caller), 0);
    caller.scope = CALLER_NOBODY;
    assert_int_equal(count_seen(&house, &caller), 0);
    /* A write key of an administrator does not revoke the wider one. */
    caller = house_caller(ada, CALLER_WRITE);
    assert_int_equal(revoke_now(&house, &caller, key), ERR_FORBIDDEN);
    caller.scope = CALLER_READ;
    assert_int_equal(revoke_now(&house, &caller, house.key ? house.key : key), ERR_FORBIDDEN);
    assert_int_equal(key->revoked_ms, 0);
    house_end(&house);
}

static void whoever_is_no_administrator_any_more_has_no_such_key(void **state)
{
    const struct caller system = caller_system();
    const struct owner_spec plain = {.is_admin = false};
    struct house house;
    struct owner *bob;
    char secret[128];

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, true);
    bob = house_owner(&house, "Bob", NULL, true);
    (void) house_key(&house, bob, CALLER_ADMIN);
    memcpy(secret, house.secret, sizeof(secret));
    owner_update(house.domain, &system, bob, &plain, -1, house_got_owner, &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_int_equal(house_scope_of_key(&house, secret), CALLER_WRITE);
    house_end(&house);
}

static void the_last_use_is_kept_to_about_a_minute(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct id id;

    (void) state;
    house_begin(&house);
    id = house_key(&house, house_owner(&house, "Ada", NULL, true), CALLER_WRITE)->id;
    assert_int_equal(house.key->used_ms, 0);
    (void) house_scope_of_key(&house, house.secret);
    clock_manual_advance(&house.clock, 30 * 1000);
    (void) house_scope_of_key(&house, house.secret);
    house_restart(&house);
    assert_int_equal(api_key_find(house.domain, &system, id.text, NULL)->used_ms, HOUSE_NOW_MS);
    clock_manual_advance(&house.clock, 31 * 1000);
    (void) house_scope_of_key(&house, house.secret);
    house_restart(&house);
    assert_int_equal(api_key_find(house.domain, &system, id.text, NULL)->used_ms,
                     HOUSE_NOW_MS + 61 * 1000);
    house_end(&house);
}

static void old_dead_keys_are_forgotten_at_a_start(void **state)
{
    const struct caller system = caller_system();
    struct house house;

    (void) state;
    house_begin(&house);
    (void) house_key(&house, house_owner(&house, "Ada", NULL, true), CALLER_WRITE);
    assert_int_equal(revoke_now(&house, &system, house.key), ERR_NONE);
    clock_manual_advance(&house.clock, API_KEY_SHOWN_MS);
    house_restart(&house);
    assert_int_equal(house.domain->api_keys->count, 1);
    clock_manual_advance(&house.clock, 1);
    house_restart(&house);
    assert_int_equal(house.domain->api_keys->count, 0);
    house_restart(&house);
    assert_int_equal(house.domain->api_keys->count, 0);
    house_end(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_opens_what_it_was_made_for_also_after_a_restart),
        cmocka_unit_test(the_secret_is_kept_nowhere),
        cmocka_unit_test(what_is_almost_a_key_is_none),
        cmocka_unit_test(a_key_expires_and_is_revoked),
        cmocka_unit_test(nobody_makes_a_key_wider_than_the_own_one),
        cmocka_unit_test(a_key_lasts_no_longer_than_the_one_that_made_it),
        cmocka_unit_test(a_narrow_key_belongs_to_its_sandbox_and_goes_with_it),
        cmocka_unit_test(keys_are_seen_by_their_owner_and_administrators),
        cmocka_unit_test(whoever_is_no_administrator_any_more_has_no_such_key),
        cmocka_unit_test(the_last_use_is_kept_to_about_a_minute),
        cmocka_unit_test(old_dead_keys_are_forgotten_at_a_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
