#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "load/target.h"

static void addresses_of_both_kinds_are_read(void **state)
{
    struct target target;

    (void) state;
    assert_int_equal(target_parse("127.0.0.1:8787", &target), 0);
    assert_int_equal(target.address.ss_family, AF_INET);
    assert_int_equal(ntohs(((struct sockaddr_in *) &target.address)->sin_port), 8787);
    assert_int_equal(target_parse("unix:/run/x.sock", &target), 0);
    assert_int_equal(target.address.ss_family, AF_UNIX);
    assert_string_equal(((struct sockaddr_un *) &target.address)->sun_path, "/run/x.sock");
}

static void wrong_addresses_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",          "127.0.0.1",    "127.0.0.1:",      "127.0.0.1:0", "127.0.0.1:65536",
        "1.2.3:4:5", "localhost:80", "127.0.0.1:8787x", "unix:",       ":80",
    };
    struct target target;
    char long_path[256] = "unix:";

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_int_equal(target_parse(wrong[i], &target), -EINVAL);
    memset(long_path + 5, 'a', sizeof(long_path) - 6);
    assert_int_equal(target_parse(long_path, &target), -EINVAL);
}

static void connections_take_turns_between_source_addresses(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    AUTO(close) int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct target target = {.text = "test"};

    (void) state;
    assert_int_equal(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
    memcpy(&target.address, &address, sizeof(address));
    target.address_length = sizeof(address);
    for (unsigned turn = 0; turn < 3; turn++) {
        AUTO(close) int fd = target_connect(&target, turn);

        assert_true(fd >= 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &length), 0);
        assert_int_equal(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK + turn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_both_kinds_are_read),
        cmocka_unit_test(wrong_addresses_are_refused),
        cmocka_unit_test(connections_take_turns_between_source_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
