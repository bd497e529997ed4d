#include "domain/identity/identity_testing.h"

static void a_login_is_its_owner_also_after_a_restart(void **state)
{
    struct house house;
    struct caller caller = {.scope = CALLER_NOBODY};
    struct login *login = NULL;
    struct id ada;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", "a@b", true)->id;
    (void) house_log_in(&house, owner_find(house.domain, &ada));
    assert_int_equal(strlen(house.secret), LOGIN_TOKEN_SIZE - 1);
    assert_memory_equal(house.secret, "burrow_login_", 13); /* as previews know secrets of ours */
    house_restart(&house);
    assert_int_equal(login_check(house.domain, house.secret, &caller, &login, NULL), 0);
    assert_int_equal(caller.scope, CALLER_ADMIN);
    assert_string_equal(caller.owner.text, ada.text);
    assert_string_equal(caller.credential.text, login->id.text);
    assert_string_equal(login->program, "test/1.0");
    assert_string_equal(login->address, "192.0.2.7");
    house_end(&house);
}

static void a_plain_user_may_write_and_no_more(void **state)
{
    struct house house;

    (void) state;
    house_begin(&house);
    (void) house_log_in(&house, house_owner(&house, "Eve", "e@b", false));
    assert_int_equal(house_scope_of_login(&house, house.secret), CALLER_WRITE);
    assert_int_equal(house_scope_of_login(&house, ""), CALLER_NOBODY);
    house.secret[3] ^= 1;
    assert_int_equal(house_scope_of_login(&house, house.secret), CALLER_NOBODY);
    house_end(&house);
}

static void a_login_that_is_used_lasts_and_one_that_is_not_ends(void **state)
{
    struct house house;
    int64_t expires_ms;

    (void) state;
    house_begin(&house);
    expires_ms = house_log_in(&house, house_owner(&house, "Ada", "a@b", true))->expires_ms;
    assert_int_equal(expires_ms, HOUSE_NOW_MS + LOGIN_LIFETIME_MS);
    clock_manual_advance(&house.clock, LOGIN_REFRESH_MS - 1);
    assert_int_equal(house_scope_of_login(&house, house.secret), CALLER_ADMIN);
    assert_int_equal(house.login->expires_ms, expires_ms);
    clock_manual_advance(&house.clock, 1);
    assert_int_equal(house_scope_of_login(&house, house.secret), CALLER_ADMIN);
    assert_int_equal(house.login->expires_ms, expires_ms + LOGIN_REFRESH_MS);
    house_restart(&house);
    clock_manual_advance(&house.clock, LOGIN_LIFETIME_MS - 1);
    {
        char secret[128];

        memcpy(secret, house.secret, sizeof(secret));
        assert_int_equal(house_scope_of_login(&house, secret), CALLER_ADMIN);
        clock_manual_advance(&house.clock, LOGIN_LIFETIME_MS);
        assert_int_equal(house_scope_of_login(&house, secret), CALLER_NOBODY);
    }
    house_end(&house);
}

static void logging_out_ends_it_at_once_and_for_good(void **state)
{
    struct house house;
    char token[128];

    (void) state;
    house_begin(&house);
    (void) house_log_in(&house, house_owner(&house, "Ada", "a@b", true));
    memcpy(token, house.secret, sizeof(token));
    login_end(house.domain, house.login, house_got_login, &house);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_NOBODY);
    assert_int_equal(house_wait(&house), ERR_NONE);
    house_restart(&house);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_NOBODY);
    house_end(&house);
}

static void the_oldest_of_too_many_goes(void **state)
{
    struct house house;
    struct owner *ada;
    char first[128], second[128];

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", "a@b", true);
    (void) house_log_in(&house, ada);
    memcpy(first, house.secret, sizeof(first));
    (void) house_log_in(&house, ada);
    memcpy(second, house.secret, sizeof(second));
    for (int i = 2; i < LOGINS_PER_OWNER; i++)
        (void) house_log_in(&house, ada);
    assert_int_equal(house_scope_of_login(&house, first), CALLER_ADMIN);
    (void) house_log_in(&house, ada);
    assert_int_equal(house_scope_of_login(&house, first), CALLER_NOBODY);
    assert_int_equal(house_scope_of_login(&house, second), CALLER_ADMIN);
    house_restart(&house);
    assert_int_equal(house_scope_of_login(&house, first), CALLER_NOBODY);
    assert_int_equal(house_scope_of_login(&house, second), CALLER_ADMIN);
    house_end(&house);
}

static void an_old_password_opens_nothing_while_a_new_one_is_on_its_way(void **state)
{
    const struct caller system = caller_system();
    const struct owner_spec spec = {.password = "new", .is_admin = -1};
    struct house house;
    struct owner *ada;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", "a@b", true);
    owner_update(house.domain, &system, ada, &spec, -1, house_got_owner, &house);
    login_create(house.domain, &system, ada, NULL, house_got_login, &house);
    TURN_UNTIL(&house.loop, house.answers == 2);
    house.answers = 0;
    assert_null(house.login);
    house_end(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_is_its_owner_also_after_a_restart),
        cmocka_unit_test(a_plain_user_may_write_and_no_more),
        cmocka_unit_test(a_login_that_is_used_lasts_and_one_that_is_not_ends),
        cmocka_unit_test(logging_out_ends_it_at_once_and_for_good),
        cmocka_unit_test(the_oldest_of_too_many_goes),
        cmocka_unit_test(an_old_password_opens_nothing_while_a_new_one_is_on_its_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
