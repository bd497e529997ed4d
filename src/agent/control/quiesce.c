#include "agent/control/quiesce.h"

#include "agent/agent.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define BODY_MAX ((size_t) 4096)
/* What a refused client is told to wait, unless the quiet ends sooner. */
#define RETRY_MS 1000

struct quiesce {
    struct agent *agent;      /* borrowed */
    size_t working;           /* calls that started work and did not end */
    bool quiet;               /* no new work is accepted */
    struct call *waiting;     /* for the end of the work under way; NULL: nobody */
    uint64_t hold_ms;         /* of `waiting` */
    struct deadline deadline; /* of `waiting`, else of the quiet itself */
    struct loop_task settle;
};

/* --- quiet and not ---------------------------------------------------------------------------- */

static void quiesce_answer(struct quiesce *quiesce)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct call *call = TAKE_PTR(quiesce->waiting);
    struct json_writer json;

    log_flush(quiesce->agent->log);
    call_begin_success(&json, &body);
    json_add_boolean(&json, "quiet", quiesce->quiet);
    json_add_integer(&json, "running", (int64_t) quiesce->working);
    call_finish_success(call, &json, &body);
}

static void become_busy(struct quiesce *quiesce)
{
    quiesce->quiet = false;
    deadline_clear(&quiesce->deadline);
}

static void quiesce_settle(struct loop_task *task)
{
    struct quiesce *quiesce = CONTAINER_OF(task, struct quiesce, settle);

    if (!quiesce->waiting || quiesce->working)
        return;
    deadline_set(&quiesce->deadline, quiesce->hold_ms);
    quiesce_answer(quiesce);
}

static void quiesce_time_is_up(struct deadline *deadline)
{
    struct quiesce *quiesce = CONTAINER_OF(deadline, struct quiesce, deadline);

    if (!quiesce->waiting)
        LOG_WARNING(quiesce->agent->log, "quiet for too long: work is accepted again");
    become_busy(quiesce);
    if (quiesce->waiting)
        quiesce_answer(quiesce);
}

static struct quiesce *quiesce_get(struct agent *agent)
{
    struct quiesce *quiesce = agent->quiesce;

    if (quiesce)
        return quiesce;
    quiesce = mem_alloc(sizeof(*quiesce));
    quiesce->agent = agent;
    deadline_init(&agent->loop, &quiesce->deadline, quiesce_time_is_up);
    loop_task_init(&quiesce->settle, quiesce_settle);
    agent->quiesce = quiesce;
    return quiesce;
}

/* --- work ------------------------------------------------------------------------------------- */

static void fill_refusal(struct quiesce *quiesce, struct api_error *error)
{
    struct agent *agent = quiesce->agent;
    uint64_t now = loop_now(&agent->loop), due = quiesce->deadline.due;
    uint64_t wait = due > now ? due - now : 1;
    struct json_writer json;

    json_document_begin(&json, &error->context);
    json_add_text(&json, "reason", "quiesce");
    json_add_boolean(&json, "retryable", true);
    json_add_integer(&json, "retryAfterMs", (int64_t) (wait < RETRY_MS ? wait : RETRY_MS));
    (void) json_document_end(&json); /* it is short */
    api_error_fill(error, API_CONTAINER_UNAVAILABLE,
                   "The sandbox is being frozen or copied: try again in a moment");
}

bool quiesce_refuses(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct quiesce *quiesce;

    if (!call->operation->starts_work)
        return false;
    quiesce = quiesce_get(call->agent);
    if (!quiesce->quiet) {
        call->is_work = true;
        quiesce->working++;
        return false;
    }
    fill_refusal(quiesce, &error);
    call_fail(call, &error);
    return true;
}

bool quiesce_refuses_request(struct http_request *request)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct agent *agent = request->context;

    if (!agent->quiesce || !agent->quiesce->quiet)
        return false;
    fill_refusal(agent->quiesce, &error);
    api_error_reply(request, &error);
    return true;
}

void quiesce_call_ends(struct call *call)
{
    struct quiesce *quiesce = call->agent->quiesce;

    if (!call->is_work)
        return;
    call->is_work = false;
    quiesce->working--;
    if (!quiesce->working && quiesce->waiting)
        loop_defer(&quiesce->agent->loop, &quiesce->settle);
}

/* --- operations ------------------------------------------------------------------------------- */

static void asker_left(struct call *call)
{
    struct quiesce *quiesce = call->agent->quiesce;

    quiesce->waiting = NULL;
    become_busy(quiesce);
}

static int read_times(struct call *call, int64_t *ret_timeout, int64_t *ret_hold, struct error *err)
{
    struct json_place root;

    *ret_timeout = QUIESCE_TIMEOUT_DEFAULT;
    *ret_hold = QUIESCE_HOLD_DEFAULT;
    if (json_root_object(call->arguments, &root, err) < 0 ||
        json_field_integer(&root, "timeoutMs", JSON_OPTIONAL, 0, QUIESCE_TIMEOUT_MAX, ret_timeout,
                           err) < 0 ||
        json_field_integer(&root, "holdMs", JSON_OPTIONAL, 1, QUIESCE_HOLD_MAX, ret_hold, err) < 0)
        return -1;
    return 0;
}

static void quiesce_run(struct call *call)
{
    struct quiesce *quiesce = quiesce_get(call->agent);
    struct error err = ERROR_INIT;
    int64_t timeout, hold;

    if (read_times(call, &timeout, &hold, &err) < 0) {
        call_fail_text(call, API_VALIDATION_FAILED, "%s", err.message);
        return;
    }
    if (quiesce->waiting) {
        call_fail_text(call, API_RESOURCE_BUSY, "Somebody else waits for quiet already");
        return;
    }
    quiesce->quiet = true;
    quiesce->waiting = call;
    quiesce->hold_ms = (uint64_t) hold;
    call->on_gone = asker_left;
    deadline_set(&quiesce->deadline, (uint64_t) timeout);
    loop_defer(&quiesce->agent->loop, &quiesce->settle);
}

static void resume_run(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct quiesce *quiesce = quiesce_get(call->agent);
    struct json_writer json;

    become_busy(quiesce);
    if (quiesce->waiting)
        quiesce_answer(quiesce);
    call_begin_success(&json, &body);
    call_finish_success(call, &json, &body);
}

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/burrow/quiesce",
     .run = quiesce_run,
     .name = "burrow.quiesce",
     .summary = "Accept no work and wait until none is under way"},
    {.method = "POST",
     .path = "/burrow/resume",
     .run = resume_run,
     .name = "burrow.resume",
     .summary = "Accept work again"},
};

const struct operation_table quiesce_operations = {rows, ARRAY_COUNT(rows)};
