#include "api/native/backups.h"

#include <string.h>

#include "api/access/access.h"
#include "api/backup_body.h"
#include "api/http/error_body.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "base/number.h"
#include "domain/backup/backup.h"
#include "domain/sandbox/sandboxes.h"

#define PAGE_DEFAULT 100
#define BODY_LIMIT   ((uint64_t) 8 * 1024 * 1024)

/* --- answers --------------------------------------------------------------------------------- */

static void answer_one(void *context, const struct error *failure, const struct backup *backup,
                       int status)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_writer_init_text(&json, &body);
    backup_body_write(&json, backup, status == 201);
    (void) json_writer_finish(&json);
    http_reply(request, status, "application/json", text_string(&body), body.length);
}

static void made(void *context, const struct error *failure, const struct backup *backup)
{
    answer_one(context, failure, backup, 201);
}

static void found(void *context, const struct error *failure, const struct backup *backup)
{
    answer_one(context, failure, backup, 200);
}

static void deleted(void *context, const struct error *failure, const struct backup *backup)
{
    struct http_request *request = pending_take_good(context, failure);

    (void) backup;
    if (request)
        http_reply(request, 204, NULL, NULL, 0);
}

static void listed(void *context, const struct error *failure, const struct backup *backups,
                   size_t count, const char *next)
{
    struct http_request *request = pending_take_good(context, failure);
    struct native_answer answer;

    if (!request)
        return;
    native_answer_begin(&answer);
    json_key(&answer.json, "backups");
    json_begin_array(&answer.json);
    for (size_t i = 0; i < count; i++)
        backup_body_write(&answer.json, &backups[i], false);
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    native_answer_send(&answer, request, 200);
    native_answer_done(&answer);
}

/* --- requests -------------------------------------------------------------------------------- */

static struct sandbox *find(struct http_request *request, struct error *err)
{
    return sandbox_find(api_of(request)->domain, request_caller(request),
                        http_request_parameter(request, "id"), err);
}

static int read_make(struct http_request *request, const struct json_place *body,
                     const void *argument, struct error *err)
{
    static const char *const known[] = {"dir",      "name",        "ttl",   "gitignore",
                                        "excludes", "compression", "freeze"};
    struct backup_spec spec;
    struct sandbox *sandbox;
    bool freeze = true;

    (void) argument;
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        backup_body_read(body, &request->pool, &spec, err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0)
        return -1;
    spec.no_freeze = !freeze;
    sandbox = find(request, err);
    if (!sandbox)
        return -1;
    backup_make(api_of(request)->domain, request_caller(request), sandbox, &spec, made,
                pending_new(request));
    return 0;
}

static void make_backup(struct http_request *request)
{
    native_take(request, read_make, NULL);
}

/* The folder of the body counts, then that of the handle. */
static int read_restore(struct http_request *request, const struct json_place *body,
                        const void *argument, struct error *err)
{
    static const char *const known[] = {"backup", "dir"};
    const char *id, *dir;
    struct sandbox *sandbox;

    (void) argument;
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        backup_body_read_handle(body, "backup", &id, &dir, err) < 0 ||
        json_field_text(body, "dir", JSON_OPTIONAL, BACKUP_DIR_MAX, &dir, err) < 0)
        return -1;
    sandbox = find(request, err);
    if (!sandbox)
        return -1;
    backup_restore(api_of(request)->domain, request_caller(request), sandbox, id, dir, found,
                   pending_new(request));
    return 0;
}

static void restore_backup(struct http_request *request)
{
    native_take(request, read_restore, NULL);
}

static void list(struct http_request *request, const struct id *sandbox)
{
    const char *limit = http_request_query(request, "limit");
    int64_t count = PAGE_DEFAULT;

    if (limit && number_parse(limit, 1, BACKUP_PAGE_MAX, &count) < 0) {
        api_fail(request, ERR_INVALID, "limit must be 1 to %d", BACKUP_PAGE_MAX);
        return;
    }
    backup_list(api_of(request)->domain, request_caller(request), sandbox,
                http_request_query(request, "cursor"), (size_t) count, listed,
                pending_new(request));
}

static void list_backups(struct http_request *request)
{
    list(request, NULL);
}

static void list_of_sandbox(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct sandbox *sandbox = find(request, &err);

    if (sandbox)
        list(request, &sandbox->id);
    else
        http_reply_error(request, &err);
}

static void get_backup(struct http_request *request)
{
    backup_find(api_of(request)->domain, request_caller(request),
                http_request_parameter(request, "backup"), found, pending_new(request));
}

static void delete_backup(struct http_request *request)
{
    backup_delete(api_of(request)->domain, request_caller(request),
                  http_request_parameter(request, "backup"), deleted, pending_new(request));
}

/* --- the table ------------------------------------------------------------------------------- */

#define BACKUP_ORDER_SCHEMA                                                                        \
    "{\"type\":\"object\",\"properties\":{\"dir\":{\"type\":\"string\"},"                          \
    "\"name\":{\"type\":\"string\",\"maxLength\":256},\"ttl\":{\"type\":[\"integer\",\"string\"]}" \
    ","                                                                                            \
    "\"gitignore\":{\"type\":\"boolean\"},\"excludes\":{\"type\":\"array\",\"items\":"             \
    "{\"type\":\"string\"}},\"compression\":{\"enum\":[\"lz4\",\"zstd\",\"gzip\",\"xz\"]},"        \
    "\"freeze\":" FREEZE_SCHEMA "}}"

#define RESTORE_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"backup\"],\"properties\":{"                              \
    "\"backup\":{\"type\":[\"object\",\"string\"]},\"dir\":{\"type\":\"string\"}}}"

#define SANDBOX "/burrow/v1/sandboxes/{id}"

static const struct http_route routes[] = {
    {"POST", SANDBOX "/backups", make_backup,
     "Keep a folder of it in the object store, as it is now", .access = ACCESS_ENTER,
     .body_limit = BODY_LIMIT, .request_schema = BACKUP_ORDER_SCHEMA},
    {"GET", SANDBOX "/backups", list_of_sandbox, "Backups that were made of it",
     .access = ACCESS_READ},
    {"POST", SANDBOX "/restore", restore_backup,
     "Make a folder what a backup holds; the one it was of, or another", .access = ACCESS_ENTER,
     .request_schema = RESTORE_SCHEMA},
    {"GET", "/burrow/v1/backups", list_backups, "All backups", .access = ACCESS_READ},
    {"GET", "/burrow/v1/backups/{backup}", get_backup, "Read one", .access = ACCESS_READ},
    {"DELETE", "/burrow/v1/backups/{backup}", delete_backup, "Delete it", .access = ACCESS_WRITE},
};

struct http_mount backups_mount(struct api *api)
{
    return (struct http_mount){
        .name = "native",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = error_body_write,
    };
}
