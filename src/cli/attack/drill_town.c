/* Users of a drill and what is theirs. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/attack/drill.h"
#include "json/json_read.h"

#define BODY_SIZE      1024
#define TOLD_SIZE      512
#define REMOVE_TRIES   20
#define REMOVE_WAIT_MS 250

static const char *const verdicts[] = {"held", "broken", "untried"};

bool drill_wants(const struct drill *drill, const char *name)
{
    const struct drill_options *options = drill->options;

    for (size_t i = 0; i < options->only_count; i++) {
        if (strcmp(options->only[i], name) == 0)
            return true;
    }
    return options->only_count == 0;
}

bool drill_is_here(const struct drill *drill)
{
    static const char *const hosts[] = {"127.", "localhost", "[::1]", "::1"};

    for (size_t i = 0; i < ARRAY_COUNT(hosts); i++) {
        if (strncmp(drill->client.host, hosts[i], strlen(hosts[i])) == 0)
            return true;
    }
    return false;
}

void drill_tell_figures(struct drill *drill, const char *group, const char *name,
                        enum drill_verdict verdict, json_t *figures, const char *told)
{
    AUTO(json) json_t *line = json_object();
    AUTO(free) char *text = NULL;

    (void) json_object_set_new(line, "group", json_string(group));
    (void) json_object_set_new(line, "name", json_string(name));
    (void) json_object_set_new(line, "verdict", json_string(verdicts[verdict]));
    (void) json_object_set_new(line, "told", json_string(told));
    if (figures)
        (void) json_object_set_new(line, "figures", figures);
    text = json_dumps(line, JSON_COMPACT);
    if (text)
        (void) dprintf(drill->results, "%s\n", text);
}

void drill_tell(struct drill *drill, const char *group, const char *name,
                enum drill_verdict verdict, const char *format, ...)
{
    char told[TOLD_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(told, sizeof(told), format, arguments);
    va_end(arguments);
    drill_tell_figures(drill, group, name, verdict, NULL, told);
}

int drill_make_rows(struct drill *drill, const struct drill_group *group, struct error *err)
{
    for (const struct drill_row *row = group->rows; row->name; row++) {
        if (drill_wants(drill, row->name) && row->make(drill, row, err) < 0)
            return error_wrap(err, "%s", row->name);
    }
    return 0;
}

/* --- asking ---------------------------------------------------------------------------------- */

static json_t *client_want(struct client *client, const char *key, const char *method,
                           const char *path, const char *body, struct error *err)
{
    AUTO(drill_talk) struct drill_talk talk = {0};
    const struct drill_call call = {.method = method, .path = path, .key = key, .body = body};
    json_t *json;

    if (drill_ask(client, &call, &talk) == 0) {
        (void) error_set(err, ERR_UNAVAILABLE, 0, "%s %s: no answer", method, path);
        return NULL;
    }
    json = drill_talk_json(&talk);
    if (drill_talk_is_good(&talk))
        return json ? json : json_object();
    client_error(talk.status, json, err);
    json_decref(json);
    (void) error_wrap(err, "%s %s", method, path);
    return NULL;
}

json_t *drill_want(struct drill *drill, const char *key, const char *method, const char *path,
                   const char *body, struct error *err)
{
    return client_want(&drill->client, key, method, path, body, err);
}

int drill_copy_field(json_t *answer, const char *field, char *ret, size_t size, struct error *err)
{
    const char *text = json_string_value(json_object_get(answer, field));

    if (!text || strlen(text) >= size)
        return error_set(err, ERR_UPSTREAM, 0, "the daemon's answer has no '%s'", field);
    (void) snprintf(ret, size, "%s", text);
    return 0;
}

int drill_user_make(struct drill *drill, const char *name, struct drill_user *ret_user,
                    struct error *err)
{
    AUTO(json) json_t *user = NULL, *key = NULL;
    char body[BODY_SIZE];

    (void) snprintf(ret_user->name, sizeof(ret_user->name), "%.30s-%u-%.20s", drill->mark,
                    drill->serial++, name);
    (void) snprintf(body, sizeof(body), "{\"name\":\"%s\"}", ret_user->name);
    user = drill_want(drill, NULL, "POST", CLIENT_PREFIX "/users", body, err);
    if (!user || drill_copy_field(user, "id", ret_user->id, sizeof(ret_user->id), err) < 0)
        return -1;
    (void) snprintf(body, sizeof(body), "{\"name\":\"%s\",\"user\":\"%s\",\"scope\":\"write\"}",
                    name, ret_user->id);
    key = drill_want(drill, NULL, "POST", CLIENT_PREFIX "/keys", body, err);
    return key ? drill_copy_field(key, "key", ret_user->key, sizeof(ret_user->key), err) : -1;
}

int drill_box_make(struct drill *drill, const struct drill_user *user, const char *name,
                   char ret_id[static DRILL_NAME_SIZE], struct error *err)
{
    AUTO(json) json_t *box = NULL;
    char body[BODY_SIZE];

    (void) snprintf(body, sizeof(body),
                    "{\"name\":\"%s\",\"network\":\"none\",\"limits\":{\"memory\":\"256M\","
                    "\"disk\":\"512M\",\"pids\":256}}",
                    name);
    box = drill_want(drill, user->key, "POST", CLIENT_PREFIX "/sandboxes", body, err);
    return box ? drill_copy_field(box, "id", ret_id, DRILL_NAME_SIZE, err) : -1;
}

/* --- taking away ----------------------------------------------------------------------------- */

/* Gone already is fine. */
static int client_remove(struct client *client, const char *kind, const char *id, struct error *err)
{
    struct error failure = ERROR_INIT;
    AUTO(json)
    json_t *done =
        client_want(client, NULL, "DELETE", client_path(client, kind, id, ""), NULL, &failure);

    if (done || failure.code == ERR_NOT_FOUND)
        return 0;
    return error_set(err, failure.code, 0, "%s", failure.message);
}

static int client_remove_owner(struct client *client, const char *id, struct error *err)
{
    const char *path =
        pool_format(&client->pool, CLIENT_PREFIX "/sandboxes?limit=1000&owner=%s", id);
    /* Whatever goes on in their name ends first, so that nothing is made meanwhile. */
    AUTO(json)
    json_t *disabled = client_want(client, NULL, "PATCH", client_path(client, "users", id, ""),
                                   "{\"disabled\":true}", err);
    AUTO(json) json_t *list = disabled ? client_want(client, NULL, "GET", path, NULL, err) : NULL;
    json_t *box;
    size_t i;

    if (!list)
        return -1;
    json_array_foreach (json_object_get(list, "sandboxes"), i, box) {
        const char *name = json_string_value(json_object_get(box, "id"));

        if (name && client_remove(client, "sandboxes", name, err) < 0)
            return -1;
    }
    return client_remove(client, "users", id, err);
}

int drill_user_remove(struct client *client, const char *id, struct error *err)
{
    struct error failure = ERROR_INIT;

    /* What was being made when they were disabled may be there only now. */
    for (int i = 0; i < REMOVE_TRIES; i++) {
        failure = (struct error) ERROR_INIT;
        if (client_remove_owner(client, id, &failure) == 0 || failure.code == ERR_NOT_FOUND)
            return 0;
        drill_pump(client, REMOVE_WAIT_MS);
    }
    return error_set(err, failure.code, 0, "%s", failure.message);
}

int drill_clean(struct client *client, const char *mark, struct error *err)
{
    AUTO(json) json_t *users = client_list(client, CLIENT_PREFIX "/users", "users", err);
    int found = 0, r = 0;
    json_t *user;
    size_t i;

    if (!users)
        return -1;
    json_array_foreach (users, i, user) {
        const char *name = json_string_value(json_object_get(user, "name"));
        const char *id = json_string_value(json_object_get(user, "id"));

        if (!name || !id || strncmp(name, mark, strlen(mark)) != 0)
            continue;
        found++;
        if (drill_user_remove(client, id, r < 0 ? NULL : err) < 0)
            r = -1;
    }
    return r < 0 ? -1 : found;
}
