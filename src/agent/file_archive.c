#include "agent/file_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/file_error.h"
#include "agent/file_path.h"
#include "agent/quiesce.h"
#include "agent/session.h"
#include "agent/tar_export.h"
#include "agent/tar_extract.h"
#include "json/json_write.h"
#include "sys/sys_file.h"

#define BODY_MAX (1024 + 6 * FILE_PATH_MAX)

#define EXCLUDES_MAX 256

/* Pieces that are sent, and bytes that are taken, in one turn of the loop. */
#define PIECES_PER_TURN 4
#define BYTES_PER_TURN  ((size_t) 16 * 1024)
/* What may arrive before a pause is heeded, twice. */
#define PENDING_MAX ((size_t) 4 * LOOP_SCRATCH_SIZE)

/* --- both ways ------------------------------------------------------------------------------ */

static void fail_request(struct http_request *request, const char *operation, const char *path,
                         int error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_fill(&api, operation, path, error);
    api_error_reply(request, &api);
}

static void fail_parameter(struct http_request *request, const char *operation, const char *name,
                           const char *message)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    (void) api_error_field(&api, name, message);
    api.operation = operation;
    api_error_reply(request, &api);
}

/* The folder of ?path=. Returns -1 when the request was answered. */
static int read_place(struct http_request *request, const char *operation, struct file_place *place)
{
    struct agent *agent = request->context;
    const char *path = http_request_query(request, "path");
    char directory[PATH_MAX];
    int r = path ? file_path_check(path, strlen(path)) : -EINVAL;

    if (r == -EINVAL) {
        fail_parameter(request, operation, "path", "is required");
        return -1;
    }
    session_directory(agent, CALL_DEFAULT_SESSION, directory);
    if (r == 0)
        r = file_place_open(place, directory, path, &request->pool);
    if (r < 0)
        fail_request(request, operation, path, r);
    return r < 0 ? -1 : 0;
}

/* --- out ------------------------------------------------------------------------------------ */

/* In the request's pool. */
struct archive_get {
    struct http_request *request;
    struct tar_export *export; /* owned */
    struct text piece;
    struct loop_task task;
};

static void close_get(struct archive_get *get)
{
    loop_task_cancel(&get->task);
    tar_export_free(TAKE_PTR(get->export));
    text_done(&get->piece);
}

/* The client sees that the archive is cut, the log says why. */
static void cut(struct archive_get *get, int error)
{
    struct agent *agent = get->request->context;

    LOG_WARNING(agent->log, "export cut", log_text("path", tar_export_path(get->export)),
                log_text("reason", strerrorname_np(-error)));
    close_get(get);
    http_reply_cut(get->request);
}

static void send_on(struct loop_task *task)
{
    struct archive_get *get = CONTAINER_OF(task, struct archive_get, task);
    struct agent *agent = get->request->context;

    for (int i = 0; i < PIECES_PER_TURN; i++) {
        int r;

        if (http_reply_is_full(get->request))
            return; /* on_drain goes on */
        text_clear(&get->piece);
        r = tar_export_next(get->export, &get->piece);
        if (r < 0) {
            cut(get, r);
            return;
        }
        http_reply_write(get->request, text_string(&get->piece), get->piece.length);
        if (r == 0) {
            close_get(get);
            http_reply_end(get->request);
            return;
        }
    }
    loop_defer(&agent->loop, &get->task);
}

static void client_took(struct http_request *request)
{
    struct agent *agent = request->context;
    struct archive_get *get = request->data;

    loop_defer(&agent->loop, &get->task);
}

static void reader_left(struct http_request *request)
{
    close_get(request->data);
}

/* "a,b/c" -> {"a", "b/c", NULL}; "./" before them is no matter. NULL when the request was answered:
 * what cannot be left out must not come along unnoticed. */
static const char *const *read_excludes(struct http_request *request)
{
    const char *value = http_request_query(request, "excludes");
    const char **excludes = pool_alloc(&request->pool, (EXCLUDES_MAX + 1) * sizeof(*excludes));

    for (size_t count = 0; value && *value;) {
        size_t length = strcspn(value, ",");
        char *path = pool_copy_bytes(&request->pool, value, length);

        if (tar_extract_plain_path(path, path) == 0 && path[0]) {
            if (count == EXCLUDES_MAX) {
                fail_parameter(request, "archive.export", "excludes", "are too many");
                return NULL;
            }
            excludes[count++] = path;
        }
        value += length + (value[length] == ',');
    }
    return excludes;
}

void file_archive_get(struct http_request *request)
{
    struct archive_get *get = pool_alloc(&request->pool, sizeof(*get));
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    const char *const *excludes = read_excludes(request);
    int fd, r;

    if (!excludes || read_place(request, "archive.export", &place) < 0)
        return;
    *get = (struct archive_get){.request = request, .piece = TEXT_INIT(TAR_EXPORT_PIECE)};
    fd = r = sys_file_open(place.base, place.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
    if (fd >= 0)
        get->export = tar_export_new(fd, excludes, &r);
    if (!get->export) {
        fail_request(request, "archive.export", place.path, r);
        return;
    }
    loop_task_init(&get->task, send_on);
    request->data = get;
    request->on_gone = reader_left;
    request->on_drain = client_took;
    http_reply_begin(request, 200, "application/x-tar", HTTP_LENGTH_UNKNOWN);
    send_on(&get->task);
}

/* --- in ------------------------------------------------------------------------------------- */

/* In the request's pool. */
struct archive_put {
    struct http_request *request;
    const char *path;            /* as the client gave it */
    int root;                    /* owned */
    struct tar_extract *extract; /* owned */
    struct text pending;         /* arrived */
    size_t taken;                /* of it */
    bool has_all;                /* nothing more arrives */
    struct loop_task task;
};

static void close_put(struct archive_put *put)
{
    loop_task_cancel(&put->task);
    tar_extract_free(TAKE_PTR(put->extract));
    put->root = fd_close(put->root);
    text_done(&put->pending);
}

static void fail_put(struct archive_put *put, const struct error *error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;
    struct http_request *request = put->request;

    file_error_context(&api, "archive.import", put->path);
    api.operation = "archive.import";
    api_error_fill(&api, error->system ? file_error_code(error->system) : API_VALIDATION_FAILED,
                   "%s", error->message);
    close_put(put);
    api_error_reply(request, &api);
}

static void end_put(struct archive_put *put)
{
    struct http_request *request = put->request;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct agent *agent = request->context;
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(clock_wall_ms(agent->clock), time);
    call_begin_success(&json, &body);
    json_add_text(&json, "path", put->path);
    json_add_integer(&json, "entries", (int64_t) tar_extract_entries(put->extract));
    json_add_integer(&json, "bytes", (int64_t) tar_extract_bytes(put->extract));
    json_add_text(&json, "timestamp", time);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* there is room for the longest path */
    close_put(put);
    agent_reply_json(request, &body);
}

/* One slice of what has arrived. Returns as tar_extract_finish. */
static int take_slice(struct archive_put *put, struct error *err)
{
    size_t left = put->pending.length - put->taken;
    size_t step = left < BYTES_PER_TURN ? left : BYTES_PER_TURN;

    if (!left)
        return tar_extract_finish(put->extract, err);
    if (tar_extract_feed(put->extract, put->pending.data + put->taken, step, err) < 0)
        return -1;
    put->taken += step;
    return 1;
}

static void take_on(struct loop_task *task)
{
    struct archive_put *put = CONTAINER_OF(task, struct archive_put, task);
    struct agent *agent = put->request->context;
    struct error err = ERROR_INIT;
    int r = take_slice(put, &err);

    if (r < 0) {
        fail_put(put, &err);
    } else if (r == 0) {
        end_put(put);
    } else if (put->taken < put->pending.length || put->has_all) {
        loop_defer(&agent->loop, &put->task);
    } else {
        text_clear(&put->pending);
        put->taken = 0;
        http_request_resume(put->request);
    }
}

static void body_came(struct http_request *request, const char *bytes, size_t length)
{
    struct agent *agent = request->context;
    struct archive_put *put = request->data;

    text_append_bytes(&put->pending, bytes, length);
    http_request_pause(request);
    loop_defer(&agent->loop, &put->task);
}

static void body_ended(struct http_request *request)
{
    struct agent *agent = request->context;
    struct archive_put *put = request->data;

    put->has_all = true;
    loop_defer(&agent->loop, &put->task);
}

static void sender_left(struct http_request *request)
{
    close_put(request->data);
}

static int open_root(const struct file_place *place)
{
    int fd = sys_file_open(place->base, place->path, O_PATH | O_DIRECTORY, 0);

    if (fd != -ENOENT)
        return fd;
    fd = sys_file_make_directories(place->base, place->path, 0777);
    return fd < 0 ? fd : sys_file_open(place->base, place->path, O_PATH | O_DIRECTORY, 0);
}

void file_archive_put(struct http_request *request)
{
    struct archive_put *put = pool_alloc(&request->pool, sizeof(*put));
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    const char *links = http_request_query(request, "links");

    if (quiesce_refuses_request(request))
        return;
    if (read_place(request, "archive.import", &place) < 0)
        return;
    if (links && strcmp(links, "any") != 0 && strcmp(links, "inside") != 0) {
        fail_parameter(request, "archive.import", "links", "must be any or inside");
        return;
    }
    *put = (struct archive_put){
        .request = request,
        .path = place.path,
        .root = open_root(&place),
        .pending = TEXT_INIT(PENDING_MAX),
    };
    if (put->root < 0) {
        fail_request(request, "archive.import", place.path, put->root);
        return;
    }
    put->extract = tar_extract_new(put->root, links && strcmp(links, "any") == 0);
    loop_task_init(&put->task, take_on);
    request->data = put;
    request->on_gone = sender_left;
    http_request_stream(request, body_came, body_ended);
}
