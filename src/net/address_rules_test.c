#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>
/* After the headers it needs. */
#include <cmocka.h>

/* The table is static there. */
#include "net/address_rules.c"

/* Judge an address written as text. */
static int judge(const struct address_rules *rules, const char *text, struct error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (strchr(text, ':')) {
        assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
        return address_rules_check(rules, (struct sockaddr *) &v6, sizeof(v6), err);
    }
    assert_int_equal(inet_pton(AF_INET, text, &v4.sin_addr), 1);
    return address_rules_check(rules, (struct sockaddr *) &v4, sizeof(v4), err);
}

/* Every range of the table: its first and last address are refused for its reason (NULL: it is
 * judged by what it carries), and the neighbours on both sides by another row (NULL: allowed). */
static const struct {
    const char *first;
    const char *last;
    const char *reason;
    const char *below;        /* the address before; NULL: there is none */
    const char *below_reason; /* NULL: allowed */
    const char *above;
    const char *above_reason;
} rows[] = {
    {"0.0.0.0", "0.0.0.0", "unspecified", NULL, NULL, "0.0.0.1", "this network"},
    {"0.0.0.1", "0.255.255.255", "this network", "0.0.0.0", "unspecified", "1.0.0.0", NULL},
    {"10.0.0.0", "10.255.255.255", "private", "9.255.255.255", NULL, "11.0.0.0", NULL},
    {"100.64.0.0", "100.127.255.255", "CGNAT", "100.63.255.255", NULL, "100.128.0.0", NULL},
    {"100.100.100.200", "100.100.100.200", "metadata", "100.100.100.199", "CGNAT",
     "100.100.100.201", "CGNAT"},
    {"127.0.0.0", "127.255.255.255", "loopback", "126.255.255.255", NULL, "128.0.0.0", NULL},
    {"168.63.129.16", "168.63.129.16", "metadata", "168.63.129.15", NULL, "168.63.129.17", NULL},
    {"169.254.169.254", "169.254.169.254", "link-local (cloud metadata)", "169.254.169.253",
     "link-local", "169.254.169.255", "link-local"},
    {"169.254.0.0", "169.254.255.255", "link-local", "169.253.255.255", NULL, "169.255.0.0", NULL},
    {"172.16.0.0", "172.31.255.255", "private", "172.15.255.255", NULL, "172.32.0.0", NULL},
    {"192.0.0.0", "192.0.0.255", "protocols", "191.255.255.255", NULL, "192.0.1.0", NULL},
    {"192.0.0.192", "192.0.0.192", "metadata", "192.0.0.191", "protocols", "192.0.0.193",
     "protocols"},
    {"192.0.2.0", "192.0.2.255", "documentation", "192.0.1.255", NULL, "192.0.3.0", NULL},
    {"192.88.99.0", "192.88.99.255", "6to4", "192.88.98.255", NULL, "192.88.100.0", NULL},
    {"192.168.0.0", "192.168.255.255", "private", "192.167.255.255", NULL, "192.169.0.0", NULL},
    {"198.18.0.0", "198.19.255.255", "benchmarks", "198.17.255.255", NULL, "198.20.0.0", NULL},
    {"198.51.100.0", "198.51.100.255", "documentation", "198.51.99.255", NULL, "198.51.101.0",
     NULL},
    {"203.0.113.0", "203.0.113.255", "documentation", "203.0.112.255", NULL, "203.0.114.0", NULL},
    {"224.0.0.0", "239.255.255.255", "multicast", "223.255.255.255", NULL, "240.0.0.0", "reserved"},
    {"240.0.0.0", "255.255.255.254", "reserved", "239.255.255.255", "multicast", "255.255.255.255",
     "broadcast"},
    {"255.255.255.255", "255.255.255.255", "broadcast", "255.255.255.254", "reserved", NULL, NULL},

    {"::", "::", "unspecified", NULL, NULL, "::1", "loopback"},
    {"::1", "::1", "loopback", "::", "unspecified", "::2", "IPv4-compatible"},
    {"::2", "::ffff:ffff", "IPv4-compatible", "::1", "loopback", "0:0:0:0:0:1::", "reserved"},
    {"::ffff:0.0.0.0", "::ffff:255.255.255.255", "IPv4-mapped", "::fffe:ffff:ffff", "reserved",
     "::1:0:0:0", "reserved"},
    {"::ffff:0:0:0", "::ffff:0:ffff:ffff", "IPv4-translated", "::fffe:ffff:ffff:ffff", "reserved",
     "::ffff:1:0:0", "reserved"},
    {"64:ff9b::", "64:ff9b::ffff:ffff", NULL, "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "reserved",
     "64:ff9b::1:0:0", "reserved"},
    {"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "NAT64",
     "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "reserved", "64:ff9b:2::", "reserved"},
    {"100::", "100::ffff:ffff:ffff:ffff", "discarded", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
     "reserved", "100:0:0:1::", "reserved"},
    {"::1:0:0:0:0", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "::ffff:ffff:ffff:ffff",
     "reserved", "2000::", NULL},
    {"2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", NULL,
     "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:1::", "protocols"},
    {"2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmarks",
     "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "protocols", "2001:2:1::", "protocols"},
    {"2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHID",
     "2001:f:ffff:ffff:ffff:ffff:ffff:ffff", "protocols", "2001:20::", "ORCHID"},
    {"2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHID",
     "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHID", "2001:30::", "protocols"},
    {"2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "protocols",
     "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:200::", NULL},
    {"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation",
     "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:db9::", NULL},
    {"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL,
     "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2003::", NULL},
    {"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation",
     "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "3fff:1000::", NULL},
    {"4000::", "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved",
     "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "8000::", "reserved"},
    {"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "segment",
     "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "5f01::", "reserved"},
    {"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local",
     "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "fe00::", "reserved"},
    {"fd00:ec2::254", "fd00:ec2::254", "metadata", "fd00:ec2::253", "unique local", "fd00:ec2::255",
     "unique local"},
    {"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local",
     "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "fec0::", "site-local"},
    {"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local",
     "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local", "ff00::", "multicast"},
    {"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast",
     "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local", NULL, NULL},
    {"8000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved",
     "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "fc00::", "unique local"},
};

static void assert_judged(const char *text, const char *reason)
{
    const struct address_rules rules = {.count = 0};
    struct error err = ERROR_INIT;
    int result = judge(&rules, text, &err);

    if (!reason) {
        if (result != 0)
            fail_msg("%s should be allowed: %s", text, err.message);
        return;
    }
    if (result == 0)
        fail_msg("%s should be refused: %s", text, reason);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    if (strncmp(err.message, text, strlen(text)) != 0 && !strchr(text, ':'))
        fail_msg("'%s' does not begin with %s", err.message, text);
    if (!strstr(err.message, reason))
        fail_msg("%s: '%s' does not say '%s'", text, err.message, reason);
}

static void every_range_ends_where_it_should(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].reason) {
            assert_judged(rows[i].first, rows[i].reason);
            assert_judged(rows[i].last, rows[i].reason);
        }
        if (rows[i].below)
            assert_judged(rows[i].below, rows[i].below_reason);
        if (rows[i].above)
            assert_judged(rows[i].above, rows[i].above_reason);
    }
}

static void every_row_of_the_table_is_tested_and_reachable(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(special_ranges); i++) {
        bool seen = false;

        assert_true(ends_with_zeros(&special_ranges[i].range));
        for (size_t j = 0; j < ARRAY_COUNT(rows); j++) {
            uint8_t bytes[16] = {0};
            sa_family_t family = strchr(rows[j].first, ':') ? AF_INET6 : AF_INET;

            assert_int_equal(inet_pton(family, rows[j].first, bytes), 1);
            seen |= find_range(family, bytes) == &special_ranges[i];
        }
        if (!seen)
            fail_msg("row %zu (%s) of the table is shadowed or not tested", i,
                     special_ranges[i].reason ? special_ranges[i].reason : "embedding");
    }
}

static void public_addresses_are_allowed(void **state)
{
    static const char *const addresses[] = {
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001::200e",
        "2001:4860:4860::8888",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(addresses); i++)
        assert_judged(addresses[i], NULL);
}

static void hidden_ipv4_addresses_are_found(void **state)
{
    static const struct {
        const char *address;
        const char *reason; /* NULL: allowed */
    } hidden[] = {
        {"64:ff9b::7f00:1", "127.0.0.1, which is loopback"},
        {"64:ff9b::169.254.169.254", "169.254.169.254, which is link-local (cloud metadata)"},
        {"64:ff9b::8.8.8.8", NULL},
        {"2002:0a00:0001::", "10.0.0.1, which is private"},
        {"2002:a9fe:a9fe::1", "metadata"},
        {"2002:0808:0808::1", NULL},
        /* Teredo: server 65.54.227.120 (public), client flipped. */
        {"2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45, which is for documentation"},
        {"2001:0:4136:e378:8000:63bf:f7f7:f7f7", NULL},
        {"2001:0:7f00:1:8000:63bf:f7f7:f7f7", "127.0.0.1, which is loopback"},
        {"::ffff:8.8.8.8", "IPv4-mapped"},
        {"::127.0.0.1", "IPv4-compatible"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(hidden); i++)
        assert_judged(hidden[i].address, hidden[i].reason);
}

static void the_message_names_address_and_reason(void **state)
{
    const struct address_rules rules = {.count = 0};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(judge(&rules, "169.254.169.254", &err), -1);
    assert_string_equal(err.message, "169.254.169.254 is link-local (cloud metadata)");
}

static void allowed_ranges_win(void **state)
{
    struct address_rules rules = {.count = 0};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(address_rules_allow(&rules, "127.0.0.0/30", &err), 0);
    assert_int_equal(address_rules_allow(&rules, "fd00::/9", &err), 0);
    assert_int_equal(address_rules_allow(&rules, "10.1.2.3", &err), 0);
    assert_int_equal(judge(&rules, "127.0.0.3", &err), 0);
    assert_int_equal(judge(&rules, "127.0.0.4", &err), -1);
    assert_int_equal(judge(&rules, "fd7f:ffff::1", &err), 0);
    assert_int_equal(judge(&rules, "fd80::1", &err), -1);
    assert_int_equal(judge(&rules, "10.1.2.3", &err), 0);
    assert_int_equal(judge(&rules, "10.1.2.2", &err), -1);
    /* Allowing 127/30 does not open the forms that hide it. */
    assert_int_equal(judge(&rules, "::ffff:127.0.0.1", &err), -1);
    assert_int_equal(judge(&rules, "64:ff9b::127.0.0.1", &err), -1);
    assert_int_equal(address_rules_allow(&rules, "::ffff:127.0.0.0/126", &err), 0);
    assert_int_equal(judge(&rules, "::ffff:127.0.0.1", &err), 0);
    assert_int_equal(address_rules_allow(&rules, "0.0.0.0/0", &err), 0);
    assert_int_equal(judge(&rules, "169.254.169.254", &err), 0);
}

static void the_list_of_allowed_ranges_is_bounded(void **state)
{
    struct address_rules rules = {.count = 0};
    struct error err = ERROR_INIT;

    (void) state;
    for (int i = 0; i < ADDRESS_RULES_ALLOWED_MAX; i++)
        assert_int_equal(address_rules_allow(&rules, "10.0.0.0/8", &err), 0);
    assert_int_equal(address_rules_allow(&rules, "10.0.0.0/8", &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    rules.count = 0;
    assert_int_equal(address_rules_allow(&rules, "all of it", &err), -1);
    assert_non_null(strstr(err.message, "'all of it'"));
    assert_int_equal(rules.count, 0);
}

static void ranges_are_read_strictly(void **state)
{
    static const char *const good[] = {"0.0.0.0/0", "10.0.0.0/8",  "1.2.3.4",   "1.2.3.4/32",
                                       "::/0",      "2001:db8::1", "fe80::/10", "::1/128"};
    static const char *const bad[] = {"",
                                      "/",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "10/8",
                                      "10.0.0.1/8",
                                      "10.0.0.0/8 ",
                                      " 10.0.0.0/8",
                                      "10.0.0.0/08",
                                      "10.0.0.0/+8",
                                      "10.0.0.0/-1",
                                      "::/129",
                                      "fe80::1/10",
                                      "a.b.c.d/8",
                                      "10.0.0.0/8/8",
                                      "::%lo/10",
                                      "10.0.0.0/4294967304",
                                      "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa/8"};
    struct cidr cidr = {.bits = 99};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_int_equal(cidr_parse(good[i], &cidr), 0);
    cidr.bits = 99;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (cidr_parse(bad[i], &cidr) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(cidr.bits, 99);
    }
}

static void other_kinds_of_address_need_permission(void **state)
{
    const struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    const struct sockaddr other = {.sa_family = AF_PACKET};
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(0x08080808)}};
    struct address_rules rules = {.count = 0};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(
        address_rules_check(&rules, (const struct sockaddr *) &local, sizeof(local), &err), -1);
    assert_non_null(strstr(err.message, "unix"));
    assert_int_equal(address_rules_check(&rules, &other, sizeof(other), &err), -1);
    assert_int_equal(address_rules_check(&rules, (const struct sockaddr *) &v4, sizeof(v4), NULL),
                     0);
    /* Cut short: nothing is read past the given length. */
    assert_int_equal(address_rules_check(&rules, (const struct sockaddr *) &v4, 4, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_ends_where_it_should),
        cmocka_unit_test(every_row_of_the_table_is_tested_and_reachable),
        cmocka_unit_test(public_addresses_are_allowed),
        cmocka_unit_test(hidden_ipv4_addresses_are_found),
        cmocka_unit_test(the_message_names_address_and_reason),
        cmocka_unit_test(allowed_ranges_win),
        cmocka_unit_test(the_list_of_allowed_ranges_is_bounded),
        cmocka_unit_test(ranges_are_read_strictly),
        cmocka_unit_test(other_kinds_of_address_need_permission),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
