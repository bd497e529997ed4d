/* A tar archive into a folder:
 *
 *     into what is there        extract ──► answer
 *     in place of what is there extract into a work folder ──► swap (backup_swap.h) ──► answer
 *                               the work folder is deleted in slices, also when the client left */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/archive/file_archive.h"
#include "agent/archive/file_archive_internal.h"
#include "agent/archive/tar_extract.h"
#include "agent/backup/backup_swap.h"
#include "agent/call.h"
#include "agent/control/quiesce.h"
#include "agent/file/file_error.h"
#include "agent/file_open.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define OPERATION "archive.import"
#define BODY_MAX  (1024 + 6 * FILE_PATH_MAX)

/* Bytes that are taken in one turn of the loop, entries that are deleted. */
#define BYTES_PER_TURN ((size_t) 16 * 1024)
#define CLEAN_ENTRIES  64
/* What may arrive before a pause is heeded, twice. */
#define PENDING_MAX ((size_t) 4 * LOOP_SCRATCH_SIZE)

#define FOLDER_MODE 0777
#define WORK_MODE   0700

/* On the heap: a swap outlives a client that leaves. */
struct archive_put {
    struct agent *agent;
    struct http_request *request; /* NULL: the client left */
    char *path;                   /* owned: as the client gave it */
    int folder;                   /* owned */
    int root;                    /* owned: where entries go; in a replacement, in the work folder */
    struct tar_extract *extract; /* owned */
    struct text pending;         /* arrived */
    size_t taken;                /* of it */
    bool has_all;                /* nothing more arrives */
    bool made_folder;
    char work[SYS_FILE_NAME_SIZE]; /* a name in the folder; "": nothing is replaced */
    bool keep_work;                /* it holds what could not be put back */
    bool is_ending;                /* swapping or cleaning up, which go on to their end */
    struct backup_swap swap;
    struct loop_task task;
    struct error failure;
};

/* --- the end --------------------------------------------------------------------------------- */

static void free_put(struct archive_put *put)
{
    loop_task_cancel(&put->task);
    tar_extract_free(put->extract);
    (void) fd_close(put->root);
    (void) fd_close(put->folder);
    text_done(&put->pending);
    free(put->path);
    free(put);
}

static void answer_failure(struct archive_put *put, struct http_request *request)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;
    const struct error *error = &put->failure;

    file_error_context(&api, OPERATION, put->path);
    api.operation = OPERATION;
    api_error_fill(&api, error->system ? file_error_code(error->system) : API_VALIDATION_FAILED,
                   "%s", error->message);
    api_error_reply(request, &api);
}

static void answer_success(struct archive_put *put, struct http_request *request)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(clock_wall_ms(put->agent->clock), time);
    call_begin_success(&json, &body);
    json_add_text(&json, "path", put->path);
    json_add_integer(&json, "entries", (int64_t) tar_extract_entries(put->extract));
    json_add_integer(&json, "bytes", (int64_t) tar_extract_bytes(put->extract));
    json_add_text(&json, "timestamp", time);
    (void) json_document_end(&json); /* there is room for the longest path */
    agent_reply_json(request, &body);
}

static void finish(struct archive_put *put)
{
    struct http_request *request = TAKE_PTR(put->request);

    if (request) {
        request->on_gone = NULL;
        if (put->failure.code)
            answer_failure(put, request);
        else
            answer_success(put, request);
    }
    free_put(put);
}

/* Rubbish in a hidden folder does not make an import fail. */
static void clean(struct loop_task *task)
{
    struct archive_put *put = CONTAINER_OF(task, struct archive_put, task);

    if (sys_tree_delete_small(put->folder, put->work, CLEAN_ENTRIES) == -E2BIG)
        loop_defer(&put->agent->loop, &put->task);
    else
        finish(put);
}

/* It succeeded, or put->failure says why not. Nothing of the work is left when that is told. */
static void end(struct archive_put *put)
{
    put->is_ending = true;
    loop_task_cancel(&put->task);
    if (!put->work[0] || put->keep_work) {
        finish(put);
        return;
    }
    loop_task_init(&put->task, clean);
    loop_defer(&put->agent->loop, &put->task);
}

/* --- in place of what is there --------------------------------------------------------------- */

static void swapped(struct backup_swap *swap, int error, bool undone)
{
    struct archive_put *put = CONTAINER_OF(swap, struct archive_put, swap);

    put->keep_work = error && !undone;
    if (!error) {
        end(put);
        return;
    }
    (void) error_set(&put->failure, ERR_INTERNAL, error,
                     undone ? "replace the folder"
                            : "replace the folder; some of what was there is in %s now",
                     put->work);
    end(put);
}

/* A folder that was there keeps its own. */
static void take_attributes(const struct archive_put *put)
{
    struct stat status;

    if (!put->made_folder || fstatat(put->root, "", &status, AT_EMPTY_PATH) < 0)
        return;
    /* Who may not give it away owns it; the mode is then not for others either. */
    if (fchownat(put->folder, "", status.st_uid, status.st_gid, AT_EMPTY_PATH) == 0 &&
        fchmodat(put->folder, ".", status.st_mode & 07777, 0) < 0)
        LOG_WARNING(put->agent->log, "the mode of a new folder was not set",
                    log_text("path", put->path));
}

static void begin_swap(struct archive_put *put)
{
    int r;

    take_attributes(put);
    put->swap.on_end = swapped;
    r = backup_swap_start(&put->swap, &put->agent->loop, put->folder, ".", put->work);
    put->is_ending = r == 0;
    if (r == 0)
        return;
    (void) error_set(&put->failure, ERR_INTERNAL, r, "replace the folder");
    end(put);
}

/* "work/new" in the folder. Returns its descriptor, or -errno. */
static int make_work(struct archive_put *put)
{
    char name[SYS_FILE_NAME_SIZE];
    AUTO(close) int work = -EBADF;
    int r = sys_file_temporary_name(name);

    if (r < 0)
        return r;
    if (mkdirat(put->folder, name, WORK_MODE) < 0)
        return -errno;
    memcpy(put->work, name, sizeof(name));
    work = file_open(put->folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (work < 0)
        return work;
    if (mkdirat(work, BACKUP_SWAP_NEW, FOLDER_MODE) < 0)
        return -errno;
    return file_open(work, BACKUP_SWAP_NEW, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* --- what arrives ---------------------------------------------------------------------------- */

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
    int r = take_slice(put, &put->failure);

    if (r == 0 && put->work[0]) {
        begin_swap(put);
    } else if (r <= 0) {
        end(put);
    } else if (put->taken < put->pending.length || put->has_all) {
        loop_defer(&put->agent->loop, &put->task);
    } else {
        text_clear(&put->pending);
        put->taken = 0;
        http_request_resume(put->request);
    }
}

static void body_came(struct http_request *request, const char *bytes, size_t length)
{
    struct archive_put *put = request->data;

    text_append_bytes(&put->pending, bytes, length);
    http_request_pause(request);
    loop_defer(&put->agent->loop, &put->task);
}

static void body_ended(struct http_request *request)
{
    struct archive_put *put = request->data;

    put->has_all = true;
    loop_defer(&put->agent->loop, &put->task);
}

static void sender_left(struct http_request *request)
{
    struct archive_put *put = request->data;

    put->request = NULL;
    if (!put->is_ending)
        end(put);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int open_folder(struct archive_put *put, const struct file_place *place)
{
    int fd = file_open(place->base, place->path, O_PATH | O_DIRECTORY, 0);

    if (fd != -ENOENT)
        return fd;
    fd = sys_file_make_directories(place->base, place->path, FOLDER_MODE);
    put->made_folder = fd == 0;
    return fd < 0 ? fd : file_open(place->base, place->path, O_PATH | O_DIRECTORY, 0);
}

/* One of two words, the second of which is meant by nothing at all. -1: answered. */
static int read_choice(struct http_request *request, const char *name, const char *yes,
                       const char *no, bool *ret_is)
{
    const char *value = http_request_query(request, name);

    *ret_is = value && strcmp(value, yes) == 0;
    if (!value || *ret_is || strcmp(value, no) == 0)
        return 0;
    file_archive_fail_parameter(request, OPERATION, name,
                                pool_format(&request->pool, "must be %s or %s", yes, no));
    return -1;
}

void file_archive_put(struct http_request *request)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    struct archive_put *put;
    bool links_out, replace;

    if (quiesce_refuses_request(request) || file_archive_place(request, OPERATION, &place) < 0 ||
        read_choice(request, "links", "any", "inside", &links_out) < 0 ||
        read_choice(request, "replace", "1", "0", &replace) < 0)
        return;
    put = mem_alloc(sizeof(*put));
    *put = (struct archive_put){.agent = request->context,
                                .path = mem_copy_text(place.path),
                                .root = -EBADF,
                                .pending = TEXT_INIT(PENDING_MAX)};
    loop_task_init(&put->task, take_on);
    put->folder = put->root = open_folder(put, &place);
    if (put->folder >= 0)
        put->root = replace ? make_work(put) : fcntl(put->folder, F_DUPFD_CLOEXEC, 0);
    if (put->root < 0) {
        file_archive_fail(request, OPERATION, place.path, put->root);
        end(put);
        return;
    }
    put->request = request;
    put->extract = tar_extract_new(put->root, links_out);
    request->data = put;
    request->on_gone = sender_left;
    http_request_stream(request, body_came, body_ended);
}
