#include <dirent.h>

#include "api/preview/preview_origin.h"
#include "domain/domain_testing.h"

#define PORT 8080

struct wanting {
    struct preview_lease lease;
    int ready, cut;
    bool failed;
    bool ends_at_once;
    struct error failure;
};

struct house {
    struct world *world;
    struct sandbox *sandbox;
    struct preview_origins *origins;
    size_t descriptors; /* that were open before */
    bool is_closed;
};

static size_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void on_ready(struct preview_lease *lease, const struct error *failure)
{
    struct wanting *wanting = CONTAINER_OF(lease, struct wanting, lease);

    wanting->ready++;
    wanting->failed = failure != NULL;
    if (failure)
        wanting->failure = *failure;
    if (wanting->ends_at_once)
        preview_lease_end(lease);
}

static void on_cut(struct preview_lease *lease)
{
    CONTAINER_OF(lease, struct wanting, lease)->cut++;
}

static void begin(struct house *house, struct wanting *wanting)
{
    preview_lease_begin(house->origins, house->sandbox, PORT, &wanting->lease, on_ready);
}

static int setup(void **state)
{
    struct house *house = mem_alloc(sizeof(*house));

    house->world = world_new(NULL);
    world_open(house->world);
    house->sandbox = world_create(house->world, "demo");
    house->descriptors = count_descriptors();
    house->origins = preview_origins_new(&house->world->loop, house->world->domain);
    *state = house;
    return 0;
}

static void on_closed(void *context)
{
    ((struct house *) context)->is_closed = true;
}

static void close_origins(struct house *house)
{
    preview_origins_close(house->origins, on_closed, house);
    TURN_UNTIL(&house->world->loop, house->is_closed);
    house->origins = NULL;
}

static int teardown(void **state)
{
    struct house *house = *state;

    if (house->origins)
        close_origins(house);
    assert_int_equal(count_descriptors(), house->descriptors);
    world_free(house->world);
    free(house);
    return 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

static void a_lease_waits_for_sockets_and_the_next_ones_do_not(void **state)
{
    struct house *house = *state;
    struct wanting first = {.ready = 0}, second = {.ready = 0};

    begin(house, &first);
    assert_int_equal(first.ready, 0);
    TURN_UNTIL(&house->world->loop, first.ready);
    assert_false(first.failed);
    assert_non_null(preview_lease_origin(&first.lease));
    begin(house, &second);
    assert_int_equal(second.ready, 1);
    assert_ptr_equal(preview_lease_origin(&first.lease), preview_lease_origin(&second.lease));
    preview_lease_end(&first.lease);
    preview_lease_end(&second.lease);
    preview_lease_end(&second.lease); /* does nothing */
    world_wait(house->world);
}

static void a_lease_that_is_given_up_is_not_answered(void **state)
{
    struct house *house = *state;
    struct wanting gone = {.ready = 0}, stays = {.ready = 0};

    begin(house, &gone);
    begin(house, &stays);
    preview_lease_end(&gone.lease);
    TURN_UNTIL(&house->world->loop, stays.ready);
    assert_int_equal(gone.ready, 0);
    preview_lease_end(&stays.lease);
}

static void leases_may_end_while_they_are_told(void **state)
{
    struct house *house = *state;
    struct wanting many[20];

    for (size_t i = 0; i < ARRAY_COUNT(many); i++) {
        many[i] = (struct wanting){.ends_at_once = i % 2};
        begin(house, &many[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        TURN_UNTIL(&house->world->loop, many[i].ready);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++) {
        assert_int_equal(many[i].ready, 1);
        preview_lease_end(&many[i].lease);
    }
}

static void a_provider_that_fails_is_told_to_all_who_wait(void **state)
{
    struct house *house = *state;
    struct wanting one = {.ends_at_once = true}, two = {.ready = 0};

    provider_fake_fail_next(house->world->provider, PROVIDER_CALL_SOCKETS, ERR_UNAVAILABLE);
    begin(house, &one);
    begin(house, &two);
    TURN_UNTIL(&house->world->loop, one.ready && two.ready);
    assert_true(one.failed && two.failed);
    preview_lease_end(&two.lease);
}

static void only_so_many_may_wait(void **state)
{
    struct house *house = *state;
    AUTO(free) struct wanting *many = mem_alloc_array(PREVIEW_WAITING_MAX + 1, sizeof(*many));

    for (size_t i = 0; i <= PREVIEW_WAITING_MAX; i++)
        begin(house, &many[i]);
    assert_int_equal(many[PREVIEW_WAITING_MAX].ready, 1);
    assert_int_equal(many[PREVIEW_WAITING_MAX].failure.code, ERR_UNAVAILABLE);
    for (size_t i = 0; i <= PREVIEW_WAITING_MAX; i++)
        preview_lease_end(&many[i].lease);
    world_wait(house->world);
}

/* --- closed, restarted ------------------------------------------------------------------------ */

static void a_port_that_is_closed_refuses_those_who_wait_and_cuts_tunnels(void **state)
{
    struct house *house = *state;
    struct wanting granted = {.ready = 0}, tunnel = {.ready = 0}, waits = {.ready = 0};

    begin(house, &granted);
    TURN_UNTIL(&house->world->loop, granted.ready);
    preview_lease_join(&tunnel.lease, &granted.lease);
    tunnel.lease.cut = on_cut;
    preview_lease_end(&granted.lease); /* as after an upgrade */
    preview_origins_forget(house->origins, &house->sandbox->id, PORT);
    assert_int_equal(tunnel.cut, 1);
    preview_origins_forget(house->origins, &house->sandbox->id, PORT);
    assert_int_equal(tunnel.cut, 1);
    preview_lease_end(&tunnel.lease);

    begin(house, &waits);
    preview_origins_forget(house->origins, &house->sandbox->id, PORT);
    TURN_UNTIL(&house->world->loop, waits.ready);
    assert_true(waits.failed);
    preview_lease_end(&waits.lease);
}

static void another_run_of_the_sandbox_has_sockets_of_its_own(void **state)
{
    struct house *house = *state;
    struct wanting before = {.ready = 0}, after = {.ready = 0};

    begin(house, &before);
    TURN_UNTIL(&house->world->loop, before.ready);
    do_ask(house->world, sandbox_stop, house->sandbox);
    clock_manual_advance(&house->world->clock, 1000);
    do_ask(house->world, sandbox_start, house->sandbox);
    begin(house, &after);
    assert_int_equal(after.ready, 0); /* what is at hand leads to the run before */
    TURN_UNTIL(&house->world->loop, after.ready);
    assert_false(after.failed);
    assert_ptr_not_equal(preview_lease_origin(&before.lease), preview_lease_origin(&after.lease));
    preview_lease_end(&before.lease);
    preview_lease_end(&after.lease);
}

static void nobody_waits_for_ever_for_a_sandbox_that_goes(void **state)
{
    struct house *house = *state;
    struct wanting many[20] = {{.ready = 0}}; /* more than one answer of sockets serves */

    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        begin(house, &many[i]);
    do_ask(house->world, sandbox_destroy, house->sandbox);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        TURN_UNTIL(&house->world->loop, many[i].ready);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++) {
        assert_int_equal(many[i].ready, 1); /* granted before that, or refused: but told */
        preview_lease_end(&many[i].lease);
    }
}

static void closing_waits_for_those_who_hold_something(void **state)
{
    struct house *house = *state;
    struct wanting holds = {.ready = 0}, waits = {.ready = 0};

    begin(house, &holds);
    TURN_UNTIL(&house->world->loop, holds.ready);
    preview_lease_begin(house->origins, house->sandbox, PORT + 1, &waits.lease, on_ready);
    preview_origins_close(house->origins, on_closed, house);
    house->origins = NULL;
    TURN_UNTIL(&house->world->loop, waits.ready);
    assert_true(waits.failed);
    preview_lease_end(&waits.lease);
    world_wait(house->world);
    assert_false(house->is_closed);
    preview_lease_end(&holds.lease);
    TURN_UNTIL(&house->world->loop, house->is_closed);
}

#define HOUSE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOUSE_TEST(a_lease_waits_for_sockets_and_the_next_ones_do_not),
        HOUSE_TEST(a_lease_that_is_given_up_is_not_answered),
        HOUSE_TEST(leases_may_end_while_they_are_told),
        HOUSE_TEST(a_provider_that_fails_is_told_to_all_who_wait),
        HOUSE_TEST(only_so_many_may_wait),
        HOUSE_TEST(a_port_that_is_closed_refuses_those_who_wait_and_cuts_tunnels),
        HOUSE_TEST(another_run_of_the_sandbox_has_sockets_of_its_own),
        HOUSE_TEST(nobody_waits_for_ever_for_a_sandbox_that_goes),
        HOUSE_TEST(closing_waits_for_those_who_hold_something),
    };

    return cmocka_run_group_tests_name("preview_origin", tests, NULL, NULL);
}
