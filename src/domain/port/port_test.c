#include "domain/domain_testing.h"
#include "domain/port/port.h"

struct told_port {
    int times;
    bool failed;
    struct error failure;
    char token[PORT_TOKEN_SIZE];
};

static void on_port(void *context, const struct error *failure, struct port *port)
{
    struct told_port *told = context;

    told->times++;
    told->failed = failure != NULL;
    if (failure)
        told->failure = *failure;
    else
        (void) snprintf(told->token, sizeof(told->token), "%s", port->token);
}

static struct told_port ask_expose(struct world *world, struct sandbox *sandbox,
                                   const struct port_spec *spec)
{
    struct told_port told = {.times = 0};

    port_expose(world->domain, &world->caller, sandbox, spec, on_port, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static struct told_port ask_close(struct world *world, struct sandbox *sandbox, uint16_t number)
{
    struct told_port told = {.times = 0};

    port_unexpose(world->domain, &world->caller, sandbox, number, on_port, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static void expose(struct world *world, struct sandbox *sandbox, uint16_t number)
{
    struct told_port told = ask_expose(world, sandbox, &(struct port_spec){.number = number});

    if (told.failed)
        fail_msg("%s", told.failure.message);
}

struct rows_count {
    int times;
    size_t count;
};

static void on_count(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct rows_count *count = context;

    assert_null(failure);
    count->times++;
    count->count = rows->count;
}

/* Of all sandboxes. */
static size_t rows_kept(struct world *world)
{
    struct rows_count count = {.times = 0};
    const struct store_query query = {
        .kind = STORE_PORT, .order = STORE_PORT_SANDBOX, .limit = STORE_ROWS_MAX};

    store_find(world->store, &query, on_count, &count);
    TURN_UNTIL(&world->loop, count.times);
    return count.count;
}

/* --- tokens ---------------------------------------------------------------------------------- */

static void a_token_opens_one_port_of_one_sandbox(void **state)
{
    struct world *world = *state;
    struct sandbox *one = world_create(world, "one"), *two = world_create(world, "two");
    const struct port *port, *other;

    expose(world, one, 8080);
    expose(world, one, 8081);
    expose(world, two, 8080);
    port = port_find(world->domain, &one->id, 8080);
    assert_int_equal(strlen(port->token), PORT_TOKEN_MAX);
    assert_true(port_opens(world->domain, port, port->token));
    assert_false(port_opens(world->domain, port, ""));
    other = port_find(world->domain, &one->id, 8081);
    assert_false(port_opens(world->domain, other, port->token));
    other = port_find(world->domain, &two->id, 8080);
    assert_false(port_opens(world->domain, other, port->token));
    assert_null(port_find(world->domain, &two->id, 8081));
}

static void a_second_time_gives_the_same_token_or_the_one_wished_for(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct port_spec spec = {.number = 8080};
    struct told_port first = ask_expose(world, sandbox, &spec),
                     second = ask_expose(world, sandbox, &spec), third;
    const struct port *port = port_find(world->domain, &sandbox->id, 8080);

    assert_string_equal(first.token, second.token);
    spec.token = "mine_1";
    third = ask_expose(world, sandbox, &spec);
    assert_string_equal(third.token, "mine_1");
    assert_true(port_opens(world->domain, port, "mine_1"));
    assert_false(port_opens(world->domain, port, first.token));
}

static void two_at_once_get_the_same_token(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct port_spec spec = {.number = 8080};
    struct told_port told[2] = {{.times = 0}, {.times = 0}};

    for (int i = 0; i < 2; i++)
        port_expose(world->domain, &world->caller, sandbox, &spec, on_port, &told[i]);
    TURN_UNTIL(&world->loop, told[0].times && told[1].times);
    assert_string_equal(told[0].token, told[1].token);
    assert_int_equal(rows_kept(world), 1);
}

static void a_token_ends_when_its_time_is_over(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct port_spec spec = {.number = 8080, .token = "abc", .expires_ms = WORLD_START_MS + 5000};
    const struct port *port;

    assert_false(ask_expose(world, sandbox, &spec).failed);
    port = port_find(world->domain, &sandbox->id, 8080);
    assert_true(port_opens(world->domain, port, "abc"));
    clock_manual_advance(&world->clock, 5000);
    assert_false(port_opens(world->domain, port, "abc"));
}

/* --- refusals -------------------------------------------------------------------------------- */

static void a_bad_wish_is_refused(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    static const struct {
        struct port_spec spec;
        enum err_code code;
    } cases[] = {
        {{.number = 0}, ERR_INVALID},
        {{.number = 80}, ERR_INVALID},
        {{.number = PORT_FIRST - 1}, ERR_INVALID},
        {{.number = PORT_RESERVED}, ERR_INVALID},
        {{.number = 8080, .token = ""}, ERR_INVALID},
        {{.number = 8080, .token = "UPPER"}, ERR_INVALID},
        {{.number = 8080, .token = "a-b"}, ERR_INVALID},
        {{.number = 8080, .token = "a.b"}, ERR_INVALID},
        {{.number = 8080, .token = "12345678901234567"}, ERR_INVALID},
        {{.number = 8080, .name = "\xff"}, ERR_INVALID},
        {{.number = 8080, .token = "taken"}, ERR_CONFLICT},
    };

    assert_false(
        ask_expose(world, sandbox, &(struct port_spec){.number = 9000, .token = "taken"}).failed);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct told_port told = ask_expose(world, sandbox, &cases[i].spec);

        assert_true(told.failed);
        assert_int_equal(told.failure.code, cases[i].code);
    }
    assert_int_equal(rows_kept(world), 1);
    assert_int_equal(ask_close(world, sandbox, 8080).failure.code, ERR_NOT_FOUND);
}

static void whoever_only_looks_exposes_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_port told;

    expose(world, sandbox, 8080);
    world->caller.scope = CALLER_READ;
    told = ask_expose(world, sandbox, &(struct port_spec){.number = 8081});
    assert_int_equal(told.failure.code, ERR_FORBIDDEN);
    assert_int_equal(ask_close(world, sandbox, 8080).failure.code, ERR_FORBIDDEN);
    world->caller.scope = CALLER_PORT;
    assert_int_equal(ask_close(world, sandbox, 8080).failure.code, ERR_FORBIDDEN);
    assert_non_null(port_find(world->domain, &sandbox->id, 8080));
}

static void there_is_a_limit_of_ports(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_port told;

    for (uint16_t i = 0; i < PORTS_PER_SANDBOX; i++)
        expose(world, sandbox, (uint16_t) (8000 + i));
    told = ask_expose(world, sandbox, &(struct port_spec){.number = 9000});
    assert_int_equal(told.failure.code, ERR_QUOTA);
    expose(world, sandbox, 8000);
}

/* --- kept, closed, gone ---------------------------------------------------------------------- */

static void ports_are_there_after_a_restart(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct port_spec spec = {.number = 8080, .name = "web", .token = "abc", .wakes = true};
    struct id id = sandbox->id;
    const struct port *port;

    assert_false(ask_expose(world, sandbox, &spec).failed);
    world_close(world);
    world_open(world);
    port = port_find(world->domain, &id, 8080);
    assert_non_null(port);
    assert_string_equal(port->name, "web");
    assert_true(port->wakes);
    assert_true(port_opens(world->domain, port, "abc"));
}

static void a_port_that_was_not_kept_is_not_there(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_port told;

    world->refuse_commit = 1;
    told = ask_expose(world, sandbox, &(struct port_spec){.number = 8080});
    assert_true(told.failed);
    assert_null(port_find(world->domain, &sandbox->id, 8080));
    expose(world, sandbox, 8080);
    world->refuse_commit = 1;
    assert_true(ask_close(world, sandbox, 8080).failed);
    assert_non_null(port_find(world->domain, &sandbox->id, 8080));
}

static void the_last_of_opening_and_closing_counts(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct port_spec spec = {.number = 8080};
    struct told_port told[3] = {{.times = 0}, {.times = 0}, {.times = 0}};

    expose(world, sandbox, 8080);
    port_unexpose(world->domain, &world->caller, sandbox, 8080, on_port, &told[0]);
    port_expose(world->domain, &world->caller, sandbox, &spec, on_port, &told[1]);
    TURN_UNTIL(&world->loop, told[0].times && told[1].times);
    assert_false(told[0].failed || told[1].failed);
    assert_non_null(port_find(world->domain, &sandbox->id, 8080));
    port_unexpose(world->domain, &world->caller, sandbox, 8080, on_port, &told[2]);
    TURN_UNTIL(&world->loop, told[2].times);
    assert_null(port_find(world->domain, &sandbox->id, 8080));
    assert_int_equal(rows_kept(world), 0);
}

static void ports_go_with_their_sandbox(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;

    expose(world, sandbox, 8080);
    do_ask(world, sandbox_sleep, sandbox);
    assert_non_null(port_find(world->domain, &id, 8080));
    do_ask(world, sandbox_destroy, sandbox);
    assert_null(port_find(world->domain, &id, 8080));
    assert_int_equal(rows_kept(world), 0);
}

/* Asked for behind the destruction, answered after it: no row may be left behind. */
static void a_port_of_a_sandbox_that_is_being_destroyed_goes_with_it(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct port_spec spec = {.number = 8080};
    struct told_port port = {.times = 0};
    struct told told = {.times = 0};
    struct id id = sandbox->id;

    sandbox_destroy(world->domain, &world->caller, sandbox, on_told, &told);
    port_expose(world->domain, &world->caller, sandbox, &spec, on_port, &port);
    TURN_UNTIL(&world->loop, told.times && port.times);
    assert_true(port.failed);
    assert_int_equal(port.failure.code, ERR_NOT_FOUND);
    assert_null(port_find(world->domain, &id, 8080));
    assert_int_equal(rows_kept(world), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_token_opens_one_port_of_one_sandbox),
        WORLD_TEST(a_second_time_gives_the_same_token_or_the_one_wished_for),
        WORLD_TEST(two_at_once_get_the_same_token),
        WORLD_TEST(a_token_ends_when_its_time_is_over),
        WORLD_TEST(a_bad_wish_is_refused),
        WORLD_TEST(whoever_only_looks_exposes_nothing),
        WORLD_TEST(there_is_a_limit_of_ports),
        WORLD_TEST(ports_are_there_after_a_restart),
        WORLD_TEST(a_port_that_was_not_kept_is_not_there),
        WORLD_TEST(the_last_of_opening_and_closing_counts),
        WORLD_TEST(ports_go_with_their_sandbox),
        WORLD_TEST(a_port_of_a_sandbox_that_is_being_destroyed_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
