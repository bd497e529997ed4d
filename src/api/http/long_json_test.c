#include "api/http/long_json.h"
#include "net/net_testing.h"

struct json_heard {
    struct loop loop;
    int times;
    enum err_code code;
    int64_t last; /* of the list */
    size_t length;
};

static int setup(void **state)
{
    struct json_heard *heard = test_calloc(1, sizeof(*heard));

    assert_int_equal(loop_init(&heard->loop, NULL), 0);
    *state = heard;
    return 0;
}

static int teardown(void **state)
{
    struct json_heard *heard = *state;

    loop_run(&heard->loop);
    loop_done(&heard->loop);
    test_free(heard);
    return 0;
}

static void hear(void *context, struct text *text, json_t *json, const struct error *failure)
{
    struct json_heard *heard = context;

    heard->times++;
    heard->code = failure ? failure->code : ERR_NONE;
    heard->length = text->length;
    if (json)
        heard->last = json_integer_value(json_array_get(json, json_array_size(json) - 1));
}

static struct text numbers(int count, const char *end)
{
    struct text text = TEXT_INIT(SIZE_MAX / 2);

    text_append_char(&text, '[');
    for (int i = 0; i < count; i++)
        text_format(&text, "%d,", i);
    text_append(&text, end);
    return text;
}

static struct long_json *begin(struct json_heard *heard, int count, const char *end)
{
    static const struct json_limits limits = {
        .size = SIZE_MAX / 2, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX};
    struct text text = numbers(count, end);
    struct long_json *reading = long_json_read(&heard->loop, &text, &limits, hear, heard);

    assert_int_equal(text.length, 0);
    assert_int_equal(heard->times, 0); /* never from inside the call */
    return reading;
}

static void what_is_long_is_read(void **state)
{
    struct json_heard *heard = *state;

    (void) begin(heard, 50000, "4711]");
    TURN_UNTIL(&heard->loop, heard->times);
    assert_int_equal(heard->code, ERR_NONE);
    assert_int_equal(heard->last, 4711);
    assert_true(heard->length > 50000);
}

static void what_is_wrong_is_told(void **state)
{
    struct json_heard *heard = *state;

    (void) begin(heard, 50000, "x]");
    TURN_UNTIL(&heard->loop, heard->times);
    assert_int_equal(heard->code, ERR_INVALID);
    heard->times = 0;
    (void) begin(heard, JSON_VALUES_MAX + 1, "1]");
    TURN_UNTIL(&heard->loop, heard->times);
    assert_int_equal(heard->code, ERR_TOO_LARGE);
}

static void nobody_is_told_who_left(void **state)
{
    struct json_heard *heard = *state;

    long_json_drop(begin(heard, 50000, "1]"));
    loop_run(&heard->loop);
    assert_int_equal(heard->times, 0);
}

static void texts_and_values_make_it_long(void **state)
{
    AUTO(text) struct text many = numbers(5000, "1]"), few = numbers(100, "1]");
    AUTO(json) json_t *list = json_loads(text_string(&many), 0, NULL);
    AUTO(json) json_t *little = json_loads(text_string(&few), 0, NULL);
    AUTO(json) json_t *deep = json_object();
    AUTO(text) struct text text = TEXT_INIT(SIZE_MAX / 2);

    (void) state;
    assert_true(long_json_is_long(list));
    assert_false(long_json_is_long(little));
    assert_false(long_json_is_long(deep));
    while (text.length < LONG_JSON_MIN)
        text_append_char(&text, 'x');
    (void) json_object_set_new(deep, "file", json_pack("{s:s}", "content", text_string(&text)));
    assert_true(long_json_is_long(deep));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_long_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_told_who_left, setup, teardown),
        cmocka_unit_test(texts_and_values_make_it_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
