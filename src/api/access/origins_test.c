#include "api/access/origins.h"
#include "api/http/request_testing.h"

static void an_origin_is_named_in_any_of_its_forms(void **state)
{
    struct origins origins;

    (void) state;
    assert_int_equal(origins_read(&origins, "https://app.example,http://localhost:5173", NULL), 0);
    assert_true(origins_has(&origins, "https://app.example"));
    assert_true(origins_has(&origins, "https://APP.example:443"));
    assert_true(origins_has(&origins, "http://localhost:5173"));
    assert_false(origins_has(&origins, "http://app.example"));
    assert_false(origins_has(&origins, "https://app.example.evil"));
    assert_false(origins_has(&origins, "https://app.example:8443"));
    assert_false(origins_has(&origins, "http://localhost"));
    assert_false(origins_has(&origins, "null"));
    assert_false(origins_has(&origins, ""));
    origins_done(&origins);
}

static void what_is_no_origin_is_refused(void **state)
{
    static const char *const wrong[] = {"app.example", "https://", "https://a/path", "https://a/",
                                        "ftp://a",     "a,,b",     "https://a?x"};
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct origins origins;

        assert_int_equal(origins_read(&origins, wrong[i], &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        origins_done(&origins);
    }
}

static bool is_told(const char *allowed, const char *origin, const char *what)
{
    struct origins origins;
    struct asked asked;
    bool is_there;

    assert_int_equal(origins_read(&origins, allowed, NULL), 0);
    asked_begin(&asked, "GET", origin ? ASKED("Origin", origin) : NULL);
    origins_add_headers(&origins, &asked.request);
    is_there = strstr(text_string(&asked.request.extra_headers), what);
    asked_end(&asked);
    origins_done(&origins);
    return is_there;
}

static void only_named_pages_see_replies_and_use_cookies(void **state)
{
    (void) state;
    assert_false(is_told("", "https://app.example", "Access-Control"));
    assert_false(is_told("https://app.example", NULL, "Access-Control"));
    assert_false(is_told("https://app.example", "https://evil.example", "Access-Control"));
    assert_true(is_told("https://app.example", "https://evil.example", "Vary: Origin"));
    assert_true(is_told("https://app.example", "https://app.example",
                        "Access-Control-Allow-Origin: https://app.example"));
    assert_true(is_told("https://app.example", "https://app.example",
                        "Access-Control-Allow-Credentials: true"));
    assert_true(is_told("*", "https://evil.example", "Access-Control-Allow-Origin: *"));
    assert_false(is_told("*", "https://evil.example", "Credentials"));
}

static void a_question_before_the_request_is_known(void **state)
{
    struct asked asked;

    (void) state;
    asked_begin(&asked, "OPTIONS",
                ASKED("Origin", "https://a", "Access-Control-Request-Method", "PUT"));
    assert_true(origins_is_preflight(&asked.request));
    asked_end(&asked);
    asked_begin(&asked, "OPTIONS", ASKED("Origin", "https://a"));
    assert_false(origins_is_preflight(&asked.request));
    asked_end(&asked);
    asked_begin(&asked, "GET",
                ASKED("Origin", "https://a", "Access-Control-Request-Method", "PUT"));
    assert_false(origins_is_preflight(&asked.request));
    asked_end(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_is_named_in_any_of_its_forms),
        cmocka_unit_test(what_is_no_origin_is_refused),
        cmocka_unit_test(only_named_pages_see_replies_and_use_cookies),
        cmocka_unit_test(a_question_before_the_request_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
