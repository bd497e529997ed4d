/* What the provider has and nobody may see any more: its row is gone, or never was. It is asked to
 * go until it has gone. */
#pragma once

#include <stdbool.h>

#include "base/id.h"
#include "base/list.h"
#include "provider/provider.h"

struct domain;

struct orphan_kind {
    const char *noun;    /* of the log: "sandbox" */
    const char *failure; /* a line of the log */
    void (*take_down)(struct provider *provider, const struct id *id, provider_done *done,
                      void *context);
    void (*gone)(void); /* when it is gone, for tests that crash then; may be NULL */
};

/* Take one down. `done` is called after the first try, however that ends; it may be NULL. While the
 * domain closes, nothing is asked of the provider: recovery takes it down. `orphans` is the list of
 * those of that kind, which is the caller's. */
void orphan_add(struct domain *domain, struct list *orphans, const struct orphan_kind *kind,
                const struct id *id, void (*done)(void *context), void *context);

bool orphan_has(const struct list *orphans, const struct id *id);

/* Ask again for those whose time has come. */
void orphans_retry(struct list *orphans);

/* Forget them all; nothing is asked any more. */
void orphans_end(struct list *orphans);
