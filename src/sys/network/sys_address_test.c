#include <arpa/inet.h>
#include <string.h>

#include "sys/network/sys_address.h"
#include "sys/sys_test.h"

static void good_addresses_come_back_as_text(void **state)
{
    static const struct {
        const char *text, *again;
        int family;
        bool local;
    } cases[] = {
        {"127.0.0.1:8787", NULL, AF_INET, true},
        {"127.255.0.3:0", NULL, AF_INET, true},
        {"0.0.0.0:65535", NULL, AF_INET, false},
        {"10.1.2.3:080", "10.1.2.3:80", AF_INET, false},
        {"[::1]:8787", NULL, AF_INET6, true},
        {"[::]:1", NULL, AF_INET6, false},
        {"[2001:DB8:0::1]:443", "[2001:db8::1]:443", AF_INET6, false},
        {"[::ffff:127.0.0.1]:1", NULL, AF_INET6, true},
        {"[::ffff:10.0.0.1]:1", NULL, AF_INET6, false},
        {"unix:/run/burrow/api.sock", NULL, AF_UNIX, true},
        {"unix:relative", NULL, AF_UNIX, true},
        {"unix:./@x", NULL, AF_UNIX, true},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[SYS_ADDRESS_TEXT_SIZE];
        struct sys_address address;

        assert_int_equal(sys_address_parse(cases[i].text, &address), 0);
        assert_int_equal(address.any.sa_family, cases[i].family);
        assert_int_equal(sys_address_is_local(&address), cases[i].local);
        sys_address_format(&address, text);
        assert_string_equal(text, cases[i].again ? cases[i].again : cases[i].text);
    }
}

static void bad_addresses_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        ":",
        "8787",
        ":8787",
        "127.0.0.1",
        "127.0.0.1:",
        "localhost:1",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1:65536",
        "1.2.3:1",
        "1.2.3.4.5:1",
        "01.2.3.4:1",
        "1.2.3.4:1 ",
        " 1.2.3.4:1",
        "::1:80",
        "[::1]",
        "[::1]:",
        "[::1]80",
        "[::1:80",
        "[::1%lo]:1",
        "[1.2.3.4]:1",
        "[]:1",
        "unix:",
        "unix:@abstract",
        "1.2.3.4:99999999999999999999",
        "[::1]:1x",
        "Unix:/x",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sys_address address = {.length = 77};

        if (sys_address_parse(cases[i], &address) != -EINVAL)
            fail_msg("'%s' was not refused", cases[i]);
        assert_int_equal(address.length, 77);
    }
}

static void a_path_must_fit_with_its_nul(void **state)
{
    char text[256] = "unix:", again[SYS_ADDRESS_TEXT_SIZE];
    size_t most = sizeof(((struct sockaddr_un *) 0)->sun_path) - 1;
    struct sys_address address;

    (void) state;
    memset(text + 5, 'p', most);
    assert_int_equal(sys_address_parse(text, &address), 0);
    sys_address_format(&address, again);
    assert_string_equal(again, text);
    text[5 + most] = 'p';
    assert_int_equal(sys_address_parse(text, &address), -ENAMETOOLONG);
}

static void names_of_the_kernel_are_readable(void **state)
{
    struct sys_address unnamed = {.length = sizeof(sa_family_t), .local = {.sun_family = AF_UNIX}};
    struct sys_address abstract = {.length = offsetof(struct sockaddr_un, sun_path) + 5,
                                   .local = {.sun_family = AF_UNIX, .sun_path = "\0a\nb\0"}};
    struct sys_address full = {.length = sizeof(full.local), .local = {.sun_family = AF_UNIX}};
    struct sys_address other = {.any = {.sa_family = AF_PACKET}};
    char text[SYS_ADDRESS_TEXT_SIZE];

    (void) state;
    sys_address_format(&unnamed, text);
    assert_string_equal(text, "unix:");
    sys_address_format(&abstract, text);
    assert_string_equal(text, "unix:@a?b?");
    memset(full.local.sun_path, 'f', sizeof(full.local.sun_path));
    sys_address_format(&full, text);
    assert_int_equal(strlen(text), 5 + sizeof(full.local.sun_path));
    full.local.sun_path[0] = '\0';
    sys_address_format(&full, text);
    assert_int_equal(strlen(text), 5 + sizeof(full.local.sun_path));
    sys_address_format(&other, text);
    assert_string_equal(text, "unknown");
    assert_false(sys_address_is_local(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses_come_back_as_text),
        cmocka_unit_test(bad_addresses_are_refused),
        cmocka_unit_test(a_path_must_fit_with_its_nul),
        cmocka_unit_test(names_of_the_kernel_are_readable),
    };

    return cmocka_run_group_tests_name("sys_address", tests, NULL, NULL);
}
