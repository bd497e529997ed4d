#include "domain/inside_call.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"

#define NS_PER_MS UINT64_C(1000000)

struct inside_call {
    struct list link; /* of domain->asked */
    struct trace_context trace;
    inside_call_done *done; /* NULL: answered already; the agent's answer only frees this */
    void *context;
    uint64_t due_ns;
};

/* Take the answer away from whoever comes later. */
static void tell(struct inside_call *call, const struct error *failure,
                 const struct inside_answer *answer)
{
    inside_call_done *done = call->done;
    TRACE_AS(&call->trace);

    call->done = NULL;
    list_remove(&call->link);
    if (done)
        done(call->context, failure, answer);
}

static void on_activity(void *context, const struct error *failure,
                        const struct inside_activity *activity)
{
    struct inside_call *call = context;
    struct inside_answer answer = {.text = NULL};

    if (!failure)
        answer.activity = *activity;
    tell(call, failure, failure ? NULL : &answer);
    free(call);
}

static void on_text(void *context, const struct error *failure, const char *text)
{
    struct inside_call *call = context;
    struct inside_answer answer = {.text = text};

    tell(call, failure, failure ? NULL : &answer);
    free(call);
}

static void on_done(void *context, const struct error *failure)
{
    struct inside_call *call = context;
    struct inside_answer answer = {.text = NULL};

    tell(call, failure, failure ? NULL : &answer);
    free(call);
}

static bool can_ask(const struct inside *inside, enum inside_question question)
{
    if (!inside)
        return false;
    switch (question) {
    case INSIDE_ACTIVITY:
        return inside->activity;
    case INSIDE_QUIESCE:
        return inside->quiesce;
    case INSIDE_RESUME:
        return inside->resume;
    case INSIDE_SAVE:
        return inside->save;
    case INSIDE_RESTORE:
        return inside->restore;
    case INSIDE_ENVIRONMENT:
        return inside->set_environment;
    case INSIDE_START_PROCESS:
        return inside->start_process;
    case INSIDE_WAY_OUT:
        return inside->set_way_out;
    }
    return false;
}

static void ask(const struct inside *inside, const struct id *sandbox,
                enum inside_question question, const char *text, struct inside_call *call)
{
    switch (question) {
    case INSIDE_ACTIVITY:
        inside->activity(inside->self, sandbox, on_activity, call);
        break;
    case INSIDE_QUIESCE:
        inside->quiesce(inside->self, sandbox, on_done, call);
        break;
    case INSIDE_RESUME:
        inside->resume(inside->self, sandbox, on_done, call);
        break;
    case INSIDE_SAVE:
        inside->save(inside->self, sandbox, on_text, call);
        break;
    case INSIDE_RESTORE:
        inside->restore(inside->self, sandbox, text, on_done, call);
        break;
    case INSIDE_ENVIRONMENT:
        inside->set_environment(inside->self, sandbox, text, on_done, call);
        break;
    case INSIDE_START_PROCESS:
        inside->start_process(inside->self, sandbox, text, on_done, call);
        break;
    case INSIDE_WAY_OUT:
        inside->set_way_out(inside->self, sandbox, text, on_done, call);
        break;
    }
}

void inside_ask(struct domain *domain, const struct id *sandbox, enum inside_question question,
                const char *text, inside_call_done *done, void *context)
{
    uint64_t patience_ms =
        question == INSIDE_RESTORE || question == INSIDE_ENVIRONMENT || question == INSIDE_WAY_OUT
            ? INSIDE_BEGIN_PATIENCE_MS
            : INSIDE_PATIENCE_MS;
    struct inside_call *call;
    struct error failure = ERROR_INIT;

    if (!domain_is_open(domain, &failure)) {
        done(context, &failure, NULL);
        return;
    }
    if (!can_ask(domain->options.inside, question) ||
        !(provider_capabilities(domain->options.provider) & PROVIDER_AGENT)) {
        (void) error_set(&failure, ERR_NOT_IMPLEMENTED, 0, "there is no agent to be asked");
        done(context, &failure, NULL);
        return;
    }
    call = mem_alloc(sizeof(*call));
    call->trace = trace_context;
    call->trace.sandbox = *sandbox;
    call->done = done;
    call->context = context;
    call->due_ns = domain_now_ns(domain) + patience_ms * NS_PER_MS;
    list_append(&domain->asked, &call->link);
    ask(domain->options.inside, sandbox, question, text, call);
}

void inside_forget(struct domain *domain, const struct id *sandbox)
{
    const struct inside *inside = domain->options.inside;

    if (inside && inside->forget)
        inside->forget(inside->self, sandbox);
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->forgotten)
            domain_modules[i]->forgotten(domain, sandbox);
    if (domain->options.harness)
        domain->options.harness->forget(domain->options.harness->self, sandbox);
}

/* Those whose patience is over at `now_ns`, or all; each may make new ones. */
static void give_up(struct domain *domain, uint64_t now_ns, const struct error *failure)
{
    struct list late, *link;

    list_init(&late);
    LIST_EACH (&domain->asked, at)
        if (CONTAINER_OF(at, struct inside_call, link)->due_ns <= now_ns) {
            list_remove(at);
            list_append(&late, at);
        }
    while ((link = list_first(&late)))
        tell(CONTAINER_OF(link, struct inside_call, link), failure, NULL);
}

void inside_tick(struct domain *domain)
{
    struct error failure = ERROR_INIT;

    (void) error_set(&failure, ERR_UPSTREAM_TIMEOUT, 0, "the sandbox's agent does not answer");
    give_up(domain, domain_now_ns(domain), &failure);
}

void inside_abandon(struct domain *domain)
{
    struct error failure = ERROR_INIT;

    (void) error_set(&failure, ERR_UNAVAILABLE, 0, "the daemon is ending");
    give_up(domain, UINT64_MAX, &failure);
}
