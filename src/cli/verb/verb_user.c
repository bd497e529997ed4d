/* burrow user: who may have sandboxes here. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

#define USERS        CLIENT_PREFIX "/users"
#define PASSWORD_MAX 1024
#define CPU_MAX      ((uint64_t) 1000 * 1000)

#define SHARED_OPTIONS                                                                             \
    {"email", 0, "ADDRESS", "to sign in with", false},                                             \
        {"role", 0, "admin|user", "what they may do (user)", false},                               \
        {"password-stdin", 0, NULL, "the first line of stdin is the password", false},             \
    {                                                                                              \
        "quota", 0, "NAME=NUMBER", "sandboxes, running, memory, cpu, disk, requestsPerMinute",     \
            true                                                                                   \
    }

static const struct verb_option create_options[] = {
    SHARED_OPTIONS,
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_option change_options[] = {
    SHARED_OPTIONS,
    {"name", 0, "NAME", "the new name", false},
    {"disable", 0, NULL, "keys and passwords stop working", false},
    {"enable", 0, NULL, "they work again", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_column columns[] = {
    {"NAME", "name", verb_put_text},
    {"ROLE", "role", verb_put_text},
    {"EMAIL", "email", verb_put_text},
    {"DISABLED", "disabled", verb_put_yes_no},
    {"CREATED", "createdAt", verb_put_age},
    {"ID", "id", verb_put_text},
    VERB_COLUMNS_END,
};

/* --- what is sent ---------------------------------------------------------------------------- */

static int read_password(json_t *body, struct error *err)
{
    char line[PASSWORD_MAX + 2];
    int r = 0;

    if (!fgets(line, sizeof(line), stdin))
        return error_set(err, ERR_INVALID, 0, "--password-stdin: there was no line on stdin");
    if (strlen(line) > PASSWORD_MAX)
        r = error_set(err, ERR_TOO_LARGE, 0, "a password has at most %d bytes", PASSWORD_MAX);
    line[strcspn(line, "\r\n")] = '\0';
    if (r == 0)
        verb_set_text(body, "password", line);
    explicit_bzero(line, sizeof(line));
    return r;
}

/* Sizes as people write them; the daemon takes numbers. */
static json_t *read_quota(const char *name, const char *value)
{
    bool is_size = strcmp(name, "memory") == 0 || strcmp(name, "disk") == 0;
    uint64_t amount = 0;
    int64_t count = 0;

    if (is_size)
        return number_parse_size(value, INT64_MAX, &amount) == 0 ? json_integer((json_int_t) amount)
                                                                 : NULL;
    if (strcmp(name, "cpu") == 0)
        return number_parse_thousandths(value, CPU_MAX, &amount) == 0
                   ? json_real((double) amount / 1000)
                   : NULL;
    return number_parse(value, 0, UINT32_MAX, &count) == 0 ? json_integer(count) : NULL;
}

static int read_quotas(const struct verb_call *call, struct client *client, json_t *body,
                       struct error *err)
{
    size_t count;
    const char *const *values = verb_values(call, "quota", &count);
    json_t *quotas = count ? json_object() : NULL;

    if (quotas)
        (void) json_object_set_new(body, "quotas", quotas);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(values[i], "=");
        const char *name = pool_copy_bytes(&client->pool, values[i], length);
        json_t *number = values[i][length] ? read_quota(name, values[i] + length + 1) : NULL;

        if (!number)
            return error_set(err, ERR_INVALID, 0, "--quota %s: write NAME=NUMBER", values[i]);
        (void) json_object_set_new(quotas, name, number);
    }
    return 0;
}

/* The caller's; NULL with an error. */
static json_t *make_body(const struct verb_call *call, struct client *client, const char *name,
                         struct error *err)
{
    AUTO(json) json_t *body = json_object();

    verb_set_text(body, "name", name);
    verb_set_text(body, "email", verb_value(call, "email"));
    verb_set_text(body, "role", verb_value(call, "role"));
    if (verb_flag(call, "disable") || verb_flag(call, "enable"))
        (void) json_object_set_new(body, "disabled", json_boolean(verb_flag(call, "disable")));
    if ((verb_flag(call, "password-stdin") && read_password(body, err) < 0) ||
        read_quotas(call, client, body, err) < 0)
        return NULL;
    return TAKE_PTR(body);
}

/* --- verbs ----------------------------------------------------------------------------------- */

static int user_create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = make_body(call, client, call->words[0], err);

    if (!body || client_call(client, "POST", USERS, body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "id");
}

static int change_user(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = make_body(call, client, verb_value(call, "name"), err);

    if (!body || client_call(client, "PATCH", client_path(client, "users", call->words[0], ""),
                             body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "id");
}

static int user_list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_list(client, USERS, "users", err);

    return all ? verb_print_list(call, all, columns) : -1;
}

static int remove_user(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "users");
}

const struct verb verb_user_create = {
    .name = "user create",
    .summary = "Make a user, and print their id",
    .arguments = "NAME",
    .options = create_options,
    .details = "A user works with keys (burrow key create --user), and with a password if one is "
               "given.",
    .examples = "  burrow user create ann --email ann@example.com --quota sandboxes=20",
    .words_min = 1,
    .words_max = 1,
    .work = user_create,
};

const struct verb verb_user_list = {
    .name = "user ls",
    .summary = "List users",
    .arguments = "",
    .work = user_list,
};

const struct verb verb_user_change = {
    .name = "user change",
    .summary = "Change a user",
    .arguments = "USER",
    .options = change_options,
    .details = "USER is a name or an id.",
    .words_min = 1,
    .words_max = 1,
    .work = change_user,
};

const struct verb verb_user_remove = {
    .name = "user rm",
    .summary = "Remove a user that owns no sandbox any more",
    .arguments = "USER",
    .words_min = 1,
    .words_max = 1,
    .work = remove_user,
};
