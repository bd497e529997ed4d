#include <string.h>

#include "launcher/network/router_resolver.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

static void check(const char *text, size_t count, const char *first)
{
    struct router_resolvers resolvers = router_resolver_parse(text);
    char address[INET_ADDRSTRLEN];

    assert_int_equal(resolvers.count, count);
    assert_int_equal(resolvers.reason == NULL, count > 0);
    if (count == 0)
        return;
    assert_non_null(inet_ntop(AF_INET, &resolvers.addresses[0], address, sizeof(address)));
    assert_string_equal(address, first);
}

static void name_servers_are_read_in_their_order(void **state)
{
    (void) state;
    check("nameserver 192.0.2.53\n", 1, "192.0.2.53");
    check("# nameserver 192.0.2.1\n; x\n\nsearch example.org\n \tnameserver\t192.0.2.53  \n", 1,
          "192.0.2.53");
    check("nameserver 192.0.2.53", 1, "192.0.2.53"); /* no newline at the end */
    check("nameserver 192.0.2.53 # ours\r\nnameserver 192.0.2.54\r\n", 2, "192.0.2.53");
    check("nameserver 127.0.0.1\nnameserver ::1\nnameserver 10.0.0.1\n", 1, "10.0.0.1");
    check("nameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\nnameserver 1.0.0.4\n", 3,
          "1.0.0.1");
}

static void what_is_no_name_server_is_left_out(void **state)
{
    (void) state;
    check("", 0, NULL);
    check("nameserver\n192.0.2.53\n", 0, NULL);
    check("nameservers 192.0.2.53\n", 0, NULL);
    check("nameserver 192.0.2\nnameserver 192.0.2.256\nnameserver 0.0.0.0\n", 0, NULL);
    check("options nameserver 192.0.2.53\n", 0, NULL);
    check("nameserver "
          "11111111111111111111111111111111111111111111111111111111111111111111111111111111\n",
          0, NULL);
}

static void the_reason_says_what_is_there_instead(void **state)
{
    (void) state;
    assert_non_null(strstr(router_resolver_parse("nameserver 127.0.0.53\n").reason, "loopback"));
    assert_non_null(strstr(router_resolver_parse("nameserver fe80::1\n").reason, "IPv6"));
    assert_non_null(strstr(router_resolver_parse("").reason, "names no name server"));
}

static void write_text(const char *folder, const char *name, const char *text,
                       char ret_path[static 128])
{
    (void) snprintf(ret_path, 128, "%s/%s", folder, name);
    assert_int_equal(sys_file_replace(AT_FDCWD, ret_path, text, strlen(text), 0600), 0);
}

static void the_fallback_stands_in_for_loopback_only(void **state)
{
    char folder[SCRATCH_SIZE], local[128], behind[128], remote[128], missing[128];

    (void) state;
    make_scratch(folder);
    write_text(folder, "local", "nameserver 127.0.0.53\n", local);
    write_text(folder, "behind", "nameserver 192.0.2.1\n", behind);
    write_text(folder, "remote", "nameserver 192.0.2.2\n", remote);
    (void) snprintf(missing, sizeof(missing), "%s/missing", folder);
    assert_int_equal(router_resolver_read(local, behind).addresses[0].s_addr, htonl(0xc0000201));
    assert_int_equal(router_resolver_read(remote, behind).addresses[0].s_addr, htonl(0xc0000202));
    assert_int_equal(router_resolver_read(missing, behind).count, 0);
    assert_non_null(strstr(router_resolver_read(local, missing).reason, "loopback"));
    assert_non_null(strstr(router_resolver_read(local, local).reason, "loopback"));
    remove_scratch(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_servers_are_read_in_their_order),
        cmocka_unit_test(what_is_no_name_server_is_left_out),
        cmocka_unit_test(the_reason_says_what_is_there_instead),
        cmocka_unit_test(the_fallback_stands_in_for_loopback_only),
    };

    return cmocka_run_group_tests_name("router_resolver", tests, NULL, NULL);
}
