#include "domain/sandbox/sandbox_use.h"

#include "base/auto.h"
#include "domain/domain_internal.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

/* Every use that was begun has a reference and counts; ready or not. */
static void leave(struct sandbox_use *use)
{
    struct sandbox *sandbox = use->sandbox;

    use->domain->uses--;

    list_remove(&use->link);
    use->sandbox = NULL;
    use->is_ready = false;
    sandbox->uses--;
    sandbox_unref(sandbox);
}

static void tell_ready(struct sandbox_use *use)
{
    TRACE_AS(&use->trace);

    TRACE("sandbox.use.ready");
    list_remove(&use->link);
    use->is_ready = true;
    use->ready(use, NULL);
}

static void tell_failure(struct sandbox_use *use, const struct error *failure)
{
    TRACE_AS(&use->trace);

    TRACE("sandbox.use.failed");
    leave(use);
    use->ready(use, failure);
}

static bool is_kept_out(const struct sandbox *sandbox, unsigned int flags)
{
    return sandbox->status == SANDBOX_STOPPED && sandbox->is_ended_by_request &&
           !(flags & SANDBOX_USE_START);
}

/* Why it cannot be used now; 0: it can, perhaps later. */
static int refusal(const struct sandbox *sandbox, unsigned int flags, struct error *err)
{
    enum err_code code = sandbox->status == SANDBOX_DESTROYED ? ERR_NOT_FOUND : ERR_CONFLICT;
    const char *status = sandbox_status_text(sandbox->status);

    if (is_kept_out(sandbox, flags))
        return error_set(err, code, 0, "sandbox %s is stopped (%s); start it first",
                         sandbox->id.text, sandbox->reason);
    if (flags & SANDBOX_USE_QUIET)
        return error_set(err, code, 0, "sandbox %s does not run: its status is %s",
                         sandbox->id.text, status);
    if (sandbox_verdict(sandbox->status, SANDBOX_ACTION_USE) == SANDBOX_REFUSE)
        return error_set(err, code, 0, "sandbox %s cannot be used: its status is %s (%s); %s",
                         sandbox->id.text, status, sandbox->reason,
                         sandbox_advice(sandbox->status, SANDBOX_ACTION_USE));
    return 0;
}

/* Somebody waits for it and nothing is under way: now. */
static void run(struct domain *domain, struct sandbox *sandbox)
{
    wish_begin(wish_make(domain, NULL, sandbox, SANDBOX_ACTION_USE, sandbox_act_run, NULL, NULL));
}

void sandbox_use_begin(struct domain *domain, struct sandbox *sandbox, struct sandbox_use *use,
                       unsigned int flags,
                       void (*ready)(struct sandbox_use *use, const struct error *failure))
{
    struct error err = ERROR_INIT;

    *use = (struct sandbox_use){
        .domain = domain, .sandbox = sandbox_ref(sandbox), .ready = ready, .flags = flags};
    use->trace = (struct trace_context){trace_context.request, sandbox->id};
    list_init(&use->link);
    sandbox->uses++;
    domain->uses++;
    if (!domain_is_open(domain, &err)) {
        tell_failure(use, &err);
        return;
    }
    if (sandbox->status == SANDBOX_RUNNING) {
        tell_ready(use);
        return;
    }
    if (refusal(sandbox, flags, &err) < 0) {
        tell_failure(use, &err);
        return;
    }
    list_append(&sandbox->wanted, &use->link);
    if (!sandbox_is_busy(sandbox))
        run(domain, sandbox);
}

void sandbox_use_end(struct sandbox_use *use)
{
    struct sandbox *sandbox = use->sandbox;

    if (!sandbox)
        return;
    if (use->is_ready && sandbox->status != SANDBOX_DESTROYED) {
        sandbox->idle_since_ns = domain_now_ns(use->domain);
        sandbox->active_ms = domain_wall_ms(use->domain);
        if (sandbox->uses == 1) {
            sandbox->uses = 0; /* for the schedule: nobody is left */
            expiry_watch(use->domain, sandbox);
            sandbox->uses = 1;
        }
    }
    leave(use);
    domain_check_gone(use->domain);
}

void sandbox_fail_uses(struct sandbox *sandbox, const struct error *failure)
{
    struct list mine, *link;

    /* Answers may begin new uses, which are none of these. */
    list_init(&mine);
    LIST_EACH (&sandbox->wanted, at) {
        list_remove(at);
        list_append(&mine, at);
    }
    while ((link = list_first(&mine)))
        tell_failure(CONTAINER_OF(link, struct sandbox_use, link), failure);
}

/* Those that an explicit stop keeps out. */
static void refuse_some(struct sandbox *sandbox)
{
    struct list mine, *link;
    struct error err = ERROR_INIT;

    list_init(&mine);
    LIST_EACH (&sandbox->wanted, at)
        if (refusal(sandbox, CONTAINER_OF(at, struct sandbox_use, link)->flags, &err) < 0) {
            list_remove(at);
            list_append(&mine, at);
        }
    while ((link = list_first(&mine)))
        tell_failure(CONTAINER_OF(link, struct sandbox_use, link), &err);
}

void sandbox_let_uses_go(struct domain *domain, struct sandbox *sandbox)
{
    struct list *link;

    sandbox_ref(sandbox); /* the last use may be its last reference */
    while (sandbox->status == SANDBOX_RUNNING && (link = list_first(&sandbox->wanted)))
        tell_ready(CONTAINER_OF(link, struct sandbox_use, link));
    if (sandbox->status != SANDBOX_RUNNING && !sandbox_is_busy(sandbox)) {
        refuse_some(sandbox);
        if (!sandbox_is_busy(sandbox) && !list_is_empty(&sandbox->wanted))
            run(domain, sandbox);
    }
    sandbox_unref(sandbox);
}
