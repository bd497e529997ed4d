#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "net/url.h"

static void assert_span(struct url_span span, const char *wanted)
{
    if (!wanted) {
        assert_null(span.text);
        return;
    }
    assert_non_null(span.text);
    assert_int_equal(span.length, strlen(wanted));
    assert_memory_equal(span.text, wanted, span.length);
}

static void absolute_urls_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        enum url_scheme scheme;
        enum url_host_kind kind;
        const char *host;
        unsigned int port;
        const char *path;
        const char *query;
    } rows[] = {
        {"http://example.com", URL_HTTP, URL_HOST_NAME, "example.com", 80, "/", NULL},
        {"HTTPS://Example.com/", URL_HTTPS, URL_HOST_NAME, "Example.com", 443, "/", NULL},
        {"http://a:8080/x/y?z=1&t", URL_HTTP, URL_HOST_NAME, "a", 8080, "/x/y", "z=1&t"},
        {"http://a?q", URL_HTTP, URL_HOST_NAME, "a", 80, "/", "q"},
        {"http://a?", URL_HTTP, URL_HOST_NAME, "a", 80, "/", ""},
        {"http://a#f?x", URL_HTTP, URL_HOST_NAME, "a", 80, "/", NULL},
        {"ws://a.b./s#f", URL_WS, URL_HOST_NAME, "a.b", 80, "/s", NULL},
        {"wss://a-b_c/", URL_WSS, URL_HOST_NAME, "a-b_c", 443, "/", NULL},
        {"http://127.0.0.1:1/", URL_HTTP, URL_HOST_IPV4, "127.0.0.1", 1, "/", NULL},
        {"http://[::1]/", URL_HTTP, URL_HOST_IPV6, "::1", 80, "/", NULL},
        {"http://[fe80::A]:65535/p", URL_HTTP, URL_HOST_IPV6, "fe80::A", 65535, "/p", NULL},
        {"http://1a.b1/", URL_HTTP, URL_HOST_NAME, "1a.b1", 80, "/", NULL},
        {"http://a//b/%2F[x]|^", URL_HTTP, URL_HOST_NAME, "a", 80, "//b/%2F[x]|^", NULL},
        {"http://a/?{}\\`?/100%", URL_HTTP, URL_HOST_NAME, "a", 80, "/", "{}\\`?/100%"},
        {"unix:/run/docker.sock", URL_UNIX, URL_HOST_NONE, NULL, 0, "/run/docker.sock", NULL},
        {"unix:///run/a%20b", URL_UNIX, URL_HOST_NONE, NULL, 0, "/run/a%20b", NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct url url;

        assert_int_equal(url_parse(rows[i].text, strlen(rows[i].text), &url, NULL), 0);
        assert_int_equal(url.scheme, rows[i].scheme);
        assert_int_equal(url.host_kind, rows[i].kind);
        assert_span(url.host, rows[i].host);
        assert_int_equal(url.port, rows[i].port);
        assert_span(url.path, rows[i].path);
        assert_span(url.query, rows[i].query);
    }
}

static const struct {
    const char *text;
    const char *reason; /* part of the message */
} bad_urls[] = {
    {"", "begin with"},
    {"/path", "begin with"},
    {"example.com", "begin with"},
    {"ftp://a/", "begin with"},
    {"file:///etc/passwd", "begin with"},
    {"http:a", "'//'"},
    {"http:/a", "'//'"},
    {"http://", "1 to 253"},
    {"http:///path", "1 to 253"},
    {"http://user:geheim@a/", "user name"},
    {"http://user@a/", "user name"},
    {"http://a@b@c/", "user name"},
    {"http://a b/", "character"},
    {"http://a%41/", "character"},
    {"http://\xc3\xa4/", "character"},
    {"http://a\\b/", "character"},
    {"http://a..b/", "label"},
    {"http://.a/", "label"},
    {"http://./", "label"},
    {"http://a../", "label"},
    {"http://a:/", "port"},
    {"http://a:0/", "port"},
    {"http://a:080/", "port"},
    {"http://a:65536/", "port"},
    {"http://a:999999/", "port"},
    {"http://a:8x/", "port"},
    {"http://a:-1/", "port"},
    {"http://a:1:2/", "port"},
    {"http://2130706433/", "IPv4"},
    {"http://127.1/", "IPv4"},
    {"http://0x7f.0.0.1/", "IPv4"},
    {"http://127.0.0.0x1/", "IPv4"},
    {"http://0x/", "IPv4"},
    {"http://127.0.0.01/", "IPv4"},
    {"http://256.0.0.1/", "IPv4"},
    {"http://1.2.3.4.5/", "IPv4"},
    {"http://foo.1/", "IPv4"},
    {"http://[::1/", "IPv6"},
    {"http://[]/", "IPv6"},
    {"http://[127.0.0.1]/", "IPv6"},
    {"http://[fe80::1%25eth0]/", "IPv6"},
    {"http://[::1]x/", "only a port"},
    {"http://[::1]:/", "port"},
    {"http://::1/", "1 to 253"},
    {"http://a/ b", "path"},
    {"http://a/\"", "path"},
    {"http://a/{", "path"},
    {"http://a/\\", "path"},
    {"http://a/\x7f", "path"},
    {"http://a/\xff", "path"},
    {"http://a/%", "hex"},
    {"http://a/%4", "hex"},
    {"http://a/%4g", "hex"},
    {"http://a/?a b", "query"},
    {"http://a/?<", "query"},
    {"http://a/?\n", "query"},
    {"unix:", "path of its socket"},
    {"unix:/", "path of its socket"},
    {"unix:run/x", "begin with '/'"},
    {"unix://host/x", "no host"},
    {"unix:///", "path of its socket"},
    {"unix:/x?y", "no query"},
};

static void bad_urls_are_refused_with_the_reason(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad_urls); i++) {
        struct error err = ERROR_INIT;
        struct url url = {.port = 7};

        assert_int_equal(url_parse(bad_urls[i].text, strlen(bad_urls[i].text), &url, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        if (!strstr(err.message, bad_urls[i].reason))
            fail_msg("%s: '%s' does not say '%s'", bad_urls[i].text, err.message,
                     bad_urls[i].reason);
        assert_null(strstr(err.message, "geheim"));
        assert_int_equal(url.port, 7);
    }
}

static void nul_bytes_are_refused_everywhere(void **state)
{
    static const char good[] = "http://host/path?query";
    char text[sizeof(good)];

    (void) state;
    for (size_t i = 0; i + 1 < sizeof(good); i++) {
        struct url url;

        memcpy(text, good, sizeof(good));
        text[i] = '\0';
        assert_int_equal(url_parse(text, sizeof(good) - 1, &url, NULL), -1);
    }
}

static void lengths_are_capped(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(2 * URL_LENGTH_MAX);
    struct error err = ERROR_INIT;
    struct url_target target;
    struct url_host host;
    struct url url;

    (void) state;
    text_append(&text, "http://a/");
    while (text.length < URL_LENGTH_MAX)
        text_append_char(&text, 'x');
    assert_int_equal(url_parse(text.data, text.length, &url, &err), 0);
    assert_int_equal(url_target_parse(text.data, text.length, &target, &err), 0);
    text_append_char(&text, 'x');
    assert_int_equal(url_parse(text.data, text.length, &url, &err), -1);
    assert_int_equal(err.code, ERR_URL_TOO_LONG);
    assert_int_equal(url_target_parse(text.data, text.length, &target, &err), -1);
    assert_int_equal(err.code, ERR_URL_TOO_LONG);

    text_clear(&text);
    for (int i = 0; i < 63; i++)
        text_append_char(&text, 'l');
    assert_int_equal(url_host_parse(text.data, text.length, &host, NULL), 0);
    text_append_char(&text, 'l');
    assert_int_equal(url_host_parse(text.data, text.length, &host, NULL), -1);

    text_clear(&text);
    while (text.length < URL_HOST_MAX)
        text_append(&text, text.length % 2 ? "." : "a");
    assert_int_equal(url_host_parse(text.data, text.length, &host, NULL), 0);
    assert_int_equal(strlen(host.name), URL_HOST_MAX);
    text_append(&text, ".a");
    assert_int_equal(url_host_parse(text.data, text.length, &host, NULL), -1);
}

static void urls_are_written_in_one_form(void **state)
{
    static const char *const rows[][2] = {
        {"HTTP://A.Example.:80", "http://a.example/"},
        {"https://a:80/?", "https://a:80/?"},
        {"wss://[0:0:0:0:0:0:0:1]:443/x?y=1#z", "wss://[::1]/x?y=1"},
        {"http://[::FFFF:1.2.3.4]:8/", "http://[::ffff:1.2.3.4]:8/"},
        {"unix:/run/s", "unix:///run/s"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(text) struct text out = TEXT_INIT(URL_LENGTH_MAX);
        struct url url;

        assert_int_equal(url_parse(rows[i][0], strlen(rows[i][0]), &url, NULL), 0);
        url_write(&url, &out);
        assert_string_equal(text_string(&out), rows[i][1]);
    }
}

static void origins_are_scheme_host_and_port(void **state)
{
    static const struct {
        const char *one;
        const char *other;
        bool same;
    } rows[] = {
        {"http://a/x", "http://A:80/y?z", true},   {"http://a./", "http://a/", true},
        {"http://[::1]/", "http://[0::1]/", true}, {"http://a/", "https://a/", false},
        {"http://a/", "https://a:80/", false},     {"http://a/", "http://a:81/", false},
        {"http://a/", "http://a.b/", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct url one, other;

        assert_int_equal(url_parse(rows[i].one, strlen(rows[i].one), &one, NULL), 0);
        assert_int_equal(url_parse(rows[i].other, strlen(rows[i].other), &other, NULL), 0);
        assert_int_equal(url_same_origin(&one, &other), rows[i].same);
    }
}

static void schemes_know_their_name_and_safety(void **state)
{
    (void) state;
    assert_string_equal(url_scheme_text(URL_WSS), "wss");
    assert_string_equal(url_scheme_text(URL_SCHEME_COUNT), "?");
    assert_true(url_scheme_is_secure(URL_HTTPS));
    assert_true(url_scheme_is_secure(URL_WSS));
    assert_false(url_scheme_is_secure(URL_HTTP));
    assert_false(url_scheme_is_secure(URL_SCHEME_COUNT));
}

static void host_headers_become_comparable(void **state)
{
    static const struct {
        const char *text;
        enum url_host_kind kind;
        const char *name;
        unsigned int port;
    } rows[] = {
        {"LocalHost", URL_HOST_NAME, "localhost", 0},
        {"localhost.:8787", URL_HOST_NAME, "localhost", 8787},
        {"127.0.0.1.", URL_HOST_IPV4, "127.0.0.1", 0},
        {"[::1]", URL_HOST_IPV6, "::1", 0},
        {"[0:0::0:1]:80", URL_HOST_IPV6, "::1", 80},
        {"[2001:DB8::]", URL_HOST_IPV6, "2001:db8::", 0},
    };
    static const char *const refused[] = {"",    "a b",  "a,b",     "a/",   "a:b",   "[::1",
                                          ":80", "u@a",  "[::1]80", "::1",  "a:80 ", " a",
                                          "a#",  "a\tb", "0177.1",  "a:+1", "*"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct url_host host;

        assert_int_equal(url_host_parse(rows[i].text, strlen(rows[i].text), &host, NULL), 0);
        assert_int_equal(host.kind, rows[i].kind);
        assert_string_equal(host.name, rows[i].name);
        assert_int_equal(host.port, rows[i].port);
    }
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct error err = ERROR_INIT;
        struct url_host host;

        assert_int_equal(url_host_parse(refused[i], strlen(refused[i]), &host, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void request_targets_have_three_forms(void **state)
{
    static const struct {
        const char *text;
        enum url_target_form form;
        const char *path;
        const char *query;
        const char *authority;
    } rows[] = {
        {"/", URL_TARGET_ORIGIN, "/", NULL, NULL},
        {"/a/b?c=d?e", URL_TARGET_ORIGIN, "/a/b", "c=d?e", NULL},
        {"/?", URL_TARGET_ORIGIN, "/", "", NULL},
        {"//host/path", URL_TARGET_ORIGIN, "//host/path", NULL, NULL},
        {"/a:b@c", URL_TARGET_ORIGIN, "/a:b@c", NULL, NULL},
        {"*", URL_TARGET_ASTERISK, "*", NULL, NULL},
        {"http://Host:80/p?q", URL_TARGET_ABSOLUTE, "/p", "q", "Host:80"},
        {"https://host", URL_TARGET_ABSOLUTE, "/", NULL, "host"},
        {"http://[::1]:8?x", URL_TARGET_ABSOLUTE, "/", "x", "[::1]:8"},
    };
    static const char *const refused[] = {
        "",           "host:443",       "[::1]:443",   "**",      "*?",     "/a#b",
        "/a?b#c",     "http://a/#f",    "ws://a/",     "unix:/x", "http:/", "http://",
        "http://:80", "http://u:p@h/",  "/a b",        "/\x01",   "/%zz",   "path",
        "?q",         "http://a\\@b/x", "http://a b/", "/\xc3",   "/a\"",   "/a?b\"",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct url_target target;

        assert_int_equal(url_target_parse(rows[i].text, strlen(rows[i].text), &target, NULL), 0);
        assert_int_equal(target.form, rows[i].form);
        assert_span(target.path, rows[i].path);
        assert_span(target.query, rows[i].query);
        assert_span(target.authority, rows[i].authority);
    }
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct error err = ERROR_INIT;
        struct url_target target;

        if (url_target_parse(refused[i], strlen(refused[i]), &target, &err) == 0)
            fail_msg("'%s' was taken", refused[i]);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void escapes_are_undone_strictly(void **state)
{
    static const struct {
        const char *raw;
        enum url_decoding decoding;
        const char *wanted; /* NULL: refused */
    } rows[] = {
        {"", URL_DECODE_PATH, ""},
        {"a%20b+c", URL_DECODE_PATH, "a b+c"},
        {"a%20b+c", URL_DECODE_QUERY, "a b c"},
        {"%2b%2B%2f", URL_DECODE_QUERY, "++/"},
        {"%c3%A4", URL_DECODE_PATH, "\xc3\xa4"},
        {"%2525", URL_DECODE_PATH, "%25"},
        {"%", URL_DECODE_PATH, NULL},
        {"%2", URL_DECODE_PATH, NULL},
        {"%g0", URL_DECODE_PATH, NULL},
        {"%0g", URL_DECODE_PATH, NULL},
        {"%-1", URL_DECODE_PATH, NULL},
        {"a%00b", URL_DECODE_PATH, NULL},
        {"100%", URL_DECODE_QUERY, NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct url_span raw = url_span(rows[i].raw, strlen(rows[i].raw));
        char buffer[64];
        ssize_t length = url_decode(raw, rows[i].decoding, buffer, sizeof(buffer));

        if (!rows[i].wanted) {
            assert_int_equal(length, -EINVAL);
            continue;
        }
        assert_int_equal(length, strlen(rows[i].wanted));
        assert_string_equal(buffer, rows[i].wanted);
    }
    assert_int_equal(url_decode(url_span("a\0b", 3), URL_DECODE_PATH, (char[8]){0}, 8), -EINVAL);
}

static void decoding_respects_the_buffer_and_works_in_place(void **state)
{
    char buffer[] = "%41%42c";

    (void) state;
    assert_int_equal(url_decode(url_span("abc", 3), URL_DECODE_PATH, (char[3]){0}, 3), -ENOBUFS);
    assert_int_equal(url_decode(url_span("", 0), URL_DECODE_PATH, (char[1]){0}, 0), -ENOBUFS);
    assert_int_equal(url_decode(url_span("abc", 3), URL_DECODE_PATH, (char[4]){0}, 4), 3);
    assert_int_equal(
        url_decode(url_span(buffer, strlen(buffer)), URL_DECODE_PATH, buffer, sizeof(buffer)), 3);
    assert_string_equal(buffer, "ABc");
}

static void every_byte_survives_encoding(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    char bytes[255], back[256];

    (void) state;
    for (int i = 0; i < 255; i++)
        bytes[i] = (char) (i + 1);
    url_encode(&out, bytes, sizeof(bytes));
    assert_true(url_escapes_are_sound(url_span(out.data, out.length)));
    assert_int_equal(
        url_decode(url_span(out.data, out.length), URL_DECODE_QUERY, back, sizeof(back)), 255);
    assert_memory_equal(bytes, back, 255);

    text_clear(&out);
    url_encode(&out, "a/b c+~%", 8);
    assert_string_equal(out.data, "a%2Fb%20c%2B~%25");
    text_clear(&out);
    url_encode_path(&out, "a/b c\xff", 6);
    assert_string_equal(out.data, "a/b%20c%FF");
}

static void parameters_come_in_order(void **state)
{
    static const struct {
        const char *name;
        const char *value;
    } wanted[] = {{"a", "1"}, {"b", NULL}, {"c", ""}, {"", "x"}, {"a", "2=3"}};
    struct url_span rest = url_span("a=1&b&&c=&=x&a=2=3&", 19);
    struct url_parameter parameter;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        assert_true(url_query_next(&rest, &parameter));
        assert_span(parameter.name, wanted[i].name);
        assert_span(parameter.value, wanted[i].value);
    }
    assert_false(url_query_next(&rest, &parameter));
    assert_false(url_query_next(&rest, &parameter));
}

static void parameters_are_found_by_their_unescaped_name(void **state)
{
    static const char text[] = "a=1&b&two+words=x%20y+z&a=2&%c3%a4=u&bad=%zz&n=%00&tail=";
    struct url_span query = url_span(text, sizeof(text) - 1);
    AUTO(pool) struct pool pool = POOL_INIT;
    struct url_span raw;
    const char *value;

    (void) state;
    assert_int_equal(url_query_get(query, "a", &pool, &value), 0);
    assert_string_equal(value, "1");
    assert_int_equal(url_query_get(query, "b", &pool, &value), 0);
    assert_string_equal(value, "");
    assert_int_equal(url_query_get(query, "two words", &pool, &value), 0);
    assert_string_equal(value, "x y z");
    assert_int_equal(url_query_get(query, "\xc3\xa4", &pool, &value), 0);
    assert_string_equal(value, "u");
    assert_int_equal(url_query_get(query, "tail", &pool, &value), 0);
    assert_string_equal(value, "");
    assert_int_equal(url_query_get(query, "bad", &pool, &value), -EINVAL);
    assert_int_equal(url_query_get(query, "n", &pool, &value), -EINVAL);
    assert_int_equal(url_query_get(query, "two", &pool, &value), -ENOENT);
    assert_int_equal(url_query_get(query, "", &pool, &value), -ENOENT);
    assert_int_equal(url_query_find(url_span(NULL, 0), "a", &raw), -ENOENT);
    assert_int_equal(url_query_find(query, "two words", &raw), 0);
    assert_span(raw, "x%20y+z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absolute_urls_are_taken_apart),
        cmocka_unit_test(bad_urls_are_refused_with_the_reason),
        cmocka_unit_test(nul_bytes_are_refused_everywhere),
        cmocka_unit_test(lengths_are_capped),
        cmocka_unit_test(urls_are_written_in_one_form),
        cmocka_unit_test(origins_are_scheme_host_and_port),
        cmocka_unit_test(schemes_know_their_name_and_safety),
        cmocka_unit_test(host_headers_become_comparable),
        cmocka_unit_test(request_targets_have_three_forms),
        cmocka_unit_test(escapes_are_undone_strictly),
        cmocka_unit_test(decoding_respects_the_buffer_and_works_in_place),
        cmocka_unit_test(every_byte_survives_encoding),
        cmocka_unit_test(parameters_come_in_order),
        cmocka_unit_test(parameters_are_found_by_their_unescaped_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
