/* A folder as a tar archive; file_archive_put.c has the other way. */
#include "agent/archive/file_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/archive/file_archive_internal.h"
#include "agent/archive/tar_export.h"
#include "agent/archive/tar_extract.h"
#include "agent/call.h"
#include "agent/file/file_error.h"
#include "agent/file_open.h"
#include "agent/session/session.h"
#include "sys/file/sys_file.h"

#define EXCLUDES_MAX 256

/* Pieces that are sent in one turn of the loop. */
#define PIECES_PER_TURN 4

/* --- both ways ------------------------------------------------------------------------------ */

void file_archive_fail(struct http_request *request, const char *operation, const char *path,
                       int error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_fill(&api, operation, path, error);
    api_error_reply(request, &api);
}

void file_archive_fail_parameter(struct http_request *request, const char *operation,
                                 const char *name, const char *message)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    (void) api_error_field(&api, name, message);
    api.operation = operation;
    api_error_reply(request, &api);
}

int file_archive_place(struct http_request *request, const char *operation,
                       struct file_place *place)
{
    struct agent *agent = request->context;
    const char *path = http_request_query(request, "path");
    char directory[PATH_MAX];
    int r = path ? file_path_check(path, strlen(path)) : -EINVAL;

    if (r == -EINVAL) {
        file_archive_fail_parameter(request, operation, "path", "is required");
        return -1;
    }
    session_directory(agent, CALL_DEFAULT_SESSION, directory);
    if (r == 0)
        r = file_place_open(place, directory, path, &request->pool);
    if (r < 0)
        file_archive_fail(request, operation, path, r);
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
                file_archive_fail_parameter(request, "archive.export", "excludes", "are too many");
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

    if (!excludes || file_archive_place(request, "archive.export", &place) < 0)
        return;
    *get = (struct archive_get){.request = request, .piece = TEXT_INIT(TAR_EXPORT_PIECE)};
    fd = r = file_open(place.base, place.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
    if (fd >= 0)
        get->export = tar_export_new(fd, excludes, &r);
    if (!get->export) {
        file_archive_fail(request, "archive.export", place.path, r);
        return;
    }
    loop_task_init(&get->task, send_on);
    request->data = get;
    request->on_gone = reader_left;
    request->on_drain = client_took;
    http_reply_begin(request, 200, "application/x-tar", HTTP_LENGTH_UNKNOWN);
    send_on(&get->task);
}
