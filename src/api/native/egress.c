/* What leaves sandboxes: their policies, what was used, and what an owner says of all of them. */
#include "domain/egress/egress.h"

#include <string.h>

#include "api/http/pending.h"
#include "api/native/egress_caller.h"
#include "api/native/handlers.h"
#include "api/native/identity_internal.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/sandbox/sandboxes.h"

#define DAY_MS        INT64_C(86400000)
#define USAGE_DEFAULT 1000
#define DAYS_DEFAULT  30
#define DATE_LENGTH   10
#define KEY_MAX       ((size_t) 2048)

int egress_caller_of(struct http_request *request, struct caller *ret_caller, struct error *err)
{
    const char *name = http_request_query(request, "owner");
    const struct owner *owner;

    *ret_caller = *request_caller(request);
    if (!name)
        return 0;
    owner = identity_user_of(request, name, err);
    if (!owner)
        return -1;
    ret_caller->owner = owner->id;
    return 0;
}

/* --- of one sandbox -------------------------------------------------------------------------- */

static void answer_egress(struct http_request *request, const struct sandbox *sandbox)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin(&answer);
    egress_write(api_of(request)->domain, sandbox, &answer.json);
    native_answer_send(&answer, request, 200);
}

void native_get_egress(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);

    if (sandbox)
        answer_egress(request, sandbox);
}

static void egress_changed(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        answer_egress(request, sandbox);
}

/* What the policy is, with the members of the body in place of its own; null takes one away. */
static int policy_merge(const char *policy, const struct json_place *body,
                        struct egress_policy *ret_policy, struct error *err)
{
    AUTO(json)
    json_t *merged = policy ? json_read(policy, strlen(policy), NULL, err) : json_object();
    struct json_place root;
    const char *key;
    json_t *value;

    if (!merged)
        return -1;
    json_object_foreach (body->value, key, value)
        if (json_is_null(value))
            (void) json_object_del(merged, key);
        else
            (void) json_object_set(merged, key, value);
    if (json_root_object(merged, &root, err) < 0)
        return -1;
    return egress_policy_read(&root, ret_policy, err);
}

static char *policy_text(const struct egress_policy *policy, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(EGRESS_POLICY_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &text);
    egress_policy_write(&json, policy);
    if (json_writer_finish(&json) == 0)
        return text_take(&text);
    (void) error_set(err, ERR_INVALID, 0, "the policy is longer than %zu bytes", EGRESS_POLICY_MAX);
    return NULL;
}

static int egress_read_change(struct http_request *request, const struct json_place *body,
                              struct error *err)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    AUTO(sandbox_change)
    struct sandbox_change change = {.fields = SPEC_BIT(egress), .spec = SANDBOX_SPEC_INIT};
    struct sandbox *sandbox =
        sandbox_find(domain, caller, http_request_parameter(request, "id"), err);

    if (!sandbox || policy_merge(sandbox->spec.egress, body, &policy, err) < 0)
        return -1;
    change.spec.egress = policy_text(&policy, err);
    if (!change.spec.egress)
        return -1;
    sandbox_update(domain, caller, sandbox, &change, egress_changed, pending_new(request));
    return 0;
}

void native_change_egress(struct http_request *request)
{
    native_take(request, egress_read_change);
}

/* --- what an owner says of all --------------------------------------------------------------- */

static void answer_defaults(struct http_request *request, const struct id *owner)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin(&answer);
    egress_owner_write(api_of(request)->domain, owner, &answer.json);
    native_answer_send(&answer, request, 200);
}

void native_get_egress_defaults(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct caller caller;

    if (egress_caller_of(request, &caller, &err) < 0)
        http_reply_error(request, &err);
    else
        answer_defaults(request, &caller.owner);
}

struct defaults_change {
    struct pending *pending;
    struct id owner;
};

static void defaults_changed(void *context, const struct error *failure)
{
    AUTO(free) struct defaults_change *change = context;
    struct http_request *request = pending_take_good(change->pending, failure);

    if (request)
        answer_defaults(request, &change->owner);
}

/* null is said of either: there is none any more. */
static int defaults_read(const struct json_place *body, struct egress_owner_spec *spec,
                         char **ret_policy, struct error *err)
{
    static const char *const known[] = {"policy", "budget"};
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;
    struct json_place place, budget;

    spec->has_policy = json_object_get(body->value, "policy");
    spec->has_budget = json_object_get(body->value, "budget");
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_object(body, "policy", JSON_OPTIONAL, &place, err) < 0 ||
        json_field_object(body, "budget", JSON_OPTIONAL, &budget, err) < 0 ||
        (budget.value && egress_budget_read(&budget, &spec->budget, err) < 0))
        return -1;
    if (!place.value)
        return 0;
    if (egress_policy_read(&place, &policy, err) < 0)
        return -1;
    *ret_policy = policy_text(&policy, err);
    spec->policy = *ret_policy;
    return *ret_policy ? 0 : -1;
}

static int egress_read_defaults(struct http_request *request, const struct json_place *body,
                                struct error *err)
{
    struct egress_owner_spec spec = {.policy = NULL};
    struct defaults_change *change;
    AUTO(free) char *policy = NULL;
    struct caller caller;

    if (egress_caller_of(request, &caller, err) < 0 || defaults_read(body, &spec, &policy, err) < 0)
        return -1;
    change = mem_alloc(sizeof(*change));
    *change = (struct defaults_change){.pending = pending_new(request), .owner = caller.owner};
    egress_owner_put(api_of(request)->domain, &caller, &spec, defaults_changed, change);
    return 0;
}

void native_change_egress_defaults(struct http_request *request)
{
    native_take(request, egress_read_defaults);
}

/* --- what was used --------------------------------------------------------------------------- */

static const char *const group_texts[] = {EGRESS_GROUPS(WORD_TEXT)};

static void write_usage(struct json_writer *json, const char *by, const struct egress_usage *usage)
{
    char money[EGRESS_MONEY_SIZE];

    json_begin_object(json);
    json_add_text(json, by, usage->key);
    json_add_integer(json, "requests", (int64_t) usage->requests);
    json_add_integer(json, "partial", (int64_t) usage->partial);
    json_begin_object_at(json, "tokens");
    json_add_integer(json, "input", (int64_t) usage->tokens.input);
    json_add_integer(json, "output", (int64_t) usage->tokens.output);
    json_add_integer(json, "reasoning", (int64_t) usage->tokens.reasoning);
    json_add_integer(json, "cacheRead", (int64_t) usage->tokens.cache_read);
    json_add_integer(json, "cacheWrite", (int64_t) usage->tokens.cache_write);
    json_end_object(json);
    egress_money_format((int64_t) usage->micros, money);
    json_add_text(json, "cost", money);
    json_add_integer(json, "costMicros", (int64_t) usage->micros);
    json_add_boolean(json, "costKnown", usage->unpriced == 0);
    json_add_integer(json, "unpriced", (int64_t) usage->unpriced);
    json_end_object(json);
}

struct usage_answer {
    struct pending *pending;
    enum egress_group by;
};

static void usage_told(void *context, const struct error *failure, const struct egress_usage *usage,
                       size_t count, const char *next)
{
    AUTO(free) struct usage_answer *told = context;
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request = native_answer_pending(&answer, told->pending, failure);

    if (!request)
        return;
    json_begin_array_at(&answer.json, "usage");
    for (size_t i = 0; i < count; i++) {
        if (i && native_answer_is_full(&answer)) {
            next = usage[i - 1].key;
            break;
        }
        write_usage(&answer.json, group_texts[told->by], &usage[i]);
    }
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    native_answer_send(&answer, request, 200);
}

/* A day, "2026-11-19", as the time when it begins; without it `ret_ms` stays. */
static int read_day(struct http_request *request, const char *key, int64_t *ret_ms,
                    struct error *err)
{
    const char *text = http_request_query(request, key);
    char time[CLOCK_TEXT_SIZE];

    if (!text)
        return 0;
    (void) snprintf(time, sizeof(time), "%.10sT00:00:00.000Z", text);
    if (strlen(text) != DATE_LENGTH || clock_parse(time, ret_ms) < 0)
        return error_set(err, ERR_INVALID, 0, "?%s= must be a day like 2026-11-19", key);
    return 0;
}

static int read_group(struct http_request *request, enum egress_group *ret_by, struct error *err)
{
    const char *by = http_request_query(request, "by");

    if (!by)
        return 0;
    for (size_t i = 0; i < ARRAY_COUNT(group_texts); i++)
        if (strcmp(group_texts[i], by) == 0) {
            *ret_by = (enum egress_group) i;
            return 0;
        }
    return error_set(err, ERR_INVALID, 0, "?by= must be owner, model, day, sandbox, route or task");
}

/* Until the end of today, unless another day is the last one. */
static int usage_read(struct http_request *request, struct egress_usage_filter *filter,
                      struct error *err)
{
    int64_t now_ms = clock_wall_ms(api_of(request)->clock), limit = USAGE_DEFAULT;
    int64_t last_ms = now_ms - now_ms % DAY_MS;

    if (read_group(request, &filter->by, err) < 0 || read_day(request, "to", &last_ms, err) < 0)
        return -1;
    filter->to_ms = last_ms + DAY_MS;
    filter->from_ms = last_ms - (DAYS_DEFAULT - 1) * DAY_MS;
    if (read_day(request, "from", &filter->from_ms, err) < 0 ||
        native_read_limit(request, EGRESS_USAGE_MAX, &limit, err) < 0)
        return -1;
    filter->limit = (size_t) limit;
    filter->after = http_request_query(request, "cursor");
    if (filter->after && strlen(filter->after) > KEY_MAX)
        return error_set(err, ERR_INVALID, 0,
                         "invalid cursor; use the nextCursor of the page before");
    return 0;
}

void native_get_usage(struct http_request *request)
{
    struct egress_usage_filter filter = {.by = EGRESS_BY_MODEL};
    struct usage_answer *answer;
    struct error err = ERROR_INIT;
    struct caller caller;

    if (usage_read(request, &filter, &err) < 0 || egress_caller_of(request, &caller, &err) < 0) {
        http_reply_error(request, &err);
        return;
    }
    if (http_request_query(request, "owner"))
        filter.owner = &caller.owner;
    answer = mem_alloc(sizeof(*answer));
    *answer = (struct usage_answer){.pending = pending_new(request), .by = filter.by};
    egress_usage(api_of(request)->domain, request_caller(request), &filter, usage_told, answer);
}
