/* Questions of a task to its sandbox's agent that may take long: a clone, a file, a command. The task
 * may end before the answer is there; then nobody listens to it. */
#include <stdlib.h>

#include "base/memory.h"
#include "domain/task/task_internal.h"

struct task_call {
    struct live_task *live; /* NULL: nobody listens any more */
    task_called *done;
};

static void task_call_answered(void *context, const struct error *failure, const char *text)
{
    AUTO(free) struct task_call *call = context;
    struct live_task *live = call->live;

    if (!live)
        return;
    live->call = NULL;
    call->done(live, failure, text);
}

void task_call_begin(struct live_task *live, enum inside_operation operation, const char *json,
                     uint64_t timeout_ms, task_called *done)
{
    const struct inside *inside = live->domain->options.inside;
    struct error err = ERROR_INIT;

    if (!inside || !inside->operate) {
        (void) error_set(&err, ERR_NOT_IMPLEMENTED, 0, "there are no agents in sandboxes here");
        done(live, &err, NULL);
        return;
    }
    live->call = mem_alloc(sizeof(*live->call));
    *live->call = (struct task_call){.live = live, .done = done};
    inside->operate(inside->self, &live->task.sandbox, operation, json, timeout_ms,
                    task_call_answered, live->call);
}

void task_call_leave(struct live_task *live)
{
    if (live->call)
        live->call->live = NULL;
    live->call = NULL;
}
