/* burrow shell: a shell at a terminal in a sandbox. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "cli/client/client_sandbox.h"
#include "cli/shell_session.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"

#define OWN_NAME_LENGTH 8

static const struct verb_option options[] = {
    {"session", 's', "NAME", "the terminal of that session, shared by all who name it", false},
    {NULL, 0, NULL, NULL, false},
};

/* A session that nobody else has named. */
static const char *own_session(struct client *client)
{
    struct id id = id_new();

    return pool_format(&client->pool, "shell-%s", id.text + strlen(id.text) - OWN_NAME_LENGTH);
}

/* Its terminal is gone; the session behind it was only made for that. */
static void delete_session(struct client *client, const char *sandbox, const char *session)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *rest = pool_format(&client->pool, "/sessions/%s", session);

    (void) client_call(client, "DELETE", client_sandbox_path(client, sandbox, rest), NULL, &reply,
                       NULL);
}

static int shell(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *name = call->words[0], *given = verb_value(call, "session");
    struct shell_session_options session = {
        .client = client,
        .sandbox = name,
        .session = given ? given : own_session(client),
        .input = STDIN_FILENO,
        .output = STDOUT_FILENO,
    };
    struct shell_session_result result = {.status = 0};
    int r;

    if (verb_flag(call, "json"))
        return error_set(err, ERR_INVALID, 0, "a shell is for people; see burrow exec --json");
    if (client_sandbox_call(client, "GET", name, "", NULL, &reply, err) < 0)
        return -1;
    r = shell_session_run(&session, &result, err);
    if (result.has_ended && !given)
        delete_session(client, name, session.session);
    if (result.was_open && !result.has_ended)
        (void) fprintf(stderr, "burrow: it goes on; to return: burrow shell %s --session %s\n",
                       name, session.session);
    return r < 0 ? -1 : result.status;
}

static int shell_run(struct verb_call *call)
{
    return verb_with_client(call, shell, VERB_STATUS_OURS);
}

const struct verb verb_shell = {
    .name = "shell",
    .summary = "Work in a sandbox at a terminal",
    .arguments = "NAME",
    .options = options,
    .details =
        "Every key goes to the shell there, and its exit status becomes ours. A lost connection "
        "is made\nagain, with what the terminal showed. Whoever names the same session sees and "
        "types into the\nsame terminal, which stays when they leave; without a name it is one of "
        "your own. A sleeping\nsandbox is woken, and stays awake while you are there.",
    .examples = "  burrow shell demo\n  burrow shell demo --session pair",
    .words_min = 1,
    .words_max = 1,
    .takes_sandboxes = true,
    .run = shell_run,
};
