#include "domain/identity/identity_testing.h"

static const struct caller stranger = {.scope = CALLER_NOBODY, .address = "192.0.2.7"};

static struct error denial(void)
{
    struct error error = ERROR_INIT;

    (void) error_set(&error, ERR_FORBIDDEN, 0, "you may not");
    return error;
}

static void changes_are_in_the_log_with_who_and_from_where(void **state)
{
    const struct owner_spec spec = {.name = "Bob"};
    struct house house;
    struct house_audit audit;
    struct caller caller;

    (void) state;
    house_begin(&house);
    caller = house_caller(house_owner(&house, "Ada", NULL, true), CALLER_ADMIN);
    owner_create(house.domain, &caller, &spec, house_got_owner, &house);
    assert_int_equal(house_wait(&house), ERR_NONE);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 1); /* what the system does is in the event log */
    assert_string_equal(audit.entries[0].action, "user.created");
    assert_string_equal(audit.entries[0].outcome, "ok");
    assert_string_equal(audit.entries[0].owner, caller.owner.text);
    assert_string_equal(audit.entries[0].address, "192.0.2.7");
    house_restart(&house);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 1);
    house_end(&house);
}

static void no_secret_is_in_the_log(void **state)
{
    const struct api_key_spec spec = {.name = "k", .scope = CALLER_WRITE};
    struct house house;
    struct house_audit audit;
    struct caller caller;

    (void) state;
    house_begin(&house);
    caller = house_caller(house_owner(&house, "Ada", "a@b", true), CALLER_ADMIN);
    assert_int_equal(house_make_key(&house, &caller, &spec), ERR_NONE);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 1);
    assert_string_equal(audit.entries[0].action, "key.created");
    assert_non_null(strstr(audit.entries[0].detail, house.key->prefix));
    assert_null(strstr(audit.entries[0].detail, house.secret));
    house_end(&house);
}

static void a_denial_is_written_at_once_and_its_repeats_once_a_second(void **state)
{
    struct house house;
    struct house_audit audit;
    struct error error = denial();

    (void) state;
    house_begin(&house);
    for (int i = 0; i < 1000; i++)
        audit_add(house.domain, &stranger, "GET /thing", "a", &error);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 1);
    assert_string_equal(audit.entries[0].outcome, "forbidden");
    assert_string_equal(audit.entries[0].detail, "you may not");
    house_advance(&house, 1000);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 2);
    assert_string_equal(audit.entries[0].detail, "you may not (999 times)");
    house_advance(&house, 1000);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 2);
    /* Quiet for a second: the next one is new. */
    audit_add(house.domain, &stranger, "GET /thing", "a", &error);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 3);
    house_end(&house);
}

static void different_denials_are_told_apart(void **state)
{
    struct house house;
    struct house_audit audit;
    struct error error = denial();
    struct caller other = stranger;

    (void) state;
    house_begin(&house);
    (void) snprintf(other.address, sizeof(other.address), "192.0.2.8");
    audit_add(house.domain, &stranger, "GET /thing", "a", &error);
    audit_add(house.domain, &stranger, "PUT /thing", "a", &error);
    audit_add(house.domain, &other, "GET /thing", "a", &error);
    error.code = ERR_UNAUTHENTICATED;
    audit_add(house.domain, &stranger, "GET /thing", "a", &error);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 4);
    house_end(&house);
}

static void a_flood_costs_a_bounded_number_of_rows(void **state)
{
    struct house house;
    struct house_audit audit;
    struct error error = denial();
    struct caller many = stranger;

    (void) state;
    house_begin(&house);
    for (int second = 0; second < 20; second++) {
        for (int i = 0; i < 5000; i++) {
            (void) snprintf(many.address, sizeof(many.address), "198.51.100.%d.%d", second, i);
            audit_add(house.domain, &many, "GET /thing", "a", &error);
        }
        house_advance(&house, 1000);
    }
    house_read_audit(&house, &audit);
    assert_in_range(audit.count, 100, AUDIT_DENIALS_BURST + 20 * AUDIT_DENIALS_A_SECOND);
    {
        bool is_told = false;

        for (size_t i = 0; i < audit.count && i < ARRAY_COUNT(audit.entries); i++)
            is_told |= strcmp(audit.entries[i].action, "audit.flood") == 0;
        assert_true(is_told);
    }
    house_end(&house);
}

static void what_waits_is_written_at_the_end(void **state)
{
    struct house house;
    struct house_audit audit;

    (void) state;
    house_begin(&house);
    for (int i = 0; i < 60; i++)
        audit_add(house.domain, &stranger, "login.create", "a", NULL);
    house_restart(&house);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 60);
    house_end(&house);
}

static void pages_go_back_in_time(void **state)
{
    const struct caller system = caller_system();
    struct house house;
    struct house_audit audit;

    (void) state;
    house_begin(&house);
    for (int i = 0; i < 10; i++)
        audit_add(house.domain, &stranger, "login.create", "a", NULL);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 10);
    audit_page(house.domain, &system, 4, 100, house_got_audit, &audit);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_int_equal(audit.count, 3);
    audit_page(house.domain, &system, 0, 2, house_got_audit, &audit);
    assert_int_equal(house_wait(&house), ERR_NONE);
    assert_int_equal(audit.count, 2);
    house_end(&house);
}

static void only_administrators_read_it(void **state)
{
    struct house house;
    struct house_audit audit = {.house = &house};
    struct caller caller;

    (void) state;
    house_begin(&house);
    caller = house_caller(house_owner(&house, "Ada", NULL, true), CALLER_WRITE);
    audit_page(house.domain, &caller, 0, 10, house_got_audit, &audit);
    assert_int_equal(house_wait(&house), ERR_FORBIDDEN);
    house_end(&house);
}

static void old_entries_go(void **state)
{
    struct house house;
    struct house_audit audit;

    (void) state;
    house_begin(&house);
    audit_add(house.domain, &stranger, "login.create", "a", NULL);
    house_advance(&house, AUDIT_KEPT_MS - 1000);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 1);
    house_advance(&house, 2 * 3600 * 1000);
    house_read_audit(&house, &audit);
    assert_int_equal(audit.count, 0);
    house_end(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_in_the_log_with_who_and_from_where),
        cmocka_unit_test(no_secret_is_in_the_log),
        cmocka_unit_test(a_denial_is_written_at_once_and_its_repeats_once_a_second),
        cmocka_unit_test(different_denials_are_told_apart),
        cmocka_unit_test(a_flood_costs_a_bounded_number_of_rows),
        cmocka_unit_test(what_waits_is_written_at_the_end),
        cmocka_unit_test(pages_go_back_in_time),
        cmocka_unit_test(only_administrators_read_it),
        cmocka_unit_test(old_entries_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
