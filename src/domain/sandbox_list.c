/* Pages of sandboxes, newest first. A cursor says behind which one the next page begins: its time
 * of creation and its id, so that it stays good when that one, or others, come and go. */
#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "domain/sandbox_set.h"
#include "domain/sandboxes.h"

/* Where a page begins. */
struct place {
    int64_t created_ms;
    char id[ID_SIZE];
};

static int read_cursor(const char *text, struct place *ret_place, struct error *err)
{
    const char *dot = strchr(text, '.');
    uint64_t created;

    if (!dot || !id_is_valid(dot + 1) ||
        number_parse_digits(text, (size_t) (dot - text), INT64_MAX, &created) < 0)
        return error_set(err, ERR_INVALID, 0, "the cursor is none that a list gave out");
    ret_place->created_ms = (int64_t) created;
    memcpy(ret_place->id, dot + 1, ID_SIZE);
    return 0;
}

static bool is_behind(const struct sandbox *sandbox, const struct place *place)
{
    if (sandbox->created_ms != place->created_ms)
        return sandbox->created_ms < place->created_ms;
    return strcmp(sandbox->id.text, place->id) < 0;
}

/* The newest that is behind the place. */
static const struct list *find_place(const struct domain *domain, const struct place *place)
{
    const struct list *all = &domain->sandboxes->all;
    const struct sandbox *known = sandbox_set_by_id(domain, place->id);
    const struct list *at = all->previous;

    if (known && !list_is_empty(&known->link) && known->created_ms == place->created_ms)
        return known->link.previous;
    while (at != all && !is_behind(CONTAINER_OF(at, struct sandbox, link), place))
        at = at->previous;
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
    struct place place;
    size_t count = 0;

    if (filter->limit < 1 || filter->limit > SANDBOX_LIST_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d sandboxes", SANDBOX_LIST_MAX);
    if (filter->after) {
        if (read_cursor(filter->after, &place, err) < 0)
            return -1;
        at = find_place(domain, &place);
    }
    *ret_next = NULL;
    for (; at != all; at = at->previous) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (!matches(sandbox, caller, filter))
            continue;
        if (count == filter->limit) {
            *ret_next = pool_format(pool, "%" PRId64 ".%s", last->created_ms, last->id.text);
            break;
        }
        last = sandbox;
        count++;
        each(context, sandbox);
    }
    return 0;
}
