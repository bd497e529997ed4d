#include "agent/rpc/rpc_expect.h"

static void call_kept_event(struct kept_call *kept, const char *type, const char *json)
{
    call_event(kept->call, type, json, strlen(json));
}

/* --- calls ----------------------------------------------------------------------------------- */

static void arguments_are_named_and_unwrapped(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing,
                    "[\"push\",[\"pipeline\",0,[\"test\",\"echo\"],[[[1,[[2,[\"undefined\"]]]]],"
                    "\"s1\",{\"x\":[\"date\",7],\"u\":[\"undefined\"],\"a\":5,\"i\":[\"inf\"],"
                    "\"b\":[\"bigint\",\"12\"]},\"more\"]]]");
    expect_silence(testing);
    testing_receive(testing, "[\"pull\",1]");
    expect(testing, "[\"resolve\",1,{\"arguments\":{\"a\":[[1,[[2,null]]]],\"sessionId\":\"s1\","
                    "\"x\":\"1970-01-01T00:00:00.007Z\",\"i\":null,\"b\":12},\"session\":\"s1\"}]");
    testing_receive(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void an_undefined_session_is_the_default_one(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"echo\"],"
                             "[1,[\"undefined\"],null]]]");
    expect(testing, "[\"resolve\",1,{\"arguments\":{\"a\":1},\"session\":\"default\"}]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"echo\"],[1,\" \"]]]");
    expect_part(testing, "\"code\":\"VALIDATION_FAILED\"");
    expect_clean(testing);
}

static void errors_have_code_and_details(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"fail\"],[]]]");
    testing_receive(testing, "[\"pull\",1]");
    expect(testing, "[\"reject\",1,[\"error\",\"Error\",\"File not found: \\\"/nope\\\"\",null,"
                    "{\"code\":\"FILE_NOT_FOUND\",\"details\":{\"path\":\"/nope\",\"tried\":"
                    "[[1,[[2]]]]},\"httpStatus\":404,\"operation\":\"test.fail\"}]]");
    testing_receive(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void results_may_hold_what_json_lacks(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"list\"],[]]]");
    expect(testing, "[\"resolve\",1,[[1,[[2]],{\"at\":[\"date\",7],\"none\":[\"undefined\"]}]]]");
    expect_clean(testing);
}

static void what_is_not_there_is_rejected_and_the_session_goes_on(void **state)
{
    static const char *const pushes[] = {
        "[\"pipeline\",0,[\"test\",\"nothing\"],[[\"export\",-1]]]",
        "[\"pipeline\",0,[\"test\"]]",
        "[\"pipeline\",0]",
        "[\"pipeline\",0,[],[]]",
        "[\"pipeline\",0,[1,2],[]]",
        "[\"pipeline\",77,[\"x\"],[]]",
        "[\"pipeline\",1,[\"length\"]]",
        "[\"pipeline\",1,[\"then\"],[]]",
        "[\"pipeline\",0,[\"test\",\"echo\"],5]",
        "[\"remap\",0,[],[[\"import\",0]],[]]",
        "[\"import\",0]",
        "[\"nonsense\"]",
        "[]",
        "5",
        "null",
        "{}",
        "[\"pipeline\",0,[\"test\",\"echo\"],[[\"bytes\",\"AA\"]]]",
        "[\"pipeline\",0,[\"test\",\"echo\"],[[\"nonsense\"]]]",
        "[\"pipeline\",0,[\"test\",\"echo\"],[\"a\\u0000b\"]]",
        "[\"pipeline\",0,[\"test\",\"echo\"],[1,\"s\",\"no object\"]]",
        "[\"pipeline\",0,[\"test\",\"upload\"],[\"/f\",\"no stream\"]]",
        "[\"pipeline\",0,[\"test\",\"upload\"],[\"/f\",[\"readable\",1]]]",
        "[\"pipeline\",0,[\"test\",\"run\"],[\"1\",7]]",
    };
    AUTO(testing) struct testing *testing = testing_new();
    AUTO(text) struct text frame = TEXT_INIT(4096);

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(pushes); i++) {
        text_clear(&frame);
        text_format(&frame, "[\"push\",%s]", pushes[i]);
        testing_receive(testing, text_string(&frame));
        if (strstr(pushes[i], "export"))
            expect(testing, "[\"release\",-1,1]");
        text_clear(&frame);
        text_format(&frame, "[\"pull\",%zu]", i + 1);
        testing_receive(testing, text_string(&frame));
        expect_part(testing, "\"code\":");
    }
    for (size_t i = 0; i < ARRAY_COUNT(pushes); i++) {
        text_clear(&frame);
        text_format(&frame, "[\"release\",%zu,1]", i + 1);
        testing_receive(testing, text_string(&frame));
    }
    expect_clean(testing);
}

static void unused_references_are_released(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"echo\"],[1,\"s\",null,"
                             "{\"f\":[\"export\",-4],\"l\":[[[\"promise\",-5]]]}]]]");
    expect(testing, "[\"release\",-4,1]");
    expect(testing, "[\"release\",-5,1]");
    expect_part(testing, "[\"resolve\",1,");
    testing_receive(testing, "[\"resolve\",-5,[\"export\",-6]]");
    expect(testing, "[\"release\",-6,1]");
    testing_receive(testing, "[\"stream\",[\"remap\",0,[],[[\"export\",-7]],[]]]");
    expect(testing, "[\"release\",-7,1]");
    expect_part(testing, "[\"reject\",2,");
    expect_clean(testing);
}

static void an_answer_waits_until_it_is_pulled(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    testing_receive(testing, "[\"pull\",1]");
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    expect_silence(testing);
    testing_reply(testing_take(&testing->kept[1]), "{\"n\":2}");
    testing_reply(testing_take(&testing->kept[0]), "{\"n\":1}");
    testing_settle(testing);
    expect(testing, "[\"resolve\",1,{\"n\":1}]");
    expect_silence(testing);
    testing_receive(testing, "[\"pull\",2]");
    expect(testing, "[\"resolve\",2,{\"n\":2}]");
    testing_receive(testing, "[\"release\",2,1]");
    testing_receive(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void a_released_call_is_left_to_finish(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    testing_receive(testing, "[\"release\",1,1]");
    assert_false(testing_last(testing)->gone);
    testing_reply(testing_take(testing_last(testing)), "{}");
    testing_settle(testing);
    expect_clean(testing);
}

static void json_comes_in_pieces(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct call *call;

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"json\"],[]]]");
    call = testing_last(testing)->call;
    call_write(call, "{\"a\":[\"x[", 9);
    call_write(call, "\\\"]\",", 5);
    call_write(call, "[]]}", 4);
    call_end(testing_take(testing_last(testing)));
    testing_settle(testing);
    expect(testing, "[\"resolve\",1,{\"a\":[[\"x[\\\"]\",[[]]]]}]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"json\"],[]]]");
    call_write(testing_last(testing)->call, "{", 1);
    call_break(testing_take(testing_last(testing)));
    testing_settle(testing);
    expect_part(testing, "[\"reject\",2,");
    expect_clean(testing);
}

static void answers_wait_for_a_full_port(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing->full = true;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"echo\"],[1]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"echo\"],[2]]]");
    expect_silence(testing);
    assert_true(testing->held);
    testing->full = false;
    rpc_session_drained(testing->session);
    testing_settle(testing);
    assert_false(testing->held);
    expect_part(testing, "[\"resolve\",1,");
    expect_part(testing, "[\"resolve\",2,");
    expect_clean(testing);
}

static void answers_that_nobody_fetches_are_bounded(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct rpc_session_counts counts;

    (void) state;
    text_append(&testing->answer, "{\"x\":\"");
    memset(text_reserve(&testing->answer, 40 << 20), 'x', 40 << 20);
    text_commit(&testing->answer, 40 << 20);
    text_append(&testing->answer, "\"}");
    for (int i = 0; i < 5; i++)
        testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"big\"],[]]]");
    rpc_session_count(testing->session, &counts);
    assert_true(counts.kept <= RPC_KEPT_MAX);
    testing_receive(testing, "[\"pull\",5]");
    expect_part(testing, "does not fit");
    assert_false(testing->closed);
}

static void calls_are_bounded(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    for (int i = 0; i < RPC_CALLS_MAX; i++)
        testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    expect_part(testing, "Too many calls at once");
    rpc_session_end(testing->session);
    for (int i = 0; i < RPC_CALLS_MAX; i++)
        assert_true(testing->kept[i].gone);
}

static void results_that_nobody_releases_end_the_session(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    for (int i = 0; i < RPC_EXPORTS_MAX; i++)
        testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"echo\"],[]]]");
    assert_false(testing->closed);
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"echo\"],[]]]");
    assert_true(testing->closed);
    expect_part(testing, "[\"abort\",[\"error\",\"Error\",\"too many results");
}

static void broken_rules_end_the_session(void **state)
{
    static const char *const frames[] = {
        "",
        "nonsense",
        "{}",
        "[]",
        "[5]",
        "[\"hello\"]",
        "[\"push\"]",
        "[\"pull\"]",
        "[\"pull\",\"1\"]",
        "[\"pull\",1.5]",
        "[\"pull\",0]",
        "[\"pull\",99]",
        "[\"pull\",2]",
        "[\"release\",1]",
        "[\"release\",1,0]",
        "[\"release\",1,-1]",
        "[\"release\",1,2]",
        "[\"release\",2,2]",
        "[\"release\",0,1]",
        "[\"release\",99,1]",
        "[\"resolve\",1]",
        "[\"abort\"]",
        "[\"stream\"]",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(frames); i++) {
        AUTO(testing) struct testing *testing = testing_new();

        testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
        testing_receive(testing, "[\"pipe\"]");
        testing_receive(testing, frames[i]);
        if (!testing->closed)
            fail_msg("accepted %s", frames[i]);
        expect_part(testing, "[\"abort\",[\"error\",");
        assert_true(testing_last(testing)->gone);
        testing_receive(testing, "[\"pull\",1]");
        expect_silence(testing);
    }
}

static void the_peers_abort_ends_all_calls(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    testing_receive(testing, "[\"abort\",[\"error\",\"Error\",\"enough\"]]");
    assert_true(testing->closed);
    assert_true(testing_last(testing)->gone);
    expect_silence(testing);
}

/* --- callbacks ------------------------------------------------------------------------------- */

static void events_are_told_to_callbacks_in_order(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    testing_receive(testing,
                    "[\"push\",[\"pipeline\",0,[\"test\",\"run\"],[\"1\",{\"onStdout\":[\"export\","
                    "-1],\"onError\":[\"export\",-2],\"onOther\":[\"export\",-3]}]]]");
    expect(testing, "[\"release\",-3,1]");
    testing_receive(testing, "[\"pull\",1]");
    kept = testing_last(testing);
    call_kept_event(kept, "stdout", "{\"type\":\"stdout\",\"text\":\"hey\\n\"}");
    call_kept_event(kept, "result", "{\"type\":\"result\",\"text\":\"5\"}");
    call_kept_event(kept, "error",
                    "{\"type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"l\"]}");
    call_end(testing_take(kept));
    testing_settle(testing);
    expect(testing, "[\"push\",[\"pipeline\",-1,[],[{\"text\":\"hey\\n\",\"timestamp\":1000}]]]");
    expect(testing, "[\"pull\",1]");
    expect(testing, "[\"push\",[\"pipeline\",-2,[],[{\"name\":\"E\",\"message\":\"v\","
                    "\"traceback\":[[\"l\"]]}]]]");
    expect(testing, "[\"pull\",2]");
    expect_silence(testing);
    testing_receive(testing, "[\"resolve\",1,[\"undefined\"]]");
    expect(testing, "[\"release\",1,1]");
    expect_silence(testing);
    testing_receive(testing, "[\"resolve\",2,[\"export\",-9]]");
    expect(testing, "[\"release\",-9,1]");
    expect(testing, "[\"release\",2,1]");
    expect(testing, "[\"release\",-1,1]");
    expect(testing, "[\"release\",-2,1]");
    expect(testing, "[\"resolve\",1,[\"undefined\"]]");
    testing_receive(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void an_object_of_the_peers_may_be_the_callbacks(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    testing_receive(testing,
                    "[\"stream\",[\"pipeline\",0,[\"test\",\"run\"],[\"1\",[\"export\",-1]]]]");
    kept = testing_last(testing);
    call_kept_event(kept, "result", "{\"type\":\"result\",\"json\":[1]}");
    testing_settle(testing);
    expect(testing, "[\"push\",[\"pipeline\",-1,[\"onResult\"],[{\"json\":[[1]]}]]]");
    expect(testing, "[\"pull\",1]");
    call_end(testing_take(kept));
    testing_receive(testing, "[\"resolve\",1,null]");
    expect(testing, "[\"release\",1,1]");
    expect(testing, "[\"release\",-1,1]");
    expect(testing, "[\"resolve\",1,[\"undefined\"]]");
    expect_clean(testing);
}

static void a_callback_that_fails_ends_the_call(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"run\"],[\"1\",{\"onStdout\":"
                             "[\"export\",-1]}]]]");
    call_kept_event(testing_last(testing), "stdout", "{\"text\":\"a\"}");
    testing_settle(testing);
    expect_part(testing, "[\"push\"");
    expect(testing, "[\"pull\",1]");
    testing_receive(testing, "[\"reject\",1,[\"error\",\"Error\",\"no\"]]");
    assert_true(testing_last(testing)->gone);
    expect(testing, "[\"release\",1,1]");
    expect(testing, "[\"release\",-1,1]");
    expect_part(testing, "[\"reject\",1,[\"error\",\"Error\",\"A callback of the client failed\"");
    expect_clean(testing);
}

static void callbacks_hold_a_fast_producer_back(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    AUTO(text) struct text frame = TEXT_INIT(64);
    struct kept_call *kept;
    size_t told = 0, events = 0;

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"run\"],[\"1\",{\"onStdout\":"
                             "[\"export\",-1]}]]]");
    kept = testing_last(testing);
    for (; !call_is_full(kept->call); events++)
        call_kept_event(kept, "stdout", "{\"text\":\"a line of output\"}");
    testing_settle(testing);
    for (; told < events - 1; told++) {
        text_clear(&frame);
        text_format(&frame, "[\"resolve\",%zu,[\"undefined\"]]", told + 1);
        testing_receive(testing, text_string(&frame));
    }
    assert_int_equal(kept->drains, 1);
    call_end(testing_take(kept));
    text_clear(&frame);
    text_format(&frame, "[\"resolve\",%zu,[\"undefined\"]]", events);
    testing_receive(testing, text_string(&frame));
    testing->read = testing->frames.length - 64;
    while (testing_next(testing))
        ;
    expect_clean(testing);
}

static void callbacks_are_given_back_before_an_error(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"run\"],[[\"bytes\",\"\"],"
                             "{\"onStdout\":[\"export\",-1]}]]]");
    expect(testing, "[\"release\",-1,1]");
    expect_part(testing, "[\"reject\",1,");
    expect_clean(testing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_named_and_unwrapped),
        cmocka_unit_test(an_undefined_session_is_the_default_one),
        cmocka_unit_test(errors_have_code_and_details),
        cmocka_unit_test(results_may_hold_what_json_lacks),
        cmocka_unit_test(what_is_not_there_is_rejected_and_the_session_goes_on),
        cmocka_unit_test(unused_references_are_released),
        cmocka_unit_test(an_answer_waits_until_it_is_pulled),
        cmocka_unit_test(a_released_call_is_left_to_finish),
        cmocka_unit_test(json_comes_in_pieces),
        cmocka_unit_test(answers_wait_for_a_full_port),
        cmocka_unit_test(answers_that_nobody_fetches_are_bounded),
        cmocka_unit_test(calls_are_bounded),
        cmocka_unit_test(results_that_nobody_releases_end_the_session),
        cmocka_unit_test(broken_rules_end_the_session),
        cmocka_unit_test(the_peers_abort_ends_all_calls),
        cmocka_unit_test(events_are_told_to_callbacks_in_order),
        cmocka_unit_test(an_object_of_the_peers_may_be_the_callbacks),
        cmocka_unit_test(a_callback_that_fails_ends_the_call),
        cmocka_unit_test(callbacks_hold_a_fast_producer_back),
        cmocka_unit_test(callbacks_are_given_back_before_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
