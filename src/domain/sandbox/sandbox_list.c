/* Pages of sandboxes, newest first. */
#include <string.h>

#include "base/auto.h"
#include "domain/list_cursor.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandboxes.h"

/* The newest that is behind the cursor. */
static const struct list *find_place(const struct domain *domain, const struct list_cursor *cursor)
{
    const struct list *all = &domain->sandboxes->all;
    const struct sandbox *known = sandbox_set_by_id(domain, cursor->id);
    const struct list *at = all->previous;

    if (known && !list_is_empty(&known->link) && known->created_ms == cursor->created_ms)
        return known->link.previous;
    for (; at != all; at = at->previous) {
        const struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (list_cursor_precedes(cursor, sandbox->created_ms, &sandbox->id))
            break;
    }
    return at;
}

static bool matches_label(const struct sandbox *sandbox, const struct sandbox_filter *filter)
{
    const char *value;

    if (!filter->label)
        return true;
    value = sandbox_pairs_get(&sandbox->spec.labels, filter->label);
    return value && (!filter->value || strcmp(value, filter->value) == 0);
}

static bool matches_status(const struct sandbox *sandbox, const struct sandbox_filter *filter)
{
    if (filter->is_asleep)
        return sandbox_status_is_asleep(sandbox->status);
    return filter->status == SANDBOX_STATUS_COUNT || filter->status == sandbox->status;
}

static bool matches_name(const struct sandbox *sandbox, const struct sandbox_filter *filter)
{
    if (!filter->name_prefix || !*filter->name_prefix)
        return true;
    return sandbox->spec.name &&
           strncmp(sandbox->spec.name, filter->name_prefix, strlen(filter->name_prefix)) == 0;
}

static bool matches(const struct sandbox *sandbox, const struct caller *caller,
                    const struct sandbox_filter *filter)
{
    return caller_sees_sandbox(caller, &sandbox->owner, &sandbox->id) &&
           (!filter->owner || id_equal(filter->owner, &sandbox->owner)) &&
           matches_status(sandbox, filter) && matches_name(sandbox, filter) &&
           matches_label(sandbox, filter);
}

int sandbox_list(struct domain *domain, const struct caller *caller,
                 const struct sandbox_filter *filter, struct pool *pool,
                 void (*each)(void *context, struct sandbox *sandbox), void *context,
                 const char **ret_next, struct error *err)
{
    const struct list *all = &domain->sandboxes->all;
    const struct list *at = all->previous;
    const struct sandbox *last = NULL;
    struct list_cursor cursor;
    size_t count = 0;

    if (filter->limit < 1 || filter->limit > SANDBOX_LIST_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d sandboxes", SANDBOX_LIST_MAX);
    if (filter->after) {
        if (list_cursor_read(&cursor, filter->after, err) < 0)
            return -1;
        at = find_place(domain, &cursor);
    }
    *ret_next = NULL;
    for (; at != all; at = at->previous) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (!matches(sandbox, caller, filter))
            continue;
        if (count == filter->limit ||
            (count && filter->is_full && filter->is_full(filter->full_context))) {
            *ret_next = list_cursor_write(last->created_ms, &last->id, pool);
            break;
        }
        last = sandbox;
        count++;
        each(context, sandbox);
    }
    return 0;
}
