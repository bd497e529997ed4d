#include "broker/broker_testing.h"
#include "broker/refusal.h"

static const struct error denied = {.code = ERR_FORBIDDEN, .message = "no \"way\""};
static const struct error used_up = {.code = ERR_QUOTA, .message = "used up"};

static void each_api_has_its_own_shape(void **state)
{
    static const struct {
        enum broker_format format;
        const char *body, *event;
    } rows[] = {
        {BROKER_UNMETERED,
         "{\"error\":{\"type\":\"egress_denied\",\"message\":\"no \\\"way\\\"\"}}",
         "data: {\"error\":{\"type\":\"t\",\"message\":\"used up\"}}\n\n"},
        {BROKER_ANTHROPIC,
         "{\"type\":\"error\",\"error\":{\"type\":\"egress_denied\",\"message\":\"no "
         "\\\"way\\\"\"}}",
         "event: error\ndata: "
         "{\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"used up\"}}\n\n"},
        {BROKER_OPENAI_RESPONSES,
         "{\"error\":{\"type\":\"egress_denied\",\"message\":\"no "
         "\\\"way\\\"\",\"param\":null,\"code\":\"egress_denied\"}}",
         "event: error\ndata: {\"type\":\"error\",\"code\":\"t\",\"message\":\"used "
         "up\",\"param\":null}\n\n"},
        {BROKER_GOOGLE,
         "{\"error\":{\"code\":403,\"message\":\"no "
         "\\\"way\\\"\",\"status\":\"PERMISSION_DENIED\",\"details\":[{\"reason\":\"egress_"
         "denied\"}]}}",
         "data: {\"error\":{\"code\":429,\"message\":\"used "
         "up\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"reason\":\"t\"}]}}\n\n"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(text) struct text out = TEXT_INIT(4096);

        refusal_write(&out, rows[i].format, &denied, "egress_denied");
        assert_string_equal(text_string(&out), rows[i].body);
        text_clear(&out);
        refusal_write_event(&out, rows[i].format, &used_up, "t");
        assert_string_equal(text_string(&out), rows[i].event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_api_has_its_own_shape)};

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
