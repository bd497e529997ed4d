#include "net/net_testing.h"
#include "net/outbound/dialer.h"
#include "sys/network/sys_socket.h"

struct dial_bench {
    struct loop loop;
    struct resolver *resolver;
    struct address_rules rules;
    int listener;
    uint16_t port;
    /* Of the last dial. */
    bool is_done;
    int fd;
    struct error error;
    size_t answers, found; /* of a lookup */
    bool is_closed;
};

static void done(void *context, int fd, const struct error *err)
{
    struct dial_bench *bench = context;

    assert_false(bench->is_done);
    bench->is_done = true;
    bench->fd = fd;
    bench->error = err ? *err : (struct error) ERROR_INIT;
    assert_int_equal(fd >= 0, err == NULL);
}

static void closed(void *context)
{
    ((struct dial_bench *) context)->is_closed = true;
}

static int setup(void **state)
{
    struct dial_bench *bench = test_calloc(1, sizeof(*bench));
    struct sys_address address;

    assert_int_equal(loop_init(&bench->loop, NULL), 0);
    bench->resolver = resolver_new(&bench->loop);
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    bench->listener = sys_socket_listen(&address, 16, 0);
    assert_int_equal(sys_socket_local_address(bench->listener, &address), 0);
    bench->port = ntohs(address.ipv4.sin_port);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct dial_bench *bench = *state;

    (void) fd_close(bench->listener);
    resolver_close(bench->resolver, closed, bench);
    TURN_UNTIL(&bench->loop, bench->is_closed);
    loop_run(&bench->loop);
    loop_done(&bench->loop);
    test_free(bench);
    return 0;
}

static struct dial *dial_to(struct dial_bench *bench, const char *host, bool is_anywhere)
{
    const struct dial_request request = {.host = host,
                                         .port = bench->port,
                                         .rules = is_anywhere ? NULL : &bench->rules,
                                         .asker = bench,
                                         .total_ms = 10000,
                                         .done = done,
                                         .context = bench};

    bench->is_done = false;
    return dial_start(&bench->loop, bench->resolver, &request);
}

static void expect(struct dial_bench *bench, const char *host, bool is_anywhere, enum err_code code)
{
    (void) dial_to(bench, host, is_anywhere);
    assert_false(bench->is_done); /* never from inside the call */
    TURN_UNTIL(&bench->loop, bench->is_done);
    if (bench->error.code != code)
        fail_msg("%s: %s", host, bench->error.message);
    bench->fd = fd_close(bench->fd);
}

static void names_and_addresses_are_connected_to(void **state)
{
    expect(*state, "localhost", true, ERR_NONE);
    expect(*state, "127.0.0.1", true, ERR_NONE);
}

static void what_leads_inside_says_the_same_as_what_leads_nowhere(void **state)
{
    static const char *const hosts[] = {"localhost",       "127.0.0.1",       "::1",
                                        "169.254.169.254", "nothing.invalid", "0.0.0.0",
                                        "10.0.0.1"};
    struct dial_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(hosts); i++) {
        expect(bench, hosts[i], false, ERR_FORBIDDEN);
        assert_string_equal(bench->error.message, "the host has no public address");
    }
    expect(bench, "nothing.invalid", true, ERR_UPSTREAM);
}

static void this_machine_is_not_in_any_range(void **state)
{
    struct dial_bench *bench = *state;

    assert_int_equal(address_rules_allow(&bench->rules, "127.0.0.0/8", NULL), 0);
    expect(bench, "127.0.0.1", false, ERR_FORBIDDEN);
    assert_int_equal(address_rules_allow(&bench->rules, "127.0.0.1", NULL), 0);
    expect(bench, "127.0.0.1", false, ERR_NONE);
}

static void nobody_there_is_told_as_such(void **state)
{
    struct dial_bench *bench = *state;

    bench->listener = fd_close(bench->listener);
    expect(bench, "127.0.0.1", true, ERR_UPSTREAM);
    assert_non_null(strstr(bench->error.message, "refused"));
}

static void one_that_is_cancelled_says_nothing(void **state)
{
    struct dial_bench *bench = *state;

    dial_cancel(dial_to(bench, "localhost", true));
    dial_cancel(dial_to(bench, "127.0.0.1", true));
    loop_run(&bench->loop);
    assert_false(bench->is_done);
}

static void found(void *context, const struct sys_address *addresses, size_t count)
{
    struct dial_bench *bench = context;

    (void) addresses;
    bench->answers++;
    bench->found += count > 0;
}

static void many_lookups_are_all_answered(void **state)
{
    struct dial_bench *bench = *state;
    struct resolver_query *unwanted;

    for (size_t i = 0; i < 100; i++)
        (void) resolver_ask(bench->resolver, &bench[i % 7], "localhost", found, bench);
    unwanted = resolver_ask(bench->resolver, bench, "localhost", found, bench);
    resolver_forget(unwanted);
    TURN_UNTIL(&bench->loop, bench->answers == 100);
    assert_int_equal(bench->found, 100);
}

#define DIAL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIAL_TEST(names_and_addresses_are_connected_to),
        DIAL_TEST(what_leads_inside_says_the_same_as_what_leads_nowhere),
        DIAL_TEST(this_machine_is_not_in_any_range),
        DIAL_TEST(nobody_there_is_told_as_such),
        DIAL_TEST(one_that_is_cancelled_says_nothing),
        DIAL_TEST(many_lookups_are_all_answered),
    };

    return cmocka_run_group_tests_name("dialer", tests, NULL, NULL);
}
