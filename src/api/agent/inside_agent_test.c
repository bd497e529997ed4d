/* What the domain asks of agents. */
#include "api/agent/visit_testing.h"

#define HOST "Host: a.test\r\n"
#define JSON "Content-Type: application/json\r\n"

static void replied(struct visit *visit, const struct agent_reply *reply,
                    const struct error *failure)
{
    (void) reply;
    http_reply_error(visit->request, failure);
}

static void ask(struct visit *visit)
{
    struct agent_request request = {.path = "/api/ask", .body = "{\"q\":1}", .length = 7};

    agent_call(visit, &request, replied);
}

static void get_ask(struct http_request *request)
{
    visit_begin(request, "demo", 0, ask);
}

static const struct http_route routes[] = {{"GET", "/ask", get_ask, .summary = "Ask"}};

static int setup(void **state)
{
    *state = bench_new(routes, ARRAY_COUNT(routes));
    return 0;
}

static int teardown(void **state)
{
    bench_free(*state);
    return 0;
}

static void activity_told(void *context, const struct error *failure,
                          const struct inside_activity *activity)
{
    struct visit_bench *bench = context;

    text_format(&bench->told, "%s %d %d;", failure ? error_code_text(failure->code) : "ok",
                activity ? activity->is_busy : -1, activity ? (int) activity->idle_ms : -1);
}

static void done_told(void *context, const struct error *failure)
{
    activity_told(context, failure, NULL);
}

static void text_told(void *context, const struct error *failure, const char *text)
{
    struct visit_bench *bench = context;

    text_format(&bench->told, "%s %s;", failure ? error_code_text(failure->code) : "ok",
                text ? text : "-");
}

static void answer(struct visit_bench *bench, struct raw *agent, const char *heard,
                   const char *body)
{
    char head[128];

    HEARD(bench, agent, heard);
    text_clear(&agent->got);
    (void) snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n" JSON "Content-Length: %zu\r\n\r\n",
                    strlen(body));
    SAY(bench, agent, head);
    SAY(bench, agent, body);
}

static void the_domain_learns_what_goes_on_inside(void **state)
{
    struct visit_bench *bench = *state;
    const struct inside *inside = agents_inside(bench->agents);
    const struct id *id = &bench->sandbox.id;
    struct raw agent;

    inside->activity(inside->self, id, activity_told, bench);
    agent = bench_agent(bench);
    answer(bench, &agent, "GET /burrow/activity ", "{\"running\":0,\"idleMs\":70}");
    TOLD(bench, "ok 0 70;");
    inside->activity(inside->self, id, activity_told, bench);
    answer(bench, &agent, "GET /burrow/activity ", "{\"running\":2,\"idleMs\":0}");
    TOLD(bench, "ok 1 0;");
    inside->activity(inside->self, id, activity_told, bench);
    answer(bench, &agent, "GET /burrow/activity ", "{\"running\":-2,\"idleMs\":0}");
    TOLD(bench, "upstream_failed -1 -1;");
    text_clear(&bench->told);
    inside->quiesce(inside->self, id, done_told, bench);
    answer(bench, &agent, "POST /burrow/quiesce ", "{\"quiet\":true}");
    TOLD(bench, "ok -1 -1;");
    inside->quiesce(inside->self, id, done_told, bench);
    answer(bench, &agent, "POST /burrow/quiesce ", "{\"quiet\":false}");
    TOLD(bench, "conflict -1 -1;");
    inside->save(inside->self, id, text_told, bench);
    answer(bench, &agent, "GET /burrow/sessions ",
           "{\"success\":true,\"sessions\":[{\"id\":\"a\"}]}");
    TOLD(bench, "ok {\"sessions\":[{\"id\":\"a\"}]};");
    inside->set_environment(inside->self, id, "{\"A\":\"b\"}", done_told, bench);
    answer(bench, &agent, "{\"replace\":true,\"env\":{\"A\":\"b\"}}", "{}");
    raw_close(&agent);
}

static void a_sandbox_that_is_forgotten_fails_what_is_asked(void **state)
{
    struct visit_bench *bench = *state;
    const struct inside *inside = agents_inside(bench->agents);
    struct raw raw = bench_client(bench, "GET /ask HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"q\":1}");
    inside->activity(inside->self, &bench->sandbox.id, activity_told, bench);
    inside->forget(inside->self, &bench->sandbox.id);
    TOLD(bench, "cancelled -1 -1;");
    HEARD(bench, &raw, "\"code\":\"upstream_failed\",\"message\":\"the sandbox was stopped\"");
    bench->is_there = false;
    inside->activity(inside->self, &bench->sandbox.id, activity_told, bench);
    assert_false(strstr(text_string(&bench->told), "not_found"));
    TOLD(bench, "not_found -1 -1;");
    raw_close(&raw);
    raw_close(&agent);
}

static void closing_answers_what_is_asked(void **state)
{
    struct visit_bench *bench = *state;
    const struct inside *inside = agents_inside(bench->agents);

    inside->activity(inside->self, &bench->sandbox.id, activity_told, bench);
    inside->quiesce(inside->self, &bench->sandbox.id, done_told, bench);
    agents_close(bench->agents, bench_agents_gone, bench);
    TURN_UNTIL(&bench->web.loop, bench->agents_gone);
    assert_string_equal(text_string(&bench->told), "unavailable -1 -1;unavailable -1 -1;");
    bench->agents = agents_new(&bench->web.loop, NULL);
    bench->agents_gone = false;
}

int main(void)
{
#define INSIDE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        INSIDE_TEST(the_domain_learns_what_goes_on_inside),
        INSIDE_TEST(a_sandbox_that_is_forgotten_fails_what_is_asked),
        INSIDE_TEST(closing_answers_what_is_asked),
    };

    return cmocka_run_group_tests_name("inside_agent", tests, NULL, NULL);
}
