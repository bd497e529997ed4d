/* What is under way in the domain and below it, as lines for people. */
#include "domain/domain_internal.h"

static const char *const stage_texts[] = {
    [DOMAIN_NEW] = "new",
    [DOMAIN_OPENING] = "opening",
    [DOMAIN_OPEN] = "open",
    [DOMAIN_CLOSING] = "closing",
};

struct provider *domain_provider(const struct domain *domain)
{
    return domain->options.provider;
}

void domain_describe(const struct domain *domain, struct text *out)
{
    struct store_counters store;

    text_format(out, "domain: %s, %zu uses, %zu works, %zu calls of the store, %zu saves\n",
                stage_texts[domain->stage], domain->uses, domain->works, domain->outstanding,
                domain->saves);
    store_counters(domain->options.store, &store);
    text_format(out, "store: %zu queued, %llu commits, %llu queries, %llu failures\n", store.queued,
                (unsigned long long) store.commits, (unsigned long long) store.queries,
                (unsigned long long) store.failures);
    if (domain->options.objects) {
        struct objects_counters objects;

        objects_counters(domain->options.objects, &objects);
        text_format(out, "objects: %zu queued, %zu running, %llu calls, %llu failures\n",
                    objects.queued, objects.running, (unsigned long long) objects.calls,
                    (unsigned long long) objects.failures);
    }
    if (domain->options.provider)
        provider_describe(domain->options.provider, out);
}
