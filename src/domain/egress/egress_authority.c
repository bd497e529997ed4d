/* The authority of a sandbox: made by the broker, kept sealed, found again after a restart. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/egress/egress_internal.h"

void egress_made_authority(void *self, const struct id *sandbox, const char *certificate,
                           const char *key)
{
    struct domain *domain = self;
    struct egress_way *way = egress_way_of(domain, sandbox);
    const struct store_value values[STORE_EGRESS_AUTHORITY_COLUMN_COUNT] = {
        [STORE_EGRESS_AUTHORITY_SANDBOX] = store_text(sandbox->text),
        [STORE_EGRESS_AUTHORITY_OWNER] = store_text(way ? way->owner.text : ""),
        [STORE_EGRESS_AUTHORITY_CERTIFICATE] = store_text(certificate),
        [STORE_EGRESS_AUTHORITY_SECRET] = store_bytes(key, strlen(key)),
        [STORE_EGRESS_AUTHORITY_CREATED] = store_integer(domain_wall_ms(domain)),
    };
    struct store_transaction *rows;

    if (!way)
        return;
    free(way->certificate);
    if (way->key)
        explicit_bzero(way->key, strlen(way->key));
    free(way->key);
    way->certificate = mem_copy_text(certificate);
    way->key = mem_copy_text(key);
    rows = store_begin(domain->options.store);
    store_put(rows, STORE_EGRESS_AUTHORITY, values);
    domain_commit(domain, rows, NULL, NULL);
}

struct authority_search {
    struct domain *domain;
    egress_authority_done *done;
    void *context;
};

static void authority_found(void *context, const struct error *failure,
                            const struct store_rows *rows)
{
    struct authority_search search = *(struct authority_search *) context;
    const struct store_value *row = failure || !rows->count ? NULL : rows->rows[0];
    AUTO(free)
    char *key = row ? mem_copy_bytes(row[STORE_EGRESS_AUTHORITY_SECRET].bytes,
                                     row[STORE_EGRESS_AUTHORITY_SECRET].length)
                    : NULL;

    free(context);
    search.done(search.context, failure, row ? row[STORE_EGRESS_AUTHORITY_CERTIFICATE].bytes : NULL,
                key);
    if (key)
        explicit_bzero(key, strlen(key));
}

void egress_authority_find(struct domain *domain, const struct id *sandbox,
                           egress_authority_done *done, void *context)
{
    const struct store_condition is_it = {.column = STORE_EGRESS_AUTHORITY_SANDBOX,
                                          .comparison = STORE_EQUAL,
                                          .value = store_text(sandbox->text)};
    const struct store_query query = {.kind = STORE_EGRESS_AUTHORITY,
                                      .conditions = &is_it,
                                      .condition_count = 1,
                                      .order = STORE_EGRESS_AUTHORITY_SANDBOX,
                                      .limit = 1};
    struct authority_search *search = mem_alloc(sizeof(*search));

    *search = (struct authority_search){.domain = domain, .done = done, .context = context};
    domain_find(domain, &query, authority_found, search);
}
