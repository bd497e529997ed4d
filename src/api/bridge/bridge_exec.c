/* POST /v1/sandbox/{id}/exec: a command, its output as events. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/bridge/bridge_event.h"
#include "api/bridge/bridge_internal.h"
#include "api/http/json_body.h"
#include "base/auto.h"
#include "net/http/sse.h"

#define ARGUMENTS_MAX ((size_t) 16384)
#define TIMEOUT_MAX   (365.0 * 24 * 3600 * 1000)

struct bridge_exec_request {
    struct json_texts arguments;
    const char *session;
    const char *directory; /* NULL: where the agent is */
    int64_t timeout_ms;    /* 0: none */
};

/* In the request's pool. */
struct command {
    struct agent_request by_shell;
    struct bridge_held held;
    bool has_shell_left; /* it was tried without one */
};

/* --- the answer ------------------------------------------------------------------------------ */

static void bridge_exec_send_event(struct visit *visit, const struct bridge_event *event)
{
    if (event->type && event->data.length)
        sse_send(visit->request, NULL, event->type, text_string(&event->data), event->data.length);
}

static void send_held(struct visit *visit)
{
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;
    struct command *command = visit->data;

    for (int output = 0; output < BRIDGE_OUTPUTS; output++) {
        bridge_event_flush(&event, &command->held, (enum bridge_output) output);
        bridge_exec_send_event(visit, &event);
    }
}

static void bridge_exec_tell(struct visit *visit, const struct bridge_event *event)
{
    if (event->is_last)
        send_held(visit);
    bridge_exec_send_event(visit, event);
    if (event->is_last)
        http_reply_end(visit->request);
}

static void bridge_exec_fail(struct visit *visit, const char *reason)
{
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    bridge_event_fail(&event, reason);
    bridge_exec_tell(visit, &event);
}

static void told(struct visit *visit, const char *type, json_t *json)
{
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;
    struct command *command = visit->data;

    (void) type;
    bridge_event_read(&event, &command->held, json);
    bridge_exec_tell(visit, &event);
}

static void bridge_exec_refused(struct visit *visit, const struct agent_reply *reply);

static void bridge_exec_ended(struct visit *visit, const struct error *failure)
{
    bridge_exec_fail(visit, failure ? failure->message : "the command's end was not told");
}

static const struct agent_stream_events events = {bridge_exec_refused, told, bridge_exec_ended};

/* A program that is not there is for bash to complain about, with its words and exit codes. */
static void bridge_exec_refused(struct visit *visit, const struct agent_reply *reply)
{
    struct command *command = visit->data;
    struct error error = ERROR_INIT;

    if (command->has_shell_left && strcmp(reply->code, "COMMAND_EXECUTION_ERROR") == 0) {
        command->has_shell_left = false;
        agent_stream(visit, &command->by_shell, &events);
        return;
    }
    (void) agent_reply_error(reply, &error);
    bridge_exec_fail(visit, error.message);
}

/* --- the question ---------------------------------------------------------------------------- */

static int read_arguments(const struct json_place *body, struct pool *pool,
                          struct bridge_exec_request *wish, struct error *err)
{
    json_t *arguments = json_object_get(body->value, "argv");

    if (!json_is_array(arguments) || json_array_size(arguments) == 0)
        return error_set(err, ERR_INVALID, 0, "argv must be a non-empty array");
    return json_field_texts(body, "argv", JSON_REQUIRED, ARGUMENTS_MAX, BRIDGE_EXEC_MAX, pool,
                            &wish->arguments, err);
}

static int64_t read_timeout(json_t *body)
{
    double timeout_ms = json_number_value(json_object_get(body, "timeout_ms"));

    return timeout_ms > TIMEOUT_MAX ? (int64_t) TIMEOUT_MAX
           : timeout_ms >= 1        ? (int64_t) timeout_ms
                                    : 0;
}

/* Returns -1 when that was answered. */
static int read_directory(struct http_request *request, json_t *body,
                          struct bridge_exec_request *wish)
{
    const char *directory = json_string_value(json_object_get(body, "cwd"));

    if (!directory)
        return 0;
    wish->directory = strlen(directory) <= BRIDGE_PATH_MAX
                          ? bridge_path_resolve(&request->pool, directory)
                          : NULL;
    if (wish->directory)
        return 0;
    bridge_error_reply(request, ERR_FORBIDDEN, "invalid_request",
                       "cwd must resolve to a location within " BRIDGE_ROOT);
    return -1;
}

static void write_arguments(struct json_writer *json, const struct json_texts *arguments)
{
    json_begin_array_at(json, "argv");
    for (size_t i = 0; i < arguments->count; i++)
        json_put_text(json, arguments->items[i]);
    json_end_array(json);
}

static void write_line(struct json_writer *json, const struct json_texts *arguments)
{
    AUTO(text) struct text line = TEXT_INIT((size_t) BRIDGE_EXEC_MAX * 2);

    bridge_command_write(&line, arguments->items, arguments->count);
    json_add_text(json, "command", text_string(&line));
}

static void write_question(struct pool *pool, const struct bridge_exec_request *wish,
                           void (*write)(struct json_writer *json,
                                         const struct json_texts *arguments),
                           struct agent_request *ret_request)
{
    struct agent_body body;

    agent_body_begin(&body);
    write(&body.json, &wish->arguments);
    json_add_text(&body.json, "encoding", "base64");
    if (wish->directory)
        json_add_text(&body.json, "cwd", wish->directory);
    if (wish->timeout_ms)
        json_add_integer(&body.json, "timeoutMs", wish->timeout_ms);
    agent_body_end(&body, pool, "/api/execute/stream", ret_request);
    ret_request->session = wish->session;
}

static void bridge_exec_run(struct visit *visit, const struct bridge_exec_request *wish)
{
    struct pool *pool = &visit->request->pool;
    struct command *command = pool_alloc(pool, sizeof(*command));
    struct agent_request direct = {.method = NULL};

    command->has_shell_left = strcmp(wish->session, BRIDGE_NO_SESSION) == 0 &&
                              bridge_command_is_program(wish->arguments.items[0]);
    write_question(pool, wish, write_line, &command->by_shell);
    if (command->has_shell_left)
        write_question(pool, wish, write_arguments, &direct);
    visit->data = command;
    sse_begin(visit->request);
    agent_stream(visit, command->has_shell_left ? &direct : &command->by_shell, &events);
}

static int bridge_exec_read(struct http_request *request, const struct json_place *body,
                            struct error *err)
{
    struct bridge_exec_request wish = {.session = NULL};

    if (read_arguments(body, &request->pool, &wish, err) < 0)
        return -1;
    wish.session = bridge_session(request);
    if (!wish.session || read_directory(request, body->value, &wish) < 0)
        return 0;
    wish.timeout_ms = read_timeout(body->value);
    bridge_exec_run(visit_of(request), &wish);
    return 0;
}

static void bridge_exec_got_body(struct http_request *request, const char *bytes, size_t length)
{
    json_body_read_or_say(request, bytes, length, bridge_exec_read, "Invalid JSON body");
}

static void bridge_exec_ready(struct visit *visit)
{
    http_request_collect(visit->request, bridge_exec_got_body);
}

void bridge_exec(struct http_request *request)
{
    bridge_visit(request, 0, bridge_exec_ready);
}
