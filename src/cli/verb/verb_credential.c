/* burrow credential: secrets that leave for hosts of the outside and never enter a sandbox. A value
 * comes from stdin or a terminal, where it is not shown: a command line can be read by everybody. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "sys/file/sys_file.h"

#define VALUE_MAX ((size_t) 16 * 1024)

/* Texts that are no secrets: an option and the field that it sets. */
#define CREDENTIAL_TEXTS(T)                                                                        \
    T("header", "header", "NAME", "of kind header: which one")                                     \
    T("base", "base", "URL", "where routes to models lead with it, such as https://host/v1")       \
    T("account", "account", "ID", "of OpenAI's logins: the account")                               \
    T("api", "api", "NAME", "of kind oauth: anthropic, openai, google or none")                    \
    T("token-url", "tokenUrl", "URL", "of kind oauth: where access tokens come from")              \
    T("client-id", "clientId", "ID", "of kind oauth: who asks for them")                           \
    T("scope", "scope", "WORDS", "of kind oauth: what they are for")                               \
    T("app", "appId", "ID", "of kind github-app: the app")                                         \
    T("installation", "installationId", "ID", "of kind github-app: its installation")              \
    T("expires", "expiresAt", "TIME", "it is not used from then on: 2026-11-19T22:00:00.000Z")

#define CREDENTIAL_OPTION(option, field, value, help) {option, 0, value, help, false},

static const struct verb_option credential_options[] = {
    {"kind", 'k', "KIND",
     "header, bearer, basic, anthropic, openai, google, oauth or github-app; the name, when it is "
     "one",
     false},
    {"host", 0, "HOST", "a host that it is for, or *.example.org", true},
    CREDENTIAL_TEXTS(CREDENTIAL_OPTION){"file", 'f', "FILE", "the value is in this file", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_column columns[] = {
    {"NAME", "name", verb_put_text},
    {"KIND", "kind", verb_put_text},
    {"USED", "usedAt", verb_put_age},
    {"EXPIRES", "expiresAt", verb_put_text},
    {"UPDATED", "updatedAt", verb_put_age},
    {"FAILURE", "failure", verb_put_text},
    VERB_COLUMNS_END,
};

/* --- the value ------------------------------------------------------------------------------- */

static void terminal_show(const struct termios *before)
{
    if (before)
        (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
}

/* At a terminal it is a line that nobody sees; else all there is, without the newline at its end. */
static int value_read_stdin(const char *what, char *value, size_t size, struct error *err)
{
    bool is_terminal = isatty(STDIN_FILENO);
    struct termios before, hidden;
    bool is_hidden = is_terminal && tcgetattr(STDIN_FILENO, &before) == 0;
    size_t length;

    if (is_hidden) {
        hidden = before;
        hidden.c_lflag &= ~(tcflag_t) ECHO;
        (void) fprintf(stderr, "%s: ", what);
        (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    if (is_terminal)
        length = fgets(value, (int) size, stdin) ? strlen(value) : 0;
    else
        length = fread(value, 1, size - 1, stdin);
    value[length] = '\0';
    terminal_show(is_hidden ? &before : NULL);
    if (is_hidden)
        (void) fputc('\n', stderr);
    if (length == size - 1)
        return error_set(err, ERR_TOO_LARGE, 0, "a value has at most %zu bytes", size - 2);
    return 0;
}

static int value_read_file(const char *path, char *value, size_t size, struct error *err)
{
    AUTO(free) char *contents = NULL;
    size_t length;
    int r = sys_file_read_all(AT_FDCWD, path, size - 2, &contents, &length);

    if (r < 0)
        return error_set(err, ERR_INVALID, r, "cannot read the value from '%s'", path);
    (void) snprintf(value, size, "%s", contents);
    explicit_bzero(contents, length);
    return 0;
}

static const char *value_field(const char *kind)
{
    return strcmp(kind, "oauth") == 0        ? "refreshToken"
           : strcmp(kind, "github-app") == 0 ? "privateKey"
                                             : "value";
}

static int value_add(const struct verb_call *call, const char *kind, json_t *body,
                     struct error *err)
{
    const char *file = verb_value(call, "file"), *field = value_field(kind);
    char value[VALUE_MAX + 2];
    size_t length;
    int r = file ? value_read_file(file, value, sizeof(value), err)
                 : value_read_stdin(field, value, sizeof(value), err);

    length = strlen(value);
    while (length && (value[length - 1] == '\n' || value[length - 1] == '\r'))
        value[--length] = '\0';
    if (r == 0 && !length)
        r = error_set(err, ERR_INVALID, 0,
                      "there was no value: give it on stdin, at a terminal, or with --file");
    if (r == 0)
        verb_set_text(body, field, value);
    explicit_bzero(value, sizeof(value));
    return r;
}

/* --- the verbs ------------------------------------------------------------------------------- */

static int hosts_add(const struct verb_call *call, json_t *body, struct error *err)
{
    size_t count;
    const char *const *hosts = verb_values(call, "host", &count);
    json_t *array;

    if (!count)
        return 0;
    array = json_array();
    (void) json_object_set_new(body, "hosts", array);
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_string(hosts[i])) < 0)
            return error_set(err, ERR_INVALID, 0, "--host: it is not UTF-8");
    return 0;
}

#define CREDENTIAL_SET(option, field, value, help)                                                 \
    verb_set_text(body, field, verb_value(call, option));

static int credential_set(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    const char *name = call->words[0];
    const char *kind = verb_value(call, "kind") ? verb_value(call, "kind") : name;

    verb_set_text(body, "kind", kind);
    CREDENTIAL_TEXTS(CREDENTIAL_SET)
    if (hosts_add(call, body, err) < 0 || value_add(call, kind, body, err) < 0 ||
        client_call(client, "PUT", client_path(client, "credentials", name, ""), body, &reply,
                    err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "name");
}

static int credential_list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_list(client, CLIENT_PREFIX "/credentials", "credentials", err);

    if (!all)
        return -1;
    return verb_print_list(call, all, columns);
}

static int credential_remove(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "credentials");
}

const struct verb verb_credential_set = {
    .name = "credential set",
    .summary = "Make or replace a credential; its value comes from stdin or the terminal",
    .arguments = "NAME",
    .options = credential_options,
    .details =
        "Policies of sandboxes name it (burrow egress). It is put into requests outside of them, "
        "to "
        "the hosts that it is for, and nobody can read it again. Of oauth the value is the refresh "
        "token, of github-app the app's private key in PEM.",
    .examples = "  burrow credential set anthropic < key\n"
                "  burrow credential set local --kind openai --base http://127.0.0.1:9000/v1\n"
                "  burrow credential set gh --kind bearer --host api.github.com",
    .words_min = 1,
    .words_max = 1,
    .work = credential_set,
};

const struct verb verb_credential_list = {
    .name = "credential ls",
    .summary = "List credentials, without their values",
    .arguments = "",
    .work = credential_list,
};

const struct verb verb_credential_remove = {
    .name = "credential rm",
    .summary = "Delete credentials; what is open with them is cut",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = credential_remove,
};
