#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/access/access.h"
#include "api/http/openapi_page.h"

static const struct http_route routes[] = {
    {"GET", "/a/{id}", NULL, "Read <one> & \"all\"", .access = ACCESS_PUBLIC,
     .reply_schema = "{\"type\":\"object\"}"},
    {"PUT", "/b", NULL, NULL, .request_schema = "{\"x\":1}"},
};
static const struct http_mount mounts[] = {{.name = "test", .routes = routes, .route_count = 2}};

static void every_route_is_on_the_page_and_nothing_in_it_is_markup(void **state)
{
    AUTO(text) struct text page = TEXT_INIT(64 * 1024);

    (void) state;
    assert_int_equal(openapi_page_write(mounts, 1, "Title", "1.2", "/openapi.json", &page), 0);
    assert_non_null(strstr(page.data, "<b>GET</b> <code>/a/{id}</code>"));
    assert_non_null(strstr(page.data, "Read &lt;one&gt; &amp; &quot;all&quot; (needs no key)"));
    assert_non_null(strstr(page.data, "{&quot;type&quot;:&quot;object&quot;}"));
    assert_non_null(strstr(page.data, "<b>PUT</b> <code>/b</code>"));
    assert_non_null(strstr(page.data, "{&quot;x&quot;:1}"));
    assert_non_null(strstr(page.data, "href=\"/openapi.json\""));
    assert_null(strstr(page.data, "<one>"));
}

static void the_page_needs_nothing_from_elsewhere(void **state)
{
    AUTO(text) struct text page = TEXT_INIT(64 * 1024);

    (void) state;
    assert_int_equal(openapi_page_write(mounts, 1, "Title", "1.2", "/openapi.json", &page), 0);
    assert_null(strstr(page.data, "<script"));
    assert_null(strstr(page.data, "src="));
    assert_null(strstr(page.data, "://"));
}

static void a_page_that_does_not_fit_is_said(void **state)
{
    AUTO(text) struct text page = TEXT_INIT(100);

    (void) state;
    assert_int_equal(openapi_page_write(mounts, 1, "Title", "1.2", "/x", &page), -EOVERFLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_on_the_page_and_nothing_in_it_is_markup),
        cmocka_unit_test(the_page_needs_nothing_from_elsewhere),
        cmocka_unit_test(a_page_that_does_not_fit_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
