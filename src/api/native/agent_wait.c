#include "api/native/agent_wait.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/api.h"
#include "api/native/agent_fields.h"
#include "api/native/body.h"
#include "base/memory.h"

struct agent_wait {
    struct http_request *request; /* NULL: gone, only the timer is left */
    struct deadline deadline;
    enum agent_wait_kind kind;
    struct id id;
    struct turn_wait *turn;
    struct task_wait *task;
    struct team_wait *team;
    bool is_late;
    bool is_reading; /* how far it is; the answer comes back to us */
};

int agent_wait_read(const struct json_place *body, enum agent_wait_wish *ret_wish,
                    struct error *err)
{
    json_t *value = json_object_get(body->value, "wait");
    const char *text = json_string_value(value);

    *ret_wish = json_is_true(value) ? AGENT_WAIT_YES : AGENT_WAIT_NOT;
    if (!value || json_is_boolean(value) || json_is_null(value))
        return 0;
    if (!text || strcmp(text, "stream") != 0)
        return json_refuse_field(body, "wait", "true, false or \"stream\"", err);
    *ret_wish = AGENT_WAIT_STREAM;
    return 0;
}

static void agent_wait_gone(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct agent_wait, deadline));
}

static void agent_wait_abandon(struct agent_wait *wait)
{
    if (wait->turn)
        turn_wait_end(TAKE_PTR(wait->turn));
    if (wait->task)
        task_wait_end(TAKE_PTR(wait->task));
    if (wait->team)
        team_wait_end(TAKE_PTR(wait->team));
}

static void agent_wait_close(struct agent_wait *wait)
{
    wait->request = NULL;
    agent_wait_abandon(wait);
    if (!wait->is_reading)
        deadline_close(&wait->deadline, agent_wait_gone);
}

static void agent_wait_client_left(struct http_request *request)
{
    agent_wait_close(request->data);
}

/* The request to be answered; NULL: nobody is there, or it was, with the failure. */
static struct http_request *agent_wait_take(struct agent_wait *wait, const struct error *failure)
{
    struct http_request *request = wait->request;

    wait->is_reading = false;
    agent_wait_close(wait);
    if (!request)
        return NULL;
    request->on_gone = NULL;
    if (!failure)
        return request;
    http_reply_error(request, failure);
    return NULL;
}

static void agent_wait_turn_over(void *context, const struct error *failure,
                                 const struct turn *turn)
{
    struct agent_wait *wait = context;
    int status = wait->is_late ? 202 : 200;
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request;

    wait->turn = NULL;
    request = agent_wait_take(wait, failure);
    native_answer_begin_value(&answer);
    if (!request)
        return;
    agent_fields_turn(&answer.json, turn, false);
    native_answer_send(&answer, request, status);
}

static void agent_wait_task_over(void *context, const struct error *failure,
                                 const struct task *task)
{
    struct agent_wait *wait = context;
    int status = wait->is_late ? 202 : 200;
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request;

    wait->task = NULL;
    request = agent_wait_take(wait, failure);
    native_answer_begin_value(&answer);
    if (!request)
        return;
    agent_fields_task(&answer.json, task);
    native_answer_send(&answer, request, status);
}

static void agent_wait_team_over(void *context, const struct error *failure,
                                 const struct team *team)
{
    struct agent_wait *wait = context;
    int status = wait->is_late ? 202 : 200;
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request;

    wait->team = NULL;
    request = agent_wait_take(wait, failure);
    native_answer_begin_value(&answer);
    if (!request)
        return;
    agent_fields_team(&answer.json, team);
    native_answer_send(&answer, request, status);
}

/* As long as a request is held. It is told how far it is. */
static void agent_wait_is_over(struct deadline *deadline)
{
    struct agent_wait *wait = CONTAINER_OF(deadline, struct agent_wait, deadline);
    struct domain *domain;
    const struct caller *caller;

    if (!wait->request || wait->is_late)
        return;
    domain = api_of(wait->request)->domain;
    caller = request_caller(wait->request);
    wait->is_late = wait->is_reading = true;
    agent_wait_abandon(wait);
    if (wait->kind == AGENT_WAIT_TURN)
        turn_read(domain, caller, NULL, wait->id.text, agent_wait_turn_over, wait);
    else if (wait->kind == AGENT_WAIT_TASK)
        task_read(domain, caller, wait->id.text, false, agent_wait_task_over, wait);
    else
        team_read(domain, caller, wait->id.text, agent_wait_team_over, wait);
}

void agent_wait_begin(struct http_request *request, enum agent_wait_kind kind, const char *id)
{
    struct agent_wait *wait = mem_alloc(sizeof(*wait));
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);

    wait->request = request;
    wait->kind = kind;
    (void) snprintf(wait->id.text, sizeof(wait->id.text), "%s", id);
    request->data = wait;
    request->on_gone = agent_wait_client_left;
    deadline_init(api_of(request)->loop, &wait->deadline, agent_wait_is_over);
    deadline_set(&wait->deadline, AGENT_WAIT_MS);
    if (kind == AGENT_WAIT_TURN)
        wait->turn = turn_wait_begin(domain, caller, id, agent_wait_turn_over, wait);
    else if (kind == AGENT_WAIT_TASK)
        wait->task = task_wait_begin(domain, caller, id, agent_wait_task_over, wait);
    else
        wait->team = team_wait_begin(domain, caller, id, agent_wait_team_over, wait);
}
