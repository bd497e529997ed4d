/* Disks as layers: what differs from a base becomes an object, and a list of objects a disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "vault/mover_internal.h"

#define KEY_SIZE  128
#define PIPE_SIZE (1 << 20)

static void layer_key(char ret_key[static KEY_SIZE], const struct id *owner, const char *layer)
{
    (void) snprintf(ret_key, KEY_SIZE, "layers/%s/%s", owner->text, layer);
}

/* What pack and unpack end with. */
static int read_layer(const char *line, size_t length, struct vault_layer *ret_layer,
                      struct error *err)
{
    AUTO(outcome) struct outcome told = {.root = NULL};
    uint8_t id[VAULT_SUM_SIZE];

    if (outcome_read(&told, line, length, "layer", err) < 0 ||
        outcome_sum(&told, "id", id, err) < 0 ||
        outcome_sum(&told, "sha256", ret_layer->sum, err) < 0 ||
        outcome_count(&told, "size", &ret_layer->size, err) < 0 ||
        outcome_count(&told, "bytes", &ret_layer->bytes, err) < 0)
        return -1;
    (void) hex_encode(id, sizeof(id), ret_layer->id);
    return 0;
}

/* --- store ----------------------------------------------------------------------------------- */

struct storing {
    struct work work;
    struct provider_disk_job job;
    struct id owner;
    char key[KEY_SIZE];
    struct vault_layer layer;
    vault_layer_done *done;
};

static void storing_finished(struct work *work, const struct error *failure)
{
    struct storing *storing = CONTAINER_OF(work, struct storing, work);

    storing->done(storing->work.context, failure, failure ? NULL : &storing->layer);
    free(storing);
}

/* The same content may have been compressed otherwise by another version: then the object that is
 * there counts. One without a sum could be anything, and is replaced. */
static void storing_looked(void *context, const struct error *failure,
                           const struct object_info *info)
{
    struct storing *storing = context;

    storing->work.call = NULL;
    if (failure && failure->code != ERR_NOT_FOUND) {
        work_end(&storing->work, failure);
        return;
    }
    if (!failure && info->has_sum) {
        storing->layer.size = info->size;
        memcpy(storing->layer.sum, info->sum, VAULT_SUM_SIZE);
        work_end(&storing->work, NULL);
        return;
    }
    storing->layer.is_new = true;
    work_put(&storing->work, storing->key, storing->layer.size, storing->layer.sum);
}

static void storing_packed(void *context, const struct error *failure, const char *outcome,
                           size_t length)
{
    struct storing *storing = context;
    struct error err = ERROR_INIT;

    if (!failure && read_layer(outcome, length, &storing->layer, &err) < 0)
        failure = &err;
    if (failure) {
        work_end(&storing->work, failure);
        return;
    }
    storing->work.progress.bytes = storing->layer.bytes;
    layer_key(storing->key, &storing->owner, storing->layer.id);
    if (work_goes_on(&storing->work))
        storing->work.call =
            objects_head(storing->work.mover->objects, storing->key, storing_looked, storing);
}

static void storing_pack(struct work *work)
{
    struct storing *storing = CONTAINER_OF(work, struct storing, work);

    storing->job.data = work->file = work_open_file(work);
    if (work_goes_on(work))
        work_run(work, &storing->job, NULL, storing_packed);
}

void mover_store_disk(void *self, const struct vault_asker *asker, const struct disk_ref *disk,
                      const struct disk_ref *base, vault_progressed *progressed,
                      vault_layer_done *done, void *context)
{
    struct storing *storing = mem_alloc(sizeof(*storing));

    storing->job = (struct provider_disk_job){.kind = DISK_JOB_PACK, .on = *disk, .input = -EBADF};
    if (base)
        storing->job.base = *base;
    storing->owner = asker->who.owner;
    storing->work.progressed = progressed;
    storing->done = done;
    storing->work.context = context;
    work_begin_in_turn(&storing->work, self, asker, storing_finished, NULL, storing_pack);
}

/* --- fetch ----------------------------------------------------------------------------------- */

/* Objects go through one pipe into one keeper, layer behind layer, which tells a line for each. */
struct fetching {
    struct work work;
    struct id owner;
    struct provider_disk_job job; /* of the keeper; target and limit */
    struct vault_layer *layers;   /* owned */
    size_t count, sent, told;     /* all; in the pipe; unpacked */
    int pipe;                     /* owned: its end that the store writes to */
    bool is_waiting;              /* for a thread of the store, though it is its turn */
    bool is_streaming;            /* one of mover->fetching */
    bool is_unpacking;            /* the keeper has not ended */
    bool has_disk;                /* there is one, half filled until the end */
    bool has_failed;
    struct error why;
    vault_done *done;
};

static void stream_layers(struct fetching *fetching);

/* The next one has its turn. */
static void fetching_finished(struct work *work, const struct error *failure)
{
    struct fetching *fetching = CONTAINER_OF(work, struct fetching, work);
    struct mover *mover = work->mover;

    mover->fetching -= fetching->is_streaming;
    LIST_EACH (&mover->works, at) {
        struct fetching *other = CONTAINER_OF(at, struct fetching, work.link);

        if (other->work.finish == fetching_finished && other->is_waiting && !other->work.is_over &&
            mover->fetching < MOVER_FETCHES_MAX)
            stream_layers(other);
    }
    fetching->done(fetching->work.context, failure);
    free(fetching->layers);
    free(fetching);
}

static void fetching_cancel(struct work *work)
{
    if (CONTAINER_OF(work, struct fetching, work)->is_waiting)
        (void) work_goes_on(work);
}

static void half_is_gone(void *context, const struct error *failure)
{
    struct fetching *fetching = context;

    /* Nobody was promised that disk, so recovery takes it away. */
    if (failure)
        LOG_WARNING(fetching->work.mover->log, "a disk that is half fetched cannot be deleted",
                    log_text("disk", fetching->job.target.text),
                    log_text("reason", failure->message));
    work_end(&fetching->work, &fetching->why);
}

/* The first failure counts, but that the keeper has gone is told by the keeper itself. */
static void fetching_fail(struct fetching *fetching, const struct error *failure, size_t layer)
{
    if (fetching->has_failed || failure->system == EPIPE)
        return;
    fetching->has_failed = true;
    fetching->why = *failure;
    if (fetching->count)
        error_prefix(&fetching->why, "layer %zu of %zu", layer + 1, fetching->count);
}

/* Keeper and store have both ended. */
static void fetching_end(struct fetching *fetching)
{
    if (fetching->is_unpacking || fetching->work.call)
        return;
    if (!fetching->has_failed)
        work_end(&fetching->work, NULL);
    else if (fetching->has_disk)
        provider_destroy(fetching->work.mover->provider, &fetching->job.target, half_is_gone,
                         fetching);
    else
        work_end(&fetching->work, &fetching->why);
}

/* --- into the pipe --- */

static void stream_next(struct fetching *fetching);

static void layer_streamed(void *context, const struct error *failure,
                           const struct object_info *info)
{
    struct fetching *fetching = context;

    fetching->work.call = NULL;
    if (failure) {
        fetching_fail(fetching, failure, fetching->sent);
        fetching->pipe = fd_close(fetching->pipe);
        fetching_end(fetching);
        return;
    }
    CRASH_POINT("restore.layer");
    fetching->work.progress.stored_bytes += info->size;
    work_tell(&fetching->work);
    fetching->sent++;
    stream_next(fetching);
}

/* At the end of the last one, and when it cannot go on, the keeper sees the end of its input. */
static void stream_next(struct fetching *fetching)
{
    struct mover *mover = fetching->work.mover;
    const struct vault_layer *layer = &fetching->layers[fetching->sent];
    struct error err = ERROR_INIT;
    char key[KEY_SIZE];

    if (mover->is_closing) {
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "the service is stopping");
        fetching_fail(fetching, &err, fetching->sent);
    }
    if (fetching->has_failed || fetching->sent == fetching->count) {
        fetching->pipe = fd_close(fetching->pipe);
        fetching_end(fetching);
        return;
    }
    layer_key(key, &fetching->owner, layer->id);
    fetching->work.call =
        objects_get_file(mover->objects, key, fetching->pipe, layer->sum, layer_streamed, fetching);
}

/* --- out of the keeper --- */

static void layer_told(void *context, const char *line, size_t length)
{
    struct fetching *fetching = context;
    struct vault_layer told = {.size = 0};
    struct error err = ERROR_INIT;

    if (fetching->told == fetching->count)
        (void) error_set(&err, ERR_UPSTREAM, 0, "the keeper told of more layers than there are");
    else if (read_layer(line, length, &told, &err) == 0 &&
             strcmp(told.id, fetching->layers[fetching->told].id) != 0)
        (void) error_set(&err, ERR_UPSTREAM, 0, "the object holds another layer");
    if (err.code != ERR_NONE)
        fetching_fail(fetching, &err, fetching->told);
    fetching->work.progress.bytes += told.bytes;
    fetching->told++;
}

/* A job that fails takes its new disk along, but not one that was there. */
static void layers_unpacked(void *context, const struct error *failure, const char *outcome,
                            size_t length)
{
    struct fetching *fetching = context;
    struct error err = failure ? *failure : (struct error) ERROR_INIT;

    fetching->is_unpacking = false;
    fetching->has_disk |= !failure;
    /* What we put there ourselves and cannot be unpacked is the store's fault. */
    if (err.code == ERR_INVALID)
        err.code = ERR_UPSTREAM;
    if (!failure)
        layer_told(fetching, outcome, length);
    if (!failure && fetching->told < fetching->count)
        (void) error_set(&err, ERR_UPSTREAM, 0, "the keeper has not seen it");
    if (err.code != ERR_NONE)
        fetching_fail(fetching, &err, fetching->told);
    if (fetching->work.call)
        objects_cancel(fetching->work.call);
    fetching_end(fetching);
}

static void unpack_layers(struct fetching *fetching)
{
    struct error err = ERROR_INIT;
    int ends[2];

    if (fetching->count == 0) {
        fetching_end(fetching);
        return;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void) error_set(&err, error_code_from_errno(errno), errno, "make a pipe for layers");
        fetching_fail(fetching, &err, 0);
        fetching_end(fetching);
        return;
    }
    /* Without these there are more turns. */
    (void) sys_file_set_nonblocking(ends[1], true);
    (void) fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
    fetching->pipe = ends[1];
    fetching->job.kind = DISK_JOB_UNPACK;
    fetching->job.input = ends[0];
    fetching->is_unpacking = true;
    work_run(&fetching->work, &fetching->job, layer_told, layers_unpacked);
    (void) fd_close(ends[0]);
    stream_next(fetching);
}

static int check_layers(const struct vault_layer *layers, size_t count, bool has_start,
                        struct error *err)
{
    uint8_t id[VAULT_SUM_SIZE];

    if ((count == 0 && !has_start) || count > MOVER_LAYERS_MAX)
        return error_set(err, ERR_INVALID, 0, "a disk has 1 to %d layers", MOVER_LAYERS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!memchr(layers[i].id, '\0', sizeof(layers[i].id)) || sum_from_hex(layers[i].id, id) < 0)
            return error_set(err, ERR_INVALID, 0, "not the id of a layer");
    }
    return 0;
}

/* --- what it begins as --- */

static void start_copied(void *context, const struct error *failure, const char *outcome,
                         size_t length)
{
    struct fetching *fetching = context;

    (void) outcome, (void) length;
    fetching->has_disk = !failure; /* a job that fails takes its new disk along */
    fetching->job.on = (struct disk_ref){.id.text = ""};
    if (failure) {
        fetching_fail(fetching, failure, 0);
        fetching_end(fetching);
    } else {
        unpack_layers(fetching);
    }
}

static void stream_layers(struct fetching *fetching)
{
    fetching->is_waiting = false;
    fetching->is_streaming = true;
    fetching->work.mover->fetching++;
    if (fetching->job.on.id.text[0])
        work_run(&fetching->work, &fetching->job, NULL, start_copied);
    else
        unpack_layers(fetching);
}

static void fetching_has_turn(struct work *work)
{
    struct fetching *fetching = CONTAINER_OF(work, struct fetching, work);

    if (work->mover->fetching < MOVER_FETCHES_MAX)
        stream_layers(fetching);
    else
        fetching->is_waiting = true;
}

void mover_fetch_disk(void *self, const struct vault_fetch *what, vault_progressed *progressed,
                      vault_done *done, void *context)
{
    struct fetching *fetching = mem_alloc(sizeof(*fetching));
    struct error err = ERROR_INIT;
    bool is_good = check_layers(what->layers, what->count, what->start.id.text[0], &err) == 0;

    *fetching = (struct fetching){.owner = what->asker.who.owner,
                                  .job = {.kind = DISK_JOB_COPY,
                                          .on = what->start,
                                          .target = what->target,
                                          .disk_bytes = what->disk_bytes,
                                          .input = -EBADF,
                                          .data = -EBADF},
                                  .pipe = -EBADF,
                                  .done = done,
                                  .work = {.progressed = progressed, .context = context}};
    if (!is_good) {
        if (work_begin(&fetching->work, self, fetching_finished, NULL))
            work_end(&fetching->work, &err);
        return;
    }
    fetching->layers = mem_alloc_array(what->count + 1, sizeof(*what->layers));
    for (; fetching->count < what->count; fetching->count++)
        fetching->layers[fetching->count] = what->layers[fetching->count];
    work_begin_in_turn(&fetching->work, self, &what->asker, fetching_finished, fetching_cancel,
                       fetching_has_turn);
}
