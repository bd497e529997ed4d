/* Conversations and their turns, with agents that do as they are told. */
#include "domain/conversation/conversation.h"
#include "domain/conversation/harness_testing.h"
#include "domain/snapshot/snapshot_testing.h"
#include "json/json_read.h"

/* A world with a sandbox, a conversation in it and an agent. */
struct conversation_talk {
    struct world *world;
    struct fake_harness fake;
    struct fake_memory memory;
    struct sandbox *sandbox;
    struct conversation *conversation;
};

static int talk_setup(void **state)
{
    struct conversation_talk *talk = mem_alloc(sizeof(*talk));

    talk->world = world_new(NULL);
    fake_harness_init(&talk->fake, talk->world, &talk->memory);
    world_open(talk->world);
    talk->sandbox = world_create(talk->world, "demo");
    talk->conversation = begin_conversation(talk->world, talk->sandbox);
    world_tick(talk->world);
    *state = talk;
    return 0;
}

static int talk_teardown(void **state)
{
    struct conversation_talk *talk = *state;

    world_free(talk->world);
    free(talk);
    return 0;
}

#define TALK_TEST(name) cmocka_unit_test_setup_teardown(name, talk_setup, talk_teardown)

static struct turn_counters counted(const struct conversation_talk *talk)
{
    struct turn_counters counters;

    turn_count(talk->world->domain, &counters);
    return counters;
}

static bool has_prompts(const struct conversation_talk *talk, int count)
{
    return talk->fake.prompts == count;
}

/* --- states ------------------------------------------------------------------------------------ */

static void every_state_meets_every_event(void **state)
{
    static const char *const expected[TURN_STATE_COUNT] = {
        /* what each of SENT ASKED ANSWERED DONE FAILED CANCELLED leads to: first letters */
        [TURN_QUEUED] = "r---fc", [TURN_RUNNING] = "-wrdfc", [TURN_WAITING] = "-wrdfc",
        [TURN_DONE] = "------",   [TURN_FAILED] = "------",  [TURN_CANCELLED] = "------",
    };

    (void) state;
    for (unsigned int at = 0; at < TURN_STATE_COUNT; at++)
        for (unsigned int event = 0; event < TURN_EVENT_COUNT; event++) {
            enum turn_state next = turn_state_after((enum turn_state) at, (enum turn_event) event);
            char letter = next == TURN_STATE_COUNT ? '-' : *turn_state_text(next);

            assert_int_equal(letter, expected[at][event]);
        }
    for (unsigned int at = 0; at < TURN_STATE_COUNT; at++)
        assert_int_equal(turn_state_from_text(turn_state_text((enum turn_state) at)), at);
    assert_int_equal(turn_state_from_text("asleep"), TURN_STATE_COUNT);
}

/* --- one turn ----------------------------------------------------------------------------------- */

static void a_turn_is_prompted_once_and_has_an_answer(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "hello");
    struct told_turn told;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    assert_string_equal(talk->memory.turns[0].input, "[{\"type\":\"text\",\"text\":\"hello\"}]");
    told = read_turn(talk->world, &id);
    assert_int_equal(told.state, TURN_RUNNING);
    assert_int_equal(talk->sandbox->uses, 1);
    fake_finish(&talk->fake);
    told = wait_turn(talk->world, &id);
    assert_int_equal(told.state, TURN_DONE);
    assert_string_equal(told.answer, "the answer");
    assert_int_equal(told.usage.cost_micros, 7);
    assert_int_equal(talk->sandbox->uses, 0);
    assert_string_equal(talk->conversation->agent_session, "ses_one");
    told = read_turn(talk->world, &id); /* its row */
    assert_int_equal(told.usage.output, 5);
    assert_true(told.usage.is_cost_known);
    assert_int_equal(counted(talk).done, 1);
    assert_int_equal(counted(talk).live, 0);
}

static void turns_wait_for_each_other_and_ten_at_most(void **state)
{
    struct conversation_talk *talk = *state;
    struct id ids[TURN_QUEUE_MAX + 1];
    struct told_turn told;

    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        ids[i] = begin_turn(talk->world, talk->conversation, "one of many");
    told = ask_turn(talk->world, talk->conversation, &(struct turn_spec){.text = "too many"});
    expect_code(&told.told, ERR_QUEUE_FULL);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        TURN_UNTIL(&talk->world->loop, has_prompts(talk, (int) i + 1));
        assert_string_equal(talk->memory.turns[i].turn.text, ids[i].text);
        fake_finish(&talk->fake);
        told = wait_turn(talk->world, &ids[i]);
        assert_int_equal(told.state, TURN_DONE);
    }
    begin_turn(talk->world, talk->conversation, "there is room again");
}

static void of_one_key_there_is_one_turn(void **state)
{
    struct conversation_talk *talk = *state;
    const struct turn_spec spec = {.text = "once", .key = "k1"};
    struct told_turn a = {.is_new = false}, b = {.is_new = false}, c;

    turn_create(talk->world->domain, &talk->world->caller, talk->conversation, &spec,
                on_turn_created, &a);
    turn_create(talk->world->domain, &talk->world->caller, talk->conversation, &spec,
                on_turn_created, &b);
    TURN_UNTIL(&talk->world->loop, a.told.times && b.told.times);
    expect_ok(&a.told);
    expect_ok(&b.told);
    assert_true(a.is_new && !b.is_new);
    assert_string_equal(a.id.text, b.id.text);
    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    c = ask_turn(talk->world, talk->conversation, &spec);
    assert_false(c.is_new);
    fake_finish(&talk->fake);
    wait_turn(talk->world, &a.id);
    c = ask_turn(talk->world, talk->conversation, &spec);
    expect_ok(&c.told);
    assert_false(c.is_new);
    assert_int_equal(c.state, TURN_DONE);
    assert_int_equal(talk->fake.prompts, 1);
}

static void bad_prompts_are_refused_with_the_reason(void **state)
{
    struct conversation_talk *talk = *state;
    static const struct turn_spec specs[] = {
        {.text = NULL},
        {.text = ""},
        {.text = "a", .parts = "[{}]"},
        {.parts = "{}"},
        {.parts = "[]"},
        {.parts = "[1]"},
        {.parts = "nonsense"},
        {.text = "\xff"},
        {.text = "a", .model = "m"},
        {.text = "a", .key = ""},
        {.text = "a", .timeout_ms = TURN_TIMEOUT_MAX_MS + 1},
    };

    for (size_t i = 0; i < ARRAY_COUNT(specs); i++) {
        struct told_turn told = ask_turn(talk->world, talk->conversation, &specs[i]);

        expect_code(&told.told, ERR_INVALID);
    }
    assert_int_equal(counted(talk).live, 0);
}

static void without_a_harness_there_is_no_conversation(void **state)
{
    struct conversation_talk *talk = *state;
    struct told_conversation told;

    talk->world->domain->options.harness = NULL;
    told = ask_conversation(talk->world, talk->sandbox, &(struct conversation_spec){.title = ""});
    expect_code(&told.told, ERR_UNAVAILABLE);
    talk->world->domain->options.harness = &talk->fake.harness;
}

static void a_turn_has_an_end_in_time(void **state)
{
    struct conversation_talk *talk = *state;
    const struct turn_spec spec = {.text = "slow", .timeout_ms = 5000};
    struct told_turn told = ask_turn(talk->world, talk->conversation, &spec);

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    world_pass(talk->world, 4);
    assert_int_equal(talk->fake.cancels, 0);
    world_pass(talk->world, 2);
    told = wait_turn(talk->world, &told.id);
    assert_int_equal(told.state, TURN_FAILED);
    assert_string_equal(told.code, "turn_timeout");
}

/* --- cancelled in every state ------------------------------------------------------------------- */

static void a_queued_turn_is_cancelled_without_a_prompt(void **state)
{
    struct conversation_talk *talk = *state;
    struct id first = begin_turn(talk->world, talk->conversation, "first");
    struct id second = begin_turn(talk->world, talk->conversation, "second");
    struct told_turn told = cancel_turn(talk->world, &second);

    assert_int_equal(told.state, TURN_CANCELLED);
    assert_string_equal(told.code, "cancelled");
    fake_finish(&talk->fake);
    assert_int_equal(wait_turn(talk->world, &first).state, TURN_DONE);
    assert_int_equal(talk->fake.prompts, 1);
}

static void one_that_waits_for_its_sandbox_is_cancelled(void **state)
{
    struct conversation_talk *talk = *state;
    struct told_turn told;
    struct id id;

    do_ask(talk->world, sandbox_sleep, talk->sandbox);
    provider_fake_hold(talk->world->provider, PROVIDER_CALL_THAW, true);
    id = begin_turn(talk->world, talk->conversation, "wake up");
    told = cancel_turn(talk->world, &id);
    assert_int_equal(told.state, TURN_CANCELLED);
    provider_fake_hold(talk->world->provider, PROVIDER_CALL_THAW, false);
    world_settle(talk->world);
    assert_int_equal(talk->fake.prompts, 0);
    assert_int_equal(talk->sandbox->uses, 0);
}

static void a_running_turn_is_cancelled_by_its_agent(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "much");
    struct told_turn told;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    told = cancel_turn(talk->world, &id);
    assert_int_equal(told.state, TURN_CANCELLED);
    assert_int_equal(talk->fake.cancels, 1);
    told = cancel_turn(talk->world, &id); /* again: as it is */
    assert_int_equal(told.state, TURN_CANCELLED);
}

static void an_agent_that_does_not_listen_is_left(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "deaf");
    struct told_turn told = {.is_new = false};

    talk->fake.is_deaf = true;
    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    turn_cancel(talk->world->domain, &talk->world->caller, NULL, id.text, on_turn, &told);
    world_pass(talk->world, TURN_CANCEL_PATIENCE_MS / 1000 - 1);
    assert_int_equal(told.told.times, 0);
    world_pass(talk->world, 2);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    assert_int_equal(told.state, TURN_CANCELLED);
    assert_int_equal(talk->fake.left, 1);
}

static void one_that_is_done_stays_done(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "quick");

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    fake_finish(&talk->fake);
    wait_turn(talk->world, &id);
    assert_int_equal(cancel_turn(talk->world, &id).state, TURN_DONE);
    assert_int_equal(talk->fake.cancels, 0);
}

/* --- what is asked ------------------------------------------------------------------------------ */

struct told_ask {
    struct told told;
    struct id id;
    enum ask_state state;
    size_t count;
    char reply[64];
};

static void on_ask(void *context, const struct error *failure, const struct ask *ask)
{
    struct told_ask *told = context;

    note_told(&told->told, failure, NULL);
    if (ask) {
        told->id = ask->id;
        told->state = ask->state;
        (void) snprintf(told->reply, sizeof(told->reply), "%s", ask->reply);
    }
}

static void on_asks(void *context, const struct error *failure, const struct ask *asks,
                    size_t count)
{
    struct told_ask *told = context;

    note_told(&told->told, failure, NULL);
    told->count = count;
    if (count) {
        told->id = asks[0].id;
        told->state = asks[0].state;
        (void) snprintf(told->reply, sizeof(told->reply), "%s", asks[0].reply);
    }
}

static struct told_ask list_asks(struct conversation_talk *talk, enum ask_state state)
{
    struct told_ask told = {.count = 0};

    ask_list(talk->world->domain, &talk->sandbox->id, NULL, state, 10, on_asks, &told);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    expect_ok(&told.told);
    return told;
}

/* A turn that waits for a permission. */
static struct id begin_waiting(struct conversation_talk *talk)
{
    struct id id = begin_turn(talk->world, talk->conversation, "may I");
    struct harness_turn *handle;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    handle = fake_last(&talk->fake);
    handle->listener->permission(handle->context, "per_1", "{\"permission\":\"bash\"}");
    assert_int_equal(read_turn(talk->world, &id).state, TURN_WAITING);
    return id;
}

static struct told_ask answer(struct conversation_talk *talk, const struct id *id,
                              const char *reply)
{
    struct told_ask told = {.count = 0};

    ask_answer_permission(talk->world->domain, &talk->world->caller, &talk->sandbox->id, id->text,
                          reply, NULL, on_ask, &told);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    return told;
}

static void a_permission_is_asked_and_given_once(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_waiting(talk);
    struct told_ask pending = list_asks(talk, ASK_PENDING), told;

    assert_int_equal(pending.count, 1);
    told = answer(talk, &pending.id, "perhaps");
    expect_code(&told.told, ERR_INVALID);
    told = answer(talk, &pending.id, "always");
    expect_ok(&told.told);
    assert_int_equal(told.state, ASK_ANSWERED);
    assert_string_equal(talk->memory.replies[0], "per_1 always -");
    assert_int_equal(read_turn(talk->world, &id).state, TURN_RUNNING);
    told = answer(talk, &pending.id, "reject");
    expect_code(&told.told, ERR_CONFLICT);
    assert_int_equal(list_asks(talk, ASK_PENDING).count, 0);
    fake_finish(&talk->fake);
    assert_int_equal(wait_turn(talk->world, &id).state, TURN_DONE);
}

static void an_answer_that_does_not_get_through_may_be_given_again(void **state)
{
    struct conversation_talk *talk = *state;
    struct told_ask pending, told;

    begin_waiting(talk);
    pending = list_asks(talk, ASK_PENDING);
    talk->fake.answer_failure = ERR_UPSTREAM;
    told = answer(talk, &pending.id, "once");
    expect_code(&told.told, ERR_UPSTREAM);
    talk->fake.answer_failure = ERR_NONE;
    told = answer(talk, &pending.id, "once");
    expect_ok(&told.told);
}

static void nobody_answers_and_it_is_rejected(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_waiting(talk);

    world_pass(talk->world, CONVERSATION_ASK_MS / 1000 - 1);
    assert_int_equal(talk->memory.reply_count, 0);
    assert_int_equal(talk->sandbox->status, SANDBOX_RUNNING);
    world_pass(talk->world, 2);
    world_settle(talk->world);
    assert_string_equal(talk->memory.replies[0], "per_1 reject nobody answered in time");
    assert_int_equal(list_asks(talk, ASK_EXPIRED).count, 1);
    assert_int_equal(read_turn(talk->world, &id).state, TURN_RUNNING);
}

static void one_that_is_answered_inside_waits_no_more(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_waiting(talk);
    struct harness_turn *handle = fake_last(&talk->fake);

    handle->listener->answered(handle->context, "per_1", "once");
    assert_int_equal(read_turn(talk->world, &id).state, TURN_RUNNING);
    world_settle(talk->world);
    assert_int_equal(list_asks(talk, ASK_RESOLVED).count, 1);
}

static void a_waiting_turn_is_cancelled_with_what_it_asked(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_waiting(talk);

    assert_int_equal(cancel_turn(talk->world, &id).state, TURN_CANCELLED);
    assert_int_equal(list_asks(talk, ASK_PENDING).count, 0);
    assert_int_equal(list_asks(talk, ASK_RESOLVED).count, 1);
}

static void questions_take_answers_or_are_refused(void **state)
{
    struct conversation_talk *talk = *state;
    struct harness_turn *handle;
    struct told_ask told = {.count = 0}, pending;

    begin_turn(talk->world, talk->conversation, "ask me");
    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    handle = fake_last(&talk->fake);
    handle->listener->question(handle->context, "que_1", "{\"questions\":[]}");
    world_settle(talk->world);
    pending = list_asks(talk, ASK_PENDING);
    told = answer(talk, &pending.id, "once");
    expect_code(&told.told, ERR_INVALID);
    told = (struct told_ask){.count = 0};
    ask_answer_question(talk->world->domain, &talk->world->caller, &talk->sandbox->id,
                        pending.id.text, "[[\"yes\"]]", on_ask, &told);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    expect_ok(&told.told);
    assert_string_equal(talk->memory.replies[0], "que_1 [[\"yes\"]]");
}

/* --- the log ------------------------------------------------------------------------------------ */

struct log_watcher {
    struct turn_follower *follower;
    struct text seen; /* "kind:part;" ... */
    int64_t last;
    int ended;
    bool has_reason, is_full;
};

static bool watch_each(void *context, const struct turn_item *item)
{
    struct log_watcher *watcher = context;
    AUTO(json) json_t *json = json_read(item->json, strlen(item->json), NULL, NULL);
    const char *delta = json_string_value(json_object_get(json, "delta"));
    const char *text = json_string_value(json_object_get(json, "text"));

    if (watcher->is_full)
        return false;
    assert_non_null(json);
    if (item->sequence) {
        assert_int_equal(item->sequence > watcher->last, 1);
        watcher->last = item->sequence;
    }
    text_format(&watcher->seen, "%s%s%s%s%s;", item->kind, delta ? "+" : "", delta ? delta : "",
                text && !delta && strncmp(item->kind, "t", 1) == 0 && *item->part ? "=" : "",
                text && *item->part && !delta ? text : "");
    return true;
}

static void watch_ended(void *context, const struct error *reason)
{
    struct log_watcher *watcher = context;

    watcher->ended++;
    watcher->has_reason = reason != NULL;
    watcher->follower = NULL;
}

static void watch(struct conversation_talk *talk, struct log_watcher *watcher,
                  const struct id *turn, int64_t after)
{
    struct error err = ERROR_INIT;
    const struct turn_filter filter = {.turn = turn, .after = after};

    *watcher = (struct log_watcher){.seen = TEXT_INIT(1 << 20)};
    watcher->follower = turn_follow(talk->world->domain, talk->conversation, &filter, watch_each,
                                    watch_ended, watcher, &err);
    assert_non_null(watcher->follower);
    world_settle(talk->world);
}

static void delta(struct conversation_talk *talk, const char *text)
{
    struct harness_turn *handle = fake_last(&talk->fake);

    handle->listener->delta(handle->context, "prt_1", "text", text, strlen(text));
}

static void part(struct conversation_talk *talk, const char *id, const char *json)
{
    struct harness_turn *handle = fake_last(&talk->fake);

    handle->listener->part(handle->context, id, json);
    world_settle(talk->world);
}

static void a_turn_is_told_from_its_beginning_to_its_end(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "tell me");
    struct log_watcher live, late;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    watch(talk, &live, &id, 0);
    assert_string_equal(text_string(&live.seen), "turn.queued;turn.started;");
    delta(talk, "Hel");
    delta(talk, "lo"); /* within 50 ms: told together with what comes */
    clock_manual_advance(&talk->world->clock, 60);
    delta(talk, " you");
    part(talk, "prt_1", "{\"type\":\"text\",\"text\":\"Hello you\"}");
    fake_finish(&talk->fake);
    TURN_UNTIL(&talk->world->loop, live.ended);
    assert_string_equal(text_string(&live.seen), "turn.queued;turn.started;text+Hel;text+lo you;"
                                                 "text=Hello you;turn.ended;");
    assert_false(live.has_reason);
    watch(talk, &late, &id, 2);
    TURN_UNTIL(&talk->world->loop, late.ended);
    assert_string_equal(text_string(&late.seen), "text=Hello you;turn.ended;");
    text_done(&live.seen);
    text_done(&late.seen);
}

static void whoever_comes_late_gets_the_text_so_far(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "tell me");
    struct log_watcher late, slow;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    watch(talk, &slow, &id, 0);
    slow.is_full = true;
    delta(talk, "One");
    clock_manual_advance(&talk->world->clock, 60);
    delta(talk, " two");
    watch(talk, &late, &id, -1);
    assert_string_equal(text_string(&late.seen), "text=One two;");
    slow.is_full = false;
    turn_follower_resume(slow.follower);
    world_settle(talk->world);
    assert_string_equal(text_string(&slow.seen), "turn.queued;turn.started;text=One two;");
    turn_follower_close(slow.follower);
    turn_follower_close(late.follower);
    text_done(&slow.seen);
    text_done(&late.seen);
}

static void what_a_tool_says_is_cut_and_says_so(void **state)
{
    struct conversation_talk *talk = *state;
    AUTO(text) struct text json = TEXT_INIT(1 << 20);
    struct log_watcher watcher;

    begin_turn(talk->world, talk->conversation, "run it");
    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    text_append(&json,
                "{\"type\":\"tool\",\"tool\":\"bash\",\"callID\":\"c\",\"state\":{\"status\":"
                "\"completed\",\"output\":\"");
    for (size_t i = 0; i < TURN_OUTPUT_MAX + 10; i++)
        text_append_char(&json, 'x');
    text_append(&json, "\"}}");
    part(talk, "prt_2", text_string(&json));
    watch(talk, &watcher, NULL, 2);
    assert_string_equal(text_string(&watcher.seen), "tool;");
    turn_follower_close(watcher.follower);
    text_done(&watcher.seen);
}

static void a_turn_has_so_many_parts_and_no_more(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "chatter");
    struct harness_turn *handle;
    struct live_turn *live;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    handle = fake_last(&talk->fake);
    for (int i = 0; i < TURN_ITEMS_MAX + 100; i++) {
        handle->listener->part(handle->context, "prt", "{\"type\":\"text\",\"text\":\"x\"}");
        if (i % 200 == 0)
            world_settle(talk->world);
    }
    live = turn_live(talk->world->domain, id.text);
    assert_int_equal(live->items, TURN_ITEMS_MAX);
    assert_true(live->is_truncated);
    fake_finish(&talk->fake);
    assert_int_equal(wait_turn(talk->world, &id).state, TURN_DONE);
}

/* --- the end of things -------------------------------------------------------------------------- */

static void without_its_sandbox_a_turn_is_lost_and_its_log_goes(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "doomed");
    struct id conversation = talk->conversation->id;
    struct told_turn told = {.is_new = false};

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    (void) turn_wait_begin(talk->world->domain, &talk->world->caller, id.text, on_turn, &told);
    world_settle(talk->world);
    do_ask(talk->world, sandbox_destroy, talk->sandbox);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    assert_int_equal(told.state, TURN_FAILED);
    assert_string_equal(told.code, "agent_lost");
    world_pass_quietly(talk->world, 3);
    assert_null(conversation_by_id(talk->world->domain, &conversation));
    told = read_turn(talk->world, &id);
    expect_code(&told.told, ERR_NOT_FOUND);
}

static void on_gone(void *context, const struct error *failure)
{
    note_told(context, failure, NULL);
}

static void a_conversation_is_deleted_with_its_log(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "soon over");
    struct told told = {.times = 0};
    struct id conversation = talk->conversation->id;

    conversation_delete(talk->world->domain, &talk->world->caller, talk->conversation, on_gone,
                        &told);
    TURN_UNTIL(&talk->world->loop, told.times);
    expect_code(&told, ERR_CONFLICT);
    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    fake_finish(&talk->fake);
    wait_turn(talk->world, &id);
    told = (struct told){.times = 0};
    conversation_delete(talk->world->domain, &talk->world->caller, talk->conversation, on_gone,
                        &told);
    TURN_UNTIL(&talk->world->loop, told.times);
    assert_false(told.failed);
    assert_null(conversation_find(talk->world->domain, &talk->world->caller, NULL,
                                  conversation.text, NULL));
    world_pass_quietly(talk->world, 3);
    assert_null(conversation_by_id(talk->world->domain, &conversation));
    assert_int_equal(
        shares_held(talk->world->shares, &talk->world->caller.owner, SHARE_CONVERSATIONS), 0);
}

static void an_end_that_cannot_be_kept_is_kept_later(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "full disk");
    struct told_turn told = {.is_new = false};

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    world_settle(talk->world);
    talk->world->refuse_all = true;
    fake_finish(&talk->fake);
    world_settle(talk->world);
    (void) turn_wait_begin(talk->world->domain, &talk->world->caller, id.text, on_turn, &told);
    world_pass_quietly(talk->world, 3);
    assert_int_equal(told.told.times, 0);
    talk->world->refuse_all = false;
    world_pass_quietly(talk->world, 2);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    assert_int_equal(told.state, TURN_DONE);
}

static void others_see_none_of_it(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "secret");
    const struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct told_turn told = {.is_new = false};

    assert_null(
        conversation_find(talk->world->domain, &other, NULL, talk->conversation->id.text, NULL));
    turn_read(talk->world->domain, &other, NULL, id.text, on_turn, &told);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    expect_code(&told.told, ERR_NOT_FOUND);
    told = (struct told_turn){.is_new = false};
    turn_cancel(talk->world->domain, &other, NULL, id.text, on_turn, &told);
    TURN_UNTIL(&talk->world->loop, told.told.times);
    expect_code(&told.told, ERR_NOT_FOUND);
}

/* --- restarts ----------------------------------------------------------------------------------- */

static void reopen(struct conversation_talk *talk)
{
    struct id sandbox = talk->sandbox->id, conversation = talk->conversation->id;

    world_close(talk->world);
    world_make_provider(talk->world);
    provider_fake_add(talk->world->provider, &sandbox, RUN_STATE_RUNNING, NULL);
    world_open(talk->world);
    talk->sandbox = sandbox_find(talk->world->domain, &talk->world->caller, sandbox.text, NULL);
    talk->conversation = conversation_by_id(talk->world->domain, &conversation);
    world_tick(talk->world);
    world_settle(talk->world);
}

static void a_running_turn_is_found_again(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "long");
    struct id next = begin_turn(talk->world, talk->conversation, "behind it");

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    reopen(talk);
    assert_int_equal(talk->fake.finds, 1);
    assert_int_equal(read_turn(talk->world, &id).state, TURN_RUNNING);
    assert_int_equal(talk->sandbox->uses, 1);
    fake_finish(&talk->fake);
    assert_int_equal(wait_turn(talk->world, &id).state, TURN_DONE);
    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 2));
    fake_finish(&talk->fake);
    assert_int_equal(wait_turn(talk->world, &next).state, TURN_DONE);
    assert_int_equal(talk->memory.turns[0].prompts, 1);
    assert_int_equal(talk->memory.turns[1].prompts, 1);
}

static void one_that_ended_meanwhile_has_its_answer(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "meanwhile");

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    talk->memory.turns[0].state = FAKE_DONE;
    reopen(talk);
    assert_string_equal(wait_turn(talk->world, &id).answer, "the answer");
}

static void one_whose_agent_is_gone_is_lost(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_turn(talk->world, talk->conversation, "lost");
    struct told_turn told;

    TURN_UNTIL(&talk->world->loop, has_prompts(talk, 1));
    talk->fake.is_gone = true;
    reopen(talk);
    told = wait_turn(talk->world, &id);
    assert_int_equal(told.state, TURN_FAILED);
    assert_string_equal(told.code, "agent_lost");
    assert_int_equal(talk->fake.prompts, 1);
}

static void what_was_asked_keeps_its_id(void **state)
{
    struct conversation_talk *talk = *state;
    struct id id = begin_waiting(talk);
    struct told_ask before = list_asks(talk, ASK_PENDING), after;
    struct harness_turn *handle;

    reopen(talk);
    handle = fake_last(&talk->fake);
    handle->listener->permission(handle->context, "per_1", "{\"permission\":\"bash\"}");
    world_settle(talk->world);
    after = list_asks(talk, ASK_PENDING);
    assert_int_equal(after.count, 1);
    assert_string_equal(before.id.text, after.id.text);
    assert_int_equal(read_turn(talk->world, &id).state, TURN_WAITING);
    after = answer(talk, &after.id, "once");
    expect_ok(&after.told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_meets_every_event),
        TALK_TEST(a_turn_is_prompted_once_and_has_an_answer),
        TALK_TEST(turns_wait_for_each_other_and_ten_at_most),
        TALK_TEST(of_one_key_there_is_one_turn),
        TALK_TEST(bad_prompts_are_refused_with_the_reason),
        TALK_TEST(without_a_harness_there_is_no_conversation),
        TALK_TEST(a_turn_has_an_end_in_time),
        TALK_TEST(a_queued_turn_is_cancelled_without_a_prompt),
        TALK_TEST(one_that_waits_for_its_sandbox_is_cancelled),
        TALK_TEST(a_running_turn_is_cancelled_by_its_agent),
        TALK_TEST(an_agent_that_does_not_listen_is_left),
        TALK_TEST(one_that_is_done_stays_done),
        TALK_TEST(a_permission_is_asked_and_given_once),
        TALK_TEST(an_answer_that_does_not_get_through_may_be_given_again),
        TALK_TEST(nobody_answers_and_it_is_rejected),
        TALK_TEST(one_that_is_answered_inside_waits_no_more),
        TALK_TEST(a_waiting_turn_is_cancelled_with_what_it_asked),
        TALK_TEST(questions_take_answers_or_are_refused),
        TALK_TEST(a_turn_is_told_from_its_beginning_to_its_end),
        TALK_TEST(whoever_comes_late_gets_the_text_so_far),
        TALK_TEST(what_a_tool_says_is_cut_and_says_so),
        TALK_TEST(a_turn_has_so_many_parts_and_no_more),
        TALK_TEST(without_its_sandbox_a_turn_is_lost_and_its_log_goes),
        TALK_TEST(a_conversation_is_deleted_with_its_log),
        TALK_TEST(an_end_that_cannot_be_kept_is_kept_later),
        TALK_TEST(others_see_none_of_it),
        TALK_TEST(a_running_turn_is_found_again),
        TALK_TEST(one_that_ended_meanwhile_has_its_answer),
        TALK_TEST(one_whose_agent_is_gone_is_lost),
        TALK_TEST(what_was_asked_keeps_its_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
