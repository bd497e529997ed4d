#include "api/mount_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/path.h"
#include "net/outbound/curl_exchange.h"

/* On the heap: goes on when the client leaves. */
struct mount_work {
    struct visit *visit; /* NULL: the client left */
    void *data;          /* what visit->data was */
    mount_work_done *done;
};

static void mount_work_ended(void *context, const struct error *failure,
                             const struct bucket_mount *mount)
{
    AUTO(free) struct mount_work *work = context;
    struct visit *visit = work->visit;
    struct error told = ERROR_INIT;

    if (!visit)
        return;
    visit->gone = NULL;
    visit->data = work->data;
    if (failure)
        told = *failure;
    if (request_caller(visit->request)->scope < CALLER_ADMIN)
        outbound_hide_address(&told);
    work->done(visit, failure ? &told : NULL, mount);
}

static void mount_work_client_left(struct visit *visit)
{
    struct mount_work *work = visit->data;

    work->visit = NULL;
}

static struct mount_work *mount_work_begin(struct visit *visit, mount_work_done *done)
{
    struct mount_work *work = mem_alloc(sizeof(*work));

    *work = (struct mount_work){.visit = visit, .data = visit->data, .done = done};
    visit->data = work;
    visit->gone = mount_work_client_left;
    return work;
}

void mount_work_add(struct visit *visit, const struct bucket_mount_spec *spec,
                    mount_work_done *done)
{
    bucket_mount_add(visit->api->domain, request_caller(visit->request), visit->sandbox, spec,
                     mount_work_ended, mount_work_begin(visit, done));
}

void mount_work_remove(struct visit *visit, const char *place, mount_work_done *done)
{
    bucket_mount_remove(visit->api->domain, request_caller(visit->request), visit->sandbox, place,
                        mount_work_ended, mount_work_begin(visit, done));
}

const char *mount_work_place(struct pool *pool, const char *path)
{
    const char *place = path[0] == '/' ? path_resolve(pool, "", path) : "/";

    return place[1] ? place : NULL;
}
