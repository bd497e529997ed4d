/* burrow ps, kill, logs: processes in the background of a sandbox. */
#include <stdio.h>
#include <string.h>

#include "cli/client/client.h"
#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "net/url.h"

static const struct verb_option logs_options[] = {
    {"follow", 'f', NULL, "go on with what it writes, until it ends", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_column columns[] = {
    {"ID", "id", verb_put_text},
    {"PID", "pid", verb_put_number},
    {"STATUS", "status", verb_put_text},
    {"EXIT", "exitCode", verb_put_number},
    {"STARTED", "startTime", verb_put_age},
    {"COMMAND", "command", verb_put_text},
    VERB_COLUMNS_END,
};

/* --- ps -------------------------------------------------------------------------------------- */

static int list_processes(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_sandbox_call(client, "GET", call->words[0], "/processes", NULL, &reply, err) < 0)
        return -1;
    return verb_print_list(call, json_object_get(reply.json, "processes"), columns);
}

/* --- kill ------------------------------------------------------------------------------------ */

/* "/processes/ID" and what stands behind it. */
static const char *path_of(struct client *client, const char *process, const char *rest)
{
    AUTO(text) struct text path = TEXT_INIT(URL_LENGTH_MAX);

    text_append(&path, "/processes/");
    url_encode(&path, process, strlen(process));
    text_append(&path, rest);
    return pool_copy_text(&client->pool, text_string(&path));
}

static int end_process(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_sandbox_call(client, "DELETE", call->words[0], path_of(client, call->words[1], ""),
                            NULL, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) puts(call->words[1]);
    return 0;
}

/* --- logs ------------------------------------------------------------------------------------ */

/* Which one, when it is not said: the newest. NULL with an error. */
static const char *newest_process(struct client *client, const char *sandbox, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *found = NULL, *latest = "";
    json_t *one;
    size_t i;

    if (client_sandbox_call(client, "GET", sandbox, "/processes", NULL, &reply, err) < 0)
        return NULL;
    json_array_foreach (json_object_get(reply.json, "processes"), i, one) {
        const char *time = verb_field(one, "startTime");

        if (time && strcmp(time, latest) >= 0) {
            latest = time;
            found = verb_field(one, "id");
        }
    }
    if (!found) {
        (void) error_set(err, ERR_NOT_FOUND, 0,
                         "nothing runs in the background of '%s'; burrow exec -d starts something",
                         sandbox);
        return NULL;
    }
    return pool_copy_text(&client->pool, found);
}

/* Their own bytes: a log may be of any kind. */
static void write_output(const char *type, json_t *text)
{
    FILE *out = strcmp(type, "stderr") == 0 ? stderr : stdout;

    (void) fwrite(json_string_value(text), 1, json_string_length(text), out);
    (void) fflush(out);
}

static int line_arrived(void *context, const struct sse_event *event, json_t *json,
                        struct error *err)
{
    const struct verb_call *call = context;
    const char *type = verb_field(json, "type");
    json_t *data = json_object_get(json, "data");

    (void) event;
    if (verb_flag(call, "json")) {
        verb_print_json(json);
        return 0;
    }
    if (type && json_is_string(data) && strncmp(type, "std", 3) == 0)
        write_output(type, data);
    if (type && strcmp(type, "error") == 0)
        return error_set(err, ERR_UPSTREAM, 0, "%s",
                         json_is_string(data) ? json_string_value(data) : "the log broke off");
    return 0;
}

static int print_log(struct verb_call *call, struct client *client, const char *process,
                     struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    json_t *out, *errors;

    if (client_sandbox_call(client, "GET", call->words[0], path_of(client, process, "/logs"), NULL,
                            &reply, err) < 0)
        return -1;
    out = json_object_get(reply.json, "stdout");
    errors = json_object_get(reply.json, "stderr");
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else if (json_is_string(out) && json_is_string(errors)) {
        write_output("stdout", out);
        write_output("stderr", errors);
    }
    return 0;
}

static int logs(struct verb_call *call, struct client *client, struct error *err)
{
    const char *process =
        call->word_count > 1 ? call->words[1] : newest_process(client, call->words[0], err);
    const char *path;

    if (!process)
        return -1;
    if (!verb_flag(call, "follow"))
        return print_log(call, client, process, err);
    path = client_sandbox_path(client, call->words[0], path_of(client, process, "/logs/stream"));
    if (client_events(client, path, line_arrived, call, err) == 0)
        return 0;
    client_sandbox_explain(client, call->words[0], err);
    return -1;
}

/* --- rows ------------------------------------------------------------------------------------ */

const struct verb verb_processes = {
    .name = "ps",
    .summary = "List what runs in the background of a sandbox",
    .arguments = "NAME",
    .details = "What `burrow exec -d` and the API's processes have started, also what has ended. "
               "All processes\nthere are: burrow exec NAME ps -ef.",
    .words_min = 1,
    .words_max = 1,
    .takes_sandboxes = true,
    .work = list_processes,
};

const struct verb verb_kill = {
    .name = "kill",
    .summary = "End something that runs in the background",
    .arguments = "NAME PROCESS",
    .details = "PROCESS is an id of `burrow ps`.",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = end_process,
};

const struct verb verb_logs = {
    .name = "logs",
    .summary = "Print what a background process has written",
    .arguments = "NAME [PROCESS]",
    .options = logs_options,
    .details = "PROCESS is an id of `burrow ps`; without it the one that was started last.",
    .examples = "  burrow exec -d demo ./server\n  burrow logs -f demo",
    .words_min = 1,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = logs,
};
