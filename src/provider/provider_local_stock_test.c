/* The stock of the provider `local`, on a played launcher. */
#include "provider/launcher_testing.h"

#define STOCK 3

static struct provider *make_stocked(struct contract *contract)
{
    return make_played(contract, STOCK);
}

static const struct contract_backend stocked = {
    .make = make_stocked, .kill = kill_played, .done = done_played};

static struct provider_spec easy_spec(const struct contract *contract, const struct id *id)
{
    struct provider_spec spec = spec_of(contract, id);

    spec.keep_id = false;
    return spec;
}

static void await_stock(struct contract *contract)
{
    TURN_UNTIL(&contract->loop, provider_local_ready(contract->provider) == STOCK);
}

static void the_stock_is_filled_and_not_shown(void **state)
{
    struct contract *contract = *state;
    struct reply reply;
    struct id ready;

    await_stock(contract);
    turn_for(contract, 20);
    assert_int_equal(play_count(played(contract), RUN_STATE_POOLED), STOCK);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], STOCK);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
    ready = play_first(played(contract), RUN_STATE_POOLED);
    reply = ask_plain(contract, provider_destroy, &ready);
    expect_code(&reply, ERR_NOT_FOUND);
}

static void a_create_is_answered_from_stock(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = easy_spec(contract, &id);
    struct reply reply;
    const struct wire_plan *plan;

    await_stock(contract);
    spec.hostname = "mine";
    spec.limits.memory_bytes = 1 << 28;
    spec.network = NETWORK_NAT;
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_string_not_equal(reply.sandbox.id.text, id.text);
    assert_int_equal(reply.sandbox.unenforced, LIMIT_BIT(MEMORY));
    plan = &play_find(played(contract), &reply.sandbox.id)->plan;
    assert_string_equal(plan->hostname, "mine");
    assert_int_equal(plan->limits.memory_bytes, 1 << 28);
    assert_int_equal(plan->network, NETWORK_NAT);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ASSIGN], 1);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], STOCK);
    expect_state(contract, &reply.sandbox.id, RUN_STATE_RUNNING);
    await_stock(contract);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], STOCK + 1);
}

/* Limits with which the next one was made, that is handed out for these. */
static struct limits made_with(struct contract *contract, const struct limits *wanted)
{
    struct id id = id_new();
    struct provider_spec spec = easy_spec(contract, &id);
    struct reply reply;

    spec.limits = *wanted;
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    await_stock(contract);
    return play_find(played(contract), &reply.sandbox.id)->made.limits;
}

/* The youngest is handed out first. */
static void new_ones_have_the_limits_that_were_asked_for_last(void **state)
{
    static const struct limits usual = {
        .memory_bytes = 1 << 28, .pids = 64, .cpu_millis = 500, .disk_bytes = 1 << 26};
    static const struct limits larger = {.memory_bytes = 1 << 29};
    static const struct limits slow = {.memory_bytes = 1 << 28, .cpu_millis = 10};
    struct contract *contract = *state;
    struct limits made;

    await_stock(contract);
    made = made_with(contract, &usual);
    assert_int_equal(made.memory_bytes, 0); /* nobody had asked */
    made = made_with(contract, &larger);
    assert_int_equal(made.memory_bytes, usual.memory_bytes);
    assert_int_equal(made.pids, usual.pids);
    assert_int_equal(made.cpu_millis, usual.cpu_millis);
    assert_int_equal(made.disk_bytes, usual.disk_bytes);
    made = made_with(contract, &slow);
    assert_int_equal(made.memory_bytes, larger.memory_bytes);
    assert_int_equal(made.pids, 0);
    made = made_with(contract, &larger);
    assert_int_equal(made.cpu_millis, 0); /* not those: its start would take long */
}

/* Or no new one might ever start, for anybody. */
static void limits_with_which_none_starts_are_forgotten(void **state)
{
    static const struct limits tiny = {.memory_bytes = 4 << 20};
    struct contract *contract = *state;
    struct limits made;

    await_stock(contract);
    played(contract)->fail[WIRE_MESSAGE_CREATE] = ERR_INTERNAL;
    played(contract)->fails[WIRE_MESSAGE_CREATE] = 1;
    (void) made_with(contract, &tiny);
    made = made_with(contract, &tiny);
    assert_int_equal(made.memory_bytes, 0);
}

static void each_is_used_once(void **state)
{
    struct contract *contract = *state;
    struct id seen[12];

    for (size_t i = 0; i < ARRAY_COUNT(seen); i++) {
        struct id id = id_new();
        struct provider_spec spec = easy_spec(contract, &id);
        struct reply reply;

        if (i % 4 == 0) /* from a full stock, and from one that runs dry */
            await_stock(contract);
        reply = ask_create(contract, &spec);
        expect_ok(&reply);
        seen[i] = reply.sandbox.id;
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i].text, seen[j].text);
        reply = ask_plain(contract, provider_destroy, &seen[i]);
        expect_ok(&reply);
    }
}

/* Answered at once, whatever the stock has. */
static void a_burst_beyond_the_stock_is_served(void **state)
{
    struct contract *contract = *state;
    struct reply replies[STOCK * 2] = {{.times = 0}};

    await_stock(contract);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        struct id id = id_new();
        struct provider_spec spec = easy_spec(contract, &id);

        provider_create(contract->provider, &spec, on_sandbox, &replies[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        TURN_UNTIL(&contract->loop, replies[i].times);
        expect_ok(&replies[i]);
    }
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ASSIGN], STOCK);
    await_stock(contract);
}

static void specs_that_do_not_fit_are_made_anew(void **state)
{
    struct contract *contract = *state;
    struct provider_bind bind = {.source = "tools", .place = "/opt/tools"};
    struct id ids[] = {id_new(), id_new(), id_new()};
    struct provider_spec specs[ARRAY_COUNT(ids)];

    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        specs[i] = easy_spec(contract, &ids[i]);
    specs[0].keep_id = true;
    specs[1].image = "debian";
    specs[2].binds = &bind;
    specs[2].bind_count = 1;
    await_stock(contract);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        struct reply reply = ask_create(contract, &specs[i]);

        expect_ok(&reply);
        assert_string_equal(reply.sandbox.id.text, ids[i].text);
    }
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ASSIGN], 0);
    specs[1].image = PROVIDER_LOCAL_IMAGE; /* the default, by its name */
    assert_int_equal(ask_create(contract, &specs[1]).failed, true);
    specs[1].id = id_new();
    assert_int_equal(ask_create(contract, &specs[1]).failed, false);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ASSIGN], 1);
}

static void one_that_is_of_no_use_is_not_noticed(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = easy_spec(contract, &id);
    struct reply reply;

    await_stock(contract);
    played(contract)->fail[WIRE_MESSAGE_ASSIGN] = ERR_INTERNAL;
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_string_equal(reply.sandbox.id.text, id.text);
    await_stock(contract);
    assert_int_equal(play_count(played(contract), RUN_STATE_POOLED), STOCK);
    assert_int_equal(play_count(played(contract), RUN_STATE_RUNNING), 1);
    assert_int_equal(played(contract)->count, STOCK + 1);
}

static void one_that_ends_is_replaced_and_not_told(void **state)
{
    struct contract *contract = *state;
    struct id id;

    await_stock(contract);
    id = play_first(played(contract), RUN_STATE_POOLED);
    play_exit(played(contract), &id);
    TURN_UNTIL(&contract->loop, provider_local_ready(contract->provider) < STOCK);
    await_stock(contract);
    assert_int_equal(contract->exit_count, 0);
    assert_null(play_find(played(contract), &id));
    assert_int_equal(played(contract)->count, STOCK);
}

static void failures_make_it_try_less_often(void **state)
{
    struct contract *contract = *state;
    uint64_t began;

    await_stock(contract);
    played(contract)->fail[WIRE_MESSAGE_CREATE] = ERR_NO_SPACE;
    played(contract)->fails[WIRE_MESSAGE_CREATE] = 3;
    played(contract)->asked[WIRE_MESSAGE_CREATE] = 0;
    for (int i = 0; i < STOCK; i++) {
        struct id id = id_new();
        struct provider_spec spec = easy_spec(contract, &id);
        struct reply reply = ask_create(contract, &spec);

        expect_ok(&reply);
    }
    began = loop_now(&contract->loop);
    await_stock(contract);
    /* 100, 200 and 400 ms */
    assert_true(loop_now(&contract->loop) - began >= 650);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], 3 + STOCK);
}

static void a_busy_provider_fills_its_stock_too(void **state)
{
    struct contract *contract = *state;
    struct id id;
    struct reply held = {.times = 0};

    await_stock(contract);
    id = new_sandbox(contract);
    played(contract)->hold[WIRE_MESSAGE_STATS] = true;
    provider_stats(contract->provider, &id, on_stats, &held);
    {
        struct id next = id_new();
        struct provider_spec spec = easy_spec(contract, &next);
        struct reply reply = ask_create(contract, &spec);

        expect_ok(&reply);
    }
    await_stock(contract);
    assert_int_equal(held.times, 0);
    contract_close(contract);
    assert_int_equal(held.times, 1);
}

static void a_stock_of_earlier_times_is_used(void **state)
{
    struct contract *contract = contract_new(*state);
    struct reply reply;

    for (int i = 0; i < STOCK + 2; i++) {
        struct id id = id_new();
        struct played_sandbox *sandbox = play_add(played(contract), &id, RUN_STATE_POOLED);

        wire_text_set(sandbox->plan.image, sizeof(sandbox->plan.image), PROVIDER_LOCAL_IMAGE);
    }
    reply = contract_open(contract);
    expect_ok(&reply);
    assert_int_equal(provider_local_ready(contract->provider), STOCK);
    TURN_UNTIL(&contract->loop, played(contract)->count == STOCK);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], 0);
    contract_free(contract);
}

/* The image has changed since: the launcher refuses the assignment. */
static void a_stock_of_another_image_is_thrown_away(void **state)
{
    struct contract *contract = contract_new(*state);
    struct id old = id_new(), id = id_new();
    struct provider_spec spec = easy_spec(contract, &id);
    struct reply reply;

    wire_text_set(play_add(played(contract), &old, RUN_STATE_POOLED)->plan.image, WIRE_NAME_MAX + 1,
                  "other");
    reply = contract_open(contract);
    expect_ok(&reply);
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    TURN_UNTIL(&contract->loop, !play_find(played(contract), &old));
    contract_free(contract);
}

static void a_stopping_launcher_is_asked_for_no_more(void **state)
{
    struct contract *contract = *state;
    struct wire_message stopping = {.number = WIRE_MESSAGE_STOPPING, .stopping = {.reason = "now"}};
    struct id id = new_sandbox(contract), next = id_new();
    struct provider_spec spec = spec_of(contract, &next);
    struct reply reply;
    int asked;

    await_stock(contract);
    assert_int_equal(wire_conversation_tell(&played(contract)->conversation, &stopping, NULL), 0);
    turn_for(contract, 2);
    asked = played(contract)->asked[WIRE_MESSAGE_CREATE];
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_UNAVAILABLE);
    spec.keep_id = false;
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_UNAVAILABLE);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    turn_for(contract, 10);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], asked);
    assert_int_equal(contract->losses, 0);
}

static void a_drained_stock_stays_empty_until_it_is_filled(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = easy_spec(contract, &id);
    struct reply reply;

    await_stock(contract);
    provider_local_drain(contract->provider);
    assert_int_equal(provider_local_ready(contract->provider), 0);
    TURN_UNTIL(&contract->loop, play_count(played(contract), RUN_STATE_POOLED) == 0);
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_ASSIGN], 0);
    turn_for(contract, 100);
    assert_int_equal(provider_local_ready(contract->provider), 0);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], STOCK + 1);
    expect_state(contract, &reply.sandbox.id, RUN_STATE_RUNNING);
    provider_local_fill(contract->provider);
    await_stock(contract);
    assert_int_equal(contract->losses, 0);
}

static void one_that_is_being_made_for_a_drained_stock_is_given_up(void **state)
{
    struct contract *contract = *state;

    TURN_UNTIL(&contract->loop, played(contract)->asked[WIRE_MESSAGE_CREATE] == 1);
    provider_local_drain(contract->provider);
    turn_for(contract, 100);
    assert_int_equal(provider_local_ready(contract->provider), 0);
    assert_int_equal(play_count(played(contract), RUN_STATE_POOLED), 0);
}

#define STOCK_TEST(name)                                                                           \
    {                                                                                              \
#name, name, contract_setup, contract_teardown, (void *) &stocked                          \
    }
#define OWN_TEST(name)                                                                             \
    {                                                                                              \
#name, name, NULL, NULL, (void *) &stocked                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        STOCK_TEST(the_stock_is_filled_and_not_shown),
        STOCK_TEST(a_create_is_answered_from_stock),
        STOCK_TEST(new_ones_have_the_limits_that_were_asked_for_last),
        STOCK_TEST(limits_with_which_none_starts_are_forgotten),
        STOCK_TEST(each_is_used_once),
        STOCK_TEST(a_burst_beyond_the_stock_is_served),
        STOCK_TEST(specs_that_do_not_fit_are_made_anew),
        STOCK_TEST(one_that_is_of_no_use_is_not_noticed),
        STOCK_TEST(one_that_ends_is_replaced_and_not_told),
        STOCK_TEST(failures_make_it_try_less_often),
        STOCK_TEST(a_busy_provider_fills_its_stock_too),
        STOCK_TEST(a_stopping_launcher_is_asked_for_no_more),
        STOCK_TEST(a_drained_stock_stays_empty_until_it_is_filled),
        STOCK_TEST(one_that_is_being_made_for_a_drained_stock_is_given_up),
        OWN_TEST(a_stock_of_earlier_times_is_used),
        OWN_TEST(a_stock_of_another_image_is_thrown_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
