#include "api/access/csrf.h"
#include "api/http/request_testing.h"

static enum err_code verdict(bool is_secure, const char *const *headers)
{
    struct origins origins;
    struct error err = ERROR_INIT;
    struct asked asked;
    int r;

    assert_int_equal(origins_read(&origins, "https://app.example", NULL), 0);
    asked_begin(&asked, "POST", headers);
    r = csrf_check(&asked.request, &origins, is_secure, &err);
    asked_end(&asked);
    origins_done(&origins);
    return r == 0 ? ERR_NONE : err.code;
}

static void clients_that_are_no_browser_go_on(void **state)
{
    (void) state;
    assert_int_equal(verdict(false, NULL), ERR_NONE);
    assert_int_equal(verdict(false, ASKED("Host", "box", "Cookie", "a=b")), ERR_NONE);
}

static void what_browsers_say_about_themselves_counts_most(void **state)
{
    static const struct {
        const char *site;
        enum err_code code;
    } rows[] = {{"same-origin", ERR_NONE},
                {"none", ERR_NONE},
                {"same-site", ERR_FORBIDDEN},
                {"cross-site", ERR_FORBIDDEN},
                {"", ERR_FORBIDDEN}};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(verdict(false, ASKED("Host", "box", "Sec-Fetch-Site", rows[i].site)),
                         rows[i].code);
        assert_int_equal(verdict(false, ASKED("Host", "box", "Sec-Fetch-Site", rows[i].site,
                                              "Origin", "https://app.example")),
                         ERR_NONE);
    }
}

static void the_origin_must_be_the_host_that_was_asked(void **state)
{
    (void) state;
    assert_int_equal(verdict(false, ASKED("Host", "box:8787", "Origin", "http://box:8787")),
                     ERR_NONE);
    assert_int_equal(verdict(false, ASKED("Host", "box:8787", "Origin", "http://box")),
                     ERR_FORBIDDEN);
    assert_int_equal(verdict(false, ASKED("Host", "box", "Origin", "http://box:3000")),
                     ERR_FORBIDDEN);
    assert_int_equal(verdict(false, ASKED("Host", "box", "Origin", "null")), ERR_FORBIDDEN);
    assert_int_equal(verdict(false, ASKED("Host", "box", "Origin", "https://evil.example")),
                     ERR_FORBIDDEN);
    assert_int_equal(verdict(false, ASKED("Host", "box", "Origin", "https://app.example")),
                     ERR_NONE);
}

static void behind_a_proxy_the_scheme_may_be_safer_but_never_less_safe(void **state)
{
    (void) state;
    assert_int_equal(verdict(false, ASKED("Host", "box", "Origin", "https://box")), ERR_NONE);
    assert_int_equal(verdict(true, ASKED("Host", "box", "Origin", "https://box")), ERR_NONE);
    assert_int_equal(verdict(true, ASKED("Host", "box", "Origin", "http://box")), ERR_FORBIDDEN);
}

static void the_page_stands_in_for_a_missing_origin(void **state)
{
    (void) state;
    assert_int_equal(verdict(false, ASKED("Host", "box", "Referer", "http://box/page?x")),
                     ERR_NONE);
    assert_int_equal(verdict(false, ASKED("Host", "box", "Referer", "http://evil/page")),
                     ERR_FORBIDDEN);
}

static void reading_is_not_at_stake_but_sockets_are(void **state)
{
    static const char *const changing[] = {"POST", "PUT", "PATCH", "DELETE", "MKCOL"};
    static const char *const reading[] = {"GET", "HEAD", "OPTIONS"};
    struct asked asked;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(changing); i++) {
        asked_begin(&asked, changing[i], NULL);
        assert_true(csrf_is_at_stake(&asked.request));
        asked_end(&asked);
    }
    for (size_t i = 0; i < ARRAY_COUNT(reading); i++) {
        asked_begin(&asked, reading[i], NULL);
        assert_false(csrf_is_at_stake(&asked.request));
        asked.head.upgrade = true;
        assert_true(csrf_is_at_stake(&asked.request));
        asked_end(&asked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_that_are_no_browser_go_on),
        cmocka_unit_test(what_browsers_say_about_themselves_counts_most),
        cmocka_unit_test(the_origin_must_be_the_host_that_was_asked),
        cmocka_unit_test(behind_a_proxy_the_scheme_may_be_safer_but_never_less_safe),
        cmocka_unit_test(the_page_stands_in_for_a_missing_origin),
        cmocka_unit_test(reading_is_not_at_stake_but_sockets_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
