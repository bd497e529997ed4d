/* Tasks as they begin, end, and are stopped; their steps are in task_steps.c. */
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/conversation/turn_usage.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/task/task_internal.h"

#define KEEP_AGAIN_NS UINT64_C(1000000000)

/* --- said -------------------------------------------------------------------------------------- */

void task_add_event(struct live_task *live, struct store_transaction *rows, const char *type)
{
    const struct task *task = &live->task;
    char data[TURN_EVENT_DATA_MAX];

    (void) snprintf(data, sizeof(data),
                    "{\"taskId\":\"%s\",\"sandboxId\":\"%s\",\"conversationId\":\"%s\","
                    "\"teamId\":\"%s\",\"state\":\"%s\",\"error\":\"%.64s\"}",
                    task->id.text, task->sandbox.text, task->conversation.text, task->team.text,
                    task_state_text(task->state), task->error_code);
    event_add(live->domain, rows, &live->caller, &task->owner,
              conversation_stream(live->conversation), type, data);
}

static void task_write_item(const struct live_task *live, const char *step, struct text *out)
{
    const struct task *task = &live->task;
    struct json_writer json;

    json_document_begin(&json, out);
    json_add_text(&json, "task", task->id.text);
    json_add_text(&json, "state", task_state_text(task->state));
    if (step)
        json_add_text(&json, "step", step);
    if (*task->sandbox.text)
        json_add_text(&json, "sandboxId", task->sandbox.text);
    if (*task->error_code) {
        json_begin_object_at(&json, "error");
        json_add_text(&json, "code", task->error_code);
        json_add_text(&json, "message", task->error_message);
        json_end_object(&json);
    }
    (void) json_document_end(&json);
}

void task_say(struct live_task *live, const char *step)
{
    AUTO(text) struct text item = TEXT_INIT(65536);

    task_write_item(live, step, &item);
    turn_log_task(live->domain, live->conversation, text_string(&item));
}

/* --- the beginning ----------------------------------------------------------------------------- */

void task_go(struct live_task *live)
{
    if (live->is_going || live->is_ended || live->is_held || !live->is_kept ||
        live->domain->stage != DOMAIN_OPEN)
        return;
    live->is_going = true;
    if (live->task.state == TASK_QUEUED) {
        live->task.state = TASK_PREPARING;
        live->task.started_ms = domain_wall_ms(live->domain);
        task_say(live, "its sandbox is prepared");
    }
    live_task_ref(live);
    sequence_begin(&live->sequence, live->domain, &task_sequence, &live->task.id, live);
    live_task_unref(live);
}

void task_release(struct live_task *live, const struct id *base)
{
    if (base)
        live->base = *base;
    live->is_held = false;
    task_go(live);
}

/* --- the end ----------------------------------------------------------------------------------- */

/* {"changes":[...],"totals":{...},"truncated":false,"patch":"..."} */
static void task_set_changes(struct live_task *live)
{
    AUTO(text) struct text text = TEXT_INIT(STORE_VALUE_MAX);
    struct json_writer json;

    if (!live->has_compared && !live->patch)
        return;
    json_document_begin(&json, &text);
    json_begin_array_at(&json, "changes");
    if (live->lines.length)
        json_put_raw(&json, text_string(&live->lines), live->lines.length);
    json_end_array(&json);
    if (live->totals) {
        json_key(&json, "totals");
        json_put_value(&json, live->totals);
    }
    json_add_boolean(&json, "truncated", live->is_cut);
    if (live->patch)
        json_add_text(&json, "patch", live->patch);
    if (json_document_end(&json) == 0 && !text.overflowed)
        turn_set(&live->task.changes, text_string(&text));
}

struct task_wait {
    struct list link; /* of live_task.waits; in none while it reads */
    struct domain *domain;
    struct caller caller;
    bool is_busy; /* a read of it is under way */
    bool is_over; /* nobody waits any more */
    bool cancels;
    task_done *done;
    void *context;
};

static void task_wait_tell(struct task_wait *wait, const struct error *failure,
                           const struct task *task)
{
    list_remove(&wait->link);
    if (!wait->is_over)
        wait->done(wait->context, failure, task);
    free(wait);
}

static void task_tell_waits(struct live_task *live, const struct error *failure)
{
    struct list *link;

    while ((link = list_first(&live->waits)))
        task_wait_tell(CONTAINER_OF(link, struct task_wait, link), failure,
                       failure ? NULL : &live->task);
}

struct task_ending {
    struct live_task *live; /* a reference */
    struct log_batch *batch;
};

static void task_over(struct live_task *live)
{
    struct domain *domain = live->domain;
    struct conversation *conversation = live->conversation;
    struct task_counters *counters = &domain->tasks_kept->counters;

    counters->done += live->task.state == TASK_DONE;
    counters->failed += live->task.state == TASK_FAILED;
    counters->cancelled += live->task.state == TASK_CANCELLED;
    conversation->work->is_task_over = true;
    task_clean_up(domain, &live->task);
    task_dropped(live); /* out of the tables; this call has a reference */
    task_tell_waits(live, NULL);
    turn_followers_check(conversation);
    team_member_over(domain, &live->task);
}

static void task_end_kept(void *context, const struct error *failure,
                          const struct store_receipt *receipt)
{
    AUTO(free) struct task_ending *ending = context;
    struct live_task *live = ending->live;

    if (!failure) {
        event_kept(live->domain, receipt);
        CRASH_POINT("task.ended");
    }
    turn_log_kept(ending->batch, failure);
    if (failure)
        live->end_ns = domain_now_ns(live->domain) + KEEP_AGAIN_NS;
    else
        task_over(live);
    live_task_unref(live);
}

void task_end_keep(struct live_task *live)
{
    struct store_transaction *rows = store_begin(live->domain->options.store);
    struct task_ending *ending = mem_alloc(sizeof(*ending));

    live->end_ns = 0;
    live_task_ref(live);
    ending->live = live;
    task_put_row(rows, live, false);
    task_add_event(live, rows, "task.ended");
    ending->batch = turn_log_take(live->conversation, rows);
    domain_commit(live->domain, rows, task_end_kept, ending);
}

static void task_end(struct live_task *live, enum task_state state, const char *code,
                     const char *message)
{
    AUTO(text) struct text item = TEXT_INIT(65536);

    live->is_ended = true;
    live->task.state = state;
    live->task.ended_ms = domain_wall_ms(live->domain);
    if (code) {
        turn_set(&live->task.error_code, code);
        turn_set(&live->task.error_message, message);
    }
    task_set_changes(live);
    if (live->is_using)
        sandbox_use_end(&live->use);
    live->is_using = false;
    task_write_item(live, NULL, &item);
    turn_log_add(live->conversation, NULL, "task", NULL, text_string(&item));
    task_end_keep(live);
}

static void task_end_as_stopped(struct live_task *live)
{
    bool is_wish = strcmp(live->cancel_code, "cancelled") == 0;

    task_end(live, is_wish ? TASK_CANCELLED : TASK_FAILED, live->cancel_code, live->cancel_message);
}

/* The end of its sequence. What the closing of the daemon ends goes on with its next start. */
void task_finish(void *context, const struct error *failure)
{
    struct live_task *live = context;

    live->is_going = false;
    if (live->domain->stage != DOMAIN_OPEN)
        return;
    if (live->is_cancelled && (failure || live->end == TASK_CANCELLED))
        task_end_as_stopped(live);
    else if (failure)
        task_end(live, TASK_FAILED, error_code_text(failure->code), failure->message);
    else
        task_end(live, live->end, NULL, NULL);
}

void task_stop(struct live_task *live, const char *code, const char *message)
{
    struct live_turn *turn = turn_live(live->domain, live->task.turn.text);
    struct error err = ERROR_INIT;

    if (live->is_ended)
        return;
    if (!live->is_cancelled) {
        live->is_cancelled = true;
        live->cancel_code = code;
        live->cancel_message = message;
    }
    if (live->turn_wait && turn) {
        turn_stop(turn, code, message);
    } else if (live->call) {
        task_call_leave(live);
        (void) error_set(&err, ERR_CANCELLED, 0, "%s", message);
        sequence_next(&live->sequence, &err);
    } else if (!live->is_going && live->is_kept) {
        task_end_as_stopped(live);
    }
}

/* --- time -------------------------------------------------------------------------------------- */

void task_tick_one(struct live_task *live)
{
    if (live->is_ended) {
        if (live->end_ns && live->end_ns <= domain_now_ns(live->domain))
            task_end_keep(live);
        return;
    }
    if (live->task.deadline_ms && live->task.deadline_ms <= domain_wall_ms(live->domain))
        task_stop(live, "task_timeout", "it took longer than its timeout");
    task_go(live);
}

void tasks_run_closing(struct domain *domain)
{
    struct error reason = ERROR_INIT;

    (void) domain_is_open(domain, &reason);
    LIST_EACH (&domain->tasks_kept->all, at) {
        struct live_task *live = CONTAINER_OF(at, struct live_task, link);

        live_task_ref(live);
        if (live->is_using)
            sandbox_use_end(&live->use);
        live->is_using = false;
        if (live->turn_wait)
            turn_wait_end(TAKE_PTR(live->turn_wait));
        task_tell_waits(live, &reason);
        if (live->call) {
            task_call_leave(live);
            sequence_next(&live->sequence, &reason);
        }
        live_task_unref(live);
    }
}

/* --- waited for -------------------------------------------------------------------------------- */

static void task_wait_read(void *context, const struct error *failure, const struct task *task)
{
    struct task_wait *wait = context;
    struct live_task *live = failure ? NULL : task_live(wait->domain, task->id.text);
    struct error err = ERROR_INIT;

    wait->is_busy = false;
    if (!failure && wait->cancels && !caller_may_write(&wait->caller)) {
        (void) error_set(&err, ERR_FORBIDDEN, 0, "this key may not cancel tasks");
        task_wait_tell(wait, &err, NULL);
    } else if (!live || wait->is_over) {
        task_wait_tell(wait, failure, task);
    } else {
        list_append(&live->waits, &wait->link);
        if (wait->cancels)
            task_stop(live, "cancelled", "it was cancelled");
    }
}

static struct task_wait *task_wait_new(struct domain *domain, const struct caller *caller,
                                       const char *id, bool cancels, task_done *done, void *context)
{
    struct task_wait *wait = mem_alloc(sizeof(*wait));

    *wait = (struct task_wait){.domain = domain,
                               .caller = *caller,
                               .is_busy = true,
                               .cancels = cancels,
                               .done = done,
                               .context = context};
    list_init(&wait->link);
    task_read(domain, caller, id, false, task_wait_read, wait);
    return wait;
}

struct task_wait *task_wait_begin(struct domain *domain, const struct caller *caller,
                                  const char *id, task_done *done, void *context)
{
    return task_wait_new(domain, caller, id, false, done, context);
}

void task_wait_end(struct task_wait *wait)
{
    wait->is_over = true;
    if (wait->is_busy)
        return;
    list_remove(&wait->link);
    free(wait);
}

void task_cancel(struct domain *domain, const struct caller *caller, const char *id,
                 task_done *done, void *context)
{
    (void) task_wait_new(domain, caller, id, true, done, context);
}
