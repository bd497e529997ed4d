/* Restoring an archive.
 *
 *     unsquashfs ──► swap (backup_swap.h) ──► what was there before is deleted, in slices */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/backup/backup_job.h"
#include "agent/backup/backup_request.h"
#include "agent/backup/backup_rules.h"
#include "agent/backup/backup_service.h"
#include "agent/backup/backup_swap.h"
#include "agent/file_open.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define FOLDER_MODE 0777
#define WORK_MODE   0700

/* Entries that are deleted in one turn of the loop. */
#define CLEAN_ENTRIES 64

struct backup_restore {
    struct backup_job job;
    struct backup_request request;
    struct backup_swap swap;
    struct loop_task cleaning;
    char work[SYS_FILE_NAME_SIZE]; /* a name in the folder; "" when it was not made yet */
    bool made_folder;
    bool keep_work; /* it holds what could not be put back */
};

static const char *in_work(struct backup_restore *restore, const char *name)
{
    return pool_format(&restore->job.pool, "%s/%s/%s", restore->request.folder, restore->work,
                       name);
}

/* --- the end --------------------------------------------------------------------------------- */

static void write_reply(struct backup_restore *restore)
{
    struct json_writer json;

    call_begin_success(&json, &restore->job.reply);
    json_add_text(&json, "dir", restore->request.folder);
    if (restore->job.call)
        call_add_timestamp(restore->job.call, &json);
    (void) json_document_end(&json); /* one path fits */
}

static void finish(struct backup_restore *restore)
{
    if (restore->job.failed && restore->made_folder)
        (void) rmdir(restore->request.folder); /* only when it is empty */
    if (!restore->job.failed)
        write_reply(restore);
    backup_job_end(&restore->job);
}

/* A link that somebody put in its place is not followed. Rubbish in a hidden folder does not make a
 * restore fail. */
static void clean(struct loop_task *task)
{
    struct backup_restore *restore = CONTAINER_OF(task, struct backup_restore, cleaning);
    AUTO(close)
    int folder = file_open(AT_FDCWD, restore->request.folder, O_PATH | O_DIRECTORY, 0);

    if (folder >= 0 && sys_tree_delete_small(folder, restore->work, CLEAN_ENTRIES) == -E2BIG)
        loop_defer(&restore->job.agent->loop, &restore->cleaning);
    else
        finish(restore);
}

static void end(struct backup_restore *restore)
{
    if (!restore->work[0] || restore->keep_work)
        finish(restore);
    else
        loop_defer(&restore->job.agent->loop, &restore->cleaning);
}

static void fail(struct backup_restore *restore, enum api_code code, const char *what, int error)
{
    const struct backup_context context = {restore->request.folder, restore->request.archive, NULL};

    backup_job_fail(&restore->job, error == -ENOSPC || error == -EDQUOT ? API_NO_SPACE : code,
                    &context, "%s: %s", what, strerrordesc_np(-error));
    end(restore);
}

/* --- swapping -------------------------------------------------------------------------------- */

static void swapped(struct backup_swap *swap, int error, bool undone)
{
    struct backup_restore *restore = CONTAINER_OF(swap, struct backup_restore, swap);

    restore->keep_work = error && !undone;
    if (restore->keep_work)
        fail(restore, API_BACKUP_RESTORE_FAILED,
             pool_format(&restore->job.pool,
                         "The content cannot be replaced, and some of what was there is in %s now",
                         restore->work),
             error);
    else if (error)
        fail(restore, API_BACKUP_RESTORE_FAILED, "The content cannot be replaced and is as it was",
             error);
    else
        end(restore);
}

/* A folder that was there keeps its own. */
static void take_attributes(struct backup_restore *restore)
{
    struct stat status;

    if (!restore->made_folder || stat(in_work(restore, BACKUP_SWAP_NEW), &status) < 0)
        return;
    /* Who may not give it away owns it; the mode is then not for others either. */
    if (chown(restore->request.folder, status.st_uid, status.st_gid) == 0)
        (void) chmod(restore->request.folder, status.st_mode & 07777); /* it was just made by us */
}

static void unpacked(struct tool *tool, const struct exec_result *result)
{
    struct backup_restore *restore = CONTAINER_OF(tool, struct backup_restore, job.tool);
    const struct backup_context context = {restore->request.folder, restore->request.archive,
                                           result};
    int r;

    if (restore->job.failed || !tool_succeeded(result)) {
        backup_job_fail_tool(&restore->job, API_BACKUP_RESTORE_FAILED, "unsquashfs",
                             "squashfs-tools", &context);
        end(restore);
        return;
    }
    take_attributes(restore);
    restore->swap.on_end = swapped;
    r = backup_swap_start(&restore->swap, &restore->job.agent->loop, AT_FDCWD,
                          restore->request.folder, restore->work);
    if (r < 0)
        fail(restore, API_BACKUP_RESTORE_FAILED, "The content cannot be replaced", r);
}

/* --- unpacking ------------------------------------------------------------------------------- */

static void unpack(struct backup_restore *restore)
{
    const char *const arguments[] = {"unsquashfs",
                                     "-no-progress",
                                     "-dest",
                                     in_work(restore, BACKUP_SWAP_NEW),
                                     restore->request.archive,
                                     NULL};
    const struct tool_options options = {.arguments = arguments};

    restore->job.tool.on_end = unpacked;
    tool_start(&restore->job.tool, &options);
}

static int make_work(struct backup_restore *restore)
{
    char name[SYS_FILE_NAME_SIZE];
    struct stat status;
    int r;

    restore->made_folder = stat(restore->request.folder, &status) < 0 && errno == ENOENT;
    r = sys_file_make_directories(AT_FDCWD, restore->request.folder, FOLDER_MODE);
    if (r == 0)
        r = sys_file_temporary_name(name);
    if (r < 0)
        return r;
    if (mkdir(pool_format(&restore->job.pool, "%s/%s", restore->request.folder, name), WORK_MODE) <
        0)
        return -errno;
    memcpy(restore->work, name, sizeof(name));
    return 0;
}

static void begin(struct backup_job *job)
{
    struct backup_restore *restore = CONTAINER_OF(job, struct backup_restore, job);
    struct stat status;
    int r;

    if (stat(restore->request.archive, &status) < 0 || !S_ISREG(status.st_mode)) {
        const struct backup_context context = {restore->request.folder, restore->request.archive,
                                               NULL};

        backup_job_fail(job, API_BACKUP_NOT_FOUND, &context, "Archive file does not exist: %s",
                        restore->request.archive);
        end(restore);
        return;
    }
    r = make_work(restore);
    if (r < 0)
        fail(restore, API_BACKUP_RESTORE_FAILED, "The folder cannot be written", r);
    else
        unpack(restore);
}

/* Swapping and cleaning up go on to their end. */
static void stop(struct backup_job *job)
{
    if (job->tool.on_end == unpacked)
        tool_kill(&job->tool);
}

static const struct backup_kind kind = {
    .size = sizeof(struct backup_restore),
    .begin = begin,
    .stop = stop,
};

void backup_restore_run(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct backup_job *job = backup_job_new(call, &kind);
    struct backup_restore *restore = CONTAINER_OF(job, struct backup_restore, job);

    loop_task_init(&restore->cleaning, clean);
    if (backup_request_read(call->arguments, &job->pool, &restore->request, &error) < 0) {
        backup_job_drop(job);
        call_fail(call, &error);
        return;
    }
    backup_job_queue(job);
}
