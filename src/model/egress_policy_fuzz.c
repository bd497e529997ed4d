/* Any JSON as a policy: what is taken is written in one form that is taken again and is the same, and
 * whatever is asked of its rules is answered. */
#include <stdlib.h>
#include <string.h>

#include "model/egress_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void policy_text(const struct egress_policy *policy, struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    egress_policy_write(&json, policy);
    if (json_writer_finish(&json) < 0)
        abort();
}

static void rules_ask(const struct egress_policy *policy)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct egress_rule *rule = &policy->rules[i];
        const char *host = strncmp(rule->host, "*.", 2) == 0 ? rule->host + 1 : rule->host;

        if (!egress_host_is_pattern(rule->host) || (rule->credential && strcmp(host, "*") == 0))
            abort();
        if (*host != '.' && !egress_rule_names(rule, host, rule->port ? rule->port : 443))
            abort();
        (void) egress_rule_takes(rule, "GET", "/a/b/c.git/info/refs");
        for (size_t j = 0; j < rule->paths.count; j++)
            (void) egress_rule_takes(rule, "POST", rule->paths.items[j].text);
    }
    for (size_t i = 0; i < policy->route_count; i++)
        if (!egress_route_find(policy, policy->routes[i].name))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;
    AUTO(egress_policy) struct egress_policy again = EGRESS_POLICY_INIT;
    AUTO(text) struct text first = TEXT_INIT(8 * EGRESS_POLICY_MAX);
    AUTO(text) struct text second = TEXT_INIT(8 * EGRESS_POLICY_MAX);
    struct error err = ERROR_INIT;

    if (egress_policy_parse((const char *) data, size, &policy, &err) < 0) {
        if ((err.code != ERR_INVALID && err.code != ERR_TOO_LARGE) || !err.message[0])
            abort();
        return 0;
    }
    rules_ask(&policy);
    policy_text(&policy, &first);
    if (first.length > EGRESS_POLICY_MAX)
        return 0;
    if (egress_policy_parse(text_string(&first), first.length, &again, &err) < 0)
        abort();
    policy_text(&again, &second);
    if (strcmp(text_string(&first), text_string(&second)) != 0)
        abort();
    return 0;
}
