#include "domain/told_event.h"

#include <string.h>

#include "domain/domain_internal.h"
#include "domain/event/event.h"

static void told_event_kept(void *context, const struct error *failure,
                            const struct store_receipt *receipt)
{
    if (!failure)
        event_kept(context, receipt);
}

void told_event_add(struct domain *domain, const struct caller *caller, const struct id *owner,
                    const struct id *sandbox, const char *type, const char *data)
{
    struct store_transaction *rows;

    if (!domain_is_open(domain, NULL) || strlen(data) > STORE_EVENT_DATA_MAX)
        return;
    rows = store_begin(domain->options.store);
    event_add(domain, rows, caller, owner, sandbox ? sandbox->text : "system", type, data);
    domain_commit(domain, rows, told_event_kept, domain);
}
