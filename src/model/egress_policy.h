/* What a sandbox may reach through the egress broker: its policy, read once into a table. Pure.
 *
 *     {"default": "deny",
 *      "rules": [{"host": "github.com", "credential": "gh-acme", "methods": ["GET", "POST"],
 *                 "paths": ["/acme/web.git/info/refs"]},
 *                {"host": "*.example.org"},
 *                {"host": "db.internal", "port": 5432, "protocol": "tcp"}],
 *      "models": {"anthropic": "team-key",
 *                 "mine": {"credential": "k", "base": "https://llm.example.org/v1", "api": "openai"}},
 *      "budget": {"requestsPerMinute": 120, "tokensPerDay": 2000000, "costPerDay": "5.00"}}
 *
 * Rules are tried in their order, and the first that matches decides. A host is exact, or "*." and
 * what it ends with, or "*" for every host, which never has a credential. A rule without a port is
 * for 80 and 443. Paths are patterns as git writes them (base/format/ignore_pattern.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/format/ignore_pattern.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "model/words.h"

#define EGRESS_POLICY_MAX ((size_t) 64 * 1024) /* of one, as JSON */
#define EGRESS_RULES_MAX  128
#define EGRESS_ROUTES_MAX 16
#define EGRESS_PATHS_MAX  32
#define EGRESS_PATH_MAX   512
#define EGRESS_HOST_MAX   253
#define EGRESS_TCP_MAX    16 /* rules for plain TCP */
#define EGRESS_NAME_MAX   63 /* of a credential or route */
#define EGRESS_BASE_MAX   512
#define EGRESS_MICROS_MAX INT64_C(1000000000000000) /* of money: a thousand millions */
#define EGRESS_LABEL      "burrow-" /* and a route or credential: what clients inside have for a key */

/* The API that a route speaks: which paths there are, and how usage is read. */
#define EGRESS_APIS(W)                                                                             \
    W(EGRESS_API_ANTHROPIC, "anthropic", "messages")                                               \
    W(EGRESS_API_OPENAI, "openai", "responses, chat completions, embeddings")                      \
    W(EGRESS_API_GOOGLE, "google", "Gemini's models")                                              \
    W(EGRESS_API_NONE, "none", "any other: nothing is metered")

enum egress_api { EGRESS_APIS(WORD_CONSTANT) EGRESS_API_COUNT };

/* The methods that a rule may name. */
#define EGRESS_METHODS(W)                                                                          \
    W(EGRESS_GET, "GET", "")                                                                       \
    W(EGRESS_HEAD, "HEAD", "")                                                                     \
    W(EGRESS_POST, "POST", "")                                                                     \
    W(EGRESS_PUT, "PUT", "")                                                                       \
    W(EGRESS_PATCH, "PATCH", "")                                                                   \
    W(EGRESS_DELETE, "DELETE", "")                                                                 \
    W(EGRESS_OPTIONS, "OPTIONS", "")

enum egress_method { EGRESS_METHODS(WORD_CONSTANT) EGRESS_METHOD_COUNT };

struct egress_path {
    char *text;
    struct ignore_pattern pattern;
};

struct egress_paths {
    struct egress_path *items; /* none: every path */
    size_t count;
};

struct egress_rule {
    char *host; /* lower case */
    uint16_t port;
    bool is_tcp;
    char *credential;     /* NULL: none */
    unsigned int methods; /* a bit by enum egress_method; 0: all */
    struct egress_paths paths;
};

struct egress_route {
    char *name;
    enum egress_api api;
    char *credential;
    char *base;                /* NULL: what the operator or the API's maker says */
    struct egress_paths paths; /* of EGRESS_API_NONE; the others have lists of their own */
};

/* 0: no such limit. */
struct egress_budget {
    uint64_t requests_per_minute, tokens_per_day, micros_per_day;
};

/* All that it points to is owned; egress_policy_done frees it. */
struct egress_policy {
    bool allows_rest; /* "default": "allow": tunnels to every other host */
    struct egress_rule *rules;
    size_t rule_count;
    struct egress_route *routes;
    size_t route_count;
    struct egress_budget budget;      /* of this sandbox */
    struct egress_budget task_budget; /* of all sandboxes with the same label `task` */
};

#define EGRESS_POLICY_INIT                                                                         \
    {                                                                                              \
        .rules = NULL                                                                              \
    }

void egress_policy_done(struct egress_policy *policy);
AUTO_DEFINE(egress_policy, struct egress_policy, egress_policy_done);

/* 0, or -1 with ERR_INVALID that names the field; then there is nothing to free. */
int egress_policy_read(const struct json_place *object, struct egress_policy *ret_policy,
                       struct error *err);
int egress_policy_parse(const char *json, size_t length, struct egress_policy *ret_policy,
                        struct error *err);

/* As one value: what was read, in one form. */
void egress_policy_write(struct json_writer *json, const struct egress_policy *policy);
bool egress_budget_is_set(const struct egress_budget *budget);
void egress_budget_write(struct json_writer *json, const struct egress_budget *budget);

/* A budget as an object; what is not in it is no limit. */
int egress_budget_read(const struct json_place *object, struct egress_budget *ret_budget,
                       struct error *err);

/* Money: "5", "5.25" in units, up to six decimals -> millionths. 0 or -EINVAL. And as text. */
int egress_money_parse(const char *text, int64_t *ret_micros);
#define EGRESS_MONEY_SIZE 32
void egress_money_format(int64_t micros, char ret_text[static EGRESS_MONEY_SIZE]);

/* Whether a host may be named by a pattern like this: exact, "*.suffix", "*". An address of IPv4 is
 * exact; of IPv6 there are none. */
bool egress_host_is_pattern(const char *host);
bool egress_host_matches(const char *pattern, const char *host);
bool egress_name_is_valid(const char *name);

/* Whether the rule is for that place; and for that request there. `method` and `path` may be NULL:
 * only the place counts. */
bool egress_rule_names(const struct egress_rule *rule, const char *host, uint16_t port);
bool egress_rule_takes(const struct egress_rule *rule, const char *method, const char *path);
/* Whether it says more than a place: requests have to be looked at one by one. */
bool egress_rule_is_narrow(const struct egress_rule *rule);
bool egress_paths_match(const struct egress_paths *paths, const char *path);

const struct egress_route *egress_route_find(const struct egress_policy *policy, const char *name);
const char *egress_api_text(enum egress_api api);
