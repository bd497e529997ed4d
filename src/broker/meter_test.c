#include "broker/broker_testing.h"
#include "broker/meter.h"

static const char EVENTS[] = "text/event-stream; charset=utf-8";

struct told_usage {
    uint64_t input, output, reasoning, cache_read, cache_write;
    const char *model;
    bool is_complete;
};

static struct broker_usage measure(enum broker_format format, const char *type, const char *bytes,
                                   size_t step, bool *ret_is_complete)
{
    struct meter meter;
    struct broker_usage usage;

    meter_init(&meter, format, type);
    for (size_t at = 0, length = strlen(bytes); at < length;) {
        bool is_news;
        size_t piece = length - at < step ? length - at : step;

        at += meter_feed(&meter, bytes + at, piece, &is_news);
    }
    meter_finish(&meter);
    meter_usage(&meter, &usage);
    *ret_is_complete = meter_is_complete(&meter);
    return usage;
}

static void expect(enum broker_format format, const char *type, const char *bytes,
                   const struct told_usage *expected)
{
    for (size_t step = 1; step <= strlen(bytes); step++) {
        bool is_complete;
        struct broker_usage usage = measure(format, type, bytes, step, &is_complete);

        assert_int_equal(usage.input, expected->input);
        assert_int_equal(usage.output, expected->output);
        assert_int_equal(usage.reasoning, expected->reasoning);
        assert_int_equal(usage.cache_read, expected->cache_read);
        assert_int_equal(usage.cache_write, expected->cache_write);
        assert_string_equal(usage.model, expected->model);
        assert_int_equal(is_complete, expected->is_complete);
        assert_true(usage.is_known);
    }
}

static void anthropic_tells_its_input_first_and_its_output_last(void **state)
{
    (void) state;
    expect(BROKER_ANTHROPIC, EVENTS,
           "event: message_start\n"
           "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":"
           "{\"input_tokens\":11,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":5,"
           "\"output_tokens\":1}}}\n\n"
           "event: ping\ndata: {\"type\":\"ping\"}\n\n"
           "event: message_delta\r\ndata: {\"usage\":{\"output_tokens\":4}}\r\n\r\n"
           "event: message_delta\rdata: {\"usage\":{\"output_tokens\":9}}\r\r",
           &(struct told_usage){11, 9, 0, 5, 3, "claude-x", true});
}

static void what_a_tool_is_given_is_no_usage(void **state)
{
    (void) state;
    expect(BROKER_ANTHROPIC, "application/json",
           "{\"model\":\"m\",\"content\":[{\"input\":{\"usage\":{\"output_tokens\":999},\"model\":"
           "\"no\"}}],\"usage\":{\"input_tokens\":2,\"output_tokens\":3}}",
           &(struct told_usage){2, 3, 0, 0, 0, "m", true});
}

static void responses_have_cache_and_reasoning_inside(void **state)
{
    (void) state;
    expect(BROKER_OPENAI_RESPONSES, EVENTS,
           "data: {\"response\":{\"model\":\"gpt\",\"usage\":null}}\n\n"
           "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n"
           "data: {\"response\":{\"model\":\"gpt\",\"usage\":{\"input_tokens\":16,"
           "\"input_tokens_details\":{\"cached_tokens\":5},\"output_tokens\":10,"
           "\"output_tokens_details\":{\"reasoning_tokens\":3}}}}\n\n",
           &(struct told_usage){11, 7, 3, 5, 0, "gpt", true});
}

static void chat_tells_it_in_its_last_chunk(void **state)
{
    (void) state;
    expect(BROKER_OPENAI_CHAT, EVENTS,
           "data: "
           "{\"model\":\"gpt\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n"
           "data: {\"model\":\"gpt\",\"choices\":[],\"usage\":{\"prompt_tokens\":16,"
           "\"completion_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":5},"
           "\"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n\ndata: [DONE]\n\n",
           &(struct told_usage){11, 7, 3, 5, 0, "gpt", true});
}

static void google_has_thoughts_beside_candidates(void **state)
{
    static const char chunk[] =
        "{\"candidates\":[],\"modelVersion\":\"gemini\",\"usageMetadata\":{\"promptTokenCount\":16,"
        "\"cachedContentTokenCount\":5,\"candidatesTokenCount\":7,\"thoughtsTokenCount\":3,"
        "\"toolUsePromptTokenCount\":2}}";
    AUTO(text) struct text list = TEXT_INIT(4096);

    (void) state;
    text_format(&list, "[%s,\n%s]", chunk, chunk);
    expect(BROKER_GOOGLE, "application/json", text_string(&list),
           &(struct told_usage){13, 7, 3, 5, 0, "gemini", true});
}

static void embeddings_have_only_input(void **state)
{
    (void) state;
    expect(BROKER_OPENAI_OTHER, "application/json",
           "{\"model\":\"e\",\"usage\":{\"prompt_tokens\":3,\"total_tokens\":3}}",
           &(struct told_usage){3, 0, 0, 0, 0, "e", true});
}

static void a_stream_without_numbers_costs_a_token_an_event(void **state)
{
    (void) state;
    expect(BROKER_OPENAI_CHAT, EVENTS,
           ": comment\n\ndata: {\"model\":\"m\"}\n\ndata: {\"a\":1}\ndata: {\"b\":2}\n\nid: "
           "7\n\ndata: x",
           &(struct told_usage){0, 3, 0, 0, 0, "m", false});
}

static void absurd_numbers_are_none(void **state)
{
    struct broker_usage usage;
    bool is_complete;

    (void) state;
    usage = measure(BROKER_ANTHROPIC, NULL,
                    "{\"usage\":{\"input_tokens\":99999999999999999999,\"output_tokens\":-4,"
                    "\"cache_read_input_tokens\":1e9}}",
                    7, &is_complete);
    assert_false(usage.is_known);
    assert_int_equal(usage.input + usage.output + usage.cache_read, 0);
}

static void feeding_stops_behind_an_event_that_says_something_new(void **state)
{
    static const char bytes[] =
        "data: {\"usage\":{\"output_tokens\":4}}\r\n\r\ndata: {\"a\":1}\r\n\r\n";
    struct meter meter;
    bool is_news;
    size_t used;

    (void) state;
    meter_init(&meter, BROKER_ANTHROPIC, EVENTS);
    used = meter_feed(&meter, bytes, strlen(bytes), &is_news);
    assert_true(is_news);
    assert_memory_equal(bytes + used, "data: {\"a\"", 10);
    assert_int_equal(meter_feed(&meter, bytes + used, strlen(bytes) - used, &is_news),
                     strlen(bytes) - used);
    assert_false(is_news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anthropic_tells_its_input_first_and_its_output_last),
        cmocka_unit_test(what_a_tool_is_given_is_no_usage),
        cmocka_unit_test(responses_have_cache_and_reasoning_inside),
        cmocka_unit_test(chat_tells_it_in_its_last_chunk),
        cmocka_unit_test(google_has_thoughts_beside_candidates),
        cmocka_unit_test(embeddings_have_only_input),
        cmocka_unit_test(a_stream_without_numbers_costs_a_token_an_event),
        cmocka_unit_test(absurd_numbers_are_none),
        cmocka_unit_test(feeding_stops_behind_an_event_that_says_something_new),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
