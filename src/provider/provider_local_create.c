/* Create and start:
 *
 *     one in stock fits ──► assign ──┬──► answered
 *     else ──────────────► create ───┘    assign fails: create instead
 *     start ─► create on its disk */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "provider/provider_local_internal.h"
#include "provider/provider_local_plan.h"

struct creation {
    struct local *local;
    struct provider_call *call;
    struct id wanted;      /* the spec's id */
    struct wire_plan plan; /* its id is the sandbox's */
};

static void creation_end(struct creation *creation, const struct error *failure)
{
    provider_call_answer(creation->call, failure);
    free(creation);
}

static void create_cold(struct creation *creation);

/* Fill in the call's result and go on. */
static void on_runs(struct creation *creation, const struct wire_sandbox *sandbox)
{
    creation->call->result.sandbox = (struct provider_sandbox){.id = creation->plan.id,
                                                               .state = RUN_STATE_RUNNING,
                                                               .unenforced = sandbox->unenforced,
                                                               .pause_us = sandbox->pause_us};
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

static struct creation *creation_new(struct provider_call *call)
{
    struct creation *creation = mem_alloc(sizeof(*creation));
    struct error err = ERROR_INIT;

    creation->local = local_of(call->provider);
    creation->call = call;
    creation->wanted = call->asked.spec->id;
    if (provider_local_plan(call->asked.spec, creation->local->image, &creation->plan, &err) == 0)
        return creation;
    creation_end(creation, &err);
    return NULL;
}

/* What the launcher can change of a sandbox that runs already. */
static bool fits_stock(const struct local *local, const struct provider_spec *spec,
                       const struct wire_plan *plan)
{
    return !spec->keep_id && !spec->origin.id.text[0] && plan->binds.count == 0 &&
           plan->limits.files == 0 && plan->flags == 0 && strcmp(plan->image, local->image) == 0;
}

void local_create(struct provider_call *call)
{
    struct creation *creation = creation_new(call);
    struct id ready;

    if (!creation)
        return;
    if (fits_stock(creation->local, call->asked.spec, &creation->plan) &&
        stock_take(creation->local, &ready))
        create_from_stock(creation, &ready);
    else
        create_cold(creation);
}

void local_start(struct provider_call *call)
{
    struct creation *creation = creation_new(call);

    if (!creation)
        return;
    creation->plan.flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK);
    create_cold(creation);
}
