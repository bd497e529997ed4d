#include "domain/egress/egress_decide.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "domain/caller.h"

/* --- the paths of an API --------------------------------------------------------------------- */

/* Files, batches and fine-tuning are ways out for data: they are not here. */
static const struct {
    enum egress_api api;
    const char *method, *path; /* '*': one step */
    enum broker_format format;
} requests[] = {
    {EGRESS_API_ANTHROPIC, "POST", "/messages", BROKER_ANTHROPIC},
    {EGRESS_API_ANTHROPIC, "POST", "/messages/count_tokens", BROKER_UNMETERED},
    {EGRESS_API_ANTHROPIC, "GET", "/models", BROKER_UNMETERED},
    {EGRESS_API_ANTHROPIC, "GET", "/models/*", BROKER_UNMETERED},
    {EGRESS_API_OPENAI, "POST", "/responses", BROKER_OPENAI_RESPONSES},
    {EGRESS_API_OPENAI, "POST", "/chat/completions", BROKER_OPENAI_CHAT},
    {EGRESS_API_OPENAI, "POST", "/embeddings", BROKER_OPENAI_OTHER},
    {EGRESS_API_OPENAI, "GET", "/models", BROKER_UNMETERED},
    {EGRESS_API_OPENAI, "GET", "/models/*", BROKER_UNMETERED},
    {EGRESS_API_GOOGLE, "POST", "/models/*:generateContent", BROKER_GOOGLE},
    {EGRESS_API_GOOGLE, "POST", "/models/*:streamGenerateContent", BROKER_GOOGLE},
    {EGRESS_API_GOOGLE, "POST", "/models/*:countTokens", BROKER_UNMETERED},
    {EGRESS_API_GOOGLE, "GET", "/models", BROKER_UNMETERED},
    {EGRESS_API_GOOGLE, "GET", "/models/*", BROKER_UNMETERED},
};

size_t egress_version_length(const char *path)
{
    static const char *const versions[] = {"/v1", "/v1beta"};

    for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
        size_t length = strlen(versions[i]);

        if (strncmp(path, versions[i], length) == 0 && (path[length] == '/' || !path[length]))
            return length;
    }
    return 0;
}

/* The star is one step that is not empty, and has no ':' either. */
static bool step_matches(const char *pattern, const char *path)
{
    const char *star = strchr(pattern, '*');
    size_t before = star ? (size_t) (star - pattern) : 0, step;

    if (!star)
        return strcmp(pattern, path) == 0;
    if (strncmp(pattern, path, before) != 0)
        return false;
    step = strcspn(path + before, "/:");
    return step > 0 && strcmp(path + before + step, star + 1) == 0;
}

bool egress_api_has(enum egress_api api, const char *method, const char *path,
                    enum broker_format *ret_format)
{
    path += egress_version_length(path);
    for (size_t i = 0; i < ARRAY_COUNT(requests); i++)
        if (requests[i].api == api && strcmp(requests[i].method, method) == 0 &&
            step_matches(requests[i].path, path)) {
            *ret_format = requests[i].format;
            return true;
        }
    return false;
}

/* --- labels ---------------------------------------------------------------------------------- */

static bool is_label_of(const char *label, const char *name)
{
    return strcmp(label + strlen(EGRESS_LABEL), name) == 0;
}

bool egress_label_fits(const struct egress_policy *policy, const char *label, const char *route,
                       const char *credential, enum egress_api api)
{
    /* A key of our own API is no business of anybody outside. */
    if (strncmp(label, CALLER_SECRET_PREFIX, strlen(CALLER_SECRET_PREFIX)) == 0)
        return false;
    if (strncmp(label, EGRESS_LABEL, strlen(EGRESS_LABEL)) != 0)
        return true;
    if (route)
        return is_label_of(label, route);
    if (!credential)
        return false;
    if (is_label_of(label, credential) ||
        (api != EGRESS_API_NONE && is_label_of(label, egress_api_text(api))))
        return true;
    for (size_t i = 0; i < policy->route_count; i++)
        if (policy->routes[i].credential && strcmp(policy->routes[i].credential, credential) == 0 &&
            is_label_of(label, policy->routes[i].name))
            return true;
    return false;
}

/* --- refusals -------------------------------------------------------------------------------- */

static void verdict_refuse(struct egress_verdict *verdict, enum err_code code, const char *reason,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

static void verdict_refuse(struct egress_verdict *verdict, enum err_code code, const char *reason,
                           const char *format, ...)
{
    va_list arguments;

    verdict->verdict = BROKER_DENY;
    verdict->code = code;
    verdict->reason = reason;
    va_start(arguments, format);
    (void) vsnprintf(verdict->message, sizeof(verdict->message), format, arguments);
    va_end(arguments);
}

static void refuse_host(struct egress_verdict *verdict, const char *host)
{
    verdict_refuse(verdict, ERR_FORBIDDEN, "host", "host %.120s is not allowed for this sandbox",
                   host);
}

static void refuse_ambiguous(struct egress_verdict *verdict)
{
    verdict_refuse(verdict, ERR_FORBIDDEN, "path",
                   "this path can be read in two ways: write it plainly");
    verdict->is_violation = true;
}

/* What one server takes for a '/' or "..", another one does not: no pattern can tell. */
static bool is_ambiguous(const char *path)
{
    static const char *const escapes[] = {"%2f", "%5c", "%2e", "%00", "\\"};

    for (size_t i = 0; i < ARRAY_COUNT(escapes); i++)
        for (const char *at = path; *at; at++)
            if (strncasecmp(at, escapes[i], strlen(escapes[i])) == 0)
                return true;
    return strstr(path, "//") != NULL;
}

/* --- the ways -------------------------------------------------------------------------------- */

static void decide_route(const struct egress_policy *policy, const struct broker_ask *ask,
                         struct egress_verdict *verdict)
{
    const struct egress_route *route = ask->route ? egress_route_find(policy, ask->route) : NULL;

    if (!route) {
        verdict_refuse(verdict, ERR_FORBIDDEN, "route",
                       "route %.64s is not allowed for this sandbox", ask->route ? ask->route : "");
        return;
    }
    verdict->route = route;
    verdict->verdict = BROKER_PASS;
    if (is_ambiguous(ask->path)) {
        refuse_ambiguous(verdict);
    } else if (ask->is_upgrade) {
        verdict_refuse(verdict, ERR_UPGRADE_REQUIRED, "upgrade",
                       "route %s has no WebSockets: send a request", route->name);
    } else if (route->api == EGRESS_API_NONE
                   ? !egress_paths_match(&route->paths, ask->path)
                   : !egress_api_has(route->api, ask->method, ask->path, &verdict->format)) {
        verdict_refuse(verdict, ERR_NOT_FOUND, "path",
                       "route %s does not lead to %.160s: only what models are asked by does",
                       route->name, ask->path);
    }
}

/* Plain TCP goes by its listener, which has a rule. */
static void decide_tcp(const struct egress_policy *policy, const struct broker_ask *ask,
                       struct egress_verdict *verdict)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct egress_rule *rule = &policy->rules[i];

        if (rule->is_tcp && rule->port == ask->port && strcmp(rule->host, ask->host) == 0) {
            verdict->rule = rule;
            verdict->verdict = BROKER_TUNNEL;
            return;
        }
    }
    refuse_host(verdict, ask->host);
}

/* Bytes go through as they are when the first rule for that place lets everything go; else each
 * request is looked at. */
static void decide_connect(const struct egress_policy *policy, const struct broker_ask *ask,
                           struct egress_verdict *verdict)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct egress_rule *rule = &policy->rules[i];

        if (rule->is_tcp || !egress_rule_names(rule, ask->host, ask->port))
            continue;
        verdict->rule = rule;
        verdict->verdict = egress_rule_is_narrow(rule) ? BROKER_INTERCEPT : BROKER_TUNNEL;
        return;
    }
    verdict->verdict = BROKER_TUNNEL;
    if (!policy->allows_rest || (ask->port != 80 && ask->port != 443))
        refuse_host(verdict, ask->host);
}

static void decide_request(const struct egress_policy *policy, const struct broker_ask *ask,
                           struct egress_verdict *verdict)
{
    bool is_named = false;

    verdict->verdict = BROKER_PASS;
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct egress_rule *rule = &policy->rules[i];

        if (rule->is_tcp || !egress_rule_names(rule, ask->host, ask->port))
            continue;
        if (rule->paths.count && is_ambiguous(ask->path)) {
            refuse_ambiguous(verdict);
            return;
        }
        is_named = true;
        if (egress_rule_takes(rule, ask->method, ask->path)) {
            verdict->rule = rule;
            return;
        }
    }
    if (is_named)
        verdict_refuse(verdict, ERR_FORBIDDEN, "path",
                       "no rule of this sandbox allows this method and path at host %.120s",
                       ask->host);
    else if (!policy->allows_rest || (ask->port != 80 && ask->port != 443))
        refuse_host(verdict, ask->host);
}

void egress_decide(const struct egress_policy *policy, const struct broker_ask *ask,
                   struct egress_verdict *ret_verdict)
{
    *ret_verdict = (struct egress_verdict){.format = BROKER_UNMETERED};
    switch (ask->way) {
    case BROKER_ROUTE:
        decide_route(policy, ask, ret_verdict);
        break;
    case BROKER_TCP:
        decide_tcp(policy, ask, ret_verdict);
        break;
    case BROKER_CONNECT:
        decide_connect(policy, ask, ret_verdict);
        break;
    case BROKER_HTTP:
    case BROKER_REQUEST:
        decide_request(policy, ask, ret_verdict);
        break;
    }
}
