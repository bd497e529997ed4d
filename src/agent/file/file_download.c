#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_path.h"
#include "agent/file/mime.h"
#include "agent/file_open.h"
#include "agent/session/session.h"
#include "net/http/http_range.h"
#include "sys/file/sys_file.h"

#define OPERATION       "file.download"
#define SLICE           ((size_t) 64 * 1024)
#define SLICES_PER_TURN 4

/* In the request's pool. */
struct download {
    struct http_request *request;
    const char *path; /* as the client gave it */
    const char *type;
    int fd;        /* owned */
    uint64_t size; /* when it was opened */
    uint64_t at, end;
    bool is_endless; /* of a kind that does not say its size: /proc */
    struct loop_task task;
    char *buffer;
};

static void fail(struct http_request *request, const char *path, int error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_fill(&api, OPERATION, path, error);
    api_error_reply(request, &api);
}

static void close_download(struct download *download)
{
    loop_task_cancel(&download->task);
    download->fd = fd_close(download->fd);
}

/* --- sending --------------------------------------------------------------------------------- */

/* One slice. False: the request is gone. */
static bool send_slice(struct download *download)
{
    struct http_request *request = download->request;
    uint64_t left = download->end - download->at;
    size_t wanted = left < SLICE ? (size_t) left : SLICE;
    ssize_t got = sys_file_pread_full(download->fd, download->buffer, wanted, (off_t) download->at);

    if (got > 0)
        http_reply_write(request, download->buffer, (size_t) got);
    if (got > 0)
        download->at += (size_t) got;
    if ((size_t) got == wanted && download->at < download->end)
        return true;
    close_download(download);
    if (got < 0)
        http_reply_cut(request);
    else
        http_reply_end(request); /* less than was promised cuts the connection */
    return false;
}

static void send_on(struct loop_task *task)
{
    struct download *download = CONTAINER_OF(task, struct download, task);
    struct agent *agent = download->request->context;

    for (int i = 0; i < SLICES_PER_TURN; i++) {
        if (http_reply_is_full(download->request))
            return; /* on_drain goes on */
        if (!send_slice(download))
            return;
    }
    loop_defer(&agent->loop, &download->task);
}

static void client_took(struct http_request *request)
{
    struct agent *agent = request->context;
    struct download *download = request->data;

    loop_defer(&agent->loop, &download->task);
}

static void client_left(struct http_request *request)
{
    close_download(request->data);
}

/* --- beginning ------------------------------------------------------------------------------- */

static int open_file(struct download *download, struct stat *ret_status)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    struct agent *agent = download->request->context;
    char directory[PATH_MAX];
    int r = file_path_check(download->path, strlen(download->path));

    if (r < 0)
        return r;
    session_directory(agent, CALL_DEFAULT_SESSION, directory);
    r = file_place_open(&place, directory, download->path, &download->request->pool);
    if (r < 0)
        return r;
    download->fd = file_open(place.base, place.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (download->fd < 0)
        return download->fd == -ENXIO ? -FILE_ERROR_NOT_REGULAR : download->fd; /* a socket */
    if (fstat(download->fd, ret_status) < 0)
        return -errno;
    if (S_ISDIR(ret_status->st_mode))
        return -EISDIR;
    if (!S_ISREG(ret_status->st_mode))
        return -FILE_ERROR_NOT_REGULAR;
    download->type = mime_of_name(file_path_name(place.absolute));
    return 0;
}

static void find_type(struct download *download)
{
    ssize_t got;

    if (download->type)
        return;
    got = sys_file_pread_full(download->fd, download->buffer, MIME_SNIFF_SIZE, 0);
    download->type = got < 0 ? MIME_UNKNOWN : mime_of_bytes(download->buffer, (size_t) got);
}

static void fail_range(struct http_request *request, const struct download *download)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    (void) http_reply_header(request, "Content-Range",
                             pool_format(&request->pool, "bytes */%" PRIu64, download->size));
    api_error_fill(&api, API_VALIDATION_FAILED, "The file has only %" PRIu64 " bytes",
                   download->size);
    api.operation = OPERATION;
    api.status = 416;
    api_error_reply(request, &api);
}

/* Which part is asked for; false: the request was answered. */
static bool choose_part(struct download *download, const char *tag, int *ret_status)
{
    struct http_request *request = download->request;
    const char *condition = http_request_header(request, "if-range");
    const char *range = http_request_header(request, "range");
    uint64_t first, last;

    *ret_status = 200;
    download->end = download->is_endless ? UINT64_MAX : download->size;
    if (download->is_endless || (condition && strcmp(condition, tag) != 0))
        return true;
    switch (http_range_read(range, download->size, &first, &last)) {
    case HTTP_RANGE_WHOLE:
        return true;
    case HTTP_RANGE_OUTSIDE:
        fail_range(request, download);
        return false;
    case HTTP_RANGE_PART:
        break;
    }
    (void) http_reply_header(request, "Content-Range",
                             pool_format(&request->pool, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                                         first, last, download->size));
    download->at = first;
    download->end = last + 1;
    *ret_status = 206;
    return true;
}

static void begin(struct download *download, const struct stat *status)
{
    struct http_request *request = download->request;
    const char *tag = pool_format(
        &request->pool, "\"%llx-%llx-%lx\"", (unsigned long long) status->st_size,
        (unsigned long long) status->st_mtim.tv_sec, (unsigned long) status->st_mtim.tv_nsec);
    char date[HTTP_DATE_SIZE];
    int code;

    if (!choose_part(download, tag, &code)) {
        close_download(download);
        return;
    }
    http_date((int64_t) status->st_mtim.tv_sec * 1000, date);
    (void) http_reply_header(request, "ETag", tag);
    (void) http_reply_header(request, "Last-Modified", date);
    if (!download->is_endless)
        (void) http_reply_header(request, "Accept-Ranges", "bytes");
    request->data = download;
    request->on_gone = client_left;
    request->on_drain = client_took;
    http_reply_begin(request, code, download->type,
                     download->is_endless ? HTTP_LENGTH_UNKNOWN
                                          : (int64_t) (download->end - download->at));
    if (strcmp(request->head->method, "HEAD") == 0) {
        close_download(download);
        http_reply_end(request);
        return;
    }
    send_on(&download->task);
}

void file_download(struct http_request *request)
{
    struct download *download = pool_alloc(&request->pool, sizeof(*download));
    struct stat status;
    int r;

    download->request = request;
    download->fd = -EBADF;
    download->path = http_request_query(request, "path");
    loop_task_init(&download->task, send_on);
    if (!download->path || !download->path[0]) {
        AUTO(api_error) struct api_error api = API_ERROR_INIT;

        (void) api_error_field(&api, "path", "is required");
        api.operation = OPERATION;
        api_error_reply(request, &api);
        return;
    }
    r = open_file(download, &status);
    if (r < 0) {
        close_download(download);
        fail(request, download->path, r);
        return;
    }
    download->size = (uint64_t) status.st_size;
    download->is_endless = !status.st_size;
    download->buffer = pool_alloc_raw(&request->pool, SLICE);
    find_type(download);
    begin(download, &status);
}
