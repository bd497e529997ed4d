#include "domain/domain_change.h"

#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/event/event.h"

void *domain_change_new(size_t size, struct domain *domain, const struct caller *caller,
                        domain_change_end *end)
{
    struct domain_change *change = mem_alloc(size);

    change->domain = domain;
    if (caller)
        change->caller = *caller;
    change->end = end;
    return change;
}

static void change_refused(struct domain_task *task)
{
    struct domain_change *change = CONTAINER_OF(task, struct domain_change, task);

    change->end(change, change->failure.code != ERR_NONE ? &change->failure : NULL, NULL);
}

void domain_change_refuse(struct domain_change *change)
{
    change->is_refused = true;
    domain_defer(change->domain, &change->task, change_refused);
}

static void change_kept(void *context, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct domain_change *change = context;

    if (!failure)
        event_kept(change->domain, receipt);
    change->end(change, failure, failure ? NULL : receipt);
}

void domain_change_commit(struct domain_change *change, struct store_transaction *rows)
{
    domain_commit(change->domain, rows, change_kept, change);
}

int domain_check_name(const char *name, size_t max, const char *what, struct error *err)
{
    size_t length = name ? strlen(name) : 0;

    if (!length || length > max || !utf8_is_valid(name, length))
        return error_set(err, ERR_INVALID, 0, "%s must have 1 to %zu bytes of UTF-8", what, max);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char) name[i] < ' ' || name[i] == 0x7f)
            return error_set(err, ERR_INVALID, 0, "%s must not have control characters", what);
    return 0;
}
