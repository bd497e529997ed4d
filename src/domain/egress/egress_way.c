/* The way out of one sandbox: opened, changed, closed.
 *
 *     what the store has of its authority ──► sockets inside ──► broker ──► agent told ──► answered
 *
 * One after the other for each sandbox. It is held open by nothing but the daemon: after a restart it
 * is made again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/egress/egress_internal.h"
#include "domain/egress/egress_place.h"
#include "domain/identity/owner.h"
#include "domain/inside_call.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandboxes.h"

#define AGAIN_NS    (UINT64_C(5) * 1000 * 1000 * 1000)
#define AGENT_MAX   ((size_t) 256 * 1024)
#define SCOPE_TEXT  (ID_LENGTH + SANDBOX_LABEL_MAX + 32)
#define TELL_TOKENS 200 /* events at once: egress_tell.c */

struct egress_opening {
    struct list link;
    struct egress_way *way;
    char *text; /* owned: the policy */
    char *task; /* owned */
    domain_done *done;
    void *context;
};

/* --- scopes ---------------------------------------------------------------------------------- */

static struct egress_scope *scope_find(const struct domain *domain, uint64_t hash, const char *key)
{
    for (struct table_link *at = table_find(&domain->egress->scopes, hash); at;
         at = table_next(at)) {
        struct egress_scope *scope = CONTAINER_OF(at, struct egress_scope, by_key);

        if (strcmp(scope->key, key) == 0)
            return scope;
    }
    return NULL;
}

struct egress_scope *egress_scope_get(struct domain *domain, const char *key)
{
    uint64_t hash = table_hash(domain->seed, key, strlen(key));
    struct egress_scope *scope = scope_find(domain, hash, key);

    if (!scope) {
        scope = mem_alloc(sizeof(*scope));
        scope->key = mem_copy_text(key);
        scope->by_key.hash = hash;
        table_add(&domain->egress->scopes, &scope->by_key);
    }
    scope->references++;
    return scope;
}

/* Kept for the day: what it used counts also when its sandboxes come and go. */
void egress_scope_release(struct domain *domain, struct egress_scope *scope)
{
    if (!scope || --scope->references || scope->meter.day_ms == egress_day(domain))
        return;
    table_remove(&domain->egress->scopes, &scope->by_key);
    free(scope->key);
    free(scope);
}

static void way_set_scopes(struct egress_way *way)
{
    struct domain *domain = way->domain;
    char key[SCOPE_TEXT];

    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++)
        egress_scope_release(domain, TAKE_PTR(way->scopes[i]));
    (void) snprintf(key, sizeof(key), "sandbox/%s", way->sandbox.text);
    way->scopes[EGRESS_SANDBOX] = egress_scope_get(domain, key);
    (void) snprintf(key, sizeof(key), "owner/%s", way->owner.text);
    way->scopes[EGRESS_OWNER] = egress_scope_get(domain, key);
    if (!*way->task)
        return;
    (void) snprintf(key, sizeof(key), "task/%s/%s", way->owner.text, way->task);
    way->scopes[EGRESS_TASK] = egress_scope_get(domain, key);
}

/* --- memory ---------------------------------------------------------------------------------- */

struct egress_way *egress_way_of(const struct domain *domain, const struct id *sandbox)
{
    for (struct table_link *at = table_find(&domain->egress->ways, domain_id_hash(domain, sandbox));
         at; at = table_next(at)) {
        struct egress_way *way = CONTAINER_OF(at, struct egress_way, by_sandbox);

        if (id_equal(&way->sandbox, sandbox))
            return way;
    }
    return NULL;
}

static struct egress_way *way_new(struct domain *domain, const struct sandbox *sandbox)
{
    struct egress_way *way = mem_alloc(sizeof(*way));

    way->domain = domain;
    way->sandbox = sandbox->id;
    way->owner = sandbox->owner;
    way->task = mem_copy_text("");
    way->tokens = TELL_TOKENS;
    way->filled_ns = domain_now_ns(domain);
    list_init(&way->grants);
    list_init(&way->openings);
    way->by_sandbox.hash = domain_id_hash(domain, &sandbox->id);
    table_add(&domain->egress->ways, &way->by_sandbox);
    list_append(&domain->egress->way_list, &way->link);
    return way;
}

void egress_way_free(struct egress_way *way)
{
    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++)
        egress_scope_release(way->domain, way->scopes[i]);
    egress_policy_done(&way->policy);
    sandbox_texts_done(&way->forwards);
    free(way->text);
    free(way->task);
    free(way->certificate);
    if (way->key)
        explicit_bzero(way->key, strlen(way->key));
    free(way->key);
    free(way);
}

void egress_way_release(struct egress_way *way)
{
    if (way->is_forgotten && !way->holds && list_is_empty(&way->grants) &&
        list_is_empty(&way->openings))
        egress_way_free(way);
}

static void way_close(struct egress_way *way)
{
    const struct broker *broker = way->domain->options.broker;
    struct broker_outlet *outlet = TAKE_PTR(way->outlet);

    if (outlet)
        broker->close(broker->self, outlet);
}

static void way_forget(struct egress_way *way)
{
    table_remove(&way->domain->egress->ways, &way->by_sandbox);
    list_remove(&way->link);
    way->is_forgotten = true;
    way->holds++; /* what ends by the close lets go of it */
    way_close(way);
    way->holds--;
    egress_way_release(way);
}

void egress_forgotten(struct domain *domain, const struct id *sandbox)
{
    struct egress_way *way = egress_way_of(domain, sandbox);

    if (way)
        way_forget(way);
}

void egress_ways_close(struct domain *domain)
{
    struct list *link;

    domain->egress->is_closing = true;
    while ((link = list_first(&domain->egress->way_list)))
        way_forget(CONTAINER_OF(link, struct egress_way, link));
}

static bool way_names(const struct egress_way *way, const char *credential)
{
    for (size_t i = 0; i < way->policy.rule_count; i++)
        if (way->policy.rules[i].credential &&
            strcmp(way->policy.rules[i].credential, credential) == 0)
            return true;
    for (size_t i = 0; i < way->policy.route_count; i++)
        if (way->policy.routes[i].credential &&
            strcmp(way->policy.routes[i].credential, credential) == 0)
            return true;
    return false;
}

void egress_ways_cut(struct domain *domain, const struct id *owner, const char *credential)
{
    const struct broker *broker = domain->options.broker;

    LIST_EACH (&domain->egress->way_list, at) {
        struct egress_way *way = CONTAINER_OF(at, struct egress_way, link);

        if (way->outlet && id_equal(&way->owner, owner) &&
            (!credential || way_names(way, credential)))
            broker->cut(broker->self, way->outlet);
    }
}

/* --- the end of an opening ------------------------------------------------------------------- */

static void opening_begin(struct egress_opening *opening);

static void opening_end(struct egress_opening *opening, const struct error *failure)
{
    struct egress_way *way = opening->way;
    struct domain *domain = way->domain;
    domain_done *done = opening->done;
    void *context = opening->context;
    struct list *next;

    list_remove(&opening->link);
    free(opening->text);
    free(opening->task);
    free(opening);
    way->holds++;
    if (done)
        done(context, failure);
    way->holds--;
    next = list_first(&way->openings);
    if (next)
        opening_begin(CONTAINER_OF(next, struct egress_opening, link));
    else
        egress_way_release(way);
    domain->works--;
    domain_check_gone(domain);
}

static void opening_fail(struct egress_opening *opening, const struct error *failure)
{
    struct error err = *failure;

    opening->way->retry_ns = domain_now_ns(opening->way->domain) + AGAIN_NS;
    (void) error_wrap(&err, "open its way out");
    opening_end(opening, &err);
}

/* Its processes are over, or the daemon ends. */
static bool opening_is_over(struct egress_opening *opening)
{
    struct egress_way *way = opening->way;
    struct error err = ERROR_INIT;

    if (way->is_forgotten)
        (void) error_set(&err, ERR_CANCELLED, 0, "the sandbox ended meanwhile");
    else if (domain_is_open(way->domain, &err))
        return false;
    opening_end(opening, &err);
    return true;
}

/* --- the agent ------------------------------------------------------------------------------- */

/* Where there is no agent, nobody misses names and certificates. */
static void opening_told(void *context, const struct error *failure,
                         const struct inside_answer *answer)
{
    struct egress_opening *opening = context;

    (void) answer;
    if (opening_is_over(opening))
        return;
    opening->way->is_stale = failure && failure->code != ERR_NOT_IMPLEMENTED;
    if (opening->way->is_stale)
        opening_fail(opening, failure);
    else
        opening_end(opening, NULL);
}

static void opening_tell(struct egress_opening *opening)
{
    struct egress_way *way = opening->way;
    struct domain *domain = way->domain;
    const struct broker *broker = domain->options.broker;
    const struct sandbox *sandbox = sandbox_set_by_id(domain, way->sandbox.text);
    AUTO(egress_place) struct egress_place place = {.forward_count = 0};
    AUTO(text) struct text text = TEXT_INIT(AGENT_MAX);

    /* One that is frozen cannot listen: it is told when it wakes. */
    way->is_stale = true;
    if (sandbox && sandbox->status == SANDBOX_FROZEN) {
        opening_end(opening, NULL);
        return;
    }
    egress_place_init(&place, &way->policy, &domain->egress->local);
    egress_place_write(&place, &way->policy,
                       way->outlet ? broker->authority(broker->self, way->outlet) : NULL, &text);
    inside_ask(domain, &way->sandbox, INSIDE_WAY_OUT, text_string(&text), opening_told, opening);
}

/* --- the broker ------------------------------------------------------------------------------ */

static void place_for_broker(const struct egress_way *way, const struct egress_place *place,
                             struct broker_place *ret_place)
{
    *ret_place = (struct broker_place){.sandbox = way->sandbox,
                                       .owner = way->owner,
                                       .forwards = place->forwards,
                                       .forward_count = place->forward_count,
                                       .intercepted = place->intercepted,
                                       .intercepted_count = place->intercepted_count,
                                       .ca_certificate = way->certificate,
                                       .ca_key = way->key};
}

static void opening_got_sockets(void *context, const struct error *failure, const int *sockets,
                                size_t count)
{
    struct egress_opening *opening = context;
    struct egress_way *way = opening->way;
    struct domain *domain = way->domain;
    const struct broker *broker = domain->options.broker;
    AUTO(egress_place) struct egress_place place = {.forward_count = 0};
    struct broker_place wanted;
    struct error err = ERROR_INIT;

    if (failure) {
        opening_fail(opening, failure);
        return;
    }
    (void) count; /* as many as were asked for */
    egress_place_init(&place, &way->policy, &domain->egress->local);
    place_for_broker(way, &place, &wanted);
    way->outlet = broker->open(broker->self, &wanted, sockets, &err);
    if (!way->outlet) {
        opening_fail(opening, &err);
        return;
    }
    /* The sockets are in good hands, also when nobody needs them any more. */
    if (way->is_forgotten || domain->stage != DOMAIN_OPEN) {
        way_close(way);
        (void) opening_is_over(opening);
        return;
    }
    TRACE("egress.way.opened");
    sandbox_texts_done(&way->forwards);
    way->forwards = place.listening;
    place.listening = (struct sandbox_texts){.items = NULL};
    opening_tell(opening);
}

static void opening_open(struct egress_opening *opening)
{
    struct egress_way *way = opening->way;
    AUTO(egress_place) struct egress_place place = {.forward_count = 0};

    egress_place_init(&place, &way->policy, &way->domain->egress->local);
    way_close(way);
    provider_sockets(way->domain->options.provider, &way->sandbox,
                     BROKER_SOCKETS + place.forward_count, opening_got_sockets, opening);
}

/* It stays open for what goes on, unless other things are listened for. */
static void opening_change(struct egress_opening *opening)
{
    struct egress_way *way = opening->way;
    const struct broker *broker = way->domain->options.broker;
    AUTO(egress_place) struct egress_place place = {.forward_count = 0};
    struct broker_place wanted;
    struct error err = ERROR_INIT;

    egress_place_init(&place, &way->policy, &way->domain->egress->local);
    if (!way->outlet || !sandbox_texts_equal(&place.listening, &way->forwards)) {
        opening_open(opening);
        return;
    }
    place_for_broker(way, &place, &wanted);
    broker->cut(broker->self, way->outlet); /* what the old policy let go */
    if (broker->change(broker->self, way->outlet, &wanted, &err) < 0)
        opening_fail(opening, &err);
    else
        opening_tell(opening);
}

/* --- the authority, and the beginning -------------------------------------------------------- */

static void opening_found_authority(void *context, const struct error *failure,
                                    const char *certificate, const char *key)
{
    struct egress_opening *opening = context;
    struct egress_way *way = opening->way;

    if (opening_is_over(opening))
        return;
    if (failure) {
        opening_fail(opening, failure);
        return;
    }
    way->is_looked_up = true;
    if (certificate) {
        free(way->certificate);
        free(way->key);
        way->certificate = mem_copy_text(certificate);
        way->key = mem_copy_text(key);
    }
    opening_change(opening);
}

static int opening_set_policy(struct egress_opening *opening, struct error *err)
{
    struct egress_way *way = opening->way;
    struct egress_policy policy = EGRESS_POLICY_INIT;

    if (egress_policy_parse(opening->text, strlen(opening->text), &policy, err) < 0)
        return -1;
    egress_policy_done(&way->policy);
    way->policy = policy;
    free(way->text);
    free(way->task);
    way->text = TAKE_PTR(opening->text);
    way->task = TAKE_PTR(opening->task);
    way_set_scopes(way);
    return 0;
}

/* Nobody looks for an authority that is not needed. */
static void opening_begin(struct egress_opening *opening)
{
    struct egress_way *way = opening->way;
    struct domain *domain = way->domain;
    AUTO(egress_place) struct egress_place place = {.forward_count = 0};
    bool is_same =
        way->text && strcmp(way->text, opening->text) == 0 && strcmp(way->task, opening->task) == 0;
    struct error err = ERROR_INIT;

    if (opening_is_over(opening))
        return;
    if (is_same && way->outlet && !way->is_stale) {
        opening_end(opening, NULL);
        return;
    }
    if (is_same && way->outlet) {
        opening_tell(opening);
        return;
    }
    if (opening_set_policy(opening, &err) < 0) {
        opening_fail(opening, &err);
        return;
    }
    egress_place_init(&place, &way->policy, &domain->egress->local);
    if (place.intercepted_count && !way->is_looked_up)
        egress_authority_find(domain, &way->sandbox, opening_found_authority, opening);
    else
        opening_change(opening);
}

static const char *task_of(const struct sandbox *sandbox)
{
    const char *task = sandbox_pairs_get(&sandbox->spec.labels, SANDBOX_LABEL_TASK);

    return task ? task : "";
}

static void way_open(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                     void *context)
{
    struct egress_way *way = egress_way_of(domain, &sandbox->id);
    struct egress_opening *opening = mem_alloc(sizeof(*opening));

    if (!way)
        way = way_new(domain, sandbox);
    *opening = (struct egress_opening){.way = way,
                                       .text = mem_copy_text(sandbox->spec.egress),
                                       .task = mem_copy_text(task_of(sandbox)),
                                       .done = done,
                                       .context = context};
    list_append(&way->openings, &opening->link);
    domain->works++;
    if (list_first(&way->openings) == &opening->link)
        opening_begin(opening);
}

/* --- as members of the module ---------------------------------------------------------------- */

static bool has_processes(const struct sandbox *sandbox)
{
    static const bool ended[SANDBOX_STATUS_COUNT] = {[SANDBOX_STOPPED] = true,
                                                     [SANDBOX_HIBERNATED] = true,
                                                     [SANDBOX_ERROR] = true,
                                                     [SANDBOX_UNKNOWN] = true,
                                                     [SANDBOX_DESTROYED] = true};

    return !ended[sandbox->status];
}

struct egress_closing {
    domain_done *done;
    void *context;
};

/* Names that lead nowhere are no harm: this is tidying up. */
static void closing_told(void *context, const struct error *failure,
                         const struct inside_answer *answer)
{
    struct egress_closing closing = *(struct egress_closing *) context;

    (void) failure, (void) answer;
    free(context);
    closing.done(closing.context, NULL);
}

static void way_end(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                    void *context)
{
    bool was_open = egress_way_of(domain, &sandbox->id) != NULL;
    struct egress_closing *closing;

    egress_forgotten(domain, &sandbox->id);
    if (!was_open || sandbox->status != SANDBOX_RUNNING) {
        done(context, NULL);
        return;
    }
    closing = mem_alloc(sizeof(*closing));
    *closing = (struct egress_closing){.done = done, .context = context};
    inside_ask(domain, &sandbox->id, INSIDE_WAY_OUT, "{\"hosts\":[],\"authority\":null}",
               closing_told, closing);
}

void egress_open_way(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                     void *context)
{
    struct error err = ERROR_INIT;

    if (!sandbox->spec.egress) {
        way_end(domain, sandbox, done, context);
    } else if (!has_processes(sandbox)) {
        done(context, NULL);
    } else if (!domain->options.broker || domain->egress->is_closing) {
        (void) error_set(&err, ERR_NOT_IMPLEMENTED, 0, "this daemon has no egress broker");
        done(context, &err);
    } else {
        way_open(domain, sandbox, done, context);
    }
}

/* Who waits for it is nobody: it is logged, and tried again. */
static void way_reopened(void *context, const struct error *failure)
{
    struct domain *domain = context;

    if (failure)
        LOG_WARNING(domain->options.log, "the way out of a sandbox is not open",
                    log_text("error", failure->message));
}

static void way_reopen(struct domain *domain, struct sandbox *sandbox)
{
    if (sandbox->spec.egress && domain->options.broker && !domain->egress->is_closing &&
        (sandbox->status == SANDBOX_RUNNING || sandbox->status == SANDBOX_FROZEN))
        way_open(domain, sandbox, way_reopened, domain);
}

void egress_recovered(struct domain *domain)
{
    LIST_EACH (&domain->sandboxes->all, at)
        way_reopen(domain, CONTAINER_OF(at, struct sandbox, link));
}

void egress_way_tick(struct egress_way *way)
{
    struct domain *domain = way->domain;
    struct sandbox *sandbox = sandbox_set_by_id(domain, way->sandbox.text);

    if (!way->outlet && list_is_empty(&way->openings) && sandbox &&
        domain_now_ns(domain) >= way->retry_ns)
        way_reopen(domain, sandbox);
}

void egress_variables(const struct domain *domain, const struct sandbox *sandbox,
                      void (*each)(void *context, const char *name, const char *value),
                      void *context)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;
    AUTO(egress_place) struct egress_place place = {.forward_count = 0};
    const char *text = sandbox->spec.egress;

    if (!text || egress_policy_parse(text, strlen(text), &policy, NULL) < 0)
        return;
    egress_place_init(&place, &policy, &domain->egress->local);
    egress_place_variables(&policy, &place, each, context);
}
