#include "agent/process/process_service.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/command/execute_form.h"
#include "agent/exec/image_command.h"
#include "agent/process/process_answer.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* All commands at their worst, where every byte becomes six, and the rest of the lines. */
#define LIST_MAX                                                                                   \
    (PROCESS_COMMANDS_MAX * 6 +                                                                    \
     (PROCESS_LIVE_MAX + PROCESS_FINISHED_MAX) * (PROCESS_ID_MAX * 2 + 512))
#define REPLY_MAX   (PROCESS_COMMAND_MAX * 6 + PROCESS_ID_MAX * 6 + 1024)
#define PATH_LENGTH ((size_t) 4095)
#define TIMEOUT_MAX (INT64_C(365) * 24 * 3600 * 1000)

/* --- what answers have in common ------------------------------------------------------------- */

void process_fail(struct call *call, enum api_code code, const char *id, const char *reason)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct json_writer json;

    json_document_begin(&json, &error.context);
    json_add_text(&json, "processId", id);
    (void) json_document_end(&json); /* an id of a path is short */
    api_error_fill(&error, code, "Process '%.256s' %s", id, reason);
    call_fail(call, &error);
}

struct process *process_of_call(struct call *call)
{
    const char *id = json_string_value(json_object_get(call->arguments, "id"));
    struct process *process = id ? process_find(call->agent->processes, id) : NULL;

    if (!id)
        call_fail_field(call, "id", "the id of a process is required");
    else if (!process)
        process_fail(call, API_PROCESS_NOT_FOUND, id, "not found");
    return process;
}

void process_add_exit(struct json_writer *json, const struct process *process)
{
    char text[EXECUTE_SIGNAL_SIZE];
    const char *signal = execute_signal_name(&process->result, text);
    int code = process_exit_code(process);

    if (code < 0)
        json_add_null(json, "exitCode");
    else
        json_add_integer(json, "exitCode", code);
    if (signal)
        json_add_text(json, "signal", signal);
    if (process->result.timed_out)
        json_add_boolean(json, "timedOut", true);
    if (process->result.out_of_memory)
        json_add_boolean(json, "outOfMemory", true);
}

static void add_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(wall_ms, text);
    json_add_text(json, key, text);
}

static void put_process(struct json_writer *json, const struct process *process)
{
    json_begin_object(json);
    json_add_text(json, "id", process->id);
    if (process->pid)
        json_add_integer(json, "pid", process->pid);
    json_add_text(json, "command", process->command);
    json_add_text(json, "status", process_status_text(process->status));
    add_time(json, "startTime", process->started_ms);
    if (process_has_ended(process)) {
        add_time(json, "endTime", process->ended_ms);
        process_add_exit(json, process);
    }
    json_end_object(json);
}

/* --- waiting --------------------------------------------------------------------------------- */

/* A call that waits for something of a process; in its pool. */
struct waiter {
    struct process_watcher watcher;
    struct call *call;
    void (*answer)(struct call *call, struct process *process);
    enum process_event event; /* what is waited for */
};

static void waiter_left(struct call *call)
{
    struct waiter *waiter = call->data;

    process_unwatch(&waiter->watcher);
}

static void waiter_heard(struct process_watcher *watcher, enum process_event event)
{
    struct waiter *waiter = CONTAINER_OF(watcher, struct waiter, watcher);
    struct process *process = watcher->process;

    if (event < waiter->event || event == PROCESS_OUTPUT)
        return;
    process_unwatch(watcher); /* who tells us keeps the process */
    waiter->call->on_gone = NULL;
    waiter->answer(waiter->call, process);
}

/* Answer at `event`, or at a later one that makes it moot. */
static void process_service_wait_for(struct call *call, struct process *process,
                                     enum process_event event,
                                     void (*answer)(struct call *call, struct process *process))
{
    struct waiter *waiter = pool_alloc(call->pool, sizeof(*waiter));

    *waiter = (struct waiter){.call = call, .answer = answer, .event = event};
    waiter->watcher.on_event = waiter_heard;
    call->data = waiter;
    call->on_gone = waiter_left;
    process_watch(process, &waiter->watcher);
}

void process_answer(struct call *call, struct process *process,
                    void (*answer)(struct call *call, struct process *process))
{
    if (process_is_ending(process))
        process_service_wait_for(call, process, PROCESS_ENDED, answer);
    else
        answer(call, process);
}

/* --- starting -------------------------------------------------------------------------------- */

static bool process_service_is_blank(const char *text)
{
    return !text[strspn(text, " \t\r\n")];
}

/* A text or a refusal: 0 or -1. */
static int process_service_read_text(const struct json_place *root, const char *key, size_t maximum,
                                     const char **ret_text, struct api_error *error)
{
    struct error err = ERROR_INIT;

    if (json_field_text(root, key, JSON_OPTIONAL, maximum, ret_text, &err) < 0)
        return api_error_field(error, key, err.message);
    return 0;
}

static int process_service_read_request(const struct call *call, struct process_request *request,
                                        struct api_error *error)
{
    struct error err = ERROR_INIT;
    struct json_place root;
    int64_t timeout_ms = 0;

    request->session = call->session;
    if (json_root_object(call->arguments, &root, &err) < 0)
        return api_error_field(error, "body", err.message);
    if (process_service_read_text(&root, "command", PROCESS_COMMAND_MAX, &request->command, error) <
            0 ||
        process_service_read_text(&root, "processId", PROCESS_ID_MAX, &request->id, error) < 0 ||
        process_service_read_text(&root, "cwd", PATH_LENGTH, &request->directory, error) < 0 ||
        variables_read(&root, false, call->pool, &request->variables, error) < 0)
        return -1;
    if (!request->command)
        return api_error_field(error, "command", "a command is required");
    if (process_service_is_blank(request->command))
        return api_error_set(error, API_INVALID_COMMAND, "Command cannot be empty");
    if (strcmp(request->command, IMAGE_COMMAND_NAME) == 0 && !call->agent->image_command)
        return api_error_set(error, API_INVALID_COMMAND, "The image names no command");
    if (json_field_integer(&root, "timeoutMs", JSON_OPTIONAL, 0, TIMEOUT_MAX, &timeout_ms, &err) <
        0)
        return api_error_field(error, "timeoutMs", err.message);
    if (json_field_boolean(&root, "autoCleanup", JSON_OPTIONAL, &request->cleans_up, &err) < 0)
        return api_error_field(error, "autoCleanup", err.message);
    request->timeout_ms = (uint64_t) timeout_ms;
    if (request->directory && !request->directory[0])
        request->directory = NULL;
    return 0;
}

static const char *start_failure(const struct exec_result *result)
{
    if (!result->error)
        return "was killed before it ran";
    switch (result->stage) {
    case LAUNCH_STAGE_DIRECTORY:
        return "could not be started: its working directory cannot be entered";
    case LAUNCH_STAGE_FORK:
        return "could not be started: the sandbox has no room for another process";
    case LAUNCH_STAGE_USER: /* processes run as the image's */
        return "could not be started: there is no such user as the image names";
    case LAUNCH_STAGE_MESSAGE:
    case LAUNCH_STAGE_PROGRAM:
        break;
    }
    return "could not be started";
}

static void answer_start(struct call *call, struct process *process)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    if (!process->pid && process->failure) {
        call_fail(call, process->failure);
        return;
    }
    if (!process->pid) {
        process_fail(call, API_PROCESS_ERROR, process->id, start_failure(&process->result));
        return;
    }
    call_begin_success(&json, &body);
    json_add_text(&json, "processId", process->id);
    json_add_integer(&json, "pid", process->pid);
    json_add_text(&json, "command", process->command);
    call_finish_success(call, &json, &body);
}

void process_start_background(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct process_request request = {.id = NULL};
    struct process *process = NULL;

    if (process_service_read_request(call, &request, &error) == 0)
        process = process_start(call->agent->processes, &request, &error);
    if (process)
        process_service_wait_for(call, process, PROCESS_STARTED, answer_start);
    else
        call_fail(call, &error);
}

/* --- looking --------------------------------------------------------------------------------- */

/* Which status is asked for; PROCESS_STATUSES: any. Returns -1 for what is none. */
static int process_service_read_status(const struct call *call, enum process_status *ret_status)
{
    const char *name = json_string_value(json_object_get(call->arguments, "status"));

    *ret_status = PROCESS_STATUSES;
    if (!name)
        return 0;
    for (*ret_status = 0; *ret_status < PROCESS_STATUSES; (*ret_status)++) {
        if (strcmp(name, process_status_text(*ret_status)) == 0)
            return 0;
    }
    return -1;
}

static void process_list(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(LIST_MAX);
    enum process_status wanted;
    struct json_writer json;

    if (process_service_read_status(call, &wanted) < 0) {
        call_fail_field(call, "status",
                        "must be starting, running, completed, failed, killed or error");
        return;
    }
    call_begin_success(&json, &body);
    json_begin_array_at(&json, "processes");
    LIST_EACH (&call->agent->processes->processes, at) {
        const struct process *process = CONTAINER_OF(at, struct process, link);

        if (wanted == PROCESS_STATUSES || process->status == wanted)
            put_process(&json, process);
    }
    json_end_array(&json);
    call_finish_success(call, &json, &body);
}

static void answer_get(struct call *call, struct process *process)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_key(&json, "process");
    put_process(&json, process);
    call_finish_success(call, &json, &body);
}

static void process_get(struct call *call)
{
    struct process *process = process_of_call(call);

    if (process)
        process_answer(call, process, answer_get);
}

/* --- killing --------------------------------------------------------------------------------- */

static void answer_kill(struct call *call, struct process *process)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "processId", process->id);
    call_finish_success(call, &json, &body);
}

static void process_delete(struct call *call)
{
    struct process *process = process_of_call(call);

    if (!process)
        return;
    if (!process_is_alive(process)) {
        process_fail(call, API_COMMAND_NOT_FOUND, process->id, "has ended already");
        return;
    }
    process_service_wait_for(call, process, PROCESS_GONE, answer_kill);
    process_kill(process);
}

/* Killing all: one watcher for each, in the call's pool. */
struct massacre {
    struct call *call;
    struct victim *victims;
    size_t count;
    size_t left;
};

struct victim {
    struct process_watcher watcher;
    struct massacre *massacre;
    bool gone;
};

static void answer_kill_all(struct call *call, size_t count)
{
    AUTO(text) struct text body = TEXT_INIT(1024);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_integer(&json, "cleanedCount", (int64_t) count);
    call_finish_success(call, &json, &body);
}

static void victim_heard(struct process_watcher *watcher, enum process_event event)
{
    struct victim *victim = CONTAINER_OF(watcher, struct victim, watcher);
    struct massacre *massacre = victim->massacre;

    if (event != PROCESS_GONE)
        return;
    victim->gone = true;
    process_unwatch(watcher);
    if (--massacre->left == 0)
        answer_kill_all(massacre->call, massacre->count);
}

static void massacre_left(struct call *call)
{
    struct massacre *massacre = call->data;

    for (size_t i = 0; i < massacre->count; i++) {
        if (!massacre->victims[i].gone)
            process_unwatch(&massacre->victims[i].watcher);
    }
}

static size_t count_alive(const struct process_set *set)
{
    size_t count = 0;

    LIST_EACH (&set->processes, at)
        count += process_is_alive(CONTAINER_OF(at, struct process, link));
    return count;
}

static void process_delete_all(struct call *call)
{
    struct process_set *set = call->agent->processes;
    size_t count = count_alive(set), next = 0;
    struct massacre *massacre = pool_alloc(call->pool, sizeof(*massacre));

    if (!count) {
        answer_kill_all(call, 0);
        return;
    }
    *massacre = (struct massacre){.call = call, .count = count, .left = count};
    massacre->victims = pool_alloc(call->pool, count * sizeof(*massacre->victims));
    call->data = massacre;
    call->on_gone = massacre_left;
    LIST_EACH (&set->processes, at) {
        struct process *process = CONTAINER_OF(at, struct process, link);
        struct victim *victim = &massacre->victims[next];

        if (!process_is_alive(process))
            continue;
        next++;
        victim->massacre = massacre;
        victim->watcher.on_event = victim_heard;
        process_watch(process, &victim->watcher);
        process_kill(process);
    }
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/process/start",
     .rpc = "processes.startProcess",
     .parameters = {"command", "sessionId", OPERATION_FIELDS},
     .run = process_start_background,
     .name = "process.start",
     .summary = "Start a background process",
     .starts_work = true},
    {.method = "GET",
     .path = "/api/process/list",
     .rpc = "processes.listProcesses",
     .run = process_list,
     .name = "process.list",
     .summary = "All processes, finished ones too"},
    {.method = "GET",
     .path = "/api/process/{id}",
     .rpc = "processes.getProcess",
     .parameters = {"id"},
     .run = process_get,
     .name = "process.get",
     .summary = "One process"},
    {.method = "DELETE",
     .path = "/api/process/kill-all",
     .rpc = "processes.killAllProcesses",
     .run = process_delete_all,
     .name = "process.killAll",
     .summary = "Kill all processes with all that descends from them"},
    {.method = "DELETE",
     .path = "/api/process/{id}",
     .rpc = "processes.killProcess",
     .parameters = {"id"},
     .run = process_delete,
     .name = "process.kill",
     .summary = "Kill a process and all that descends from it"},
    {.method = "GET",
     .path = "/api/process/{id}/logs",
     .rpc = "processes.getProcessLogs",
     .parameters = {"id"},
     .run = process_logs,
     .name = "process.logs",
     .summary = "The output so far"},
    {.method = "GET",
     .path = "/api/process/{id}/stream",
     .run = process_stream,
     .name = "process.stream",
     .summary = "The output so far and as it comes, as events",
     .has_events = true},
    /* A row of its own: here the events are fewer. */
    {.rpc = "processes.streamProcessLogs",
     .parameters = {"id"},
     .run = process_stream,
     .name = "process.stream",
     .summary = "The same",
     .has_events = true},
};

const struct operation_table process_operations = {rows, ARRAY_COUNT(rows)};
