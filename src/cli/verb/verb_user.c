/* burrow user: who may have sandboxes here. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/grid.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "net/url.h"

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

static const char *const titles[] = {"NAME", "ROLE", "EMAIL", "DISABLED", "CREATED", "ID", NULL};

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
                   ? json_integer((json_int_t) amount) /* in thousandths */
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

/* In the client's pool; NULL with an error. */
static const char *make_body(const struct verb_call *call, struct client *client, const char *name,
                             struct error *err)
{
    AUTO(json) json_t *body = json_object();
    AUTO(free) char *text = NULL;

    verb_set_text(body, "name", name);
    verb_set_text(body, "email", verb_value(call, "email"));
    verb_set_text(body, "role", verb_value(call, "role"));
    if (verb_flag(call, "disable") || verb_flag(call, "enable"))
        (void) json_object_set_new(body, "disabled", json_boolean(verb_flag(call, "disable")));
    if ((verb_flag(call, "password-stdin") && read_password(body, err) < 0) ||
        read_quotas(call, client, body, err) < 0)
        return NULL;
    text = json_dumps(body, JSON_COMPACT);
    return pool_copy_text(&client->pool, text);
}

static const char *path_of(struct client *client, const char *user)
{
    AUTO(text) struct text path = TEXT_INIT(URL_LENGTH_MAX);

    text_append(&path, USERS "/");
    url_encode(&path, user, strlen(user));
    return pool_copy_text(&client->pool, text_string(&path));
}

/* --- verbs ----------------------------------------------------------------------------------- */

static void print_user(const struct verb_call *call, json_t *user)
{
    if (verb_flag(call, "json"))
        verb_print_json(user);
    else if (verb_field(user, "id"))
        (void) puts(verb_field(user, "id"));
}

static int create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *body = make_body(call, client, call->words[0], err);

    if (!body || client_call(client, "POST", USERS, body, &reply, err) < 0)
        return -1;
    print_user(call, reply.json);
    return 0;
}

static int change(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const char *body = make_body(call, client, verb_value(call, "name"), err);

    if (!body ||
        client_call(client, "PATCH", path_of(client, call->words[0]), body, &reply, err) < 0)
        return -1;
    print_user(call, reply.json);
    return 0;
}

static void put_user(struct grid *grid, json_t *user)
{
    grid_put(grid, verb_field(user, "name"));
    grid_put(grid, verb_field(user, "role"));
    grid_put(grid, verb_field(user, "email"));
    grid_put(grid, json_is_true(json_object_get(user, "disabled")) ? "yes" : "no");
    grid_put(grid, grid_age(grid, verb_field(user, "createdAt"), clock_wall_ms(clock_system())));
    grid_put(grid, verb_field(user, "id"));
}

static int list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_list(client, USERS, "users", err);
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    json_t *one;
    size_t i;

    if (!all)
        return -1;
    if (verb_flag(call, "json")) {
        verb_print_json(all);
        return 0;
    }
    grid_titles(&grid, titles);
    json_array_foreach (all, i, one) {
        put_user(&grid, one);
    }
    grid_write(&grid, &out);
    verb_print(&out);
    return 0;
}

static int remove_user(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_call(client, "DELETE", path_of(client, call->words[0]), NULL, &reply, err) < 0)
        return -1;
    if (!verb_flag(call, "json"))
        (void) puts(call->words[0]);
    return 0;
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
    .work = create,
};

const struct verb verb_user_list = {
    .name = "user ls",
    .summary = "List users",
    .arguments = "",
    .work = list,
};

const struct verb verb_user_change = {
    .name = "user change",
    .summary = "Change a user",
    .arguments = "USER",
    .options = change_options,
    .details = "USER is a name or an id.",
    .words_min = 1,
    .words_max = 1,
    .work = change,
};

const struct verb verb_user_remove = {
    .name = "user rm",
    .summary = "Remove a user that owns no sandbox any more",
    .arguments = "USER",
    .words_min = 1,
    .words_max = 1,
    .work = remove_user,
};
