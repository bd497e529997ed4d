#include "domain/sandbox/sandbox_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

struct sandbox_set *sandbox_set_new(void)
{
    struct sandbox_set *set = mem_alloc(sizeof(*set));

    list_init(&set->all);
    list_init(&set->unkept);
    list_init(&set->orphans);
    return set;
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
    sandbox->references++;
    return sandbox;
}

void sandbox_unref(struct sandbox *sandbox)
{
    if (sandbox && --sandbox->references == 0)
        sandbox_free(sandbox);
}

static void free_usages(struct sandbox_set *set)
{
    for (size_t i = 0; i < set->usages.bucket_count; i++) {
        struct table_link *at = set->usages.buckets[i];

        while (at) {
            struct table_link *next = at->next;

            free(CONTAINER_OF(at, struct usage, by_owner));
            at = next;
        }
    }
    table_done(&set->usages);
}

void sandbox_set_free(struct sandbox_set *set)
{
    if (!set)
        return;
    LIST_EACH (&set->all, at) {
        list_remove(at);
        sandbox_unref(CONTAINER_OF(at, struct sandbox, link));
    }
    free_usages(set);
    table_done(&set->by_id);
    table_done(&set->by_name);
    free(set);
}

/* --- counting -------------------------------------------------------------------------------- */

static struct usage *find_usage(const struct domain *domain, const struct id *owner)
{
    struct table_link *at = table_find(&domain->sandboxes->usages, domain_id_hash(domain, owner));

    for (; at; at = table_next(at)) {
        struct usage *usage = CONTAINER_OF(at, struct usage, by_owner);

        if (id_equal(&usage->owner, owner))
            return usage;
    }
    return NULL;
}

const struct usage *sandbox_set_usage(const struct domain *domain, const struct id *owner)
{
    return find_usage(domain, owner);
}

static struct usage *make_usage(struct domain *domain, const struct id *owner)
{
    struct usage *usage = find_usage(domain, owner);

    if (usage)
        return usage;
    usage = mem_alloc(sizeof(*usage));
    usage->owner = *owner;
    usage->by_owner.hash = domain_id_hash(domain, owner);
    table_add(&domain->sandboxes->usages, &usage->by_owner);
    return usage;
}

bool sandbox_status_counts_as_running(enum sandbox_status status)
{
    return status == SANDBOX_RUNNING || sandbox_status_is_busy(status);
}

/* What one without a limit counts as holding: more than most. */
#define UNLIMITED_MEMORY (UINT64_C(8) << 30)

/* Add what the sandbox is now, or take it away before it changes: unsigned sums wrap back. */
static void count(struct domain *domain, const struct sandbox *sandbox, uint64_t sign)
{
    struct usage *usage = make_usage(domain, &sandbox->owner);
    const struct limits *limits = &sandbox->spec.limits;

    domain->sandboxes->counts[sandbox->status] += (size_t) sign;
    usage->counts[sandbox->status] += (size_t) sign;
    usage->sandboxes += sign;
    usage->disk_bytes += sign * limits->disk_bytes;
    if (sandbox_status_counts_as_running(sandbox->status) || sandbox->status == SANDBOX_FROZEN)
        usage->held_bytes +=
            sign * (limits->memory_bytes ? limits->memory_bytes : UNLIMITED_MEMORY);
    if (sandbox_status_counts_as_running(sandbox->status)) {
        usage->running += sign;
        usage->memory_bytes += sign * limits->memory_bytes;
        usage->cpu_millis += sign * limits->cpu_millis;
    }
}

static void count_in(struct domain *domain, const struct sandbox *sandbox)
{
    count(domain, sandbox, 1);
}

static void count_out(struct domain *domain, const struct sandbox *sandbox)
{
    struct usage *usage;

    count(domain, sandbox, UINT64_MAX);
    usage = find_usage(domain, &sandbox->owner);
    if (usage->sandboxes == 0) {
        table_remove(&domain->sandboxes->usages, &usage->by_owner);
        free(usage);
    }
}

void sandbox_set_status(struct domain *domain, struct sandbox *sandbox, enum sandbox_status status)
{
    count(domain, sandbox, UINT64_MAX);
    sandbox->status = status;
    count(domain, sandbox, 1);
}

/* --- tables ---------------------------------------------------------------------------------- */

static uint64_t name_hash(const struct domain *domain, const struct id *owner, const char *name)
{
    return table_hash(domain_id_hash(domain, owner), name, strlen(name));
}

static void add_name(struct domain *domain, struct sandbox *sandbox)
{
    if (!sandbox->spec.name)
        return;
    sandbox->by_name.hash = name_hash(domain, &sandbox->owner, sandbox->spec.name);
    table_add(&domain->sandboxes->by_name, &sandbox->by_name);
}

static void remove_name(struct domain *domain, struct sandbox *sandbox)
{
    if (sandbox->spec.name)
        table_remove(&domain->sandboxes->by_name, &sandbox->by_name);
}

void sandbox_set_reserve(struct domain *domain, struct sandbox *sandbox)
{
    count_in(domain, sandbox);
    add_name(domain, sandbox);
}

void sandbox_set_unreserve(struct domain *domain, struct sandbox *sandbox)
{
    remove_name(domain, sandbox);
    count_out(domain, sandbox);
}

void sandbox_set_identify(struct domain *domain, struct sandbox *sandbox)
{
    sandbox->by_id.hash = domain_id_hash(domain, &sandbox->id);
    table_add(&domain->sandboxes->by_id, &sandbox->by_id);
}

void sandbox_set_unidentify(struct domain *domain, struct sandbox *sandbox)
{
    table_remove(&domain->sandboxes->by_id, &sandbox->by_id);
}

static bool is_older(const struct sandbox *a, const struct sandbox *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    return strcmp(a->id.text, b->id.text) < 0;
}

void sandbox_set_list(struct domain *domain, struct sandbox *sandbox)
{
    struct list *all = &domain->sandboxes->all;
    struct list *behind = all->previous;

    while (behind != all && is_older(sandbox, CONTAINER_OF(behind, struct sandbox, link)))
        behind = behind->previous;
    list_append(behind->next, &sandbox->link); /* before the next one is behind this one */
}

static int compare(const void *a, const void *b)
{
    const struct sandbox *first = *(struct sandbox *const *) a;
    const struct sandbox *second = *(struct sandbox *const *) b;

    return is_older(first, second) ? -1 : is_older(second, first) ? 1 : 0;
}

void sandbox_set_sort(struct domain *domain)
{
    struct list *all = &domain->sandboxes->all;
    AUTO(free)
    struct sandbox **sorted =
        mem_alloc_array(domain->sandboxes->by_id.count + 1, sizeof(struct sandbox *));
    size_t count = 0;

    LIST_EACH (all, at)
        sorted[count++] = CONTAINER_OF(at, struct sandbox, link);
    qsort(sorted, count, sizeof(struct sandbox *), compare);
    list_init(all);
    for (size_t i = 0; i < count; i++)
        list_append(all, &sorted[i]->link);
}

void sandbox_set_spec(struct domain *domain, struct sandbox *sandbox, struct sandbox_spec *spec)
{
    remove_name(domain, sandbox);
    count(domain, sandbox, UINT64_MAX);
    sandbox_spec_done(&sandbox->spec);
    sandbox->spec = *spec;
    *spec = (struct sandbox_spec){.name = NULL};
    count(domain, sandbox, 1);
    add_name(domain, sandbox);
}

struct sandbox *sandbox_set_by_id(const struct domain *domain, const char *id)
{
    uint64_t hash = table_hash(domain->seed, id, strlen(id));

    for (struct table_link *at = table_find(&domain->sandboxes->by_id, hash); at;
         at = table_next(at)) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, by_id);

        if (strcmp(sandbox->id.text, id) == 0)
            return sandbox;
    }
    return NULL;
}

struct sandbox *sandbox_set_by_name(const struct domain *domain, const struct id *owner,
                                    const char *name)
{
    uint64_t hash = name_hash(domain, owner, name);

    for (struct table_link *at = table_find(&domain->sandboxes->by_name, hash); at;
         at = table_next(at)) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, by_name);

        if (id_equal(&sandbox->owner, owner) && strcmp(sandbox->spec.name, name) == 0)
            return sandbox;
    }
    return NULL;
}
