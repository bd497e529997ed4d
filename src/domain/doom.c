#include "domain/doom.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"

#define AGAIN_NS (UINT64_C(10) * 1000 * 1000 * 1000)

struct doomed {
    struct list link;
    struct domain *domain;
    const struct doom_kind *kind;
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
    if (!is_gone && domain->stage != DOMAIN_CLOSING) {
        LOG_ERROR(domain->options.log, doomed->kind->failure,
                  log_text(doomed->kind->noun, doomed->id.text),
                  log_text("error", failure->message));
        doomed->due_ns = domain_now_ns(domain) + AGAIN_NS;
    } else {
        if (doomed->kind->gone)
            doomed->kind->gone();
        list_remove(&doomed->link);
    }
    if (doomed->done)
        doomed->done(doomed->context);
    doomed->done = NULL;
    if (list_is_empty(&doomed->link))
        free(doomed);
    domain->works--;
    domain_check_gone(domain);
}

static void take_down(struct doomed *doomed)
{
    doomed->is_asked = true;
    doomed->domain->works++;
    doomed->kind->take_down(doomed->domain->options.provider, &doomed->id, on_gone, doomed);
}

void doom_add(struct domain *domain, struct list *doomed, const struct doom_kind *kind,
              const struct id *id, void (*done)(void *context), void *context)
{
    struct doomed *one;

    if (domain->stage == DOMAIN_CLOSING || !domain->options.provider) {
        if (done)
            done(context);
        return;
    }
    one = mem_alloc(sizeof(*one));
    *one = (struct doomed){
        .domain = domain, .kind = kind, .id = *id, .done = done, .context = context};
    list_append(doomed, &one->link);
    take_down(one);
}

bool doom_has(const struct list *doomed, const struct id *id)
{
    LIST_EACH (doomed, at)
        if (id_equal(&CONTAINER_OF(at, struct doomed, link)->id, id))
            return true;
    return false;
}

void doom_again(struct list *doomed)
{
    LIST_EACH (doomed, at) {
        struct doomed *one = CONTAINER_OF(at, struct doomed, link);

        if (!one->is_asked && one->due_ns <= domain_now_ns(one->domain))
            take_down(one);
    }
}

void doom_end(struct list *doomed)
{
    LIST_EACH (doomed, at)
        free(CONTAINER_OF(at, struct doomed, link));
    list_init(doomed);
}
