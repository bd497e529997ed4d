#include "api/access/access.h"
#include "api/access/admission.h"
#include "api/http/request_testing.h"
#include "domain/identity/identity_testing.h"

static void begin_admission(struct admission *admission, bool without_keys, const char *hosts)
{
    const struct admission_options options = {.without_keys = without_keys, .hosts = hosts};

    assert_int_equal(admission_init(admission, &options, NULL), 0);
}

static enum err_code source_verdict(struct admission *admission, const char *method,
                                    const char *const (*headers)[2], size_t count)
{
    struct error err = ERROR_INIT;
    struct asked asked;
    int r;

    asked_begin(&asked, method, NULL);
    for (size_t i = 0; i < count; i++)
        asked_add(&asked, headers[i][0], headers[i][1]);
    r = admission_check_source(&asked.request, admission, &err);
    asked_end(&asked);
    return r == 0 ? ERR_NONE : err.code;
}

static enum err_code host_verdict(struct admission *admission, const char *host)
{
    const char *headers[][2] = {{"Host", host}};

    return source_verdict(admission, "GET", headers, 1);
}

static void without_keys_only_own_names_are_answered(void **state)
{
    static const char *const own[] = {"localhost",      "LOCALHOST:8787", "127.0.0.1",
                                      "127.0.0.1:8787", "[::1]:8787",     "localhost.",
                                      "box.example"};
    static const char *const foreign[] = {"evil.example", "localhost.evil.example",
                                          "127.0.0.2",    "0.0.0.0",
                                          "notlocalhost", "",
                                          "[::2]",        "localhost:x"};
    struct admission admission;

    (void) state;
    begin_admission(&admission, true, "box.example,other.example");
    for (size_t i = 0; i < ARRAY_COUNT(own); i++)
        assert_int_equal(host_verdict(&admission, own[i]), ERR_NONE);
    for (size_t i = 0; i < ARRAY_COUNT(foreign); i++)
        assert_int_equal(host_verdict(&admission, foreign[i]), ERR_MISDIRECTED);
    admission_done(&admission);
}

static enum err_code origin_verdict(struct admission *admission, const char *origin)
{
    const char *headers[][2] = {{"Host", "localhost:8787"}, {"Origin", origin}};

    return source_verdict(admission, "POST", headers, 2);
}

static void without_keys_pages_of_other_origins_are_refused(void **state)
{
    struct admission admission;

    (void) state;
    begin_admission(&admission, true, "");
    assert_int_equal(origin_verdict(&admission, "http://localhost:8787"), ERR_NONE);
    assert_int_equal(origin_verdict(&admission, "http://localhost:3000"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "http://localhost"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "http://127.0.0.1:8787"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "https://evil.example"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "null"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, ""), ERR_FORBIDDEN);
    admission_done(&admission);
}

static enum err_code referer_verdict(struct admission *admission, const char *method,
                                     const char *referer)
{
    const char *headers[][2] = {{"Host", "localhost:8787"}, {"Referer", referer}};

    return source_verdict(admission, method, headers, 2);
}

/* Old browsers send a form with a Referer and no Origin. */
static void without_keys_a_page_of_another_origin_is_known_by_its_referer(void **state)
{
    struct admission admission;

    (void) state;
    begin_admission(&admission, true, "");
    assert_int_equal(referer_verdict(&admission, "POST", "http://localhost:8787/burrow/v1/docs"),
                     ERR_NONE);
    assert_int_equal(referer_verdict(&admission, "POST", "http://localhost:3000/"), ERR_FORBIDDEN);
    assert_int_equal(referer_verdict(&admission, "POST", "https://evil.example/form"),
                     ERR_FORBIDDEN);
    assert_int_equal(referer_verdict(&admission, "GET", "https://evil.example/image"),
                     ERR_FORBIDDEN);
    assert_int_equal(referer_verdict(&admission, "POST", "nonsense"), ERR_FORBIDDEN);
    admission_done(&admission);
}

static enum err_code fetch_verdict(struct admission *admission, const char *method,
                                   const char *site, const char *mode)
{
    const char *headers[][2] = {
        {"Host", "localhost"}, {"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}};

    return source_verdict(admission, method, headers, 3);
}

static void without_keys_a_link_may_be_followed_but_nothing_loaded(void **state)
{
    struct admission admission;

    (void) state;
    begin_admission(&admission, true, "");
    assert_int_equal(fetch_verdict(&admission, "GET", "same-origin", "cors"), ERR_NONE);
    assert_int_equal(fetch_verdict(&admission, "GET", "none", "navigate"), ERR_NONE);
    assert_int_equal(fetch_verdict(&admission, "GET", "cross-site", "navigate"), ERR_NONE);
    assert_int_equal(fetch_verdict(&admission, "POST", "cross-site", "navigate"), ERR_FORBIDDEN);
    assert_int_equal(fetch_verdict(&admission, "GET", "cross-site", "no-cors"), ERR_FORBIDDEN);
    assert_int_equal(fetch_verdict(&admission, "GET", "same-site", "cors"), ERR_FORBIDDEN);
    admission_done(&admission);
}

static void with_keys_any_host_is_answered(void **state)
{
    struct admission admission;

    (void) state;
    begin_admission(&admission, false, "");
    assert_int_equal(host_verdict(&admission, "anything.example"), ERR_NONE);
    admission_done(&admission);
}

/* --- access ---------------------------------------------------------------------------------- */

struct gate {
    struct house house;
    struct admission admission;
    struct owner *ada, *eve;

    /* Of the last request. */
    struct caller caller;
    struct error err;
    char headers[4096];
};

static void gate_begin(struct gate *gate, const struct admission_options *given)
{
    struct admission_options options = given ? *given : (struct admission_options){.hosts = NULL};

    house_begin(&gate->house);
    gate->ada = house_owner(&gate->house, "Ada", "a@b", true);
    gate->eve = house_owner(&gate->house, "Eve", "e@b", false);
    options.clock = &gate->house.clock.clock;
    assert_int_equal(admission_init(&gate->admission, &options, NULL), 0);
    admission_open(&gate->admission, gate->house.domain, NULL, &gate->ada->id);
}

static void gate_end(struct gate *gate)
{
    admission_done(&gate->admission);
    house_end(&gate->house);
}

static enum err_code gate_ask(struct gate *gate, struct asked *asked)
{
    int r;

    gate->err = (struct error) ERROR_INIT;
    r = admission_check_access(&asked->request, &gate->admission, &gate->err);
    if (r < 0) /* as the server does */
        admission_note_denial(&asked->request, &gate->err, &gate->admission);
    gate->caller = *request_caller(&asked->request);
    (void) snprintf(gate->headers, sizeof(gate->headers), "%s",
                    text_string(&asked->request.extra_headers));
    asked_end(asked);
    return r == 0 ? ERR_NONE : gate->err.code;
}

static enum err_code ask(struct gate *gate, const char *method, enum access access,
                         const char *const *headers)
{
    struct asked asked;

    asked_begin(&asked, method, headers);
    asked.route.access = access;
    return gate_ask(gate, &asked);
}

static enum err_code ask_with(struct gate *gate, enum access access, const char *secret)
{
    char value[256];

    (void) snprintf(value, sizeof(value), "Bearer %s", secret);
    return ask(gate, "GET", access, ASKED("Authorization", value));
}

static void a_scope_opens_what_it_is_for(void **state)
{
    /* admin, write, read, enter, public, signed in */
    static const struct {
        enum caller_scope scope;
        bool opens[ACCESS_COUNT];
    } rows[] = {
        {CALLER_ADMIN, {true, true, true, true, true, true}},
        {CALLER_WRITE, {false, true, true, true, true, true}},
        {CALLER_READ, {false, false, true, false, true, true}},
        {CALLER_SANDBOX, {false, false, true, true, true, true}},
        {CALLER_PORT, {false, false, false, false, true, true}},
    };
    const struct caller system = caller_system();
    struct gate gate;
    struct sandbox *sandbox;

    (void) state;
    gate_begin(&gate, NULL);
    sandbox = house_sandbox(&gate.house, gate.ada);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool is_narrow = rows[i].scope == CALLER_SANDBOX || rows[i].scope == CALLER_PORT;
        struct api_key_spec spec = {.name = "k", .scope = rows[i].scope, .owner = gate.ada->id};

        if (is_narrow)
            spec.sandbox = sandbox->id;
        if (rows[i].scope == CALLER_PORT)
            spec.port = 8080;
        assert_int_equal(house_make_key(&gate.house, &system, &spec), ERR_NONE);
        for (size_t access = 0; access < ACCESS_COUNT; access++) {
            assert_int_equal(ask_with(&gate, access, gate.house.secret),
                             rows[i].opens[access] ? ERR_NONE : ERR_FORBIDDEN);
            assert_int_equal(gate.caller.scope, rows[i].scope);
            assert_string_equal(gate.caller.owner.text, gate.ada->id.text);
            assert_string_equal(gate.caller.credential.text, gate.house.key->id.text);
            assert_string_equal(gate.caller.address, "192.0.2.7");
            assert_true(id_is_valid(gate.caller.request.text));
        }
    }
    gate_end(&gate);
}

static void without_a_credential_only_public_routes_are_open(void **state)
{
    struct gate gate;

    (void) state;
    gate_begin(&gate, NULL);
    for (size_t access = 0; access < ACCESS_COUNT; access++) {
        assert_int_equal(ask(&gate, "GET", access, NULL),
                         access == ACCESS_PUBLIC ? ERR_NONE : ERR_UNAUTHENTICATED);
        assert_int_equal(gate.caller.scope, CALLER_NOBODY);
        assert_string_equal(gate.caller.owner.text, "");
        if (access != ACCESS_PUBLIC)
            assert_non_null(strstr(gate.headers, "WWW-Authenticate: Bearer"));
    }
    assert_int_equal(ask(&gate, "GET", ACCESS_COUNT, NULL), ERR_UNAUTHENTICATED);
    gate_end(&gate);
}

static void an_unknown_need_lets_nobody_in(void **state)
{
    struct gate gate;

    (void) state;
    gate_begin(&gate, NULL);
    (void) house_key(&gate.house, gate.ada, CALLER_ADMIN);
    assert_int_equal(ask_with(&gate, ACCESS_COUNT, gate.house.secret), ERR_FORBIDDEN);
    gate_end(&gate);
}

static void whatever_is_wrong_with_a_key_is_answered_alike(void **state)
{
    const struct caller system = caller_system();
    const struct owner_spec nothing = {.is_admin = -1};
    struct api_key_spec spec = {.name = "k", .scope = CALLER_WRITE, .expires_ms = HOUSE_NOW_MS + 1};
    struct gate gate;
    struct error first;
    char expired[128], revoked[128], disabled[128];

    (void) state;
    gate_begin(&gate, NULL);
    spec.owner = gate.ada->id;
    assert_int_equal(house_make_key(&gate.house, &system, &spec), ERR_NONE);
    memcpy(expired, gate.house.secret, sizeof(expired));
    (void) house_key(&gate.house, gate.ada, CALLER_WRITE);
    memcpy(revoked, gate.house.secret, sizeof(revoked));
    api_key_revoke(gate.house.domain, &system, gate.house.key, house_got_key, &gate.house);
    (void) house_wait(&gate.house);
    (void) house_key(&gate.house, gate.eve, CALLER_WRITE);
    memcpy(disabled, gate.house.secret, sizeof(disabled));
    owner_update(gate.house.domain, &system, gate.eve, &nothing, 1, house_got_owner, &gate.house);
    (void) house_wait(&gate.house);
    clock_manual_advance(&gate.house.clock, 1);
    assert_int_equal(ask_with(&gate, ACCESS_READ, "burrow_unknown"), ERR_UNAUTHENTICATED);
    first = gate.err;
    {
        const char *const secrets[] = {expired, revoked, disabled, "", "x"};

        for (size_t i = 0; i < ARRAY_COUNT(secrets); i++) {
            assert_int_equal(ask_with(&gate, ACCESS_READ, secrets[i]), ERR_UNAUTHENTICATED);
            assert_string_equal(gate.err.message, first.message);
            assert_int_equal(gate.caller.scope, CALLER_NOBODY);
        }
    }
    gate_end(&gate);
}

static void wrong_keys_are_throttled_and_right_ones_are_not(void **state)
{
    struct gate gate;
    struct asked asked;
    int wrong = 0;

    (void) state;
    gate_begin(&gate, NULL);
    (void) house_key(&gate.house, gate.ada, CALLER_WRITE);
    while (ask_with(&gate, ACCESS_READ, "burrow_guess") == ERR_UNAUTHENTICATED)
        wrong++;
    assert_int_equal(wrong, ADMISSION_FAILURES_BURST);
    assert_int_equal(gate.err.code, ERR_RATE_LIMITED);
    assert_non_null(strstr(gate.headers, "Retry-After: "));
    assert_int_equal(ask_with(&gate, ACCESS_READ, gate.house.secret), ERR_NONE);
    /* Another address has its own. A stranger's word about its address counts nothing. */
    asked_begin(&asked, "GET",
                ASKED("Authorization", "Bearer burrow_guess", "X-Forwarded-For", "10.0.0.1"));
    asked.route.access = ACCESS_READ;
    assert_int_equal(gate_ask(&gate, &asked), ERR_RATE_LIMITED);
    asked_begin(&asked, "GET", ASKED("Authorization", "Bearer burrow_guess"));
    asked.request.peer = "192.0.2.8:1";
    asked.route.access = ACCESS_READ;
    assert_int_equal(gate_ask(&gate, &asked), ERR_UNAUTHENTICATED);
    clock_manual_advance(&gate.house.clock, 60 * 1000);
    assert_int_equal(ask_with(&gate, ACCESS_READ, "burrow_guess"), ERR_UNAUTHENTICATED);
    gate_end(&gate);
}

static void a_login_works_as_cookie_and_as_bearer(void **state)
{
    struct gate gate;
    char cookie[256];

    (void) state;
    gate_begin(&gate, NULL);
    (void) house_log_in(&gate.house, gate.eve);
    assert_int_equal(ask_with(&gate, ACCESS_WRITE, gate.house.secret), ERR_NONE);
    (void) snprintf(cookie, sizeof(cookie), "burrow_session=%s", gate.house.secret);
    assert_int_equal(ask(&gate, "GET", ACCESS_WRITE, ASKED("Cookie", cookie)), ERR_NONE);
    assert_string_equal(gate.caller.owner.text, gate.eve->id.text);
    assert_int_equal(gate.caller.scope, CALLER_WRITE);
    assert_int_equal(ask(&gate, "GET", ACCESS_ADMIN, ASKED("Cookie", cookie)), ERR_FORBIDDEN);
    /* A key is no cookie: nobody's browser shall hold one. */
    (void) house_key(&gate.house, gate.eve, CALLER_WRITE);
    (void) snprintf(cookie, sizeof(cookie), "burrow_session=%s", gate.house.secret);
    assert_int_equal(ask(&gate, "GET", ACCESS_WRITE, ASKED("Cookie", cookie)), ERR_UNAUTHENTICATED);
    gate_end(&gate);
}

static void a_page_of_others_cannot_use_the_cookie_but_anybody_can_use_a_key(void **state)
{
    struct gate gate;
    struct asked asked;
    char cookie[256], bearer[256];

    (void) state;
    gate_begin(&gate, NULL);
    (void) house_log_in(&gate.house, gate.eve);
    (void) snprintf(cookie, sizeof(cookie), "burrow_session=%s", gate.house.secret);
    (void) snprintf(bearer, sizeof(bearer), "Bearer %s", gate.house.secret);
    assert_int_equal(ask(&gate, "POST", ACCESS_WRITE,
                         ASKED("Host", "box", "Cookie", cookie, "Origin", "https://evil.example")),
                     ERR_FORBIDDEN);
    assert_int_equal(ask(&gate, "POST", ACCESS_WRITE,
                         ASKED("Host", "box", "Cookie", cookie, "Origin", "http://box")),
                     ERR_NONE);
    assert_int_equal(ask(&gate, "POST", ACCESS_WRITE, ASKED("Host", "box", "Cookie", cookie)),
                     ERR_NONE);
    assert_int_equal(
        ask(&gate, "POST", ACCESS_WRITE,
            ASKED("Host", "box", "Authorization", bearer, "Origin", "https://evil.example")),
        ERR_NONE);
    /* Logging somebody in is something, too. */
    assert_int_equal(
        ask(&gate, "POST", ACCESS_PUBLIC, ASKED("Host", "box", "Origin", "https://evil.example")),
        ERR_FORBIDDEN);
    /* A socket is opened with GET. */
    asked_begin(&asked, "GET",
                ASKED("Host", "box", "Cookie", cookie, "Origin", "https://evil.example"));
    asked.route.access = ACCESS_ENTER;
    asked.head.upgrade = true;
    assert_int_equal(gate_ask(&gate, &asked), ERR_FORBIDDEN);
    gate_end(&gate);
}

static void a_secret_in_the_query_counts_only_where_no_header_can_be_set(void **state)
{
    static const struct {
        const char *path;
        bool is_upgrade;
        enum err_code code;
    } rows[] = {
        {"/burrow/v1/sandboxes", false, ERR_UNAUTHENTICATED},
        {"/burrow/v1/sandboxes", true, ERR_NONE},
        {"/v1/openapi.json", false, ERR_NONE},
        {"/v1/open", false, ERR_UNAUTHENTICATED},
    };
    struct gate gate;
    char query[256];

    (void) state;
    gate_begin(&gate, NULL);
    (void) house_key(&gate.house, gate.eve, CALLER_WRITE);
    (void) snprintf(query, sizeof(query), "token=%s", gate.house.secret);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct asked asked;

        asked_begin(&asked, "GET", NULL);
        asked.route.access = ACCESS_READ;
        asked.head.upgrade = rows[i].is_upgrade;
        asked.request.target.path = url_span(rows[i].path, strlen(rows[i].path));
        asked.request.target.query = url_span(query, strlen(query));
        assert_int_equal(gate_ask(&gate, &asked), rows[i].code);
    }
    gate_end(&gate);
}

static void an_owner_has_so_many_requests_a_minute(void **state)
{
    const struct caller system = caller_system();
    const struct owner_spec spec = {.quotas = "{\"requestsPerMinute\":5}", .is_admin = -1};
    struct gate gate;
    int taken = 0;

    (void) state;
    gate_begin(&gate, NULL);
    owner_update(gate.house.domain, &system, gate.eve, &spec, -1, house_got_owner, &gate.house);
    assert_int_equal(house_wait(&gate.house), ERR_NONE);
    clock_manual_advance(&gate.house.clock, 3600 * 1000);
    (void) house_key(&gate.house, gate.eve, CALLER_WRITE);
    while (ask_with(&gate, ACCESS_READ, gate.house.secret) == ERR_NONE) {
        taken++;
        assert_non_null(strstr(gate.headers, "X-RateLimit-Limit: 5"));
    }
    assert_int_equal(taken, 5);
    assert_int_equal(gate.err.code, ERR_RATE_LIMITED);
    assert_non_null(strstr(gate.headers, "X-RateLimit-Remaining: 0"));
    assert_non_null(strstr(gate.headers, "X-RateLimit-Reset: "));
    assert_non_null(strstr(gate.headers, "Retry-After: 1"));
    assert_int_equal(ask_with(&gate, ACCESS_PUBLIC, gate.house.secret), ERR_NONE);
    gate_end(&gate);
}

static void denials_are_in_the_audit_log(void **state)
{
    struct gate gate;
    struct house_audit audit;

    (void) state;
    gate_begin(&gate, NULL);
    (void) house_key(&gate.house, gate.eve, CALLER_READ);
    (void) ask(&gate, "GET", ACCESS_READ, NULL);
    (void) ask_with(&gate, ACCESS_ADMIN, gate.house.secret);
    (void) ask_with(&gate, ACCESS_READ, gate.house.secret);
    house_read_audit(&gate.house, &audit);
    assert_int_equal(audit.count, 2);
    assert_string_equal(audit.entries[0].action, "GET /thing/{id}");
    assert_string_equal(audit.entries[0].outcome, "forbidden");
    assert_string_equal(audit.entries[0].owner, gate.eve->id.text);
    assert_string_equal(audit.entries[1].outcome, "unauthenticated");
    gate_end(&gate);
}

static void before_the_domain_is_there_only_public_routes_answer(void **state)
{
    struct gate gate;

    (void) state;
    gate_begin(&gate, NULL);
    admission_close(&gate.admission);
    assert_int_equal(ask_with(&gate, ACCESS_READ, "burrow_x"), ERR_UNAVAILABLE);
    assert_int_equal(ask_with(&gate, ACCESS_PUBLIC, "burrow_x"), ERR_NONE);
    gate.admission.without_keys = true;
    assert_int_equal(ask(&gate, "GET", ACCESS_READ, NULL), ERR_UNAVAILABLE);
    assert_int_equal(ask(&gate, "GET", ACCESS_PUBLIC, NULL), ERR_NONE);
    gate_end(&gate);
}

static void without_keys_everybody_is_the_administrator(void **state)
{
    const struct admission_options options = {.without_keys = true};
    struct gate gate;

    (void) state;
    gate_begin(&gate, &options);
    assert_int_equal(ask(&gate, "POST", ACCESS_ADMIN, NULL), ERR_NONE);
    assert_int_equal(gate.caller.scope, CALLER_ADMIN);
    assert_string_equal(gate.caller.owner.text, gate.ada->id.text);
    gate_end(&gate);
}

static void malformed_allowed_hosts_are_refused(void **state)
{
    static const char *const wrong[] = {"a b", "host:80", "a,,b", "http://a"};
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        const struct admission_options options = {.without_keys = true, .hosts = wrong[i]};
        struct admission admission;

        assert_int_equal(admission_init(&admission, &options, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        admission_done(&admission);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_keys_only_own_names_are_answered),
        cmocka_unit_test(without_keys_pages_of_other_origins_are_refused),
        cmocka_unit_test(without_keys_a_page_of_another_origin_is_known_by_its_referer),
        cmocka_unit_test(without_keys_a_link_may_be_followed_but_nothing_loaded),
        cmocka_unit_test(with_keys_any_host_is_answered),
        cmocka_unit_test(a_scope_opens_what_it_is_for),
        cmocka_unit_test(without_a_credential_only_public_routes_are_open),
        cmocka_unit_test(an_unknown_need_lets_nobody_in),
        cmocka_unit_test(whatever_is_wrong_with_a_key_is_answered_alike),
        cmocka_unit_test(wrong_keys_are_throttled_and_right_ones_are_not),
        cmocka_unit_test(a_login_works_as_cookie_and_as_bearer),
        cmocka_unit_test(a_page_of_others_cannot_use_the_cookie_but_anybody_can_use_a_key),
        cmocka_unit_test(a_secret_in_the_query_counts_only_where_no_header_can_be_set),
        cmocka_unit_test(an_owner_has_so_many_requests_a_minute),
        cmocka_unit_test(denials_are_in_the_audit_log),
        cmocka_unit_test(before_the_domain_is_there_only_public_routes_answer),
        cmocka_unit_test(without_keys_everybody_is_the_administrator),
        cmocka_unit_test(malformed_allowed_hosts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
