/* Templates: what new sandboxes are made from, by a name of the owner's. A spec (image, variables,
 * limits, ...), and perhaps a snapshot whose disk they begin with. In memory, kept in the store. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"
#include "domain/snapshot/snapshot.h"

#define TEMPLATE_NAME_MAX 63
#define TEMPLATE_LIST_MAX 1000

struct template
{
    struct table_link by_name; /* owner and name */
    struct list link;          /* of all */
    struct id owner;
    char *name;         /* owned */
    struct id snapshot; /* empty: none */
    char *spec;         /* owned: JSON, sandbox_record.h */
    char *brief;        /* owned: the same for lists, where it is long; else NULL */
    int64_t created_ms, updated_ms;
    struct share_claim count, bytes; /* how many an owner may have says share.def */
};

/* Of the caller's owner. NULL with ERR_NOT_FOUND. */
struct template *template_find(const struct domain *domain, const struct caller *caller,
                               const char *name, struct error *err);

struct template_filter {
    const char *after;              /* cursor of the last page, NULL: from the start */
    size_t limit;                   /* 1 to TEMPLATE_LIST_MAX */
    bool (*is_full)(void *context); /* as of sandbox_filter */
    void *full_context;
};

/* In the order they were first made, of the caller's owner; else as sandbox_list. */
int template_list(const struct domain *domain, const struct caller *caller,
                  const struct template_filter *filter, struct pool *pool,
                  void (*each)(void *context, const struct template *template), void *context,
                  const char **ret_next, struct error *err);

/* What it says, as the beginning of a spec. The caller's, to be freed. */
int template_spec(const struct template *template, struct sandbox_spec *ret_spec,
                  struct error *err);

/* The same for one of a list, without what would make that long. `ret_is_brief`: it was. */
int template_spec_brief(const struct template *template, struct sandbox_spec *ret_spec,
                        bool *ret_is_brief, struct error *err);

typedef void template_done(void *context, const struct error *failure,
                           const struct template *template);

/* Make it, or replace what was there. The spec's name is ignored; `snapshot` may be NULL.
 * ERR_INVALID, ERR_QUOTA: too many, or too much in all of them; ERR_CONFLICT: the snapshot will go by itself. */
void template_put(struct domain *domain, const struct caller *caller, const char *name,
                  const struct sandbox_spec *spec, struct snapshot *snapshot, template_done *done,
                  void *context);

/* Sandboxes that were made from it stay. `template` is NULL in the answer. */
void template_delete(struct domain *domain, const struct caller *caller, const char *name,
                     template_done *done, void *context);

/* The name of one that is made from this snapshot; NULL: there is none. Borrowed. */
const char *template_of_snapshot(const struct domain *domain, const struct id *snapshot);
