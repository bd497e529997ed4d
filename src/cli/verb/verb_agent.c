/* burrow agent: a conversation with the coding agent in a sandbox. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/client_sandbox.h"
#include "cli/verb/agent_view.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

#define PROMPT_MAX 65536

static const struct verb_option options[] = {
    {"resume", 'r', NULL, "go on with the newest conversation", false},
    {"conversation", 0, "ID", "go on with this one", false},
    {"model", 'm', "PROVIDER/MODEL", "that the agent asks", false},
    {"kind", 0, "KIND", "opencode, claude, codex or command", false},
    {"agent", 0, "NAME", "which of OpenCode's agents: build, plan, ...", false},
    {"command", 0, "COMMAND", "of the kind command: what runs, the prompt in $BURROW_PROMPT",
     false},
    {"permission", 0, "POLICY", "allow, ask or reject what it wants to do", false},
    {NULL, 0, NULL, NULL, false},
};

/* The id of the conversation, in the client's pool; NULL with an error. */
static const char *agent_resume(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json)
    json_t *all = client_list(client, client_sandbox_path(client, call->words[0], "/conversations"),
                              "conversations", err);
    size_t count = json_array_size(all);
    const char *id = NULL;

    for (size_t i = 0; i < count; i++)
        if (!verb_field(json_array_get(all, i), "task"))
            id = verb_field(json_array_get(all, i), "id");
    if (all && !id)
        (void) error_set(err, ERR_NOT_FOUND, 0, "there is no conversation to go on with");
    return id ? pool_copy_text(&client->pool, id) : NULL;
}

static const char *agent_begin(struct verb_call *call, struct client *client, struct error *err)
{
    static const char *const keys[] = {"model", "kind", "agent", "command", "permission"};
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    if (verb_value(call, "conversation"))
        return verb_value(call, "conversation");
    if (verb_flag(call, "resume"))
        return agent_resume(call, client, err);
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        verb_set_text(body, keys[i], verb_value(call, keys[i]));
    if (client_sandbox_call(client, "POST", call->words[0], "/conversations", body, &reply, err) <
        0)
        return NULL;
    return pool_copy_text(&client->pool, verb_field(reply.json, "id"));
}

static int agent_prompt(struct verb_call *call, struct client *client, const char *conversation,
                        const char *text, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    const char *rest = pool_format(&client->pool, "/conversations/%s/turns", conversation);
    struct agent_view view;
    const char *turn;
    int r;

    verb_set_text(body, "text", text);
    verb_set_text(body, "model", verb_value(call, "model"));
    if (client_sandbox_call(client, "POST", call->words[0], rest, body, &reply, err) < 0)
        return -1;
    turn = pool_format(&client->pool, "%s/%s", client_sandbox_path(client, call->words[0], rest),
                       verb_field(reply.json, "id"));
    agent_view_init(&view, call, client);
    view.sandbox = verb_field(reply.json, "sandboxId");
    view.cancel = pool_format(&client->pool, "%s/cancel", turn);
    r = agent_view_follow(&view, pool_format(&client->pool, "%s/events", turn), err);
    agent_view_done(&view);
    return r < 0 ? -1 : agent_view_status(&view);
}

static int agent_chat(struct verb_call *call, struct client *client, const char *conversation,
                      struct error *err)
{
    char line[PROMPT_MAX];
    bool is_terminal = isatty(STDIN_FILENO) != 0;
    int status = 0;

    for (;;) {
        if (is_terminal)
            (void) fprintf(stderr, "> ");
        if (!fgets(line, sizeof(line), stdin))
            return status;
        line[strcspn(line, "\n")] = '\0';
        if (!*line)
            continue;
        status = agent_prompt(call, client, conversation, line, err);
        if (status < 0)
            return -1;
    }
}

static int agent_work(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(text) struct text prompt = TEXT_INIT(PROMPT_MAX);
    const char *conversation = agent_begin(call, client, err);

    if (!conversation)
        return -1;
    for (size_t i = 1; i < call->word_count; i++)
        text_format(&prompt, "%s%s", i > 1 ? " " : "", call->words[i]);
    if (prompt.length)
        return agent_prompt(call, client, conversation, text_string(&prompt), err);
    if (isatty(STDERR_FILENO))
        (void) fprintf(stderr, "conversation %s; Ctrl-C cancels a turn, Ctrl-D ends\n",
                       conversation);
    return agent_chat(call, client, conversation, err);
}

const struct verb verb_agent = {
    .name = "agent",
    .summary = "Speak with the coding agent in a sandbox",
    .arguments = "NAME [PROMPT...]",
    .options = options,
    .details =
        "Without a prompt each line of input is one. Text comes as it is written, each tool "
        "call is a line. Ctrl-C cancels the turn, twice leaves it alone. The status is 0 when "
        "the last turn is done.",
    .examples = "  burrow agent demo\n  burrow agent demo 'what is in this folder?'\n"
                "  burrow agent demo --resume",
    .words_min = 1,
    .words_max = 1024,
    .work = agent_work,
};
