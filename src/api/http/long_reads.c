#include "api/http/long_reads.h"

#include <stdlib.h>
#include <string.h>

#include "api/access/access.h"
#include "api/http/api.h"
#include "base/memory.h"

struct long_reads {
    struct loop *loop;     /* borrowed */
    struct list all;       /* of long_read: those that go on, and those that wait, as they came */
    struct loop_task next; /* begins one */
};

struct long_read {
    struct list link;
    struct long_reads *reads;
    struct id owner;
    struct http_request *request;
    void (*handler)(struct http_request *request);
    bool is_running;
};

static bool long_reads_has_running(const struct long_reads *reads, const struct id *owner)
{
    LIST_EACH (&reads->all, at) {
        const struct long_read *other = CONTAINER_OF(at, struct long_read, link);

        if (other->is_running && strcmp(other->owner.text, owner->text) == 0)
            return true;
    }
    return false;
}

/* The first that waits and may go; NULL: none. */
static struct long_read *long_reads_next(const struct long_reads *reads)
{
    LIST_EACH (&reads->all, at) {
        struct long_read *read = CONTAINER_OF(at, struct long_read, link);

        if (!read->is_running && !long_reads_has_running(reads, &read->owner))
            return read;
    }
    return NULL;
}

/* One in each turn of the loop. */
static void long_reads_go(struct loop_task *task)
{
    struct long_reads *reads = CONTAINER_OF(task, struct long_reads, next);
    struct long_read *read = long_reads_next(reads);

    if (!read)
        return;
    read->is_running = true;
    read->request->on_gone = NULL;
    loop_defer(reads->loop, &reads->next);
    read->handler(read->request);
}

/* on_ended follows. */
static void long_read_gone(struct http_request *request)
{
    (void) request;
}

static void long_read_ended(struct http_request *request)
{
    struct long_read *read = request->ended_data;

    list_remove(&read->link);
    loop_defer(read->reads->loop, &read->reads->next);
    free(read);
}

struct long_reads *long_reads_new(struct loop *loop)
{
    struct long_reads *reads = mem_alloc(sizeof(*reads));

    reads->loop = loop;
    list_init(&reads->all);
    loop_task_init(&reads->next, long_reads_go);
    return reads;
}

void long_reads_free(struct long_reads *reads)
{
    if (reads)
        loop_task_cancel(&reads->next);
    free(reads);
}

bool long_read_begin(struct http_request *request, void (*handler)(struct http_request *request))
{
    struct long_reads *reads = api_of(request)->long_reads;
    struct long_read *read;

    if (!reads || request->on_ended == long_read_ended)
        return true;
    read = mem_alloc(sizeof(*read));
    *read = (struct long_read){
        .reads = reads,
        .owner = request_caller(request)->owner,
        .request = request,
        .handler = handler,
    };
    read->is_running = !long_reads_has_running(reads, &read->owner);
    list_append(&reads->all, &read->link);
    request->ended_data = read;
    request->on_ended = long_read_ended;
    if (!read->is_running)
        request->on_gone = long_read_gone;
    return read->is_running;
}
