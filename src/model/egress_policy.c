/* The table of a policy: who is named by it, and what it owns. egress_policy_read.c makes it. */
#include "model/egress_policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define MICROS       1000000
#define MONEY_DIGITS 6
#define LABEL_MAX    63 /* of a host's name, between two dots */
#define HOST_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-_"
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789._-"
#define PORT_HTTP    80
#define PORT_TLS     443

static const char *const api_texts[] = {EGRESS_APIS(WORD_TEXT)};
static const char *const method_texts[] = {EGRESS_METHODS(WORD_TEXT)};

const char *egress_api_text(enum egress_api api)
{
    return api_texts[api];
}

/* --- names ----------------------------------------------------------------------------------- */

bool egress_name_is_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= EGRESS_NAME_MAX && !strchr("._-", name[0]) &&
           strspn(name, NAME_LETTERS) == length;
}

static bool is_host_name(const char *host)
{
    size_t length = strlen(host);

    if (length == 0 || length > EGRESS_HOST_MAX)
        return false;
    for (const char *at = host;; at++) {
        size_t label = strcspn(at, ".");

        if (label == 0 || label > LABEL_MAX || strspn(at, HOST_LETTERS) < label || *at == '-')
            return false;
        at += label;
        if (!*at)
            return true;
    }
}

bool egress_host_is_pattern(const char *host)
{
    if (strcmp(host, "*") == 0)
        return true;
    return is_host_name(strncmp(host, "*.", 2) == 0 ? host + 2 : host);
}

/* "*.example.org" is for a.example.org and a.b.example.org, not for example.org. */
bool egress_host_matches(const char *pattern, const char *host)
{
    size_t length = strlen(host), suffix = strlen(pattern);

    if (strcmp(pattern, "*") == 0)
        return true;
    if (strncmp(pattern, "*.", 2) != 0)
        return strcmp(pattern, host) == 0;
    suffix--; /* the star */
    return length > suffix && strcmp(host + length - suffix, pattern + 1) == 0;
}

/* --- rules ----------------------------------------------------------------------------------- */

bool egress_rule_names(const struct egress_rule *rule, const char *host, uint16_t port)
{
    bool is_port = rule->port ? rule->port == port : port == PORT_HTTP || port == PORT_TLS;

    return is_port && egress_host_matches(rule->host, host);
}

bool egress_paths_match(const struct egress_paths *paths, const char *path)
{
    if (!paths->count)
        return true;
    path += *path == '/';
    for (size_t i = 0; i < paths->count; i++)
        if (ignore_pattern_matches(&paths->items[i].pattern, path, strlen(path)))
            return true;
    return false;
}

static bool method_is_in(unsigned int methods, const char *method)
{
    for (size_t i = 0; i < ARRAY_COUNT(method_texts); i++)
        if (strcmp(method_texts[i], method) == 0)
            return methods & 1u << i;
    return false;
}

bool egress_rule_takes(const struct egress_rule *rule, const char *method, const char *path)
{
    if (method && rule->methods && !method_is_in(rule->methods, method))
        return false;
    return !path || egress_paths_match(&rule->paths, path);
}

bool egress_rule_is_narrow(const struct egress_rule *rule)
{
    return rule->credential || rule->methods || rule->paths.count;
}

const struct egress_route *egress_route_find(const struct egress_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->route_count; i++)
        if (strcmp(policy->routes[i].name, name) == 0)
            return &policy->routes[i];
    return NULL;
}

/* --- money ----------------------------------------------------------------------------------- */

int egress_money_parse(const char *text, int64_t *ret_micros)
{
    size_t whole = strcspn(text, "."), decimals = text[whole] ? strlen(text + whole + 1) : 0;
    uint64_t number = 0, part = 0;

    if (number_parse_digits(text, whole, EGRESS_MICROS_MAX / MICROS, &number) < 0 ||
        decimals > MONEY_DIGITS ||
        (text[whole] && number_parse_digits(text + whole + 1, decimals, MICROS - 1, &part) < 0))
        return -EINVAL;
    for (; decimals && decimals < MONEY_DIGITS; decimals++)
        part *= 10;
    *ret_micros = (int64_t) (number * MICROS + part);
    return 0;
}

/* Two decimals at least, and no more than it has. */
void egress_money_format(int64_t micros, char ret_text[static EGRESS_MONEY_SIZE])
{
    int length = snprintf(ret_text, EGRESS_MONEY_SIZE, "%" PRId64 ".%06" PRId64, micros / MICROS,
                          micros % MICROS);

    for (int kept = MONEY_DIGITS; kept > 2 && ret_text[length - 1] == '0'; kept--)
        ret_text[--length] = '\0';
}

/* --- memory ---------------------------------------------------------------------------------- */

static void egress_paths_free(struct egress_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        free(paths->items[i].text);
        ignore_pattern_done(&paths->items[i].pattern);
    }
    free(paths->items);
}

void egress_policy_done(struct egress_policy *policy)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        free(policy->rules[i].host);
        free(policy->rules[i].credential);
        egress_paths_free(&policy->rules[i].paths);
    }
    for (size_t i = 0; i < policy->route_count; i++) {
        free(policy->routes[i].name);
        free(policy->routes[i].credential);
        free(policy->routes[i].base);
        egress_paths_free(&policy->routes[i].paths);
    }
    free(policy->rules);
    free(policy->routes);
    *policy = (struct egress_policy) EGRESS_POLICY_INIT;
}

/* --- written --------------------------------------------------------------------------------- */

static void write_paths(struct json_writer *json, const struct egress_paths *paths)
{
    if (!paths->count)
        return;
    json_begin_array_at(json, "paths");
    for (size_t i = 0; i < paths->count; i++)
        json_put_text(json, paths->items[i].text);
    json_end_array(json);
}

static void write_rule(struct json_writer *json, const struct egress_rule *rule)
{
    json_begin_object(json);
    json_add_text(json, "host", rule->host);
    if (rule->port)
        json_add_integer(json, "port", rule->port);
    if (rule->is_tcp)
        json_add_text(json, "protocol", "tcp");
    if (rule->credential)
        json_add_text(json, "credential", rule->credential);
    if (rule->methods) {
        json_begin_array_at(json, "methods");
        for (size_t i = 0; i < ARRAY_COUNT(method_texts); i++)
            if (rule->methods & 1u << i)
                json_put_text(json, method_texts[i]);
        json_end_array(json);
    }
    write_paths(json, &rule->paths);
    json_end_object(json);
}

static void write_route(struct json_writer *json, const struct egress_route *route)
{
    json_begin_object_at(json, route->name);
    if (route->credential)
        json_add_text(json, "credential", route->credential);
    if (route->base)
        json_add_text(json, "base", route->base);
    json_add_text(json, "api", api_texts[route->api]);
    write_paths(json, &route->paths);
    json_end_object(json);
}

bool egress_budget_is_set(const struct egress_budget *budget)
{
    return budget->requests_per_minute || budget->tokens_per_day || budget->micros_per_day;
}

void egress_budget_write(struct json_writer *json, const struct egress_budget *budget)
{
    char money[EGRESS_MONEY_SIZE];

    json_begin_object(json);
    if (budget->requests_per_minute)
        json_add_integer(json, "requestsPerMinute", (int64_t) budget->requests_per_minute);
    if (budget->tokens_per_day)
        json_add_integer(json, "tokensPerDay", (int64_t) budget->tokens_per_day);
    if (budget->micros_per_day) {
        egress_money_format((int64_t) budget->micros_per_day, money);
        json_add_text(json, "costPerDay", money);
    }
    json_end_object(json);
}

void egress_policy_write(struct json_writer *json, const struct egress_policy *policy)
{
    json_begin_object(json);
    json_add_text(json, "default", policy->allows_rest ? "allow" : "deny");
    json_begin_array_at(json, "rules");
    for (size_t i = 0; i < policy->rule_count; i++)
        write_rule(json, &policy->rules[i]);
    json_end_array(json);
    json_begin_object_at(json, "models");
    for (size_t i = 0; i < policy->route_count; i++)
        write_route(json, &policy->routes[i]);
    json_end_object(json);
    json_key(json, "budget");
    egress_budget_write(json, &policy->budget);
    if (egress_budget_is_set(&policy->task_budget)) {
        json_key(json, "taskBudget");
        egress_budget_write(json, &policy->task_budget);
    }
    json_end_object(json);
}
