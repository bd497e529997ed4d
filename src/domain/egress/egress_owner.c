/* What an owner says of all its sandboxes: a policy for new ones that say nothing, and a budget that
 * all of them share. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/egress/egress_internal.h"
#include "domain/event/event.h"

#define BUDGET_TEXT_MAX ((size_t) 512)

/* --- memory ---------------------------------------------------------------------------------- */

static struct egress_owner *owner_entry(const struct domain *domain, const struct id *id)
{
    for (struct table_link *at = table_find(&domain->egress->owners, domain_id_hash(domain, id));
         at; at = table_next(at)) {
        struct egress_owner *owner = CONTAINER_OF(at, struct egress_owner, by_id);

        if (id_equal(&owner->id, id))
            return owner;
    }
    return NULL;
}

const struct egress_owner *egress_owner_of(const struct domain *domain, const struct id *owner)
{
    return owner_entry(domain, owner);
}

static struct egress_owner *owner_make(struct domain *domain, const struct id *id)
{
    struct egress_owner *owner = owner_entry(domain, id);

    if (owner)
        return owner;
    owner = mem_alloc(sizeof(*owner));
    owner->id = *id;
    owner->by_id.hash = domain_id_hash(domain, id);
    table_add(&domain->egress->owners, &owner->by_id);
    list_append(&domain->egress->owner_list, &owner->link);
    return owner;
}

static void owner_drop(struct domain *domain, struct egress_owner *owner)
{
    table_remove(&domain->egress->owners, &owner->by_id);
    list_remove(&owner->link);
    free(owner->policy);
    free(owner);
}

void egress_owner_forget(struct domain *domain, const struct id *owner)
{
    struct egress_owner *known = owner_entry(domain, owner);

    if (known)
        owner_drop(domain, known);
}

void egress_owners_end(struct domain *domain)
{
    LIST_EACH (&domain->egress->owner_list, at)
        owner_drop(domain, CONTAINER_OF(at, struct egress_owner, link));
    table_done(&domain->egress->owners);
}

/* Those that a task needs to speak with models: the first of each kind. */
static void policy_add_keys(const struct domain *domain, const struct id *owner,
                            struct json_writer *json)
{
    static const enum egress_kind kinds[] = {EGRESS_ANTHROPIC, EGRESS_OPENAI, EGRESS_GOOGLE};

    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        LIST_EACH (&domain->egress->credential_list, at) {
            const struct egress_credential *credential =
                CONTAINER_OF(at, struct egress_credential, link);

            if (credential->kind != kinds[i] || credential->is_gone ||
                !id_equal(&credential->owner, owner))
                continue;
            json_add_text(json, egress_kind_text(kinds[i]), credential->name);
            break;
        }
}

/* A task that says nothing reaches the models that its owner has keys for, and nothing else. NULL:
 * there are none. */
static char *policy_of_keys(const struct domain *domain, const struct id *owner)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;
    AUTO(text) struct text text = TEXT_INIT(EGRESS_POLICY_MAX);
    struct json_writer json;

    json_document_begin(&json, &text);
    json_begin_object_at(&json, "models");
    policy_add_keys(domain, owner, &json);
    json_end_object(&json);
    if (json_document_end(&json) < 0 ||
        egress_policy_parse(text_string(&text), text.length, &policy, NULL) < 0 ||
        policy.route_count == 0)
        return NULL;
    text_clear(&text);
    json_writer_init_text(&json, &text);
    egress_policy_write(&json, &policy);
    return json_writer_finish(&json) < 0 ? NULL : mem_copy_text(text_string(&text));
}

void egress_fill(const struct domain *domain, const struct id *owner, struct sandbox_spec *spec)
{
    const struct egress_owner *known = egress_owner_of(domain, owner);

    if (spec->egress || !domain->options.broker)
        return;
    if (known && known->policy)
        spec->egress = mem_copy_text(known->policy);
    else if (spec->kind && strcmp(spec->kind, SANDBOX_KIND_TASK) == 0)
        spec->egress = policy_of_keys(domain, owner);
}

/* --- rows ------------------------------------------------------------------------------------ */

static int owner_load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct id id = domain_row_id(&row[STORE_EGRESS_OWNER_OWNER]);
    struct egress_owner *owner = owner_make(domain, &id);
    const struct store_value *budget = &row[STORE_EGRESS_OWNER_BUDGET];
    AUTO(json) json_t *read = json_read(budget->bytes, budget->length, NULL, err);
    struct json_place root;

    if (!row[STORE_EGRESS_OWNER_POLICY].is_null)
        owner->policy = mem_copy_text(row[STORE_EGRESS_OWNER_POLICY].bytes);
    return !read || json_root_object(read, &root, err) < 0 ||
                   egress_budget_read(&root, &owner->budget, err) < 0
               ? -1
               : 0;
}

void egress_owners_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_EGRESS_OWNER, STORE_EGRESS_OWNER_UPDATED, owner_load_one, done,
                context);
}

/* --- changes --------------------------------------------------------------------------------- */

struct egress_owner_change {
    struct domain_change base;
    char *policy; /* owned: as it shall be; NULL: none */
    struct egress_budget budget;
    egress_owner_done *done;
    void *context;
};

static void owner_changed(struct domain_change *base, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct egress_owner_change *change = CONTAINER_OF(base, struct egress_owner_change, base);
    struct egress_owner *owner;

    if (receipt) {
        owner = owner_make(base->domain, &base->caller.owner);
        free(owner->policy);
        owner->policy = TAKE_PTR(change->policy);
        owner->budget = change->budget;
    }
    change->done(change->context, failure);
    free(change->policy);
    free(change);
}

/* A budget of his own is no limit that he could lift. */
static int owner_check(const struct domain *domain, const struct caller *caller,
                       const struct egress_owner_spec *spec, struct error *err)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;

    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change what leaves sandboxes");
    if (spec->has_budget && caller->scope < CALLER_ADMIN)
        return error_set(err, ERR_FORBIDDEN, 0, "budgets of users are set by administrators");
    if (spec->policy && egress_policy_parse(spec->policy, strlen(spec->policy), &policy, err) < 0)
        return error_wrap(err, "policy");
    return 0;
}

static char *budget_text(const struct egress_budget *budget)
{
    AUTO(text) struct text text = TEXT_INIT(BUDGET_TEXT_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &text);
    egress_budget_write(&json, budget);
    (void) json_writer_finish(&json); /* three numbers: it fits */
    return text_take(&text);
}

void egress_owner_put(struct domain *domain, const struct caller *caller,
                      const struct egress_owner_spec *spec, egress_owner_done *done, void *context)
{
    struct egress_owner_change *change =
        domain_change_new(sizeof(*change), domain, caller, owner_changed);
    const struct egress_owner *known = egress_owner_of(domain, &caller->owner);
    const char *policy = spec->has_policy ? spec->policy : known ? known->policy : NULL;
    AUTO(free) char *budget = NULL;
    struct store_value values[STORE_EGRESS_OWNER_COLUMN_COUNT];
    struct store_transaction *rows;

    change->done = done;
    change->context = context;
    if (owner_check(domain, caller, spec, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    change->policy = policy ? mem_copy_text(policy) : NULL;
    if (spec->has_budget)
        change->budget = spec->budget;
    else if (known)
        change->budget = known->budget;
    budget = budget_text(&change->budget);
    values[STORE_EGRESS_OWNER_OWNER] = store_text(caller->owner.text);
    values[STORE_EGRESS_OWNER_POLICY] = store_text(change->policy);
    values[STORE_EGRESS_OWNER_BUDGET] = store_text(budget);
    values[STORE_EGRESS_OWNER_UPDATED] = store_integer(domain_wall_ms(domain));
    rows = store_begin(domain->options.store);
    store_put(rows, STORE_EGRESS_OWNER, values);
    event_add(domain, rows, caller, &caller->owner, "system", "egress.defaults", budget);
    domain_change_commit(&change->base, rows);
}

void egress_owner_write(const struct domain *domain, const struct id *owner,
                        struct json_writer *json)
{
    static const struct egress_budget none = {.tokens_per_day = 0};
    const struct egress_owner *known = egress_owner_of(domain, owner);

    json_key(json, "policy");
    if (known && known->policy)
        json_put_raw(json, known->policy, strlen(known->policy));
    else
        json_put_null(json);
    json_key(json, "budget");
    egress_budget_write(json, known ? &known->budget : &none);
}
