#include "load/sandbox_life.h"

#include <string.h>

#include "base/auto.h"
#include "load/fail.h"
#include "load/samples.h"

#define MEGABYTE (UINT64_C(1) << 20)

static void go_on(struct sandbox_life *life)
{
    sandbox_life_step *next = life->next;

    life->next = NULL;
    next(life);
}

/* --- create ---------------------------------------------------------------------------------- */

static void created(void *context, const struct error *failure,
                    const struct provider_sandbox *sandbox)
{
    struct sandbox_life *life = context;

    if (failure)
        fail("create a sandbox: %s", failure->message);
    if (sandbox->unenforced)
        fail("limits are not enforced here: bits %#x", sandbox->unenforced);
    life->create_end = samples_now();
    life->was_ready = strcmp(life->id.text, sandbox->id.text) != 0;
    life->id = sandbox->id;
    go_on(life);
}

void sandbox_life_create(struct sandbox_life *life, struct sandbox_session *session, bool ready,
                         sandbox_life_step *next)
{
    struct provider_spec spec = {.hostname = "bench",
                                 .limits = {.memory_bytes = 256 * MEGABYTE,
                                            .pids = 64,
                                            .cpu_millis = 1000,
                                            .disk_bytes = 64 * MEGABYTE},
                                 .network = NETWORK_NONE,
                                 .keep_id = !ready};

    life->session = session;
    life->next = next;
    life->agent = NULL;
    life->create_begin = samples_now();
    spec.id = life->id = id_new();
    provider_create(session->provider, &spec, created, life);
}

/* --- exec ------------------------------------------------------------------------------------ */

static void answered(struct http_exchange *exchange)
{
    int status = http_exchange_head(exchange)->status;

    if (status != 200)
        fail("the agent answered %d", status);
}

/* The answer is short: it comes in one piece, or is taken for a failure. */
static void read_answer(struct http_exchange *exchange, const char *bytes, size_t length)
{
    static const char success[] = "\"exitCode\":0";
    struct sandbox_life *life = http_exchange_data(exchange);

    life->has_succeeded |= memmem(bytes, length, success, sizeof(success) - 1) != NULL;
}

static void command_ended(struct http_exchange *exchange)
{
    struct sandbox_life *life = http_exchange_data(exchange);

    if (!life->has_succeeded)
        fail("/bin/true failed in a sandbox");
    life->exec_end = samples_now();
    go_on(life);
}

static void exec_failed(struct http_exchange *exchange, const struct error *error)
{
    (void) exchange;
    fail("ask an agent: %s", error->message);
}

static void find_agent(struct sandbox_life *life)
{
    char address[PROVIDER_ADDRESS_MAX];
    struct error err = ERROR_INIT;

    if (provider_agent_address(life->session->provider, &life->id, address, &err) == 0)
        life->agent = http_origin_new(&life->session->loop, address, NULL, &err);
    if (!life->agent)
        fail("%s", err.message);
}

#define HEADER(key, text)                                                                          \
    {                                                                                              \
        .name = (key), .value = (text), .name_length = sizeof(key) - 1,                            \
        .value_length = sizeof(text) - 1                                                           \
    }

void sandbox_life_exec(struct sandbox_life *life, sandbox_life_step *next)
{
    static const char body[] = "{\"argv\":[\"/bin/true\"]}";
    static const struct http_header headers[] = {HEADER("Host", "agent"),
                                                 HEADER("Content-Type", "application/json")};
    static const struct http_exchange_events events = {.on_head = answered,
                                                       .on_body = read_answer,
                                                       .on_end = command_ended,
                                                       .on_failure = exec_failed};
    struct http_exchange_request request = {.method = "POST",
                                            .target = "/api/execute",
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = sizeof(body) - 1};
    struct http_exchange *exchange;

    life->next = next;
    life->has_succeeded = false;
    life->exec_begin = samples_now();
    if (!life->agent)
        find_agent(life);
    exchange = http_exchange_start(life->agent, &request, &events, life);
    http_exchange_write(exchange, body, sizeof(body) - 1);
    http_exchange_end(exchange);
}

/* --- destroy --------------------------------------------------------------------------------- */

static void destroyed(void *context, const struct error *failure)
{
    struct sandbox_life *life = context;

    if (failure)
        fail("destroy a sandbox: %s", failure->message);
    life->destroy_end = samples_now();
    go_on(life);
}

void sandbox_life_destroy(struct sandbox_life *life, sandbox_life_step *next)
{
    life->next = next;
    life->destroy_begin = samples_now();
    if (life->agent)
        http_origin_close(TAKE_PTR(life->agent), NULL, NULL);
    provider_destroy(life->session->provider, &life->id, destroyed, life);
}
