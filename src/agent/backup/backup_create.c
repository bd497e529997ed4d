/* Making an archive.
 *
 *     ignored files? ──► find ──► git ls-files ──► excludes written ──► mksquashfs ──► renamed
 *
 * Everything on the way is in one work folder beside the archive:
 *     .burrow-XXXX.tmp/excludes       what mksquashfs leaves out
 *                     /archive        what it makes
 *                     /git/...        an empty repository, for folders that are none */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/backup/backup_job.h"
#include "agent/backup/backup_request.h"
#include "agent/backup/backup_rules.h"
#include "agent/backup/backup_service.h"
#include "agent/environment.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"

/* Of the names of ignored files; folders that are ignored as a whole are one name. */
#define IGNORED_MAX     ((size_t) 4 * 1024 * 1024)
#define EXCLUDES_MAX    ((size_t) 64 * 1024 * 1024)
#define THREADS_TEXT    16
#define FILE_MODE       0600
#define FOLDER_MODE     0700
#define PARENT_MODE     0755
#define NOTHING_IGNORED "gitignore was not applied: "
#define TRAP_MAX        ((size_t) 1024)
/* Of a look at all names of a folder: whoever sets a trap that is not seen holds us no longer. */
#define LISTING_MS ((uint64_t) 5 * 60 * 1000)

struct create {
    struct backup_job job;
    struct backup_request request;
    const char *work; /* NULL: not made yet */
    struct text excludes;
    const char *warning; /* NULL: none */
    bool own_repository; /* of ours, in the work folder */
    char threads[THREADS_TEXT];
};

static const char *in_work(struct create *create, const char *name)
{
    return pool_format(&create->job.pool, "%s/%s", create->work, name);
}

/* A file that lives no longer than the work: nothing waits for the disk. */
static int write_file(struct create *create, const char *name, const char *bytes, size_t length)
{
    AUTO(close)
    int fd = sys_file_open(AT_FDCWD, in_work(create, name), O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);

    return fd < 0 ? fd : sys_file_write_full(fd, bytes, length);
}

/* --- the end --------------------------------------------------------------------------------- */

static void remove_work(struct create *create)
{
    static const char *const names[] = {"excludes", "archive", "git/HEAD"};
    static const char *const folders[] = {"git/objects", "git/refs", "git/info", "git", ""};

    if (!create->work)
        return;
    /* What is not there need not be removed. */
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        (void) unlink(in_work(create, names[i]));
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++)
        (void) rmdir(in_work(create, folders[i]));
}

static void end(struct create *create)
{
    remove_work(create);
    backup_job_end(&create->job);
}

static void fail(struct create *create, const char *what, int error)
{
    const struct backup_context context = {create->request.folder, create->request.archive, NULL};

    backup_job_fail(&create->job,
                    error == -ENOSPC || error == -EDQUOT ? API_NO_SPACE : API_BACKUP_CREATE_FAILED,
                    &context, "%s: %s", what, strerrordesc_np(-error));
    end(create);
}

static void write_reply(struct create *create, uint64_t size)
{
    struct json_writer json;

    call_begin_success(&json, &create->job.reply);
    json_add_integer(&json, "sizeBytes", (int64_t) size);
    json_add_text(&json, "archivePath", create->request.archive);
    if (create->warning) {
        json_begin_array_at(&json, "warnings");
        json_put_text(&json, create->warning);
        json_end_array(&json);
    }
    if (create->job.call)
        call_add_timestamp(create->job.call, &json);
    (void) json_document_end(&json); /* two paths fit */
}

/* --- mksquashfs ------------------------------------------------------------------------------ */

static void archived(struct tool *tool, const struct exec_result *result)
{
    struct create *create = CONTAINER_OF(tool, struct create, job.tool);
    const struct backup_context context = {create->request.folder, create->request.archive, result};
    const char *made = in_work(create, "archive");
    struct stat status;

    if (create->job.failed || !tool_succeeded(result)) {
        backup_job_fail_tool(&create->job, API_BACKUP_CREATE_FAILED, "mksquashfs", "squashfs-tools",
                             &context);
        end(create);
    } else if (stat(made, &status) < 0) {
        fail(create, "The archive is not there", -errno);
    } else if (rename(made, create->request.archive) < 0) {
        fail(create, "The archive cannot be put in its place", -errno);
    } else {
        write_reply(create, (uint64_t) status.st_size);
        end(create);
    }
}

/* From inside the folder: its name may be a link, or anything. */
static void archive(struct create *create)
{
    const char *const arguments[] = {"mksquashfs",
                                     ".",
                                     in_work(create, "archive"),
                                     "-comp",
                                     create->request.compression,
                                     "-processors",
                                     create->threads,
                                     "-no-progress",
                                     "-noappend",
                                     "-wildcards",
                                     "-ef",
                                     in_work(create, "excludes"),
                                     NULL};
    const struct tool_options options = {.arguments = arguments,
                                         .directory = create->request.folder};
    int r;

    for (size_t i = 0; i < create->request.excludes.count; i++)
        backup_rules_add_pattern(&create->excludes, create->request.excludes.items[i]);
    if (create->excludes.overflowed) {
        fail(create, "The excludes", -EOVERFLOW);
        return;
    }
    r = write_file(create, "excludes", text_string(&create->excludes), create->excludes.length);
    text_done(&create->excludes);
    if (r < 0) {
        fail(create, "The excludes cannot be written", r);
        return;
    }
    create->job.tool.on_end = archived;
    tool_start(&create->job.tool, &options);
}

/* --- what git ignores ------------------------------------------------------------------------ */

static void list_ignored(struct create *create);

/* Names with line breaks cannot be written in the excludes: those files come along. */
static void add_ignored(struct create *create, const struct text *names)
{
    const char *at = text_string(names), *stop = at + names->length;

    while (at < stop) {
        size_t length = strnlen(at, (size_t) (stop - at));

        if (!backup_rules_add_path(&create->excludes, at, length) && length)
            create->warning = "some ignored files have names that cannot be excluded: they are in "
                              "the archive";
        at += length + 1;
    }
}

/* All that git needs to take a folder for a repository. */
static int make_repository(struct create *create)
{
    static const char head[] = "ref: refs/heads/main\n";

    if (mkdir(in_work(create, "git"), FOLDER_MODE) < 0 ||
        mkdir(in_work(create, "git/objects"), FOLDER_MODE) < 0 ||
        mkdir(in_work(create, "git/refs"), FOLDER_MODE) < 0)
        return -errno;
    return write_file(create, "git/HEAD", head, sizeof(head) - 1);
}

/* Not in a repository, but its .gitignore counts all the same. */
static void list_without_repository(struct create *create)
{
    int r = make_repository(create);

    create->own_repository = true;
    if (r < 0)
        fail(create, "The folder for the archive cannot be written", r);
    else
        list_ignored(create);
}

static void ignored_listed(struct tool *tool, const struct exec_result *result)
{
    struct create *create = CONTAINER_OF(tool, struct create, job.tool);
    const struct backup_context context = {create->request.folder, create->request.archive, result};

    if (create->job.failed) {
        end(create);
    } else if (tool_succeeded(result) && tool->output_cut) {
        backup_job_fail(&create->job, API_BACKUP_CREATE_FAILED, &context,
                        "Too many ignored files: exclude their folders as a whole");
        end(create);
    } else if (tool_succeeded(result)) {
        add_ignored(create, &tool->output);
        archive(create);
    } else if (tool_is_missing(result)) {
        create->warning = NOTHING_IGNORED "git is not installed in this image";
        archive(create);
    } else if (!create->own_repository && strstr(tool_complaint(tool), "not a git repository")) {
        list_without_repository(create);
    } else {
        backup_job_fail_tool(&create->job, API_BACKUP_CREATE_FAILED, "git ls-files", "git",
                             &context);
        end(create);
    }
}

/* Nothing that the repository has configured is run for it: neither a monitor, nor the programs of
 * a remote from which git would fetch a .gitignore that a partial clone has not. */
static void list_ignored(struct create *create)
{
    static const struct environment_change changes[] = {
        {.name = "GIT_DIR", .text = NULL},
        {.name = "GIT_WORK_TREE", .text = NULL},
        {.name = "GIT_INDEX_FILE", .text = NULL},
        {.name = "GIT_OPTIONAL_LOCKS", .text = "0"},
        {.name = "LC_ALL", .text = "C"},
        {.name = "LANGUAGE", .text = NULL},
        {.name = "GIT_ALLOW_PROTOCOL", .text = ""},
    };
    const char *arguments[20] = {"git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false"};
    static const char *const command[] = {"ls-files",           "--others",    "--ignored",
                                          "--exclude-standard", "--directory", "-z"};
    const char **environment =
        environment_merge(create->job.agent->environment, changes, ARRAY_COUNT(changes));
    const struct tool_options options = {
        .arguments = arguments,
        .environment = environment,
        .directory = create->request.folder,
        .output_max = IGNORED_MAX,
        .timeout_ms = LISTING_MS,
    };
    size_t count = 5;

    if (create->own_repository) {
        arguments[count++] = "--git-dir";
        arguments[count++] = in_work(create, "git");
        arguments[count++] = "--work-tree=.";
    }
    for (size_t i = 0; i < ARRAY_COUNT(command); i++)
        arguments[count++] = command[i];
    create->job.tool.on_end = ignored_listed;
    tool_start(&create->job.tool, &options);
    environment_free(environment);
}

static void searched(struct tool *tool, const struct exec_result *result)
{
    struct create *create = CONTAINER_OF(tool, struct create, job.tool);
    const struct backup_context context = {create->request.folder, create->request.archive, result};

    if (tool->output.length)
        backup_job_fail(&create->job, API_BACKUP_CREATE_FAILED, &context,
                        "gitignore cannot be applied: %s is not a regular file",
                        text_string(&tool->output));
    else if (result->timed_out)
        backup_job_fail_tool(&create->job, API_BACKUP_CREATE_FAILED, "find", "findutils", &context);
    if (create->job.failed)
        end(create);
    else /* an image without find has the deadline of git */
        list_ignored(create);
}

/* git opens what it finds under these names, and would wait at a FIFO until somebody writes. */
static void search_traps(struct create *create)
{
    static const char *const arguments[] = {"find",    ".",        "(", "-name", ".gitignore", "-o",
                                            "-path",   "*/.git/*", ")", "!",     "-type",      "f",
                                            "!",       "-type",    "d", "!",     "-type",      "l",
                                            "-print0", "-quit",    NULL};
    const struct tool_options options = {
        .arguments = arguments,
        .directory = create->request.folder,
        .output_max = TRAP_MAX,
        .timeout_ms = LISTING_MS,
    };

    create->job.tool.on_end = searched;
    tool_start(&create->job.tool, &options);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int make_work(struct create *create)
{
    char parent[BACKUP_PATH_MAX + 1], name[SYS_FILE_NAME_SIZE];
    const char *last;
    int r = sys_file_split(create->request.archive, parent, sizeof(parent), &last);

    if (r == 0)
        r = sys_file_make_directories(AT_FDCWD, parent, PARENT_MODE);
    if (r == 0)
        r = sys_file_temporary_name(name);
    if (r < 0)
        return r;
    create->work = pool_format(&create->job.pool, "%s/%s", parent, name);
    if (mkdir(create->work, FOLDER_MODE) == 0)
        return 0;
    create->work = NULL;
    return -errno;
}

static void begin(struct backup_job *job)
{
    struct create *create = CONTAINER_OF(job, struct create, job);
    struct stat status;
    int r;

    if (stat(create->request.folder, &status) < 0 || !S_ISDIR(status.st_mode)) {
        const struct backup_context context = {create->request.folder, NULL, NULL};

        backup_job_fail(job, API_BACKUP_CREATE_FAILED, &context,
                        "Source directory does not exist: %s", create->request.folder);
        end(create);
        return;
    }
    r = make_work(create);
    if (r < 0)
        fail(create, "The folder for the archive cannot be made", r);
    else if (create->request.gitignore)
        search_traps(create);
    else
        archive(create);
}

static void done(struct backup_job *job)
{
    text_done(&CONTAINER_OF(job, struct create, job)->excludes);
}

static const struct backup_kind kind = {
    .size = sizeof(struct create),
    .begin = begin,
    .done = done,
};

void backup_create_run(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct backup_job *job = backup_job_new(call, &kind);
    struct create *create = CONTAINER_OF(job, struct create, job);

    if (backup_request_read(call->arguments, &job->pool, &create->request, &error) < 0) {
        backup_job_drop(job);
        call_fail(call, &error);
        return;
    }
    create->excludes = (struct text) TEXT_INIT(EXCLUDES_MAX);
    (void) snprintf(create->threads, sizeof(create->threads), "%lld",
                    (long long) create->request.threads);
    backup_job_queue(job);
}
