/* Disks as layers: what differs from a base becomes an object, and a list of objects a disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "base/memory.h"
#include "vault/mover_internal.h"

#define KEY_SIZE 128

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
    struct report report;
    struct objects_call *call;
    struct id owner;
    char key[KEY_SIZE];
    int file;
    struct vault_layer layer;
    struct vault_progress progress;
    vault_progressed *progressed;
    vault_layer_done *done;
    void *context;
};

static void storing_finished(struct work *work, const struct error *failure)
{
    struct storing *storing = CONTAINER_OF(work, struct storing, work);

    storing->done(storing->context, failure, failure ? NULL : &storing->layer);
    storing->file = fd_close(storing->file);
    free(storing);
}

static void storing_cancel(struct work *work)
{
    struct storing *storing = CONTAINER_OF(work, struct storing, work);

    report_cancel(&storing->report);
    if (storing->call)
        objects_cancel(storing->call);
}

static void storing_put_progress(void *context, uint64_t done_bytes)
{
    struct storing *storing = context;

    storing->progress.stored_bytes = done_bytes;
    if (storing->progressed)
        storing->progressed(storing->context, &storing->progress);
}

static void storing_put(void *context, const struct error *failure, const struct object_info *info)
{
    struct storing *storing = context;
    struct error err = ERROR_INIT;

    storing->call = NULL;
    storing->layer.is_new = true;
    if (!failure &&
        (info->size != storing->layer.size ||
         (info->has_sum && memcmp(info->sum, storing->layer.sum, VAULT_SUM_SIZE) != 0))) {
        (void) error_set(&err, ERR_UPSTREAM, 0, "the layer is not what the keeper told");
        failure = &err;
    }
    work_end(&storing->work, failure);
}

/* The same content may have been compressed otherwise by another version: then the object that is
 * there counts. One without a sum could be anything, and is replaced. */
static void storing_looked(void *context, const struct error *failure,
                           const struct object_info *info)
{
    struct storing *storing = context;
    struct object_put_options options = {.progress = storing_put_progress};

    storing->call = NULL;
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
    if (work_goes_on(&storing->work))
        storing->call = objects_put_file(storing->work.mover->objects, storing->key, storing->file,
                                         &options, storing_put, storing);
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
    storing->progress.bytes = storing->layer.bytes;
    layer_key(storing->key, &storing->owner, storing->layer.id);
    if (work_goes_on(&storing->work))
        storing->call =
            objects_head(storing->work.mover->objects, storing->key, storing_looked, storing);
}

void mover_store_disk(void *self, const struct disk_ref *disk, const struct disk_ref *base,
                      const struct id *owner, vault_progressed *progressed, vault_layer_done *done,
                      void *context)
{
    struct mover *mover = self;
    struct storing *storing = mem_alloc(sizeof(*storing));
    struct provider_disk_job job = {.kind = DISK_JOB_PACK, .on = *disk, .input = -EBADF};

    storing->owner = *owner;
    storing->file = -EBADF;
    storing->progressed = progressed;
    storing->done = done;
    storing->context = context;
    if (!work_begin(&storing->work, mover, storing_finished, storing_cancel))
        return;
    if (base)
        job.base = *base;
    job.data = storing->file = work_open_file(&storing->work);
    if (work_goes_on(&storing->work))
        report_run(&storing->report, mover->loop, mover->provider, &job, NULL, storing_packed,
                   storing);
}

/* --- fetch ----------------------------------------------------------------------------------- */

struct fetching {
    struct work work;
    struct report report;
    struct objects_call *call;
    struct id owner, target;
    uint64_t disk_bytes;
    struct vault_layer *layers; /* owned */
    size_t count, next;
    int file;
    bool has_disk; /* there is one, half filled until the end */
    struct error why;
    struct vault_progress progress;
    vault_progressed *progressed;
    vault_done *done;
    void *context;
};

static void fetching_finished(struct work *work, const struct error *failure)
{
    struct fetching *fetching = CONTAINER_OF(work, struct fetching, work);

    fetching->done(fetching->context, failure);
    fetching->file = fd_close(fetching->file);
    free(fetching->layers);
    free(fetching);
}

static void fetching_cancel(struct work *work)
{
    struct fetching *fetching = CONTAINER_OF(work, struct fetching, work);

    report_cancel(&fetching->report);
    if (fetching->call)
        objects_cancel(fetching->call);
}

static void half_is_gone(void *context, const struct error *failure)
{
    struct fetching *fetching = context;

    /* Nobody was promised that disk, so recovery takes it away. */
    if (failure)
        LOG_WARNING(fetching->work.mover->log, "a disk that is half fetched cannot be deleted",
                    log_text("disk", fetching->target.text), log_text("reason", failure->message));
    work_end(&fetching->work, &fetching->why);
}

static void fetching_fail(struct fetching *fetching, const struct error *failure)
{
    fetching->why = *failure;
    if (fetching->count)
        error_prefix(&fetching->why, "layer %zu of %zu", fetching->next + 1, fetching->count);
    if (fetching->has_disk)
        provider_destroy(fetching->work.mover->provider, &fetching->target, half_is_gone, fetching);
    else
        work_end(&fetching->work, &fetching->why);
}

static void fetch_next(struct fetching *fetching);

static void layer_unpacked(void *context, const struct error *failure, const char *outcome,
                           size_t length)
{
    struct fetching *fetching = context;
    struct vault_layer told = {.size = 0};
    struct error err = ERROR_INIT;

    /* A first job that fails takes its new disk along. */
    if (!failure) {
        fetching->has_disk = true;
        if (read_layer(outcome, length, &told, &err) < 0)
            failure = &err;
        else if (strcmp(told.id, fetching->layers[fetching->next].id) != 0) {
            (void) error_set(&err, ERR_UPSTREAM, 0, "the object holds another layer");
            failure = &err;
        }
    }
    if (failure) {
        fetching_fail(fetching, failure);
        return;
    }
    fetching->progress.bytes += told.bytes;
    fetching->file = fd_close(fetching->file);
    fetching->next++;
    fetch_next(fetching);
}

static void layer_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct fetching *fetching = context;
    struct mover *mover = fetching->work.mover;
    struct provider_disk_job job = {.kind = DISK_JOB_UNPACK,
                                    .target = fetching->target,
                                    .disk_bytes = fetching->disk_bytes,
                                    .input = fetching->file,
                                    .data = -EBADF};
    struct error err = ERROR_INIT;

    fetching->call = NULL;
    if (!failure && lseek(fetching->file, 0, SEEK_SET) < 0) {
        (void) error_set(&err, ERR_INTERNAL, errno, "go to the start of a file");
        failure = &err;
    }
    if (failure) {
        fetching_fail(fetching, failure);
        return;
    }
    fetching->progress.stored_bytes += info->size;
    if (fetching->progressed)
        fetching->progressed(fetching->context, &fetching->progress);
    report_run(&fetching->report, mover->loop, mover->provider, &job, NULL, layer_unpacked,
               fetching);
}

static void fetch_next(struct fetching *fetching)
{
    struct mover *mover = fetching->work.mover;
    const struct vault_layer *layer = &fetching->layers[fetching->next];
    struct error err = ERROR_INIT;
    char key[KEY_SIZE];

    if (fetching->next == fetching->count) {
        work_end(&fetching->work, NULL);
        return;
    }
    if (mover->is_closing)
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "the service is stopping");
    else
        fetching->file = mover_open_file(mover, &err);
    if (err.code != ERR_NONE) {
        fetching_fail(fetching, &err);
        return;
    }
    layer_key(key, &fetching->owner, layer->id);
    fetching->call =
        objects_get_file(mover->objects, key, fetching->file, layer->sum, layer_got, fetching);
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

static void start_copied(void *context, const struct error *failure, const char *outcome,
                         size_t length)
{
    struct fetching *fetching = context;

    (void) outcome, (void) length;
    fetching->has_disk = !failure; /* a job that fails takes its new disk along */
    if (failure)
        fetching_fail(fetching, failure);
    else
        fetch_next(fetching);
}

static void copy_start(struct fetching *fetching, const struct disk_ref *start)
{
    struct mover *mover = fetching->work.mover;
    const struct provider_disk_job job = {.kind = DISK_JOB_COPY,
                                          .on = *start,
                                          .target = fetching->target,
                                          .disk_bytes = fetching->disk_bytes,
                                          .input = -EBADF,
                                          .data = -EBADF};

    report_run(&fetching->report, mover->loop, mover->provider, &job, NULL, start_copied, fetching);
}

void mover_fetch_disk(void *self, const struct vault_fetch *what, vault_progressed *progressed,
                      vault_done *done, void *context)
{
    struct fetching *fetching = mem_alloc(sizeof(*fetching));
    bool has_start = what->start.id.text[0];
    struct error err = ERROR_INIT;

    fetching->owner = what->owner;
    fetching->target = what->target;
    fetching->disk_bytes = what->disk_bytes;
    fetching->file = -EBADF;
    fetching->progressed = progressed;
    fetching->done = done;
    fetching->context = context;
    if (!work_begin(&fetching->work, self, fetching_finished, fetching_cancel))
        return;
    if (check_layers(what->layers, what->count, has_start, &err) < 0) {
        work_end(&fetching->work, &err);
        return;
    }
    fetching->layers = mem_alloc_array(what->count + 1, sizeof(*what->layers));
    for (; fetching->count < what->count; fetching->count++)
        fetching->layers[fetching->count] = what->layers[fetching->count];
    if (has_start)
        copy_start(fetching, &what->start);
    else
        fetch_next(fetching);
}
