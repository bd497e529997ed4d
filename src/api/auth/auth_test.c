#include "api/auth/auth_testing.h"

#define SIGN_UP "/api/auth/sign-up/email"
#define SIGN_IN "/api/auth/sign-in/email"
#define ADA     "{\"name\":\"Ada\",\"email\":\"ada@example.org\",\"password\":\"correct horse\"}"
#define EVE     "{\"name\":\"Eve\",\"email\":\"eve@example.org\",\"password\":\"correct horse\"}"
#define RIGHT   "{\"email\":\"Ada@Example.org\",\"password\":\"correct horse\"}"
#define WRONG   "{\"email\":\"ada@example.org\",\"password\":\"wrong horse\"}"
#define NOBODY  "{\"email\":\"nobody@example.org\",\"password\":\"wrong horse\"}"

static const struct admission_options plain = {.hosts = ""};

/* The administrator's key makes the first account. */
static void sign_up_first(struct office *office)
{
    if (office_call_with(office, office->admin_key, "POST", SIGN_UP, ADA) != 200)
        fail_msg("%s", office->reply);
}

static void the_first_person_becomes_the_administrator(void **state)
{
    struct office office;
    char token[128];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    assert_int_equal(
        office_call_with(&office, office.admin_key, "GET", "/api/auth/signup-status", NULL), 200);
    assert_true(office_says(&office, "\"signupEnabled\":true,\"isFirstUser\":true"));
    sign_up_first(&office);
    assert_true(office_says(&office, "\"email\":\"ada@example.org\""));
    assert_true(office_says(&office, "\"role\":\"admin\""));
    assert_true(office_says(&office, "Set-Cookie: burrow_session="));
    assert_true(office_says(&office, "; HttpOnly; SameSite=Lax"));
    assert_false(office_says(&office, "Secure"));
    /* The one that holds the first key: what was made with it is theirs. */
    assert_true(office_says(&office, office.admin->id.text));
    assert_int_equal(owner_count(office.house.domain), 1);
    office_field(&office, "token", token, sizeof(token));
    assert_int_equal(office_call_with(&office, token, "GET", "/burrow/v1/audit", NULL), 200);
    assert_true(office_says(&office, "user.signup"));
    /* And nobody else, not even with the key. */
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", EVE), 403);
    assert_true(office_says(&office, "SIGNUP_DISABLED"));
    assert_int_equal(office_call_with(&office, office.admin_key, "POST", SIGN_UP, EVE), 403);
    assert_int_equal(office_call(&office, "GET", "/api/auth/signup-status", "", NULL), 200);
    assert_true(office_says(&office, "\"signupEnabled\":false"));
    office_end(&office);
}

/* The bytes that nginx sends for `proxy_pass http://127.0.0.1:PORT;`: nothing of the client is in
 * them, and everything looks like this machine. */
static int ask_like_nginx(struct office *office)
{
    struct raw raw = raw_connect(http_server_port(office->server, 0));
    int status;

    raw_send(&raw, &office->house.loop,
             "POST " SIGN_UP " HTTP/1.0\r\nHost: 127.0.0.1:8787\r\nConnection: close\r\n"
             "Content-Length: 67\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n"
             "Content-Type: application/json\r\n\r\n" ADA);
    TURN_UNTIL(&office->house.loop, raw_is_over(&raw));
    status = (int) strtol(text_string(&raw.got) + strlen("HTTP/1.1 "), NULL, 10);
    raw_close(&raw);
    return status;
}

static void an_address_is_no_proof_of_being_the_administrator(void **state)
{
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", ADA), 403);
    assert_true(office_says(&office, "SIGNUP_DISABLED"));
    assert_true(office_says(&office, "burrow user create"));
    assert_true(office_says(&office, "sign-up=open"));
    assert_true(office_says(&office, "one-time token"));
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "Host: 127.0.0.1:8787\r\n", ADA), 403);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "X-Forwarded-For: 127.0.0.1\r\n", ADA),
                     403);
    assert_int_equal(ask_like_nginx(&office), 403);
    /* Nor is a key of somebody else's, nor does a stranger learn that the place is free. */
    (void) house_key(&office.house, house_owner(&office.house, "Eve", "e@b", false), CALLER_WRITE);
    assert_int_equal(office_call_with(&office, office.house.secret, "POST", SIGN_UP, ADA), 403);
    assert_int_equal(office_call(&office, "GET", "/api/auth/signup-status", "", NULL), 200);
    assert_true(office_says(&office, "\"signupEnabled\":false,\"isFirstUser\":false"));
    assert_null(office.admin->password);
    office_end(&office);
}

static void a_one_time_token_makes_the_first_account_once(void **state)
{
    char token[AUTH_FIRST_SIZE], other[AUTH_FIRST_SIZE];
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    assert_true(auth_first_offer(office.api.auth, token));
    assert_memory_equal(token, "burrow_first_", 13);
    /* It opens nothing else, and a wrong one nothing at all. */
    assert_int_equal(office_call_with(&office, token, "GET", "/burrow/v1/whoami", NULL), 401);
    memcpy(other, token, sizeof(other));
    other[AUTH_FIRST_SIZE - 2] ^= 1;
    assert_int_equal(office_call_with(&office, other, "POST", SIGN_UP, ADA), 403);
    assert_true(office_says(&office, "too old"));
    /* An account that cannot be made does not use it up. */
    assert_int_equal(
        office_call_with(&office, token, "POST", SIGN_UP,
                         "{\"name\":\"A\",\"email\":\"nonsense\",\"password\":\"long enough\"}"),
        400);
    assert_int_equal(office_call_with(&office, token, "POST", SIGN_UP, ADA), 200);
    assert_true(office_says(&office, "\"role\":\"admin\""));
    assert_int_equal(office_call_with(&office, token, "POST", SIGN_UP, EVE), 403);
    assert_true(office_says(&office, "was used or is too old"));
    assert_false(auth_first_offer(office.api.auth, other));
    office_end(&office);
}

static void a_one_time_token_ends_with_its_day_and_with_the_next(void **state)
{
    char first[AUTH_FIRST_SIZE], second[AUTH_FIRST_SIZE];
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    assert_true(auth_first_offer(office.api.auth, first));
    assert_true(auth_first_offer(office.api.auth, second));
    assert_int_equal(office_call_with(&office, first, "POST", SIGN_UP, ADA), 403);
    clock_manual_advance(&office.house.clock, AUTH_FIRST_NS / 1000000);
    assert_int_equal(office_call_with(&office, second, "POST", SIGN_UP, ADA), 403);
    assert_null(office.admin->password);
    office_end(&office);
}

static void two_that_are_first_at_once_are_not(void **state)
{
    struct office office;
    struct raw one, two;
    char request[512];
    size_t good;

    (void) state;
    assert_int_equal(strlen(ADA), 67);
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    (void) snprintf(request, sizeof(request),
                    "POST " SIGN_UP " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Authorization: Bearer %s\r\nContent-Length: 67\r\n\r\n" ADA,
                    office.admin_key);
    one = raw_connect(http_server_port(office.server, 0));
    two = raw_connect(http_server_port(office.server, 0));
    raw_send(&one, &office.house.loop, request);
    raw_send(&two, &office.house.loop, request);
    TURN_UNTIL(&office.house.loop, raw_is_over(&one) && raw_is_over(&two));
    good = raw_count(&one, "HTTP/1.1 200") + raw_count(&two, "HTTP/1.1 200");
    assert_int_equal(good, 1);
    raw_close(&one);
    raw_close(&two);
    office_end(&office);
}

static void where_it_is_open_everybody_becomes_a_plain_user(void **state)
{
    char token[AUTH_FIRST_SIZE];
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, plain);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", EVE), 200);
    assert_true(office_says(&office, "\"role\":\"user\""));
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", EVE), 409);
    assert_true(office_says(&office, "USER_ALREADY_EXISTS"));
    /* The first administrator shows a proof here, too. */
    assert_true(auth_first_offer(office.api.auth, token));
    assert_int_equal(office_call_with(&office, token, "POST", SIGN_UP, ADA), 200);
    assert_true(office_says(&office, "\"role\":\"admin\""));
    office_end(&office);
}

static void what_was_called_first_is_closed(void **state)
{
    static const struct {
        const char *text;
        enum auth_sign_up sign_up;
    } cases[] = {{"closed", AUTH_SIGN_UP_CLOSED},
                 {"first", AUTH_SIGN_UP_CLOSED},
                 {"open", AUTH_SIGN_UP_OPEN}};
    enum auth_sign_up sign_up;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(auth_sign_up_from_text(cases[i].text, &sign_up, NULL), 0);
        assert_int_equal(sign_up, cases[i].sign_up);
    }
    assert_int_equal(auth_sign_up_from_text("anybody", &sign_up, NULL), -1);
}

static void what_is_no_account_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{",
        "{\"name\":\"A\"}",
        "{\"name\":\"A\",\"email\":\"a@b\",\"password\":\"short\"}",
        "{\"name\":\"A\",\"email\":\"nonsense\",\"password\":\"long enough\"}",
        "{\"name\":\"\",\"email\":\"a@b\",\"password\":\"long enough\"}",
        "{\"name\":7,\"email\":\"a@b\",\"password\":\"long enough\"}",
    };
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, plain);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        if (office_call(&office, "POST", SIGN_UP, "", wrong[i]) != 400)
            fail_msg("row %zu: %s", i, office.reply);
        assert_true(office_says(&office, "\"message\":"));
    }
    office_end(&office);
}

static void a_person_logs_in_is_known_and_logs_out(void **state)
{
    struct office office;
    char token[128], cookie[256];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    sign_up_first(&office);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "", RIGHT), 200);
    assert_true(office_says(&office, "Cache-Control: no-store"));
    office_field(&office, "token", token, sizeof(token));
    (void) snprintf(cookie, sizeof(cookie), "set-auth-token: %s", token);
    assert_true(office_says(&office, cookie));
    (void) snprintf(cookie, sizeof(cookie), "Cookie: burrow_session=%s\r\n", token);
    assert_int_equal(office_call(&office, "GET", "/api/auth/get-session", cookie, NULL), 200);
    assert_true(office_says(&office, "\"email\":\"ada@example.org\""));
    assert_true(office_says(&office, "\"session\":{\"id\":"));
    assert_true(office_says(&office, "\"expiresAt\":\"20"));
    assert_int_equal(office_call(&office, "GET", "/burrow/v1/whoami", cookie, NULL), 200);
    assert_true(office_says(&office, "\"credential\":\"login\""));
    /* Not from another page. */
    {
        char foreign[512];

        (void) snprintf(foreign, sizeof(foreign), "%sOrigin: https://evil.example\r\n", cookie);
        assert_int_equal(office_call(&office, "POST", "/api/auth/sign-out", foreign, NULL), 403);
    }
    assert_int_equal(office_call(&office, "POST", "/api/auth/sign-out", cookie, NULL), 200);
    assert_true(office_says(&office, "burrow_session=; Path=/; Max-Age=0"));
    assert_int_equal(office_call(&office, "GET", "/api/auth/session", cookie, NULL), 200);
    assert_true(office_says(&office, "\r\n\r\nnull"));
    assert_int_equal(office_call(&office, "GET", "/burrow/v1/whoami", cookie, NULL), 401);
    assert_int_equal(office_call(&office, "POST", "/api/auth/sign-out", "", NULL), 200);
    office_end(&office);
}

static void behind_a_proxy_with_tls_the_cookie_is_bound_to_the_host(void **state)
{
    const struct admission_options options = {.proxies = "127.0.0.1"};
    struct office office;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, options);
    assert_int_equal(office_call(&office, "POST", SIGN_UP,
                                 "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n"
                                 "Host: box.example\r\nOrigin: https://box.example\r\n",
                                 EVE),
                     200);
    assert_true(office_says(&office, "Set-Cookie: __Host-burrow_session="));
    assert_true(office_says(&office, "; Path=/; "));
    assert_true(office_says(&office, "; Secure"));
    assert_true(office_says(&office, "\"role\":\"user\""));
    office_end(&office);
}

static void whatever_is_wrong_with_a_login_is_answered_alike(void **state)
{
    const struct caller system = caller_system();
    const struct owner_spec nothing = {.is_admin = -1};
    struct office office;
    const char *body;
    char first[512];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, plain);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", ADA), 200);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", EVE), 200);
    owner_update(office.house.domain, &system,
                 owner_find_email(office.house.domain, "eve@example.org"), &nothing, 1,
                 house_got_owner, &office.house);
    assert_int_equal(house_wait(&office.house), ERR_NONE);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "", WRONG), 401);
    assert_true(office_says(&office, "INVALID_EMAIL_OR_PASSWORD"));
    body = strstr(office.reply, "\r\n\r\n");
    (void) snprintf(first, sizeof(first), "%s", body);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "", NOBODY), 401);
    assert_string_equal(strstr(office.reply, "\r\n\r\n"), first);
    /* Disabled, with the right password. */
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "",
                                 "{\"email\":\"eve@example.org\",\"password\":\"correct horse\"}"),
                     401);
    assert_string_equal(strstr(office.reply, "\r\n\r\n"), first);
    office_end(&office);
}

static void tries_are_counted_by_address(void **state)
{
    struct office office;
    int wrong = 0;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    sign_up_first(&office);
    clock_manual_advance(&office.house.clock, 3600 * 1000);
    /* Good ones do not count. */
    for (int i = 0; i < AUTH_ADDRESS_BURST + 5; i++) {
        clock_manual_advance(&office.house.clock, 4000); /* for the email's own bucket */
        assert_int_equal(office_call(&office, "POST", SIGN_IN, "", RIGHT), 200);
    }
    clock_manual_advance(&office.house.clock, 3600 * 1000);
    while (office_call(&office, "POST", SIGN_IN, "", WRONG) == 401)
        wrong++;
    assert_int_equal(wrong, AUTH_ADDRESS_BURST);
    assert_int_equal(office.status, 429);
    assert_true(office_says(&office, "Retry-After: "));
    assert_true(office_says(&office, "\"retryAfter\":"));
    assert_true(office_says(&office, "\"error\":\"Too Many Requests\""));
    /* The right one waits as well: else guessing could go on. */
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "", RIGHT), 429);
    clock_manual_advance(&office.house.clock, 60 * 1000);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "", RIGHT), 200);
    office_end(&office);
}

#define FROM(address) "X-Forwarded-For: " address "\r\n"

/* Wrong tries from ever new addresses, until strangers have to wait. */
static void flood(struct office *office)
{
    for (int i = 0; i < AUTH_EMAIL_BURST; i++) {
        char from[64];

        (void) snprintf(from, sizeof(from), FROM("203.0.113.%d"), i);
        assert_int_equal(office_call(office, "POST", SIGN_IN, from, WRONG), 401);
    }
    assert_int_equal(office_call(office, "POST", SIGN_IN, FROM("198.51.100.1"), RIGHT), 429);
}

static void strangers_lock_out_nobody_who_is_known(void **state)
{
    const struct admission_options options = {.proxies = "127.0.0.1"};
    struct office office;
    char token[128], headers[512];

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, options);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, FROM("192.0.2.7"), EVE), 200);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, FROM("192.0.2.7"), ADA), 200);
    office_field(&office, "token", token, sizeof(token));
    flood(&office);
    /* From where she is logged in, and from elsewhere with what she was given there. */
    assert_int_equal(office_call(&office, "POST", SIGN_IN, FROM("192.0.2.7"), RIGHT), 200);
    (void) snprintf(headers, sizeof(headers), FROM("198.51.100.1") "Cookie: burrow_session=%s\r\n",
                    token);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, headers, RIGHT), 200);
    office_end(&office);
}

static void who_is_known_cannot_guess_without_end(void **state)
{
    const struct admission_options options = {.proxies = "127.0.0.1"};
    struct office office;
    char token[128], headers[512];
    int wrong = 0;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, options);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, FROM("192.0.2.7"), ADA), 200);
    office_field(&office, "token", token, sizeof(token));
    while (office_call(&office, "POST", SIGN_IN, FROM("192.0.2.7"), WRONG) == 401)
        wrong++;
    assert_int_equal(wrong, AUTH_PAIR_BURST);
    assert_int_equal(office.status, 429);
    (void) snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", token);
    for (wrong = 0; office_call(&office, "POST", SIGN_IN, headers, WRONG) == 401; wrong++) {
    }
    assert_int_equal(wrong, AUTH_PAIR_BURST);
    assert_int_equal(office.status, 429);
    /* Somebody else's login opens no tries of hers. */
    assert_int_equal(office_call(&office, "POST", SIGN_UP, FROM("192.0.2.9"), EVE), 200);
    office_field(&office, "token", token, sizeof(token));
    flood(&office);
    (void) snprintf(headers, sizeof(headers), FROM("192.0.2.9") "Authorization: Bearer %s\r\n",
                    token);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, headers, RIGHT), 429);
    office_end(&office);
}

/* For one key makes others. */
static void all_keys_of_a_user_have_the_same_tries(void **state)
{
    static const char change[] =
        "{\"password\":\"another password\",\"currentPassword\":\"wrong horse\"}";
    struct office office;
    struct owner *ada;
    char path[128];
    int wrong = 0;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, plain);
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "", ADA), 200);
    ada = owner_find_email(office.house.domain, "ada@example.org");
    (void) snprintf(path, sizeof(path), "/burrow/v1/users/%s", ada->id.text);
    for (int i = 0; i < 3; i++) {
        (void) house_key(&office.house, ada, CALLER_WRITE);
        while (office_call_with(&office, office.house.secret, "PATCH", path, change) == 403)
            wrong++;
        if (office.status != 429)
            fail_msg("%s", office.reply);
    }
    assert_int_equal(wrong, AUTH_PAIR_BURST);
    office_end(&office);
}

static void a_client_that_leaves_is_not_missed(void **state)
{
    char request[512];
    struct office office;
    struct raw raw;

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_CLOSED, plain);
    raw = raw_connect(http_server_port(office.server, 0));
    (void) snprintf(request, sizeof(request),
                    "POST " SIGN_UP " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 67\r\n"
                    "Authorization: Bearer %s\r\n\r\n" ADA,
                    office.admin_key);
    raw_send(&raw, &office.house.loop, request);
    raw_close(&raw);
    TURN_UNTIL(&office.house.loop, office.admin->password);
    assert_int_equal(office_call(&office, "POST", SIGN_IN, "", RIGHT), 200);
    office_end(&office);
}

static void pages_of_named_origins_are_let_in_and_asked_before(void **state)
{
    const struct admission_options options = {.origins = "https://app.example"};
    struct office office;
    const char *headers = "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n"
                          "Access-Control-Request-Headers: authorization\r\n";

    (void) state;
    office_begin(&office, AUTH_SIGN_UP_OPEN, options);
    assert_int_equal(office_call(&office, "OPTIONS", "/burrow/v1/users", headers, NULL), 204);
    assert_true(office_says(&office, "Access-Control-Allow-Origin: https://app.example"));
    assert_true(office_says(&office, "Access-Control-Allow-Headers: Authorization"));
    assert_true(office_says(&office, "Access-Control-Allow-Methods: GET"));
    assert_int_equal(office_call(&office, "OPTIONS", "/no/such/route", headers, NULL), 204);
    assert_int_equal(office_call(&office, "OPTIONS", "/burrow/v1/users",
                                 "Origin: https://evil.example\r\n"
                                 "Access-Control-Request-Method: PUT\r\n",
                                 NULL),
                     204);
    assert_false(office_says(&office, "Access-Control"));
    /* Errors can be read by the page, too. */
    assert_int_equal(
        office_call(&office, "GET", "/burrow/v1/users", "Origin: https://app.example\r\n", NULL),
        401);
    assert_true(office_says(&office, "Access-Control-Allow-Origin: https://app.example"));
    assert_int_equal(office_call(&office, "POST", SIGN_UP, "Origin: https://app.example\r\n", ADA),
                     200);
    /* An OPTIONS that is no such question is answered as ever. */
    assert_int_equal(office_call(&office, "OPTIONS", "/burrow/v1/users", "", NULL), 405);
    office_end(&office);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_person_becomes_the_administrator),
        cmocka_unit_test(an_address_is_no_proof_of_being_the_administrator),
        cmocka_unit_test(a_one_time_token_makes_the_first_account_once),
        cmocka_unit_test(a_one_time_token_ends_with_its_day_and_with_the_next),
        cmocka_unit_test(two_that_are_first_at_once_are_not),
        cmocka_unit_test(where_it_is_open_everybody_becomes_a_plain_user),
        cmocka_unit_test(what_was_called_first_is_closed),
        cmocka_unit_test(what_is_no_account_is_refused),
        cmocka_unit_test(a_person_logs_in_is_known_and_logs_out),
        cmocka_unit_test(behind_a_proxy_with_tls_the_cookie_is_bound_to_the_host),
        cmocka_unit_test(whatever_is_wrong_with_a_login_is_answered_alike),
        cmocka_unit_test(tries_are_counted_by_address),
        cmocka_unit_test(strangers_lock_out_nobody_who_is_known),
        cmocka_unit_test(who_is_known_cannot_guess_without_end),
        cmocka_unit_test(all_keys_of_a_user_have_the_same_tries),
        cmocka_unit_test(a_client_that_leaves_is_not_missed),
        cmocka_unit_test(pages_of_named_origins_are_let_in_and_asked_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
