#include <string.h>

#include "agent/agent_test.h"
#include "agent/git/git_url.h"

static int parse(const char *text, struct pool *pool, struct git_url *url)
{
    const char *reason = NULL;
    int r = git_url_parse(text, pool, url, &reason);

    if (r < 0) {
        assert_non_null(reason);
        assert_null(strstr(reason, "s3cret"));
    }
    return r;
}

static void credentials_leave_the_url(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct git_url url;

    (void) state;
    assert_int_equal(parse("https://me:s3cret%40x@host.example:8443/g/name.git", &pool, &url), 0);
    assert_string_equal(url.clean, "https://host.example:8443/g/name.git");
    assert_string_equal(url.origin, "https://host.example:8443");
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "s3cret@x");
    assert_string_equal(url.raw_password, "s3cret%40x");
    assert_string_equal(url.name, "name");
}

static void a_lonely_user_is_a_token(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(text) struct text out = TEXT_INIT(1000);
    struct redaction redaction = {.count = 0};
    struct git_url url;

    (void) state;
    assert_int_equal(parse("http://s3cret@host/name", &pool, &url), 0);
    assert_string_equal(url.clean, "http://host/name");
    assert_string_equal(url.user, "s3cret");
    assert_string_equal(url.password, "");
    git_url_redact(&url, &pool, &redaction);
    redaction_append(&redaction, &out, "bad s3cret, czNjcmV0Og==", 24);
    assert_string_equal(text_string(&out), "bad ******, ******");
}

static void an_at_sign_in_a_password_needs_no_escape(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct git_url url;

    (void) state;
    assert_int_equal(parse("https://u:s3cret@home@host/n", &pool, &url), 0);
    assert_string_equal(url.clean, "https://host/n");
    assert_string_equal(url.password, "s3cret@home");
}

static void every_allowed_form_is_taken(void **state)
{
    static const struct {
        const char *text, *clean, *name;
        enum git_transport transport;
    } rows[] = {
        {"HTTPS://host/a/b.git/", "https://host/a/b.git/", "b", GIT_TRANSPORT_HTTP},
        {"http://[::1]:80/b", "http://[::1]:80/b", "b", GIT_TRANSPORT_HTTP},
        {"ssh://git@host:22/a/b.git", "ssh://git@host:22/a/b.git", "b", GIT_TRANSPORT_SSH},
        {"git@host:a/b.git", "git@host:a/b.git", "b", GIT_TRANSPORT_SSH},
        {"git@host:b", "git@host:b", "b", GIT_TRANSPORT_SSH},
        {"file:///srv/a%20b.git", "file:///srv/a%20b.git", "a-b", GIT_TRANSPORT_FILE},
        {"file://localhost/srv/x", "file://localhost/srv/x", "x", GIT_TRANSPORT_FILE},
        {"https://host/a/..", "https://host/a/..", "repository", GIT_TRANSPORT_HTTP},
        {"https://host/a/%2e%2e%2f", "https://host/a/%2e%2e%2f", "repository", GIT_TRANSPORT_HTTP},
        {"https://host/.git", "https://host/.git", "repository", GIT_TRANSPORT_HTTP},
        {"https://host/a;b$c", "https://host/a;b$c", "a-b-c", GIT_TRANSPORT_HTTP},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        struct git_url url;

        assert_int_equal(parse(rows[i].text, &pool, &url), 0);
        assert_string_equal(url.clean, rows[i].clean);
        assert_string_equal(url.name, rows[i].name);
        assert_int_equal(url.transport, rows[i].transport);
        assert_null(url.user);
    }
}

static void everything_else_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "-u/x",
        "--upload-pack=touch${IFS}x",
        "ext::sh -c id",
        "ext::sh",
        "fd::17/x",
        "git://host/x",
        "ftp://host/x",
        "/srv/repository",
        "repository",
        "host:path",
        "https://",
        "https://host",
        "https://host/",
        "https://host///",
        "https:///path",
        "https://host:123456/x",
        "https://host:x/y",
        "https://-host/x",
        "https://ho st/x",
        "https://host/x\ny",
        "https://host/x?token=s3cret",
        "https://host/x#s3cret",
        "https://me:s3cret%0ax@host/x",
        "https://me:s3cret%zz@host/x",
        "https://me:s3cret/@host/x",
        "ssh://git:s3cret@host/x",
        "ssh://-oProxyCommand=x@host/x",
        "ssh://-oProxyCommand=x/y",
        "git@-host:x",
        "me:s3cret@host:x",
        "git@host:-x",
        "git@host:",
        "file://host/x",
        "file://s3cret@/x",
        "not-a-url",
    };

    (void) state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        struct git_url url;

        if (parse(texts[i], &pool, &url) == 0)
            fail_msg("'%s' was taken", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_leave_the_url),
        cmocka_unit_test(a_lonely_user_is_a_token),
        cmocka_unit_test(an_at_sign_in_a_password_needs_no_escape),
        cmocka_unit_test(every_allowed_form_is_taken),
        cmocka_unit_test(everything_else_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
