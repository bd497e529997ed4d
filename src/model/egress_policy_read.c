/* A policy, read from JSON and checked: what cannot be meant is refused with the field's name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "model/egress_policy.h"

#define WORD_SIZE 32

static const char *const api_texts[] = {EGRESS_APIS(WORD_TEXT)};
static const char *const method_texts[] = {EGRESS_METHODS(WORD_TEXT)};

/* --- texts ----------------------------------------------------------------------------------- */

/* The place of a word in a list; the list's end: it is none of them. */
static size_t word_find(const char *const *words, size_t count, const char *word)
{
    size_t i = 0;

    while (i < count && strcmp(words[i], word) != 0)
        i++;
    return i;
}

static int policy_read_name(const struct json_place *object, const char *key, char **ret_name,
                            struct error *err)
{
    const char *name = NULL;

    if (json_field_text(object, key, JSON_OPTIONAL, EGRESS_NAME_MAX, &name, err) < 0)
        return -1;
    if (name && !egress_name_is_valid(name))
        return json_refuse_field(
            object, key, "the name of a credential: 1 to 63 of a-z, 0-9, '.', '_' and '-'", err);
    *ret_name = name ? mem_copy_text(name) : NULL;
    return 0;
}

static int read_host(const struct json_place *object, char **ret_host, struct error *err)
{
    const char *host = NULL;
    char *lower;
    size_t length;

    if (json_field_text(object, "host", JSON_REQUIRED, EGRESS_HOST_MAX + 1, &host, err) < 0)
        return -1;
    lower = mem_copy_text(host);
    length = strlen(lower);
    for (char *at = lower; *at; at++)
        *at = (char) tolower((unsigned char) *at);
    if (length > 1 && lower[length - 1] == '.')
        lower[length - 1] = '\0';
    if (egress_host_is_pattern(lower)) {
        *ret_host = lower;
        return 0;
    }
    free(lower);
    return json_refuse_field(object, "host",
                             "a name like example.org, *.example.org, * or an IPv4 address, "
                             "without a scheme, port or path",
                             err);
}

static int read_methods(const struct json_place *object, unsigned int *ret_methods,
                        struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts texts = {.count = 0};

    if (json_field_texts(object, "methods", JSON_OPTIONAL, EGRESS_METHOD_COUNT, WORD_SIZE, &pool,
                         &texts, err) < 0)
        return -1;
    for (size_t i = 0; i < texts.count; i++) {
        size_t method = word_find(method_texts, ARRAY_COUNT(method_texts), texts.items[i]);

        if (method == ARRAY_COUNT(method_texts))
            return json_refuse_field(object, "methods",
                                     "a list of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", err);
        *ret_methods |= 1u << method;
    }
    return 0;
}

static int read_paths(const struct json_place *object, struct egress_paths *paths,
                      struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts texts = {.count = 0};

    if (json_field_texts(object, "paths", JSON_OPTIONAL, EGRESS_PATHS_MAX, EGRESS_PATH_MAX, &pool,
                         &texts, err) < 0)
        return -1;
    paths->items = mem_alloc_array(texts.count + 1, sizeof(*paths->items));
    for (size_t i = 0; i < texts.count; i++) {
        const char *text = texts.items[i];
        struct egress_path *path = &paths->items[i];

        if (*text != '/' || !text[1] ||
            ignore_pattern_read(text + 1, strlen(text + 1), IGNORE_GIT_PATH, &path->pattern) < 0)
            return json_refuse_field(object, "paths",
                                     "a list of patterns like /v1/items/* or /acme/**", err);
        path->text = mem_copy_text(text);
        paths->count++;
    }
    return 0;
}

/* --- a rule ---------------------------------------------------------------------------------- */

static int check_rule(const struct json_place *item, const struct egress_rule *rule,
                      struct error *err)
{
    if (rule->is_tcp && (!rule->port || rule->credential || rule->methods || rule->paths.count))
        return json_refuse_field(item, "protocol",
                                 "tcp only with a port, and without credential, methods and paths",
                                 err);
    if (rule->is_tcp && *rule->host == '*')
        return json_refuse_field(item, "host", "one name or address, with protocol tcp", err);
    if (rule->credential && strcmp(rule->host, "*") == 0)
        return json_refuse_field(item, "credential", "left out for host '*': it would go anywhere",
                                 err);
    if (strcmp(rule->host, "*") == 0 && (rule->methods || rule->paths.count))
        return json_refuse_field(item, "host",
                                 "a name, with methods or paths: nobody looks into requests to "
                                 "every host",
                                 err);
    if (rule->credential && strncmp(rule->host, "*.", 2) == 0 && !strchr(rule->host + 2, '.'))
        return json_refuse_field(item, "credential",
                                 "left out for a whole top-level domain: name the hosts", err);
    return 0;
}

static int read_rule(const struct json_place *item, struct egress_rule *rule, struct error *err)
{
    static const char *const known[] = {"host",       "port",    "protocol",
                                        "credential", "methods", "paths"};
    const char *protocol = "http";
    int64_t port = 0;

    if (json_known_fields(item, known, ARRAY_COUNT(known), err) < 0 ||
        read_host(item, &rule->host, err) < 0 ||
        json_field_integer(item, "port", JSON_OPTIONAL, 1, UINT16_MAX, &port, err) < 0 ||
        json_field_text(item, "protocol", JSON_OPTIONAL, WORD_SIZE, &protocol, err) < 0 ||
        policy_read_name(item, "credential", &rule->credential, err) < 0 ||
        read_methods(item, &rule->methods, err) < 0 || read_paths(item, &rule->paths, err) < 0)
        return -1;
    if (strcmp(protocol, "http") != 0 && strcmp(protocol, "tcp") != 0)
        return json_refuse_field(item, "protocol", "http or tcp", err);
    rule->port = (uint16_t) port;
    rule->is_tcp = strcmp(protocol, "tcp") == 0;
    return check_rule(item, rule, err);
}

static int read_rules(const struct json_place *object, struct egress_policy *policy,
                      struct error *err)
{
    struct json_place array, item;
    size_t count, tcp = 0;

    if (json_field_array(object, "rules", JSON_OPTIONAL, &array, err) < 0)
        return -1;
    count = array.value ? json_array_size(array.value) : 0;
    if (count > EGRESS_RULES_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'rules' has more than %d rules",
                         EGRESS_RULES_MAX);
    policy->rules = mem_alloc_array(count + 1, sizeof(*policy->rules));
    while (policy->rule_count < count) {
        struct egress_rule *rule = &policy->rules[policy->rule_count];

        if (json_item_object(&array, policy->rule_count, &item, err) < 0)
            return -1;
        policy->rule_count++; /* it is freed with the others, also when it is half read */
        if (read_rule(&item, rule, err) < 0)
            return -1;
        tcp += rule->is_tcp;
    }
    if (tcp > EGRESS_TCP_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'rules' has more than %d with protocol tcp",
                         EGRESS_TCP_MAX);
    return 0;
}

/* --- a route --------------------------------------------------------------------------------- */

/* Whoever dials it knows more of URLs; what leads astray is refused here. */
static bool is_base(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    size_t authority = strcspn(url + scheme, "/?#\\");

    if (!scheme || !authority || memchr(url + scheme, '@', authority) || strpbrk(url, "?#\\ "))
        return false;
    for (const char *at = url; *at; at++)
        if ((unsigned char) *at <= ' ' || (unsigned char) *at >= 0x7f)
            return false;
    return true;
}

static int read_base(const struct json_place *place, char **ret_base, struct error *err)
{
    const char *base = NULL;
    size_t length;

    if (json_field_text(place, "base", JSON_OPTIONAL, EGRESS_BASE_MAX, &base, err) < 0)
        return -1;
    if (!base)
        return 0;
    if (!is_base(base))
        return json_refuse_field(
            place, "base", "an http:// or https:// URL without a user, query and fragment", err);
    length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    *ret_base = mem_copy_bytes(base, length);
    return 0;
}

/* A route that is called as an API speaks it, when nothing else is said. */
static int read_api(const struct json_place *place, struct egress_route *route, struct error *err)
{
    const char *api = NULL;
    size_t known = word_find(api_texts, ARRAY_COUNT(api_texts), route->name);

    if (json_field_text(place, "api", JSON_OPTIONAL, WORD_SIZE, &api, err) < 0)
        return -1;
    if (api)
        known = word_find(api_texts, ARRAY_COUNT(api_texts), api);
    else if (known == ARRAY_COUNT(api_texts))
        known = EGRESS_API_NONE;
    if (known == ARRAY_COUNT(api_texts))
        return json_refuse_field(place, "api", "anthropic, openai, google or none", err);
    route->api = (enum egress_api) known;
    return 0;
}

static int read_route(const struct json_place *place, struct egress_route *route, struct error *err)
{
    static const char *const known[] = {"credential", "base", "api", "paths"};

    if (json_known_fields(place, known, ARRAY_COUNT(known), err) < 0 ||
        policy_read_name(place, "credential", &route->credential, err) < 0 ||
        read_base(place, &route->base, err) < 0 || read_api(place, route, err) < 0 ||
        read_paths(place, &route->paths, err) < 0)
        return -1;
    if (route->paths.count && route->api != EGRESS_API_NONE)
        return json_refuse_field(place, "paths", "left out: this API has a list of its own", err);
    return 0;
}

/* {"anthropic": "credential"} is short for {"anthropic": {"credential": "credential"}}. */
static int read_route_at(const struct json_place *models, const char *name, json_t *value,
                         struct egress_route *route, struct error *err)
{
    struct json_place place;

    if (!egress_name_is_valid(name))
        return error_set(err, ERR_INVALID, 0,
                         "field 'models': the name of a route has 1 to 63 of a-z, 0-9, '.', '_' "
                         "and '-'");
    route->name = mem_copy_text(name);
    if (json_is_object(value))
        return json_field_object(models, name, JSON_REQUIRED, &place, err) < 0
                   ? -1
                   : read_route(&place, route, err);
    if (policy_read_name(models, name, &route->credential, err) < 0)
        return -1;
    place = (struct json_place){.value = NULL};
    route->api = (enum egress_api) word_find(api_texts, ARRAY_COUNT(api_texts), name);
    if (route->api >= EGRESS_API_COUNT)
        route->api = EGRESS_API_NONE;
    return 0;
}

static int read_routes(const struct json_place *object, struct egress_policy *policy,
                       struct error *err)
{
    struct json_place models;
    const char *name;
    json_t *value;

    if (json_field_object(object, "models", JSON_OPTIONAL, &models, err) < 0)
        return -1;
    if (!models.value)
        return 0;
    if (json_object_size(models.value) > EGRESS_ROUTES_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'models' has more than %d routes",
                         EGRESS_ROUTES_MAX);
    policy->routes = mem_alloc_array(json_object_size(models.value) + 1, sizeof(*policy->routes));
    json_object_foreach (models.value, name, value)
        if (read_route_at(&models, name, value, &policy->routes[policy->route_count++], err) < 0)
            return -1;
    return 0;
}

/* --- the budget ------------------------------------------------------------------------------ */

/* "5.00"; a number of JSON would not be exact, but for whole ones. */
static int read_money(const struct json_place *object, const char *key, uint64_t *ret_micros,
                      struct error *err)
{
    json_t *value = json_object_get(object->value, key);
    int64_t micros = 0;

    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value) && egress_money_parse(json_string_value(value), &micros) == 0) {
        *ret_micros = (uint64_t) micros;
        return 0;
    }
    if (json_is_number(value) && json_number_value(value) >= 0 &&
        json_number_value(value) <= (double) EGRESS_MICROS_MAX / 1e6) {
        *ret_micros = (uint64_t) (json_number_value(value) * 1e6 + 0.5);
        return 0;
    }
    return json_refuse_field(object, key, "an amount like \"5.00\"", err);
}

int egress_budget_read(const struct json_place *object, struct egress_budget *ret_budget,
                       struct error *err)
{
    static const char *const known[] = {"requestsPerMinute", "tokensPerDay", "costPerDay"};
    struct egress_budget budget = {.tokens_per_day = 0};
    int64_t requests = 0, tokens = 0;

    if (json_known_fields(object, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_integer(object, known[0], JSON_OPTIONAL, 1, INT32_MAX, &requests, err) < 0 ||
        json_field_integer(object, known[1], JSON_OPTIONAL, 1, EGRESS_MICROS_MAX, &tokens, err) <
            0 ||
        read_money(object, known[2], &budget.micros_per_day, err) < 0)
        return -1;
    budget.requests_per_minute = (uint64_t) requests;
    budget.tokens_per_day = (uint64_t) tokens;
    *ret_budget = budget;
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

static int read_policy(const struct json_place *object, struct egress_policy *policy,
                       struct error *err)
{
    static const char *const known[] = {"default", "rules", "models", "budget", "taskBudget"};
    const char *rest = "deny";
    struct json_place budget, task_budget;

    if (json_known_fields(object, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(object, "default", JSON_OPTIONAL, WORD_SIZE, &rest, err) < 0 ||
        read_rules(object, policy, err) < 0 || read_routes(object, policy, err) < 0 ||
        json_field_object(object, "budget", JSON_OPTIONAL, &budget, err) < 0 ||
        (budget.value && egress_budget_read(&budget, &policy->budget, err) < 0) ||
        json_field_object(object, "taskBudget", JSON_OPTIONAL, &task_budget, err) < 0 ||
        (task_budget.value && egress_budget_read(&task_budget, &policy->task_budget, err) < 0))
        return -1;
    if (strcmp(rest, "deny") != 0 && strcmp(rest, "allow") != 0)
        return json_refuse_field(object, "default", "deny or allow", err);
    policy->allows_rest = strcmp(rest, "allow") == 0;
    return 0;
}

int egress_policy_read(const struct json_place *object, struct egress_policy *ret_policy,
                       struct error *err)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;

    if (read_policy(object, &policy, err) < 0)
        return -1;
    *ret_policy = policy;
    policy = (struct egress_policy) EGRESS_POLICY_INIT;
    return 0;
}

int egress_policy_parse(const char *json, size_t length, struct egress_policy *ret_policy,
                        struct error *err)
{
    static const struct json_limits limits = {
        .size = EGRESS_POLICY_MAX, .depth = 8, .values = JSON_VALUES_MAX};
    AUTO(json) json_t *value = json_read(json, length, &limits, err);
    struct json_place root;

    if (!value || json_root_object(value, &root, err) < 0)
        return -1;
    return egress_policy_read(&root, ret_policy, err);
}
