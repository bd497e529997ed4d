/* Create and start:
 *
 *     one in stock fits ──► assign ──┬──────────────► environment? ──► answered
 *     else ──────────────► create ───┘  assign fails:     │ fails: the sandbox is ended first
 *     start ─► create on its disk       create instead    ▼
 *                                                       failure */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "provider/provider_local_internal.h"
#include "provider/provider_local_plan.h"

/* An agent that was just started answers at once; one that does not is broken. */
#define ENVIRONMENT_TIMEOUT_MS 10000

struct creation {
    struct list link; /* of local->creations, while it waits for the agent */
    struct local *local;
    struct provider_call *call;
    struct id wanted;      /* the spec's id */
    struct wire_plan plan; /* its id is the sandbox's */
    char *environment;     /* owned: what the agent is sent; NULL: nothing */
    struct http_origin *agent;
    struct http_exchange *exchange; /* NULL: none is under way */
    struct error failure;           /* told once the sandbox is gone */
};

static void creation_end(struct creation *creation, const struct error *failure)
{
    provider_call_answer(creation->call, failure); /* the failure may be the creation's own */
    list_remove(&creation->link);
    free(creation->environment);
    free(creation);
}

/* --- the environment ------------------------------------------------------------------------- */

static void on_origin_closed(struct http_origin *origin, void *data)
{
    (void) origin;
    local_handle_closed(data);
}

static void leave_agent(struct creation *creation)
{
    list_remove(&creation->link);
    creation->exchange = NULL;
    http_origin_close(TAKE_PTR(creation->agent), on_origin_closed, creation->local);
}

static void on_taken_back(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct creation *creation = context;

    (void) reply;
    if (failure && failure->code != ERR_NOT_FOUND)
        LOG_ERROR(creation->local->log, "a sandbox that failed cannot be ended",
                  log_text("sandbox", creation->plan.id.text), log_text("error", failure->message));
    creation_end(creation, &creation->failure);
}

/* What goes when it fails: a start keeps the disk. */
static enum wire_kill_scope scope_of(const struct creation *creation)
{
    return creation->call->kind == PROVIDER_CALL_START ? WIRE_KILL_PROCESSES : WIRE_KILL_EVERYTHING;
}

/* It runs, but is not what was asked for. */
static void take_back(struct creation *creation)
{
    struct wire_message message = {.number = WIRE_MESSAGE_KILL,
                                   .kill = {.id = creation->plan.id, .scope = scope_of(creation)}};
    struct wire_answer answer = {.call = on_taken_back, .context = creation};

    if (launcher_link_ask(&creation->local->link, &message, NULL, 0, answer, NULL) < 0)
        creation_end(creation, &creation->failure);
}

static void on_agent_head(struct http_exchange *exchange)
{
    (void) exchange;
}

static void on_agent_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    (void) exchange, (void) bytes, (void) length;
}

static void on_agent_end(struct http_exchange *exchange)
{
    struct creation *creation = http_exchange_data(exchange);
    int status = http_exchange_head(exchange)->status;

    leave_agent(creation);
    if (status >= 200 && status < 300) {
        creation_end(creation, NULL);
        return;
    }
    (void) error_set(&creation->failure, ERR_UPSTREAM, 0,
                     "the agent answered the environment with status %d", status);
    take_back(creation);
}

static void on_agent_failure(struct http_exchange *exchange, const struct error *error)
{
    struct creation *creation = http_exchange_data(exchange);

    creation->failure = *error;
    (void) error_wrap(&creation->failure, "tell the agent its environment");
    leave_agent(creation);
    take_back(creation);
}

static const struct http_exchange_events agent_events = {.on_head = on_agent_head,
                                                         .on_body = on_agent_body,
                                                         .on_end = on_agent_end,
                                                         .on_failure = on_agent_failure};

#define HEADER(key, text)                                                                          \
    {                                                                                              \
        .name = (key), .value = (text), .name_length = sizeof(key) - 1,                            \
        .value_length = sizeof(text) - 1                                                           \
    }

static void send_environment(struct creation *creation)
{
    static const struct http_header headers[] = {
        HEADER("Host", "agent"),
        HEADER("Content-Type", "application/json"),
    };
    size_t length = strlen(creation->environment);
    struct http_exchange_request request = {.method = "PUT",
                                            .target = "/burrow/environment",
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = (int64_t) length};

    list_append(&creation->local->creations, &creation->link);
    creation->local->closing++;
    creation->exchange = http_exchange_start(creation->agent, &request, &agent_events, creation);
    http_exchange_write(creation->exchange, creation->environment, length);
    http_exchange_end(creation->exchange);
}

static void set_environment(struct creation *creation)
{
    struct local *local = creation->local;
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    char address[PROVIDER_ADDRESS_MAX];

    options.head_timeout_ms = options.body_timeout_ms = ENVIRONMENT_TIMEOUT_MS;
    options.stall_timeout_ms = ENVIRONMENT_TIMEOUT_MS;
    options.connections_max = options.waiting_max = 1;
    options.idle_max = 0;
    if (local_agent_address(&local->provider, &creation->plan.id, address, &creation->failure) == 0)
        creation->agent =
            http_origin_new(local->provider.loop, address, &options, &creation->failure);
    if (creation->agent)
        send_environment(creation);
    else
        take_back(creation);
}

bool local_creation_exited(struct local *local, const struct id *id)
{
    LIST_EACH (&local->creations, at) {
        struct creation *creation = CONTAINER_OF(at, struct creation, link);

        if (strcmp(creation->plan.id.text, id->text) != 0)
            continue;
        (void) error_set(&creation->failure, ERR_UPSTREAM, 0,
                         "sandbox %s ended before it was ready", id->text);
        http_exchange_cancel(creation->exchange);
        leave_agent(creation);
        take_back(creation);
        return true;
    }
    return false;
}

void local_creations_cancel(struct local *local, const struct error *reason)
{
    struct list *first;

    while ((first = list_first(&local->creations))) {
        struct creation *creation = CONTAINER_OF(first, struct creation, link);

        http_exchange_cancel(creation->exchange);
        leave_agent(creation);
        local_discard(local, &creation->plan.id, scope_of(creation));
        creation_end(creation, reason);
    }
}

/* --- the sandbox ----------------------------------------------------------------------------- */

static void create_cold(struct creation *creation);

/* Fill in the call's result and go on. */
static void on_runs(struct creation *creation, const struct wire_sandbox *sandbox)
{
    creation->call->result.sandbox = (struct provider_sandbox){.id = creation->plan.id,
                                                               .state = RUN_STATE_RUNNING,
                                                               .unenforced = sandbox->unenforced,
                                                               .pause_us = sandbox->pause_us};
    if (creation->environment)
        set_environment(creation);
    else
        creation_end(creation, NULL);
}

static void on_created(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct creation *creation = context;

    if (failure)
        creation_end(creation, failure);
    else
        on_runs(creation, &reply->message.sandbox);
}

/* One in stock that cannot be used is thrown away; the caller does not notice. */
static void on_assigned(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct creation *creation = context;

    if (!failure) {
        stock_note_limits(&creation->local->stock, &creation->plan.limits);
        on_runs(creation, &reply->message.sandbox);
        return;
    }
    LOG_DEBUG(creation->local->log, "a sandbox in stock was of no use",
              log_text("sandbox", creation->plan.id.text), log_text("error", failure->message));
    local_discard(creation->local, &creation->plan.id, WIRE_KILL_EVERYTHING);
    create_cold(creation);
}

static int ask(struct creation *creation, enum wire_number number,
               void (*answered)(void *context, struct wire_incoming *reply,
                                const struct error *failure),
               struct error *err)
{
    struct wire_message message = {.number = number};
    struct wire_answer answer = {.call = answered, .context = creation};
    AUTO(close) int fd = -EBADF;

    if (wire_plan_seal(&creation->plan, &fd, err) < 0)
        return -1;
    return launcher_link_ask(&creation->local->link, &message, &fd, 1, answer, err);
}

static void create_cold(struct creation *creation)
{
    struct error err = ERROR_INIT;

    creation->plan.id = creation->wanted;
    if (ask(creation, WIRE_MESSAGE_CREATE, on_created, &err) < 0)
        creation_end(creation, &err);
}

static void create_from_stock(struct creation *creation, const struct id *id)
{
    struct error err = ERROR_INIT;

    creation->plan.id = *id;
    if (ask(creation, WIRE_MESSAGE_ASSIGN, on_assigned, &err) < 0)
        on_assigned(creation, NULL, &err);
}

static struct creation *creation_new(struct local *local, const struct provider_spec *spec,
                                     struct provider_call *call)
{
    struct creation *creation = mem_alloc(sizeof(*creation));
    struct error err = ERROR_INIT;

    list_init(&creation->link);
    creation->local = local;
    creation->call = call;
    creation->wanted = spec->id;
    if (provider_local_plan(spec, local->image, &creation->plan, &err) == 0 &&
        provider_local_environment_json(spec, &creation->environment, &err) == 0)
        return creation;
    creation_end(creation, &err);
    return NULL;
}

static bool fits_stock(const struct local *local, const struct provider_spec *spec,
                       const struct wire_plan *plan)
{
    return !spec->keep_id && !spec->origin.id.text[0] && plan->binds.count == 0 &&
           strcmp(plan->image, local->image) == 0;
}

void local_create(struct provider *provider, const struct provider_spec *spec,
                  struct provider_call *call)
{
    struct local *local = local_of(provider);
    struct creation *creation = creation_new(local, spec, call);
    struct id ready;

    if (!creation)
        return;
    if (fits_stock(local, spec, &creation->plan) && stock_take(local, &ready))
        create_from_stock(creation, &ready);
    else
        create_cold(creation);
}

void local_start(struct provider *provider, const struct provider_spec *spec,
                 struct provider_call *call)
{
    struct creation *creation = creation_new(local_of(provider), spec, call);

    if (!creation)
        return;
    creation->plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    create_cold(creation);
}
