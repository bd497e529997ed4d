#include "domain/sandbox/sandbox_wish.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"

static const char *const action_texts[SANDBOX_ACTION_COUNT] = {
    [SANDBOX_ACTION_USE] = "used",
    [SANDBOX_ACTION_START] = "started",
    [SANDBOX_ACTION_STOP] = "stopped",
    [SANDBOX_ACTION_SLEEP] = "put to sleep",
    [SANDBOX_ACTION_WAKE] = "woken",
    [SANDBOX_ACTION_UPDATE] = "changed",
    [SANDBOX_ACTION_DESTROY] = "destroyed",
    [SANDBOX_ACTION_SNAPSHOT] = "copied",
    [SANDBOX_ACTION_ROLL_BACK] = "rolled back",
};

static const char *const verdict_points[] = {
    [SANDBOX_GO] = "sandbox.go",
    [SANDBOX_WAIT] = "sandbox.wait",
    [SANDBOX_ALREADY] = "sandbox.already",
    [SANDBOX_REFUSE] = "sandbox.refuse",
};

struct sandbox_wish *wish_make(struct domain *domain, const struct caller *caller,
                               struct sandbox *sandbox, enum sandbox_action action,
                               void (*act)(struct sandbox_wish *wish), sandbox_done *done,
                               void *context)
{
    struct sandbox_wish *wish = mem_alloc(sizeof(*wish));

    *wish = (struct sandbox_wish){.domain = domain,
                                  .sandbox = sandbox_ref(sandbox),
                                  .action = action,
                                  .act = act,
                                  .caller = caller ? *caller : caller_system(),
                                  .trace = {trace_context.request, sandbox->id},
                                  .done = done,
                                  .context = context,
                                  .before = sandbox->status,
                                  .asked_ns = domain_now_ns(domain)};
    list_init(&wish->link);
    domain->works++;
    return wish;
}

/* --- the end --------------------------------------------------------------------------------- */

static void wish_free(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;

    sandbox_unref(wish->sandbox);
    if (wish->spec)
        sandbox_spec_done(wish->spec);
    free(wish->spec);
    sandbox_change_done(&wish->change);
    free(wish);
    domain->works--;
    domain_check_gone(domain);
}

/* Starting and waking are one thing: what waits for either shares its failure. */
static bool is_running_action(enum sandbox_action action)
{
    return action == SANDBOX_ACTION_USE || action == SANDBOX_ACTION_START ||
           action == SANDBOX_ACTION_WAKE;
}

static void share_failure(struct sandbox_wish *wish)
{
    bool is_running = is_running_action(wish->action);

    LIST_EACH (&wish->sandbox->waiting, at) {
        struct sandbox_wish *other = CONTAINER_OF(at, struct sandbox_wish, link);

        if (other->action == wish->action || (is_running && is_running_action(other->action)))
            wish_end(other, &wish->failure);
    }
    if (is_running)
        sandbox_fail_uses(wish->sandbox, &wish->failure);
}

static void answer(struct domain_task *task)
{
    struct sandbox_wish *wish = CONTAINER_OF(task, struct sandbox_wish, task);
    struct sandbox *sandbox = wish->has_failed || wish->is_over ? NULL : wish->sandbox;
    TRACE_AS(&wish->trace);

    TRACE_WITH(wish->has_failed ? "sandbox.failed" : "sandbox.done", action_texts[wish->action]);
    if (wish->why && wish->has_failed)
        expiry_postpone(wish->domain, wish->sandbox);
    if (wish->done)
        wish->done(wish->context, wish->has_failed ? &wish->failure : NULL, sandbox);
    sandbox_settle(wish->domain, wish->sandbox);
    wish_free(wish);
}

void wish_end(struct sandbox_wish *wish, const struct error *failure)
{
    if (!list_is_empty(&wish->link)) {
        list_remove(&wish->link);
        wish->sandbox->wishes--;
    }
    wish->has_failed = failure != NULL;
    if (failure)
        wish->failure = *failure;
    domain_defer(wish->domain, &wish->task, answer);
}

void wish_refuse(struct sandbox_wish *wish, enum err_code code, const char *format, ...)
{
    char message[ERROR_MESSAGE_MAX];
    struct error failure = ERROR_INIT;
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(message, sizeof(message), format, arguments); /* cut: it is for people */
    va_end(arguments);
    (void) error_set(&failure, code, 0, "%s", message);
    wish_end(wish, &failure);
}

/* --- turns ----------------------------------------------------------------------------------- */

bool sandbox_is_busy(const struct sandbox *sandbox)
{
    return sandbox->is_held || sandbox_status_is_busy(sandbox->status);
}

static void wait_for_turn(struct sandbox_wish *wish)
{
    struct sandbox *sandbox = wish->sandbox;

    if (sandbox->wishes >= SANDBOX_WISHES_MAX) {
        wish_refuse(wish, ERR_UNAVAILABLE, "sandbox %s is %s, and too many wait for it",
                    sandbox->id.text, sandbox_status_text(sandbox->status));
        return;
    }
    sandbox->wishes++;
    list_append(&sandbox->waiting, &wish->link);
}

static void refuse_by_table(struct sandbox_wish *wish)
{
    const struct sandbox *sandbox = wish->sandbox;
    enum err_code code = sandbox->status == SANDBOX_DESTROYED ? ERR_NOT_FOUND : ERR_CONFLICT;
    const char *advice = sandbox_advice(sandbox->status, wish->action);

    if (*sandbox->reason)
        wish_refuse(wish, code, "sandbox %s cannot be %s: its status is %s (%s); %s",
                    sandbox->id.text, action_texts[wish->action],
                    sandbox_status_text(sandbox->status), sandbox->reason, advice);
    else
        wish_refuse(wish, code, "sandbox %s cannot be %s: its status is %s; %s", sandbox->id.text,
                    action_texts[wish->action], sandbox_status_text(sandbox->status), advice);
}

void wish_begin_anyway(struct sandbox_wish *wish)
{
    wish->before = wish->sandbox->status;
    wish->act(wish);
}

/* What looks at the disk, which may be elsewhere. */
static bool needs_disk(const struct sandbox_wish *wish)
{
    return wish->action == SANDBOX_ACTION_SNAPSHOT || wish->action == SANDBOX_ACTION_ROLL_BACK;
}

static void on_disk_is_here(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure)
        wish_provider_failed(wish, failure);
    else
        wish_begin_anyway(wish);
}

static void begin_with_disk(struct sandbox_wish *wish)
{
    if (needs_disk(wish) && wish->sandbox->is_disk_lost)
        wish_refuse(wish, ERR_CONFLICT,
                    "sandbox %s gets a disk with its next start: start it first",
                    wish->sandbox->id.text);
    else if (needs_disk(wish) && wish->sandbox->stored)
        sandbox_bring_back(wish, on_disk_is_here, wish);
    else
        wish_begin_anyway(wish);
}

void wish_begin(struct sandbox_wish *wish)
{
    struct sandbox *sandbox = wish->sandbox;
    enum sandbox_verdict verdict = sandbox_verdict(sandbox->status, wish->action);
    struct error err = ERROR_INIT;
    TRACE_AS(&wish->trace);

    TRACE_WITH(verdict_points[verdict], action_texts[wish->action]);
    if (!domain_is_open(wish->domain, &err))
        wish_end(wish, &err);
    else if (verdict == SANDBOX_WAIT || (sandbox->is_held && verdict != SANDBOX_REFUSE))
        wait_for_turn(wish);
    else if (verdict == SANDBOX_GO)
        begin_with_disk(wish);
    else if (verdict == SANDBOX_ALREADY)
        wish_end(wish, NULL);
    else
        refuse_by_table(wish);
}

static void next_wish(struct sandbox *sandbox)
{
    struct sandbox_wish *wish =
        CONTAINER_OF(list_first(&sandbox->waiting), struct sandbox_wish, link);

    list_remove(&wish->link);
    sandbox->wishes--;
    wish_begin(wish);
}

void sandbox_settle(struct domain *domain, struct sandbox *sandbox)
{
    if (domain->stage != DOMAIN_OPEN)
        return;
    if (!sandbox_is_busy(sandbox) && sandbox->has_ended)
        sandbox_handle_end(domain, sandbox);
    if (sandbox->status == SANDBOX_RUNNING)
        sandbox_let_uses_go(domain, sandbox);
    while (!sandbox_is_busy(sandbox) && !list_is_empty(&sandbox->waiting))
        next_wish(sandbox);
    if (!sandbox_is_busy(sandbox) && !list_is_empty(&sandbox->wanted))
        sandbox_let_uses_go(domain, sandbox);
}

void sandbox_fail_waiting(struct domain *domain, struct sandbox *sandbox,
                          const struct error *failure)
{
    (void) domain;
    LIST_EACH (&sandbox->waiting, at) {
        struct sandbox_wish *wish = CONTAINER_OF(at, struct sandbox_wish, link);

        /* To be destroyed was its wish. */
        if (wish->action == SANDBOX_ACTION_DESTROY && sandbox->status == SANDBOX_DESTROYED) {
            wish->is_over = true;
            wish_end(wish, NULL);
        } else {
            wish_end(wish, failure);
        }
    }
    sandbox_fail_uses(sandbox, failure);
}

void wish_fail(struct sandbox_wish *wish, const struct error *failure)
{
    wish->failure = *failure;
    share_failure(wish);
    wish_end(wish, failure);
}

/* A start may also fail because its image is not there, which is no reason to give it up. */
static bool is_lost(const struct sandbox_wish *wish, const struct error *failure)
{
    return failure->code == ERR_NOT_FOUND &&
           (wish->before == SANDBOX_RUNNING || wish->before == SANDBOX_FROZEN);
}

void wish_provider_failed(struct sandbox_wish *wish, const struct error *failure)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct error gone = ERROR_INIT;

    domain->counters.failed++;
    sandbox_set_status(domain, sandbox, wish->before);
    expiry_watch(domain, sandbox);
    if (is_lost(wish, failure)) {
        (void) error_set(&gone, ERR_GONE, 0, "sandbox %s is not there any more, nor is its disk",
                         sandbox->id.text);
        sandbox_break(domain, sandbox, "it is not there any more, nor is its disk");
        failure = &gone;
    }
    /* A stop that failed had let go of its mounts. */
    if (sandbox->status == SANDBOX_RUNNING && domain->stage == DOMAIN_OPEN)
        sandbox_hook_running(domain, sandbox, false, NULL, NULL);
    wish_fail(wish, failure);
    sandbox_settle(domain, sandbox);
}
