#include "domain/identity/identity.h"
#include "domain/identity/identity_testing.h"

#define SECRET "burrow_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static enum err_code first(struct house *house, const char *secret)
{
    identity_first(house->domain, secret, house_got_owner, house);
    return house_wait(house);
}

static void the_first_start_makes_an_administrator_who_holds_the_key(void **state)
{
    struct house house;
    struct id admin;

    (void) state;
    house_begin(&house);
    assert_int_equal(first(&house, SECRET), ERR_NONE);
    assert_string_equal(house.owner->name, "admin");
    assert_true(house.owner->is_admin);
    admin = house.owner->id;
    assert_int_equal(house_scope_of_key(&house, SECRET), CALLER_ADMIN);
    house_restart(&house);
    assert_int_equal(house_scope_of_key(&house, SECRET), CALLER_ADMIN);
    /* Every later start finds it so. */
    assert_int_equal(first(&house, SECRET), ERR_NONE);
    assert_string_equal(house.owner->id.text, admin.text);
    assert_int_equal(owner_count(house.domain), 1);
    house_end(&house);
}

static void another_key_in_the_file_is_one_more(void **state)
{
    struct house house;

    (void) state;
    house_begin(&house);
    assert_int_equal(first(&house, SECRET), ERR_NONE);
    assert_int_equal(first(&house, SECRET "00"), ERR_NONE);
    assert_int_equal(house_scope_of_key(&house, SECRET), CALLER_ADMIN);
    assert_int_equal(house_scope_of_key(&house, SECRET "00"), CALLER_ADMIN);
    house_end(&house);
}

static void a_revoked_key_stays_revoked(void **state)
{
    const struct caller system = caller_system();
    struct house house;

    (void) state;
    house_begin(&house);
    assert_int_equal(first(&house, SECRET), ERR_NONE);
    api_key_revoke(house.domain, &system,
                   api_key_find(house.domain, &system, "burrow_01234567", NULL), house_got_key,
                   &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_int_equal(first(&house, SECRET), ERR_NONE);
    assert_int_equal(house_scope_of_key(&house, SECRET), CALLER_NOBODY);
    house_end(&house);
}

static void without_keys_there_is_an_administrator_all_the_same(void **state)
{
    struct house house;

    (void) state;
    house_begin(&house);
    assert_int_equal(first(&house, NULL), ERR_NONE);
    assert_true(house.owner->is_admin);
    assert_int_equal(first(&house, "short"), ERR_INVALID);
    house_end(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_start_makes_an_administrator_who_holds_the_key),
        cmocka_unit_test(another_key_in_the_file_is_one_more),
        cmocka_unit_test(a_revoked_key_stays_revoked),
        cmocka_unit_test(without_keys_there_is_an_administrator_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
