/* Every system call on the way fails once: what was begun must be gone afterwards. */
#include "base/fault.h"
#include "launcher/network/network_testing.h"
#include "launcher/network/nft.h"

/* More calls than any of the functions makes. */
#define CALLS_MAX 300

static void count_network(void *context, const struct network *network)
{
    (void) network;
    ++*(int *) context;
}

static void count_link(void *context, const struct sys_netlink_link *link)
{
    (void) link;
    ++*(int *) context;
}

struct traces {
    int links;
    int networks;
    int live;
    int descriptors;
};

static struct traces look_for_traces(struct world *world)
{
    struct traces traces = {.descriptors = count_descriptors()};
    struct error err = ERROR_INIT;

    CHECK_EQUAL(sys_netlink_each_link(&world->router->links, count_link, &traces.links), 0);
    CHECK_EQUAL(network_list(world->router, count_network, &traces.networks, &err), 0);
    traces.live = nft_count_elements(&world->router->filter, "burrow", ROUTER_SET_LIVE);
    return traces;
}

/* One attempt in a process of its own, because failing to come home from the sandbox's namespace
 * ends the process, as it should. Exits with 0: failed as told, 1: the nth call was not reached. */
static int attach_with_fault(struct world *world, int inside, unsigned int nth)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        struct traces before = look_for_traces(world), after;
        struct error err = ERROR_INIT;
        struct network network;
        struct id id = id_new();
        int result;

        fault_arm(FAULT_SYSTEM_CALL, nth, EIO);
        result = network_attach(world->router, &id, inside, &network, &err);
        if (!fault_disarm(FAULT_SYSTEM_CALL)) {
            CHECK_EQUAL(result, 0);
            _exit(1);
        }
        CHECK_EQUAL(result, -1);
        CHECK(err.message[0]);
        after = look_for_traces(world);
        CHECK_EQUAL(after.links, before.links);
        CHECK_EQUAL(after.networks, before.networks);
        CHECK_EQUAL(after.live, before.live);
        CHECK_EQUAL(after.descriptors, before.descriptors);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return 0;
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int new_namespace(const struct world *world)
{
    int fd;

    CHECK_EQUAL(sys_namespace_unshare(CLONE_NEWNET), 0);
    fd = sys_namespace_open(0, "net");
    network_namespace_return(world->host);
    return fd;
}

static void fail_to_attach(void)
{
    struct world world = make_world();
    unsigned int nth = 1;
    int reached = 0;

    while (reached == 0 && nth < CALLS_MAX) {
        AUTO(close) int inside = new_namespace(&world);

        reached = attach_with_fault(&world, inside, nth++);
    }
    CHECK_EQUAL(reached, 1);
    CHECK(nth > 15); /* the faults were really on the way */
}

static void a_failed_attach_leaves_nothing(void **state)
{
    (void) state;
    run_in_child(fail_to_attach, NEEDS_ROUTER);
}

/* Whatever failed, the next attempt works: nothing half-made is in its way. */
static int open_with_fault(struct world *world, unsigned int nth)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        struct router *router = NULL;
        struct error err = ERROR_INIT;
        int before = count_descriptors();
        int result;

        fault_arm(FAULT_SYSTEM_CALL, nth, EIO);
        result = router_open(&world->settings, &router, &err);
        if (!fault_disarm(FAULT_SYSTEM_CALL))
            _exit(1);
        /* A resolv.conf that cannot be read is none. */
        CHECK_EQUAL(result, router ? 0 : -1);
        router_free(router);
        CHECK_EQUAL(count_descriptors(), before);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return 0;
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The namespace of a failed one, and the host's end of its link, go when the kernel gets to it. */
static void open_in_the_end(struct world *world)
{
    struct error err = ERROR_INIT;

    for (int i = 0; i < 100; i++) {
        if (router_open(&world->settings, &world->router, &err) == 0)
            return;
        CHECK_EQUAL(err.code, ERR_CONFLICT);
        (void) usleep(100000);
    }
    CHECK(false);
}

static void fail_to_open(void)
{
    struct world world = make_world();
    struct error err = ERROR_INIT;
    unsigned int nth = 1;
    int reached = 0;

    while (reached == 0 && nth < CALLS_MAX) {
        CHECK_EQUAL(router_remove(world.router, &err), 0);
        router_free(world.router);
        reached = open_with_fault(&world, nth);
        nth += 3; /* every third is enough: opening and removing takes a while */
        open_in_the_end(&world);
    }
    CHECK_EQUAL(reached, 1);
    CHECK(nth > 60);
}

static void a_failed_open_is_not_in_the_way_of_the_next(void **state)
{
    (void) state;
    run_in_child(fail_to_open, NEEDS_ROUTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_attach_leaves_nothing),
        cmocka_unit_test(a_failed_open_is_not_in_the_way_of_the_next),
    };

    return cmocka_run_group_tests_name("network_fault", tests, NULL, NULL);
}
