/* The environment of a sandbox: told to an agent that the test plays. */
#include "net/http/http_server.h"
#include "provider/launcher_testing.h"

/* What the played agent does. */
enum manner { ANSWERS, REFUSES, SILENT, HANGS_UP };

struct agent {
    struct testing_folder folder;
    uv_poll_t poll; /* of the listener */
    int listener, connection;
    char path[128];
    enum manner manner;
    struct text got;
    bool closed;
};

struct agency {
    struct played_launcher launcher; /* first: played() finds it */
    struct agent agent;
};

static struct agent *agent_of(const struct contract *contract)
{
    return &((struct agency *) contract->more)->agent;
}

static struct provider *make_with_agents(struct contract *contract)
{
    struct agency *agency = mem_alloc(sizeof(*agency));
    struct provider_local_options options = {.loop = &contract->loop};
    struct error err = ERROR_INIT;

    (void) signal(SIGPIPE, SIG_IGN);
    contract->more = agency;
    testing_folder_make(&agency->agent.folder);
    agency->agent.listener = agency->agent.connection = -EBADF;
    agency->agent.got = (struct text) TEXT_INIT(1 << 20);
    options.agents = agency->agent.folder.path;
    options.conversation = play_start(&agency->launcher, &contract->loop);
    return provider_local_new(&options, &err);
}

static void on_agent_closed(uv_handle_t *handle)
{
    ((struct agent *) handle->data)->closed = true;
}

static void stop_agent(struct contract *contract)
{
    struct agent *agent = agent_of(contract);

    if (agent->listener < 0)
        return;
    uv_close((uv_handle_t *) &agent->poll, on_agent_closed);
    TURN_UNTIL(&contract->loop, agent->closed);
    agent->listener = fd_close(agent->listener);
    agent->connection = fd_close(agent->connection);
    assert_int_equal(unlink(agent->path), 0);
}

static void done_with_agents(struct contract *contract)
{
    struct agent *agent = agent_of(contract);

    stop_agent(contract);
    text_done(&agent->got);
    testing_folder_remove(&agent->folder, NULL, 0);
    done_played(contract);
}

static const struct contract_backend with_agents = {
    .make = make_with_agents, .kill = kill_played, .done = done_with_agents};

static void agent_reply(struct agent *agent)
{
    static const char *const replies[] = {
        [ANSWERS] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        [REFUSES] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    };

    if (agent->manner == SILENT)
        return;
    if (agent->manner != HANGS_UP)
        (void) send(agent->connection, replies[agent->manner], strlen(replies[agent->manner]), 0);
    agent->connection = fd_close(agent->connection);
}

/* Reads until the body's end, which is the first "}}": good enough for what we send. */
static void on_agent(uv_poll_t *poll, int status, int events)
{
    struct agent *agent = poll->data;
    char bytes[4096];
    ssize_t length;

    (void) status, (void) events;
    if (agent->connection < 0)
        agent->connection = accept(agent->listener, NULL, NULL);
    assert_true(agent->connection >= 0);
    while (agent->connection >= 0 &&
           (length = recv(agent->connection, bytes, sizeof(bytes), 0)) > 0) {
        text_append_bytes(&agent->got, bytes, (size_t) length);
        if (strstr(text_string(&agent->got), "}}") || agent->manner == HANGS_UP) {
            agent_reply(agent);
            return;
        }
    }
}

/* An agent that listens for this sandbox. */
static void start_agent(struct contract *contract, const struct id *id, enum manner manner)
{
    struct agent *agent = agent_of(contract);
    struct sys_address address;
    char text[160];

    agent->manner = manner;
    (void) snprintf(agent->path, sizeof(agent->path), "%s/%s.sock", agent->folder.path, id->text);
    (void) snprintf(text, sizeof(text), "unix:%s", agent->path);
    assert_int_equal(sys_address_parse(text, &address), 0);
    agent->listener = sys_socket_listen(&address, 4, 0600);
    assert_true(agent->listener >= 0);
    assert_int_equal(uv_poll_init(&contract->loop.uv, &agent->poll, agent->listener), 0);
    agent->poll.data = agent;
    (void) uv_poll_start(&agent->poll, UV_READABLE, on_agent);
}

static const struct provider_variable variables[] = {{"GREETING", "hello"}, {"EMPTY", ""}};

static struct provider_spec spec_with_environment(const struct contract *contract,
                                                  const struct id *id)
{
    struct provider_spec spec = spec_of(contract, id);

    spec.environment = variables;
    spec.environment_count = ARRAY_COUNT(variables);
    return spec;
}

static void the_agent_is_told_before_the_answer(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_with_environment(contract, &id);
    struct reply reply;
    const char *got;

    start_agent(contract, &id, ANSWERS);
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    got = text_string(&agent_of(contract)->got);
    assert_memory_equal(got, "PUT /burrow/environment HTTP/1.1\r\n", 34);
    assert_non_null(strstr(got, "\r\nHost: agent\r\n"));
    assert_non_null(strstr(got, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(got, "\r\n\r\n{\"env\":{\"GREETING\":\"hello\",\"EMPTY\":\"\"}}"));
    expect_state(contract, &id, RUN_STATE_RUNNING);
}

static void without_variables_the_agent_is_left_alone(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply;

    start_agent(contract, &id, ANSWERS);
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_int_equal(agent_of(contract)->got.length, 0);
}

/* Nothing is left of a sandbox whose agent did not take it. */
static void expect_failed_create(struct contract *contract, enum manner manner)
{
    struct id id = id_new();
    struct provider_spec spec = spec_with_environment(contract, &id);
    struct reply reply;

    start_agent(contract, &id, manner);
    reply = ask_create(contract, &spec);
    assert_true(reply.failed);
    assert_int_equal(reply.failure.code, ERR_UPSTREAM);
    assert_int_equal(played(contract)->count, 0);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
    turn_for(contract, 2);
    assert_int_equal(contract->exit_count, 0);
}

static void an_agent_that_refuses_fails_the_create(void **state)
{
    expect_failed_create(*state, REFUSES);
}

static void an_agent_that_hangs_up_fails_the_create(void **state)
{
    expect_failed_create(*state, HANGS_UP);
}

static void an_agent_that_is_not_there_fails_the_create(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_with_environment(contract, &id);
    struct reply reply = ask_create(contract, &spec);

    assert_true(reply.failed);
    assert_int_equal(played(contract)->count, 0);
}

static void a_wrong_environment_makes_no_sandbox(void **state)
{
    struct provider_variable wrong = {"A B", "x"};
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_with_environment(contract, &id);
    struct reply reply;

    spec.environment = &wrong;
    spec.environment_count = 1;
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_INVALID);
    assert_int_equal(played(contract)->asked[WIRE_MESSAGE_CREATE], 0);
}

static void a_start_that_fails_keeps_the_disk(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct provider_spec spec = spec_with_environment(contract, &id);
    struct reply reply = ask_plain(contract, provider_stop, &id);

    expect_ok(&reply);
    start_agent(contract, &id, REFUSES);
    reply = (struct reply){.times = 0};
    provider_start(contract->provider, &spec, on_sandbox, &reply);
    await(contract, &reply);
    expect_code(&reply, ERR_UPSTREAM);
    assert_int_equal(played(contract)->last_kill.kill.scope, WIRE_KILL_PROCESSES);
    expect_state(contract, &id, RUN_STATE_STOPPED);
    turn_for(contract, 2);
    assert_int_equal(contract->exit_count, 0);
}

/* The create of a sandbox whose agent has the request and says nothing. */
static void begin_silent_create(struct contract *contract, const struct id *id, struct reply *reply)
{
    struct provider_spec spec = spec_with_environment(contract, id);

    start_agent(contract, id, SILENT);
    provider_create(contract->provider, &spec, on_sandbox, reply);
    TURN_UNTIL(&contract->loop, agent_of(contract)->got.length);
    assert_int_equal(reply->times, 0);
}

static void a_sandbox_that_ends_meanwhile_fails_the_create(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct reply reply = {.times = 0};

    begin_silent_create(contract, &id, &reply);
    play_exit(played(contract), &id);
    await(contract, &reply);
    expect_code(&reply, ERR_UPSTREAM);
    assert_int_equal(played(contract)->count, 0);
    turn_for(contract, 2);
    assert_int_equal(contract->exit_count, 0);
}

static void closing_meanwhile_leaves_no_sandbox(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct reply reply = {.times = 0};

    begin_silent_create(contract, &id, &reply);
    contract_close(contract);
    assert_int_equal(reply.times, 1);
    expect_code(&reply, ERR_UNAVAILABLE);
    TURN_UNTIL(&contract->loop, played(contract)->count == 0);
}

static void losing_the_launcher_meanwhile_fails_the_create(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct reply reply = {.times = 0};

    begin_silent_create(contract, &id, &reply);
    play_end(played(contract));
    TURN_UNTIL(&contract->loop, contract->losses);
    assert_int_equal(reply.times, 1);
    expect_code(&reply, ERR_UNAVAILABLE);
}

#define AGENT_TEST(name)                                                                           \
    {                                                                                              \
#name, name, contract_setup, contract_teardown, (void *) &with_agents                      \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_TEST(the_agent_is_told_before_the_answer),
        AGENT_TEST(without_variables_the_agent_is_left_alone),
        AGENT_TEST(an_agent_that_refuses_fails_the_create),
        AGENT_TEST(an_agent_that_hangs_up_fails_the_create),
        AGENT_TEST(an_agent_that_is_not_there_fails_the_create),
        AGENT_TEST(a_wrong_environment_makes_no_sandbox),
        AGENT_TEST(a_start_that_fails_keeps_the_disk),
        AGENT_TEST(a_sandbox_that_ends_meanwhile_fails_the_create),
        AGENT_TEST(closing_meanwhile_leaves_no_sandbox),
        AGENT_TEST(losing_the_launcher_meanwhile_fails_the_create),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
