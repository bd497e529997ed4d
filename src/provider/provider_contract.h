/* What every provider promises, as tests. A test program defines a struct contract_backend and adds
 * CONTRACT_TESTS to its table. Included by test programs only. */
#pragma once

#include "provider/provider_contract_disk.h"
#include "provider/provider_contract_end.h"
#include "provider/provider_testing.h"

static void a_new_sandbox_runs_and_is_listed(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);

    expect_state(contract, &id, RUN_STATE_RUNNING);
    assert_int_equal(contract->exit_count, 0);
}

static void an_id_is_taken_once(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply first = {.times = 0}, second = {.times = 0}, third;

    provider_create(contract->provider, &spec, on_sandbox, &first);
    provider_create(contract->provider, &spec, on_sandbox, &second);
    TURN_UNTIL(&contract->loop, first.times && second.times);
    expect_ok(&first);
    expect_code(&second, ERR_CONFLICT);
    third = ask_create(contract, &spec);
    expect_code(&third, ERR_CONFLICT);
    expect_state(contract, &id, RUN_STATE_RUNNING);
}

static void a_sandbox_that_fails_leaves_its_id_free(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply;

    spec.hostname = "Not A Name";
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_INVALID);
    spec.hostname = "demo";
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
}

static void wrong_specs_are_invalid(void **state)
{
    struct contract *contract = *state;
    struct id good = id_new(), bad = {.text = "not an id"};
    struct provider_spec spec = spec_of(contract, &bad);
    struct reply reply = ask_create(contract, &spec);

    expect_code(&reply, ERR_INVALID);
    spec = spec_of(contract, &good);
    spec.hostname = NULL;
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_INVALID);
    spec = spec_of(contract, &good);
    spec.image = "../etc";
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_INVALID);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
}

/* Every call with one sandbox, answered with `code`. Calls that the provider cannot do at all are
 * left out. */
static void expect_everywhere(struct contract *contract, const struct id *id, enum err_code code)
{
    static const struct {
        plain_call *call;
        unsigned int capability;
    } calls[] = {{provider_stop, PROVIDER_RESTART},
                 {provider_destroy, 0},
                 {provider_freeze, PROVIDER_FREEZE},
                 {provider_thaw, PROVIDER_FREEZE}};
    struct limits limits = {.pids = 100};
    struct reply reply;

    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        if (!calls[i].capability || can(contract, calls[i].capability)) {
            reply = ask_plain(contract, calls[i].call, id);
            expect_code(&reply, code);
        }
    }
    if (can(contract, PROVIDER_RESTART)) {
        reply = ask_start(contract, id);
        expect_code(&reply, code);
    }
    if (can(contract, PROVIDER_LIMITS)) {
        reply = ask_limits(contract, id, &limits);
        expect_code(&reply, code);
    }
    if (can(contract, PROVIDER_STATS)) {
        reply = ask_stats(contract, id);
        expect_code(&reply, code);
    }
    if (can(contract, PROVIDER_PORTS)) {
        reply = ask_sockets(contract, id, 1);
        expect_code(&reply, code);
    }
    if (can(contract, PROVIDER_DISK_JOBS)) {
        reply = ask_job(contract, id, DISK_JOB_LIST, NULL, STDOUT_FILENO);
        expect_code(&reply, code);
    }
    if (can(contract, PROVIDER_SNAPSHOTS)) {
        struct id snapshot = id_new();

        reply = ask_snapshot(contract, id, &snapshot, false);
        expect_code(&reply, code);
        reply = ask_roll_back(contract, id, &snapshot);
        expect_code(&reply, code);
        reply = ask_usage(contract, DISK_OF_SANDBOX, id);
        expect_code(&reply, code);
    }
    if (can(contract, PROVIDER_RECLAIM)) {
        reply = ask_reclaim(contract, id);
        expect_code(&reply, code);
    }
}

static void unknown_ids_are_not_found(void **state)
{
    struct contract *contract = *state;
    struct id unknown = id_new();
    char address[PROVIDER_ADDRESS_MAX];
    struct error err = ERROR_INIT;

    expect_everywhere(contract, &unknown, ERR_NOT_FOUND);
    assert_int_equal(provider_agent_address(contract->provider, &unknown, address, &err), -1);
    assert_int_equal(err.code, can(contract, PROVIDER_AGENT) ? ERR_NOT_FOUND : ERR_NOT_IMPLEMENTED);
}

static void the_list_is_sorted(void **state)
{
    struct contract *contract = *state;
    struct reply reply;

    for (int i = 0; i < 5; i++)
        (void) new_sandbox(contract);
    reply = ask_list(contract);
    expect_ok(&reply);
    assert_int_equal(reply.count, 5);
    for (size_t i = 1; i < reply.count; i++)
        assert_true(strcmp(reply.list[i - 1].id.text, reply.list[i].id.text) < 0);
}

static void a_frozen_sandbox_can_be_thawed(void **state)
{
    struct contract *contract = *state;
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_FREEZE, "freezing");
    id = new_sandbox(contract);
    for (int i = 0; i < 2; i++) { /* the second time it is frozen already */
        reply = ask_plain(contract, provider_freeze, &id);
        expect_ok(&reply);
        expect_state(contract, &id, RUN_STATE_FROZEN);
    }
    for (int i = 0; i < 2; i++) {
        reply = ask_plain(contract, provider_thaw, &id);
        expect_ok(&reply);
        expect_state(contract, &id, RUN_STATE_RUNNING);
    }
    reply = ask_plain(contract, provider_freeze, &id);
    expect_ok(&reply);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    assert_int_equal(contract->exit_count, 0);
}

static void a_stopped_sandbox_starts_again(void **state)
{
    struct contract *contract = *state;
    struct limits limits = {.pids = 100};
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_RESTART, "stopping");
    id = new_sandbox(contract);
    reply = ask_start(contract, &id);
    expect_code(&reply, ERR_CONFLICT);
    for (int i = 0; i < 2; i++) { /* the second time it is stopped already */
        reply = ask_plain(contract, provider_stop, &id);
        expect_ok(&reply);
        expect_state(contract, &id, RUN_STATE_STOPPED);
    }
    if (can(contract, PROVIDER_FREEZE)) {
        reply = ask_plain(contract, provider_freeze, &id);
        expect_code(&reply, ERR_CONFLICT);
    }
    if (can(contract, PROVIDER_LIMITS)) {
        reply = ask_limits(contract, &id, &limits);
        expect_code(&reply, ERR_CONFLICT);
    }
    if (can(contract, PROVIDER_PORTS)) {
        reply = ask_sockets(contract, &id, 1);
        expect_code(&reply, ERR_CONFLICT);
    }
    reply = ask_start(contract, &id);
    expect_ok(&reply);
    assert_string_equal(reply.sandbox.id.text, id.text);
    expect_state(contract, &id, RUN_STATE_RUNNING);
}

static void a_destroyed_sandbox_is_unknown(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), other = new_sandbox(contract);
    struct reply reply = ask_plain(contract, provider_destroy, &id);

    expect_ok(&reply);
    expect_everywhere(contract, &id, ERR_NOT_FOUND);
    expect_state(contract, &other, RUN_STATE_RUNNING);
    if (can(contract, PROVIDER_RESTART)) {
        reply = ask_plain(contract, provider_stop, &other);
        expect_ok(&reply);
    }
    reply = ask_plain(contract, provider_destroy, &other);
    expect_ok(&reply);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
}

static void limits_can_be_changed(void **state)
{
    struct contract *contract = *state;
    struct limits limits = {.memory_bytes = 256 << 20,
                            .swap_bytes = UINT64_MAX,
                            .pids = 200,
                            .cpu_millis = 500,
                            .disk_bytes = 1 << 30};
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_LIMITS, "changing limits");
    id = new_sandbox(contract);
    reply = ask_limits(contract, &id, &limits);
    expect_ok(&reply);
}

/* A group that is not known is 0. */
static void stats_say_what_they_know(void **state)
{
    static const struct {
        unsigned int bit;
        size_t offsets[2];
    } groups[] = {
#define AT(member) offsetof(struct stats, member)
        {STATS_BIT(CPU), {AT(cpu_us), AT(cpu_us)}},
        {STATS_BIT(THROTTLED), {AT(throttled_us), AT(throttled_us)}},
        {STATS_BIT(MEMORY), {AT(memory_bytes), AT(memory_bytes)}},
        {STATS_BIT(MEMORY_PEAK), {AT(memory_peak_bytes), AT(memory_peak_bytes)}},
        {STATS_BIT(PIDS), {AT(pids), AT(pids)}},
        {STATS_BIT(PIDS_REFUSED), {AT(pids_refused), AT(pids_refused)}},
        {STATS_BIT(IO), {AT(read_bytes), AT(written_bytes)}},
        {STATS_BIT(OOM), {AT(oom_kills_agent), AT(oom_kills_work)}},
        {STATS_BIT(NETWORK), {AT(received_bytes), AT(sent_bytes)}},
        {STATS_BIT(DISK), {AT(disk_bytes), AT(disk_bytes)}},
#undef AT
    };
    struct contract *contract = *state;
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_STATS, "statistics");
    id = new_sandbox(contract);
    reply = ask_stats(contract, &id);
    expect_ok(&reply);
    for (size_t i = 0; i < ARRAY_COUNT(groups); i++) {
        for (size_t j = 0; j < 2 && !(reply.stats.known & groups[i].bit); j++) {
            uint64_t value;

            memcpy(&value, (const char *) &reply.stats + groups[i].offsets[j], sizeof(value));
            assert_int_equal(value, 0);
        }
    }
    if (reply.stats.known & STATS_BIT(PIDS))
        assert_true(reply.stats.pids >= 1);
}

static void sockets_are_fresh(void **state)
{
    struct contract *contract = *state;
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_PORTS, "ports");
    id = new_sandbox(contract);
    reply = ask_sockets(contract, &id, 3);
    expect_ok(&reply);
    assert_int_equal(reply.count, 3);
    for (size_t i = 0; i < reply.count; i++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof(peer), type_length = sizeof(int);
        int type = 0;

        assert_int_equal(getsockopt(reply.fds[i], SOL_SOCKET, SO_TYPE, &type, &type_length), 0);
        assert_int_equal(type, SOCK_STREAM);
        assert_int_equal(getpeername(reply.fds[i], (struct sockaddr *) &peer, &length), -1);
        assert_int_equal(errno, ENOTCONN);
        assert_true(fcntl(reply.fds[i], F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(reply.fds[i], F_GETFD) & FD_CLOEXEC);
        (void) fd_close(reply.fds[i]);
    }
    reply = ask_sockets(contract, &id, 0);
    expect_code(&reply, ERR_INVALID);
    reply = ask_sockets(contract, &id, PROVIDER_SOCKETS_MAX + 1);
    expect_code(&reply, ERR_INVALID);
}

static void agents_have_addresses(void **state)
{
    struct contract *contract = *state;
    char address[PROVIDER_ADDRESS_MAX];
    struct error err = ERROR_INIT;
    struct id id;

    needs(contract, PROVIDER_AGENT, "agents");
    id = new_sandbox(contract);
    assert_int_equal(provider_agent_address(contract->provider, &id, address, &err), 0);
    assert_non_null(strstr(address, id.text));
    assert_memory_equal(address, "unix:/", 6);
}

static void memory_of_frozen_sandboxes_can_be_pushed_out(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply = ask_reclaim(contract, &id);

    if (!can(contract, PROVIDER_RECLAIM) || !can(contract, PROVIDER_FREEZE)) {
        expect_code(&reply, can(contract, PROVIDER_RECLAIM) ? ERR_CONFLICT : ERR_NOT_IMPLEMENTED);
        return;
    }
    expect_code(&reply, ERR_CONFLICT);
    reply = ask_plain(contract, provider_freeze, &id);
    expect_ok(&reply);
    reply = ask_reclaim(contract, &id);
    expect_ok(&reply);
    expect_state(contract, &id, RUN_STATE_FROZEN);
}

static void mounts_are_opened_and_taken_back(void **state)
{
    static const char *const bad[] = {"relative", "/", "/a/../b", "/a//b", "/a/", ""};
    struct contract *contract = *state;
    struct id id, unknown = id_new();
    struct reply reply, other;

    needs(contract, PROVIDER_MOUNTS, "mounts");
    id = new_sandbox(contract);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        reply = ask_open_mount(contract, &id, bad[i]);
        expect_code(&reply, ERR_INVALID);
    }
    reply = ask_open_mount(contract, &unknown, "/persist");
    expect_code(&reply, ERR_NOT_FOUND);
    reply = ask_open_mount(contract, &id, "/persist");
    expect_ok(&reply);
    other = ask_open_mount(contract, &id, "/other");
    expect_ok(&other);
    assert_int_not_equal(reply.mount, other.mount);
    assert_true(fcntl(reply.fuse, F_GETFD) & FD_CLOEXEC);
    (void) fd_close(reply.fuse);
    (void) fd_close(other.fuse);
    reply = ask_detach_mount(contract, &id, reply.mount);
    expect_ok(&reply);
    if (can(contract, PROVIDER_RESTART)) {
        reply = ask_plain(contract, provider_stop, &id);
        expect_ok(&reply);
        reply = ask_open_mount(contract, &id, "/persist");
        expect_code(&reply, ERR_CONFLICT);
    }
}

static void what_it_cannot_do_is_not_implemented(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), other = id_new();
    struct provider_spec spec = spec_of(contract, &other);
    struct limits limits = {.pids = 100};
    struct reply reply;

    if (!can(contract, PROVIDER_FREEZE)) {
        reply = ask_plain(contract, provider_freeze, &id);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
        reply = ask_plain(contract, provider_thaw, &id);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_RESTART)) {
        reply = ask_plain(contract, provider_stop, &id);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
        reply = ask_start(contract, &id);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_PORTS)) {
        reply = ask_sockets(contract, &id, 1);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_STATS)) {
        reply = ask_stats(contract, &id);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_LIMITS)) {
        reply = ask_limits(contract, &id, &limits);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_DISK_JOBS)) {
        reply = ask_job(contract, &id, DISK_JOB_LIST, NULL, STDOUT_FILENO);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_MOUNTS)) {
        reply = ask_open_mount(contract, &id, "/persist");
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    }
    if (!can(contract, PROVIDER_SNAPSHOTS)) {
        reply = ask_snapshot(contract, &id, &other, false);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
        reply = ask_snapshots(contract);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
        spec.origin = (struct disk_ref){DISK_OF_SANDBOX, id};
        reply = ask_create(contract, &spec);
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
        spec.origin.id.text[0] = '\0';
    }
    spec.network = NETWORK_NAT;
    reply = ask_create(contract, &spec);
    if (can(contract, PROVIDER_NAT))
        expect_ok(&reply);
    else
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
}

static void limits_that_do_not_hold_are_told(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    unsigned int asked = LIMIT_BIT(MEMORY) | LIMIT_BIT(PIDS);
    struct reply reply;

    spec.limits.memory_bytes = 256 << 20;
    spec.limits.pids = 100;
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_int_equal(reply.sandbox.unenforced & asked,
                     asked & ~provider_enforced(contract->provider));
    assert_int_equal(listed(contract, &id).unenforced, reply.sandbox.unenforced);
}

static void nothing_works_before_open(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply = ask_create(contract, &spec);

    expect_code(&reply, ERR_UNAVAILABLE);
    reply = ask_list(contract);
    expect_code(&reply, ERR_UNAVAILABLE);
    contract_free(contract);
}

#define CONTRACT_TEST(name, backend)                                                               \
    {                                                                                              \
#name, name, contract_setup, contract_teardown, (void *) (backend)                         \
    }

#define CONTRACT_TESTS(backend)                                                                    \
    CONTRACT_TEST(a_new_sandbox_runs_and_is_listed, backend),                                      \
        CONTRACT_TEST(an_id_is_taken_once, backend),                                               \
        CONTRACT_TEST(a_sandbox_that_fails_leaves_its_id_free, backend),                           \
        CONTRACT_TEST(wrong_specs_are_invalid, backend),                                           \
        CONTRACT_TEST(unknown_ids_are_not_found, backend),                                         \
        CONTRACT_TEST(the_list_is_sorted, backend),                                                \
        CONTRACT_TEST(a_frozen_sandbox_can_be_thawed, backend),                                    \
        CONTRACT_TEST(a_stopped_sandbox_starts_again, backend),                                    \
        CONTRACT_TEST(a_destroyed_sandbox_is_unknown, backend),                                    \
        CONTRACT_TEST(limits_can_be_changed, backend),                                             \
        CONTRACT_TEST(stats_say_what_they_know, backend),                                          \
        CONTRACT_TEST(sockets_are_fresh, backend), CONTRACT_TEST(an_exit_is_told_once, backend),   \
        CONTRACT_TEST(a_sandbox_that_ended_can_be_started, backend),                               \
        CONTRACT_TEST(an_end_that_was_asked_for_is_not_told, backend),                             \
        CONTRACT_TEST(agents_have_addresses, backend),                                             \
        CONTRACT_TEST(disks_of_stopped_sandboxes_can_be_copied, backend),                          \
        CONTRACT_TEST(jobs_work_on_snapshots, backend),                                            \
        CONTRACT_TEST(jobs_have_just_what_they_speak_of, backend),                                 \
        CONTRACT_TEST(snapshots_are_made_listed_and_deleted, backend),                             \
        CONTRACT_TEST(a_fork_stands_for_itself, backend),                                          \
        CONTRACT_TEST(a_stopped_sandbox_goes_back, backend),                                       \
        CONTRACT_TEST(memory_of_frozen_sandboxes_can_be_pushed_out, backend),                      \
        CONTRACT_TEST(disks_can_be_synced, backend),                                               \
        CONTRACT_TEST(mounts_are_opened_and_taken_back, backend),                                  \
        CONTRACT_TEST(closing_answers_open_calls, backend),                                        \
        CONTRACT_TEST(an_answer_may_close_the_provider, backend),                                  \
        CONTRACT_TEST(what_it_cannot_do_is_not_implemented, backend),                              \
        CONTRACT_TEST(limits_that_do_not_hold_are_told, backend),                                  \
        {"nothing_works_before_open", nothing_works_before_open, NULL, NULL, (void *) (backend)},  \
    {                                                                                              \
        "opening_can_be_cut_short", opening_can_be_cut_short, NULL, NULL, (void *) (backend)       \
    }
