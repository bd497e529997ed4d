#include "harness/run_start.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "harness/opencode_config.h"
#include "harness/opencode_event.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define COMMAND_MAX ((size_t) 120 * 1024)

#define CLAUDE_TOOLS                                                                               \
    "Bash,Edit,MultiEdit,Write,NotebookEdit,Read,Glob,Grep,WebFetch,WebSearch,Task,Agent,Skill,"   \
    "TodoWrite"

/* What a start is made of: a command, and variables. */
struct run_start {
    const struct harness_prompt *prompt;
    json_t *config; /* owned: the caller's, an object */
    json_t *models; /* owned: an object, or NULL */
    json_t *variables;
    struct text command;
};

static void run_start_done(struct run_start *start)
{
    json_decref(start->config);
    json_decref(start->models);
    json_decref(start->variables);
    text_done(&start->command);
}

AUTO_DEFINE(run_start, struct run_start, run_start_done);

void run_start_process(const struct id *turn, char ret_process[static RUN_PROCESS_MAX])
{
    (void) snprintf(ret_process, RUN_PROCESS_MAX, "burrow-turn-%s", turn->text);
}

/* --- pieces ---------------------------------------------------------------------------------- */

/* A word for the shell, whatever is in it. */
static void run_start_word(struct run_start *start, const char *word)
{
    text_append(&start->command, " '");
    for (; *word; word++) {
        if (*word == '\'')
            text_append(&start->command, "'\\''");
        else
            text_append_char(&start->command, *word);
    }
    text_append(&start->command, "'");
}

static void run_start_option(struct run_start *start, const char *option, const char *value)
{
    if (!value || !*value)
        return;
    text_append_char(&start->command, ' ');
    text_append(&start->command, option);
    run_start_word(start, value);
}

static void run_start_variable(struct run_start *start, const char *name, const char *value)
{
    (void) json_object_set_new(start->variables, name, json_string(value ? value : ""));
}

/* The base URL of a provider's route at the broker; false when it is not to be had there. */
static bool run_start_route(const struct run_start *start, const char *provider,
                            const char **ret_route)
{
    json_t *route = json_object_get(start->models, provider);

    *ret_route = json_is_string(route) ? json_string_value(route) : provider;
    return json_is_string(route) || json_is_true(route);
}

static int run_start_only_allow(const struct harness_place *place, struct error *err)
{
    if (!place->permission || strcmp(place->permission, "allow") == 0)
        return 0;
    return error_set(err, ERR_INVALID, 0,
                     "an agent of the kind '%s' cannot ask: its permission must be allow",
                     place->kind);
}

/* --- kinds ----------------------------------------------------------------------------------- */

/* The caller's config is Claude's settings. */
static int run_start_claude(struct run_start *start, struct error *err)
{
    const char *permission = start->prompt->place.permission, *route;
    AUTO(free) char *settings = NULL;

    if (permission && *permission == '{') {
        AUTO(json) json_t *map = json_read(permission, strlen(permission), NULL, err);

        if (!map)
            return error_wrap(err, "permission");
        (void) json_object_set(start->config, "permissions", map);
    } else if (permission && strcmp(permission, "reject") == 0) {
        run_start_option(start, "--disallowedTools", CLAUDE_TOOLS);
    } else if (!permission || strcmp(permission, "allow") == 0) {
        run_start_option(start, "--allowedTools", CLAUDE_TOOLS);
    }
    settings = json_dumps(start->config, JSON_COMPACT);
    if (json_object_size(start->config))
        run_start_option(start, "--settings", settings);
    run_start_option(start, "--resume", start->prompt->agent_session);
    run_start_option(start, "--model", start->prompt->model);
    if (run_start_route(start, "anthropic", &route)) {
        AUTO(text) struct text url = TEXT_INIT(512);

        text_format(&url, HARNESS_BROKER_BASE "%s", route);
        run_start_variable(start, "ANTHROPIC_BASE_URL", text_string(&url));
        text_clear(&url);
        text_format(&url, "burrow-%s", route);
        run_start_variable(start, "ANTHROPIC_API_KEY", text_string(&url));
    }
    run_start_variable(start, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    run_start_variable(start, "DISABLE_AUTOUPDATER", "1");
    return 0;
}

/* A value as TOML: what JSON says of texts, numbers and lists it says, too; tables are others. */
static void run_start_toml(const json_t *value, struct text *out)
{
    const char *key, *between = "";
    json_t *member;

    if (json_is_object(value)) {
        text_append(out, "{");
        json_object_foreach ((json_t *) value, key, member) {
            AUTO(json) json_t *name = json_string(key);
            AUTO(free) char *quoted = json_dumps(name, JSON_ENCODE_ANY);

            text_format(out, "%s%s=", between, quoted);
            run_start_toml(member, out);
            between = ",";
        }
        text_append(out, "}");
    } else {
        AUTO(free) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

        text_append(out, text ? text : "\"\"");
    }
}

/* The caller's config is Codex's: each member an -c KEY=VALUE. */
static int run_start_codex(struct run_start *start, struct error *err)
{
    const char *key, *route;
    json_t *value;

    if (run_start_only_allow(&start->prompt->place, err) < 0)
        return -1;
    if (run_start_route(start, "openai", &route)) {
        (void) json_object_set_new(start->config, "model_provider", json_string("burrow"));
        (void) json_object_set_new(start->config, "model_providers.burrow",
                                   json_pack("{s:s,s:o,s:s,s:s}", "name", "burrow", "base_url",
                                             json_sprintf(HARNESS_BROKER_BASE "%s/v1", route),
                                             "env_key", "BURROW_MODEL_KEY", "wire_api",
                                             "responses"));
        (void) json_object_set_new(start->variables, "BURROW_MODEL_KEY",
                                   json_sprintf("burrow-%s", route));
    }
    json_object_foreach (start->config, key, value) {
        AUTO(text) struct text setting = TEXT_INIT(COMMAND_MAX);

        text_format(&setting, "%s=", key);
        run_start_toml(value, &setting);
        run_start_option(start, "-c", text_string(&setting));
    }
    run_start_option(start, "-m", start->prompt->model);
    if (start->prompt->agent_session)
        run_start_word(start, start->prompt->agent_session);
    return 0;
}

static int run_start_command(struct run_start *start, struct error *err)
{
    const json_t *variables = json_object_get(start->config, "env");
    const char *key, *command = start->prompt->place.command;
    json_t *value;

    if (!command || !*command)
        return error_set(err, ERR_INVALID, 0,
                         "an agent of the kind 'command' needs a command; the kinds are opencode, "
                         "claude, codex and command");
    json_object_foreach ((json_t *) variables, key, value) {
        if (json_is_string(value))
            (void) json_object_set(start->variables, key, value);
    }
    text_append(&start->command, command);
    return run_start_only_allow(&start->prompt->place, err);
}

static const struct run_start_kind {
    const char *kind, *begin, *resume, *end;
    int (*write)(struct run_start *start, struct error *err);
} kinds[] = {
    {"claude",
     "exec claude -p \"$BURROW_PROMPT\" --output-format stream-json --verbose "
     "--include-partial-messages",
     NULL, " </dev/null", run_start_claude},
    {"codex",
     "exec codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
     "exec codex exec resume --json --skip-git-repo-check "
     "--dangerously-bypass-approvals-and-sandbox",
     " \"$BURROW_PROMPT\" </dev/null", run_start_codex},
    {"command", "", NULL, "", run_start_command},
};

/* --- all together ---------------------------------------------------------------------------- */

static json_t *run_start_object(const char *text, const char *what, struct error *err)
{
    struct json_place root;
    AUTO(json)
    json_t *value = text && *text ? json_read(text, strlen(text), NULL, err) : json_object();

    if (value && json_root_object(value, &root, err) == 0)
        return TAKE_PTR(value);
    (void) error_wrap(err, "%s", what);
    return NULL;
}

/* The text parts; programs take nothing else. */
static int run_start_prompt(const char *parts, struct text *out, struct error *err)
{
    AUTO(json) json_t *list = json_read(parts, strlen(parts), NULL, err);
    json_t *part;
    size_t index;

    if (!json_is_array(list))
        return list ? error_set(err, ERR_INVALID, 0, "the parts of a prompt are no array") : -1;
    json_array_foreach (list, index, part) {
        const json_t *text = json_object_get(part, "text");

        if (!json_is_string(text))
            return error_set(
                err, ERR_INVALID, 0,
                "an agent that is a command takes parts of the type text, and no others");
        text_append(out, out->length ? "\n" : "");
        text_append(out, json_string_value(text));
    }
    if (out->overflowed)
        return error_set(err, ERR_TOO_LARGE, 0, "a prompt for a command has at most %zu kB",
                         RUN_PROMPT_MAX / 1024);
    return 0;
}

static int run_start_build(struct run_start *start, const struct run_start_kind *kind,
                           struct error *err)
{
    bool is_resumed = start->prompt->agent_session && kind->resume;

    text_append(&start->command, is_resumed ? kind->resume : kind->begin);
    if (kind->write(start, err) < 0)
        return -1;
    text_append(&start->command, kind->end);
    if (start->command.overflowed)
        return error_set(err, ERR_TOO_LARGE, 0, "the agent's config is too large for a command");
    return 0;
}

int run_start_write(const struct harness_prompt *prompt, struct text *body, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(RUN_PROMPT_MAX);
    AUTO(run_start)
    struct run_start start = {.prompt = prompt, .command = TEXT_INIT(COMMAND_MAX)};
    const struct run_start_kind *kind = &kinds[ARRAY_COUNT(kinds) - 1];
    char process[RUN_PROCESS_MAX];
    struct json_writer json;

    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (prompt->place.kind && strcmp(kinds[i].kind, prompt->place.kind) == 0)
            kind = &kinds[i];
    }
    start.variables = json_object();
    start.config = run_start_object(prompt->place.config, "the agent's config", err);
    start.models = start.config ? run_start_object(prompt->place.models, "models", err) : NULL;
    if (!start.models || run_start_prompt(prompt->parts, &text, err) < 0 ||
        run_start_build(&start, kind, err) < 0)
        return -1;
    run_start_variable(&start, "BURROW_PROMPT", text_string(&text));
    run_start_variable(&start, "BURROW_SESSION", prompt->agent_session);
    run_start_variable(&start, "BURROW_MODEL", prompt->model);
    run_start_process(&prompt->turn, process);
    json_document_begin(&json, body);
    json_add_text(&json, "command", text_string(&start.command));
    json_add_text(&json, "processId", process);
    if (prompt->place.folder)
        json_add_text(&json, "cwd", prompt->place.folder);
    json_key(&json, "env");
    json_put_value(&json, start.variables);
    if (json_document_end(&json) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "the agent's config and prompt are too large");
    return 0;
}
