#include "domain/identity/identity_testing.h"

static const struct caller by_system = {.scope = CALLER_SYSTEM};

static enum err_code create(struct house *house, const struct caller *caller,
                            const struct owner_spec *spec)
{
    owner_create(house->domain, caller, spec, house_got_owner, house);
    return house_wait(house);
}

static enum err_code update(struct house *house, const struct caller *caller, struct owner *owner,
                            const struct owner_spec *spec, int is_disabled)
{
    owner_update(house->domain, caller, owner, spec, is_disabled, house_got_owner, house);
    return house_wait(house);
}

static enum err_code delete_now(struct house *house, const struct caller *caller,
                                struct owner *owner)
{
    owner_delete(house->domain, caller, owner, house_got_owner, house);
    return house_wait(house);
}

static void an_owner_is_found_by_id_email_and_name_also_after_a_restart(void **state)
{
    struct house house;
    struct id id;

    (void) state;
    house_begin(&house);
    id = house_owner(&house, "Ada", "Ada@Example.org", true)->id;
    house_restart(&house);
    assert_non_null(owner_find(house.domain, &id));
    assert_ptr_equal(owner_find_email(house.domain, "ADA@example.ORG"),
                     owner_find(house.domain, &id));
    assert_ptr_equal(owner_named(house.domain, "Ada", NULL), owner_find(house.domain, &id));
    assert_ptr_equal(owner_named(house.domain, id.text, NULL), owner_find(house.domain, &id));
    assert_ptr_equal(owner_first_admin(house.domain), owner_find(house.domain, &id));
    assert_string_equal(owner_find(house.domain, &id)->email, "ada@example.org");
    assert_string_equal(owner_find(house.domain, &id)->password, "hash");
    assert_int_equal(owner_count(house.domain), 1);
    house_end(&house);
}

static void a_name_that_two_have_names_nobody(void **state)
{
    struct house house;
    struct error err = ERROR_INIT;

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, false);
    (void) house_owner(&house, "Ada", NULL, false);
    assert_null(owner_named(house.domain, "Ada", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    house_end(&house);
}

static void an_email_belongs_to_one(void **state)
{
    const struct owner_spec spec = {.name = "Eve", .email = "ADA@example.org"};
    struct house house;
    struct owner *other;

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", "ada@example.org", true);
    other = house_owner(&house, "Eve", NULL, false);
    assert_int_equal(create(&house, &by_system, &spec), ERR_CONFLICT);
    assert_int_equal(update(&house, &by_system, other, &spec, -1), ERR_CONFLICT);
    assert_null(other->email);
    /* Also when neither is in memory yet. */
    owner_create(house.domain, &by_system,
                 &(struct owner_spec){.name = "A", .email = "new@example.org"}, house_got_owner,
                 &house);
    owner_create(house.domain, &by_system,
                 &(struct owner_spec){.name = "B", .email = "new@example.org"}, house_got_owner,
                 &house);
    TURN_UNTIL(&house.loop, house.answers == 2);
    assert_int_equal(house.failure.code, ERR_CONFLICT);
    assert_non_null(strstr(house.failure.message, "email"));
    house.answers = 0;
    house_end(&house);
}

static void nonsense_is_refused_and_leaves_nothing(void **state)
{
    static const struct owner_spec wrong[] = {
        {.name = NULL},
        {.name = ""},
        {.name = "a\nb"},
        {.name = "\xff"},
        {.name = "a", .email = "no"},
        {.name = "a", .email = "@b"},
        {.name = "a", .email = "a@"},
        {.name = "a", .email = "a@b@c"},
        {.name = "a", .email = "a b@c"},
        {.name = "a", .quotas = "{\"wishes\":3}"},
        {.name = "a", .quotas = "nonsense"},
    };
    struct house house;

    (void) state;
    house_begin(&house);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        if (create(&house, &by_system, &wrong[i]) != ERR_INVALID)
            fail_msg("row %zu: %s", i, house.failure.message);
    }
    assert_int_equal(owner_count(house.domain), 0);
    house_end(&house);
}

static void only_administrators_make_and_remove_users(void **state)
{
    const struct owner_spec spec = {.name = "Bob"};
    struct house house;
    struct owner *ada, *eve;
    struct caller caller;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, false);
    caller = house_caller(eve, CALLER_WRITE);
    assert_int_equal(create(&house, &caller, &spec), ERR_FORBIDDEN);
    assert_int_equal(delete_now(&house, &caller, eve), ERR_FORBIDDEN);
    caller = house_caller(ada, CALLER_ADMIN);
    assert_int_equal(create(&house, &caller, &spec), ERR_NONE);
    assert_int_equal(delete_now(&house, &caller, house.owner), ERR_NONE);
    assert_null(house.owner);
    house_restart(&house);
    assert_int_equal(owner_count(house.domain), 2);
    house_end(&house);
}

static void a_user_changes_itself_but_not_its_rights(void **state)
{
    const struct owner_spec name = {.name = "Eva", .is_admin = -1};
    const struct owner_spec role = {.is_admin = true};
    const struct owner_spec quotas = {.quotas = "{\"sandboxes\":99}", .is_admin = -1};
    struct house house;
    struct owner *ada, *eve;
    struct caller caller;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    eve = house_owner(&house, "Eve", NULL, false);
    caller = house_caller(eve, CALLER_WRITE);
    assert_int_equal(update(&house, &caller, eve, &name, -1), ERR_NONE);
    assert_string_equal(eve->name, "Eva");
    assert_int_equal(update(&house, &caller, eve, &role, -1), ERR_FORBIDDEN);
    assert_int_equal(update(&house, &caller, eve, &quotas, -1), ERR_FORBIDDEN);
    assert_int_equal(update(&house, &caller, eve, &name, 1), ERR_FORBIDDEN);
    assert_int_equal(update(&house, &caller, ada, &name, -1), ERR_NOT_FOUND);
    caller.scope = CALLER_READ;
    assert_int_equal(update(&house, &caller, eve, &name, -1), ERR_NOT_FOUND);
    /* A lesser key of an administrator would make itself a wider one. */
    caller = house_caller(ada, CALLER_WRITE);
    assert_int_equal(update(&house, &caller, ada, &name, -1), ERR_FORBIDDEN);
    assert_string_equal(ada->name, "Ada");
    house_end(&house);
}

static void an_update_is_kept_and_one_at_a_time(void **state)
{
    const struct owner_spec one = {.name = "One", .email = "one@example.org", .is_admin = -1};
    const struct owner_spec two = {.name = "Two", .is_admin = -1};
    struct house house;
    struct owner *owner;
    struct id id;

    (void) state;
    house_begin(&house);
    owner = house_owner(&house, "Ada", "ada@example.org", true);
    id = owner->id;
    owner_update(house.domain, &by_system, owner, &one, -1, house_got_owner, &house);
    owner_update(house.domain, &by_system, owner, &two, -1, house_got_owner, &house);
    assert_string_equal(owner->name, "Ada"); /* not before it is kept */
    TURN_UNTIL(&house.loop, house.answers == 2);
    house.answers = 0;
    assert_string_equal(owner->name, "One");
    assert_null(owner_find_email(house.domain, "ada@example.org"));
    assert_ptr_equal(owner_find_email(house.domain, "one@example.org"), owner);
    house_restart(&house);
    assert_string_equal(owner_find(house.domain, &id)->name, "One");
    assert_true(owner_find(house.domain, &id)->is_admin);
    house_end(&house);
}

static void the_last_administrator_stays(void **state)
{
    const struct owner_spec plain = {.is_admin = false};
    const struct owner_spec nothing = {.is_admin = -1};
    struct house house;
    struct owner *ada, *bob;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    assert_int_equal(update(&house, &by_system, ada, &plain, -1), ERR_CONFLICT);
    assert_int_equal(update(&house, &by_system, ada, &nothing, 1), ERR_CONFLICT);
    assert_int_equal(delete_now(&house, &by_system, ada), ERR_CONFLICT);
    bob = house_owner(&house, "Bob", NULL, true);
    /* Two that go at once: one of them stays. */
    owner_update(house.domain, &by_system, ada, &plain, -1, house_got_owner, &house);
    owner_update(house.domain, &by_system, bob, &plain, -1, house_got_owner, &house);
    TURN_UNTIL(&house.loop, house.answers == 2);
    house.answers = 0;
    assert_true(ada->is_admin != bob->is_admin);
    assert_non_null(owner_first_admin(house.domain));
    house_end(&house);
}

static void an_owner_with_sandboxes_stays(void **state)
{
    struct house house;
    struct owner *bob;
    struct sandbox *sandbox;

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, true);
    bob = house_owner(&house, "Bob", NULL, false);
    sandbox = house_sandbox(&house, bob);
    assert_int_equal(delete_now(&house, &by_system, bob), ERR_CONFLICT);
    assert_false(bob->is_disabled);
    house_destroy(&house, sandbox);
    assert_int_equal(delete_now(&house, &by_system, bob), ERR_NONE);
    house_end(&house);
}

static void what_a_removed_or_disabled_owner_holds_opens_nothing(void **state)
{
    const struct owner_spec nothing = {.is_admin = -1};
    struct house house;
    struct owner *bob;
    char key[128], token[128];

    (void) state;
    house_begin(&house);
    (void) house_owner(&house, "Ada", NULL, true);
    bob = house_owner(&house, "Bob", NULL, false);
    (void) house_key(&house, bob, CALLER_WRITE);
    memcpy(key, house.secret, sizeof(key));
    (void) house_log_in(&house, bob);
    memcpy(token, house.secret, sizeof(token));
    assert_int_equal(house_scope_of_key(&house, key), CALLER_WRITE);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_WRITE);
    assert_int_equal(update(&house, &by_system, bob, &nothing, 1), ERR_NONE);
    assert_int_equal(house_scope_of_key(&house, key), CALLER_NOBODY);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_NOBODY);
    /* The key works again with its owner; logins were ended. */
    assert_int_equal(update(&house, &by_system, bob, &nothing, 0), ERR_NONE);
    assert_int_equal(house_scope_of_key(&house, key), CALLER_WRITE);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_NOBODY);
    assert_int_equal(delete_now(&house, &by_system, bob), ERR_NONE);
    assert_int_equal(house_scope_of_key(&house, key), CALLER_NOBODY);
    house_restart(&house);
    assert_int_equal(house_scope_of_key(&house, key), CALLER_NOBODY);
    house_end(&house);
}

static void a_new_password_ends_all_logins(void **state)
{
    const struct owner_spec spec = {.password = "other hash", .is_admin = -1};
    struct house house;
    struct owner *ada;
    char token[128];

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", "a@b", true);
    (void) house_log_in(&house, ada);
    memcpy(token, house.secret, sizeof(token));
    assert_int_equal(house_scope_of_login(&house, token), CALLER_ADMIN);
    assert_int_equal(update(&house, &by_system, ada, &spec, -1), ERR_NONE);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_NOBODY);
    house_restart(&house);
    assert_int_equal(house_scope_of_login(&house, token), CALLER_NOBODY);
    house_end(&house);
}

static void quotas_are_the_defaults_and_the_own_wishes_over_them(void **state)
{
    const struct owner_spec spec = {.quotas = "{\"running\":2}", .is_admin = -1};
    const struct owner_spec promoted = {.is_admin = 1}, demoted = {.is_admin = 0};
    struct house house;
    struct owner *ada, *bob;

    (void) state;
    house_begin(&house);
    house_close_domain(&house);
    house.default_quota = (struct quota){.sandboxes = 7, .running = 5};
    house_open_domain(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    bob = house_owner(&house, "Bob", NULL, false);
    assert_int_equal(bob->quota.running, 5);
    assert_int_equal(update(&house, &by_system, bob, &spec, -1), ERR_NONE);
    assert_int_equal(bob->quota.running, 2);
    assert_int_equal(bob->quota.sandboxes, 7);

    /* Administrators have what they were given by name, and no defaults. */
    assert_int_equal(ada->quota.running, 0);
    assert_int_equal(update(&house, &by_system, ada, &spec, -1), ERR_NONE);
    assert_int_equal(ada->quota.running, 2);
    assert_int_equal(ada->quota.sandboxes, 0);
    assert_int_equal(update(&house, &by_system, bob, &promoted, -1), ERR_NONE);
    assert_int_equal(bob->quota.sandboxes, 0);
    assert_int_equal(update(&house, &by_system, bob, &demoted, -1), ERR_NONE);
    assert_int_equal(bob->quota.sandboxes, 7);
    assert_int_equal(bob->quota.running, 2);
    house_restart(&house);
    assert_int_equal(owner_first_admin(house.domain)->quota.running, 2);
    assert_int_equal(owner_first_admin(house.domain)->quota.sandboxes, 0);
    house_end(&house);
}

static void a_minute_has_so_many_requests(void **state)
{
    const struct owner_spec spec = {.quotas = "{\"requestsPerMinute\":60}", .is_admin = -1};
    struct house house;
    struct owner *ada;
    unsigned int wait = 0, taken = 0;

    (void) state;
    house_begin(&house);
    ada = house_owner(&house, "Ada", NULL, true);
    for (int i = 0; i < 1000; i++)
        assert_true(owner_take_request(house.domain, ada, &wait)); /* no limit */
    if (update(&house, &by_system, ada, &spec, -1) != ERR_NONE)
        fail_msg("%s", house.failure.message);
    while (owner_take_request(house.domain, ada, &wait))
        taken++;
    assert_in_range(taken, 0, 60);
    assert_in_range(wait, 1, 2);
    clock_manual_advance(&house.clock, 5000);
    for (taken = 0; owner_take_request(house.domain, ada, &wait);)
        taken++;
    assert_int_equal(taken, 5);
    clock_manual_advance(&house.clock, 3600 * 1000);
    for (taken = 0; owner_take_request(house.domain, ada, &wait);)
        taken++;
    assert_int_equal(taken, 60);
    house_end(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_is_found_by_id_email_and_name_also_after_a_restart),
        cmocka_unit_test(a_name_that_two_have_names_nobody),
        cmocka_unit_test(an_email_belongs_to_one),
        cmocka_unit_test(nonsense_is_refused_and_leaves_nothing),
        cmocka_unit_test(only_administrators_make_and_remove_users),
        cmocka_unit_test(a_user_changes_itself_but_not_its_rights),
        cmocka_unit_test(an_update_is_kept_and_one_at_a_time),
        cmocka_unit_test(the_last_administrator_stays),
        cmocka_unit_test(an_owner_with_sandboxes_stays),
        cmocka_unit_test(what_a_removed_or_disabled_owner_holds_opens_nothing),
        cmocka_unit_test(a_new_password_ends_all_logins),
        cmocka_unit_test(quotas_are_the_defaults_and_the_own_wishes_over_them),
        cmocka_unit_test(a_minute_has_so_many_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
