#include "vault/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"
#include "vault/mover_internal.h"

/* --- its life -------------------------------------------------------------------------------- */

struct mover *mover_new(const struct mover_options *options)
{
    struct mover *mover = mem_alloc(sizeof(*mover));

    *mover = (struct mover){
        .loop = options->loop,
        .provider = options->provider,
        .objects = options->objects,
        .inside = options->inside,
        .spool = mem_copy_text(options->spool),
        .log = options->log,
    };
    mover->vault = (struct vault){
        .self = mover,
        .archive = mover_archive,
        .restore = mover_restore,
        .store_disk = mover_store_disk,
        .fetch_disk = mover_fetch_disk,
        .sync = mover_sync,
        .restore_mirror = mover_restore_mirror,
        .diff = mover_diff,
        .measure = mover_measure,
        .remove_prefix = mover_remove_prefix,
    };
    list_init(&mover->works);
    turns_init(&mover->turns, options->shares);
    return mover;
}

const struct vault *mover_vault(struct mover *mover)
{
    return &mover->vault;
}

static void tell_closed(struct mover *mover)
{
    void (*closed)(void *context) = TAKE_PTR(mover->closed);

    if (closed)
        closed(mover->closed_context);
}

static void work_cancel(struct work *work)
{
    report_cancel(&work->report);
    if (work->call)
        objects_cancel(work->call);
    if (turn_waits(&work->turn))
        (void) work_goes_on(work);
    else if (work->cancel)
        work->cancel(work);
}

void mover_close(struct mover *mover, void (*done)(void *context), void *context)
{
    mover->is_closing = true;
    mover->closed = done;
    mover->closed_context = context;
    LIST_EACH (&mover->works, at)
        work_cancel(CONTAINER_OF(at, struct work, link));
    if (list_is_empty(&mover->works))
        tell_closed(mover);
}

void mover_free(struct mover *mover)
{
    if (!mover)
        return;
    free(mover->spool);
    free(mover);
}

/* --- works ----------------------------------------------------------------------------------- */

static void finish(struct loop_task *task)
{
    struct work *work = CONTAINER_OF(task, struct work, task);
    struct mover *mover = work->mover;

    list_remove(&work->link);
    work->file = fd_close(work->file);
    turn_end(&work->turn);
    work->finish(work, work->failed ? &work->failure : NULL);
    if (mover->is_closing && list_is_empty(&mover->works))
        tell_closed(mover);
}

bool work_begin(struct work *work, struct mover *mover,
                void (*when_over)(struct work *work, const struct error *failure),
                void (*cancel)(struct work *work))
{
    TRACE("vault.begin");
    work->trace = trace_context;
    work->mover = mover;
    work->finish = when_over;
    work->cancel = cancel;
    work->file = -EBADF;
    loop_task_init(&work->task, finish);
    list_append(&mover->works, &work->link);
    return work_goes_on(work);
}

static void work_has_turn(struct mover_turn *turn)
{
    struct work *work = CONTAINER_OF(turn, struct work, turn);
    TRACE_AS(&work->trace);

    if (work_goes_on(work))
        work->step(work);
}

void work_begin_in_turn(struct work *work, struct mover *mover, const struct vault_asker *asker,
                        void (*when_over)(struct work *work, const struct error *failure),
                        void (*cancel)(struct work *work), void (*step)(struct work *work))
{
    struct error err = ERROR_INIT;

    work->step = step;
    if (work_begin(work, mover, when_over, cancel) &&
        turn_ask(&mover->turns, &work->turn, asker, work_has_turn, &err) < 0)
        work_end(work, &err);
}

void work_run(struct work *work, const struct provider_disk_job *job, report_line *on_line,
              report_done *on_done)
{
    report_run(&work->report, work->mover->loop, work->mover->provider, job, on_line, on_done,
               work);
}

void work_tell(struct work *work)
{
    if (work->progressed)
        work->progressed(work->context, &work->progress);
}

/* --- put --- */

static void put_progressed(void *context, uint64_t done_bytes)
{
    struct work *work = context;

    work->progress.stored_bytes = done_bytes;
    work_tell(work);
}

/* What the keeper told and what the store was given are the same bytes, or one of them lies. */
static void put_ended(void *context, const struct error *failure, const struct object_info *info)
{
    struct work *work = context;
    struct error err = ERROR_INIT;

    work->call = NULL;
    if (!failure && (info->size != work->put_size ||
                     (info->has_sum && memcmp(info->sum, work->put_sum, VAULT_SUM_SIZE) != 0))) {
        (void) error_set(&err, ERR_UPSTREAM, 0, "what was stored is not what the keeper told");
        failure = &err;
    }
    work_end(work, failure);
}

void work_put(struct work *work, const char *key, uint64_t size, const uint8_t *sum)
{
    const struct object_put_options options = {.progress = put_progressed};

    if (!work_goes_on(work))
        return;
    work->put_size = size;
    work->put_sum = sum;
    work->call = objects_put_file(work->mover->objects, key, work->file, &options, put_ended, work);
}

/* --- its end --- */

/* Whoever asked is told what failed, and only the log where. */
static void make_plain(struct work *work)
{
    struct error said = work->failure;

    if (objects_make_plain(work->mover->objects, &work->failure))
        LOG_WARNING(work->mover->log, "the object store failed", log_text("error", said.message));
}

void work_end(struct work *work, const struct error *failure)
{
    TRACE_AS(&work->trace);

    if (work->is_over || work->is_flushing)
        return;
    TRACE_WITH(failure ? "vault.failed" : "vault.done",
               failure ? error_code_text(failure->code) : NULL);
    work->is_over = true;
    work->failed = failure != NULL;
    if (failure) {
        work->failure = *failure;
        make_plain(work);
    }
    /* A store that refuses our key is no lack of rights of who asked. */
    if (work->failure.code == ERR_FORBIDDEN)
        work->failure.code = ERR_UNAVAILABLE;
    loop_defer(work->mover->loop, &work->task);
}

static void flushed(void *context, const struct error *failure)
{
    struct work *work = context;
    struct error err = failure ? *failure : (struct error) ERROR_INIT;

    work->is_flushing = false;
    if (failure)
        (void) error_wrap(&err, "what was restored may not survive a power cut");
    work_end(work, failure ? &err : NULL);
}

void work_flush(struct work *work)
{
    if (work->is_flushing || !work_goes_on(work))
        return;
    work->is_flushing = true;
    provider_sync_contents(work->mover->provider, flushed, work);
}

void work_fail(struct work *work, enum err_code code, int system, const char *format, ...)
{
    struct error err = ERROR_INIT;
    char message[ERROR_MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    (void) error_set(&err, code, system, "%s", message);
    work_end(work, &err);
}

bool work_goes_on(struct work *work)
{
    if (work->mover->is_closing)
        work_fail(work, ERR_UNAVAILABLE, 0, "the service is stopping");
    return !work->is_over;
}

/* --- files between steps --------------------------------------------------------------------- */

/* A file system without nameless files gets a name for a moment. */
static int open_named(const char *folder)
{
    AUTO(close) int directory = sys_file_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY, 0);
    char name[SYS_FILE_NAME_SIZE];
    int r = directory < 0 ? directory : sys_file_temporary_name(name);

    if (r < 0)
        return r;
    r = sys_file_open(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (r >= 0)
        (void) unlinkat(directory, name, 0);
    return r;
}

int mover_open_file(const struct mover *mover, struct error *err)
{
    int file = sys_file_open(AT_FDCWD, mover->spool, O_TMPFILE | O_RDWR, 0600);

    if (file == -EOPNOTSUPP || file == -EISDIR)
        file = open_named(mover->spool);
    if (file < 0)
        return error_set(err, error_code_from_errno(file), file, "make a file in '%s'",
                         mover->spool);
    return file;
}

int work_open_file(struct work *work)
{
    struct error err = ERROR_INIT;
    int file = mover_open_file(work->mover, &err);

    if (file >= 0)
        return file;
    work_end(work, &err);
    return -EBADF;
}

int work_open_bytes(struct work *work, const void *bytes, size_t length)
{
    int file = sys_memfd_from_bytes("vault", SYS_MEMFD_DATA, bytes, length);

    if (file >= 0)
        return file;
    work_fail(work, error_code_from_errno(file), file, "make a file in memory");
    return -EBADF;
}

int work_rewind(struct work *work, int file)
{
    if (lseek(file, 0, SEEK_SET) == 0)
        return 0;
    work_fail(work, ERR_INTERNAL, errno, "go to the start of a file");
    return -1;
}

int sum_from_hex(const char *hex, uint8_t ret_sum[static VAULT_SUM_SIZE])
{
    size_t count = 0;

    return hex_decode(hex, strlen(hex), ret_sum, VAULT_SUM_SIZE, &count) == 0 &&
                   count == VAULT_SUM_SIZE
               ? 0
               : -1;
}
