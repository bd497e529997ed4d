/* Backups: a folder becomes a squashfs object; and an object a folder again, through the sandbox's
 * agent. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "json/json_write.h"
#include "vault/mover_internal.h"

/* Of an archive's job, as text. */
#define OPTIONS_MAX ((size_t) 1 << 20)

/* A line of progress: {"progress":{"files":1000,"bytes":123456}}. Others are left out. */
static void tell_progress(void *context, const char *line, size_t length)
{
    AUTO(outcome) struct outcome told = {.root = NULL};
    struct work *work = context;

    if (outcome_read(&told, line, length, "progress", NULL) == 0 &&
        outcome_count(&told, "files", &work->progress.files, NULL) == 0 &&
        outcome_count(&told, "bytes", &work->progress.bytes, NULL) == 0)
        work_tell(work);
}

/* --- archive --------------------------------------------------------------------------------- */

struct archive {
    struct work work;
    char *key, *image; /* owned; image may be NULL */
    struct disk_ref disk;
    uint64_t bytes_max;
    struct text options; /* for its job */
    struct vault_archived archived;
    vault_archive_done *done;
};

static void archive_finished(struct work *work, const struct error *failure)
{
    struct archive *archive = CONTAINER_OF(work, struct archive, work);

    archive->done(archive->work.context, failure, failure ? NULL : &archive->archived);
    text_done(&archive->options);
    free(archive->key);
    free(archive->image);
    free(archive);
}

static int read_archived(const char *line, size_t length, struct vault_archived *ret_archived,
                         struct error *err)
{
    AUTO(outcome) struct outcome told = {.root = NULL};

    if (outcome_read(&told, line, length, "archived", err) < 0 ||
        outcome_count(&told, "files", &ret_archived->files, err) < 0 ||
        outcome_count(&told, "folders", &ret_archived->folders, err) < 0 ||
        outcome_count(&told, "bytes", &ret_archived->bytes, err) < 0 ||
        outcome_count(&told, "size", &ret_archived->size, err) < 0)
        return -1;
    return outcome_sum(&told, "sha256", ret_archived->sum, err);
}

static int archive_check_size(const struct archive *archive, struct error *err)
{
    char size[NUMBER_TEXT_SIZE], left[NUMBER_TEXT_SIZE];

    if (!archive->bytes_max || archive->archived.size <= archive->bytes_max)
        return 0;
    number_format_size(archive->archived.size, size);
    number_format_size(archive->bytes_max, left);
    return error_set(err, ERR_QUOTA, 0,
                     "storage: the archive has %s, and %s are left of what its owner may store; "
                     "delete backups, or files in buckets",
                     size, left);
}

static void archive_made(void *context, const struct error *failure, const char *outcome,
                         size_t length)
{
    struct archive *archive = context;
    struct error err = ERROR_INIT;

    if (!failure && read_archived(outcome, length, &archive->archived, &err) < 0)
        failure = &err;
    if (!failure && archive_check_size(archive, &err) < 0)
        failure = &err;
    if (failure) {
        work_end(&archive->work, failure);
        return;
    }
    archive->work.progress.files = archive->archived.files;
    archive->work.progress.bytes = archive->archived.bytes;
    work_put(&archive->work, archive->key, archive->archived.size, archive->archived.sum);
}

static void write_options(struct text *text, const struct vault_archive *what)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    json_add_text(&json, "folder", what->folder);
    if (what->compression)
        json_add_text(&json, "compression", what->compression);
    json_add_boolean(&json, "gitignore", what->gitignore);
    json_key(&json, "excludes");
    json_begin_array(&json);
    for (size_t i = 0; i < what->exclude_count; i++)
        json_put_text(&json, what->excludes[i]);
    json_end_array(&json);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        text->overflowed = true;
}

static void archive_start(struct work *work)
{
    struct archive *archive = CONTAINER_OF(work, struct archive, work);
    struct provider_disk_job job = {
        .kind = DISK_JOB_ARCHIVE, .on = archive->disk, .image = archive->image};
    AUTO(close) int input = -EBADF;

    if (archive->options.overflowed) {
        work_fail(work, ERR_TOO_LARGE, 0, "so many excludes");
        return;
    }
    work->file = work_open_file(work);
    input = work_open_bytes(work, archive->options.data, archive->options.length);
    if (!work_goes_on(work))
        return;
    job.input = input;
    job.data = work->file;
    work_run(work, &job, tell_progress, archive_made);
}

void mover_archive(void *self, const struct vault_archive *what, vault_progressed *progressed,
                   vault_archive_done *done, void *context)
{
    struct archive *archive = mem_alloc(sizeof(*archive));

    *archive = (struct archive){
        .key = mem_copy_text(what->key),
        .image = what->image ? mem_copy_text(what->image) : NULL,
        .disk = what->disk,
        .bytes_max = what->bytes_max,
        .options = TEXT_INIT(OPTIONS_MAX),
        .done = done,
        .work = {.progressed = progressed, .context = context},
    };
    write_options(&archive->options, what);
    work_begin_in_turn(&archive->work, self, &what->asker, archive_finished, NULL, archive_start);
}

/* --- restore --------------------------------------------------------------------------------- */

/* The keeper writes a tar stream, the agent reads it. The agent is not asked before there is
 * something to read: the job may have to wait for others, and a job that fails at once has nothing
 * for it. */
struct restore {
    struct work work;
    uv_poll_t poll; /* on `tar`, until its first byte */
    bool is_polling;
    struct id sandbox;
    char *key, *folder; /* owned */
    uint8_t sum[VAULT_SUM_SIZE];
    bool has_sum;
    int tar; /* owned: the end that is read */
    bool is_unpacked, is_extracted;
    bool unpack_failed, extract_failed;
    struct error unpack_failure, extract_failure;
    vault_done *done;
};

static void restore_finished(struct work *work, const struct error *failure)
{
    struct restore *restore = CONTAINER_OF(work, struct restore, work);

    restore->done(restore->work.context, failure);
    restore->tar = fd_close(restore->tar);
    free(restore->folder);
    free(restore->key);
    free(restore);
}

/* One side's failure is often only the echo of the other's: a reader that goes away cancels the
 * writer, a writer that stops cuts the stream. */
static void restore_end(struct restore *restore)
{
    const struct error *failure = NULL;

    if (!restore->is_unpacked || !restore->is_extracted)
        return;
    if (restore->extract_failed)
        failure = &restore->extract_failure;
    if (restore->unpack_failed && (!failure || restore->unpack_failure.code != ERR_CANCELLED))
        failure = &restore->unpack_failure;
    if (failure)
        work_end(&restore->work, failure);
    else
        work_flush(&restore->work);
}

static void restore_extracted(void *context, const struct error *failure)
{
    struct restore *restore = context;

    restore->is_extracted = true;
    restore->extract_failed = failure != NULL;
    if (failure)
        restore->extract_failure = *failure;
    restore_end(restore);
}

static void poll_closed(uv_handle_t *handle)
{
    struct restore *restore = handle->data;
    struct mover *mover = restore->work.mover;
    int waiting = 0;

    restore->is_polling = false;
    if (mover->is_closing || ioctl(restore->tar, FIONREAD, &waiting) < 0 || waiting == 0) {
        restore->is_extracted = true; /* nothing came, and the job says why */
        restore->tar = fd_close(restore->tar);
        restore_end(restore);
        return;
    }
    mover->inside->extract(mover->inside->self, &restore->sandbox, restore->folder, restore->tar,
                           restore_extracted, restore);
    restore->tar = fd_close(restore->tar);
}

static void stop_polling(struct restore *restore)
{
    if (restore->is_polling && !uv_is_closing((uv_handle_t *) &restore->poll))
        uv_close((uv_handle_t *) &restore->poll, poll_closed);
}

static void tar_readable(uv_poll_t *poll, int status, int events)
{
    (void) status, (void) events;
    stop_polling(poll->data);
}

static void restore_cancel(struct work *work)
{
    stop_polling(CONTAINER_OF(work, struct restore, work));
}

static void restore_unpacked(void *context, const struct error *failure, const char *outcome,
                             size_t length)
{
    struct restore *restore = context;

    (void) outcome, (void) length;
    restore->is_unpacked = true;
    restore->unpack_failed = failure != NULL;
    if (failure)
        restore->unpack_failure = *failure;
    restore_end(restore);
}

static void restore_unpack(struct restore *restore)
{
    struct mover *mover = restore->work.mover;
    struct provider_disk_job job = {.kind = DISK_JOB_UNARCHIVE, .input = restore->work.file};
    AUTO(close) int writer = -EBADF;
    int ends[2];

    if (work_rewind(&restore->work, restore->work.file) < 0)
        return;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        work_fail(&restore->work, ERR_UNAVAILABLE, errno, "make a pipe");
        return;
    }
    restore->tar = ends[0];
    writer = ends[1];
    job.data = writer;
    if (uv_poll_init(&mover->loop->uv, &restore->poll, restore->tar) < 0) {
        work_fail(&restore->work, ERR_UNAVAILABLE, 0, "watch a pipe");
        return;
    }
    restore->poll.data = restore;
    restore->is_polling = true;
    (void) uv_poll_start(&restore->poll, UV_READABLE | UV_DISCONNECT, tar_readable);
    work_run(&restore->work, &job, tell_progress, restore_unpacked);
}

static void restore_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct restore *restore = context;

    restore->work.call = NULL;
    if (failure) {
        work_end(&restore->work, failure);
        return;
    }
    restore->work.progress.stored_bytes = info->size;
    if (work_goes_on(&restore->work))
        restore_unpack(restore);
}

static void restore_get(struct work *work)
{
    struct restore *restore = CONTAINER_OF(work, struct restore, work);

    work->file = work_open_file(work);
    if (work_goes_on(work))
        work->call = objects_get_file(work->mover->objects, restore->key, work->file,
                                      restore->has_sum ? restore->sum : NULL, restore_got, restore);
}

void mover_restore(void *self, const struct vault_restore *what, vault_progressed *progressed,
                   vault_done *done, void *context)
{
    struct restore *restore = mem_alloc(sizeof(*restore));

    *restore = (struct restore){
        .sandbox = what->sandbox,
        .key = mem_copy_text(what->key),
        .folder = mem_copy_text(what->folder),
        .has_sum = what->sum != NULL,
        .tar = -EBADF,
        .done = done,
        .work = {.progressed = progressed, .context = context},
    };
    if (what->sum)
        memcpy(restore->sum, what->sum, VAULT_SUM_SIZE);
    work_begin_in_turn(&restore->work, self, &what->asker, restore_finished, restore_cancel,
                       restore_get);
}
