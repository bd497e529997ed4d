#include "domain/identity/identity_testing.h"
#include "domain/port/port.h"
#include "domain/standing.h"

#define HOUR_MS ((int64_t) 3600 * 1000)

static struct error standing_of(struct house *house, const struct caller *caller)
{
    struct error err = ERROR_INIT;
    int64_t until_ms;

    (void) standing_check(house->domain, caller, &until_ms, &err);
    return err;
}

static int64_t until_of(struct house *house, const struct caller *caller)
{
    int64_t until_ms = -1;

    assert_int_equal(standing_check(house->domain, caller, &until_ms, NULL), 0);
    return until_ms;
}

/* As admission finds them out. */
static struct caller holder_of_key(struct house *house)
{
    struct caller caller = {.scope = CALLER_NOBODY};

    assert_int_equal(api_key_check(house->domain, house->secret, &caller, NULL), 0);
    return caller;
}

static struct caller holder_of_login(struct house *house)
{
    struct caller caller = {.scope = CALLER_NOBODY};

    assert_int_equal(login_check(house->domain, house->secret, &caller, NULL, NULL), 0);
    return caller;
}

static void change_owner(struct house *house, struct owner *owner, int is_admin, int is_disabled)
{
    const struct caller system = caller_system();
    const struct owner_spec spec = {.is_admin = is_admin};

    owner_update(house->domain, &system, owner, &spec, is_disabled, house_got_owner, house);
    assert_int_equal(house_wait(house), ERR_NONE);
}

static void a_key_stands_until_it_is_revoked(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct caller caller;

    (void) state;
    house_begin(&house);
    (void) house_key(&house, house_owner(&house, "Ada", NULL, true), CALLER_WRITE);
    caller = holder_of_key(&house);
    assert_int_equal(until_of(&house, &caller), 0);
    house_rights_changed(&house);
    api_key_revoke(house.domain, &system, house.key, house_got_key, &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    assert_string_equal(standing_of(&house, &caller).message, "this key was revoked");
    house_restart(&house);
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void a_key_stands_until_it_expires(void **state)
{
    const struct caller system = caller_system();
    struct api_key_spec spec = {
        .name = "k", .scope = CALLER_READ, .expires_ms = HOUSE_NOW_MS + HOUR_MS};
    struct house house;
    struct caller caller;

    (void) state;
    house_begin(&house);
    spec.owner = house_owner(&house, "Ada", NULL, true)->id;
    assert_int_equal(house_make_key(&house, &system, &spec), ERR_NONE);
    caller = holder_of_key(&house);
    assert_true(until_of(&house, &caller) == spec.expires_ms);
    clock_manual_advance(&house.clock, HOUR_MS - 1);
    assert_int_equal(standing_of(&house, &caller).code, ERR_NONE);
    clock_manual_advance(&house.clock, 1);
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void a_login_stands_until_it_ends(void **state)
{
    struct house house;
    struct owner *ada;
    struct caller caller;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", "a@b", true);
    (void) house_log_in(&house, ada);
    caller = holder_of_login(&house);
    assert_true(until_of(&house, &caller) == HOUSE_NOW_MS + LOGIN_LIFETIME_MS);
    house_rights_changed(&house);
    login_end(house.domain, house.login, house_got_login, &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    (void) house_log_in(&house, ada);
    caller = holder_of_login(&house);
    clock_manual_advance(&house.clock, LOGIN_LIFETIME_MS);
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void the_oldest_login_of_too_many_stands_no_longer(void **state)
{
    struct house house;
    struct owner *ada;
    struct caller caller;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", "a@b", true);
    (void) house_log_in(&house, ada);
    caller = holder_of_login(&house);
    for (int i = 1; i < LOGINS_PER_OWNER; i++)
        (void) house_log_in(&house, ada);
    assert_int_equal(standing_of(&house, &caller).code, ERR_NONE);
    house_rights_changed(&house);
    (void) house_log_in(&house, ada);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void nobody_stands_whose_user_is_disabled_or_gone(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct owner *eve;
    struct caller by_key, by_login;

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", "e@b", false);
    (void) house_key(&house, eve, CALLER_WRITE);
    by_key = holder_of_key(&house);
    (void) house_log_in(&house, eve);
    by_login = holder_of_login(&house);
    house_rights_changed(&house);
    change_owner(&house, eve, -1, true);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &by_key).code, ERR_UNAUTHENTICATED);
    assert_int_equal(standing_of(&house, &by_login).code, ERR_UNAUTHENTICATED);
    change_owner(&house, eve, -1, false);
    assert_int_equal(standing_of(&house, &by_key).code, ERR_NONE);
    house_rights_changed(&house);
    owner_delete(house.domain, &system, eve, house_got_owner, &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &by_key).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void whoever_is_no_administrator_any_more_stands_as_none(void **state)
{
    struct house house;
    struct owner *eve;
    struct caller caller;

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, true);
    (void) house_key(&house, eve, CALLER_ADMIN);
    caller = holder_of_key(&house);
    house_rights_changed(&house);
    change_owner(&house, eve, false, -1);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &caller).code, ERR_FORBIDDEN);
    caller = holder_of_key(&house);
    assert_int_equal(standing_of(&house, &caller).code, ERR_NONE);
    house_end(&house);
}

static void a_narrow_key_goes_with_its_sandbox(void **state)
{
    struct api_key_spec spec = {.name = "k", .scope = CALLER_SANDBOX};
    struct house house;
    struct sandbox *sandbox;
    struct caller caller, ada;

    (void) state;
    house_begin(&house);
    ada = house_caller(house_owner(&house, "Ada", NULL, true), CALLER_ADMIN);
    sandbox = house_sandbox(&house, owner_find(house.domain, &ada.owner));
    spec.sandbox = sandbox->id;
    assert_int_equal(house_make_key(&house, &ada, &spec), ERR_NONE);
    caller = holder_of_key(&house);
    assert_int_equal(standing_of(&house, &caller).code, ERR_NONE);
    house_rights_changed(&house);
    house_destroy(&house, sandbox);
    assert_true(house_rights_changed(&house));
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void got_port(void *context, const struct error *failure, struct port *port)
{
    (void) port;
    house_answered(context, failure);
}

static void a_token_stands_as_long_as_its_port(void **state)
{
    const struct caller system = caller_system();
    const struct port_spec spec = {.number = 8080, .expires_ms = HOUSE_NOW_MS + HOUR_MS};
    struct house house;
    struct owner *eve;
    struct sandbox *sandbox;
    struct caller caller;

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, false);
    sandbox = house_sandbox(&house, eve);
    port_expose(house.domain, &system, sandbox, &spec, got_port, &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    caller = standing_of_port(port_find(house.domain, &sandbox->id, 8080));
    assert_true(until_of(&house, &caller) == spec.expires_ms);
    change_owner(&house, eve, -1, true);
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    change_owner(&house, eve, -1, false);
    assert_int_equal(standing_of(&house, &caller).code, ERR_NONE);
    clock_manual_advance(&house.clock, HOUR_MS);
    assert_int_equal(standing_of(&house, &caller).code, ERR_UNAUTHENTICATED);
    house_end(&house);
}

static void the_daemon_itself_always_stands(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct caller without_keys;

    (void) state;
    house_begin(&house);
    without_keys = house_caller(house_owner(&house, "Ada", NULL, true), CALLER_ADMIN);
    assert_int_equal(standing_of(&house, &system).code, ERR_NONE);
    assert_int_equal(until_of(&house, &without_keys), 0);
    house_end(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_stands_until_it_is_revoked),
        cmocka_unit_test(a_key_stands_until_it_expires),
        cmocka_unit_test(a_login_stands_until_it_ends),
        cmocka_unit_test(the_oldest_login_of_too_many_stands_no_longer),
        cmocka_unit_test(nobody_stands_whose_user_is_disabled_or_gone),
        cmocka_unit_test(whoever_is_no_administrator_any_more_stands_as_none),
        cmocka_unit_test(a_narrow_key_goes_with_its_sandbox),
        cmocka_unit_test(a_token_stands_as_long_as_its_port),
        cmocka_unit_test(the_daemon_itself_always_stands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
