/* What the provider has and nobody may see any more: its row is gone, or never was. It is asked to
 * go until it has gone. */
#pragma once

#include <stdbool.h>

#include "base/id.h"
#include "base/list.h"
#include "provider/provider.h"

struct domain;

struct doom_kind {
    const char *noun;    /* of the log: "sandbox" */
    const char *failure; /* a line of the log */
    void (*take_down)(struct provider *provider, const struct id *id, provider_done *done,
                      void *context);
    void (*gone)(void); /* when it is gone, for tests that crash then; may be NULL */
};

/* Take one down. `done` is called after the first try, however that ends; it may be NULL. While the
 * domain closes, nothing is asked of the provider: recovery takes it down. `doomed` is the list of
 * those of that kind, which is the caller's. */
void doom_add(struct domain *domain, struct list *doomed, const struct doom_kind *kind,
              const struct id *id, void (*done)(void *context), void *context);

bool doom_has(const struct list *doomed, const struct id *id);

/* Ask again for those whose time has come. */
void doom_again(struct list *doomed);

/* Forget them all; nothing is asked any more. */
void doom_end(struct list *doomed);
