#include "agent/backup/backup_job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/memory.h"
#include "json/json_write.h"

struct backup_set {
    struct list jobs; /* the first one runs */
    size_t count;
};

/* --- the queue ------------------------------------------------------------------------------- */

static struct backup_set *set_of(struct agent *agent)
{
    if (!agent->backups) {
        agent->backups = mem_alloc(sizeof(*agent->backups));
        list_init(&agent->backups->jobs);
    }
    return agent->backups;
}

static bool is_running(const struct backup_job *job)
{
    return list_first(&job->set->jobs) == &job->link;
}

static void start_first(struct backup_set *set)
{
    struct list *first = list_first(&set->jobs);

    if (first) {
        struct backup_job *job = CONTAINER_OF(first, struct backup_job, link);

        loop_defer(&job->agent->loop, &job->start);
    }
}

static void start(struct loop_task *task)
{
    struct backup_job *job = CONTAINER_OF(task, struct backup_job, start);

    if (job->failed) /* its client left in the meantime */
        backup_job_end(job);
    else
        job->kind->begin(job);
}

static void leave_queue(struct backup_job *job)
{
    bool was_running = is_running(job);

    list_remove(&job->link);
    job->set->count--;
    if (was_running)
        start_first(job->set);
}

static void client_left(struct call *call)
{
    struct backup_job *job = call->data;

    job->call = NULL;
    if (!is_running(job)) {
        leave_queue(job);
        backup_job_drop(job);
        return;
    }
    backup_job_fail(job, API_OPERATION_INTERRUPTED, &(struct backup_context){NULL, NULL, NULL},
                    "The client left");
    if (job->kind->stop)
        job->kind->stop(job);
    else
        tool_kill(&job->tool);
}

void backup_job_queue(struct backup_job *job)
{
    if (job->set->count >= BACKUP_QUEUE_MAX) {
        call_fail_text(job->call, API_RESOURCE_BUSY, "Too many backups are waiting already");
        backup_job_drop(job);
        return;
    }
    job->call->data = job;
    job->call->on_gone = client_left;
    list_append(&job->set->jobs, &job->link);
    if (++job->set->count == 1)
        start_first(job->set);
}

/* --- life ------------------------------------------------------------------------------------ */

static void free_job(struct loop_task *task)
{
    struct backup_job *job = CONTAINER_OF(task, struct backup_job, free);

    if (job->kind->done)
        job->kind->done(job);
    tool_done(&job->tool);
    text_done(&job->reply);
    api_error_done(&job->failure);
    pool_done(&job->pool);
    free(job);
}

struct backup_job *backup_job_new(struct call *call, const struct backup_kind *kind)
{
    struct backup_job *job = mem_alloc(kind->size);

    job->kind = kind;
    job->agent = call->agent;
    job->call = call;
    job->set = set_of(call->agent);
    job->reply = (struct text) TEXT_INIT(BACKUP_REPLY_MAX);
    job->failure = (struct api_error) API_ERROR_INIT;
    list_init(&job->link);
    loop_task_init(&job->start, start);
    loop_task_init(&job->free, free_job);
    tool_init(&job->tool, call->agent);
    return job;
}

void backup_job_drop(struct backup_job *job)
{
    loop_task_cancel(&job->start);
    free_job(&job->free);
}

/* Not freed at once: its caller may still be at work in it. */
void backup_job_end(struct backup_job *job)
{
    struct call *call = TAKE_PTR(job->call);

    leave_queue(job);
    if (call && job->failed)
        call_fail(call, &job->failure);
    else if (call)
        call_reply(call, &job->reply);
    loop_defer(&job->agent->loop, &job->free);
}

/* --- failures -------------------------------------------------------------------------------- */

static const char *suggestion(enum api_code code)
{
    switch (code) {
    case API_BACKUP_NOT_FOUND:
        return "Verify the backup ID is correct";
    case API_BACKUP_CREATE_FAILED:
        return "Backup creation failed. Check that the directory exists and you have sufficient "
               "disk space";
    case API_BACKUP_RESTORE_FAILED:
        return "Backup restoration failed. The archive may be corrupted or the target directory "
               "may be in use";
    default:
        return NULL;
    }
}

void backup_job_fail(struct backup_job *job, enum api_code code,
                     const struct backup_context *context, const char *format, ...)
{
    char message[API_MESSAGE_MAX];
    struct json_writer json;
    va_list arguments;

    if (job->failed)
        return;
    job->failed = true;
    va_start(arguments, format);
    (void) vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    api_error_fill(&job->failure, code, "%s", message);
    job->failure.suggestion = suggestion(code);
    json_document_begin(&json, &job->failure.context);
    if (context->folder)
        json_add_text(&json, "dir", context->folder);
    if (context->archive)
        json_add_text(&json, "archivePath", context->archive);
    if (context->result) {
        json_add_integer(&json, "exitCode", tool_exit_code(context->result));
        json_add_text(&json, "stderr", tool_complaint(&job->tool));
    }
    (void) json_document_end(&json); /* everything in it is bounded */
}

/* The last line that says something. */
static const char *last_line(struct backup_job *job)
{
    char *words = pool_copy_text(&job->pool, tool_complaint(&job->tool));
    size_t length = strlen(words);
    char *newline;

    while (length && (words[length - 1] == '\n' || words[length - 1] == ' '))
        words[--length] = '\0';
    newline = strrchr(words, '\n');
    return newline ? newline + 1 : words;
}

void backup_job_fail_tool(struct backup_job *job, enum api_code code, const char *program,
                          const char *package, const struct backup_context *context)
{
    const struct exec_result *result = context->result;
    const char *line = last_line(job);

    if (tool_is_missing(result))
        backup_job_fail(job, code, context,
                        "%s is not installed in this image: backups need the package %s", program,
                        package);
    else if (result->error)
        backup_job_fail(job, code, context, "%s could not be started: %s", program,
                        strerrordesc_np(-result->error));
    else if (result->timed_out)
        backup_job_fail(job, code, context, "%s took too long and was ended", program);
    else if (line[0])
        backup_job_fail(job, code, context, "%s failed: %s", program, line);
    else
        backup_job_fail(job, code, context, "%s ended with exit code %d", program,
                        tool_exit_code(result));
}
