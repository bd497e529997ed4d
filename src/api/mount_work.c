#include "api/mount_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

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

    if (!visit)
        return;
    visit->gone = NULL;
    visit->data = work->data;
    work->done(visit, failure, mount);
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
    char *plain = pool_alloc(pool, strlen(path) + 2);
    size_t used = 0;

    if (path[0] != '/')
        return NULL;
    while (*path) {
        size_t length = strcspn(path, "/");

        if (length == 2 && memcmp(path, "..", 2) == 0) {
            while (used && plain[--used] != '/')
                ;
        } else if (length && !(length == 1 && path[0] == '.')) {
            plain[used++] = '/';
            memcpy(plain + used, path, length);
            used += length;
        }
        path += length + (path[length] == '/');
    }
    plain[used] = '\0';
    return used ? plain : NULL;
}
