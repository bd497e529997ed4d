/* burrow key, burrow login: secrets that open the API, and where ours is kept. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/client/credentials.h"
#include "cli/grid.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "net/url.h"

#define KEYS    CLIENT_PREFIX "/keys"
#define KEY_MAX 256

static const struct verb_option create_options[] = {
    {"scope", 0, "SCOPE", "admin, write (the default), read, sandbox or port", false},
    {"sandbox", 0, "NAME", "the one that it opens", false},
    {"port", 0, "PORT", "the one of that sandbox that it opens", false},
    {"expires", 0, "TIME", "when it stops working: 12h, 30d (never)", false},
    {"user", 0, "USER", "whose it is (yours)", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_option list_options[] = {
    {"all", 'a', NULL, "also those that were revoked", false},
    {"user", 0, "USER", "only theirs", false},
    {NULL, 0, NULL, NULL, false},
};

static void put_expiry(struct grid *grid, json_t *key, const char *field)
{
    const char *expires = verb_field(key, field);

    grid_put(grid, verb_field(key, "revokedAt") ? "revoked" : expires ? expires : "never");
}

static const struct verb_column columns[] = {
    {"NAME", "name", verb_put_text},     {"SCOPE", "scope", verb_put_text},
    {"PREFIX", "prefix", verb_put_text}, {"CREATED", "createdAt", verb_put_age},
    {"USED", "usedAt", verb_put_age},    {"EXPIRES", "expiresAt", put_expiry},
    {"ID", "id", verb_put_text},         VERB_COLUMNS_END,
};

/* --- keys ------------------------------------------------------------------------------------ */

static int key_create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    const char *port = verb_value(call, "port");
    int64_t number;

    verb_set_text(body, "name", call->words[0]);
    verb_set_text(body, "scope", verb_value(call, "scope"));
    verb_set_text(body, "sandbox", verb_value(call, "sandbox"));
    verb_set_text(body, "expiresIn", verb_value(call, "expires"));
    verb_set_text(body, "user", verb_value(call, "user"));
    if (port && number_parse(port, 1, UINT16_MAX, &number) < 0)
        return error_set(err, ERR_INVALID, 0, "--port %s: a number", port);
    if (port)
        (void) json_object_set_new(body, "port", json_integer(number));
    if (client_call(client, "POST", KEYS, body, &reply, err) < 0)
        return -1;
    (void) verb_print_field(call, reply.json, "key");
    if (isatty(STDOUT_FILENO))
        (void) fputs("burrow: keep it now, it is not shown again\n", stderr);
    return 0;
}

static int key_list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(text) struct text path = TEXT_INIT(URL_LENGTH_MAX);
    AUTO(json) json_t *all = NULL;
    const char *user = verb_value(call, "user");

    text_append(&path, KEYS);
    if (user) {
        text_append(&path, "?user=");
        url_encode(&path, user, strlen(user));
    }
    all = client_list(client, text_string(&path), "keys", err);
    if (!all)
        return -1;
    for (size_t i = json_array_size(all); i-- > 0 && !verb_flag(call, "all");) {
        if (verb_field(json_array_get(all, i), "revokedAt"))
            (void) json_array_remove(all, i);
    }
    return verb_print_list(call, all, columns);
}

static int revoke_key(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "keys");
}

/* --- login ----------------------------------------------------------------------------------- */

/* Only what works is kept. */
static int login_keep(struct verb_call *call, struct client *client, const char *key,
                      struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *name;

    if (client_call(client, "GET", CLIENT_PREFIX "/whoami", NULL, &reply, err) < 0 ||
        credentials_keep(client->url, key, err) < 0)
        return -1;
    name = verb_field(json_object_get(reply.json, "user"), "name");
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) printf("%s at %s, kept in %s\n", name ? name : "somebody", client->url,
                      credentials_place());
    return 0;
}

static int run_login(struct verb_call *call)
{
    AUTO(client) struct client client = {.pool = POOL_INIT};
    const char *key = verb_value(call, "key");
    struct error err = ERROR_INIT;
    char line[KEY_MAX];

    if (!key) {
        if (isatty(STDIN_FILENO))
            (void) fputs("key: ", stderr);
        if (!fgets(line, sizeof(line), stdin)) {
            (void) error_set(&err, ERR_INVALID, 0, "login needs a key: --key, or a line on stdin");
            return verb_complain(VERB_STATUS_USAGE, &err);
        }
        line[strcspn(line, "\r\n")] = '\0';
        key = line;
    }
    if (client_open(&client, verb_value(call, "url"), key, &err) < 0 ||
        login_keep(call, &client, key, &err) < 0)
        return verb_complain(VERB_STATUS_FAILURE, &err);
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------ */

const struct verb verb_key_create = {
    .name = "key create",
    .summary = "Make a key, and print its secret this once",
    .arguments = "NAME",
    .options = create_options,
    .examples = "  burrow key create ci --expires 30d\n"
                "  burrow key create viewer --scope read --user ann",
    .words_min = 1,
    .words_max = 1,
    .work = key_create,
};

const struct verb verb_key_list = {
    .name = "key ls",
    .summary = "List keys",
    .arguments = "",
    .options = list_options,
    .work = key_list,
};

const struct verb verb_key_revoke = {
    .name = "key revoke",
    .summary = "Make a key useless",
    .arguments = "KEY",
    .details = "KEY is an id or a prefix of `burrow key ls`.",
    .words_min = 1,
    .words_max = 1,
    .work = revoke_key,
};

const struct verb verb_login = {
    .name = "login",
    .summary = "Keep a URL and a key for the other verbs",
    .arguments = "",
    .details = "They are tried first, and kept in ~/.config/burrow/credentials with mode 0600. "
               "Without --key\nthe key is read from stdin.",
    .examples = "  burrow login --url https://burrow.example.com <key.txt",
    .run = run_login,
};
