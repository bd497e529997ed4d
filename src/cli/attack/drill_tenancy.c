/* One user looks for what is another's: every route with the other's names, lists, counts, and keys
 * that are narrower than their owner. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/memory.h"
#include "cli/attack/drill.h"
#include "cli/attack/drill_route.h"
#include "json/json_read.h"

#define NAMES_MAX    16
#define MARKS_MAX    16
#define OPEN_WAIT_MS 10000
#define QUIET_MS     700 /* a stream that says nothing for so long has nothing to say */
#define TOLD_MAX     300
#define BODY_SIZE    1024
#define CURSOR_NEAR  4096
#define PORT         "8080"

struct tenancy_world {
    struct drill_user owner, stranger;
    char box[DRILL_NAME_SIZE], little[DRILL_NAME_SIZE];
    const char *secret;                 /* in everything of the owner's that has a text */
    struct drill_name names[NAMES_MAX]; /* of the owner's things */
    size_t name_count;
    const char *marks[MARKS_MAX]; /* what no stranger must read */
    size_t mark_count;
    json_t *document; /* owned */
};

/* One walk over all routes, and what was wrong. */
struct tenancy_walk {
    struct drill *drill;
    const struct tenancy_world *world;
    const char *dialect, *key;
    bool (*wants)(const struct drill_route *route);
    size_t routes;
    char wrong[TOLD_MAX]; /* the first */
    size_t wrong_count;
};

/* --- the world ------------------------------------------------------------------------------- */

static const char *keep_text(struct drill *drill, json_t *answer, const char *field)
{
    const char *text = json_string_value(json_object_get(answer, field));

    return text ? pool_copy_text(&drill->client.pool, text) : "missing";
}

static void world_add(struct tenancy_world *world, const char *name, const char *value,
                      bool is_mark)
{
    world->names[world->name_count++] = (struct drill_name){name, value};
    if (is_mark)
        world->marks[world->mark_count++] = value;
}

/* Things that are made with one request, and the field that names them. */
static const struct tenancy_thing {
    const char *name, *method, *path, *body, *field;
} things[] = {
    {"session", "POST", "{box}/sessions", "{\"id\":\"s-{secret}\"}", NULL},
    {"process", "POST", "{box}/processes", "{\"command\":\"echo {secret}; sleep 600\"}",
     "processId"},
    {"port", "POST", "{box}/ports", "{\"port\":" PORT "}", "token"},
    {"webhook", "POST", CLIENT_PREFIX "/webhooks",
     "{\"url\":\"https://{secret}.example.invalid/\"}", "id"},
    {"snapshot", "POST", "{box}/snapshots", "{\"name\":\"n-{secret}\"}", "id"},
    {"backup", "POST", "{box}/backups", "{\"name\":\"b-{secret}\"}", "id"},
    {"key", "POST", CLIENT_PREFIX "/keys", "{\"name\":\"k-{secret}\",\"scope\":\"read\"}", "id"},
};

static const char *world_fill(struct drill *drill, const struct tenancy_world *world,
                              const char *text)
{
    const char *at = strstr(text, "{secret}");

    if (strncmp(text, "{box}", 5) == 0)
        return client_sandbox_path(&drill->client, world->box, text + 5);
    return at ? pool_format(&drill->client.pool, "%.*s%s%s", (int) (at - text), text, world->secret,
                            at + strlen("{secret}"))
              : text;
}

static int world_make_things(struct drill *drill, struct tenancy_world *world, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(things); i++) {
        const struct tenancy_thing *thing = &things[i];
        AUTO(json)
        json_t *made = drill_want(drill, world->owner.key, thing->method,
                                  world_fill(drill, world, thing->path),
                                  world_fill(drill, world, thing->body), err);

        if (!made)
            return -1;
        if (!thing->field)
            world_add(world, thing->name, pool_format(&drill->client.pool, "s-%s", world->secret),
                      false);
        else if (strcmp(thing->name, "port") == 0)
            world->marks[world->mark_count++] = keep_text(drill, made, "token");
        else
            world_add(world, thing->name, keep_text(drill, made, thing->field), true);
    }
    return 0;
}

static int world_make(struct drill *drill, struct tenancy_world *world, struct error *err)
{
    AUTO(json) json_t *file = NULL, *template = NULL;
    struct id secret = id_new();

    world->secret = pool_format(&drill->client.pool, "x%.12s", secret.text);
    if (drill_user_make(drill, "owner", &world->owner, err) < 0 ||
        drill_user_make(drill, "stranger", &world->stranger, err) < 0 ||
        drill_box_make(drill, &world->owner,
                       pool_format(&drill->client.pool, "box-%s", world->secret), world->box,
                       err) < 0 ||
        drill_box_make(drill, &world->owner, "little", world->little, err) < 0)
        return -1;
    world_add(world, "id", world->box, true);
    world_add(world, "executionId", world->box, false);
    world_add(world, "user", world->owner.id, true);
    world_add(world, "path", "workspace/secret", false);
    world_add(world, "port", PORT, false);
    world_add(world, "name", "ours", false);
    world->marks[world->mark_count++] = world->secret;
    file = drill_want(drill, world->owner.key, "PUT",
                      client_sandbox_path(&drill->client, world->box, "/files/workspace/secret"),
                      world->secret, err);
    template = drill_want(drill, world->owner.key, "PUT", CLIENT_PREFIX "/templates/ours",
                          world_fill(drill, world, "{\"labels\":{\"of\":\"{secret}\"}}"), err);
    if (!file || !template || world_make_things(drill, world, err) < 0)
        return -1;
    world->document =
        drill_want(drill, DRILL_NO_KEY, "GET", CLIENT_PREFIX "/openapi.json", NULL, err);
    return world->document ? 0 : -1;
}

/* Everything of the owner's is as it was. */
static bool world_is_whole(struct drill *drill, const struct tenancy_world *world)
{
    AUTO(json) json_t *box = NULL, *webhook = NULL;
    AUTO(drill_talk) struct drill_talk file = {0};
    const struct drill_call call = {
        .path = client_sandbox_path(&drill->client, world->box, "/files/workspace/secret"),
        .key = world->owner.key,
    };
    const char *status;

    box = drill_want(drill, world->owner.key, "GET",
                     client_sandbox_path(&drill->client, world->box, ""), NULL, NULL);
    webhook = drill_want(drill, world->owner.key, "GET", CLIENT_PREFIX "/webhooks", NULL, NULL);
    (void) drill_ask(&drill->client, &call, &file);
    status = json_string_value(json_object_get(box, "status"));
    return status && strcmp(status, "running") == 0 &&
           !json_object_get(json_object_get(box, "labels"), "seen") &&
           json_is_true(json_object_get(json_array_get(json_object_get(webhook, "webhooks"), 0),
                                        "enabled")) &&
           strcmp(text_string(&file.body), world->secret) == 0;
}

/* --- one route ------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4)))
walk_complain(struct tenancy_walk *walk, const struct drill_route *route, const char *format, ...)
{
    va_list arguments;
    int length;

    if (walk->wrong_count++)
        return;
    length = snprintf(walk->wrong, sizeof(walk->wrong), "%s %s: ", route->method, route->pattern);
    va_start(arguments, format);
    (void) vsnprintf(walk->wrong + length, sizeof(walk->wrong) - (size_t) length, format,
                     arguments);
    va_end(arguments);
}

static int walk_ask(struct tenancy_walk *walk, const struct drill_route *route,
                    const struct drill_name *names, struct drill_talk *ret_talk,
                    const char **ret_path)
{
    struct client *client = &walk->drill->client;
    const struct drill_call call = {
        .method = route->method,
        .path = drill_route_path(route, names, walk->world->name_count, &client->pool),
        .key = walk->key,
        .body = drill_route_body(route, &client->pool),
    };

    *ret_talk = (struct drill_talk){.call = &call};
    *ret_path = call.path;
    drill_talk_start(ret_talk, client);
    (void) drill_talk_wait(ret_talk, OPEN_WAIT_MS, true);
    if (!ret_talk->is_over) /* a stream, or a body that is still coming */
        (void) drill_talk_wait(ret_talk, QUIET_MS, false);
    return ret_talk->status;
}

/* The first of the owner's marks that was told and not asked for. */
static const char *walk_leak(const struct tenancy_walk *walk, const struct drill_talk *talk,
                             const char *path)
{
    for (size_t i = 0; i < walk->world->mark_count; i++) {
        const char *mark = walk->world->marks[i];

        if (!strstr(path, mark) && strstr(text_string(&talk->body), mark))
            return mark;
    }
    return NULL;
}

/* The same names of things that do not exist. */
static void walk_make_up(struct tenancy_walk *walk, struct drill_name *ret_names)
{
    const struct tenancy_world *world = walk->world;

    for (size_t i = 0; i < world->name_count; i++) {
        struct id id = id_new();
        const char *value = world->names[i].value;
        bool is_id = strlen(value) == strlen(id.text);

        ret_names[i] = world->names[i];
        if (strcmp(value, PORT) != 0 && strcmp(ret_names[i].name, "path") != 0)
            ret_names[i].value = pool_format(&walk->drill->client.pool, "%.*s",
                                             is_id ? (int) strlen(id.text) : 12, id.text);
    }
}

/* What is said of the owner's things must be what is said of things that do not exist. */
static int walk_stranger(void *context, const struct drill_route *route)
{
    struct tenancy_walk *walk = context;
    AUTO(drill_talk) struct drill_talk told = {0}, twin = {0};
    struct drill_name others[NAMES_MAX];
    const char *path, *twin_path, *leak;

    if (!route->dialect || (walk->dialect && strcmp(route->dialect, walk->dialect) != 0) ||
        strcmp(route->method, "HEAD") == 0 || strstr(route->pattern, "sign-"))
        return 0;
    walk->routes++;
    (void) walk_ask(walk, route, walk->world->names, &told, &path);
    leak = walk_leak(walk, &told, path);
    if (leak)
        walk_complain(walk, route, "tells '%s'", leak);
    if (!route->has_names || strcmp(route->pattern, CLIENT_PREFIX "/templates/{name}") == 0)
        return 0; /* a name is each user's own: what the walk itself made is there */
    walk_make_up(walk, others);
    (void) walk_ask(walk, route, others, &twin, &twin_path);
    if (told.status != twin.status && told.status != 429 && twin.status != 429)
        walk_complain(walk, route, "status %d, but %d of what is not there", told.status,
                      twin.status);
    return 0;
}

static int walk_without_key(void *context, const struct drill_route *route)
{
    struct tenancy_walk *walk = context;
    AUTO(drill_talk) struct drill_talk told = {0};
    const char *path, *leak;

    if (route->is_public || !route->dialect)
        return 0;
    walk->routes++;
    (void) walk_ask(walk, route, walk->world->names, &told, &path);
    leak = walk_leak(walk, &told, path);
    if (leak)
        walk_complain(walk, route, "tells '%s'", leak);
    else if (told.status != 401 && told.status != 403 && told.status != 404 && told.status != 429)
        walk_complain(walk, route, "status %d without a key", told.status);
    return 0;
}

/* A key that is narrower than its owner: for another sandbox, or for reading. */
static int walk_narrow(void *context, const struct drill_route *route)
{
    struct tenancy_walk *walk = context;
    AUTO(drill_talk) struct drill_talk told = {0};
    const char *path, *secret;

    if (route->is_public || !route->dialect || !route->has_names || !walk->wants(route))
        return 0;
    walk->routes++;
    (void) walk_ask(walk, route, walk->world->names, &told, &path);
    secret = strstr(text_string(&told.body), walk->world->secret);
    if (drill_talk_is_good(&told) && secret && !strstr(path, walk->world->secret))
        walk_complain(walk, route, "tells what it must not");
    else if (drill_talk_is_good(&told) && !strstr(route->pattern, "/persist"))
        walk_complain(walk, route, "status %d", told.status);
    return 0;
}

static bool names_a_sandbox(const struct drill_route *route)
{
    /* An empty list, false or a fresh one is no answer about the other. */
    return strstr(route->pattern, CLIENT_PREFIX "/sandboxes/{id}") &&
           !strstr(route->pattern, "/events") && !strstr(route->pattern, "{id}/snapshots");
}

static bool changes_something(const struct drill_route *route)
{
    return strcmp(route->method, "GET") != 0 && strcmp(route->method, "HEAD") != 0;
}

/* --- attacks --------------------------------------------------------------------------------- */

static void walk_tell(struct tenancy_walk *walk, const char *name)
{
    bool is_whole = world_is_whole(walk->drill, walk->world);

    if (walk->wrong_count)
        drill_tell(walk->drill, "tenancy", name, DRILL_BROKEN, "%zu of %zu routes: %s",
                   walk->wrong_count, walk->routes, walk->wrong);
    else if (!is_whole)
        drill_tell(walk->drill, "tenancy", name, DRILL_BROKEN,
                   "the owner's things are not as they were after %zu routes", walk->routes);
    else
        drill_tell(walk->drill, "tenancy", name, walk->routes ? DRILL_HELD : DRILL_UNTRIED,
                   "%zu routes told nothing and changed nothing", walk->routes);
}

static int tenancy_stranger(struct drill *drill, const struct drill_row *row, struct error *err)
{
    static const struct {
        const char *name, *dialect;
    } dialects[] = {{"routes_native", "native"},
                    {"routes_bridge", "bridge"},
                    {"routes_stackmemory", "stackmemory"},
                    {"routes_agentpod", "agentpod"},
                    {"routes_shared", "operations"}};
    struct tenancy_walk walk = {.drill = drill, .world = drill->world};
    struct drill_user stranger;

    /* Somebody new: what another walk made would be his own, under the owner's names. */
    if (drill_user_make(drill, "walker", &stranger, err) < 0)
        return -1;
    walk.key = stranger.key;
    for (size_t i = 0; i < ARRAY_COUNT(dialects); i++) {
        if (strcmp(dialects[i].name, row->name) == 0)
            walk.dialect = dialects[i].dialect;
    }
    (void) drill_routes_walk(walk.world->document, walk_stranger, &walk);
    walk_tell(&walk, row->name);
    return 0;
}

static int tenancy_without_key(struct drill *drill, const struct drill_row *row, struct error *err)
{
    struct tenancy_walk walk = {.drill = drill, .world = drill->world, .key = DRILL_NO_KEY};

    (void) err;
    (void) drill_routes_walk(walk.world->document, walk_without_key, &walk);
    walk_tell(&walk, row->name);
    return 0;
}

static int narrow_key(struct drill *drill, const char *fields, const char **ret_key,
                      struct error *err)
{
    const struct tenancy_world *world = drill->world;
    AUTO(json)
    json_t *key =
        drill_want(drill, NULL, "POST", CLIENT_PREFIX "/keys",
                   pool_format(&drill->client.pool, "{\"name\":\"narrow\",\"user\":\"%s\",%s}",
                               world->owner.id, fields),
                   err);

    *ret_key = key ? keep_text(drill, key, "key") : NULL;
    return key ? 0 : -1;
}

static const char *little_scope(struct drill *drill)
{
    const struct tenancy_world *world = drill->world;

    return pool_format(&drill->client.pool, "\"scope\":\"sandbox\",\"sandbox\":\"%s\"",
                       world->little);
}

static int tenancy_narrow(struct drill *drill, const struct drill_row *row, struct error *err)
{
    bool is_read = strcmp(row->name, "key_that_only_reads") == 0;
    struct tenancy_walk walk = {
        .drill = drill,
        .world = drill->world,
        .wants = is_read ? changes_something : names_a_sandbox,
    };

    if (narrow_key(drill, is_read ? "\"scope\":\"read\"" : little_scope(drill), &walk.key, err) < 0)
        return -1;
    (void) drill_routes_walk(walk.world->document, walk_narrow, &walk);
    walk_tell(&walk, row->name);
    return 0;
}

static int tenancy_narrow_mount(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct tenancy_world *world = drill->world;
    AUTO(drill_talk) struct drill_talk talk = {0};
    struct drill_call call = {
        .method = "POST",
        .path = client_sandbox_path(&drill->client, world->little, "/mounts"),
        .body = "{\"path\":\"/p\",\"bucket\":\"payroll\"}",
    };

    if (narrow_key(drill, little_scope(drill), &call.key, err) < 0)
        return -1;
    (void) drill_ask(&drill->client, &call, &talk);
    drill_tell(drill, "tenancy", row->name, talk.status == 403 ? DRILL_HELD : DRILL_BROKEN,
               "status %d", talk.status);
    return 0;
}

static int tenancy_narrow_reply(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct tenancy_world *world = drill->world;
    AUTO(drill_talk) struct drill_talk wide = {0}, narrow = {0};
    struct drill_call call = {
        .method = "POST",
        .path = client_sandbox_path(&drill->client, world->box, "/exec"),
        .key = world->owner.key,
        .body = "{\"command\":\"cat /workspace/secret\"}",
        .headers = {"Idempotency-Key", drill->mark, NULL},
    };

    (void) drill_ask(&drill->client, &call, &wide);
    if (narrow_key(drill, little_scope(drill), &call.key, err) < 0)
        return -1;
    (void) drill_ask(&drill->client, &call, &narrow);
    drill_tell(drill, "tenancy", row->name,
               drill_talk_is_good(&wide) && narrow.status == 404 ? DRILL_HELD : DRILL_BROKEN,
               "status %d for the wide key, %d for the narrow one", wide.status, narrow.status);
    return 0;
}

static int tenancy_read_token(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct tenancy_world *world = drill->world;
    AUTO(drill_talk) struct drill_talk own = {0}, seen = {0};
    struct drill_call call = {.path = client_sandbox_path(&drill->client, world->box, "/ports"),
                              .key = world->owner.key};
    AUTO(json) json_t *json = NULL;
    const char *token;

    (void) drill_ask(&drill->client, &call, &own);
    json = drill_talk_json(&own);
    token = json_string_value(
        json_object_get(json_array_get(json_object_get(json, "ports"), 0), "token"));
    if (narrow_key(drill, "\"scope\":\"read\"", &call.key, err) < 0)
        return -1;
    (void) drill_ask(&drill->client, &call, &seen);
    drill_tell(drill, "tenancy", row->name,
               token && !strstr(text_string(&seen.body), token) ? DRILL_HELD : DRILL_BROKEN,
               "status %d", seen.status);
    return 0;
}

/* Whether what others do moves what one is told: cursors and ids. */
static int tenancy_count(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct tenancy_world *world = drill->world;
    long long cursors[2] = {0, 0};

    for (size_t i = 0; i < ARRAY_COUNT(cursors); i++) {
        AUTO(json) json_t *changed = NULL, *events = NULL;
        json_t *next;

        changed = drill_want(drill, world->owner.key, "PATCH",
                             client_sandbox_path(&drill->client, world->box, ""),
                             i ? "{\"labels\":{\"n\":\"1\"}}" : "{\"labels\":{\"n\":\"0\"}}", err);
        events = drill_want(drill, world->owner.key, "GET", CLIENT_PREFIX "/events", NULL, err);
        if (!changed || !events)
            return -1;
        next = json_object_get(events, "next");
        cursors[i] = json_is_integer(next)
                         ? json_integer_value(next)
                         : strtoll(json_is_string(next) ? json_string_value(next) : "0", NULL, 10);
    }
    drill_tell(drill, "tenancy", row->name,
               llabs(cursors[1] - cursors[0]) > CURSOR_NEAR ? DRILL_HELD : DRILL_BROKEN,
               "two cursors that follow each other are %lld apart", llabs(cursors[1] - cursors[0]));
    return 0;
}

/* A stream of the stranger's while the owner works. */
static int tenancy_stream(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct tenancy_world *world = drill->world;
    AUTO(drill_talk) struct drill_talk talk = {0};
    const struct drill_call call = {.path = CLIENT_PREFIX "/events?stream=1",
                                    .key = world->stranger.key};
    struct tenancy_walk walk = {.drill = drill, .world = world};
    AUTO(json) json_t *changed = NULL;
    const char *leak;

    talk.call = &call;
    drill_talk_start(&talk, &drill->client);
    (void) drill_talk_wait(&talk, OPEN_WAIT_MS, true);
    changed = drill_want(drill, world->owner.key, "PATCH",
                         client_sandbox_path(&drill->client, world->box, ""),
                         world_fill(drill, world, "{\"labels\":{\"told\":\"{secret}\"}}"), err);
    if (!changed)
        return -1;
    drill_pump(&drill->client, QUIET_MS);
    leak = walk_leak(&walk, &talk, "");
    drill_tell(drill, "tenancy", row->name, leak ? DRILL_BROKEN : DRILL_HELD,
               leak ? "it tells '%s'" : "told nothing", leak);
    return 0;
}

static const struct drill_row rows[] = {
    {"routes_native", "our own API with another's names", tenancy_stranger},
    {"routes_bridge", "the bridge's with another's names", tenancy_stranger},
    {"routes_stackmemory", "StackMemory's with another's names", tenancy_stranger},
    {"routes_agentpod", "AgentPod's with another's names", tenancy_stranger},
    {"routes_shared", "what all dialects share", tenancy_stranger},
    {"routes_without_key", "every route that is not public, without a key", tenancy_without_key},
    {"key_for_one_sandbox", "every route of another sandbox of the same owner", tenancy_narrow},
    {"key_that_only_reads", "every route that changes something", tenancy_narrow},
    {"key_for_one_sandbox_mounts", "a bucket by a key for one sandbox", tenancy_narrow_mount},
    {"repeated_for_a_narrow_key", "an idempotent reply of a wider key", tenancy_narrow_reply},
    {"preview_token_for_a_reader", "a token that opens a port, by a key that reads",
     tenancy_read_token},
    {"stream_of_others", "an event stream while another works", tenancy_stream},
    {"count_by_cursors", "how much others do, by one's own cursors", tenancy_count},
    {NULL, NULL, NULL},
};

static int tenancy_make(struct drill *drill, const struct drill_group *group, struct error *err)
{
    struct tenancy_world world = {0};
    bool is_wanted = false;
    int r;

    for (const struct drill_row *row = rows; row->name; row++)
        is_wanted |= drill_wants(drill, row->name);
    if (!is_wanted)
        return 0;
    drill->world = &world;
    r = world_make(drill, &world, err);
    if (r == 0)
        r = drill_make_rows(drill, group, err);
    drill->world = NULL;
    json_decref(world.document);
    return r;
}

const struct drill_group drill_tenancy = {
    .name = "tenancy",
    .summary = "one user looks for what is another's",
    .rows = rows,
    .make = tenancy_make,
};
