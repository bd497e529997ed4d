#include "api/access/credential.h"
#include "api/http/request_testing.h"

static struct credential found;
static char found_secret[CREDENTIAL_SECRET_MAX + 1];

/* What is found in these headers, copied out of the pool. */
static const char *look(bool is_secure, const char *query, const char *const *headers)
{
    struct asked asked;
    struct url_span span = url_span(query, query ? strlen(query) : 0);

    asked_begin(&asked, "GET", headers);
    found = credential_find(&asked.head, span, is_secure, &asked.request.pool);
    if (found.secret)
        memcpy(found_secret, found.secret, strlen(found.secret) + 1);
    asked_end(&asked);
    return found.secret ? found_secret : NULL;
}

static void a_bearer_is_found_in_any_case_and_with_blanks(void **state)
{
    (void) state;
    assert_string_equal(look(false, NULL, ASKED("Authorization", "Bearer abc")), "abc");
    assert_int_equal(found.source, CREDENTIAL_HEADER);
    assert_string_equal(look(false, NULL, ASKED("authorization", "bEARER   abc  ")), "abc");
    assert_null(look(false, NULL, ASKED("Authorization", "Basic abc")));
    assert_null(look(false, NULL, ASKED("Authorization", "Bearerabc")));
    assert_null(look(false, NULL, ASKED("Authorization", "")));
    assert_int_equal(found.source, CREDENTIAL_NONE);
}

static void a_credential_that_can_be_nobodys_is_there_and_empty(void **state)
{
    char huge[CREDENTIAL_SECRET_MAX + 20];

    (void) state;
    memset(huge, 'x', sizeof(huge) - 1);
    memcpy(huge, "Bearer ", 7);
    huge[sizeof(huge) - 1] = '\0';
    assert_string_equal(look(false, NULL, ASKED("Authorization", "Bearer ")), "");
    assert_int_equal(found.source, CREDENTIAL_HEADER);
    assert_string_equal(look(false, NULL, ASKED("Authorization", "Bearer a b")), "");
    assert_string_equal(look(false, NULL, ASKED("Authorization", "Bearer a\xff")), "");
    assert_string_equal(look(false, NULL, ASKED("Authorization", huge)), "");
    huge[7 + CREDENTIAL_SECRET_MAX] = '\0';
    assert_int_equal(strlen(look(false, NULL, ASKED("Authorization", huge))),
                     CREDENTIAL_SECRET_MAX);
}

static void cookies_are_told_apart_by_their_whole_name(void **state)
{
    (void) state;
    assert_string_equal(look(false, NULL, ASKED("Cookie", "a=1; burrow_session=abc; b=2")), "abc");
    assert_int_equal(found.source, CREDENTIAL_COOKIE);
    assert_string_equal(look(false, NULL, ASKED("Cookie", "burrow_session=\"abc\"")), "abc");
    assert_string_equal(look(false, NULL, ASKED("Cookie", "burrow_session=a=b")), "a=b");
    assert_string_equal(look(false, NULL, ASKED("Cookie", "better-auth.session_token=t")), "t");
    assert_null(look(false, NULL, ASKED("Cookie", "xburrow_session=abc")));
    assert_null(look(false, NULL, ASKED("Cookie", "burrow_sessionx=abc")));
    assert_null(look(false, NULL, ASKED("Cookie", "burrow_session")));
    assert_null(look(false, NULL, ASKED("Cookie", "Burrow_Session=abc")));
}

static void several_cookie_headers_are_one(void **state)
{
    (void) state;
    assert_string_equal(look(false, NULL, ASKED("Cookie", "a=1", "Cookie", "burrow_session=abc")),
                        "abc");
}

static void over_tls_a_cookie_that_others_can_plant_is_not_looked_at(void **state)
{
    const char *both = "burrow_session=planted; __Host-burrow_session=own";

    (void) state;
    assert_string_equal(look(true, NULL, ASKED("Cookie", both)), "own");
    assert_null(look(true, NULL, ASKED("Cookie", "burrow_session=planted")));
    assert_null(look(true, NULL, ASKED("Cookie", "better-auth.session_token=planted")));
    assert_null(look(true, NULL, ASKED("Cookie", "__Secure-better-auth.session_token=planted")));
    assert_string_equal(look(false, NULL, ASKED("Cookie", "burrow_session=abc")), "abc");
}

static void a_header_wins_over_a_cookie_and_a_cookie_over_the_query(void **state)
{
    (void) state;
    assert_string_equal(
        look(false, "token=q", ASKED("Cookie", "burrow_session=c", "Authorization", "Bearer h")),
        "h");
    assert_string_equal(look(false, "token=q", ASKED("Cookie", "burrow_session=c")), "c");
    assert_string_equal(look(false, "token=q", ASKED("Cookie", "x=c", "Authorization", "Basic h")),
                        "q");
}

static void a_query_is_read_only_where_it_is_given(void **state)
{
    (void) state;
    assert_string_equal(look(false, "a=1&token=t%6Fken", NULL), "token");
    assert_int_equal(found.source, CREDENTIAL_QUERY);
    assert_string_equal(look(false, "authorization=Bearer%20abc", NULL), "abc");
    assert_null(look(false, "authorization=abc", NULL));
    assert_null(look(false, "token=%zz", NULL));
    assert_null(look(false, NULL, NULL));
}

static void a_query_is_passed_on_without_secrets_of_ours(void **state)
{
    static const struct {
        const char *given, *left; /* NULL: not there */
    } cases[] = {
        {NULL, NULL},
        {"", ""},
        {"a=1&token=theirs&&b=%zz&authorization=Bearer%20x", NULL},
        {"token=burrow_0123", NULL},
        {"token=burrow_login_0123", NULL},
        {"a=1&token=burrow_0123&b=2&token=theirs", "a=1&b=2&token=theirs"},
        {"b=%26&whatever=%62urrow_0123", "b=%26"},
        {"authorization=Bearer%20burrow_0123&c", "c"},
        {"authorization=bearer++BURROW_0123&c", "c"},
        {"a=1&&t=+burrow_0123&&b", "a=1&&&b"},
        {"q=about+burrow_keys", "q=about+burrow_keys"},
        {"burrow_0123", "burrow_0123"}, /* a name is no value: credential_find reads none there */
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        const char *given = cases[i].given;
        struct url_span query = url_span(given, given ? strlen(given) : 0);
        struct url_span left = credential_clean_query(query, &pool);

        if (i == 2) { /* nothing of ours: untouched, to the byte */
            assert_ptr_equal(left.text, given);
            assert_int_equal(left.length, strlen(given));
        } else if (!cases[i].left)
            assert_null(left.text);
        else if (!url_span_equals(left, cases[i].left))
            fail_msg("%s: %.*s", given, (int) left.length, left.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bearer_is_found_in_any_case_and_with_blanks),
        cmocka_unit_test(a_credential_that_can_be_nobodys_is_there_and_empty),
        cmocka_unit_test(cookies_are_told_apart_by_their_whole_name),
        cmocka_unit_test(several_cookie_headers_are_one),
        cmocka_unit_test(over_tls_a_cookie_that_others_can_plant_is_not_looked_at),
        cmocka_unit_test(a_header_wins_over_a_cookie_and_a_cookie_over_the_query),
        cmocka_unit_test(a_query_is_read_only_where_it_is_given),
        cmocka_unit_test(a_query_is_passed_on_without_secrets_of_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
