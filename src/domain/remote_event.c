#include "domain/remote_event.h"

#include <stdio.h>

#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/identity/owner.h"
#include "domain/sandbox/sandboxes.h"

#define TYPE_MAX 96

struct remote_event_keeping {
    struct domain *domain;
    remote_event_done *done;
    void *context;
    struct domain_task task; /* for an answer that is known at once */
    struct error failure;
};

static void kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    AUTO(free) struct remote_event_keeping *keeping = context;

    if (!failure)
        event_kept(keeping->domain, receipt);
    keeping->done(keeping->context, failure);
}

static void refused(struct domain_task *task)
{
    AUTO(free)
    struct remote_event_keeping *keeping = CONTAINER_OF(task, struct remote_event_keeping, task);

    keeping->done(keeping->context, &keeping->failure);
}

static struct sandbox *find(struct domain *domain, const struct remote_event *event,
                            const struct caller *system)
{
    const struct owner *owner = event->owner ? owner_named(domain, event->owner, NULL) : NULL;
    struct sandbox *sandbox;

    if (!event->sandbox)
        return NULL;
    sandbox = sandbox_find(domain, system, event->sandbox, NULL);
    if (!sandbox && owner) {
        const struct caller theirs = {.scope = CALLER_WRITE, .owner = owner->id};

        sandbox = sandbox_find(domain, &theirs, event->sandbox, NULL);
    }
    return sandbox;
}

static void commit(struct remote_event_keeping *keeping, const struct remote_event *event)
{
    struct domain *domain = keeping->domain;
    struct store_transaction *change = store_begin(domain->options.store);
    struct caller system = caller_system();
    struct sandbox *sandbox = find(domain, event, &system);
    const struct id nobody = {.text = ""};
    char type[TYPE_MAX];

    (void) snprintf(type, sizeof(type), "remote.%s", event->name);
    if (event->request)
        (void) snprintf(system.request.text, sizeof(system.request.text), "%s", event->request);
    event_add(domain, change, &system, sandbox ? &sandbox->owner : &nobody,
              sandbox ? sandbox->id.text : REMOTE_EVENT_SYSTEM, type, event->data);
    domain_commit(domain, change, kept, keeping);
    if (sandbox && event->is_activity)
        sandbox_touch(domain, sandbox);
}

void remote_event_keep(struct domain *domain, const struct remote_event *event,
                       remote_event_done *done, void *context)
{
    struct remote_event_keeping *keeping = mem_alloc(sizeof(*keeping));

    *keeping = (struct remote_event_keeping){.domain = domain, .done = done, .context = context};
    if (domain_is_open(domain, &keeping->failure))
        commit(keeping, event);
    else
        domain_defer(domain, &keeping->task, refused);
}
