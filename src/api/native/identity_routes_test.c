/* Users, keys, whoami and the audit log over HTTP. */
#include "api/auth/auth_testing.h"

#define USERS "/burrow/v1/users"
#define KEYS  "/burrow/v1/keys"

static const struct admission_options plain = {.hosts = ""};

/* A plain user with a password and a key of that scope; both are in the caller's storage. */
static void make_user(struct office *office, const char *name, const char *scope, char ret_id[64],
                      char ret_key[128])
{
    char body[256];

    (void) snprintf(body, sizeof(body),
                    "{\"name\":\"%s\",\"email\":\"%s@example.org\",\"password\":\"correct horse\"}",
                    name, name);
    assert_int_equal(office_call_with(office, office->admin_key, "POST", USERS, body), 201);
    office_field(office, "id", ret_id, 64);
    (void) snprintf(body, sizeof(body), "{\"name\":\"k\",\"scope\":\"%s\",\"user\":\"%s\"}", scope,
                    ret_id);
    assert_int_equal(office_call_with(office, office->admin_key, "POST", KEYS, body), 201);
    office_field(office, "key", ret_key, 128);
}

static void an_administrator_makes_changes_and_removes_users(void **state)
{
    struct office office;
    char id[64], key[128], path[128];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    make_user(&office, "eve", "write", id, key);
    (void) snprintf(path, sizeof(path), USERS "/%s", id);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", path, NULL), 200);
    assert_true(office_says(&office, "\"hasPassword\":true"));
    assert_true(office_says(&office, "\"role\":\"user\""));
    assert_false(office_says(&office, "argon2"));
    assert_int_equal(office_call_with(&office, office.admin_key, "PATCH", path,
                                      "{\"quotas\":{\"sandboxes\":3},\"role\":\"admin\"}"),
                     200);
    assert_true(office_says(&office, "\"sandboxes\":3"));
    assert_true(office_says(&office, "\"role\":\"admin\""));
    assert_int_equal(
        office_call_with(&office, office.admin_key, "PATCH", path, "{\"disabled\":true}"), 200);
    assert_int_equal(office_call_with(&office, key, "GET", "/burrow/v1/whoami", NULL), 401);
    assert_int_equal(office_call_with(&office, office.admin_key, "PATCH", path, "{\"wishes\":3}"),
                     400);
    assert_int_equal(
        office_call_with(&office, office.admin_key, "PATCH", path, "{\"role\":\"king\"}"), 400);
    assert_int_equal(
        office_call_with(&office, office.admin_key, "DELETE", USERS "/eve@example.org", NULL), 204);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", path, NULL), 404);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", USERS, NULL), 200);
    assert_false(office_says(&office, "\"eve")); /* as a whole: ids are random letters */
    assert_int_equal(office_call_with(&office, office.admin_key, "DELETE", USERS "/me", NULL), 409);
    office_end(&office);
}

static void others_are_not_there_for_a_user(void **state)
{
    struct office office;
    char eve[64], eve_key[128], bob[64], bob_key[128], path[128];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    make_user(&office, "eve", "write", eve, eve_key);
    make_user(&office, "bob", "write", bob, bob_key);
    assert_int_equal(office_call_with(&office, eve_key, "GET", USERS, NULL), 200);
    assert_true(office_says(&office, eve));
    assert_false(office_says(&office, bob));
    assert_false(office_says(&office, office.admin->id.text));
    (void) snprintf(path, sizeof(path), USERS "/%s", bob);
    assert_int_equal(office_call_with(&office, eve_key, "GET", path, NULL), 404);
    assert_int_equal(office_call_with(&office, eve_key, "PATCH", path, "{\"name\":\"x\"}"), 404);
    assert_int_equal(office_call_with(&office, eve_key, "DELETE", path, NULL), 403);
    assert_int_equal(office_call_with(&office, eve_key, "POST", USERS, "{\"name\":\"x\"}"), 403);
    assert_int_equal(office_call_with(&office, eve_key, "GET", "/burrow/v1/audit", NULL), 403);
    assert_int_equal(office_call_with(&office, eve_key, "GET", KEYS, NULL), 200);
    assert_true(office_says(&office, eve));
    assert_false(office_says(&office, bob));
    assert_int_equal(office_call_with(&office, eve_key, "GET", KEYS "?user=bob", NULL), 404);
    assert_int_equal(office_call_with(&office, eve_key, "PATCH", USERS "/me", "{\"name\":\"E\"}"),
                     200);
    assert_int_equal(
        office_call_with(&office, eve_key, "PATCH", USERS "/me", "{\"role\":\"admin\"}"), 403);
    office_end(&office);
}

static void a_new_password_needs_the_old_one(void **state)
{
    struct office office;
    char id[64], key[128];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    make_user(&office, "eve", "write", id, key);
    assert_int_equal(
        office_call_with(&office, key, "PATCH", USERS "/me", "{\"password\":\"battery staple\"}"),
        400);
    assert_int_equal(
        office_call_with(&office, key, "PATCH", USERS "/me",
                         "{\"password\":\"battery staple\",\"currentPassword\":\"wrong horse\"}"),
        403);
    assert_int_equal(
        office_call_with(&office, key, "PATCH", USERS "/me",
                         "{\"password\":\"battery staple\",\"currentPassword\":\"correct horse\"}"),
        200);
    assert_int_equal(office_call(&office, "POST", "/api/auth/sign-in/email", "",
                                 "{\"email\":\"eve@example.org\",\"password\":\"battery staple\"}"),
                     200);
    assert_int_equal(office_call(&office, "POST", "/api/auth/sign-in/email", "",
                                 "{\"email\":\"eve@example.org\",\"password\":\"correct horse\"}"),
                     401);
    office_end(&office);
}

static void a_key_is_told_once_works_and_is_revoked(void **state)
{
    struct office office;
    char id[64], key[128], made[128], made_id[64], path[128];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    make_user(&office, "eve", "write", id, key);
    assert_int_equal(office_call_with(&office, key, "POST", KEYS,
                                      "{\"name\":\"ci\",\"scope\":\"read\",\"expiresIn\":\"1h\"}"),
                     201);
    assert_true(office_says(&office, "Cache-Control: no-store"));
    office_field(&office, "key", made, sizeof(made));
    office_field(&office, "id", made_id, sizeof(made_id));
    assert_int_equal(office_call_with(&office, made, "GET", "/burrow/v1/whoami", NULL), 200);
    assert_true(office_says(&office, "\"scope\":\"read\""));
    assert_true(office_says(&office, "\"credential\":\"key\""));
    assert_true(office_says(&office, made_id));
    assert_int_equal(office_call_with(&office, made, "POST", KEYS, "{\"name\":\"x\"}"), 403);
    assert_int_equal(office_call_with(&office, key, "GET", KEYS, NULL), 200);
    assert_true(office_says(&office, made_id));
    assert_false(office_says(&office, made));
    (void) snprintf(path, sizeof(path), KEYS "/%s", made_id);
    assert_int_equal(office_call_with(&office, made, "DELETE", path, NULL), 403);
    assert_int_equal(office_call_with(&office, key, "DELETE", path, NULL), 204);
    assert_int_equal(office_call_with(&office, made, "GET", "/burrow/v1/whoami", NULL), 401);
    assert_int_equal(office_call_with(&office, key, "DELETE", KEYS "/nothing", NULL), 404);
    office_end(&office);
}

static void a_key_for_one_sandbox_sees_no_people(void **state)
{
    struct office office;
    struct sandbox *sandbox;
    char key[128], body[256];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    sandbox = house_sandbox(&office.house, office.admin);
    (void) snprintf(body, sizeof(body), "{\"name\":\"k\",\"sandbox\":\"%s\"}", sandbox->id.text);
    assert_int_equal(office_call_with(&office, office.admin_key, "POST", KEYS, body), 201);
    assert_true(office_says(&office, "\"scope\":\"sandbox\""));
    office_field(&office, "key", key, sizeof(key));
    assert_int_equal(office_call_with(&office, key, "GET", USERS, NULL), 200);
    assert_true(office_says(&office, "\"users\":[]"));
    assert_int_equal(office_call_with(&office, key, "GET", USERS "/me", NULL), 404);
    assert_int_equal(office_call_with(&office, key, "GET", KEYS, NULL), 200);
    assert_int_equal(office_call_with(&office, key, "POST", KEYS, "{\"name\":\"x\"}"), 403);
    assert_int_equal(office_call_with(&office, key, "GET", "/burrow/v1/whoami", NULL), 200);
    assert_true(office_says(&office, sandbox->id.text));
    office_end(&office);
}

static void nonsense_about_keys_is_refused(void **state)
{
    static const char *const wrong[] = {
        "{}",
        "{\"name\":\"\"}",
        "{\"name\":\"a\",\"scope\":\"god\"}",
        "{\"name\":\"a\",\"scope\":\"sandbox\"}",
        "{\"name\":\"a\",\"port\":80}",
        "{\"name\":\"a\",\"port\":99999}",
        "{\"name\":\"a\",\"expiresIn\":\"soon\"}",
        "{\"name\":\"a\",\"expiresIn\":0}",
        "{\"name\":\"a\",\"expiresIn\":-5}",
        "{\"name\":\"a\",\"expiresIn\":true}",
        "{\"name\":\"a\",\"secret\":\"mine\"}",
    };
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        if (office_call_with(&office, office.admin_key, "POST", KEYS, wrong[i]) != 400)
            fail_msg("row %zu: %s", i, office.reply);
    }
    assert_int_equal(office_call_with(&office, office.admin_key, "POST", KEYS,
                                      "{\"name\":\"a\",\"sandbox\":\"none\"}"),
                     404);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", KEYS "?limit=0", NULL),
                     400);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", KEYS "?after=x", NULL),
                     400);
    assert_int_equal(
        office_call_with(&office, office.admin_key, "GET", "/burrow/v1/audit?limit=x", NULL), 400);
    office_end(&office);
}

static void lists_come_in_pages(void **state)
{
    struct office office;
    char body[64], next[64], path[128];
    int seen = 0;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    for (int i = 0; i < 5; i++) {
        (void) snprintf(body, sizeof(body), "{\"name\":\"user%d\"}", i);
        assert_int_equal(office_call_with(&office, office.admin_key, "POST", USERS, body), 201);
    }
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", USERS "?limit=4", NULL),
                     200);
    for (int i = 0; i < 5; i++) {
        (void) snprintf(body, sizeof(body), "\"user%d\"", i);
        seen += office_says(&office, body);
    }
    assert_int_equal(seen, 3);
    office_field(&office, "next", next, sizeof(next));
    (void) snprintf(path, sizeof(path), USERS "?after=%s", next);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", path, NULL), 200);
    assert_true(office_says(&office, "\"user3\""));
    assert_true(office_says(&office, "\"user4\""));
    assert_false(office_says(&office, "\"user2\""));
    assert_true(office_says(&office, "\"next\":null"));
    office_end(&office);
}

static void the_audit_log_names_who_did_what(void **state)
{
    struct office office;
    char id[64], key[128];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    make_user(&office, "eve", "write", id, key);
    assert_int_equal(office_call_with(&office, key, "GET", "/burrow/v1/audit", NULL), 403);
    assert_int_equal(office_call_with(&office, office.admin_key, "GET", "/burrow/v1/audit", NULL),
                     200);
    assert_true(office_says(&office, "\"action\":\"user.created\""));
    assert_true(office_says(&office, "\"action\":\"key.created\""));
    assert_true(office_says(&office, "\"action\":\"GET /burrow/v1/audit\""));
    assert_true(office_says(&office, "\"outcome\":\"forbidden\""));
    assert_true(office_says(&office, "\"address\":\"127.0.0.1\""));
    assert_false(office_says(&office, key));
    assert_false(office_says(&office, "horse"));
    office_end(&office);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_administrator_makes_changes_and_removes_users),
        cmocka_unit_test(others_are_not_there_for_a_user),
        cmocka_unit_test(a_new_password_needs_the_old_one),
        cmocka_unit_test(a_key_is_told_once_works_and_is_revoked),
        cmocka_unit_test(a_key_for_one_sandbox_sees_no_people),
        cmocka_unit_test(nonsense_about_keys_is_refused),
        cmocka_unit_test(lists_come_in_pages),
        cmocka_unit_test(the_audit_log_names_who_did_what),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
