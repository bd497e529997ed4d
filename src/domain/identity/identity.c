#include "domain/identity/identity.h"

#include <string.h>

#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/identity/api_key.h"

#define FIRST_NAME "admin"

struct first {
    struct domain_task task;
    struct domain *domain;
    char *secret; /* owned, may be NULL */
    struct id owner;
    owner_done *done;
    void *context;
};

static void identity_finish(struct first *first, const struct error *failure)
{
    first->done(first->context, failure, failure ? NULL : owner_find(first->domain, &first->owner));
    if (first->secret)
        explicit_bzero(first->secret, strlen(first->secret));
    free(first->secret);
    free(first);
}

static void adopted(void *context, const struct error *failure, struct api_key *key,
                    const char *secret)
{
    struct first *first = context;

    (void) secret;
    if (key && key->revoked_ms)
        LOG_WARNING(first->domain->options.log,
                    "the administrator's first key was revoked: it opens nothing",
                    log_text("prefix", key->prefix));
    identity_finish(first, failure);
}

static void with_owner(struct first *first)
{
    if (first->secret)
        api_key_adopt(first->domain, &first->owner, "first", first->secret, adopted, first);
    else
        identity_finish(first, NULL);
}

static void identity_found(struct domain_task *task)
{
    with_owner(CONTAINER_OF(task, struct first, task));
}

static void identity_made(void *context, const struct error *failure, struct owner *owner)
{
    struct first *first = context;

    if (failure) {
        identity_finish(first, failure);
        return;
    }
    first->owner = owner->id;
    with_owner(first);
}

void identity_first(struct domain *domain, const char *secret, owner_done *done, void *context)
{
    const struct caller system = caller_system();
    const struct owner_spec spec = {.name = FIRST_NAME, .is_admin = true};
    const struct owner *owner = owner_first_admin(domain);
    struct first *first = mem_alloc(sizeof(*first));

    first->domain = domain;
    first->secret = secret ? mem_copy_text(secret) : NULL;
    first->done = done;
    first->context = context;
    if (!owner) {
        owner_create(domain, &system, &spec, identity_made, first);
        return;
    }
    first->owner = owner->id;
    domain_defer(domain, &first->task, identity_found);
}
