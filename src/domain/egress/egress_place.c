#include "domain/egress/egress_place.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define FORWARD_ADDRESS "127.66.1.%zu"
#define URL_SIZE        (sizeof("http://" BROKER_ADDRESS ":65535/") + EGRESS_NAME_MAX + 8)
#define NO_PROXY_MAX    ((size_t) 1024)
#define LISTENING_MAX   (EGRESS_HOST_MAX + 64)

#define STRINGIFY(number) #number
#define PORT_TEXT(number) STRINGIFY(number)
#define BROKER_URL        "http://" BROKER_ADDRESS ":" PORT_TEXT(BROKER_PORT)

bool egress_is_local(const struct sandbox_texts *local, const char *host, uint16_t port)
{
    char place[EGRESS_HOST_MAX + 8];

    (void) snprintf(place, sizeof(place), "%s:%u", host, (unsigned int) port);
    for (size_t i = 0; i < local->count; i++)
        if (strcmp(local->items[i], place) == 0)
            return true;
    return false;
}

/* An address of IPv4 is no name that could lead elsewhere. */
static bool place_is_address(const char *host)
{
    return strspn(host, "0123456789.") == strlen(host);
}

/* Ports of one host share an address, which its name then leads to. */
static void place_address(struct egress_place *place, const struct egress_rule *rule, bool is_local)
{
    size_t hosts = 0, at = place->forward_count;

    if (is_local) {
        (void) snprintf(place->addresses[at], sizeof(place->addresses[at]), "%.15s", rule->host);
        return;
    }
    for (size_t i = 0; i < at; i++) {
        if (strcmp(place->forwards[i].host, rule->host) == 0) {
            memcpy(place->addresses[at], place->addresses[i], sizeof(place->addresses[at]));
            return;
        }
        hosts++;
    }
    (void) snprintf(place->addresses[at], sizeof(place->addresses[at]), FORWARD_ADDRESS, hosts + 1);
}

static void place_forward(struct egress_place *place, const struct egress_rule *rule,
                          const struct sandbox_texts *local)
{
    size_t at = place->forward_count;
    char listening[LISTENING_MAX];

    if (at == BROKER_FORWARDS_MAX)
        return;
    place_address(place, rule, egress_is_local(local, rule->host, rule->port));
    place->forwards[at] = (struct broker_forward){
        .address = place->addresses[at], .host = rule->host, .port = rule->port};
    place->forward_count++;
    (void) snprintf(listening, sizeof(listening), "%s:%u %s", place->addresses[at],
                    (unsigned int) rule->port, rule->host);
    sandbox_texts_add(&place->listening, listening);
}

static void place_intercept(struct egress_place *place, const char *host)
{
    const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;

    for (size_t i = 0; i < place->intercepted_count; i++)
        if (strcmp(place->intercepted[i], name) == 0)
            return;
    place->intercepted[place->intercepted_count++] = name;
}

void egress_place_init(struct egress_place *place, const struct egress_policy *policy,
                       const struct sandbox_texts *local)
{
    *place = (struct egress_place){.forward_count = 0};
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct egress_rule *rule = &policy->rules[i];

        if (rule->is_tcp)
            place_forward(place, rule, local);
        else if (egress_rule_is_narrow(rule))
            place_intercept(place, rule->host);
    }
}

void egress_place_done(struct egress_place *place)
{
    sandbox_texts_done(&place->listening);
}

/* --- what the agent is told ------------------------------------------------------------------ */

static void write_host(struct json_writer *json, const char *address, const char *name)
{
    json_begin_object(json);
    json_add_text(json, "address", address);
    json_add_text(json, "name", name);
    json_end_object(json);
}

/* A name that plain TCP goes to leads there; others by the rules for requests, on the usual ports. */
static void write_hosts(struct json_writer *json, const struct egress_place *place,
                        const struct egress_policy *policy)
{
    for (size_t i = 0; i < place->forward_count; i++)
        if (!place_is_address(place->forwards[i].host))
            write_host(json, place->forwards[i].address, place->forwards[i].host);
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct egress_rule *rule = &policy->rules[i];

        if (!rule->is_tcp && *rule->host != '*' && !place_is_address(rule->host) &&
            (!rule->port || rule->port == 80 || rule->port == 443))
            write_host(json, BROKER_ADDRESS, rule->host);
    }
}

void egress_place_write(const struct egress_place *place, const struct egress_policy *policy,
                        const char *authority, struct text *text)
{
    struct json_writer json;

    json_document_begin(&json, text);
    json_begin_array_at(&json, "hosts");
    write_hosts(&json, place, policy);
    json_end_array(&json);
    json_add_text(&json, "authority", authority);
    (void) json_document_end(&json); /* the caller sees when it was too much */
}

/* --- variables ------------------------------------------------------------------------------- */

typedef void place_each(void *context, const char *name, const char *value);

static void give_proxies(const struct egress_place *place, place_each *each, void *context)
{
    static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"};
    AUTO(text) struct text direct = TEXT_INIT(NO_PROXY_MAX);

    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        each(context, names[i], BROKER_URL);
    text_append(&direct, "localhost,127.0.0.1,::1," BROKER_ADDRESS);
    for (size_t i = 0; i < place->forward_count; i++)
        text_format(&direct, ",%s", place->addresses[i]);
    each(context, "NO_PROXY", text_string(&direct));
    each(context, "no_proxy", text_string(&direct));
    each(context, "NODE_USE_ENV_PROXY", "1");
}

static void give_authority(place_each *each, void *context)
{
    static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
                                        "REQUESTS_CA_BUNDLE", "CODEX_CA_CERTIFICATE"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        each(context, names[i], EGRESS_BUNDLE_FILE);
    each(context, "NODE_EXTRA_CA_CERTS", EGRESS_CA_FILE);
}

/* Which variables clients of an API look at: where it is, and for a key. Of a route that is none of
 * these they are NAME_BASE_URL and NAME_API_KEY. */
static const struct {
    const char *route, *end, *place, *keys[3];
} clients[] = {
    {"anthropic", "", "ANTHROPIC_BASE_URL", {"ANTHROPIC_API_KEY"}},
    {"openai", "/v1", "OPENAI_BASE_URL", {"OPENAI_API_KEY"}},
    {"google",
     "",
     "GOOGLE_GEMINI_BASE_URL",
     {"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"}},
};

static void give_other_route(const char *route, const char *url, const char *label,
                             place_each *each, void *context)
{
    char name[EGRESS_NAME_MAX + 16];
    size_t length = 0;

    for (; route[length]; length++)
        name[length] =
            (char) (isalnum((unsigned char) route[length]) ? toupper((unsigned char) route[length])
                                                           : '_');
    if (isdigit((unsigned char) name[0]))
        return; /* no variable begins so */
    (void) snprintf(name + length, sizeof(name) - length, "_BASE_URL");
    each(context, name, url);
    (void) snprintf(name + length, sizeof(name) - length, "_API_KEY");
    each(context, name, label);
}

static void give_route(const struct egress_route *route, place_each *each, void *context)
{
    char url[URL_SIZE], label[sizeof(EGRESS_LABEL) + EGRESS_NAME_MAX];

    (void) snprintf(label, sizeof(label), EGRESS_LABEL "%s", route->name);
    for (size_t i = 0; i < ARRAY_COUNT(clients); i++) {
        if (strcmp(clients[i].route, route->name) != 0)
            continue;
        (void) snprintf(url, sizeof(url), BROKER_URL "/%s%s", route->name, clients[i].end);
        each(context, clients[i].place, url);
        for (size_t j = 0; j < ARRAY_COUNT(clients[i].keys) && clients[i].keys[j]; j++)
            each(context, clients[i].keys[j], label);
        return;
    }
    (void) snprintf(url, sizeof(url), BROKER_URL "/%s", route->name);
    give_other_route(route->name, url, label, each, context);
}

/* `gh` asks nobody without a token; a label does. */
static void give_github(const struct egress_policy *policy, place_each *each, void *context)
{
    char label[sizeof(EGRESS_LABEL) + EGRESS_NAME_MAX];

    for (size_t i = 0; i < policy->rule_count; i++)
        if (policy->rules[i].credential && strcmp(policy->rules[i].host, "api.github.com") == 0) {
            (void) snprintf(label, sizeof(label), EGRESS_LABEL "%s", policy->rules[i].credential);
            each(context, "GH_TOKEN", label);
            return;
        }
}

void egress_place_variables(const struct egress_policy *policy, const struct egress_place *place,
                            void (*each)(void *context, const char *name, const char *value),
                            void *context)
{
    give_proxies(place, each, context);
    if (place->intercepted_count)
        give_authority(each, context);
    for (size_t i = 0; i < policy->route_count; i++)
        give_route(&policy->routes[i], each, context);
    give_github(policy, each, context);
}
