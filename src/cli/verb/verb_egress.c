/* burrow egress, burrow usage: what leaves sandboxes by a policy, and what it cost. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verb_spec.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "net/url.h"

#define EGRESS_TYPES "egress."

static const char *egress_path(struct client *client, const struct verb_call *call)
{
    return client_sandbox_path(client, call->words[0], "/egress");
}

static int egress_explain(const struct verb_call *call, struct client *client, struct error *err)
{
    client_sandbox_explain(client, call->words[0], err);
    return -1;
}

/* --- show ------------------------------------------------------------------------------------ */

static const struct verb_column recent_columns[] = {
    {"WAY", "way", verb_put_text},         {"ROUTE", "route", verb_put_text},
    {"HOST", "host", verb_put_text},       {"METHOD", "method", verb_put_text},
    {"PATH", "path", verb_put_text},       {"STATUS", "status", verb_put_number},
    {"MS", "ms", verb_put_number},         {"MODEL", "model", verb_put_text},
    {"TOKENS", "tokens", verb_put_number}, VERB_COLUMNS_END,
};

static void print_policy(json_t *egress)
{
    json_t *counters = json_object_get(egress, "counters");

    (void) json_dumpf(json_object_get(egress, "policy"), stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    (void) printf("\n%s, %lld requests, %lld denied, %lld tokens\n",
                  json_is_true(json_object_get(egress, "open")) ? "open" : "not open",
                  verb_number(counters, "requests"), verb_number(counters, "denied"),
                  verb_number(counters, "tokens"));
}

static int egress_show(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_call(client, "GET", egress_path(client, call), NULL, &reply, err) < 0)
        return egress_explain(call, client, err);
    if (verb_flag(call, "json")) {
        verb_print_json(reply.json);
        return 0;
    }
    print_policy(reply.json);
    return verb_print_list(call, json_object_get(reply.json, "recent"), recent_columns);
}

/* --- log ------------------------------------------------------------------------------------- */

static const struct verb_option log_options[] = {
    {"follow", 'f', NULL, "go on with what happens, until interrupted", false},
    {"after", 0, "CURSOR", "only what came behind it; -1: only what comes now", false},
    {NULL, 0, NULL, NULL, false},
};

static int egress_log(struct verb_call *call, struct client *client, struct error *err)
{
    return verb_print_events(call, client, EGRESS_TYPES, err);
}

/* --- set and allow --------------------------------------------------------------------------- */

static int egress_send(struct verb_call *call, struct client *client, json_t *change,
                       struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_call(client, "PATCH", egress_path(client, call), change, &reply, err) < 0)
        return egress_explain(call, client, err);
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    return 0;
}

/* The whole of it: what it does not say is none. */
static int egress_set(struct verb_call *call, struct client *client, struct error *err)
{
    static const char *const members[] = {"default", "rules", "models", "budget", "taskBudget"};
    AUTO(json) json_t *policy = verb_read_policy(call->words[1], err);

    if (!policy)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(members); i++)
        if (!json_object_get(policy, members[i]))
            (void) json_object_set_new(policy, members[i], json_null());
    return egress_send(call, client, policy, err);
}

static const struct verb_option allow_options[] = {
    {"credential", 'c', "NAME", "put this one into requests to it", false},
    {"port", 'p', "PORT", "another than 80 and 443", false},
    {"tcp", 0, NULL, "plain TCP, not HTTP; with a port", false},
    {"path", 0, "PATTERN", "only such paths, like /acme/**", true},
    {"method", 0, "METHOD", "only this method", true},
    {NULL, 0, NULL, NULL, false},
};

static void texts_add(const struct verb_call *call, const char *option, const char *field,
                      json_t *rule)
{
    size_t count;
    const char *const *texts = verb_values(call, option, &count);
    json_t *array;

    if (!count)
        return;
    array = json_array();
    (void) json_object_set_new(rule, field, array);
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(array, json_string(texts[i]));
}

static json_t *rule_of(const struct verb_call *call, struct error *err)
{
    json_t *rule = json_object();
    const char *port = verb_value(call, "port");
    int64_t number = 0;

    if (port && number_parse(port, 1, UINT16_MAX, &number) < 0) {
        (void) error_set(err, ERR_INVALID, 0, "--port %s: a number", port);
        json_decref(rule);
        return NULL;
    }
    verb_set_text(rule, "host", call->words[1]);
    verb_set_text(rule, "credential", verb_value(call, "credential"));
    if (verb_flag(call, "tcp"))
        verb_set_text(rule, "protocol", "tcp");
    if (port)
        (void) json_object_set_new(rule, "port", json_integer(number));
    texts_add(call, "path", "paths", rule);
    texts_add(call, "method", "methods", rule);
    return rule;
}

/* One rule more, behind those that are there. */
static int egress_allow(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *change = json_object();
    json_t *rule = rule_of(call, err), *rules;

    if (!rule)
        return -1;
    if (client_call(client, "GET", egress_path(client, call), NULL, &reply, err) < 0) {
        json_decref(rule);
        return egress_explain(call, client, err);
    }
    rules = json_object_get(json_object_get(reply.json, "policy"), "rules");
    rules = rules ? json_deep_copy(rules) : json_array();
    (void) json_array_append_new(rules, rule);
    (void) json_object_set_new(change, "rules", rules);
    return egress_send(call, client, change, err);
}

/* --- usage ----------------------------------------------------------------------------------- */

static const struct verb_option usage_options[] = {
    {"by", 0, "WHAT", "owner, model (the default), day, sandbox, route or task", false},
    {"from", 0, "DAY", "the first day, like 2026-11-19 (a month ago)", false},
    {"to", 0, "DAY", "the last day (today)", false},
    {"owner", 0, "USER", "only theirs", false},
    {NULL, 0, NULL, NULL, false},
};

static void put_tokens(struct grid *grid, json_t *usage, const char *field)
{
    grid_format(grid, "%lld", verb_number(json_object_get(usage, "tokens"), field));
}

/* What is not known is not nothing. */
static void put_cost(struct grid *grid, json_t *usage, const char *field)
{
    const char *cost = verb_field(usage, field);
    bool is_known = json_is_true(json_object_get(usage, "costKnown"));

    grid_format(grid, "%s%s", cost ? cost : "", is_known ? "" : " and more");
}

static int usage_print(struct verb_call *call, json_t *all, const char *by)
{
    const struct verb_column columns[] = {
        {by, by, verb_put_text},
        {"REQUESTS", "requests", verb_put_number},
        {"INPUT", "input", put_tokens},
        {"OUTPUT", "output", put_tokens},
        {"REASONING", "reasoning", put_tokens},
        {"CACHE READ", "cacheRead", put_tokens},
        {"CACHE WRITE", "cacheWrite", put_tokens},
        {"COST", "cost", put_cost},
        VERB_COLUMNS_END,
    };

    return verb_print_list(call, all, columns);
}

static int usage_work(struct verb_call *call, struct client *client, struct error *err)
{
    static const char *const queries[] = {"by", "from", "to", "owner"};
    const char *by = verb_value(call, "by") ? verb_value(call, "by") : "model";
    AUTO(text) struct text path = TEXT_INIT(URL_LENGTH_MAX);
    AUTO(json) json_t *all = NULL;

    text_append(&path, CLIENT_PREFIX "/usage");
    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        const char *value = verb_value(call, queries[i]);

        if (!value)
            continue;
        text_format(&path, "%c%s=", strchr(text_string(&path), '?') ? '&' : '?', queries[i]);
        url_encode(&path, value, strlen(value));
    }
    all = client_list(client, text_string(&path), "usage", err);
    if (!all)
        return -1;
    return usage_print(call, all, by);
}

/* --- the verbs ------------------------------------------------------------------------------- */

const struct verb verb_egress_show = {
    .name = "egress show",
    .summary = "Print the policy of a sandbox, and what went out last",
    .arguments = "NAME",
    .words_min = 1,
    .words_max = 1,
    .takes_sandboxes = true,
    .work = egress_show,
};

const struct verb verb_egress_log = {
    .name = "egress log",
    .summary = "Print what left sandboxes: requests, denials, budgets",
    .arguments = "[NAME]",
    .options = log_options,
    .examples = "  burrow egress log -f demo",
    .words_max = 1,
    .takes_sandboxes = true,
    .work = egress_log,
};

const struct verb verb_egress_set = {
    .name = "egress set",
    .summary = "Give a sandbox another policy, also while it runs",
    .arguments = "NAME POLICY",
    .details = "POLICY is JSON, or @ and the file it is in.",
    .examples = "  burrow egress set demo '{\"models\":{\"anthropic\":\"anthropic\"}}'\n"
                "  burrow egress set demo @policy.json",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = egress_set,
};

const struct verb verb_egress_allow = {
    .name = "egress allow",
    .summary = "Let a sandbox reach one host more",
    .arguments = "NAME HOST",
    .options = allow_options,
    .examples = "  burrow egress allow demo '*.example.org'\n"
                "  burrow egress allow demo api.github.com --credential gh",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = egress_allow,
};

const struct verb verb_usage = {
    .name = "usage",
    .summary = "Print what models were asked and what that cost",
    .arguments = "",
    .options = usage_options,
    .details = "Days are those of UTC. What is under way is counted a second later.",
    .examples = "  burrow usage --by day --from 2026-11-01\n  burrow usage --by owner",
    .work = usage_work,
};
