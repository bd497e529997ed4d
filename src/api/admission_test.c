#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/access.h"
#include "api/admission.h"
#include "base/auto.h"

#define HEADERS_MAX 8

/* A request as the server would hand it over, made of headers alone. */
struct asked {
    struct http_header headers[HEADERS_MAX];
    struct http_head head;
    struct http_route route;
    struct http_request request;
};

static void ask(struct asked *asked, const char *method, const char *const (*headers)[2],
                size_t count)
{
    *asked = (struct asked){.head = {.method = method, .minor = 1}};
    for (size_t i = 0; i < count; i++) {
        asked->headers[i] = (struct http_header){
            .name = headers[i][0],
            .value = headers[i][1],
            .name_length = (uint32_t) strlen(headers[i][0]),
            .value_length = (uint32_t) strlen(headers[i][1]),
        };
    }
    asked->head.headers = asked->headers;
    asked->head.header_count = count;
    asked->request.head = &asked->head;
    asked->request.match.route = &asked->route;
}

static void forget(struct asked *asked)
{
    pool_done(&asked->request.pool);
    text_done(&asked->request.extra_headers);
}

static enum err_code source_verdict(struct admission *admission, const char *method,
                                    const char *const (*headers)[2], size_t count)
{
    struct error err = ERROR_INIT;
    struct asked asked;
    int r;

    ask(&asked, method, headers, count);
    r = admission_check_source(&asked.request, admission, &err);
    forget(&asked);
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
    assert_int_equal(admission_init(&admission, true, "box.example,other.example", NULL), 0);
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
    assert_int_equal(admission_init(&admission, true, "", NULL), 0);
    assert_int_equal(origin_verdict(&admission, "http://localhost:8787"), ERR_NONE);
    assert_int_equal(origin_verdict(&admission, "http://localhost:3000"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "http://localhost"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "http://127.0.0.1:8787"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "https://evil.example"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, "null"), ERR_FORBIDDEN);
    assert_int_equal(origin_verdict(&admission, ""), ERR_FORBIDDEN);
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
    assert_int_equal(admission_init(&admission, true, "", NULL), 0);
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
    assert_int_equal(admission_init(&admission, false, "", NULL), 0);
    assert_int_equal(host_verdict(&admission, "anything.example"), ERR_NONE);
    admission_done(&admission);
}

static enum err_code access_verdict(struct admission *admission, unsigned int access,
                                    const char *authorization)
{
    const char *headers[][2] = {{"Authorization", authorization ? authorization : ""}};
    struct error err = ERROR_INIT;
    struct asked asked;
    int r;

    ask(&asked, "GET", headers, authorization ? 1 : 0);
    asked.route.access = access;
    r = admission_check_access(&asked.request, admission, &err);
    if (r < 0)
        assert_non_null(strstr(text_string(&asked.request.extra_headers), "WWW-Authenticate"));
    forget(&asked);
    return r == 0 ? ERR_NONE : err.code;
}

static void a_route_is_closed_without_the_key_unless_it_is_public(void **state)
{
    struct admission admission;

    (void) state;
    assert_int_equal(admission_init(&admission, false, "", NULL), 0);
    admission_set_key(&admission, "burrow_right");
    assert_int_equal(access_verdict(&admission, ACCESS_PUBLIC, NULL), ERR_NONE);
    assert_int_equal(access_verdict(&admission, 0, NULL), ERR_UNAUTHENTICATED);
    assert_int_equal(access_verdict(&admission, 0, "Bearer burrow_right"), ERR_NONE);
    assert_int_equal(access_verdict(&admission, 0, "bearer   burrow_right"), ERR_NONE);
    assert_int_equal(access_verdict(&admission, 0, "Bearer burrow_wrong"), ERR_UNAUTHENTICATED);
    assert_int_equal(access_verdict(&admission, 0, "Bearer burrow_righ"), ERR_UNAUTHENTICATED);
    assert_int_equal(access_verdict(&admission, 0, "Basic burrow_right"), ERR_UNAUTHENTICATED);
    assert_int_equal(access_verdict(&admission, 0, "Bearer "), ERR_UNAUTHENTICATED);
    admission_done(&admission);
}

static void malformed_allowed_hosts_are_refused(void **state)
{
    static const char *const wrong[] = {"a b", "host:80", "a,,b", "http://a"};
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct admission admission;

        assert_int_equal(admission_init(&admission, true, wrong[i], &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        admission_done(&admission);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_keys_only_own_names_are_answered),
        cmocka_unit_test(without_keys_pages_of_other_origins_are_refused),
        cmocka_unit_test(without_keys_a_link_may_be_followed_but_nothing_loaded),
        cmocka_unit_test(with_keys_any_host_is_answered),
        cmocka_unit_test(a_route_is_closed_without_the_key_unless_it_is_public),
        cmocka_unit_test(malformed_allowed_hosts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
