#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/control/quiesce.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_path.h"
#include "agent/file/file_writer.h"
#include "agent/session/session.h"
#include "json/json_write.h"

#define BODY_MAX  (1024 + 6 * FILE_PATH_MAX)
#define OPERATION "file.upload"

/* In the request's pool. */
struct upload {
    const char *path; /* as the client gave it */
    struct file_writer writer;
};

static void fail(struct http_request *request, const char *path, int error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_fill(&api, OPERATION, path, error);
    api_error_reply(request, &api);
}

static void end(struct http_request *request, struct upload *upload)
{
    struct agent *agent = request->context;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(clock_wall_ms(agent->clock), time);
    call_begin_success(&json, &body);
    json_add_text(&json, "path", upload->path);
    json_add_integer(&json, "bytesWritten", (int64_t) upload->writer.written);
    json_add_text(&json, "timestamp", time);
    (void) json_document_end(&json); /* there is room for the longest path */
    file_writer_done(&upload->writer);
    agent_reply_json(request, &body);
}

static void body_came(struct http_request *request, const char *bytes, size_t length)
{
    struct upload *upload = request->data;
    int r = file_writer_write(&upload->writer, bytes, length);

    if (r == 0)
        return;
    file_writer_done(&upload->writer);
    fail(request, upload->path, r);
}

static void body_ended(struct http_request *request)
{
    struct upload *upload = request->data;
    int r = file_writer_commit(&upload->writer);

    if (r == 0) {
        end(request, upload);
        return;
    }
    file_writer_done(&upload->writer);
    fail(request, upload->path, r);
}

static void sender_left(struct http_request *request)
{
    struct upload *upload = request->data;

    file_writer_done(&upload->writer);
}

static int open_writer(struct http_request *request, struct upload *upload)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    struct agent *agent = request->context;
    char directory[PATH_MAX];
    int r = file_path_check(upload->path, strlen(upload->path));

    if (r < 0)
        return r;
    session_directory(agent, CALL_DEFAULT_SESSION, directory);
    r = file_place_open(&place, directory, upload->path, &request->pool);
    if (r < 0)
        return r;
    upload->writer.owner = file_owner_find(agent);
    return file_writer_open(&upload->writer, place.base, place.path, FILE_WRITER_KEEP_MODE);
}

void file_upload(struct http_request *request)
{
    struct upload *upload = pool_alloc(&request->pool, sizeof(*upload));
    int r;

    if (quiesce_refuses_request(request))
        return;
    upload->path = http_request_query(request, "path");
    upload->writer = (struct file_writer) FILE_WRITER_INIT;
    if (!upload->path || !upload->path[0]) {
        AUTO(api_error) struct api_error api = API_ERROR_INIT;

        (void) api_error_field(&api, "path", "is required");
        api.operation = OPERATION;
        api_error_reply(request, &api);
        return;
    }
    r = open_writer(request, upload);
    if (r < 0) {
        fail(request, upload->path, r);
        return;
    }
    request->data = upload;
    request->on_gone = sender_left;
    http_request_stream(request, body_came, body_ended);
}
