/* Sandboxes of the provider that nobody may see any more: their row is gone, or never was. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_life.h"
#include "domain/sandbox_set.h"
#include "domain/sandbox_wish.h"

#define AGAIN_NS (UINT64_C(10) * 1000 * 1000 * 1000)

struct doomed {
    struct list link;
    struct domain *domain;
    struct id id;
    bool is_asked;
    uint64_t due_ns;
    void (*done)(void *context);
    void *context;
};

static void on_gone(void *context, const struct error *failure)
{
    struct doomed *doomed = context;
    struct domain *domain = doomed->domain;
    bool is_gone = !failure || failure->code == ERR_NOT_FOUND;

    doomed->is_asked = false;
    if (doomed->done)
        doomed->done(doomed->context);
    doomed->done = NULL;
    if (!is_gone && domain->stage != DOMAIN_CLOSING) {
        LOG_ERROR(domain->options.log, "a sandbox cannot be taken down, and will be tried again",
                  log_text("sandbox", doomed->id.text), log_text("error", failure->message));
        doomed->due_ns = domain_now_ns(domain) + AGAIN_NS;
    } else {
        list_remove(&doomed->link);
        free(doomed);
    }
    domain->works--;
    domain_check_gone(domain);
}

static void take_down(struct doomed *doomed)
{
    doomed->is_asked = true;
    doomed->domain->works++;
    provider_destroy(doomed->domain->options.provider, &doomed->id, on_gone, doomed);
}

void sandbox_doom(struct domain *domain, const struct id *id, void (*done)(void *context),
                  void *context)
{
    struct doomed *doomed;

    /* While closing nothing is asked of the provider: recovery takes it down. */
    if (domain->stage == DOMAIN_CLOSING || !domain->options.provider) {
        if (done)
            done(context);
        return;
    }
    doomed = mem_alloc(sizeof(*doomed));
    doomed->domain = domain;
    doomed->id = *id;
    doomed->done = done;
    doomed->context = context;
    list_append(&domain->sandboxes->doomed, &doomed->link);
    take_down(doomed);
}

void sandbox_doom_again(struct domain *domain)
{
    uint64_t now = domain_now_ns(domain);

    LIST_EACH (&domain->sandboxes->doomed, at) {
        struct doomed *doomed = CONTAINER_OF(at, struct doomed, link);

        if (!doomed->is_asked && doomed->due_ns <= now)
            take_down(doomed);
    }
}

void sandbox_doom_end(struct domain *domain)
{
    LIST_EACH (&domain->sandboxes->doomed, at)
        free(CONTAINER_OF(at, struct doomed, link));
    list_init(&domain->sandboxes->doomed);
}
