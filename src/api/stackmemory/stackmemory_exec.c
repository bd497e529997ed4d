/* exec: a command with arguments is run as it is; a command alone is a line for the shell; with a
 * session both run in its shell. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/stackmemory/stackmemory_internal.h"

#define COMMAND_MAX    ((size_t) 1024 * 1024)
#define ARGUMENTS_MAX  ((size_t) 16384)
#define SESSION_MAX    ((size_t) 256)
#define LINE_MAX_SIZE  ((size_t) 4 * 1024 * 1024)
#define TIMEOUT_MAX_MS (INT64_C(24) * 3600 * 1000)
/* The agent ends the command by itself; this is for an agent that does not. */
#define TIMEOUT_GRACE_MS ((uint64_t) 30 * 1000)

/* In the request's pool. */
struct exec_wish {
    const char *session; /* NULL: none was named */
    struct agent_request request;
};

static void quote(struct text *line, const char *word)
{
    text_append_char(line, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            text_append(line, "'\\''");
        else
            text_append_char(line, *word);
    }
    text_append_char(line, '\'');
}

static int stackmemory_exec_add_line(struct agent_body *body, const char *command,
                                     const struct json_texts *words, struct error *err)
{
    AUTO(text) struct text line = TEXT_INIT(LINE_MAX_SIZE);

    quote(&line, command);
    for (size_t i = 0; i < words->count; i++) {
        text_append_char(&line, ' ');
        quote(&line, words->items[i]);
    }
    if (line.overflowed)
        return error_set(err, ERR_TOO_LARGE, 0, "command and args are too long for a session");
    json_add_text(&body->json, "command", text_string(&line));
    return 0;
}

static void add_arguments(struct agent_body *body, const char *command,
                          const struct json_texts *words)
{
    json_begin_array_at(&body->json, "argv");
    json_put_text(&body->json, command);
    for (size_t i = 0; i < words->count; i++)
        json_put_text(&body->json, words->items[i]);
    json_end_array(&body->json);
}

static int add_command(struct agent_body *body, const char *command, const struct json_texts *words,
                       const char *session, struct error *err)
{
    if (words->count && session)
        return stackmemory_exec_add_line(body, command, words, err);
    if (words->count)
        add_arguments(body, command, words);
    else
        json_add_text(&body->json, "command", command);
    return 0;
}

static int add_settings(struct agent_body *body, const struct json_place *place,
                        struct exec_wish *wish, struct error *err)
{
    int64_t timeout_ms = 0;
    const char *folder = NULL;

    if (json_field_text(place, "cwd", JSON_OPTIONAL, STACKMEMORY_PATH_MAX, &folder, err) < 0 ||
        json_field_integer(place, "timeoutMs", JSON_OPTIONAL, 1, TIMEOUT_MAX_MS, &timeout_ms, err) <
            0)
        return -1;
    if (folder && folder[0])
        json_add_text(&body->json, "cwd", folder);
    if (wish->session)
        json_add_text(&body->json, "sessionId", wish->session);
    if (!timeout_ms)
        return 0;
    json_add_integer(&body->json, "timeoutMs", timeout_ms);
    wish->request.timeout_ms = (uint64_t) timeout_ms + TIMEOUT_GRACE_MS;
    return 0;
}

static void stackmemory_exec_answered(struct visit *visit, const struct agent_reply *reply,
                                      const struct error *failure)
{
    const struct exec_wish *wish = visit->data;
    json_t *answer;

    if (!stackmemory_is_good(visit, reply, failure))
        return;
    answer = stackmemory_answer(visit->request);
    (void) json_object_set_new(answer, "sessionId",
                               wish->session ? json_string(wish->session) : json_null());
    (void) json_object_set(answer, "result", reply->json);
    stackmemory_reply(visit->request, answer);
}

static void stackmemory_exec_ready(struct visit *visit)
{
    const struct exec_wish *wish = visit->data;

    agent_call(visit, &wish->request, stackmemory_exec_answered);
}

static int read_wish(struct http_request *request, const struct json_place *place,
                     const char *command, struct exec_wish *wish, struct error *err)
{
    struct json_texts words = {.count = 0};
    struct agent_body body;
    int r;

    if (json_field_texts(place, "args", JSON_OPTIONAL, ARGUMENTS_MAX, COMMAND_MAX, &request->pool,
                         &words, err) < 0 ||
        json_field_text(place, "sessionId", JSON_OPTIONAL, SESSION_MAX, &wish->session, err) < 0)
        return -1;
    if (wish->session)
        wish->session = wish->session[0] ? pool_copy_text(&request->pool, wish->session) : NULL;
    agent_body_begin(&body);
    r = add_command(&body, command, &words, wish->session, err);
    if (r == 0)
        r = add_settings(&body, place, wish, err);
    agent_body_end(&body, &request->pool, "/api/execute", &wish->request);
    return r;
}

static int stackmemory_exec_read_body(struct http_request *request, const struct json_place *place,
                                      struct error *err)
{
    struct exec_wish *wish = pool_alloc(&request->pool, sizeof(*wish));
    const char *command = NULL;

    if (json_field_text(place, "command", JSON_OPTIONAL, COMMAND_MAX, &command, err) < 0)
        return -1;
    if (!command || !command[strspn(command, " \t\r\n")]) {
        stackmemory_refuse(request, "missing_command", "the body needs a \"command\"");
        return 0;
    }
    if (read_wish(request, place, command, wish, err) < 0)
        return -1;
    stackmemory_visit(request, wish, stackmemory_exec_ready);
    return 0;
}

void stackmemory_exec(struct http_request *request)
{
    stackmemory_take_body(request, stackmemory_exec_read_body);
}
