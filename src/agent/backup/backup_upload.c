/* Uploading parts of an archive, one after another. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/backup/backup_job.h"
#include "agent/backup/backup_service.h"
#include "agent/backup/backup_upload_request.h"
#include "agent/file_open.h"
#include "agent/redaction.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"

/* Read at once, and the most that waits for curl. */
#define PIECE      ((size_t) 64 * 1024)
#define WINDOW_MAX (4 * PIECE)

#define CONFIG_MAX   ((size_t) 128 * 1024)
#define ANSWER_MAX   ((size_t) 64 * 1024)
#define ATTEMPTS_MAX 3
#define PART_SECONDS "1800"

struct backup_upload {
    struct backup_job job;
    struct backup_upload_request request;
    size_t current;
    int attempt;
    int fd; /* owned: the archive */
    int64_t sent;
    size_t waiting; /* bytes that curl has not taken yet */
    bool shrank;    /* the archive, under our hands */
};

static void begin_part(struct backup_upload *upload);

static struct backup_part *current_part(struct backup_upload *upload)
{
    return &upload->request.parts[upload->current];
}

/* --- the end --------------------------------------------------------------------------------- */

static void end(struct backup_upload *upload)
{
    struct json_writer json;

    call_begin_success(&json, &upload->job.reply);
    json_begin_array_at(&json, "parts");
    for (size_t i = 0; i < upload->request.count; i++) {
        json_begin_object(&json);
        json_add_integer(&json, "partNumber", upload->request.parts[i].number);
        json_add_text(&json, "etag", upload->request.parts[i].etag);
        json_end_object(&json);
    }
    json_end_array(&json);
    if (upload->job.call)
        call_add_timestamp(upload->job.call, &json);
    (void) json_document_end(&json); /* 10000 short rows fit */
    backup_job_end(&upload->job);
}

/* What the store says may repeat the signature, and what curl says the URL: neither is passed on
 * as it is. */
static void fail(struct backup_upload *upload, const char *reason)
{
    const struct backup_context context = {.archive = upload->request.archive};

    backup_job_fail(&upload->job, API_BACKUP_CREATE_FAILED, &context,
                    "Multipart upload failed: part %lld: %s",
                    (long long) current_part(upload)->number, reason);
    end(upload);
}

/* --- the answer ------------------------------------------------------------------------------ */

static const char *complaint_of_curl(struct backup_upload *upload)
{
    AUTO(text) struct text words = TEXT_INIT(4 * TOOL_COMPLAINT_MAX);
    const char *url = current_part(upload)->url, *query = strchr(url, '?');
    const char *complaint = tool_complaint(&upload->job.tool);
    struct redaction redaction = {.count = 0};

    redaction_add(&redaction, url);
    redaction_add(&redaction, query);
    redaction_append(&redaction, &words, complaint, strcspn(complaint, "\n"));
    return pool_copy_text(&upload->job.pool, text_string(&words));
}

/* Why this attempt failed, or NULL. */
static const char *judge(struct backup_upload *upload, const struct exec_result *result)
{
    struct tool *tool = &upload->job.tool;
    char etag[BACKUP_UPLOAD_ETAG_MAX];
    int status = backup_upload_answer(text_string(&tool->output), tool->output.length, etag);

    if (tool_is_missing(result))
        return "curl is not installed in this image: uploads need the package curl";
    if (result->error)
        return pool_format(&upload->job.pool, "curl could not be started: %s",
                           strerrordesc_np(-result->error));
    if (upload->shrank)
        return "the archive became shorter";
    if (status >= 300)
        return pool_format(&upload->job.pool, "the server answered HTTP %d", status);
    if (!tool_succeeded(result))
        return tool_complaint(tool)[0]
                   ? complaint_of_curl(upload)
                   : pool_format(&upload->job.pool, "curl ended with exit code %d",
                                 tool_exit_code(result));
    if (status < 0)
        return "the server gave no answer";
    if (!etag[0])
        return "the answer did not include an ETag header";
    current_part(upload)->etag = pool_copy_text(&upload->job.pool, etag);
    return NULL;
}

static void part_ended(struct tool *tool, const struct exec_result *result)
{
    struct backup_upload *upload = CONTAINER_OF(tool, struct backup_upload, job.tool);
    const char *reason;

    if (upload->job.failed) { /* the client left */
        end(upload);
        return;
    }
    reason = judge(upload, result);
    if (!reason) {
        upload->attempt = 0;
        upload->current++;
    } else if (result->error || upload->shrank || ++upload->attempt >= ATTEMPTS_MAX) {
        fail(upload, reason);
        return;
    }
    begin_part(upload);
}

/* --- sending --------------------------------------------------------------------------------- */

/* As much as fits into the window. Disks that are slow hold us up for one piece. */
static void feed(struct backup_upload *upload)
{
    const struct backup_part *part = current_part(upload);
    char *buffer = upload->job.agent->loop.scratch;

    while (upload->waiting + PIECE <= WINDOW_MAX && upload->sent < part->size) {
        int64_t left = part->size - upload->sent;
        size_t wanted = left < (int64_t) PIECE ? (size_t) left : PIECE;
        ssize_t count =
            sys_file_pread_full(upload->fd, buffer, wanted, (off_t) (part->offset + upload->sent));

        if (count != (ssize_t) wanted) {
            upload->shrank = true;
            tool_kill(&upload->job.tool);
            return;
        }
        tool_write(&upload->job.tool, buffer, wanted);
        upload->waiting += wanted;
        upload->sent += (int64_t) wanted;
        if (upload->sent == part->size)
            tool_end_input(&upload->job.tool);
    }
}

static void curl_took(struct tool *tool, size_t length)
{
    struct backup_upload *upload = CONTAINER_OF(tool, struct backup_upload, job.tool);

    upload->waiting -= length < upload->waiting ? length : upload->waiting;
    if (!upload->shrank && upload->sent < current_part(upload)->size)
        feed(upload);
}

static void start_curl(struct backup_upload *upload, int config)
{
    static const char *const arguments[] = {"curl",
                                            "-q", /* nobody's .curlrc */
                                            "--silent",
                                            "--show-error",
                                            "--include",
                                            "--globoff",
                                            "--http1.1",
                                            "--suppress-connect-headers",
                                            "--max-time",
                                            PART_SECONDS,
                                            "--proto",
                                            "=https,http",
                                            "--upload-file",
                                            "-",
                                            "--config",
                                            "/proc/self/fd/3",
                                            NULL};
    const struct tool_options options = {
        .arguments = arguments,
        .output_max = ANSWER_MAX,
        .stream_input = true,
        .channel = config,
    };

    upload->sent = 0;
    upload->waiting = 0;
    upload->job.tool.on_end = part_ended;
    upload->job.tool.on_input = curl_took;
    tool_start(&upload->job.tool, &options);
    if (tool_is_running(&upload->job.tool))
        feed(upload);
}

static void begin_part(struct backup_upload *upload)
{
    AUTO(text) struct text config = TEXT_INIT(CONFIG_MAX);
    AUTO(close) int fd = -EBADF;

    if (upload->current == upload->request.count) {
        end(upload);
        return;
    }
    backup_upload_config(&config, current_part(upload));
    fd = sys_memfd_from_bytes("upload", SYS_MEMFD_DATA, text_string(&config), config.length);
    if (fd < 0)
        fail(upload, strerrordesc_np(-fd));
    else
        start_curl(upload, fd);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int open_archive(struct backup_upload *upload, int64_t *ret_size)
{
    struct stat status;

    upload->fd = file_open(AT_FDCWD, upload->request.archive,
                           O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0);
    if (upload->fd < 0)
        return upload->fd;
    if (fstat(upload->fd, &status) < 0)
        return -errno;
    *ret_size = status.st_size;
    return S_ISREG(status.st_mode) ? 0 : -EINVAL;
}

static void begin(struct backup_job *job)
{
    struct backup_upload *upload = CONTAINER_OF(job, struct backup_upload, job);
    const struct backup_context context = {.archive = upload->request.archive};
    int64_t size = 0;
    int r = open_archive(upload, &size);

    if (r < 0)
        backup_job_fail(job, r == -ENOENT ? API_BACKUP_NOT_FOUND : API_BACKUP_CREATE_FAILED,
                        &context, "The archive cannot be read: %s", strerrordesc_np(-r));
    for (size_t i = 0; i < upload->request.count; i++) {
        if (upload->request.parts[i].offset + upload->request.parts[i].size > size)
            backup_job_fail(job, API_INVALID_BACKUP_CONFIG, &context,
                            "Part %lld is not inside the archive",
                            (long long) upload->request.parts[i].number);
    }
    if (job->failed)
        backup_job_end(job);
    else
        begin_part(upload);
}

static void done(struct backup_job *job)
{
    struct backup_upload *upload = CONTAINER_OF(job, struct backup_upload, job);

    upload->fd = fd_close(upload->fd);
}

static const struct backup_kind kind = {
    .size = sizeof(struct backup_upload),
    .begin = begin,
    .done = done,
};

void backup_upload_run(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct backup_job *job = backup_job_new(call, &kind);
    struct backup_upload *upload = CONTAINER_OF(job, struct backup_upload, job);

    upload->fd = -EBADF;
    if (backup_upload_request_read(call->arguments, &job->pool, &upload->request, &error) < 0) {
        backup_job_drop(job);
        call_fail(call, &error);
        return;
    }
    backup_job_queue(job);
}
