/* Attacks on the front door: who comes in without a key, with a wrong one, by a trick, or stays when he
 * may no longer. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cli/attack/drill.h"
#include "json/json_read.h"

#define PATH_SIZE            512
#define BODY_SIZE            1024
#define KEY_GUESS            "burrow_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PASSWORD             "a long password of a drill"
#define GUESSES              60
#define CUT_MS               1000
#define OPEN_MS              20000
#define LOOK_MS              20
#define WEBSOCKET_CLOSE_BYTE 0x88
#define TRIES                2 /* of what is measured in time */

struct door_world {
    struct drill_user user, other;
    char box[DRILL_NAME_SIZE];
    char email[DRILL_NAME_SIZE + 32];
};

enum door_who { NOBODY, GUESS, USER };

/* One request that must be refused. "{user}", "{other}" and "{mark}" stand for ids and the mark. */
static const struct door_request {
    const char *name;
    enum door_who who;
    const char *method, *path, *body;
    const char *headers[DRILL_HEADERS_MAX];
    const char *host;
} requests[] = {
    {"no_key", NOBODY, "GET", CLIENT_PREFIX "/sandboxes", NULL, {NULL}, NULL},
    {"wrong_key", GUESS, "GET", CLIENT_PREFIX "/whoami", NULL, {NULL}, NULL},
    {"key_in_a_query", NOBODY, "GET", CLIENT_PREFIX "/whoami?token={key}", NULL, {NULL}, NULL},
    {"strange_authorization",
     NOBODY,
     "GET",
     CLIENT_PREFIX "/whoami",
     NULL,
     {"Authorization", "Basic YWRtaW46YWRtaW4=", NULL},
     NULL},
    {"empty_cookie",
     NOBODY,
     "GET",
     CLIENT_PREFIX "/whoami",
     NULL,
     {"Cookie", "burrow_session=", NULL},
     NULL},
    {"foreign_host",
     NOBODY,
     "GET",
     CLIENT_PREFIX "/whoami",
     NULL,
     {NULL},
     "rebound.attacker.example"},
    {"own_host_of_a_proxy",
     NOBODY,
     "POST",
     CLIENT_PREFIX "/keys",
     "{\"name\":\"x\"}",
     {NULL},
     "127.0.0.1:8787"},
    {"forwarded_for_loopback",
     NOBODY,
     "GET",
     CLIENT_PREFIX "/whoami",
     NULL,
     {"X-Forwarded-For", "127.0.0.1", "X-Real-IP", "127.0.0.1", NULL},
     NULL},
    {"original_url",
     NOBODY,
     "GET",
     "/health/../burrow/v1/whoami",
     NULL,
     {"X-Original-URL", CLIENT_PREFIX "/whoami", NULL},
     NULL},
    {"foreign_origin",
     NOBODY,
     "POST",
     CLIENT_PREFIX "/sandboxes",
     "{}",
     {"Origin", "https://attacker.example", NULL},
     NULL},
    {"foreign_referer",
     NOBODY,
     "POST",
     CLIENT_PREFIX "/sandboxes",
     "{}",
     {"Referer", "https://attacker.example/page", NULL},
     NULL},
    {"page_of_another_site",
     NOBODY,
     "POST",
     CLIENT_PREFIX "/sandboxes",
     "{}",
     {"Sec-Fetch-Site", "cross-site", NULL},
     NULL},
    {"admin_list_of_deeds", USER, "GET", CLIENT_PREFIX "/audit", NULL, {NULL}, NULL},
    {"admin_make_a_user",
     USER,
     "POST",
     CLIENT_PREFIX "/users",
     "{\"name\":\"{mark}-x\",\"role\":\"admin\"}",
     {NULL},
     NULL},
    {"admin_collect", USER, "POST", CLIENT_PREFIX "/gc", "{}", {NULL}, NULL},
    {"admin_inspect", USER, "POST", CLIENT_PREFIX "/fsck", "{}", {NULL}, NULL},
    {"admin_copy_the_database", USER, "POST", CLIENT_PREFIX "/db/backup", "{}", {NULL}, NULL},
    {"admin_trace", USER, "GET", CLIENT_PREFIX "/debug/trace", NULL, {NULL}, NULL},
    {"admin_state", USER, "GET", CLIENT_PREFIX "/debug/state", NULL, {NULL}, NULL},
    {"admin_metrics", USER, "GET", "/metrics", NULL, {NULL}, NULL},
    {"become_administrator",
     USER,
     "PATCH",
     CLIENT_PREFIX "/users/me",
     "{\"role\":\"admin\"}",
     {NULL},
     NULL},
    {"raise_own_quota",
     USER,
     "PATCH",
     CLIENT_PREFIX "/users/me",
     "{\"quotas\":{\"sandboxes\":100000}}",
     {NULL},
     NULL},
    {"key_of_an_administrator",
     USER,
     "POST",
     CLIENT_PREFIX "/keys",
     "{\"name\":\"x\",\"scope\":\"admin\"}",
     {NULL},
     NULL},
    {"key_for_another",
     USER,
     "POST",
     CLIENT_PREFIX "/keys",
     "{\"name\":\"x\",\"user\":\"{other}\"}",
     {NULL},
     NULL},
    {"change_another",
     USER,
     "PATCH",
     CLIENT_PREFIX "/users/{other}",
     "{\"disabled\":true}",
     {NULL},
     NULL},
    {"mount_the_metadata_service",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes/{box}/mounts",
     "{\"path\":\"/m\",\"bucket\":\"b\",\"endpoint\":\"http://169.254.169.254/"
     "\",\"accessKeyId\":\"a\","
     "\"secretAccessKey\":\"b\"}",
     {NULL},
     NULL},
    {"mount_loopback",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes/{box}/mounts",
     "{\"path\":\"/m\",\"bucket\":\"b\",\"endpoint\":\"http://127.0.0.1:8787/"
     "\",\"accessKeyId\":\"a\","
     "\"secretAccessKey\":\"b\"}",
     {NULL},
     NULL},
    {"mount_loopback_spelled",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes/{box}/mounts",
     "{\"path\":\"/m\",\"bucket\":\"b\",\"endpoint\":\"http://[::ffff:7f00:1]:8787/"
     "\",\"accessKeyId\":\"a\","
     "\"secretAccessKey\":\"b\"}",
     {NULL},
     NULL},
    {"mount_over_the_system",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes/{box}/mounts",
     "{\"path\":\"/proc\",\"bucket\":\"b\"}",
     {NULL},
     NULL},
    {"bucket_by_a_path",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes/{box}/mounts",
     "{\"path\":\"/m\",\"bucket\":\"../../db\"}",
     {NULL},
     NULL},
    {"folder_of_the_host",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes",
     "{\"name\":\"bound\",\"binds\":{\"/m\":\"/etc\"}}",
     {NULL},
     NULL},
    {"image_by_a_path",
     USER,
     "POST",
     CLIENT_PREFIX "/sandboxes",
     "{\"name\":\"pathed\",\"image\":\"../../etc\"}",
     {NULL},
     NULL},
};

/* "{name}" replaced; in the client's pool. */
static const char *door_fill(struct drill *drill, const char *text)
{
    const struct door_world *world = drill->world;
    const struct {
        const char *name, *value;
    } places[] = {
        {"{key}", world->user.key}, {"{other}", world->other.id}, {"{mark}", drill->mark},
        {"{box}", world->box},      {"{email}", world->email},
    };

    for (size_t i = 0; text && i < ARRAY_COUNT(places); i++) {
        const char *at = strstr(text, places[i].name);

        if (at)
            text = pool_format(&drill->client.pool, "%.*s%s%s", (int) (at - text), text,
                               places[i].value, at + strlen(places[i].name));
    }
    return text;
}

static bool status_is_refusal(int status)
{
    return status == 400 || status == 401 || status == 403 || status == 404 || status == 405 ||
           status == 421 || status == 422 || status == 429;
}

static int door_request(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct door_world *world = drill->world;
    const struct door_request *request = requests;
    AUTO(drill_talk) struct drill_talk talk = {0};
    struct drill_call call;

    (void) err;
    while (strcmp(request->name, row->name) != 0)
        request++;
    call = (struct drill_call){
        .method = request->method,
        .path = door_fill(drill, request->path),
        .key = request->who == NOBODY  ? DRILL_NO_KEY
               : request->who == GUESS ? KEY_GUESS
                                       : world->user.key,
        .host = request->host,
        .body = door_fill(drill, request->body),
    };
    memcpy(call.headers, request->headers, sizeof(call.headers));
    (void) drill_ask(&drill->client, &call, &talk);
    drill_tell(drill, "door", row->name, status_is_refusal(talk.status) ? DRILL_HELD : DRILL_BROKEN,
               talk.status ? "status %d" : "no answer", talk.status);
    return 0;
}

/* --- accounts -------------------------------------------------------------------------------- */

static int door_sign_up(struct drill *drill, const struct drill_row *row, struct error *err)
{
    AUTO(drill_talk) struct drill_talk talk = {0};
    const struct drill_call call = {
        .method = "POST",
        .path = "/api/auth/sign-up/email",
        .key = DRILL_NO_KEY,
        .host = strcmp(row->name, "loopback_is_no_proof") == 0 ? "127.0.0.1:8787" : NULL,
        .body = pool_format(&drill->client.pool,
                            "{\"name\":\"%s-sign-up\",\"email\":\"%s-%s@drill.invalid\","
                            "\"password\":\"" PASSWORD "\"}",
                            drill->mark, drill->mark, row->name),
    };
    AUTO(json) json_t *json = NULL;
    const char *role;

    (void) err;
    (void) drill_ask(&drill->client, &call, &talk);
    json = drill_talk_json(&talk);
    role = json_string_value(json_object_get(json_object_get(json, "user"), "role"));
    if (!drill_talk_is_good(&talk))
        drill_tell(drill, "door", row->name, DRILL_HELD, "status %d", talk.status);
    else
        drill_tell(drill, "door", row->name, DRILL_BROKEN,
                   "anybody makes an account of the role %s: the setting sign-up is open",
                   role ? role : "user");
    return 0;
}

static int door_guess_keys(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct drill_call guess = {.path = CLIENT_PREFIX "/whoami", .key = KEY_GUESS};
    AUTO(json) json_t *whoami = NULL;
    int status = 0, tries = 0;

    while (status != 429 && tries < GUESSES) {
        AUTO(drill_talk) struct drill_talk talk = {0};

        status = drill_ask(&drill->client, &guess, &talk);
        tries++;
    }
    whoami = drill_want(drill, NULL, "GET", CLIENT_PREFIX "/whoami", NULL, err);
    if (!whoami)
        return error_wrap(err, "the right key after wrong ones");
    drill_tell(drill, "door", row->name, status == 429 ? DRILL_HELD : DRILL_BROKEN,
               status == 429 ? "slowed down after %d wrong keys; right ones are not"
                             : "%d wrong keys at once, and none was slowed down",
               tries);
    return 0;
}

static int door_sign_in(struct drill *drill, const char *password, struct drill_talk *ret_talk)
{
    const struct door_world *world = drill->world;
    const struct drill_call call = {
        .method = "POST",
        .path = "/api/auth/sign-in/email",
        .key = DRILL_NO_KEY,
        .body = pool_format(&drill->client.pool, "{\"email\":\"%s\",\"password\":\"%s\"}",
                            world->email, password),
    };

    return drill_ask(&drill->client, &call, ret_talk);
}

static int door_guess_passwords(struct drill *drill, const struct drill_row *row, struct error *err)
{
    int status = 0, tries = 0;

    (void) err;
    while (status != 429 && status != 200 && tries < GUESSES / 2) {
        AUTO(drill_talk) struct drill_talk talk = {0};

        status = door_sign_in(drill, "wrong horse battery", &talk);
        tries++;
    }
    drill_tell(drill, "door", row->name, status == 429 ? DRILL_HELD : DRILL_BROKEN,
               status == 429 ? "slowed down after %d wrong passwords"
                             : "%d wrong passwords were tried",
               tries);
    return 0;
}

/* A page of another origin, with the cookie that a browser would send along. */
static int door_ride_on_cookie(struct drill *drill, const struct drill_row *row, struct error *err)
{
    AUTO(drill_talk) struct drill_talk login = {0}, ridden = {0};
    struct drill_call call = {
        .method = "POST",
        .path = CLIENT_PREFIX "/keys",
        .key = DRILL_NO_KEY,
        .body = "{\"name\":\"ridden\"}",
    };

    (void) err;
    if (door_sign_in(drill, PASSWORD, &login) != 200 || !*login.cookie) {
        drill_tell(drill, "door", row->name, DRILL_UNTRIED, "no login: status %d", login.status);
        return 0;
    }
    call.headers[0] = "Cookie";
    call.headers[1] = login.cookie;
    call.headers[2] = "Origin";
    call.headers[3] = "https://attacker.example";
    (void) drill_ask(&drill->client, &call, &ridden);
    drill_tell(drill, "door", row->name,
               status_is_refusal(ridden.status) ? DRILL_HELD : DRILL_BROKEN, "status %d",
               ridden.status);
    return 0;
}

/* --- who may no longer ----------------------------------------------------------------------- */

enum door_end { BY_REVOKING, BY_DISABLING, BY_EXPIRY };

static const struct door_stay {
    const char *name;
    bool is_terminal;
    enum door_end by;
} stays[] = {
    {"revoked_key_stream", false, BY_REVOKING},    {"revoked_key_terminal", true, BY_REVOKING},
    {"expired_key_stream", false, BY_EXPIRY},      {"expired_key_terminal", true, BY_EXPIRY},
    {"disabled_user_stream", false, BY_DISABLING}, {"disabled_user_terminal", true, BY_DISABLING},
};

#define EXPIRY_MS 4000

/* A key of the user who is to lose it; for BY_DISABLING a user of its own. */
struct door_guest {
    struct drill_user user;
    char key[DRILL_KEY_SIZE], id[DRILL_NAME_SIZE], box[DRILL_NAME_SIZE];
};

static int guest_make(struct drill *drill, const struct door_stay *stay,
                      struct door_guest *ret_guest, struct error *err)
{
    AUTO(json) json_t *key = NULL;
    const char *body;

    if (drill_user_make(drill, "guest", &ret_guest->user, err) < 0 ||
        (stay->is_terminal &&
         drill_box_make(drill, &ret_guest->user, "box", ret_guest->box, err) < 0))
        return -1;
    body = pool_format(&drill->client.pool,
                       "{\"name\":\"lasting\",\"scope\":\"write\",\"user\":\"%s\"%s}",
                       ret_guest->user.id, stay->by == BY_EXPIRY ? ",\"expiresIn\":\"4s\"" : "");
    key = drill_want(drill, NULL, "POST", CLIENT_PREFIX "/keys", body, err);
    return key ? drill_copy_field(key, "key", ret_guest->key, sizeof(ret_guest->key), err) ||
                     drill_copy_field(key, "id", ret_guest->id, sizeof(ret_guest->id), err)
               : -1;
}

/* Take away what the guest came in with; how long to wait beyond CUT_MS. */
static int guest_end(struct drill *drill, const struct door_guest *guest, enum door_end by,
                     uint64_t *ret_ms, struct error *err)
{
    AUTO(json) json_t *done = NULL;
    const char *path;

    *ret_ms = by == BY_EXPIRY ? EXPIRY_MS : 0;
    if (by == BY_EXPIRY)
        return 0;
    path = by == BY_REVOKING ? client_path(&drill->client, "keys", guest->id, "")
                             : client_path(&drill->client, "users", guest->user.id, "");
    done = drill_want(drill, NULL, by == BY_REVOKING ? "DELETE" : "PATCH", path,
                      by == BY_REVOKING ? NULL : "{\"disabled\":true}", err);
    return done ? 0 : -1;
}

/* A WebSocket is over with the frame that says so; its connection may linger for our answer. */
static bool guest_is_told(const struct drill_talk *talk)
{
    static const char policy[] = {0x03, (char) 0xf0}; /* 1008 */
    const char *text = text_string(&talk->body);
    const char *at =
        talk->body.length ? memmem(text, talk->body.length, policy, sizeof(policy)) : NULL;

    return at && at - text >= 2 && (unsigned char) at[-2] == WEBSOCKET_CLOSE_BYTE;
}

static bool guest_is_out(struct drill_talk *talk, uint64_t within_ms)
{
    for (uint64_t waited = 0; waited < within_ms; waited += LOOK_MS) {
        if (drill_talk_wait(talk, LOOK_MS, false) || guest_is_told(talk))
            return true;
    }
    return false;
}

/* Whether the guest was out within the time. */
static int guest_stays(struct drill *drill, const struct door_stay *stay, bool *ret_out,
                       struct error *err)
{
    struct door_guest guest = {0};
    AUTO(drill_talk) struct drill_talk talk = {0};
    struct drill_call call = {.key = guest.key};
    uint64_t wait_ms;

    if (guest_make(drill, stay, &guest, err) < 0)
        return -1;
    call.path = stay->is_terminal
                    ? client_sandbox_path(&drill->client, guest.box, "/terminals?sessionId=t")
                    : CLIENT_PREFIX "/events?stream=1";
    call.upgrade = stay->is_terminal;
    talk.call = &call;
    drill_talk_start(&talk, &drill->client);
    if (!drill_talk_wait(&talk, OPEN_MS, true) || talk.is_over)
        return error_set(err, ERR_UPSTREAM, 0, "%s was not opened: status %d", call.path,
                         talk.status);
    if (guest_end(drill, &guest, stay->by, &wait_ms, err) < 0)
        return -1;
    *ret_out = guest_is_out(&talk, wait_ms + CUT_MS);
    return drill_user_remove(&drill->client, guest.user.id, err);
}

static int door_stay(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct door_stay *stay = stays;
    bool is_out = false;

    while (strcmp(stay->name, row->name) != 0)
        stay++;
    for (int i = 0; i < TRIES && !is_out; i++) {
        if (guest_stays(drill, stay, &is_out, err) < 0)
            return -1;
    }
    drill_tell(drill, "door", row->name, is_out ? DRILL_HELD : DRILL_BROKEN,
               is_out ? "cut within %d ms" : "still open after %d ms", CUT_MS);
    return 0;
}

/* --- the table ------------------------------------------------------------------------------- */

#define REQUEST(name, what)                                                                        \
    {                                                                                              \
        name, what, door_request                                                                   \
    }
#define STAY(name, what)                                                                           \
    {                                                                                              \
        name, what, door_stay                                                                      \
    }

static const struct drill_row rows[] = {
    REQUEST("no_key", "a list without a key"),
    REQUEST("wrong_key", "a key that nobody has"),
    REQUEST("key_in_a_query", "a good key in the query of a plain request"),
    REQUEST("strange_authorization", "a name and a password in the place of a key"),
    REQUEST("empty_cookie", "a cookie of a login without a login"),
    REQUEST("foreign_host", "a name that was made to point here (rebinding)"),
    REQUEST("own_host_of_a_proxy", "what a plain reverse proxy passes on, without a key"),
    REQUEST("forwarded_for_loopback", "an address of one's own making"),
    REQUEST("original_url", "a path by way of another"),
    REQUEST("foreign_origin", "a page of another origin, by Origin"),
    REQUEST("foreign_referer", "the same by Referer"),
    REQUEST("page_of_another_site", "the same by Sec-Fetch-Site"),
    REQUEST("admin_list_of_deeds", "a user reads the audit log"),
    REQUEST("admin_make_a_user", "a user makes an administrator"),
    REQUEST("admin_collect", "a user runs gc"),
    REQUEST("admin_inspect", "a user runs fsck"),
    REQUEST("admin_copy_the_database", "a user copies the database"),
    REQUEST("admin_trace", "a user reads the traces"),
    REQUEST("admin_state", "a user reads the state"),
    REQUEST("admin_metrics", "a user reads the metrics"),
    REQUEST("become_administrator", "a user makes himself one"),
    REQUEST("raise_own_quota", "a user gives himself more"),
    REQUEST("key_of_an_administrator", "a user makes a key of the scope admin"),
    REQUEST("key_for_another", "a user makes a key of another's"),
    REQUEST("change_another", "a user disables another"),
    REQUEST("mount_the_metadata_service", "a bucket at 169.254.169.254"),
    REQUEST("mount_loopback", "a bucket at this host's loopback"),
    REQUEST("mount_loopback_spelled", "the same as a mapped address"),
    REQUEST("mount_over_the_system", "a bucket over /proc"),
    REQUEST("bucket_by_a_path", "a bucket whose name leads out"),
    REQUEST("folder_of_the_host", "a folder of the host that nobody registered"),
    REQUEST("image_by_a_path", "an image whose name leads out"),
    {"sign_up_is_closed", "a stranger makes an account", door_sign_up},
    {"loopback_is_no_proof", "the same as a local proxy would say it", door_sign_up},
    {"ride_on_a_cookie", "a foreign page with the cookie of a login", door_ride_on_cookie},
    {"guess_keys", "wrong keys, many", door_guess_keys},
    {"guess_passwords", "wrong passwords, many", door_guess_passwords},
    STAY("revoked_key_stream", "an event stream goes on with a revoked key"),
    STAY("revoked_key_terminal", "a terminal goes on with a revoked key"),
    STAY("expired_key_stream", "an event stream goes on with an expired key"),
    STAY("expired_key_terminal", "a terminal goes on with an expired key"),
    STAY("disabled_user_stream", "an event stream of a disabled user goes on"),
    STAY("disabled_user_terminal", "a terminal of a disabled user goes on"),
    {NULL, NULL, NULL},
};

static int door_make(struct drill *drill, const struct drill_group *group, struct error *err)
{
    struct door_world world = {0};
    AUTO(json) json_t *changed = NULL;
    char body[BODY_SIZE];
    bool is_wanted = false;
    int r;

    for (const struct drill_row *row = rows; row->name; row++)
        is_wanted |= drill_wants(drill, row->name);
    if (!is_wanted)
        return 0;
    if (drill_user_make(drill, "door", &world.user, err) < 0 ||
        drill_user_make(drill, "other", &world.other, err) < 0 ||
        drill_box_make(drill, &world.user, "box", world.box, err) < 0)
        return -1;
    (void) snprintf(world.email, sizeof(world.email), "%s@drill.invalid", drill->mark);
    (void) snprintf(body, sizeof(body), "{\"email\":\"%s\",\"password\":\"" PASSWORD "\"}",
                    world.email);
    changed = drill_want(drill, NULL, "PATCH",
                         client_path(&drill->client, "users", world.user.id, ""), body, err);
    if (!changed)
        return -1;
    drill->world = &world;
    r = drill_make_rows(drill, group, err);
    drill->world = NULL;
    return r;
}

const struct drill_group drill_door = {
    .name = "door",
    .summary = "the front door: without a key, with a wrong one, by a trick, or no longer welcome",
    .rows = rows,
    .make = door_make,
};
