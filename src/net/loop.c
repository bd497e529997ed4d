#include "net/loop.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "net/byte_queue.h"

/* Spare output blocks kept for all connections together: 4 MB. */
#define LOOP_SPARE_BLOCKS 256

static void run_task(struct loop_task *task)
{
    TRACE_AS(&task->trace);

    task->run(task);
}

static void run_deferred(struct loop *loop)
{
    struct list batch;
    struct list *link;

    /* A task may defer others; those run in the next turn, so that ready descriptors get their
     * share between them. */
    list_init(&batch);
    while ((link = list_first(&loop->deferred))) {
        list_remove(link);
        list_append(&batch, link);
    }
    while ((link = list_first(&batch))) {
        list_remove(link);
        run_task(CONTAINER_OF(link, struct loop_task, link));
    }
    if (list_is_empty(&loop->deferred))
        (void) uv_idle_stop(&loop->awake);
}

static void before_poll(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;

    run_deferred(loop);
    if (loop->log)
        log_flush(loop->log);
}

static void stay_awake(uv_idle_t *handle)
{
    (void) handle; /* an active idle handle keeps poll from sleeping: that is its whole purpose */
}

int loop_init(struct loop *loop, struct log *log)
{
    int r = uv_loop_init(&loop->uv);

    if (r < 0)
        return r;
    list_init(&loop->deferred);
    loop->log = log;
    loop->blocks = block_store_new(LOOP_SPARE_BLOCKS);
    /* Not zeroed: a page that no read has filled costs nothing, and there is one per agent. */
    loop->scratch = mem_resize(NULL, LOOP_SCRATCH_SIZE);
    (void) uv_idle_init(&loop->uv, &loop->awake);
    (void) uv_prepare_init(&loop->uv, &loop->before_poll);
    loop->before_poll.data = loop;
    (void) uv_prepare_start(&loop->before_poll, before_poll);
    uv_unref((uv_handle_t *) &loop->before_poll);
    return 0;
}

void loop_run(struct loop *loop)
{
    (void) uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_done(struct loop *loop)
{
    uv_close((uv_handle_t *) &loop->before_poll, NULL);
    uv_close((uv_handle_t *) &loop->awake, NULL);
    (void) uv_run(&loop->uv, UV_RUN_NOWAIT);
    if (uv_loop_close(&loop->uv) < 0) {
        uv_print_all_handles(&loop->uv, stderr);
        abort();
    }
    block_store_free(loop->blocks);
    free(loop->scratch);
}

void loop_task_init(struct loop_task *task, void (*run)(struct loop_task *task))
{
    list_init(&task->link);
    task->run = run;
}

void loop_defer(struct loop *loop, struct loop_task *task)
{
    if (!list_is_empty(&task->link))
        return;
    task->trace = trace_context;
    list_append(&loop->deferred, &task->link);
    (void) uv_idle_start(&loop->awake, stay_awake);
}

void loop_task_cancel(struct loop_task *task)
{
    list_remove(&task->link);
}

static void deadline_fired(uv_timer_t *timer)
{
    struct deadline *deadline = timer->data;
    uint64_t now = uv_now(timer->loop);

    if (!deadline->due)
        return;
    if (deadline->due > now) { /* it was moved later since the timer was set */
        (void) uv_timer_start(timer, deadline_fired, deadline->due - now, 0);
        return;
    }
    deadline->due = 0;
    deadline->on_due(deadline);
}

void deadline_init(struct loop *loop, struct deadline *deadline,
                   void (*on_due)(struct deadline *deadline))
{
    *deadline = (struct deadline){.on_due = on_due};
    (void) uv_timer_init(&loop->uv, &deadline->timer);
    deadline->timer.data = deadline;
}

void deadline_set(struct deadline *deadline, uint64_t milliseconds)
{
    uv_handle_t *handle = (uv_handle_t *) &deadline->timer;

    deadline->due = uv_now(deadline->timer.loop) + milliseconds;
    if (!uv_is_active(handle) || uv_timer_get_due_in(&deadline->timer) > milliseconds)
        (void) uv_timer_start(&deadline->timer, deadline_fired, milliseconds, 0);
}

void deadline_clear(struct deadline *deadline)
{
    deadline->due = 0; /* a timer still running fires once for nothing */
}

static void deadline_handle_closed(uv_handle_t *handle)
{
    struct deadline *deadline = handle->data;

    if (deadline->on_closed)
        deadline->on_closed(deadline);
}

void deadline_close(struct deadline *deadline, void (*on_closed)(struct deadline *deadline))
{
    deadline->due = 0;
    deadline->on_closed = on_closed;
    uv_close((uv_handle_t *) &deadline->timer, deadline_handle_closed);
}
