/* The provider `local` on a launcher that fails, dies or talks nonsense. */
#include "provider/launcher_testing.h"

static void failures_of_the_launcher_are_passed_on(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply;

    played(contract)->fail[WIRE_MESSAGE_CREATE] = ERR_NO_SPACE;
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_NO_SPACE);
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    played(contract)->fail[WIRE_MESSAGE_FREEZE] = ERR_INTERNAL;
    reply = ask_plain(contract, provider_freeze, &id);
    expect_code(&reply, ERR_INTERNAL);
    expect_state(contract, &id, RUN_STATE_RUNNING);
    played(contract)->fail[WIRE_MESSAGE_STATS] = ERR_INTERNAL;
    reply = ask_stats(contract, &id);
    expect_code(&reply, ERR_INTERNAL);
    played(contract)->fail[WIRE_MESSAGE_SOCKETS] = ERR_UNAVAILABLE;
    reply = ask_sockets(contract, &id, 1);
    expect_code(&reply, ERR_UNAVAILABLE);
    played(contract)->fail[WIRE_MESSAGE_KILL] = ERR_INTERNAL;
    reply = ask_plain(contract, provider_destroy, &id);
    expect_code(&reply, ERR_INTERNAL);
    expect_state(contract, &id, RUN_STATE_RUNNING);
}

static void what_is_gone_counts_as_destroyed(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply;

    played(contract)->fail[WIRE_MESSAGE_KILL] = ERR_NOT_FOUND;
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
}

static void a_stop_that_fails_tells_the_exit_it_held_back(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply = {.times = 0};

    played(contract)->fail[WIRE_MESSAGE_KILL] = ERR_INTERNAL;
    provider_stop(contract->provider, &id, on_done, &reply);
    play_exit(played(contract), &id); /* before the launcher sees the stop */
    await(contract, &reply);
    expect_code(&reply, ERR_INTERNAL);
    assert_int_equal(contract->exit_count, 1);
    expect_state(contract, &id, RUN_STATE_STOPPED);
}

/* Every kind of call is open when the launcher dies. */
static void a_launcher_that_dies_is_lost_after_its_calls(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), other = new_sandbox(contract), next = id_new();
    struct provider_spec spec = spec_of(contract, &next);
    struct reply replies[6] = {{.times = 0}}, after;

    played(contract)->hold[WIRE_MESSAGE_STATS] = true;
    played(contract)->hold[WIRE_MESSAGE_CREATE] = true;
    played(contract)->hold[WIRE_MESSAGE_FREEZE] = true;
    played(contract)->hold[WIRE_MESSAGE_SOCKETS] = true;
    played(contract)->die_on = WIRE_MESSAGE_KILL;
    provider_stats(contract->provider, &id, on_stats, &replies[0]);
    provider_create(contract->provider, &spec, on_sandbox, &replies[1]);
    provider_freeze(contract->provider, &id, on_done, &replies[2]);
    provider_sockets(contract->provider, &id, 4, on_sockets, &replies[3]);
    provider_destroy(contract->provider, &id, on_done, &replies[4]);
    provider_stop(contract->provider, &other, on_done, &replies[5]);
    TURN_UNTIL(&contract->loop, contract->losses);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        assert_int_equal(replies[i].times, 1);
        expect_code(&replies[i], ERR_UNAVAILABLE);
    }
    after = ask_plain(contract, provider_destroy, &id);
    expect_code(&after, ERR_UNAVAILABLE);
    after = ask_list(contract);
    expect_code(&after, ERR_UNAVAILABLE);
    turn_for(contract, 3);
    assert_int_equal(contract->losses, 1);
    assert_int_equal(contract->exit_count, 0);
}

static void talk_nonsense(struct contract *contract, const void *bytes, size_t length)
{
    assert_int_equal(send(played(contract)->conversation.channel.fd, bytes, length, 0), length);
    TURN_UNTIL(&contract->loop, contract->losses);
}

static void a_launcher_that_talks_nonsense_is_lost(void **state)
{
    talk_nonsense(*state, "hello there", 11);
}

static void an_answer_to_nobody_is_nonsense(void **state)
{
    static const uint8_t done[] = {1, 0, 66, 0, 99,  0,   0, 0, 0, 0,
                                   0, 0, 2,  0, 'o', 'k', 0, 0, 0, 0};

    talk_nonsense(*state, done, sizeof(done));
}

static void an_event_for_an_unknown_sandbox_is_ignored(void **state)
{
    struct contract *contract = *state;
    struct id unknown = id_new(), id;

    play_tell_exit(played(contract), &unknown, ENDED_STATUS, 0);
    turn_for(contract, 2);
    assert_int_equal(contract->exit_count, 0);
    id = new_sandbox(contract);
    expect_state(contract, &id, RUN_STATE_RUNNING);
}

/* At each step of opening. */
static void opening_fails_with_the_launcher(void **state)
{
    static const enum wire_number steps[] = {WIRE_MESSAGE_HELLO, WIRE_MESSAGE_LIST,
                                             WIRE_MESSAGE_ADOPT, WIRE_MESSAGE_SUBSCRIBE_EXIT};

    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        struct contract *contract = contract_new(*state);
        struct id id = id_new();
        struct reply reply;

        (void) play_add(played(contract), &id, RUN_STATE_RUNNING);
        played(contract)->die_on = steps[i];
        reply = contract_open(contract);
        expect_code(&reply, ERR_UNAVAILABLE);
        reply = ask_list(contract);
        expect_code(&reply, ERR_UNAVAILABLE);
        assert_int_equal(contract->losses, 0);
        contract_free(contract);
    }
}

static void opening_fails_when_it_is_refused(void **state)
{
    static const enum wire_number steps[] = {WIRE_MESSAGE_LIST, WIRE_MESSAGE_SUBSCRIBE_EXIT};

    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        struct contract *contract = contract_new(*state);
        struct reply reply;

        played(contract)->fail[steps[i]] = ERR_INTERNAL;
        reply = contract_open(contract);
        expect_code(&reply, ERR_INTERNAL);
        contract_free(contract);
    }
}

static void a_launcher_of_another_version_is_refused(void **state)
{
    struct contract *contract = contract_new(*state);
    struct reply reply;

    played(contract)->refuse_version = true;
    reply = contract_open(contract);
    expect_code(&reply, ERR_UPGRADE_REQUIRED);
    contract_free(contract);
}

static void the_provider_can_be_closed_unopened(void **state)
{
    struct contract *contract = contract_new(*state);

    contract_free(contract);
}

static void wrong_options_are_refused(void **state)
{
    struct loop loop;
    struct error err = ERROR_INIT;
    struct provider_local_options options = {.loop = &loop, .agents = "/a", .conversation = -1};

    (void) state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    options.stock = PROVIDER_LOCAL_STOCK_MAX + 1;
    assert_null(provider_local_new(&options, &err));
    assert_int_equal(err.code, ERR_INVALID);
    options.stock = 0;
    options.image = "no/name";
    assert_null(provider_local_new(&options, &err));
    assert_int_equal(err.code, ERR_INVALID);
    options.image = NULL; /* and -1 is no socket */
    assert_null(provider_local_new(&options, &err));
    loop_done(&loop);
}

/* The protocol allows 256 at once, the socket buffer less. */
static void more_requests_than_fit_wait_their_turn(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    size_t count = 1000, answered = 0;
    struct reply *replies = mem_alloc_array(count, sizeof(*replies));

    for (size_t i = 0; i < count; i++)
        provider_stats(contract->provider, &id, on_stats, &replies[i]);
    for (size_t i = 0; i < count; i++) {
        TURN_UNTIL(&contract->loop, replies[i].times);
        expect_ok(&replies[i]);
        answered++;
    }
    assert_int_equal(answered, count);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_STATS], count);
    free(replies);
}

static void too_many_requests_are_refused(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    size_t count = 256 + 1024 + 5, refused = 0;
    struct reply *replies = mem_alloc_array(count, sizeof(*replies));

    for (size_t i = 0; i < count; i++)
        provider_sockets(contract->provider, &id, 1, on_sockets, &replies[i]);
    for (size_t i = 0; i < count; i++) {
        TURN_UNTIL(&contract->loop, replies[i].times);
        if (replies[i].failed)
            expect_code(&replies[i], ERR_UNAVAILABLE);
        else
            (void) fd_close(replies[i].fds[0]);
        refused += replies[i].failed;
    }
    assert_int_equal(refused, 5);
    free(replies);
}

static void closing_answers_those_that_wait(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    size_t count = 600;
    struct reply *replies = mem_alloc_array(count, sizeof(*replies));
    AUTO(close) int output = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct reply reply = ask_plain(contract, provider_stop, &id);

    expect_ok(&reply);
    played(contract)->hold[WIRE_MESSAGE_KEEPER_JOB] = true;
    for (size_t i = 0; i < count; i++)
        provider_run_disk_job(contract->provider,
                              &(struct provider_disk_job){.kind = DISK_JOB_LIST,
                                                          .on.id = id,
                                                          .input = -EBADF,
                                                          .output = output,
                                                          .data = -EBADF},
                              on_job, &replies[i]);
    turn_for(contract, 2);
    contract_close(contract);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(replies[i].times, 1);
        expect_code(&replies[i], ERR_UNAVAILABLE);
    }
    free(replies);
}

#define PLAYED_TEST(name)                                                                          \
    {                                                                                              \
#name, name, contract_setup, contract_teardown, (void *) &played_backend                   \
    }
#define OWN_TEST(name)                                                                             \
    {                                                                                              \
#name, name, NULL, NULL, (void *) &played_backend                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAYED_TEST(failures_of_the_launcher_are_passed_on),
        PLAYED_TEST(what_is_gone_counts_as_destroyed),
        PLAYED_TEST(a_stop_that_fails_tells_the_exit_it_held_back),
        PLAYED_TEST(a_launcher_that_dies_is_lost_after_its_calls),
        PLAYED_TEST(a_launcher_that_talks_nonsense_is_lost),
        PLAYED_TEST(an_answer_to_nobody_is_nonsense),
        PLAYED_TEST(an_event_for_an_unknown_sandbox_is_ignored),
        PLAYED_TEST(more_requests_than_fit_wait_their_turn),
        PLAYED_TEST(too_many_requests_are_refused),
        PLAYED_TEST(closing_answers_those_that_wait),
        OWN_TEST(opening_fails_with_the_launcher),
        OWN_TEST(opening_fails_when_it_is_refused),
        OWN_TEST(a_launcher_of_another_version_is_refused),
        OWN_TEST(the_provider_can_be_closed_unopened),
        OWN_TEST(wrong_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
