#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/agent_test.h"
#include "agent/port/port_table.h"
#include "base/auto.h"
#include "sys/network/sys_socket.h"

#define HEADING                                                                                    \
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "  \
    "inode"
#define REST " 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0"

static void a_listening_line_is_read(void **state)
{
    struct port_entry entry;

    (void) state;
    assert_int_equal(port_table_parse("   0: 00000000:1F90 00000000:0000 0A" REST, false, &entry),
                     1);
    assert_int_equal(entry.port, 8080);
    assert_int_equal(entry.inode, 4711);
    assert_int_equal(entry.ipv4.s_addr, htonl(INADDR_ANY));
    assert_false(entry.is_ipv6);
    assert_int_equal(port_table_parse("  12: 00000000000000000000000000000000:0016 "
                                      "00000000000000000000000000000000:0000 0A" REST,
                                      true, &entry),
                     1);
    assert_int_equal(entry.port, 22);
    assert_memory_equal(&entry.ipv6, &in6addr_any, sizeof(in6addr_any));
}

static void connections_and_headings_are_told_apart(void **state)
{
    static const char *const wrong[] = {
        "",
        " ",
        HEADING,
        "   0: 00000000:1F90",
        "   0: 0000000:1F900 00000000:0000 0A" REST,
        "   0: 00000000:1F9x 00000000:0000 0A" REST,
        "   0: 00000000:1F90 00000000:0000 XX" REST,
        "   0: 00000000:1F90 00000000:0000 0A 0:0 00:0 0 0 0 x",
    };
    struct port_entry entry;

    (void) state;
    assert_int_equal(port_table_parse("   0: 0100007F:1F90 0100007F:A000 01" REST, false, &entry),
                     0);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_int_equal(port_table_parse(wrong[i], false, &entry), -EINVAL);
}

static void only_links_to_sockets_have_an_inode(void **state)
{
    static const struct {
        const char *text;
        uint64_t inode;
    } rows[] = {
        {"socket:[123]", 123}, {"socket:[]", 0},
        {"socket:[12", 0},     {"pipe:[123]", 0},
        {"/dev/null", 0},      {"", 0},
        {"socket:[1x]", 0},    {"socket:[99999999999999999999]", 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(port_table_parse_link(rows[i].text, strlen(rows[i].text)), rows[i].inode);
}

/* Whether the table has the listener at this address. */
static bool has(const struct port_table *table, const struct sys_address *address)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct port_entry *entry = &table->entries[i];

        if (entry->is_ipv6 == (address->any.sa_family == AF_INET6) &&
            entry->port == ntohs(address->ipv4.sin_port) &&
            (entry->is_ipv6
                 ? memcmp(&entry->ipv6, &address->ipv6.sin6_addr, sizeof(entry->ipv6)) == 0
                 : entry->ipv4.s_addr == address->ipv4.sin_addr.s_addr))
            return true;
    }
    return false;
}

static void real_listeners_are_found(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:0"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(addresses); i++) {
        AUTO(close) int fd = -EBADF;
        struct port_table table;
        struct sys_address address;

        assert_int_equal(sys_address_parse(addresses[i], &address), 0);
        fd = sys_socket_listen(&address, 1, 0);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
            continue; /* this machine has no IPv6 */
        assert_true(fd >= 0);
        assert_int_equal(sys_socket_local_address(fd, &address), 0);
        assert_int_equal(port_table_read(&table), 0);
        assert_true(has(&table, &address));
        port_table_done(&table);
        fd = fd_close(fd);
        assert_int_equal(port_table_read(&table), 0);
        assert_false(has(&table, &address));
        port_table_done(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listening_line_is_read),
        cmocka_unit_test(connections_and_headings_are_told_apart),
        cmocka_unit_test(only_links_to_sockets_have_an_inode),
        cmocka_unit_test(real_listeners_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
