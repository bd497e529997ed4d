/* burrow task, burrow team: prompts with a sandbox of their own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/verb/agent_view.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "sys/file/sys_file.h"

#define FILE_SIZE_MAX ((size_t) 512 * 1024)
#define PROMPT_MAX    ((size_t) 512 * 1024)

#define TASK_OPTIONS                                                                               \
    {"git", 0, "URL", "check this repository out first", false},                                   \
        {"branch", 0, "NAME", "of the repository", false},                                         \
        {"model", 'm', "PROVIDER/MODEL", "that the agent asks", false},                            \
        {"kind", 0, "KIND", "opencode, claude, codex or command", false},                          \
        {"command", 0, "COMMAND", "of the kind command: what runs", false},                        \
        {"image", 'i', "IMAGE", "the sandbox is made of", false},                                  \
        {"template", 0, "NAME", "the sandbox is made of", false},                                  \
        {"env", 'e', "NAME=VALUE", "a variable of the sandbox", true},                             \
        {"permission", 0, "POLICY", "allow, ask or reject what it wants to do", false},            \
        {"timeout", 0, "TIME", "it may take", false},                                              \
        {"cleanup", 0, "WHAT", "keep, sleep (if not given) or destroy the sandbox afterwards",     \
         false},

static const struct verb_option run_options[] = {
    TASK_OPTIONS{"sandbox", 0, "NAME", "work in this one", false},
    {"title", 0, "TEXT", "what it is called", false},
    {"file", 'f', "PATH", "give it this file, too", true},
    {"follow", 0, NULL, "show what the agent does, until the end", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_option schedule_options[] = {
    TASK_OPTIONS{"time-zone", 0, "ZONE", "of the times: Europe/Berlin; UTC if not given", false},
    {"overlap", 0, "POLICY", "skip, allow or replace a task that is not over", false},
    {"missed", 0, "POLICY", "skip, or once: make up for times that passed", false},
    {NULL, 0, NULL, NULL, false},
};

/* --- what is wished for --------------------------------------------------------------------------- */

static void task_set_git(const struct verb_call *call, json_t *body)
{
    json_t *git;

    if (!verb_value(call, "git"))
        return;
    git = json_object();
    verb_set_text(git, "url", verb_value(call, "git"));
    verb_set_text(git, "branch", verb_value(call, "branch"));
    json_object_set_new(body, "git", git);
}

static int task_set_env(const struct verb_call *call, json_t *body, struct error *err)
{
    json_t *env = NULL;
    size_t count;
    const char *const *values = verb_values(call, "env", &count);

    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(values[i], '=');
        AUTO(free) char *name = NULL;

        if (!equals || equals == values[i])
            return error_set(err, ERR_INVALID, 0, "--env %s: NAME=VALUE", values[i]);
        if (!env)
            json_object_set_new(body, "env", env = json_object());
        name = mem_copy_bytes(values[i], (size_t) (equals - values[i]));
        json_object_set_new(env, name, json_string(equals + 1));
    }
    return 0;
}

static int task_set_files(const struct verb_call *call, json_t *body, struct error *err)
{
    json_t *files = NULL;
    size_t count;
    const char *const *values = verb_values(call, "file", &count);

    for (size_t i = 0; i < count; i++) {
        AUTO(free) char *bytes = NULL;
        const char *slash = strrchr(values[i], '/');
        size_t length;
        int r = sys_file_read_all(AT_FDCWD, values[i], FILE_SIZE_MAX, &bytes, &length);
        json_t *file, *content;

        if (r < 0)
            return error_set(err, error_code_from_errno(r), r, "read '%s'", values[i]);
        content = json_stringn(bytes, length);
        if (!content)
            return error_set(err, ERR_INVALID, 0, "'%s' is not text in UTF-8; use `burrow cp`",
                             values[i]);
        if (!files)
            json_object_set_new(body, "files", files = json_array());
        file = json_object();
        json_object_set_new(file, "path", json_string(slash ? slash + 1 : values[i]));
        json_object_set_new(file, "content", content);
        json_array_append_new(files, file);
    }
    return 0;
}

static int task_set_common(const struct verb_call *call, json_t *body, struct error *err)
{
    static const char *const keys[] = {"model",    "kind",       "command", "image",
                                       "template", "permission", "timeout", "cleanup"};

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        verb_set_text(body, keys[i], verb_value(call, keys[i]));
    task_set_git(call, body);
    return task_set_env(call, body, err);
}

static void task_set_prompt(const struct verb_call *call, size_t from, json_t *body)
{
    AUTO(text) struct text prompt = TEXT_INIT(PROMPT_MAX);

    for (size_t i = from; i < call->word_count; i++)
        text_format(&prompt, "%s%s", i > from ? " " : "", call->words[i]);
    verb_set_text(body, "text", text_string(&prompt));
}

/* --- tasks ---------------------------------------------------------------------------------------- */

static int task_follow(struct verb_call *call, struct client *client, const char *id,
                       struct error *err)
{
    struct agent_view view;
    int r;

    agent_view_init(&view, call, client);
    view.cancel = client_path(client, "tasks", id, "/cancel");
    r = agent_view_follow(&view, client_path(client, "tasks", id, "/events"), err);
    agent_view_done(&view);
    return r < 0 ? -1 : agent_view_status(&view);
}

static int task_run(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    const char *id;

    task_set_prompt(call, 0, body);
    verb_set_text(body, "sandbox", verb_value(call, "sandbox"));
    verb_set_text(body, "title", verb_value(call, "title"));
    if (task_set_common(call, body, err) < 0 || task_set_files(call, body, err) < 0 ||
        client_call(client, "POST", CLIENT_PREFIX "/tasks", body, &reply, err) < 0)
        return -1;
    if (!verb_flag(call, "follow"))
        return verb_print_field(call, reply.json, "id");
    id = pool_copy_text(&client->pool, verb_field(reply.json, "id"));
    if (!verb_flag(call, "json"))
        (void) fprintf(stderr, "[task %s]\n", id);
    return task_follow(call, client, id, err);
}

static void task_put_cost(struct grid *grid, json_t *object, const char *field)
{
    json_t *usage = json_object_get(object, field);

    if (json_is_true(json_object_get(usage, "costKnown")))
        grid_format(grid, "%.4f", (double) verb_number(usage, "costMicros") / 1e6);
    else
        grid_put(grid, NULL);
}

static const struct verb_column task_columns[] = {
    {"ID", "id", verb_put_text},      {"STATE", "state", verb_put_text},
    {"ROLE", "role", verb_put_text},  {"SANDBOX", "sandboxId", verb_put_text},
    {"COST", "usage", task_put_cost}, {"CREATED", "createdAt", verb_put_age},
    {"TEXT", "text", verb_put_text},  VERB_COLUMNS_END,
};

/* A prompt may be long: its first line, and not all of that. */
static void task_shorten(json_t *list)
{
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        const char *text = verb_field(one, "text");
        size_t length = text ? strcspn(text, "\n") : 0;

        while (length > 60 || (length && ((unsigned char) text[length] & 0xC0) == 0x80))
            length = length > 60 ? 60 : length - 1;
        if (text)
            json_object_set_new(one, "text", json_stringn(text, length));
    }
}

static int task_list_all(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_list(client, CLIENT_PREFIX "/tasks", "tasks", err);

    if (!all)
        return -1;
    if (!verb_flag(call, "json"))
        task_shorten(all);
    return verb_print_list(call, all, task_columns);
}

static void task_print(json_t *task)
{
    static const char *const keys[] = {"id", "state", "sandboxId", "git", "createdAt", "endedAt"};
    AUTO(text) struct text out = TEXT_INIT(4 * PROMPT_MAX);
    json_t *error = json_object_get(task, "error"), *usage = json_object_get(task, "usage");

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        if (verb_field(task, keys[i]))
            text_format(&out, "%-10s %s\n", keys[i], verb_field(task, keys[i]));
    text_format(&out, "%-10s %lld in, %lld out", "tokens", verb_number(usage, "input"),
                verb_number(usage, "output"));
    if (json_is_true(json_object_get(usage, "costKnown")))
        text_format(&out, ", cost %.4f", (double) verb_number(usage, "costMicros") / 1e6);
    if (json_is_object(error))
        text_format(&out, "\n%-10s %s", "error", verb_field(error, "message"));
    text_format(&out, "\n\n%s\n", verb_field(task, "answer") ? verb_field(task, "answer") : "");
    verb_print(&out);
}

static int task_show(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_call(client, "GET", client_path(client, "tasks", call->words[0], ""), NULL, &reply,
                    err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        task_print(reply.json);
    return 0;
}

/* POST to something of one of them; its state is printed. */
static int task_post(struct verb_call *call, struct client *client, const char *kind,
                     const char *rest, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_call(client, "POST", client_path(client, kind, call->words[0], rest), NULL, &reply,
                    err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "state");
}

static int task_cancel_one(struct verb_call *call, struct client *client, struct error *err)
{
    return task_post(call, client, "tasks", "/cancel", err);
}

static int task_undo_one(struct verb_call *call, struct client *client, struct error *err)
{
    return task_post(call, client, "tasks", "/undo", err);
}

static int task_diff(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(text) struct text out = TEXT_INIT(CLIENT_REPLY_MAX);
    const char *patch, *kind;
    json_t *change, *path;
    size_t i;

    if (client_call(client, "GET", client_path(client, "tasks", call->words[0], "/diff"), NULL,
                    &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json")) {
        verb_print_json(reply.json);
        return 0;
    }
    patch = verb_field(reply.json, "patch");
    if (patch)
        text_append(&out, patch);
    json_array_foreach (json_object_get(reply.json, "changes"), i, change) {
        if (patch)
            continue;
        json_object_foreach (change, kind, path) {
            text_format(&out, "%-8s /%s\n", kind, json_string_value(path));
        }
    }
    verb_print(&out);
    return 0;
}

static int task_follow_one(struct verb_call *call, struct client *client, struct error *err)
{
    return task_follow(call, client, call->words[0], err);
}

static int task_remove(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "tasks");
}

/* --- schedules ------------------------------------------------------------------------------------ */

static int task_schedule_make(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    json_t *task = json_object();

    json_object_set_new(body, "task", task);
    verb_set_text(body, "name", call->words[0]);
    verb_set_text(body, "cron", call->words[1]);
    verb_set_text(body, "timeZone", verb_value(call, "time-zone"));
    verb_set_text(body, "overlap", verb_value(call, "overlap"));
    verb_set_text(body, "missed", verb_value(call, "missed"));
    task_set_prompt(call, 2, task);
    if (task_set_common(call, task, err) < 0 ||
        client_call(client, "POST", CLIENT_PREFIX "/schedules", body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "nextAt");
}

static const struct verb_column schedule_columns[] = {
    {"NAME", "name", verb_put_text},
    {"CRON", "cron", verb_put_text},
    {"ZONE", "timeZone", verb_put_text},
    {"NEXT", "nextAt", verb_put_text},
    {"LAST", "lastTask", verb_put_text},
    {"DETAIL", "detail", verb_put_text},
    VERB_COLUMNS_END,
};

static int task_schedule_list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_list(client, CLIENT_PREFIX "/schedules", "schedules", err);

    if (!all)
        return -1;
    return verb_print_list(call, all, schedule_columns);
}

static int task_schedule_remove(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "schedules");
}

/* --- teams ---------------------------------------------------------------------------------------- */

static const struct verb_option team_options[] = {
    TASK_OPTIONS{"parallel", 0, "COUNT", "that work at a time; 4 if not given", false},
    {"fork", 0, NULL, "members get copies of one checkout", false},
    {"cancel-on-failure", 0, NULL, "end the others when one fails", false},
    {"wait", 0, NULL, "until all are over", false},
    {NULL, 0, NULL, NULL, false},
};

/* "ROLE=PROMPT", or a prompt. */
static void team_add_member(json_t *members, const char *word)
{
    const char *equals = strchr(word, '=');
    json_t *member = json_object();
    bool has_role = equals && equals != word && (size_t) (equals - word) <= 64 &&
                    strcspn(word, " \t") > (size_t) (equals - word);

    if (has_role)
        json_object_set_new(member, "role", json_stringn(word, (size_t) (equals - word)));
    json_object_set_new(member, "text", json_string(has_role ? equals + 1 : word));
    json_array_append_new(members, member);
}

static int team_run(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    const char *parallel = verb_value(call, "parallel");
    json_t *members = json_array();
    int64_t count = 0;

    json_object_set_new(body, "members", members);
    for (size_t i = 0; i < call->word_count; i++)
        team_add_member(members, call->words[i]);
    if (parallel && number_parse(parallel, 1, 16, &count) < 0)
        return error_set(err, ERR_INVALID, 0, "--parallel %s: a number from 1 to 16", parallel);
    if (parallel)
        json_object_set_new(body, "parallel", json_integer(count));
    verb_set_text(body, "shared", verb_flag(call, "fork") ? "fork" : NULL);
    verb_set_text(body, "onFailure", verb_flag(call, "cancel-on-failure") ? "cancel" : NULL);
    if (verb_flag(call, "wait"))
        json_object_set_new(body, "wait", json_true());
    if (task_set_common(call, body, err) < 0 ||
        client_call(client, "POST", CLIENT_PREFIX "/teams", body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "id");
}

static int team_show(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    json_t *members;

    if (client_call(client, "GET", client_path(client, "teams", call->words[0], ""), NULL, &reply,
                    err) < 0)
        return -1;
    if (verb_flag(call, "json")) {
        verb_print_json(reply.json);
        return 0;
    }
    (void) fprintf(stderr, "[%s]\n", verb_field(reply.json, "state"));
    members = json_object_get(reply.json, "members");
    task_shorten(members);
    return verb_print_list(call, members, task_columns);
}

static int team_cancel_one(struct verb_call *call, struct client *client, struct error *err)
{
    return task_post(call, client, "teams", "/cancel", err);
}

/* --- the rows ------------------------------------------------------------------------------------- */

const struct verb verb_task_run = {
    .name = "task run",
    .summary = "Have an agent do something in a sandbox of its own",
    .arguments = "PROMPT...",
    .options = run_options,
    .details =
        "Prints the task's id; with --follow what the agent does, and the status is 0 when it "
        "is done. Ctrl-C cancels the task.",
    .examples = "  burrow task run 'fix the failing test' --git https://host/repo.git --follow",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = task_run,
};

const struct verb verb_task_list = {
    .name = "task ls",
    .summary = "List tasks, the newest first",
    .arguments = "",
    .work = task_list_all,
};

const struct verb verb_task_show = {
    .name = "task show",
    .summary = "Print a task, its cost and its answer",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = task_show,
};

const struct verb verb_task_follow = {
    .name = "task follow",
    .summary = "Show what its agent did and does, until the end",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = task_follow_one,
};

const struct verb verb_task_cancel = {
    .name = "task cancel",
    .summary = "End a task; one that is over stays as it is",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = task_cancel_one,
};

const struct verb verb_task_diff = {
    .name = "task diff",
    .summary = "Print what a task changed: git's patch, or the files",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = task_diff,
};

const struct verb verb_task_undo = {
    .name = "task undo",
    .summary = "Make its sandbox what it was before the task",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = task_undo_one,
};

const struct verb verb_task_remove = {
    .name = "task rm",
    .summary = "Delete tasks that are over; their sandboxes stay",
    .arguments = "ID...",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = task_remove,
};

const struct verb verb_task_schedule = {
    .name = "task schedule",
    .summary = "Have a task begin by itself, when a cron expression says so",
    .arguments = "NAME CRON PROMPT...",
    .options = schedule_options,
    .details =
        "CRON is five fields, minute hour day month weekday, in one word; or @hourly, @daily, "
        "@weekly, @monthly, @yearly. Prints when it begins next.",
    .examples = "  burrow task schedule news '0 7 * * mon-fri' 'read the news' "
                "--time-zone Europe/Berlin",
    .words_min = 3,
    .words_max = SIZE_MAX,
    .work = task_schedule_make,
};

const struct verb verb_task_schedules = {
    .name = "task schedules",
    .summary = "List schedules",
    .arguments = "",
    .work = task_schedule_list,
};

const struct verb verb_task_unschedule = {
    .name = "task unschedule",
    .summary = "Delete schedules; their tasks stay",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = task_schedule_remove,
};

const struct verb verb_team_run = {
    .name = "team run",
    .summary = "Have several agents work at once, each in a sandbox of its own",
    .arguments = "[ROLE=]PROMPT...",
    .options = team_options,
    .examples = "  burrow team run writer='write it' tester='test it' --git https://host/repo.git "
                "--fork --wait",
    .words_min = 1,
    .words_max = 16,
    .work = team_run,
};

const struct verb verb_team_show = {
    .name = "team show",
    .summary = "Print a team and its members",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = team_show,
};

const struct verb verb_team_cancel = {
    .name = "team cancel",
    .summary = "End all members of a team that are not over",
    .arguments = "ID",
    .words_min = 1,
    .words_max = 1,
    .work = team_cancel_one,
};
