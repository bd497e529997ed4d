#include "domain/orphan.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"

#define AGAIN_NS (UINT64_C(10) * 1000 * 1000 * 1000)

struct orphan {
    struct list link;
    struct domain *domain;
    const struct orphan_kind *kind;
    struct id id;
    bool is_asked;
    uint64_t due_ns;
    void (*done)(void *context);
    void *context;
};

static void on_gone(void *context, const struct error *failure)
{
    struct orphan *orphan = context;
    struct domain *domain = orphan->domain;
    bool is_gone = !failure || failure->code == ERR_NOT_FOUND;

    orphan->is_asked = false;
    if (!is_gone && domain->stage != DOMAIN_CLOSING) {
        LOG_ERROR(domain->options.log, orphan->kind->failure,
                  log_text(orphan->kind->noun, orphan->id.text),
                  log_text("error", failure->message));
        orphan->due_ns = domain_now_ns(domain) + AGAIN_NS;
    } else {
        if (orphan->kind->gone)
            orphan->kind->gone();
        list_remove(&orphan->link);
    }
    if (orphan->done)
        orphan->done(orphan->context);
    orphan->done = NULL;
    if (list_is_empty(&orphan->link))
        free(orphan);
    domain->works--;
    domain_check_gone(domain);
}

static void orphan_take_down(struct orphan *orphan)
{
    orphan->is_asked = true;
    orphan->domain->works++;
    orphan->kind->take_down(orphan->domain->options.provider, &orphan->id, on_gone, orphan);
}

void orphan_add(struct domain *domain, struct list *orphans, const struct orphan_kind *kind,
                const struct id *id, void (*done)(void *context), void *context)
{
    struct orphan *one;

    if (domain->stage == DOMAIN_CLOSING || !domain->options.provider) {
        if (done)
            done(context);
        return;
    }
    one = mem_alloc(sizeof(*one));
    *one = (struct orphan){
        .domain = domain, .kind = kind, .id = *id, .done = done, .context = context};
    list_append(orphans, &one->link);
    orphan_take_down(one);
}

bool orphan_has(const struct list *orphans, const struct id *id)
{
    LIST_EACH (orphans, at)
        if (id_equal(&CONTAINER_OF(at, struct orphan, link)->id, id))
            return true;
    return false;
}

void orphans_retry(struct list *orphans)
{
    LIST_EACH (orphans, at) {
        struct orphan *one = CONTAINER_OF(at, struct orphan, link);

        if (!one->is_asked && one->due_ns <= domain_now_ns(one->domain))
            orphan_take_down(one);
    }
}

void orphans_end(struct list *orphans)
{
    LIST_EACH (orphans, at)
        free(CONTAINER_OF(at, struct orphan, link));
    list_init(orphans);
}
