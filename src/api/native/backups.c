#include <string.h>

#include "api/backup_body.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "domain/backup/backup.h"
#include "domain/sandbox/sandboxes.h"

#define PAGE_DEFAULT 100

/* --- answers --------------------------------------------------------------------------------- */

static void answer_one(void *context, const struct error *failure, const struct backup *backup,
                       int status)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (!request)
        return;
    backup_body_write(&answer.json, backup, status == 201);
    native_answer_send(&answer, request, status);
}

static void backups_made(void *context, const struct error *failure, const struct backup *backup)
{
    answer_one(context, failure, backup, 201);
}

static void backups_found(void *context, const struct error *failure, const struct backup *backup)
{
    answer_one(context, failure, backup, 200);
}

static void deleted(void *context, const struct error *failure, const struct backup *backup)
{
    (void) backup;
    pending_end(context, failure);
}

static void listed(void *context, const struct error *failure, const struct backup *backups,
                   size_t count, const char *next)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "backups");
    if (!request)
        return;
    for (size_t i = 0; i < count; i++) {
        if (i && native_answer_is_full(&answer)) {
            next = backups[i - 1].id;
            break;
        }
        backup_body_write(&answer.json, &backups[i], false);
    }
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    native_answer_send(&answer, request, 200);
}

/* --- requests -------------------------------------------------------------------------------- */

static struct sandbox *backups_find(struct http_request *request, struct error *err)
{
    return sandbox_find(api_of(request)->domain, request_caller(request),
                        http_request_parameter(request, "id"), err);
}

static int read_make(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const known[] = {"dir",      "name",        "ttl",   "gitignore",
                                        "excludes", "compression", "freeze"};
    struct backup_spec spec;
    struct sandbox *sandbox;
    bool freeze = true;

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        backup_body_read(body, &request->pool, &spec, err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0)
        return -1;
    spec.no_freeze = !freeze;
    sandbox = backups_find(request, err);
    if (!sandbox)
        return -1;
    backup_make(api_of(request)->domain, request_caller(request), sandbox, &spec, backups_made,
                pending_new(request));
    return 0;
}

void native_make_backup(struct http_request *request)
{
    native_take(request, read_make);
}

/* The folder of the body counts, then that of the handle. */
static int read_restore(struct http_request *request, const struct json_place *body,
                        struct error *err)
{
    static const char *const known[] = {"backup", "dir"};
    const char *id, *dir;
    struct sandbox *sandbox;

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        backup_body_read_handle(body, "backup", &id, &dir, err) < 0 ||
        json_field_text(body, "dir", JSON_OPTIONAL, BACKUP_DIR_MAX, &dir, err) < 0)
        return -1;
    sandbox = backups_find(request, err);
    if (!sandbox)
        return -1;
    backup_restore(api_of(request)->domain, request_caller(request), sandbox, id, dir,
                   backups_found, pending_new(request));
    return 0;
}

void native_restore_backup(struct http_request *request)
{
    native_take(request, read_restore);
}

static void backups_list(struct http_request *request, const struct id *sandbox)
{
    struct error err = ERROR_INIT;
    int64_t count = PAGE_DEFAULT;

    if (native_read_limit(request, BACKUP_PAGE_MAX, &count, &err) < 0) {
        http_reply_error(request, &err);
        return;
    }
    backup_list(api_of(request)->domain, request_caller(request), sandbox,
                http_request_query(request, "cursor"), (size_t) count, listed,
                pending_new(request));
}

void native_list_backups(struct http_request *request)
{
    backups_list(request, NULL);
}

void native_list_sandbox_backups(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);

    if (sandbox)
        backups_list(request, &sandbox->id);
}

void native_get_backup(struct http_request *request)
{
    backup_find(api_of(request)->domain, request_caller(request),
                http_request_parameter(request, "backup"), backups_found, pending_new(request));
}

void native_delete_backup(struct http_request *request)
{
    backup_delete(api_of(request)->domain, request_caller(request),
                  http_request_parameter(request, "backup"), deleted, pending_new(request));
}
