#include "api/access/client_address.h"
#include "api/http/request_testing.h"

static struct client_address found;

static const char *find(const char *trusted, const char *peer, const char *const *headers)
{
    struct trusted_proxies proxies;
    struct asked asked;

    assert_int_equal(trusted_proxies_read(&proxies, trusted, NULL), 0);
    asked_begin(&asked, "GET", headers);
    asked.request.peer = peer;
    asked.request.is_local = strncmp(peer, "unix", 4) == 0;
    client_address_find(&proxies, &asked.request, &found);
    asked_end(&asked);
    return found.text;
}

static void the_peer_is_the_client(void **state)
{
    (void) state;
    assert_string_equal(find("", "192.0.2.7:4711", NULL), "192.0.2.7");
    assert_string_equal(find("", "[2001:db8::1]:80", NULL), "2001:db8::1");
    assert_string_equal(find("", "[::ffff:192.0.2.7]:80", NULL), "192.0.2.7");
    assert_string_equal(find("", "unix:", NULL), "unix");
}

static void strangers_cannot_forward(void **state)
{
    const char *const *headers = ASKED("X-Forwarded-For", "10.9.9.9", "X-Forwarded-Proto", "https");

    (void) state;
    assert_string_equal(find("", "192.0.2.7:1", headers), "192.0.2.7");
    assert_false(found.is_secure);
    assert_string_equal(find("10.0.0.0/8", "192.0.2.7:1", headers), "192.0.2.7");
    assert_string_equal(find("10.0.0.0/8", "unix:", headers), "unix");
}

static void a_trusted_proxy_is_believed_up_to_the_first_stranger(void **state)
{
    (void) state;
    assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-For", "192.0.2.7")),
                        "192.0.2.7");
    /* What the client itself wrote stands before what our proxies add. */
    assert_string_equal(
        find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-For", "1.1.1.1, 192.0.2.7, 10.0.0.2")),
        "192.0.2.7");
    assert_string_equal(
        find("10.0.0.0/8", "10.0.0.1:1",
             ASKED("X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "192.0.2.7:99")),
        "192.0.2.7");
    assert_string_equal(
        find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-For", "[2001:db8::1]:80")),
        "2001:db8::1");
    assert_string_equal(find("unix", "unix:", ASKED("X-Forwarded-For", "1.1.1.1,192.0.2.7")),
                        "192.0.2.7");
    assert_string_equal(
        find("unix,10.0.0.0/8", "unix:", ASKED("X-Forwarded-For", "192.0.2.7, 10.0.0.4")),
        "192.0.2.7");
    (void) find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-Proto", "https"));
    assert_true(found.is_secure);
}

static void no_length_hides_what_a_proxy_wrote(void **state)
{
    char list[8192];

    (void) state;
    for (size_t length = 0; length < sizeof(list) - 16; length += 7) {
        memset(list, 'a', length);
        memcpy(list + length, ", 192.0.2.7", sizeof(", 192.0.2.7"));
        assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-For", list)),
                            "192.0.2.7");
        assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1",
                                 ASKED("X-Forwarded-For", list, "X-Forwarded-For", "192.0.2.8")),
                            "192.0.2.8");
    }
}

static void nonsense_in_the_list_ends_it(void **state)
{
    static const char *const lists[] = {
        "",          ",", "unknown", "1.1.1.1, _hidden",    "1.1.1.1,",
        "999.1.1.1", "]", "[",       "1.1.1.1, 10.0.0.2, x"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        const char *address = find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-For", lists[i]));

        assert_true(strncmp(address, "10.0.0.", 7) == 0);
    }
}

/* Whoever writes much before what our proxy adds hides nothing with it. */
static void of_a_list_that_is_too_long_the_end_counts(void **state)
{
    char list[5000];
    size_t length = 0;

    (void) state;
    while (length < 4000)
        length += (size_t) snprintf(list + length, sizeof(list) - length, "1.1.1.1, ");
    (void) snprintf(list + length, sizeof(list) - length, "192.0.2.7");
    assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1", ASKED("X-Forwarded-For", list)),
                        "192.0.2.7");
    assert_string_equal(find("unix", "unix:", ASKED("X-Forwarded-For", list)), "192.0.2.7");
    assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1",
                             ASKED("X-Forwarded-For", "2.2.2.2", "X-Forwarded-For", list)),
                        "192.0.2.7");
    assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1",
                             ASKED("X-Forwarded-For", list, "X-Forwarded-For", "192.0.2.8")),
                        "192.0.2.8");
    memset(list, 'x', sizeof(list) - 1);
    list[sizeof(list) - 1] = '\0';
    assert_string_equal(find("10.0.0.0/8", "10.0.0.1:1",
                             ASKED("X-Forwarded-For", "2.2.2.2", "X-Forwarded-For", list)),
                        "10.0.0.1");
}

static void tries_of_one_ipv6_network_count_together(void **state)
{
    char first[CLIENT_ADDRESS_SIZE];

    (void) state;
    (void) find("", "[2001:db8:1:2:3::1]:80", NULL);
    memcpy(first, found.network, sizeof(first));
    (void) find("", "[2001:db8:1:2:4::9]:80", NULL);
    assert_string_equal(first, found.network);
    assert_true(client_address_is_of(found.text, first));
    (void) find("", "[2001:db8:1:3:4::9]:80", NULL);
    assert_string_not_equal(first, found.network);
    assert_false(client_address_is_of(found.text, first));
    assert_true(client_address_is_of("192.0.2.7", "192.0.2.7"));
    assert_true(client_address_is_of("unix", "unix"));
    assert_false(client_address_is_of("", "unix"));
    assert_false(client_address_is_of("nonsense", "unix"));
    (void) find("", "192.0.2.7:1", NULL);
    assert_string_equal(found.network, "192.0.2.7");
}

static void malformed_proxies_are_refused(void **state)
{
    static const char *const wrong[] = {"10.0.0.1/8", "proxy.example", "a,,b", "10.0.0.0/33"};
    struct trusted_proxies proxies;
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_int_equal(trusted_proxies_read(&proxies, wrong[i], &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_is_the_client),
        cmocka_unit_test(strangers_cannot_forward),
        cmocka_unit_test(a_trusted_proxy_is_believed_up_to_the_first_stranger),
        cmocka_unit_test(no_length_hides_what_a_proxy_wrote),
        cmocka_unit_test(nonsense_in_the_list_ends_it),
        cmocka_unit_test(of_a_list_that_is_too_long_the_end_counts),
        cmocka_unit_test(tries_of_one_ipv6_network_count_together),
        cmocka_unit_test(malformed_proxies_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
