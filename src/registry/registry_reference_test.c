#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "registry/registry_reference.h"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HUB    "registry-1.docker.io"

static void names_are_read_as_people_write_them(void **state)
{
    static const struct {
        const char *text, *authority, *path, *tag, *digest;
        bool is_plain;
    } rows[] = {
        {"debian", HUB, "library/debian", "latest", "", false},
        {"debian:12", HUB, "library/debian", "12", "", false},
        {"docker.io/debian", HUB, "library/debian", "latest", "", false},
        {"index.docker.io/library/debian:12", HUB, "library/debian", "12", "", false},
        {"someone/tool:v1.2-x_y", HUB, "someone/tool", "v1.2-x_y", "", false},
        {"ghcr.io/org/sub/my__tool.x--y", "ghcr.io", "org/sub/my__tool.x--y", "latest", "", false},
        {"localhost/tool", "localhost", "tool", "latest", "", true},
        {"localhost:5000/tool:1", "localhost:5000", "tool", "1", "", true},
        {"127.0.0.1:5000/a/b@sha256:" DIGEST, "127.0.0.1:5000", "a/b", "latest", DIGEST, true},
        {"[::1]:5000/tool", "[::1]:5000", "tool", "latest", "", true},
        {"[2001:db8::1]/tool", "[2001:db8::1]", "tool", "latest", "", false},
        {"host:443/tool:1@sha256:" DIGEST, "host:443", "tool", "1", DIGEST, false},
        {"https://127.0.0.1/tool", "127.0.0.1", "tool", "latest", "", false},
        {"http://registry/tool", "registry", "tool", "latest", "", true},
        {"https://docker.io/debian", HUB, "library/debian", "latest", "", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct registry_reference reference;
        struct error err = ERROR_INIT;

        if (registry_reference_parse(rows[i].text, &reference, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_string_equal(reference.authority, rows[i].authority);
        assert_string_equal(reference.path, rows[i].path);
        assert_string_equal(reference.tag, rows[i].tag);
        assert_string_equal(reference.digest, rows[i].digest);
        assert_int_equal(reference.is_plain, rows[i].is_plain);
    }
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "Debian",
        "debian:",
        "debian:-x",
        "debian:a b",
        "debian@",
        "debian@sha256:123",
        ("debian@md5:" DIGEST),
        "debian@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
        "/debian",
        "a//b",
        "a/",
        "a/../b",
        "a/.b",
        "a/b-",
        "a/b..c",
        "a/b___c",
        "a/b?c=d",
        "a/b#c",
        "a/%2e%2e/b",
        "user@host.example/tool",
        "host.example:99999/tool",
        "host.example:x/tool",
        "ho st.example/tool",
        "https://",
        "https://tool",
        "https:///tool",
        "ftp://host.example/tool",
        "host.example/tool\n",
    };
    char longest[REGISTRY_REFERENCE_MAX + 2];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct registry_reference reference;
        struct error err = ERROR_INIT;

        if (registry_reference_parse(rows[i], &reference, &err) == 0)
            fail_msg("'%s' is taken", rows[i]);
        assert_int_equal(err.code, ERR_INVALID);
    }
    for (size_t length = REGISTRY_TAG_MAX; length < sizeof(longest); length++) {
        struct registry_reference reference;

        memset(longest, 'a', length);
        longest[length] = '\0';
        assert_int_equal(registry_reference_parse(longest, &reference, NULL) == 0,
                         length + strlen("library/") <= REGISTRY_PATH_MAX);
    }
}

static void this_machine_is_known_by_its_names(void **state)
{
    static const struct {
        const char *text;
        bool is_loopback;
    } rows[] = {
        {"localhost", true},          {"LocalHost:80", true},
        {"127.9.9.9", true},          {"[::1]:1", true},
        {"localhost.example", false}, {"127.example", false},
        {"128.0.0.1", false},         {"[::2]", false},
        {"10.0.0.1", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct url_host host;

        assert_int_equal(url_host_parse(rows[i].text, strlen(rows[i].text), &host, NULL), 0);
        assert_int_equal(registry_host_is_loopback(&host), rows[i].is_loopback);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_as_people_write_them),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(this_machine_is_known_by_its_names),
    };

    return cmocka_run_group_tests_name("registry_reference", tests, NULL, NULL);
}
