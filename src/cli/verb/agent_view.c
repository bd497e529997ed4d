#include "cli/verb/agent_view.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json/json_read.h"

#define RETRY_SECONDS 1
#define RETRIES       120
#define LINE_MAX_     ((size_t) 512 * 1024)
#define INPUT_SHOWN   100

void agent_view_init(struct agent_view *view, const struct verb_call *call, struct client *client)
{
    *view = (struct agent_view){.call = call,
                                .client = client,
                                .is_json = verb_flag(call, "json"),
                                .answers = isatty(STDIN_FILENO) != 0,
                                .is_at_start = true};
}

void agent_view_done(struct agent_view *view)
{
    if (view->other)
        client_close(view->other);
    view->other = NULL;
}

int agent_view_status(const struct agent_view *view)
{
    return strcmp(view->state, "done") == 0 ? 0 : VERB_STATUS_FAILURE;
}

/* --- asking meanwhile ---------------------------------------------------------------------------- */

/* The one client is at work following: this is another, with a loop of its own. */
static int agent_view_post(struct agent_view *view, const char *path, json_t *body,
                           struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (!view->other && client_open(&view->own, verb_value(view->call, "url"),
                                    verb_value(view->call, "key"), err) < 0)
        return -1;
    view->other = &view->own;
    return client_call(view->other, "POST", path, body, &reply, err);
}

static void agent_view_complain(const struct error *err)
{
    (void) fprintf(stderr, "burrow: %s\n", err->message);
}

static void agent_view_interrupted(uv_signal_t *signal, int number)
{
    struct agent_view *view = signal->data;
    struct error err = ERROR_INIT;

    (void) number;
    if (!view->cancel || view->is_cancelled)
        _exit(128 + SIGINT); /* asked twice: the turn goes on without us */
    view->is_cancelled = true;
    (void) fprintf(stderr, "\n[cancelling]\n");
    if (agent_view_post(view, view->cancel, NULL, &err) < 0)
        agent_view_complain(&err);
}

/* --- shown ---------------------------------------------------------------------------------------- */

static void agent_view_say(struct agent_view *view, const char *text)
{
    AUTO(text) struct text out = TEXT_INIT(LINE_MAX_);
    size_t length = strlen(text);

    if (!length)
        return;
    text_append(&out, text);
    verb_print(&out);
    (void) fflush(stdout);
    view->is_at_start = text[length - 1] == '\n';
}

static void agent_view_new_line(struct agent_view *view)
{
    if (!view->is_at_start)
        agent_view_say(view, "\n");
    view->part[0] = '\0';
}

/* Of a text that came in pieces only the rest is shown when it is whole. */
static void agent_view_text(struct agent_view *view, json_t *json)
{
    const char *part = verb_field(json, "part"), *delta = verb_field(json, "delta");
    const char *text = verb_field(json, "text");

    if (!part)
        return;
    if (strcmp(view->part, part) != 0) {
        agent_view_new_line(view);
        (void) snprintf(view->part, sizeof(view->part), "%s", part);
        view->told = 0;
    }
    if (delta) {
        view->told += strlen(delta);
        agent_view_say(view, delta);
    } else if (text) {
        if (strlen(text) > view->told)
            agent_view_say(view, text + view->told);
        agent_view_new_line(view);
    }
}

/* What matters of a tool's input in one line: its command, path or pattern. */
static const char *agent_view_input(json_t *input)
{
    static const char *const keys[] = {"command",   "filePath", "path",
                                       "file_path", "pattern",  "url"};

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        if (verb_field(input, keys[i]))
            return verb_field(input, keys[i]);
    return "";
}

static void agent_view_tool(struct agent_view *view, json_t *json)
{
    const char *state = verb_field(json, "state"), *title = verb_field(json, "title");
    const char *tool = verb_field(json, "tool"), *error = verb_field(json, "error");
    AUTO(text) struct text line = TEXT_INIT(LINE_MAX_);
    const char *shown;
    bool is_over = state && (strcmp(state, "completed") == 0 || strcmp(state, "error") == 0);

    if (!is_over)
        return;
    shown = title && *title ? title : agent_view_input(json_object_get(json, "input"));
    agent_view_new_line(view);
    text_format(&line, "  %s %s %.*s%s%.*s\n", strcmp(state, "error") == 0 ? "x" : "*",
                tool ? tool : "tool",
                (int) strcspn(shown, "\n") > INPUT_SHOWN ? INPUT_SHOWN : (int) strcspn(shown, "\n"),
                shown, error ? ": " : "", error ? (int) strcspn(error, "\n") : 0,
                error ? error : "");
    agent_view_say(view, text_string(&line));
}

static void agent_view_ended(struct agent_view *view, json_t *json)
{
    const char *state = verb_field(json, "state");
    json_t *error = json_object_get(json, "error"), *usage = json_object_get(json, "usage");

    agent_view_new_line(view);
    (void) snprintf(view->state, sizeof(view->state), "%s", state ? state : "");
    if (json_is_object(error))
        (void) fprintf(stderr, "[%s: %s]\n", state ? state : "ended",
                       verb_field(error, "message") ? verb_field(error, "message") : "");
    else if (json_is_object(usage) && isatty(STDERR_FILENO))
        (void) fprintf(stderr, "[%lld tokens in, %lld out]\n", verb_number(usage, "input"),
                       verb_number(usage, "output"));
}

static void agent_view_task(struct agent_view *view, json_t *json)
{
    const char *step = verb_field(json, "step"), *state = verb_field(json, "state");
    json_t *error = json_object_get(json, "error");

    agent_view_new_line(view);
    if (step)
        (void) fprintf(stderr, "[%s: %s]\n", state ? state : "", step);
    else if (json_is_object(error))
        (void) fprintf(stderr, "[%s: %s]\n", state ? state : "",
                       verb_field(error, "message") ? verb_field(error, "message") : "");
    if (!step && state)
        (void) snprintf(view->state, sizeof(view->state), "%s", state);
}

/* --- asked ---------------------------------------------------------------------------------------- */

static const char *agent_view_read_reply(void)
{
    char line[64];

    for (;;) {
        (void) fprintf(stderr, "  once, always or reject? ");
        if (!fgets(line, sizeof(line), stdin))
            return "reject";
        switch (line[0]) {
        case 'o':
        case 'y':
            return "once";
        case 'a':
            return "always";
        case 'r':
        case 'n':
            return "reject";
        default:
            break;
        }
    }
}

static void agent_view_asked(struct agent_view *view, json_t *json)
{
    const char *id = verb_field(json, "id");
    json_t *detail = json_object_get(json, "detail");
    const char *what = verb_field(detail, "permission");
    AUTO(free) char *patterns = json_dumps(json_object_get(detail, "patterns"), JSON_COMPACT);
    AUTO(json) json_t *body = json_object();
    AUTO(text) struct text path = TEXT_INIT(4096);
    struct error err = ERROR_INIT;

    agent_view_new_line(view);
    (void) fprintf(stderr, "[may it: %s %s]\n", what ? what : "?", patterns ? patterns : "");
    if (!view->answers || !view->sandbox || !id)
        return;
    text_format(&path, CLIENT_PREFIX "/sandboxes/%s/permissions/%s", view->sandbox, id);
    json_object_set_new(body, "reply", json_string(agent_view_read_reply()));
    if (agent_view_post(view, text_string(&path), body, &err) < 0)
        agent_view_complain(&err);
}

/* --- followed ------------------------------------------------------------------------------------- */

static const struct {
    const char *kind;
    void (*show)(struct agent_view *view, json_t *json);
} kinds[] = {
    {"text", agent_view_text}, {"tool", agent_view_tool},        {"turn.ended", agent_view_ended},
    {"task", agent_view_task}, {"permission", agent_view_asked},
};

static int agent_view_event(void *context, const struct sse_event *event, json_t *json,
                            struct error *err)
{
    struct agent_view *view = context;

    view->failures = 0;
    if (strcmp(event->type, "error") == 0)
        return error_set(err, ERR_UPSTREAM, 0, "%s",
                         verb_field(json, "message") ? verb_field(json, "message")
                                                     : "the events broke off");
    if (*event->id)
        view->after = strtoll(event->id, NULL, 10);
    if (!json)
        return 0;
    if (view->is_json) {
        AUTO(json) json_t *line = json_pack("{s:s,s:O}", "type", event->type, "data", json);

        (void) json_dumpf(line, stdout, JSON_COMPACT);
        (void) fputc('\n', stdout);
        (void) fflush(stdout);
        if (strcmp(event->type, "turn.ended") == 0 && verb_field(json, "state"))
            (void) snprintf(view->state, sizeof(view->state), "%s", verb_field(json, "state"));
        return 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (strcmp(kinds[i].kind, event->type) == 0)
            kinds[i].show(view, json);
    return 0;
}

static int agent_view_follow_on(struct agent_view *view, const char *path, struct error *err)
{
    for (;;) {
        const char *from = pool_format(&view->client->pool, "%s?after=%lld", path, view->after);
        int r = client_events(view->client, from, agent_view_event, view, err);

        if (r == 0 || (err->code != ERR_UPSTREAM && err->code != ERR_UNAVAILABLE) ||
            ++view->failures > RETRIES)
            return r;
        (void) sleep(RETRY_SECONDS);
    }
}

static void agent_view_signal_closed(uv_handle_t *handle)
{
    *(bool *) handle->data = true;
}

int agent_view_follow(struct agent_view *view, const char *path, struct error *err)
{
    uv_signal_t interrupt;
    bool is_closed = false;
    int r;

    (void) uv_signal_init(&view->client->loop.uv, &interrupt);
    interrupt.data = view;
    (void) uv_signal_start(&interrupt, agent_view_interrupted, SIGINT);
    uv_unref((uv_handle_t *) &interrupt);
    r = agent_view_follow_on(view, path, err);
    interrupt.data = &is_closed;
    uv_close((uv_handle_t *) &interrupt, agent_view_signal_closed);
    while (!is_closed)
        (void) uv_run(&view->client->loop.uv, UV_RUN_NOWAIT);
    return r;
}
