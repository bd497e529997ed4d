/* For tests of what is built on visits: a server with a table of its own, an agent of raw bytes,
 * and a domain that has one sandbox and writes down how often it is used. Included by test programs
 * only, which must not link the domain. */
#pragma once

#include "api/agent/agent_call.h"
#include "api/agent/agents.h"
#include "api/agent/visit.h"
#include "api/http/api.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandboxes.h"
#include "net/http/http_testing.h"

struct visit_bench {
    struct web web;
    struct api api; /* the context of requests */
    struct agents *agents;
    struct http_mount mount;
    struct caller caller;
    struct sandbox sandbox;
    char address[SYS_ADDRESS_TEXT_SIZE]; /* of the agent */
    int listener;
    int uses;                  /* open ones */
    struct sandbox_use *waits; /* a use that waits for a sandbox that sleeps */
    sandbox_created *created;  /* a create that is under way */
    void *created_context;
    bool is_there; /* the sandbox */
    bool is_asleep;
    bool agents_gone;
    struct text told;
};

/* The one there is: the fake domain below has no other way to it. */
static struct visit_bench *the_bench;

/* --- the domain ------------------------------------------------------------------------------ */

struct caller caller_system(void)
{
    return (struct caller){.scope = CALLER_SYSTEM};
}

bool caller_may_enter(const struct caller *caller)
{
    return caller->scope >= CALLER_SANDBOX;
}

struct share_asker domain_asker(const struct domain *domain, const struct caller *caller)
{
    (void) domain;
    return (struct share_asker){.owner = caller->owner};
}

struct sandbox *sandbox_find(struct domain *domain, const struct caller *caller,
                             const char *name_or_id, struct error *err)
{
    (void) domain;
    (void) caller;
    if (the_bench->is_there &&
        (strcmp(name_or_id, "demo") == 0 || strcmp(name_or_id, the_bench->sandbox.id.text) == 0))
        return &the_bench->sandbox;
    (void) error_set(err, ERR_NOT_FOUND, 0, "no such sandbox");
    return NULL;
}

int sandbox_agent_address(struct domain *domain, struct sandbox *sandbox,
                          char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err)
{
    (void) domain;
    (void) sandbox;
    (void) err;
    (void) snprintf(ret_address, PROVIDER_ADDRESS_MAX, "%s", the_bench->address);
    return 0;
}

void sandbox_create(struct domain *domain, const struct caller *caller,
                    const struct sandbox_spec *spec, sandbox_created *done, void *context)
{
    (void) domain;
    (void) caller;
    (void) spec;
    the_bench->created = done;
    the_bench->created_context = context;
}

void sandbox_use_begin(struct domain *domain, struct sandbox *sandbox, struct sandbox_use *use,
                       unsigned int flags,
                       void (*ready)(struct sandbox_use *use, const struct error *failure))
{
    struct error error;

    *use = (struct sandbox_use){.domain = domain, .sandbox = sandbox, .ready = ready};
    if (the_bench->is_asleep && (flags & SANDBOX_USE_QUIET)) {
        use->sandbox = NULL;
        (void) error_set(&error, ERR_CONFLICT, 0, "it sleeps");
        ready(use, &error);
        return;
    }
    the_bench->uses++;
    if (the_bench->is_asleep)
        the_bench->waits = use;
    else
        ready(use, NULL);
}

void sandbox_use_end(struct sandbox_use *use)
{
    if (!use->sandbox)
        return;
    use->sandbox = NULL;
    the_bench->uses--;
    if (the_bench->waits == use)
        the_bench->waits = NULL;
}

/* --- the bench ------------------------------------------------------------------------------- */

static inline struct visit_bench *bench_of(struct http_request *request)
{
    return CONTAINER_OF(request->context, struct visit_bench, api);
}

static inline int bench_authorize(struct http_request *request, void *data, struct error *err)
{
    (void) err;
    request->caller = &((struct visit_bench *) data)->caller;
    return 0;
}

/* `routes` are the test's own. */
static inline struct visit_bench *bench_new(const struct http_route *routes, size_t count)
{
    struct visit_bench *bench = test_calloc(1, sizeof(*bench));
    struct sys_address address;

    the_bench = bench;
    web_init(&bench->web);
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    bench->listener = sys_socket_listen(&address, 16, 0);
    assert_true(bench->listener >= 0);
    assert_int_equal(sys_socket_local_address(bench->listener, &address), 0);
    sys_address_format(&address, bench->address);
    bench->sandbox.id = id_new();
    bench->is_there = true;
    bench->caller.scope = CALLER_WRITE;
    bench->told = (struct text) TEXT_INIT(RAW_MAX);
    bench->agents = agents_new(&bench->web.loop, NULL);
    agents_set_domain(bench->agents, (struct domain *) bench); /* only handed around */
    bench->api = (struct api){.loop = &bench->web.loop,
                              .domain = (struct domain *) bench,
                              .agents = bench->agents,
                              .clock = clock_system()};
    bench->mount = (struct http_mount){
        .name = "test", .routes = routes, .route_count = count, .encode_error = error_body_write};
    bench->web.options.authorize = bench_authorize;
    bench->web.options.admit_data = bench;
    web_serve(&bench->web, &bench->mount);
    bench->mount.context = &bench->api;
    return bench;
}

static inline void bench_agents_gone(void *context)
{
    ((struct visit_bench *) context)->agents_gone = true;
}

static inline void bench_free(struct visit_bench *bench)
{
    agents_close(bench->agents, bench_agents_gone, bench);
    TURN_UNTIL(&bench->web.loop, bench->agents_gone);
    web_done(&bench->web);
    (void) fd_close(bench->listener);
    assert_int_equal(bench->uses, 0);
    text_done(&bench->told);
    test_free(bench);
}

static inline struct raw bench_client(struct visit_bench *bench, const char *bytes)
{
    struct raw raw = raw_connect(bench->web.port);

    raw_send(&raw, &bench->web.loop, bytes);
    return raw;
}

/* The next connection to the agent. */
static inline struct raw bench_agent(struct visit_bench *bench)
{
    int fd = -EAGAIN;

    TURN_UNTIL(&bench->web.loop, (fd = sys_socket_accept(bench->listener, NULL)) != -EAGAIN);
    assert_true(fd >= 0);
    return raw_take(fd);
}

#define HEARD(bench, raw, text) TURN_UNTIL(&(bench)->web.loop, raw_has((raw), (text)))
#define SAY(bench, raw, text)   raw_send((raw), &(bench)->web.loop, (text))
#define TOLD(bench, text)                                                                          \
    TURN_UNTIL(&(bench)->web.loop, strstr(text_string(&(bench)->told), (text)) != NULL)
