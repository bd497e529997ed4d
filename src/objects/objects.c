/* The handle: threads, queues, and the way of an answer back to the loop. */
#include "objects/objects.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objects/objects_internal.h"
#include "objects/objects_transfer.h"

#define PROGRESS_MS    200
#define HELD_BYTES_MAX ((uint64_t) 16 * OBJECTS_BYTES_MAX) /* in memory, of what shall be put */
#define STREAMS_FACTOR 2                                   /* streams each way, by thread */

/* --- on a thread ------------------------------------------------------------------------------ */

static void run_call(struct objects_call *call)
{
    struct objects_work work = {.pool = &call->pool,
                                .cancelled = &call->cancelled,
                                .done_bytes = &call->done_bytes,
                                .retries = &call->objects->retries};
    TRACE_AS(&call->trace);

    TRACE_WITH("objects.run", call->kind->name);
    call->failed = objects_work_go_on(&work, &call->failure) < 0 ||
                   call->kind->run(call, &work, &call->failure) < 0;
}

/* The next call, or NULL: go home. The lock is held. */
static struct objects_call *wait_for_call(struct objects_lane *lane)
{
    struct objects *objects = lane->objects;
    struct objects_call *call;

    while (list_is_empty(&lane->queue) && !objects->is_ending) {
        lane->idle++;
        (void) pthread_cond_wait(&lane->more, &objects->lock);
        lane->idle--;
    }
    if (list_is_empty(&lane->queue))
        return NULL;
    call = CONTAINER_OF(list_first(&lane->queue), struct objects_call, link);
    list_remove(&call->link);
    call->is_queued = false;
    lane->queued--;
    atomic_fetch_sub(&objects->queued, 1);
    return call;
}

static void *run_thread(void *data)
{
    struct objects_lane *lane = data;
    struct objects *objects = lane->objects;
    struct objects_call *call;

    (void) pthread_mutex_lock(&objects->lock);
    while ((call = wait_for_call(lane))) {
        atomic_fetch_add(&objects->running, 1);
        (void) pthread_mutex_unlock(&objects->lock);
        run_call(call);
        (void) pthread_mutex_lock(&objects->lock);
        atomic_fetch_sub(&objects->running, 1);
        list_append(&objects->done, &call->link);
        (void) uv_async_send(&objects->answers);
    }
    (void) pthread_mutex_unlock(&objects->lock);
    return NULL;
}

/* --- queues ----------------------------------------------------------------------------------- */

/* One more thread, when all are busy. Signals are for the loop's thread. Returns 0 when somebody
 * will come for the call, the lock is held. */
static int staff(struct objects_lane *lane)
{
    sigset_t all, before;
    int r;

    if (lane->queued <= lane->idle || lane->thread_count == lane->thread_max)
        return 0;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&lane->threads[lane->thread_count], NULL, run_thread, lane);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0) /* the name is for ps; nothing depends on it */
        (void) pthread_setname_np(lane->threads[lane->thread_count++], "objects");
    return lane->thread_count > 0 ? 0 : -r;
}

static void unqueue(struct objects_call *call)
{
    struct objects_lane *lane = &call->objects->lanes[call->lane];

    list_remove(&call->link);
    call->is_queued = false;
    lane->queued--;
    atomic_fetch_sub(&call->objects->queued, 1);
}

/* The lock is held. */
static int enqueue(struct objects_call *call)
{
    struct objects_lane *lane = &call->objects->lanes[call->lane];
    int r;

    list_append(&lane->queue, &call->link);
    call->is_queued = true;
    lane->queued++;
    atomic_fetch_add(&call->objects->queued, 1);
    r = staff(lane);
    if (r == 0) {
        (void) pthread_cond_signal(&lane->more);
        return 0;
    }
    unqueue(call);
    return error_set(&call->failure, ERR_UNAVAILABLE, r, "no thread to work on objects");
}

static uint64_t held_bytes(const struct objects_call *call)
{
    return call->source.bytes ? call->source.length : 0;
}

static int admit(struct objects_call *call)
{
    struct objects *objects = call->objects;

    if (objects->is_closing)
        return error_set(&call->failure, ERR_UNAVAILABLE, 0, "the store of objects is closing");
    if (atomic_load(&objects->queued) >= OBJECTS_QUEUE_MAX || objects->held_bytes > HELD_BYTES_MAX)
        return error_set(&call->failure, ERR_UNAVAILABLE, 0,
                         "too much waits for the store of objects: try again later");
    return 0;
}

struct objects_call *objects_call_new(struct objects *objects, const struct objects_kind *kind,
                                      enum objects_lane_name lane, void *context)
{
    struct objects_call *call = mem_alloc(sizeof(*call));

    call->objects = objects;
    call->kind = kind;
    call->lane = lane;
    call->trace = trace_context;
    call->context = context;
    call->fd = call->source.fd = call->sink.fd = -EBADF;
    list_init(&call->link);
    list_append(&objects->calls, &call->open);
    uv_ref((uv_handle_t *) &objects->answers);
    return call;
}

static void on_progress(uv_timer_t *timer);

static void watch_progress(struct objects_call *call)
{
    struct objects *objects = call->objects;

    if (!call->options.progress || objects->is_closing || objects->progress_calls++ > 0)
        return;
    (void) uv_timer_start(&objects->progress, on_progress, PROGRESS_MS, PROGRESS_MS);
    uv_unref((uv_handle_t *) &objects->progress);
}

struct objects_call *objects_call_start(struct objects_call *call, int ok)
{
    struct objects *objects = call->objects;

    TRACE_WITH("objects.call", call->kind->name);
    objects->held_bytes += held_bytes(call);
    watch_progress(call);
    if (ok == 0)
        ok = admit(call);
    (void) pthread_mutex_lock(&objects->lock);
    if (ok < 0 || enqueue(call) < 0) {
        call->failed = true;
        list_append(&objects->done, &call->link);
        (void) uv_async_send(&objects->answers);
    }
    (void) pthread_mutex_unlock(&objects->lock);
    return call;
}

/* Back to the loop without having run; the lock is held. */
static void give_up(struct objects_call *call)
{
    unqueue(call);
    call->failed = true;
    (void) error_set(&call->failure, ERR_CANCELLED, 0, "the call was cancelled");
    list_append(&call->objects->done, &call->link);
}

void objects_cancel(struct objects_call *call)
{
    struct objects *objects = call->objects;

    atomic_store(&call->cancelled, true);
    (void) pthread_mutex_lock(&objects->lock);
    if (call->is_queued) {
        give_up(call);
        (void) uv_async_send(&objects->answers);
    }
    (void) pthread_mutex_unlock(&objects->lock);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void tell_progress(struct objects_call *call)
{
    uint64_t done = atomic_load(&call->done_bytes);

    if (!call->options.progress || done == call->told_bytes)
        return;
    call->told_bytes = done;
    call->options.progress(call->context, done);
}

static void on_progress(uv_timer_t *timer)
{
    struct objects *objects = timer->data;

    LIST_EACH (&objects->calls, at)
        tell_progress(CONTAINER_OF(at, struct objects_call, open));
}

static void count(struct objects_call *call)
{
    struct objects_counters *counters = &call->objects->counters;

    counters->calls++;
    counters->failures += call->failed;
    counters->bytes_in += atomic_load(&call->done_bytes);
    if (!call->failed)
        counters->bytes_out += call->sink.length;
}

/* What is closing tells everybody the same; what was cancelled and came to its end all the same is
 * told what it came to. */
static const struct error *failure_of(struct objects_call *call)
{
    if (call->objects->is_closing) {
        call->failed = true;
        (void) error_set(&call->failure, ERR_UNAVAILABLE, 0, "the store of objects is closing");
    } else if (call->failed && atomic_load(&call->cancelled)) {
        (void) error_set(&call->failure, ERR_CANCELLED, 0, "the call was cancelled");
    }
    return call->failed ? &call->failure : NULL;
}

static void answer(struct objects_call *call)
{
    struct objects *objects = call->objects;
    const struct error *failure = failure_of(call);
    TRACE_AS(&call->trace);

    TRACE_WITH(failure ? "objects.failed" : "objects.done", call->kind->name);
    call->fd = fd_close(call->fd);
    count(call);
    if (!failure)
        tell_progress(call);
    call->kind->tell(call, failure);
    if (call->options.progress && objects->progress_calls > 0 && --objects->progress_calls == 0)
        (void) uv_timer_stop(&objects->progress);
    objects->held_bytes -= held_bytes(call);
    list_remove(&call->open);
    pool_done(&call->pool);
    free(call);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct objects *objects = handle->data;

    if (--objects->handles > 0)
        return;
    for (size_t i = 0; i < OBJECTS_LANE_COUNT; i++) {
        (void) pthread_cond_destroy(&objects->lanes[i].more);
        free(objects->lanes[i].threads);
    }
    (void) pthread_mutex_destroy(&objects->lock);
    if (objects->closed)
        objects->closed(objects->closed_context, NULL);
    free(objects);
}

/* Nothing is asked any more: the threads have nothing to do but to hear it. */
static void end(struct objects *objects)
{
    (void) pthread_mutex_lock(&objects->lock);
    objects->is_ending = true;
    for (size_t i = 0; i < OBJECTS_LANE_COUNT; i++)
        (void) pthread_cond_broadcast(&objects->lanes[i].more);
    (void) pthread_mutex_unlock(&objects->lock);
    for (size_t i = 0; i < OBJECTS_LANE_COUNT; i++) {
        for (unsigned int j = 0; j < objects->lanes[i].thread_count; j++)
            (void) pthread_join(objects->lanes[i].threads[j], NULL);
    }
    objects->backend.end(objects->backend.self);
    uv_close((uv_handle_t *) &objects->answers, on_handle_closed);
    uv_close((uv_handle_t *) &objects->progress, on_handle_closed);
}

static void on_answers(uv_async_t *handle)
{
    struct objects *objects = handle->data;
    struct list finished;
    struct list *link;

    list_init(&finished);
    (void) pthread_mutex_lock(&objects->lock);
    while ((link = list_first(&objects->done))) {
        list_remove(link);
        list_append(&finished, link);
    }
    (void) pthread_mutex_unlock(&objects->lock);
    while ((link = list_first(&finished))) {
        list_remove(link);
        answer(CONTAINER_OF(link, struct objects_call, link));
    }
    if (!list_is_empty(&objects->calls))
        return;
    if (objects->is_closing)
        end(objects);
    else
        uv_unref((uv_handle_t *) handle); /* nothing to do keeps no loop running */
}

void objects_close(struct objects *objects, objects_done *done, void *context)
{
    objects->is_closing = true;
    objects->closed = done;
    objects->closed_context = context;
    (void) uv_timer_stop(&objects->progress);
    uv_ref((uv_handle_t *) &objects->answers);
    (void) pthread_mutex_lock(&objects->lock);
    LIST_EACH (&objects->calls, at) {
        struct objects_call *call = CONTAINER_OF(at, struct objects_call, open);

        atomic_store(&call->cancelled, true);
        if (call->is_queued)
            give_up(call);
    }
    (void) uv_async_send(&objects->answers);
    (void) pthread_mutex_unlock(&objects->lock);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void lane_init(struct objects_lane *lane, struct objects *objects, unsigned int threads)
{
    lane->objects = objects;
    lane->thread_max = threads;
    lane->threads = mem_alloc_array(threads, sizeof(*lane->threads));
    list_init(&lane->queue);
    (void) pthread_cond_init(&lane->more, NULL);
}

struct objects *objects_new(struct loop *loop, const struct objects_backend *backend,
                            unsigned int threads)
{
    struct objects *objects = mem_alloc(sizeof(*objects));

    threads = threads ? threads : OBJECTS_THREADS;
    objects->loop = loop;
    objects->backend = *backend;
    list_init(&objects->calls);
    list_init(&objects->done);
    (void) pthread_mutex_init(&objects->lock, NULL);
    lane_init(&objects->lanes[OBJECTS_LANE_QUICK], objects, threads);
    lane_init(&objects->lanes[OBJECTS_LANE_FILE], objects, threads);
    lane_init(&objects->lanes[OBJECTS_LANE_INLET], objects, threads * STREAMS_FACTOR);
    lane_init(&objects->lanes[OBJECTS_LANE_OUTLET], objects, threads * STREAMS_FACTOR);
    if (uv_async_init(&loop->uv, &objects->answers, on_answers) < 0)
        abort(); /* no descriptor at the start of a program: nothing to go on with */
    (void) uv_timer_init(&loop->uv, &objects->progress);
    objects->handles = 2;
    objects->answers.data = objects->progress.data = objects;
    uv_unref((uv_handle_t *) &objects->answers);
    return objects;
}

const char *objects_text(const struct objects *objects)
{
    return objects->backend.text;
}

void objects_counters(const struct objects *objects, struct objects_counters *ret_counters)
{
    *ret_counters = objects->counters;
    ret_counters->retries = atomic_load(&objects->retries);
    ret_counters->queued = atomic_load(&objects->queued);
    ret_counters->running = atomic_load(&objects->running);
}
