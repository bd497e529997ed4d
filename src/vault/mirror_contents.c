#include "vault/mirror_contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Length of a frame whose file is not there. */
#define MISSING UINT64_MAX

/* In one turn of the loop. */
#define BYTES_PER_TURN ((size_t) 512 << 10)

/* --- its end --------------------------------------------------------------------------------- */

static void end(struct contents *contents)
{
    if (!contents->is_reported || !contents->is_closed || contents->put_count ||
        contents->is_writing)
        return;
    if (!contents->failed && contents->has_file) {
        contents->failed = true;
        (void) error_set(&contents->failure, ERR_UPSTREAM, 0, "the keeper ended before '%.200s'",
                         contents->file.key);
    }
    free(TAKE_PTR(contents->buffer));
    contents->spool = fd_close(contents->spool);
    contents->is_closed = false; /* over: a cancel has nothing to do */
    contents->is_reported = false;
    contents->source.done(contents->source.context, contents->failed ? &contents->failure : NULL);
}

static void poll_closed(uv_handle_t *handle)
{
    struct contents *contents = handle->data;

    contents->data = fd_close(contents->data);
    contents->is_closed = true;
    end(contents);
}

static void stop_reading(struct contents *contents)
{
    if (contents->data >= 0 && !uv_is_closing((uv_handle_t *) &contents->poll))
        uv_close((uv_handle_t *) &contents->poll, poll_closed);
}

static void fail(struct contents *contents, const struct error *failure)
{
    if (!contents->failed) {
        contents->failed = true;
        contents->failure = *failure;
    }
    report_cancel(&contents->report);
    stop_reading(contents);
}

static void fail_with(struct contents *contents, enum err_code code, int system, const char *why)
{
    struct error err = ERROR_INIT;

    (void) error_set(&err, code, system, "%s '%.200s'", why, contents->file.key);
    fail(contents, &err);
}

void contents_cancel(struct contents *contents)
{
    struct error err = ERROR_INIT;

    if (contents->data < 0 && !contents->report.is_running && !contents->put_count)
        return;
    (void) error_set(&err, ERR_CANCELLED, 0, "it was cancelled");
    for (size_t i = 0; i < CONTENTS_PUTS_MAX; i++) {
        if (contents->puts[i].call)
            objects_cancel(contents->puts[i].call);
    }
    fail(contents, &err);
}

/* --- putting --------------------------------------------------------------------------------- */

static void read_on(struct contents *contents);

static void put_done(void *context, const struct error *failure, const struct object_info *info)
{
    struct contents_put *put = context;
    struct contents *contents = put->contents;
    struct error err = ERROR_INIT;

    put->call = NULL;
    contents->put_count--;
    if (!failure && (info->size != put->size ||
                     (info->has_sum && memcmp(info->sum, put->sum, VAULT_SUM_SIZE) != 0))) {
        (void) error_set(&err, ERR_UPSTREAM, 0, "a file is not what the keeper told");
        failure = &err;
    }
    if (failure)
        fail(contents, failure);
    else
        contents->source.put(contents->source.context, put->size);
    read_on(contents);
    end(contents);
}

/* There is a free one: reading stops before there is none. */
static struct contents_put *take_put(struct contents *contents)
{
    struct contents_put *put = contents->puts;

    while (put->call)
        put++;
    *put = (struct contents_put){.contents = contents, .size = contents->file.size};
    memcpy(put->sum, contents->file.sum, VAULT_SUM_SIZE);
    contents->put_count++;
    return put;
}

static void next_file(struct contents *contents)
{
    contents->header_length = 0;
    contents->got = 0;
    contents->has_file = contents->source.next(contents->source.context, &contents->file);
}

/* All of a file has come. */
static void put_file(struct contents *contents)
{
    struct objects *objects = contents->mover->objects;
    struct contents_put *put = take_put(contents);

    if (contents->spool >= 0) {
        put->call =
            objects_put_file(objects, contents->file.key, contents->spool, NULL, put_done, put);
        contents->spool = fd_close(contents->spool);
    } else {
        put->call = objects_put_bytes(objects, contents->file.key, contents->buffer,
                                      (size_t) contents->file.size, NULL, put_done, put);
    }
    next_file(contents);
}

/* --- larger files ---------------------------------------------------------------------------- */

static void write_chunk(struct contents *contents);

static void chunk_written(uv_fs_t *request)
{
    struct contents *contents = request->data;
    ssize_t result = request->result;

    uv_fs_req_cleanup(request);
    contents->is_writing = false;
    if (result <= 0)
        fail_with(contents, error_code_from_errno((int) result), (int) result, "keep");
    if (contents->failed) {
        end(contents);
        return;
    }
    contents->written += (size_t) result;
    if (contents->written < contents->chunk) {
        write_chunk(contents);
        return;
    }
    contents->got += contents->chunk;
    if (contents->got == contents->file.size)
        put_file(contents);
    read_on(contents);
}

static void write_chunk(struct contents *contents)
{
    uv_buf_t bytes = uv_buf_init(contents->buffer + contents->written,
                                 (unsigned int) (contents->chunk - contents->written));

    contents->is_writing = true;
    contents->write.data = contents;
    if (uv_fs_write(&contents->mover->loop->uv, &contents->write, contents->spool, &bytes, 1,
                    (int64_t) (contents->got + contents->written), chunk_written) == 0)
        return;
    contents->is_writing = false;
    fail_with(contents, ERR_INTERNAL, 0, "keep");
}

/* --- frames ---------------------------------------------------------------------------------- */

/* Up to `wanted` bytes: their number, 0 when there are none now, -1 when it is over. */
static ssize_t take(struct contents *contents, void *bytes, size_t wanted)
{
    ssize_t got = read(contents->data, bytes, wanted);

    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    stop_reading(contents); /* the end: the job's outcome tells why, if it is too early */
    return -1;
}

static ssize_t take_header(struct contents *contents)
{
    size_t wanted = sizeof(contents->header) - contents->header_length;
    ssize_t got = take(contents, contents->header + contents->header_length, wanted);
    uint64_t length = 0;
    struct error err = ERROR_INIT;

    if (got <= 0)
        return got;
    contents->header_length += (size_t) got;
    if ((size_t) got < wanted)
        return got;
    for (size_t i = 0; i < sizeof(contents->header); i++)
        length |= (uint64_t) contents->header[i] << 8 * i;
    if (length != contents->file.size) {
        fail_with(contents, ERR_UPSTREAM, 0,
                  length == MISSING ? "missing now:" : "of another length now:");
        return -1;
    }
    if (length > CONTENTS_SMALL_MAX) {
        contents->spool = mover_open_file(contents->mover, &err);
        if (contents->spool < 0) {
            contents->spool = -EBADF;
            fail(contents, &err);
            return -1;
        }
    }
    return got;
}

static ssize_t take_content(struct contents *contents)
{
    uint64_t left = contents->file.size - contents->got;
    ssize_t got;

    if (contents->spool < 0) {
        got = left ? take(contents, contents->buffer + contents->got, (size_t) left) : 1;
        if (got > 0 && left)
            contents->got += (uint64_t) got;
        if (got > 0 && contents->got == contents->file.size)
            put_file(contents);
        return got;
    }
    got = take(contents, contents->buffer, left < CONTENTS_CHUNK ? (size_t) left : CONTENTS_CHUNK);
    if (got > 0) {
        contents->chunk = (size_t) got;
        contents->written = 0;
        write_chunk(contents);
    }
    return got;
}

static void readable(uv_poll_t *poll, int status, int events)
{
    struct contents *contents = poll->data;
    size_t total = 0;
    ssize_t got = 1;

    (void) status, (void) events;
    while (got > 0 && total < BYTES_PER_TURN && contents->has_file && !contents->failed &&
           !contents->is_writing && contents->put_count < CONTENTS_PUTS_MAX) {
        got = contents->header_length < sizeof(contents->header) ? take_header(contents)
                                                                 : take_content(contents);
        if (got > 0)
            total += (size_t) got;
    }
    read_on(contents);
}

/* Read, unless something is in the way. Behind the last file there is only the end. */
static void read_on(struct contents *contents)
{
    if (contents->data < 0 || uv_is_closing((uv_handle_t *) &contents->poll))
        return;
    if (!contents->has_file)
        stop_reading(contents);
    else if (contents->failed || contents->is_writing || contents->put_count == CONTENTS_PUTS_MAX)
        (void) uv_poll_stop(&contents->poll);
    else
        (void) uv_poll_start(&contents->poll, UV_READABLE, readable);
}

/* --- its beginning --------------------------------------------------------------------------- */

static void reported(void *context, const struct error *failure, const char *outcome, size_t length)
{
    struct contents *contents = context;

    (void) outcome, (void) length;
    contents->is_reported = true;
    /* With nobody left to read, the keeper was cut off by us: all had come by then. */
    if (failure && (contents->has_file || failure->code != ERR_CANCELLED))
        fail(contents, failure);
    end(contents);
}

static int open_data(struct contents *contents, int *ret_writer)
{
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_writer = ends[1];
    contents->data = ends[0];
    r = sys_file_set_nonblocking(ends[0], true);
    if (r == 0)
        r = uv_poll_init(&contents->mover->loop->uv, &contents->poll, ends[0]);
    if (r < 0)
        contents->data = fd_close(contents->data);
    contents->poll.data = contents;
    return r;
}

void contents_run(struct contents *contents, struct mover *mover,
                  const struct provider_disk_job *job, const struct contents_source *source)
{
    struct provider_disk_job with_data = *job;
    AUTO(close) int writer = -EBADF;
    struct error err = ERROR_INIT;
    int r;

    *contents =
        (struct contents){.mover = mover, .source = *source, .data = -EBADF, .spool = -EBADF};
    r = open_data(contents, &writer);
    if (r < 0) {
        /* The job then has nowhere to write to, and is refused: that answer comes from the loop. */
        contents->is_closed = true;
        (void) error_set(&err, error_code_from_errno(r), r, "make a pipe for a job");
        contents->failed = true;
        contents->failure = err;
    }
    contents->buffer = mem_alloc((size_t) CONTENTS_SMALL_MAX);
    next_file(contents);
    with_data.data = writer;
    report_run(&contents->report, mover->loop, mover->provider, &with_data, NULL, reported,
               contents);
    read_on(contents);
}
