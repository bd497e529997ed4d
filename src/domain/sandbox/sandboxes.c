#include "domain/sandbox/sandboxes.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_modules.h"
#include "domain/event/audit.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

/* --- looking --------------------------------------------------------------------------------- */

/* What is not kept yet is not there yet; but we talk to its agent. */
static bool is_seen(const struct caller *caller, const struct sandbox *sandbox)
{
    return sandbox && (sandbox->status != SANDBOX_CREATING || caller->scope == CALLER_SYSTEM) &&
           caller_sees_sandbox(caller, &sandbox->owner, &sandbox->id);
}

/* Whether one letter more, less or other makes one of the other; also in the other case. */
static bool is_close(const char *a, const char *b)
{
    size_t length_a = strlen(a), length_b = strlen(b);
    size_t front = 0, back = 0, longer = length_a > length_b ? length_a : length_b;

    if (strcasecmp(a, b) == 0)
        return true;
    if (longer < 3 || length_a + 1 < length_b || length_b + 1 < length_a)
        return false;
    while (a[front] && a[front] == b[front])
        front++;
    while (back + front < length_a && back + front < length_b &&
           a[length_a - 1 - back] == b[length_b - 1 - back])
        back++;
    return front + back + 1 >= longer;
}

/* Among the newest of the caller's own, to stay cheap. */
static const char *close_name(const struct domain *domain, const struct caller *caller,
                              const char *name)
{
    const struct list *all = &domain->sandboxes->all;
    size_t looked = 0;

    for (const struct list *at = all->previous; at != all && looked < SANDBOX_LIST_MAX;
         at = at->previous, looked++) {
        const struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (sandbox->spec.name && is_seen(caller, sandbox) &&
            id_equal(&sandbox->owner, &caller->owner) && is_close(sandbox->spec.name, name))
            return sandbox->spec.name;
    }
    return NULL;
}

struct sandbox *sandbox_find(struct domain *domain, const struct caller *caller,
                             const char *name_or_id, struct error *err)
{
    struct sandbox *sandbox = sandbox_set_by_id(domain, name_or_id);
    bool is_hidden = sandbox && sandbox->status != SANDBOX_CREATING;
    const char *meant;

    if (!is_seen(caller, sandbox))
        sandbox = sandbox_set_by_name(domain, &caller->owner, name_or_id);
    if (is_seen(caller, sandbox)) {
        trace_about(&sandbox->id);
        return sandbox;
    }
    meant = close_name(domain, caller, name_or_id);
    if (meant)
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such sandbox '%.128s'; did you mean '%s'?",
                         name_or_id, meant);
    else
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such sandbox '%.128s'", name_or_id);
    if (is_hidden && err) /* of somebody else, or not this key's: whoever asks sees no difference */
        audit_add(domain, caller, "sandbox.find", name_or_id, err);
    return NULL;
}

void sandbox_count(const struct domain *domain, const struct id *owner,
                   size_t ret_counts[static SANDBOX_STATUS_COUNT])
{
    const struct usage *usage = owner ? sandbox_set_usage(domain, owner) : NULL;
    const size_t *counts = owner ? (usage ? usage->counts : NULL) : domain->sandboxes->counts;

    for (size_t i = 0; i < SANDBOX_STATUS_COUNT; i++)
        ret_counts[i] = counts ? counts[i] : 0;
}

/* --- doing ----------------------------------------------------------------------------------- */

/* Everything but create: the caller is checked, then it is a wish. */
static struct sandbox_wish *make(struct domain *domain, const struct caller *caller,
                                 struct sandbox *sandbox, enum sandbox_action action,
                                 void (*act)(struct sandbox_wish *wish), sandbox_done *done,
                                 void *context)
{
    struct sandbox_wish *wish = wish_make(domain, caller, sandbox, action, act, done, context);

    if (!caller_may_write(caller)) {
        wish_refuse(wish, ERR_FORBIDDEN, "this key may not change sandboxes");
        return NULL;
    }
    return wish;
}

static void begin(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  enum sandbox_action action, void (*act)(struct sandbox_wish *wish),
                  sandbox_done *done, void *context)
{
    struct sandbox_wish *wish = make(domain, caller, sandbox, action, act, done, context);

    if (wish)
        wish_begin(wish);
}

void sandbox_update(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    const struct sandbox_change *change, sandbox_done *done, void *context)
{
    struct sandbox_wish *wish =
        make(domain, caller, sandbox, SANDBOX_ACTION_UPDATE, sandbox_act_update, done, context);

    if (!wish)
        return;
    wish->change = sandbox_change_copy(change);
    wish_begin(wish);
}

void sandbox_start(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   sandbox_done *done, void *context)
{
    begin(domain, caller, sandbox, SANDBOX_ACTION_START, sandbox_act_run, done, context);
}

void sandbox_stop(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  sandbox_done *done, void *context)
{
    begin(domain, caller, sandbox, SANDBOX_ACTION_STOP, sandbox_act_stop, done, context);
}

void sandbox_sleep(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   sandbox_done *done, void *context)
{
    begin(domain, caller, sandbox, SANDBOX_ACTION_SLEEP, sandbox_act_sleep, done, context);
}

void sandbox_wake(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  sandbox_done *done, void *context)
{
    begin(domain, caller, sandbox, SANDBOX_ACTION_WAKE, sandbox_act_run, done, context);
}

void sandbox_destroy(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                     sandbox_done *done, void *context)
{
    begin(domain, caller, sandbox, SANDBOX_ACTION_DESTROY, sandbox_act_destroy, done, context);
}

void sandbox_touch(struct domain *domain, struct sandbox *sandbox)
{
    sandbox->idle_since_ns = domain_now_ns(domain);
    sandbox->active_ms = domain_wall_ms(domain);
}

/* --- what only the provider knows ------------------------------------------------------------- */

/* An answer that is known at once: there is no provider to ask. */
struct no_answer {
    struct domain_task task;
    provider_stats_done *stats_done;
    provider_sockets_done *sockets_done;
    void *context;
};

static void tell_no_answer(struct domain_task *task)
{
    struct no_answer *answer = CONTAINER_OF(task, struct no_answer, task);
    struct error err = ERROR_INIT;

    (void) error_set(&err, ERR_UNAVAILABLE, 0, "there is nowhere to run sandboxes, or not now");
    if (answer->stats_done)
        answer->stats_done(answer->context, &err, NULL);
    else
        answer->sockets_done(answer->context, &err, NULL, 0);
    free(answer);
}

static bool can_ask_provider(const struct domain *domain)
{
    return domain->options.provider && domain->stage == DOMAIN_OPEN;
}

static void answer_nothing(struct domain *domain, provider_stats_done *stats_done,
                           provider_sockets_done *sockets_done, void *context)
{
    struct no_answer *answer = mem_alloc(sizeof(*answer));

    answer->stats_done = stats_done;
    answer->sockets_done = sockets_done;
    answer->context = context;
    domain_defer(domain, &answer->task, tell_no_answer);
}

void sandbox_stats(struct domain *domain, struct sandbox *sandbox, provider_stats_done *done,
                   void *context)
{
    if (can_ask_provider(domain))
        provider_stats(domain->options.provider, &sandbox->id, done, context);
    else
        answer_nothing(domain, done, NULL, context);
}

void sandbox_sockets(struct domain *domain, struct sandbox *sandbox, size_t count,
                     provider_sockets_done *done, void *context)
{
    if (can_ask_provider(domain))
        provider_sockets(domain->options.provider, &sandbox->id, count, done, context);
    else
        answer_nothing(domain, NULL, done, context);
}

int sandbox_agent_address(struct domain *domain, struct sandbox *sandbox,
                          char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err)
{
    if (!can_ask_provider(domain))
        return error_set(err, ERR_UNAVAILABLE, 0, "there is nowhere to run sandboxes, or not now");
    return provider_agent_address(domain->options.provider, &sandbox->id, ret_address, err);
}

/* --- the module ------------------------------------------------------------------------------ */

static int owner_check(const struct domain *domain, const struct id *owner, struct error *err)
{
    size_t counts[SANDBOX_STATUS_COUNT], sandboxes = 0;

    sandbox_count(domain, owner, counts);
    for (size_t i = 0; i < SANDBOX_STATUS_COUNT; i++)
        sandboxes += counts[i];
    if (sandboxes)
        return error_set(err, ERR_CONFLICT, 0,
                         "%zu sandboxes belong to this user; destroy them first", sandboxes);
    return 0;
}

/* The rest of what a module does is domain.c's: rows come last, and go last. */
const struct domain_module domain_sandboxes = {
    .name = "sandboxes", .find_sandbox = sandbox_find, .owner_check = owner_check};
