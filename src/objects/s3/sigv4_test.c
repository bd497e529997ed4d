/* Against what AWS published: its "Signature Version 4 test suite", and the examples of the S3 API
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "net/url.h"
#include "objects/s3/sigv4.h"

#define EMPTY_SUM "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* --- the test suite ----------------------------------------------------------------------------
 */

#define SUITE_DATE "20150830T123600Z"

static const struct sigv4_key suite_key = {
    .id = "AKIDEXAMPLE",
    .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    .region = "us-east-1",
    .service = "service",
};

static const struct suite_case {
    const char *name;
    const char *method;
    const char *path; /* as a person writes it */
    struct sigv4_pair query[3];
    struct sigv4_pair headers[3]; /* besides host and date */
    const char *payload;
    const char *signature;
} suite_cases[] = {
    {"get-vanilla",
     "GET",
     "/",
     {{0}},
     {{0}},
     EMPTY_SUM,
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     {{"Param2", "value2"}, {"Param1", "value1"}},
     {{0}},
     EMPTY_SUM,
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-empty-query-key",
     "GET",
     "/",
     {{"Param1", "value1"}},
     {{0}},
     EMPTY_SUM,
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-unreserved",
     "GET",
     "/",
     {{"-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
       "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}},
     {{0}},
     EMPTY_SUM,
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-utf8",
     "GET",
     "/\xe1\x88\xb4",
     {{0}},
     {{0}},
     EMPTY_SUM,
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-unreserved",
     "GET",
     "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
     {{0}},
     {{0}},
     EMPTY_SUM,
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-header-value-trim",
     "GET",
     "/",
     {{0}},
     {{"my-header1", " value1"}, {"my-header2", " \"a   b   c\" "}},
     EMPTY_SUM,
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"post-vanilla",
     "POST",
     "/",
     {{0}},
     {{0}},
     EMPTY_SUM,
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-vanilla-query",
     "POST",
     "/",
     {{"Param1", "value1"}},
     {{0}},
     EMPTY_SUM,
     "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-header-key-sort",
     "POST",
     "/",
     {{0}},
     {{"my-header1", "value1"}},
     EMPTY_SUM,
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     {{0}},
     {{"content-type", "application/x-www-form-urlencoded"}},
     "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
};

static size_t pair_count(const struct sigv4_pair *pairs, size_t most)
{
    size_t count = 0;

    while (count < most && pairs[count].name)
        count++;
    return count;
}

static void check_suite_case(const struct suite_case *one)
{
    AUTO(text) struct text path = TEXT_INIT(1024), out = TEXT_INIT(4096);
    struct sigv4_pair headers[5] = {{"x-amz-date", SUITE_DATE}, {"host", "example.amazonaws.com"}};
    size_t extra = pair_count(one->headers, ARRAY_COUNT(one->headers));
    struct sigv4_request request = {
        .method = one->method,
        .query = one->query,
        .query_count = pair_count(one->query, ARRAY_COUNT(one->query)),
        .headers = headers,
        .header_count = 2 + extra,
        .payload = one->payload,
    };

    memcpy(headers + 2, one->headers, extra * sizeof(headers[0]));
    url_encode_path(&path, one->path, strlen(one->path));
    request.path = text_string(&path);
    sigv4_authorize(&suite_key, &request, SUITE_DATE, &out);
    assert_false(out.overflowed);
    if (!strstr(text_string(&out), one->signature))
        fail_msg("%s: %s", one->name, text_string(&out));
}

static void the_published_test_suite_signs_the_same(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(suite_cases); i++)
        check_suite_case(&suite_cases[i]);
}

static void the_whole_header_is_as_published(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    const struct sigv4_pair headers[] = {{"host", "example.amazonaws.com"},
                                         {"x-amz-date", SUITE_DATE}};
    struct sigv4_request request = {
        .method = "GET", .path = "/", .headers = headers, .header_count = 2, .payload = EMPTY_SUM};

    (void) state;
    sigv4_authorize(&suite_key, &request, SUITE_DATE, &out);
    assert_string_equal(
        text_string(&out),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

/* --- the S3 API reference ----------------------------------------------------------------------
 */

#define S3_DATE "20130524T000000Z"
#define S3_HOST "examplebucket.s3.amazonaws.com"

static const struct sigv4_key s3_key = {
    .id = "AKIAIOSFODNN7EXAMPLE",
    .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    .region = "us-east-1",
    .service = "s3",
};

static void check_s3(const char *method, const char *path, const struct sigv4_pair *query,
                     size_t query_count, const struct sigv4_pair *extra, size_t extra_count,
                     const char *payload, const char *signature)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    struct sigv4_pair headers[8] = {
        {"host", S3_HOST}, {"x-amz-content-sha256", payload}, {"x-amz-date", S3_DATE}};
    struct sigv4_request request = {.method = method,
                                    .path = path,
                                    .query = query,
                                    .query_count = query_count,
                                    .headers = headers,
                                    .header_count = 3 + extra_count,
                                    .payload = payload};

    for (size_t i = 0; i < extra_count; i++)
        headers[3 + i] = extra[i];
    sigv4_authorize(&s3_key, &request, S3_DATE, &out);
    if (!strstr(text_string(&out), signature))
        fail_msg("%s %s: %s", method, path, text_string(&out));
}

static void an_object_is_got_with_a_range(void **state)
{
    const struct sigv4_pair extra[] = {{"range", "bytes=0-9"}};

    (void) state;
    check_s3("GET", "/test.txt", NULL, 0, extra, 1, EMPTY_SUM,
             "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void an_object_is_put(void **state)
{
    const struct sigv4_pair extra[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                       {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};

    (void) state;
    check_s3("PUT", "/test%24file.text", NULL, 0, extra, 2,
             "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
             "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void a_parameter_without_a_value_is_signed_with_an_equals_sign(void **state)
{
    const struct sigv4_pair query[] = {{"lifecycle", ""}};

    (void) state;
    check_s3("GET", "/", query, 1, NULL, 0, EMPTY_SUM,
             "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

static void objects_are_listed(void **state)
{
    const struct sigv4_pair query[] = {{"prefix", "J"}, {"max-keys", "2"}};

    (void) state;
    check_s3("GET", "/", query, 2, NULL, 0, EMPTY_SUM,
             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* --- our own -----------------------------------------------------------------------------------
 */

static void a_query_is_sorted_by_its_escaped_names(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    const struct sigv4_pair query[] = {{"b", "2"}, {"a b", "x/y"}, {"a", "\xc3\xa4"},
                                       {"b", "1"}, {"a-b", "+~"},  {"B", ""}};

    (void) state;
    sigv4_query(query, ARRAY_COUNT(query), &out);
    assert_string_equal(text_string(&out), "B=&a=%C3%A4&a%20b=x%2Fy&a-b=%2B~&b=1&b=2");
}

static void a_date_has_no_marks(void **state)
{
    char date[SIGV4_DATE_SIZE];

    (void) state;
    sigv4_date(1369353600999, date);
    assert_string_equal(date, S3_DATE);
}

static void too_many_parameters_overflow_and_do_not_overrun(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    struct sigv4_pair query[SIGV4_PAIRS_MAX + 1];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(query); i++)
        query[i] = (struct sigv4_pair){"a", "b"};
    sigv4_query(query, ARRAY_COUNT(query), &out);
    assert_true(out.overflowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_test_suite_signs_the_same),
        cmocka_unit_test(the_whole_header_is_as_published),
        cmocka_unit_test(an_object_is_got_with_a_range),
        cmocka_unit_test(an_object_is_put),
        cmocka_unit_test(a_parameter_without_a_value_is_signed_with_an_equals_sign),
        cmocka_unit_test(objects_are_listed),
        cmocka_unit_test(a_query_is_sorted_by_its_escaped_names),
        cmocka_unit_test(a_date_has_no_marks),
        cmocka_unit_test(too_many_parameters_overflow_and_do_not_overrun),
    };

    return cmocka_run_group_tests_name("sigv4", tests, NULL, NULL);
}
