/* The broker asks: what goes out, with which proof, and how much it may use.
 *
 *     policy ──► credential (renewed if it has to be) ──► label ──► budgets ──► grant
 *
 * It is answered from the loop, and looked at again when it is: whatever was changed meanwhile holds.
 * Every refusal has a word that the broker tells the client, and an event. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/pool.h"
#include "domain/egress/egress_internal.h"
#include "domain/egress/egress_place.h"
#include "domain/identity/owner.h"

#define RESERVED_OUTPUT 8192 /* tokens that a request is expected to write at the most */
#define BYTES_A_TOKEN   3    /* of a request's body: at least that */
#define NS_PER_S        UINT64_C(1000000000)
#define BASE_MAX        (EGRESS_TEXT_MAX + 16)

struct egress_asking {
    struct domain_task task;
    struct domain *domain;
    struct egress_way *way; /* held; NULL: there is none */
    struct broker_ask ask;  /* texts in the pool */
    struct pool pool;
    broker_answer *done;
    void *context;
    struct egress_verdict verdict;
    struct egress_credential *credential; /* of the moment; NULL: none */
    const char *type;                     /* of a refusal, for the client; static */
    char base[BASE_MAX];
    bool may_be_local;
    bool is_renewed; /* it was, for this one: it is not asked for again */
};

/* --- refusals -------------------------------------------------------------------------------- */

static int asking_refuse(struct egress_asking *asking, enum err_code code, const char *type,
                         const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static int asking_refuse(struct egress_asking *asking, enum err_code code, const char *type,
                         const char *reason, const char *format, ...)
{
    struct egress_verdict *verdict = &asking->verdict;
    va_list arguments;

    verdict->verdict = BROKER_DENY;
    verdict->code = code;
    verdict->reason = reason;
    asking->type = type;
    va_start(arguments, format);
    (void) vsnprintf(verdict->message, sizeof(verdict->message), format, arguments);
    va_end(arguments);
    return -1;
}

static void asking_end(struct egress_asking *asking, const struct broker_grant *grant)
{
    struct domain *domain = asking->domain;
    struct egress_way *way = asking->way;

    asking->done(asking->context, grant);
    if (way) {
        way->holds--;
        egress_way_release(way);
    }
    pool_done(&asking->pool);
    free(asking);
    domain->works--;
    domain_check_gone(domain);
}

static const char *refusal_type(const struct egress_asking *asking)
{
    switch (asking->verdict.code) {
    case ERR_NOT_FOUND:
        return "not_found_error";
    case ERR_UPGRADE_REQUIRED:
        return "upgrade_required";
    default:
        return "egress_denied";
    }
}

static enum broker_format format_of(const struct egress_asking *asking)
{
    const struct egress_route *route = asking->verdict.route;

    if (asking->verdict.format != BROKER_UNMETERED || !route)
        return asking->verdict.format;
    return route->api == EGRESS_API_ANTHROPIC ? BROKER_ANTHROPIC
           : route->api == EGRESS_API_OPENAI  ? BROKER_OPENAI_CHAT
           : route->api == EGRESS_API_GOOGLE  ? BROKER_GOOGLE
                                              : BROKER_UNMETERED;
}

static void asking_tell(const struct egress_asking *asking)
{
    const struct egress_verdict *verdict = &asking->verdict;
    const struct broker_ask *ask = &asking->ask;
    struct egress_way *way = asking->way;

    if (!way || verdict->code == ERR_QUOTA)
        return; /* a budget tells itself */
    way->counters.denied++;
    asking->domain->egress->counters.denied++;
    if (verdict->is_violation) {
        way->counters.violations++;
        asking->domain->egress->counters.violations++;
    }
    egress_tell_denial(way, verdict->is_violation ? "egress.violation" : "egress.denied",
                       egress_way_text(ask->way), ask->host ? ask->host : ask->route, ask->port,
                       verdict->reason);
}

static void asking_deny(struct egress_asking *asking)
{
    const struct egress_verdict *verdict = &asking->verdict;
    struct error refusal = ERROR_INIT;
    struct broker_grant grant = {
        .verdict = BROKER_DENY,
        .number = ++asking->domain->egress->last_grant,
        .refusal = &refusal,
        .refusal_type = asking->type ? asking->type : refusal_type(asking),
        .format = format_of(asking),
    };

    (void) error_set(&refusal, verdict->code, 0, "%s", verdict->message);
    asking_tell(asking);
    asking_end(asking, &grant);
}

/* --- where a route leads --------------------------------------------------------------------- */

static const char *default_base(enum egress_api api)
{
    static const char *const bases[EGRESS_API_COUNT] = {
        [EGRESS_API_ANTHROPIC] = "https://api.anthropic.com/v1",
        [EGRESS_API_OPENAI] = "https://api.openai.com/v1",
        [EGRESS_API_GOOGLE] = "https://generativelanguage.googleapis.com/v1beta",
    };

    return bases[api];
}

static void host_of(const char *url, char ret_host[static EGRESS_HOST_MAX + 1])
{
    const char *at = strstr(url, "://");
    size_t length;

    at = at ? at + 3 : url;
    length = strcspn(at, ":/");
    (void) snprintf(ret_host, EGRESS_HOST_MAX + 1, "%.*s", (int) length, at);
}

/* The policy's own, the credential's own, the operator's, the maker's: the first there is. A
 * credential goes to hosts that it is for; where an operator or the credential itself says, it is. */
static int asking_find_base(struct egress_asking *asking, const char **ret_base)
{
    const struct egress_route *route = asking->verdict.route;
    const struct egress_credential *credential = asking->credential;
    const struct sandbox_pairs *upstreams = &asking->domain->egress->upstreams;
    const char *upstream = sandbox_pairs_get(upstreams, route->name);
    const char *base = route->base;
    char host[EGRESS_HOST_MAX + 1];

    if (!upstream)
        upstream = sandbox_pairs_get(upstreams, egress_api_text(route->api));
    asking->may_be_local = false;
    if (!base && credential && credential->base) {
        *ret_base = credential->base;
        asking->may_be_local = upstream && strcmp(upstream, credential->base) == 0;
        return 0;
    }
    if (upstream && (!base || strcmp(base, upstream) == 0)) {
        *ret_base = upstream;
        asking->may_be_local = true;
        return 0;
    }
    base = base ? base : default_base(route->api);
    if (!base)
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "base",
                             "route %s has no base URL: say it in the policy or the credential",
                             route->name);
    host_of(base, host);
    if (credential && !egress_credential_is_for(credential, host))
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "credential",
                             "credential '%s' is not for host %.120s", credential->name, host);
    *ret_base = base;
    return 0;
}

/* Clients write the version into the path, or not; an upstream's base has it, or not. It is there
 * once: the client's own, when it said one. */
static int asking_set_base(struct egress_asking *asking)
{
    const struct egress_route *route = asking->verdict.route;
    const char *base;
    size_t length;

    if (asking_find_base(asking, &base) < 0)
        return -1;
    length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    (void) snprintf(asking->base, sizeof(asking->base), "%.*s", (int) length, base);
    if (route->api != EGRESS_API_NONE && egress_version_length(asking->ask.path)) {
        char *last = strrchr(asking->base, '/');

        if (last && egress_version_length(last) == strlen(last))
            *last = '\0';
    }
    return 0;
}

/* --- the credential -------------------------------------------------------------------------- */

static const char *credential_name(const struct egress_verdict *verdict)
{
    return verdict->route  ? verdict->route->credential
           : verdict->rule ? verdict->rule->credential
                           : NULL;
}

/* A host of an API that is known has its requests metered; and no others, unless a rule says which. */
static int asking_check_api(struct egress_asking *asking)
{
    const struct broker_ask *ask = &asking->ask;
    enum egress_api api = egress_credential_api(asking->credential);

    if (api == EGRESS_API_NONE || asking->verdict.route ||
        egress_api_has(api, ask->method, ask->path, &asking->verdict.format) ||
        asking->verdict.rule->paths.count)
        return 0;
    return asking_refuse(asking, ERR_NOT_FOUND, NULL, "path",
                         "host %.120s does not lead to %.120s: only what models are asked by does; "
                         "a rule with paths says more",
                         ask->host, ask->path);
}

static int asking_check_label(struct egress_asking *asking)
{
    const struct egress_verdict *verdict = &asking->verdict;
    const struct egress_credential *credential = asking->credential;
    const char *label = asking->ask.placeholder;

    if (!label ||
        egress_label_fits(&asking->way->policy, label, verdict->route ? verdict->route->name : NULL,
                          credential ? credential->name : NULL,
                          credential ? egress_credential_api(credential) : EGRESS_API_NONE))
        return 0;
    asking->verdict.is_violation = true;
    return asking_refuse(asking, ERR_FORBIDDEN, NULL, "placeholder",
                         "the key that was sent is for something else than this: it is a label of "
                         "Burrow's, or a key of it");
}

static int asking_find_credential(struct egress_asking *asking)
{
    const char *name = credential_name(&asking->verdict);
    struct egress_credential *credential;

    asking->credential = NULL;
    if (!name)
        return 0;
    credential = egress_credential_of(asking->domain, &asking->way->owner, name);
    if (!credential)
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "credential",
                             "there is no credential '%s', which the policy of this sandbox names",
                             name);
    if (asking->verdict.rule && !egress_credential_is_for(credential, asking->ask.host))
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "credential",
                             "credential '%s' is not for host %.120s", name, asking->ask.host);
    asking->credential = credential;
    return 0;
}

static int asking_check_credential(struct egress_asking *asking)
{
    const struct egress_credential *credential = asking->credential;
    int64_t now_ms = domain_wall_ms(asking->domain);

    if (credential && credential->expires_ms && credential->expires_ms <= now_ms)
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "credential",
                             "credential '%s' has expired: put it again", credential->name);
    return 0;
}

/* --- budgets --------------------------------------------------------------------------------- */

/* What it may use: of the model that was asked last, as long as no reply names another. */
static void asking_estimate(const struct egress_asking *asking, uint64_t *ret_tokens,
                            uint64_t *ret_micros)
{
    const struct egress *egress = asking->domain->egress;
    enum broker_format format = asking->verdict.format;
    struct egress_tokens tokens = {.input = asking->ask.body_bytes / BYTES_A_TOKEN + 1,
                                   .output = RESERVED_OUTPUT};

    *ret_tokens = *ret_micros = 0;
    if (format == BROKER_UNMETERED)
        return;
    if (format == BROKER_OPENAI_OTHER)
        tokens.output = 0;
    if (tokens.input > EGRESS_TOKENS_MAX)
        tokens.input = EGRESS_TOKENS_MAX;
    *ret_tokens = egress_tokens_sum(&tokens);
    *ret_micros =
        egress_cost_of(&egress->prices, asking->way->models[egress_api_of(format)], &tokens)
            .counted;
}

static int asking_check_budgets(struct egress_asking *asking, uint64_t tokens, uint64_t micros)
{
    struct egress_way *way = asking->way;
    int64_t day_ms = egress_day(asking->domain);
    uint64_t now_s = domain_now_ns(asking->domain) / NS_PER_S;

    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++) {
        enum egress_limit limit;

        if (!way->scopes[i])
            continue;
        limit = egress_meter_check(&way->scopes[i]->meter,
                                   egress_budget_of(way, (enum egress_scope_kind) i), day_ms, now_s,
                                   tokens, micros);
        if (limit == EGRESS_WITHIN)
            continue;
        way->counters.denied++;
        asking->domain->egress->counters.denied++;
        egress_tell_budget(way, egress_scope_text((enum egress_scope_kind) i),
                           egress_limit_word(limit));
        return asking_refuse(
            asking, ERR_QUOTA, limit == EGRESS_MINUTE ? "rate_limit_error" : "budget_exceeded",
            "budget", "the budget of this %s: %s", egress_scope_text((enum egress_scope_kind) i),
            egress_limit_text(limit));
    }
    return 0;
}

/* --- the grant ------------------------------------------------------------------------------- */

static void asking_grant(struct egress_asking *asking, uint64_t tokens, uint64_t micros)
{
    const struct egress_verdict *verdict = &asking->verdict;
    AUTO(egress_proof) struct egress_proof proof = {.count = 0};
    struct egress_grant *granted = egress_grant_new(
        asking->way, verdict, asking->credential ? asking->credential->name : NULL, tokens, micros);
    struct broker_grant grant = {
        .verdict = verdict->verdict,
        .number = granted->number,
        .base = verdict->route ? asking->base : NULL,
        .format = verdict->format,
        .may_be_local = asking->may_be_local,
    };

    if (!verdict->route)
        grant.may_be_local =
            egress_is_local(&asking->domain->egress->local, asking->ask.host, asking->ask.port);
    if (asking->credential && verdict->verdict == BROKER_PASS) {
        egress_credential_prove(asking->credential, asking->ask.host, &proof);
        egress_credential_used(asking->domain, asking->credential);
        memcpy(grant.headers, proof.headers, sizeof(grant.headers));
        grant.header_count = proof.count;
    }
    asking_end(asking, &grant);
}

/* --- the steps ------------------------------------------------------------------------------- */

static int asking_check_way(struct egress_asking *asking)
{
    const struct egress_way *way = asking->way;
    const struct owner *owner = way ? owner_find(asking->domain, &way->owner) : NULL;
    struct error err = ERROR_INIT;

    if (!domain_is_open(asking->domain, &err))
        return asking_refuse(asking, ERR_UNAVAILABLE, "unavailable", "closing", "%s", err.message);
    if (!way || way->is_forgotten)
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "policy",
                             "this sandbox may reach nothing: it has no policy");
    if (owner && owner->is_disabled)
        return asking_refuse(asking, ERR_FORBIDDEN, NULL, "owner",
                             "the owner of this sandbox was disabled");
    if (way->grant_count >= EGRESS_UNDER_WAY_MAX)
        return asking_refuse(asking, ERR_RATE_LIMITED, "rate_limit_error", "crowd",
                             "this sandbox has %d requests under way already",
                             EGRESS_UNDER_WAY_MAX);
    return 0;
}

static int asking_check_proof(struct egress_asking *asking)
{
    if (asking->verdict.verdict != BROKER_PASS)
        return 0;
    if (asking_find_credential(asking) < 0 || asking_check_label(asking) < 0 ||
        (asking->credential && asking_check_api(asking) < 0))
        return -1;
    return asking->verdict.route ? asking_set_base(asking) : 0;
}

static void asking_run(struct domain_task *task);

static void asking_renewed(void *context, const struct error *failure)
{
    struct egress_asking *asking = context;

    asking->is_renewed = true;
    if (failure) {
        (void) asking_refuse(asking, ERR_UPSTREAM, "credential_not_renewed", "renewal", "%s",
                             failure->message);
        asking_deny(asking);
        return;
    }
    domain_defer(asking->domain, &asking->task, asking_run);
}

static void asking_run(struct domain_task *task)
{
    struct egress_asking *asking = CONTAINER_OF(task, struct egress_asking, task);
    uint64_t tokens = 0, micros = 0;

    if (asking_check_way(asking) < 0) {
        asking_deny(asking);
        return;
    }
    egress_decide(&asking->way->policy, &asking->ask, &asking->verdict);
    if (asking->verdict.verdict == BROKER_DENY || asking_check_proof(asking) < 0) {
        asking_deny(asking);
        return;
    }
    if (asking->credential && !asking->is_renewed &&
        egress_needs_renewal(asking->domain, asking->credential)) {
        egress_renew(asking->domain, asking->credential, asking_renewed, asking);
        return;
    }
    asking_estimate(asking, &tokens, &micros);
    if (asking_check_credential(asking) < 0 || (asking->verdict.verdict != BROKER_INTERCEPT &&
                                                asking_check_budgets(asking, tokens, micros) < 0)) {
        asking_deny(asking);
        return;
    }
    asking_grant(asking, tokens, micros);
}

static const char *keep_text(struct egress_asking *asking, const char *text)
{
    return text ? pool_copy_text(&asking->pool, text) : NULL;
}

void egress_ask(void *self, const struct broker_ask *ask, broker_answer *done, void *context)
{
    struct domain *domain = self;
    struct egress_asking *asking = mem_alloc(sizeof(*asking));

    asking->domain = domain;
    asking->way = egress_way_of(domain, &ask->sandbox);
    if (asking->way)
        asking->way->holds++;
    asking->ask = *ask;
    asking->ask.route = keep_text(asking, ask->route);
    asking->ask.host = keep_text(asking, ask->host);
    asking->ask.method = keep_text(asking, ask->method);
    asking->ask.path = keep_text(asking, ask->path);
    asking->ask.placeholder = keep_text(asking, ask->placeholder);
    asking->done = done;
    asking->context = context;
    domain->works++;
    domain_defer(domain, &asking->task, asking_run);
}
