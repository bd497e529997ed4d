/* backup and restore. A sandbox that is not there is made: a restore into one that was destroyed is
 * what backups are for. */
#include <stdlib.h>
#include <string.h>

#include "api/backup_body.h"
#include "api/stackmemory/stackmemory_internal.h"
#include "base/memory.h"
#include "domain/backup/backup.h"

/* What is asked for, in the request's pool: the sandbox may have to be made first. */
struct backup_wish {
    bool is_restore;
    struct backup_spec spec;
    const char *id, *dir; /* of a restore */
};

/* On the heap: goes on when the client leaves. */
struct backup_work {
    struct visit *visit; /* NULL: the client left */
    bool is_restore;
};

static json_t *handle_of(const struct backup *backup)
{
    return json_pack("{s:s, s:s}", "id", backup->id, "dir", backup->dir);
}

static void stackmemory_backup_done(void *context, const struct error *failure,
                                    const struct backup *backup)
{
    AUTO(free) struct backup_work *work = context;
    struct visit *visit = work->visit;
    json_t *answer;

    if (!visit)
        return;
    visit->gone = NULL;
    if (failure) {
        http_reply_error(visit->request, failure);
        return;
    }
    answer = stackmemory_answer(visit->request);
    if (work->is_restore)
        (void) json_object_set_new(answer, "restored", json_true());
    else
        (void) json_object_set_new(answer, "backup", handle_of(backup));
    stackmemory_reply(visit->request, answer);
}

static void stackmemory_backup_client_left(struct visit *visit)
{
    struct backup_work *work = visit->data;

    work->visit = NULL;
}

static void stackmemory_backup_ready(struct visit *visit)
{
    const struct backup_wish *wish = visit->data;
    const struct caller *caller = request_caller(visit->request);
    struct backup_work *work = mem_alloc(sizeof(*work));

    *work = (struct backup_work){.visit = visit, .is_restore = wish->is_restore};
    visit->data = work;
    visit->gone = stackmemory_backup_client_left;
    if (wish->is_restore)
        backup_restore(visit->api->domain, caller, visit->sandbox, wish->id, wish->dir,
                       stackmemory_backup_done, work);
    else
        backup_make(visit->api->domain, caller, visit->sandbox, &wish->spec,
                    stackmemory_backup_done, work);
}

static const char *stackmemory_backup_copy(struct pool *pool, const char *text)
{
    return text ? pool_copy_text(pool, text) : NULL;
}

/* What lasts beyond the body. */
static void stackmemory_backup_keep(struct backup_spec *spec, struct pool *pool)
{
    const char **excludes = pool_alloc(pool, (spec->exclude_count + 1) * sizeof(*excludes));

    spec->dir = stackmemory_backup_copy(pool, spec->dir);
    spec->name = stackmemory_backup_copy(pool, spec->name);
    spec->compression = stackmemory_backup_copy(pool, spec->compression);
    for (size_t i = 0; i < spec->exclude_count; i++)
        excludes[i] = stackmemory_backup_copy(pool, spec->excludes[i]);
    spec->excludes = excludes;
}

static int read_backup(struct http_request *request, const struct json_place *body,
                       struct error *err)
{
    struct backup_wish *wish = pool_alloc(&request->pool, sizeof(*wish));

    *wish = (struct backup_wish){.is_restore = false};
    if (backup_body_read(body, &request->pool, &wish->spec, err) < 0)
        return -1;
    stackmemory_backup_keep(&wish->spec, &request->pool);
    stackmemory_visit(request, wish, stackmemory_backup_ready);
    return 0;
}

void stackmemory_backup(struct http_request *request)
{
    stackmemory_take_body(request, read_backup);
}

static int read_restore(struct http_request *request, const struct json_place *body,
                        struct error *err)
{
    struct backup_wish *wish = pool_alloc(&request->pool, sizeof(*wish));
    json_t *handle = json_object_get(body->value, "backup");

    *wish = (struct backup_wish){.is_restore = true};
    if (!handle || json_is_null(handle)) {
        stackmemory_refuse(request, "missing_backup", NULL);
        return 0;
    }
    if (backup_body_read_handle(body, "backup", &wish->id, &wish->dir, err) < 0)
        return -1;
    /* Before a sandbox is made for it. */
    if (!uuid_is_valid(wish->id))
        return error_set(err, ERR_BACKUP_INVALID, 0, "the id of a backup is a UUID");
    wish->id = stackmemory_backup_copy(&request->pool, wish->id);
    wish->dir = stackmemory_backup_copy(&request->pool, wish->dir);
    stackmemory_visit(request, wish, stackmemory_backup_ready);
    return 0;
}

void stackmemory_restore(struct http_request *request)
{
    stackmemory_take_body(request, read_restore);
}
