#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/preview/preview_headers.h"
#include "base/auto.h"

static void our_cookies_are_taken_out_and_others_stay(void **state)
{
    static const struct {
        const char *given, *left;
    } cases[] = {
        {"a=1", "a=1"},
        {"a=1; b=2", "a=1; b=2"},
        {"burrow_session=secret", NULL},
        {"a=1; burrow_session=secret; b=2", "a=1; b=2"},
        {"a=1;__Host-burrow_session=x;b=2", "a=1; b=2"},
        {"better-auth.session_token=x; __Secure-better-auth.session_token=y", NULL},
        {"BURROW_SESSION = secret; z", "z"},
        {"my_burrow_session=1", "my_burrow_session=1"},
        {" ; ;a=b=c; ", "a=b=c"},
        {"", NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        const char *left = preview_clean_cookies(&pool, cases[i].given);

        if (cases[i].left)
            assert_string_equal(left, cases[i].left);
        else
            assert_null(left);
    }
}

static void a_cookie_stays_on_its_host(void **state)
{
    static const struct {
        const char *given, *left;
    } cases[] = {
        {"a=1; Path=/", "a=1; Path=/"},
        {"a=1; Domain=example.org; Path=/", "a=1; Path=/"},
        {"a=1;domain=.localhost", "a=1"},
        {"a=1; DOMAIN = x; Secure; domain=y", "a=1; Secure"},
        {"domain=1; Domain", "domain=1"},
        {"a=1; Domains=2", "a=1; Domains=2"},
        {"", ""},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;

        assert_string_equal(preview_clean_set_cookie(&pool, cases[i].given), cases[i].left);
    }
}

static void a_key_of_ours_is_not_passed_on_but_theirs_is(void **state)
{
    struct http_request request = {.pool = POOL_INIT};
    struct http_header ours = http_header_of("authorization", "bearer burrow_0123");
    struct http_header with_blanks = http_header_of("Authorization", "BEARER   burrow_0123");
    struct http_header theirs = http_header_of("Authorization", "Bearer app-token");

    (void) state;
    assert_null(preview_request_header(&request, &ours));
    assert_null(preview_request_header(&request, &with_blanks));
    assert_ptr_equal(preview_request_header(&request, &theirs), &theirs);
    pool_done(&request.pool);
}

static void where_a_page_came_from_tells_no_key(void **state)
{
    static const struct {
        const char *given, *left;
    } cases[] = {
        {"http://a/", "http://a/"},
        {"http://a/?token=theirs&x", "http://a/?token=theirs&x"},
        {"http://a/?token=burrow_0123", "http://a/"},
        {"http://a/?a=1&token=burrow_0123&b", "http://a/?a=1&b"},
    };
    struct http_request request = {.pool = POOL_INIT};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct http_header given = http_header_of("Referer", cases[i].given);
        const struct http_header *left = preview_request_header(&request, &given);

        assert_string_equal(left->value, cases[i].left);
        assert_int_equal(left->value_length, strlen(cases[i].left));
    }
    pool_done(&request.pool);
}

static void by_path_there_are_no_cookies_at_all(void **state)
{
    struct http_request request = {.pool = POOL_INIT};
    struct http_header cookie = http_header_of("Cookie", "a=1"),
                       set = http_header_of("Set-Cookie", "a=1");
    struct http_header type = http_header_of("Content-Type", "text/html");

    (void) state;
    assert_non_null(preview_request_header(&request, &cookie));
    assert_non_null(preview_reply_header(&request, &set));
    assert_null(preview_path_request_header(&request, &cookie));
    assert_null(preview_path_reply_header(&request, &set));
    assert_ptr_equal(preview_path_reply_header(&request, &type), &type);
    pool_done(&request.pool);
}

static void what_we_say_of_a_request_nobody_else_says(void **state)
{
    struct http_request request = {.pool = POOL_INIT};
    struct http_header url = http_header_of("X-Original-URL", "http://evil/");
    struct http_header name = http_header_of("x-sandbox-name", "another");

    (void) state;
    assert_null(preview_request_header(&request, &url));
    assert_null(preview_request_header(&request, &name));
    assert_null(preview_path_request_header(&request, &url));
    pool_done(&request.pool);
}

static void a_reply_reaches_no_further_than_its_host(void **state)
{
    static const char *const everywhere[] = {"Clear-Site-Data", "referrer-policy", "X-Request-Id"};
    static const char *const by_path[] = {"Strict-Transport-Security", "Content-Security-Policy",
                                          "Service-Worker-Allowed", "Clear-Site-Data"};
    struct http_request request = {.pool = POOL_INIT};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(everywhere); i++) {
        struct http_header one = http_header_of(everywhere[i], "x");

        assert_null(preview_reply_header(&request, &one));
    }
    for (size_t i = 0; i < ARRAY_COUNT(by_path); i++) {
        struct http_header one = http_header_of(by_path[i], "x");

        assert_null(preview_path_reply_header(&request, &one));
    }
    pool_done(&request.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_cookies_are_taken_out_and_others_stay),
        cmocka_unit_test(a_cookie_stays_on_its_host),
        cmocka_unit_test(a_key_of_ours_is_not_passed_on_but_theirs_is),
        cmocka_unit_test(where_a_page_came_from_tells_no_key),
        cmocka_unit_test(by_path_there_are_no_cookies_at_all),
        cmocka_unit_test(what_we_say_of_a_request_nobody_else_says),
        cmocka_unit_test(a_reply_reaches_no_further_than_its_host),
    };

    return cmocka_run_group_tests_name("preview_headers", tests, NULL, NULL);
}
