/* Tasks, teams and schedules. */
#include <stdlib.h>
#include <string.h>

#include "api/http/pending.h"
#include "api/native/agent_fields.h"
#include "api/native/agent_stream.h"
#include "api/native/agent_wait.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/order.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/task/task.h"
#include "domain/task/task_schedule.h"
#include "domain/task/team.h"

#define LIST_DEFAULT 20
#define LIST_MAX     1000 /* that may be asked for */
#define LIST_PAGE    50   /* that one page has: rows may have a megabyte */

static const char *tasks_id(struct http_request *request)
{
    return http_request_parameter(request, "task");
}

static void tasks_answer(struct http_request *request, int status, const struct task *task)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    agent_fields_task(&answer.json, task);
    native_answer_send(&answer, request, status);
}

/* --- tasks -------------------------------------------------------------------------------------- */

struct tasks_creation {
    struct pending *pending;
    enum agent_wait_wish wish;
};

static void tasks_follow(struct http_request *request, const struct task *task)
{
    const struct id id = task->id;
    struct error err = ERROR_INIT;
    struct conversation *conversation = conversation_find(
        api_of(request)->domain, request_caller(request), NULL, task->conversation.text, &err);

    if (conversation)
        agent_stream_begin(request, conversation, NULL, &id);
    else
        http_reply_error(request, &err);
}

static void tasks_made(void *context, const struct error *failure, const struct task *task,
                       bool is_new)
{
    AUTO(free) struct tasks_creation *creation = context;
    struct http_request *request = pending_take_good(creation->pending, failure);

    if (!request)
        return;
    if (creation->wish == AGENT_WAIT_YES)
        agent_wait_begin(request, AGENT_WAIT_TASK, task->id.text);
    else if (creation->wish == AGENT_WAIT_STREAM)
        tasks_follow(request, task);
    else
        tasks_answer(request, is_new ? 201 : 200, task);
}

static int tasks_read(struct http_request *request, const struct json_place *body,
                      struct error *err)
{
    static const char *const more[] = {"wait", NULL};
    AUTO(task_spec) struct task_spec spec = TASK_SPEC_INIT;
    struct tasks_creation *creation;
    enum agent_wait_wish wish;

    if (task_spec_read(body, more, &spec, err) < 0 || agent_wait_read(body, &wish, err) < 0)
        return -1;
    creation = mem_alloc(sizeof(*creation));
    creation->wish = wish;
    creation->pending = pending_new(request);
    task_create(api_of(request)->domain, request_caller(request), &spec, tasks_made, creation);
    return 0;
}

void native_create_task(struct http_request *request)
{
    native_take(request, tasks_read);
}

static void tasks_got(void *context, const struct error *failure, const struct task *task)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        tasks_answer(request, 200, task);
}

void native_get_task(struct http_request *request)
{
    task_read(api_of(request)->domain, request_caller(request), tasks_id(request), false, tasks_got,
              pending_new(request));
}

void native_cancel_task(struct http_request *request)
{
    task_cancel(api_of(request)->domain, request_caller(request), tasks_id(request), tasks_got,
                pending_new(request));
}

void native_undo_task(struct http_request *request)
{
    task_undo(api_of(request)->domain, request_caller(request), tasks_id(request), tasks_got,
              pending_new(request));
}

static void tasks_gone(void *context, const struct error *failure, const struct task *task)
{
    (void) task;
    pending_end(context, failure);
}

void native_delete_task(struct http_request *request)
{
    task_delete(api_of(request)->domain, request_caller(request), tasks_id(request), tasks_gone,
                pending_new(request));
}

static void tasks_show_changes(void *context, const struct error *failure, const struct task *task)
{
    struct http_request *request = pending_take_good(context, failure);

    if (!request)
        return;
    if (task->changes)
        http_reply(request, 200, "application/json", task->changes, strlen(task->changes));
    else
        api_fail(request, ERR_CONFLICT, "%s",
                 task_state_is_over(task->state)
                     ? "nothing is known of what this task changed: there was no snapshot before it"
                     : "the task is not over");
}

void native_diff_task(struct http_request *request)
{
    task_read(api_of(request)->domain, request_caller(request), tasks_id(request), false,
              tasks_show_changes, pending_new(request));
}

static void tasks_follow_one(void *context, const struct error *failure, const struct task *task)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        tasks_follow(request, task);
}

void native_follow_task(struct http_request *request)
{
    task_read(api_of(request)->domain, request_caller(request), tasks_id(request), false,
              tasks_follow_one, pending_new(request));
}

static void tasks_listed(void *context, const struct error *failure, const struct task *tasks,
                         size_t count, const char *next)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "tasks");
    if (!request)
        return;
    for (size_t i = 0; i < count; i++)
        agent_fields_task(&answer.json, &tasks[i]);
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    native_answer_send(&answer, request, 200);
}

void native_list_tasks(struct http_request *request)
{
    struct task_filter filter = {.after = http_request_query(request, "cursor")};
    struct error err = ERROR_INIT;
    int64_t limit = LIST_DEFAULT;

    if (native_read_limit(request, LIST_MAX, &limit, &err) < 0) {
        http_reply_error(request, &err);
        return;
    }
    filter.limit = (size_t) (limit < LIST_PAGE ? limit : LIST_PAGE);
    task_list(api_of(request)->domain, request_caller(request), &filter, tasks_listed,
              pending_new(request));
}

/* --- teams -------------------------------------------------------------------------------------- */

static void teams_answer(struct http_request *request, int status, const struct team *team)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    agent_fields_team(&answer.json, team);
    native_answer_send(&answer, request, status);
}

static void teams_made(void *context, const struct error *failure, const struct team *team)
{
    AUTO(free) struct tasks_creation *creation = context;
    struct http_request *request = pending_take_good(creation->pending, failure);

    if (!request)
        return;
    if (creation->wish == AGENT_WAIT_YES)
        agent_wait_begin(request, AGENT_WAIT_TEAM, team->id.text);
    else
        teams_answer(request, 201, team);
}

static int teams_read(struct http_request *request, const struct json_place *body,
                      struct error *err)
{
    AUTO(json) json_t *copy = json_copy(body->value);
    const struct json_place team = {.value = copy};
    struct tasks_creation *creation;
    enum agent_wait_wish wish;

    if (agent_wait_read(body, &wish, err) < 0)
        return -1;
    if (wish == AGENT_WAIT_STREAM)
        return json_refuse_field(body, "wait", "true or false: members have streams of their own",
                                 err);
    (void) json_object_del(copy, "wait");
    creation = mem_alloc(sizeof(*creation));
    creation->wish = wish;
    creation->pending = pending_new(request);
    team_create(api_of(request)->domain, request_caller(request), &team, teams_made, creation);
    return 0;
}

void native_create_team(struct http_request *request)
{
    native_take(request, teams_read);
}

static void teams_got(void *context, const struct error *failure, const struct team *team)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        teams_answer(request, 200, team);
}

void native_get_team(struct http_request *request)
{
    team_read(api_of(request)->domain, request_caller(request),
              http_request_parameter(request, "team"), teams_got, pending_new(request));
}

void native_cancel_team(struct http_request *request)
{
    team_cancel(api_of(request)->domain, request_caller(request),
                http_request_parameter(request, "team"), teams_got, pending_new(request));
}

static void teams_listed(void *context, const struct error *failure, const struct team *teams,
                         size_t count, const char *next)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "teams");
    if (!request)
        return;
    for (size_t i = 0; i < count; i++)
        agent_fields_team(&answer.json, &teams[i]);
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    native_answer_send(&answer, request, 200);
}

void native_list_teams(struct http_request *request)
{
    struct error err = ERROR_INIT;
    int64_t limit = LIST_DEFAULT;

    if (native_read_limit(request, LIST_MAX, &limit, &err) < 0)
        http_reply_error(request, &err);
    else
        team_list(
            api_of(request)->domain, request_caller(request), http_request_query(request, "cursor"),
            (size_t) (limit < LIST_PAGE ? limit : LIST_PAGE), teams_listed, pending_new(request));
}

/* --- schedules ---------------------------------------------------------------------------------- */

static struct task_schedule *schedules_find(struct http_request *request, struct error *err)
{
    return schedule_find(api_of(request)->domain, request_caller(request),
                         http_request_parameter(request, "schedule"), err);
}

static void schedules_answer(struct http_request *request, int status,
                             const struct task_schedule *schedule)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    agent_fields_schedule(&answer.json, schedule);
    native_answer_send(&answer, request, status);
}

static void schedules_made(void *context, const struct error *failure,
                           struct task_schedule *schedule)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        schedules_answer(request, 201, schedule);
}

static int schedules_read(struct http_request *request, const struct json_place *body,
                          struct error *err)
{
    (void) err;
    schedule_create(api_of(request)->domain, request_caller(request), body, schedules_made,
                    pending_new(request));
    return 0;
}

void native_create_schedule(struct http_request *request)
{
    native_take(request, schedules_read);
}

static void schedules_changed(void *context, const struct error *failure,
                              struct task_schedule *schedule)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        schedules_answer(request, 200, schedule);
}

static int schedules_read_change(struct http_request *request, const struct json_place *body,
                                 struct error *err)
{
    struct task_schedule *schedule = schedules_find(request, err);

    if (!schedule)
        return -1;
    schedule_change(api_of(request)->domain, request_caller(request), schedule, body,
                    schedules_changed, pending_new(request));
    return 0;
}

void native_change_schedule(struct http_request *request)
{
    native_take(request, schedules_read_change);
}

void native_get_schedule(struct http_request *request)
{
    struct error err = ERROR_INIT;
    const struct task_schedule *schedule = schedules_find(request, &err);

    if (schedule)
        schedules_answer(request, 200, schedule);
    else
        http_reply_error(request, &err);
}

static void schedules_gone(void *context, const struct error *failure,
                           struct task_schedule *schedule)
{
    (void) schedule;
    pending_end(context, failure);
}

void native_delete_schedule(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct task_schedule *schedule = schedules_find(request, &err);

    if (schedule)
        schedule_delete(api_of(request)->domain, request_caller(request), schedule, schedules_gone,
                        pending_new(request));
    else
        http_reply_error(request, &err);
}

static void schedules_ran(void *context, const struct error *failure, const struct task *task,
                          bool is_new)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        tasks_answer(request, is_new ? 201 : 200, task);
}

void native_run_schedule(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct task_schedule *schedule = schedules_find(request, &err);

    if (schedule)
        schedule_run(api_of(request)->domain, request_caller(request), schedule, schedules_ran,
                     pending_new(request));
    else
        http_reply_error(request, &err);
}

static void schedules_list_one(void *context, struct task_schedule *schedule)
{
    agent_fields_schedule(context, schedule);
}

void native_list_schedules(struct http_request *request)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "schedules");
    schedule_each(api_of(request)->domain, request_caller(request), schedules_list_one,
                  &answer.json);
    native_answer_send(&answer, request, 200);
}
