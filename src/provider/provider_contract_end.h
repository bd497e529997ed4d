/* What every provider promises about ends: of a sandbox by itself or because somebody asked for it,
 * and of the provider with calls open. Part of provider_contract.h, which includes it. */
#pragma once

#include <signal.h>

#include "provider/provider_testing.h"

static void an_exit_is_told_once(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), other = new_sandbox(contract);
    struct reply reply;

    contract->backend->kill(contract, &id);
    TURN_UNTIL(&contract->loop, contract->exit_count);
    turn_for(contract, 3);
    assert_int_equal(contract->exit_count, 1);
    assert_string_equal(contract->exits[0].id.text, id.text);
    assert_int_equal(contract->exits[0].ending.kind, ENDED_SIGNAL);
    assert_int_equal(contract->exits[0].ending.value, SIGKILL);
    expect_state(contract, &id, RUN_STATE_STOPPED);
    expect_state(contract, &other, RUN_STATE_RUNNING);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    turn_for(contract, 3);
    assert_int_equal(contract->exit_count, 1);
}

static void a_sandbox_that_ended_can_be_started(void **state)
{
    struct contract *contract = *state;
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_RESTART, "stopping");
    id = new_sandbox(contract);
    for (size_t i = 1; i <= 2; i++) {
        contract->backend->kill(contract, &id);
        TURN_UNTIL(&contract->loop, contract->exit_count == i);
        reply = ask_start(contract, &id);
        expect_ok(&reply);
        expect_state(contract, &id, RUN_STATE_RUNNING);
    }
}

static void an_end_that_was_asked_for_is_not_told(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), other = new_sandbox(contract);
    struct reply reply;

    if (can(contract, PROVIDER_RESTART)) {
        reply = ask_plain(contract, provider_stop, &id);
        expect_ok(&reply);
    }
    reply = ask_plain(contract, provider_destroy, &other);
    expect_ok(&reply);
    turn_for(contract, 3);
    assert_int_equal(contract->exit_count, 0);
}

static void closing_answers_open_calls(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), next = id_new();
    struct provider_spec spec = spec_of(contract, &next);
    struct reply replies[4] = {{.times = 0}};

    provider_create(contract->provider, &spec, on_sandbox, &replies[0]);
    provider_stop(contract->provider, &id, on_done, &replies[1]);
    provider_list(contract->provider, on_list, &replies[2]);
    provider_stats(contract->provider, &next, on_stats, &replies[3]);
    contract_close(contract);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++)
        assert_int_equal(replies[i].times, 1);
    for (size_t i = 0; i < 2; i++)
        assert_true(!replies[i].failed || replies[i].failure.code == ERR_UNAVAILABLE ||
                    replies[i].failure.code == ERR_NOT_IMPLEMENTED);
    assert_int_equal(contract->losses, 0);
}

static void close_inside(void *context, const struct error *failure)
{
    struct reply *reply = context;

    note(reply, failure);
    provider_close(TAKE_PTR(reply->close_from->provider), on_closed, &reply->closed);
}

static void an_answer_may_close_the_provider(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract), other = new_sandbox(contract);
    struct reply first = {.close_from = contract}, second = {.times = 0};

    provider_destroy(contract->provider, &id, close_inside, &first);
    provider_destroy(contract->provider, &other, on_done, &second);
    TURN_UNTIL(&contract->loop, first.closed);
    assert_int_equal(first.times, 1);
    assert_int_equal(second.times, 1);
}

static void opening_can_be_cut_short(void **state)
{
    struct contract *contract = contract_new(*state);
    struct provider_watcher watcher = {.exited = on_exit_told, .context = contract};
    struct reply reply = {.times = 0};

    provider_open(contract->provider, &watcher, on_done, &reply);
    contract_close(contract);
    assert_int_equal(reply.times, 1);
    contract_free(contract);
}
