/* A mirror becomes a folder again: its list and its objects as one tar stream to the agent.
 *
 * Entries go into the stream in the order of the list, and are fetched some way ahead of it. An
 * object that is newer than the list (a sync that did not come to its end) is taken as it is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/tar_header.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "vault/mirror_list.h"
#include "vault/mover_internal.h"

#define AHEAD_MAX 16
#define SMALL_MAX ((uint64_t) 1 << 20)
#define CHUNK     ((size_t) 128 << 10)
#define HEAD_MAX  ((size_t) 64 << 10) /* of all that comes before one content */

struct mirror;

/* One entry on its way. */
struct ahead {
    struct mirror *mirror;
    struct mirror_entry entry;
    struct objects_call *call;
    bool is_ready;
    char *bytes; /* owned: a small content */
    int file;    /* owned: a larger one */
    uint64_t size;
};

struct mirror {
    struct work work;
    char *prefix, *manifest, *folder;
    struct id sandbox;
    struct text list;
    struct mirror_cursor cursor;

    struct ahead ahead[AHEAD_MAX]; /* a ring */
    size_t first, count;
    bool is_listed; /* no more entries behind those */

    uv_poll_t poll;
    int tar; /* owned: the end we write */
    bool is_polling;
    struct text out; /* to be written */
    size_t out_done;
    uint64_t read_done; /* of the first one's file */
    bool is_ended;      /* the last bytes are in `out` */
    uv_fs_t read;
    bool is_reading;
    char *chunk; /* owned */

    bool is_started, is_extracted;
    bool failed;
    struct error failure;
    uint64_t files, bytes;
    vault_mirror_done *done;
};

static void ahead_clear(struct ahead *ahead)
{
    mirror_entry_done(&ahead->entry);
    free(TAKE_PTR(ahead->bytes));
    ahead->file = fd_close(ahead->file);
    ahead->is_ready = false;
    ahead->entry = (struct mirror_entry) MIRROR_ENTRY_INIT;
}

static void mirror_finished(struct work *work, const struct error *failure)
{
    struct mirror *mirror = CONTAINER_OF(work, struct mirror, work);

    mirror->done(mirror->work.context, failure, failure ? 0 : mirror->files,
                 failure ? 0 : mirror->bytes);
    for (size_t i = 0; i < AHEAD_MAX; i++)
        ahead_clear(&mirror->ahead[i]);
    text_done(&mirror->list);
    text_done(&mirror->out);
    free(mirror->chunk);
    free(mirror->prefix);
    free(mirror->manifest);
    free(mirror->folder);
    free(mirror);
}

/* --- its end --------------------------------------------------------------------------------- */

static bool is_fetching(const struct mirror *mirror)
{
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        if (mirror->ahead[i].call)
            return true;
    }
    return false;
}

static void end(struct mirror *mirror)
{
    if (mirror->is_polling || mirror->is_reading || is_fetching(mirror) ||
        (mirror->is_started && !mirror->is_extracted))
        return;
    if (mirror->failed)
        work_end(&mirror->work, &mirror->failure);
    else
        work_flush(&mirror->work);
}

static void poll_closed(uv_handle_t *handle)
{
    struct mirror *mirror = handle->data;

    mirror->is_polling = false;
    mirror->tar = fd_close(mirror->tar);
    end(mirror);
}

/* Without the end of the stream the agent leaves its folder as it was. */
static void stop_writing(struct mirror *mirror)
{
    if (mirror->is_polling && !uv_is_closing((uv_handle_t *) &mirror->poll))
        uv_close((uv_handle_t *) &mirror->poll, poll_closed);
}

static void fail(struct mirror *mirror, const struct error *failure)
{
    if (!mirror->failed) {
        mirror->failed = true;
        mirror->failure = *failure;
    }
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        if (mirror->ahead[i].call)
            objects_cancel(mirror->ahead[i].call);
    }
    stop_writing(mirror);
}

static void mirror_cancel(struct work *work)
{
    struct mirror *mirror = CONTAINER_OF(work, struct mirror, work);
    struct error err = ERROR_INIT;

    (void) error_set(&err, ERR_CANCELLED, 0, "it was cancelled");
    if (!mirror->work.call)
        fail(mirror, &err);
}

static void extracted(void *context, const struct error *failure)
{
    struct mirror *mirror = context;

    mirror->is_extracted = true;
    if (failure)
        fail(mirror, failure);
    end(mirror);
}

/* --- fetching -------------------------------------------------------------------------------- */

static void go_on(struct mirror *mirror);

static void file_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct ahead *ahead = context;

    ahead->call = NULL;
    if (failure) {
        fail(ahead->mirror, failure);
        end(ahead->mirror);
        return;
    }
    ahead->size = info->size;
    ahead->is_ready = true;
    go_on(ahead->mirror);
}

static void get_file(struct ahead *ahead, const char *key)
{
    struct mover *mover = ahead->mirror->work.mover;
    struct error err = ERROR_INIT;

    ahead->file = mover_open_file(mover, &err);
    if (ahead->file < 0) {
        ahead->file = -EBADF;
        fail(ahead->mirror, &err);
        return;
    }
    ahead->call = objects_get_file(mover->objects, key, ahead->file, NULL, file_got, ahead);
}

static void bytes_got(void *context, const struct error *failure, const void *bytes, size_t length,
                      const struct object_info *info)
{
    struct ahead *ahead = context;
    struct mirror *mirror = ahead->mirror;
    char key[OBJECTS_KEY_MAX + 1];

    (void) info;
    ahead->call = NULL;
    if (failure && failure->code == ERR_TOO_LARGE && !mirror->failed) {
        mirror_key(key, mirror->prefix, mirror->manifest, &ahead->entry);
        get_file(ahead, key);
        end(mirror);
        return;
    }
    if (failure) {
        fail(mirror, failure);
        end(mirror);
        return;
    }
    ahead->bytes = length ? mem_copy_bytes(bytes, length) : NULL;
    ahead->size = length;
    ahead->is_ready = true;
    go_on(mirror);
}

static void get_content(struct ahead *ahead)
{
    struct mirror *mirror = ahead->mirror;
    char key[OBJECTS_KEY_MAX + 1];

    if (ahead->entry.type != MIRROR_FILE) {
        ahead->is_ready = true;
        return;
    }
    mirror_key(key, mirror->prefix, mirror->manifest, &ahead->entry);
    if (ahead->entry.size > SMALL_MAX)
        get_file(ahead, key);
    else
        ahead->call =
            objects_get_bytes(mirror->work.mover->objects, key, NULL, NULL, bytes_got, ahead);
}

static void look_ahead(struct mirror *mirror)
{
    struct error err = ERROR_INIT;
    const char *line;
    size_t length;

    while (mirror->count < AHEAD_MAX && !mirror->is_listed && !mirror->failed) {
        struct ahead *ahead = &mirror->ahead[(mirror->first + mirror->count) % AHEAD_MAX];

        if (!mirror_next_line(&mirror->cursor, &line, &length)) {
            mirror->is_listed = true;
            return;
        }
        if (mirror_entry_read(&ahead->entry, line, length, &err) < 0) {
            fail(mirror, &err);
            return;
        }
        mirror->count++;
        get_content(ahead);
    }
}

/* --- writing --------------------------------------------------------------------------------- */

static void drop_first(struct mirror *mirror)
{
    struct ahead *ahead = &mirror->ahead[mirror->first];

    if (ahead->entry.type == MIRROR_FILE) {
        mirror->files++;
        mirror->bytes += ahead->size;
        mirror->work.progress.files = mirror->files;
        mirror->work.progress.bytes = mirror->work.progress.stored_bytes = mirror->bytes;
        work_tell(&mirror->work);
    }
    tar_padding_append(&mirror->out, ahead->entry.type == MIRROR_FILE ? ahead->size : 0);
    ahead_clear(ahead);
    mirror->read_done = 0;
    mirror->first = (mirror->first + 1) % AHEAD_MAX;
    mirror->count--;
}

static void chunk_read(uv_fs_t *request)
{
    struct mirror *mirror = request->data;
    struct ahead *ahead = &mirror->ahead[mirror->first];
    ssize_t got = request->result;
    struct error err = ERROR_INIT;

    uv_fs_req_cleanup(request);
    mirror->is_reading = false;
    if (got <= 0 && !mirror->failed) {
        (void) error_set(&err, ERR_INTERNAL, (int) got, "read a file that was fetched");
        fail(mirror, &err);
    }
    if (mirror->failed) {
        end(mirror);
        return;
    }
    text_append_bytes(&mirror->out, mirror->chunk, (size_t) got);
    mirror->read_done += (uint64_t) got;
    if (mirror->read_done == ahead->size)
        drop_first(mirror);
    go_on(mirror);
}

static void read_chunk(struct mirror *mirror, const struct ahead *ahead)
{
    uint64_t left = ahead->size - mirror->read_done;
    uv_buf_t bytes = uv_buf_init(mirror->chunk, (unsigned int) (left < CHUNK ? left : CHUNK));
    struct error err = ERROR_INIT;

    mirror->read.data = mirror;
    mirror->is_reading = true;
    if (uv_fs_read(&mirror->work.mover->loop->uv, &mirror->read, ahead->file, &bytes, 1,
                   (int64_t) mirror->read_done, chunk_read) == 0)
        return;
    mirror->is_reading = false;
    (void) error_set(&err, ERR_INTERNAL, 0, "read a file that was fetched");
    fail(mirror, &err);
}

/* Fill `out`, which is empty, with what comes next; false when there is nothing yet. */
static bool refill(struct mirror *mirror)
{
    struct ahead *ahead = &mirror->ahead[mirror->first];

    text_clear(&mirror->out);
    mirror->out_done = 0;
    if (!mirror->count && mirror->is_listed && !mirror->is_ended) {
        tar_end_append(&mirror->out);
        mirror->is_ended = true;
        return true;
    }
    if (!mirror->count || !ahead->is_ready)
        return false;
    if (mirror->read_done == 0 &&
        !mirror_entry_append_tar(&mirror->out, &ahead->entry, ahead->size)) {
        drop_first(mirror);
        return true;
    }
    if (ahead->file >= 0 && ahead->size) {
        read_chunk(mirror, ahead);
        return false;
    }
    if (ahead->bytes)
        text_append_bytes(&mirror->out, ahead->bytes, (size_t) ahead->size);
    drop_first(mirror);
    return true;
}

static void write_out(struct mirror *mirror)
{
    struct error err = ERROR_INIT;
    ssize_t put = write(mirror->tar, mirror->out.data + mirror->out_done,
                        mirror->out.length - mirror->out_done);

    if (put >= 0) {
        mirror->out_done += (size_t) put;
    } else if (errno != EAGAIN && errno != EINTR) {
        /* The agent stopped reading: its own answer says why, and comes soon. */
        if (errno != EPIPE) {
            (void) error_set(&err, ERR_INTERNAL, errno, "write to the agent");
            fail(mirror, &err);
        }
        stop_writing(mirror);
    }
}

static void writable(uv_poll_t *poll, int status, int events)
{
    struct mirror *mirror = poll->data;

    (void) status, (void) events;
    write_out(mirror);
    go_on(mirror);
}

/* Whatever can be done now. */
static void go_on(struct mirror *mirror)
{
    bool has_more = true;

    look_ahead(mirror);
    if (mirror->failed || !mirror->is_polling || uv_is_closing((uv_handle_t *) &mirror->poll)) {
        end(mirror);
        return;
    }
    while (has_more && !mirror->is_reading && mirror->out_done == mirror->out.length &&
           !mirror->failed) {
        if (mirror->is_ended) {
            stop_writing(mirror);
            return;
        }
        has_more = refill(mirror);
        look_ahead(mirror);
    }
    if (mirror->out_done < mirror->out.length && !mirror->is_reading && !mirror->failed)
        (void) uv_poll_start(&mirror->poll, UV_WRITABLE, writable);
    else if (!mirror->failed)
        (void) uv_poll_stop(&mirror->poll);
}

/* --- its beginning --------------------------------------------------------------------------- */

static int open_stream(struct mirror *mirror, int *ret_reader)
{
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_reader = ends[0];
    mirror->tar = ends[1];
    r = sys_file_set_nonblocking(mirror->tar, true);
    if (r == 0)
        r = uv_poll_init(&mirror->work.mover->loop->uv, &mirror->poll, mirror->tar);
    mirror->poll.data = mirror;
    mirror->is_polling = r == 0;
    return r;
}

static void start(struct mirror *mirror)
{
    const struct inside *inside = mirror->work.mover->inside;
    AUTO(close) int reader = -EBADF;
    int r = open_stream(mirror, &reader);

    if (r < 0) {
        mirror->tar = fd_close(mirror->tar);
        work_fail(&mirror->work, error_code_from_errno(r), r, "make a pipe");
        return;
    }
    mirror->cursor = (struct mirror_cursor){.text = &mirror->list};
    mirror->is_started = true;
    inside->extract(inside->self, &mirror->sandbox, mirror->folder, reader, extracted, mirror);
    go_on(mirror);
}

static void list_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct mirror *mirror = context;
    char *place;

    mirror->work.call = NULL;
    if (failure) {
        work_end(&mirror->work, failure);
        return;
    }
    place = text_reserve(&mirror->list, (size_t) info->size);
    if (!place || sys_file_pread_full(mirror->work.file, place, (size_t) info->size, 0) !=
                      (ssize_t) info->size) {
        work_fail(&mirror->work, ERR_TOO_LARGE, 0, "the list of the mirror cannot be read");
        return;
    }
    text_commit(&mirror->list, (size_t) info->size);
    mirror->work.file = fd_close(mirror->work.file);
    if (work_goes_on(&mirror->work))
        start(mirror);
}

void mover_restore_mirror(void *self, const struct vault_mirror *what, vault_progressed *progressed,
                          vault_mirror_done *done, void *context)
{
    struct mover *mover = self;
    struct mirror *mirror = mem_alloc(sizeof(*mirror));

    mirror->prefix = mem_copy_text(what->prefix);
    mirror->manifest = mem_copy_text(what->manifest);
    mirror->folder = mem_copy_text(what->folder);
    mirror->sandbox = what->sandbox;
    mirror->tar = -EBADF;
    mirror->list = (struct text) TEXT_INIT(MOVER_LIST_MAX);
    mirror->out = (struct text) TEXT_INIT(OBJECTS_BYTES_MAX + HEAD_MAX + CHUNK);
    mirror->chunk = mem_alloc(CHUNK);
    mirror->work.progressed = progressed;
    mirror->done = done;
    mirror->work.context = context;
    for (size_t i = 0; i < AHEAD_MAX; i++)
        mirror->ahead[i] =
            (struct ahead){.mirror = mirror, .entry = MIRROR_ENTRY_INIT, .file = -EBADF};
    if (!work_begin(&mirror->work, mover, mirror_finished, mirror_cancel))
        return;
    mirror->work.file = work_open_file(&mirror->work);
    if (work_goes_on(&mirror->work))
        mirror->work.call = objects_get_file(mover->objects, mirror->manifest, mirror->work.file,
                                             NULL, list_got, mirror);
}
