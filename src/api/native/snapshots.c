#include "api/native/snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "api/access/access.h"
#include "api/http/error_body.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/order.h"
#include "api/native/sandbox_fields.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/snapshot/snapshot.h"
#include "json/json_measure.h"

#define LIST_DEFAULT   100
#define SPEC_MAX       ((uint64_t) 512 * 1024)
#define DIFF_BYTES_MAX ((size_t) 8 * 1024 * 1024) /* of an answer; more is left out, and said */
#define DIFF_LINE_MAX  ((size_t) 64 * 1024)

/* --- shown ----------------------------------------------------------------------------------- */

static void write_snapshot(struct json_writer *json, const struct snapshot *snapshot,
                           const struct snapshot_made *how)
{
    json_begin_object(json);
    json_add_text(json, "id", snapshot->id.text);
    json_add_text(json, "name", snapshot->name);
    json_add_text(json, "sandboxId", snapshot->sandbox.text);
    json_add_text(json, "owner", snapshot->owner.text);
    json_add_text(json, "reason", snapshot_reason_text(snapshot->reason));
    json_add_text(json, "state", snapshot_state_text(snapshot->state));
    json_add_integer(json, "size", (int64_t) snapshot->size);
    native_add_time(json, "createdAt", snapshot->created_ms);
    native_add_time(json, "expiresAt", snapshot->expires_ms);
    if (how) {
        json_add_thousandths(json, "pauseMs", how->pause_us);
        json_add_thousandths(json, "tookMs", how->took_us);
        json_add_boolean(json, "copied", how->is_copied);
    }
    json_end_object(json);
}

static struct snapshot *find(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct snapshot *snapshot = snapshot_find(api_of(request)->domain, request_caller(request),
                                              http_request_parameter(request, "snapshot"), &err);

    if (!snapshot)
        http_reply_error(request, &err);
    return snapshot;
}

static void get_snapshot(struct http_request *request)
{
    const struct snapshot *snapshot = find(request);
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!snapshot)
        return;
    json_writer_init_text(&json, &body);
    write_snapshot(&json, snapshot, NULL);
    (void) json_writer_finish(&json);
    http_reply(request, 200, "application/json", text_string(&body), body.length);
}

/* --- listed ---------------------------------------------------------------------------------- */

static void list_one(void *context, struct snapshot *snapshot)
{
    write_snapshot(context, snapshot, NULL);
}

static void list(struct http_request *request, const struct id *sandbox)
{
    AUTO(native_answer) struct native_answer answer;
    const char *limit = http_request_query(request, "limit"), *next = NULL;
    struct snapshot_filter filter = {.sandbox = sandbox,
                                     .after = http_request_query(request, "cursor")};
    struct error err = ERROR_INIT;
    int64_t count = LIST_DEFAULT;
    int r;

    native_answer_begin(&answer);
    if (limit && number_parse(limit, 1, SNAPSHOT_LIST_MAX, &count) < 0) {
        api_fail(request, ERR_INVALID, "'limit' must be a number from 1 to %d", SNAPSHOT_LIST_MAX);
        return;
    }
    filter.limit = (size_t) count;
    json_key(&answer.json, "snapshots");
    json_begin_array(&answer.json);
    r = snapshot_list(api_of(request)->domain, request_caller(request), &filter, &request->pool,
                      list_one, &answer.json, &next, &err);
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    if (r < 0)
        http_reply_error(request, &err);
    else
        native_answer_send(&answer, request, 200);
}

static void list_snapshots(struct http_request *request)
{
    list(request, NULL);
}

/* Also of a sandbox that is gone, by its id. */
static void list_sandbox_snapshots(struct http_request *request)
{
    const char *name = http_request_parameter(request, "id");
    struct id id = {.text = ""};
    const struct sandbox *sandbox;

    if (id_is_valid(name)) {
        memcpy(id.text, name, ID_SIZE);
        list(request, &id);
        return;
    }
    sandbox = native_find_sandbox(request);
    if (sandbox)
        list(request, &sandbox->id);
}

/* --- made and deleted ------------------------------------------------------------------------ */

static void made(void *context, const struct error *failure, struct snapshot *snapshot,
                 const struct snapshot_made *how)
{
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!failure) {
        json_writer_init_text(&json, &body);
        write_snapshot(&json, snapshot, how);
        (void) json_writer_finish(&json);
    }
    order_end(context, failure, 201, &body);
}

static int read_snapshot(struct http_request *request, const struct json_place *body,
                         const void *argument, struct error *err)
{
    static const char *const known[] = {"name", "freeze", "ttl"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct snapshot_options options = {.reason = SNAPSHOT_MANUAL};
    struct sandbox *sandbox;
    bool freeze = true;

    (void) argument;
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "name", JSON_OPTIONAL, SNAPSHOT_NAME_MAX, &options.name, err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0 ||
        native_read_expiry(request, body, "ttl", &options.expires_ms, err) < 0)
        return -1;
    options.no_freeze = !freeze;
    sandbox = sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    if (!sandbox)
        return -1;
    snapshot_make(domain, caller, sandbox, &options, made, order_new(request));
    return 0;
}

static void make_snapshot(struct http_request *request)
{
    native_take(request, read_snapshot, NULL);
}

static void gone(void *context, const struct error *failure)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        http_reply(request, 204, NULL, "", 0);
}

static void delete_snapshot(struct http_request *request)
{
    struct snapshot *snapshot = find(request);

    if (snapshot)
        snapshot_delete(api_of(request)->domain, request_caller(request), snapshot, gone,
                        pending_new(request));
}

/* --- forks ----------------------------------------------------------------------------------- */

static void forked(void *context, const struct error *failure, struct sandbox *const *sandboxes,
                   size_t count, const struct snapshot_made *how)
{
    struct order *order = context;
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!failure) {
        json_writer_init_text(&json, &body);
        json_begin_object(&json);
        json_key(&json, "sandboxes");
        json_begin_array(&json);
        for (size_t i = 0; i < count; i++)
            sandbox_fields_write(&json, sandboxes[i], order_caller(order));
        json_end_array(&json);
        json_add_thousandths(&json, "pauseMs", how ? how->pause_us : 0);
        json_end_object(&json);
        (void) json_writer_finish(&json);
    }
    order_end(order, failure, 201, &body);
}

/* `argument` NULL: of a snapshot. */
static int read_fork(struct http_request *request, const struct json_place *body,
                     const void *argument, struct error *err)
{
    AUTO(sandbox_fields_change) struct sandbox_fields_change change = {.spec = SANDBOX_SPEC_INIT};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct fork_options options = {.changes = &change.update};
    struct snapshot *snapshot = NULL;
    struct sandbox *sandbox = NULL;
    int64_t count = 1;
    bool freeze = true;

    if (sandbox_fields_read_fork(body, &change, err) < 0 ||
        json_field_integer(body, "count", JSON_OPTIONAL, 1, SNAPSHOT_FORKS_MAX, &count, err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0)
        return -1;
    options.no_freeze = !freeze;
    options.count = (size_t) count;
    options.name = change.spec.name;
    change.update.changes &= ~(unsigned int) SANDBOX_CHANGE_NAME;
    if (argument)
        sandbox = sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    else
        snapshot = snapshot_find(domain, caller, http_request_parameter(request, "snapshot"), err);
    if (!sandbox && !snapshot)
        return -1;
    if (sandbox)
        sandbox_fork(domain, caller, sandbox, &options, forked, order_new(request));
    else
        snapshot_fork(domain, caller, snapshot, &options, forked, order_new(request));
    return 0;
}

static void fork_snapshot(struct http_request *request)
{
    native_take(request, read_fork, NULL);
}

static void fork_sandbox(struct http_request *request)
{
    native_take(request, read_fork, "sandbox");
}

/* --- rollback -------------------------------------------------------------------------------- */

static void rolled_back(void *context, const struct error *failure, struct sandbox *sandbox,
                        struct snapshot *saved)
{
    struct order *order = context;
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!failure) {
        json_writer_init_text(&json, &body);
        json_begin_object(&json);
        json_key(&json, "sandbox");
        sandbox_fields_write(&json, sandbox, order_caller(order));
        json_key(&json, "saved");
        write_snapshot(&json, saved, NULL);
        json_end_object(&json);
        (void) json_writer_finish(&json);
    }
    order_end(order, failure, 200, &body);
}

static int read_rollback(struct http_request *request, const struct json_place *body,
                         const void *argument, struct error *err)
{
    static const char *const known[] = {"snapshot"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const char *name = NULL;
    struct snapshot *snapshot;
    struct sandbox *sandbox;

    (void) argument;
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "snapshot", JSON_REQUIRED, SNAPSHOT_NAME_MAX, &name, err) < 0)
        return -1;
    sandbox = sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    snapshot = sandbox ? snapshot_find(domain, caller, name, err) : NULL;
    if (!snapshot)
        return -1;
    sandbox_roll_back(domain, caller, sandbox, snapshot, rolled_back, order_new(request));
    return 0;
}

static void roll_back(struct http_request *request)
{
    native_take(request, read_rollback, NULL);
}

/* --- what changed ---------------------------------------------------------------------------- */

struct diffing {
    struct pending *pending;
    struct native_answer answer;
    json_t *totals; /* owned, may be NULL */
    size_t bytes;
    bool is_truncated;
};

/* Lines are the keeper's, which reads disks of strangers: each is read before it is passed on. */
static void take_line(void *context, const char *line, size_t length)
{
    struct diffing *diffing = context;
    AUTO(json) json_t *value = NULL;
    json_t *totals;

    if (length > DIFF_LINE_MAX)
        return;
    value = json_read(line, length, NULL, NULL);
    totals = value ? json_object_get(value, "diff") : NULL;
    if (totals) {
        json_decref(diffing->totals);
        diffing->totals = json_incref(totals);
    } else if (value && diffing->bytes + length <= DIFF_BYTES_MAX) {
        diffing->bytes += length;
        json_put_value(&diffing->answer.json, value);
    } else if (value) {
        diffing->is_truncated = true;
    }
}

static void diffed(void *context, const struct error *failure)
{
    AUTO(free) struct diffing *diffing = context;
    struct http_request *request = pending_take_good(diffing->pending, failure);
    struct json_writer *json = &diffing->answer.json;

    json_end_array(json);
    if (diffing->totals) {
        json_key(json, "totals");
        json_put_value(json, diffing->totals);
    }
    json_add_boolean(json, "truncated", diffing->is_truncated);
    if (request)
        native_answer_send(&diffing->answer, request, 200);
    json_decref(diffing->totals);
    native_answer_done(&diffing->answer);
}

static void diff(struct http_request *request, struct snapshot_place older,
                 struct snapshot_place newer)
{
    struct diffing *diffing = mem_alloc(sizeof(*diffing));

    native_answer_begin(&diffing->answer);
    json_key(&diffing->answer.json, "changes");
    json_begin_array(&diffing->answer.json);
    diffing->pending = pending_new(request);
    snapshot_diff(api_of(request)->domain, request_caller(request), older, newer, take_line, diffed,
                  diffing);
}

/* From the snapshot to another, or to its sandbox as it is now. */
static void diff_snapshot(struct http_request *request)
{
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const char *against = http_request_query(request, "against");
    struct snapshot_place older = {.snapshot = find(request)}, newer = {.snapshot = NULL};
    struct error err = ERROR_INIT;

    if (!older.snapshot)
        return;
    if (against && *against)
        newer.snapshot = snapshot_find(domain, caller, against, &err);
    else
        newer.sandbox = sandbox_find(domain, caller, older.snapshot->sandbox.text, &err);
    if (newer.snapshot || newer.sandbox)
        diff(request, older, newer);
    else
        http_reply_error(request, &err);
}

/* From a snapshot to the sandbox as it is now. */
static void diff_sandbox(struct http_request *request)
{
    const char *from = http_request_query(request, "from");
    struct snapshot_place older = {.snapshot = NULL};
    struct snapshot_place newer = {.sandbox = native_find_sandbox(request)};
    struct error err = ERROR_INIT;

    if (!newer.sandbox)
        return;
    if (!from || !*from) {
        api_fail(request, ERR_INVALID, "'from' must name a snapshot");
        return;
    }
    older.snapshot = snapshot_find(api_of(request)->domain, request_caller(request), from, &err);
    if (older.snapshot)
        diff(request, older, newer);
    else
        http_reply_error(request, &err);
}

/* --- the table ------------------------------------------------------------------------------- */

#define OF_SANDBOX "/burrow/v1/sandboxes/{id}"
#define SNAPSHOTS  "/burrow/v1/snapshots"
#define SNAPSHOT   SNAPSHOTS "/{snapshot}"

/* clang-format off */
#define QUERY(name, text)                                                                          \
    "{\"name\":\"" name "\",\"in\":\"query\",\"description\":\"" text                               \
    "\",\"schema\":{\"type\":\"string\"}}"

#define LIST_QUERY                                                                                 \
    QUERY("cursor", "nextCursor of the page before") ","                                           \
    QUERY("limit", "1 to 1000; 100 if not given")
/* clang-format on */

static const struct http_route routes[] = {
    {"POST", OF_SANDBOX "/snapshots", make_snapshot,
     "Keep its disk as it is now; pauseMs says how long it stood still", .access = ACCESS_WRITE,
     .request_schema = SNAPSHOT_ORDER_SCHEMA, .reply_schema = SNAPSHOT_SCHEMA},
    {"GET", OF_SANDBOX "/snapshots", list_sandbox_snapshots, "Its snapshots, the newest first",
     .access = ACCESS_READ, .reply_schema = SNAPSHOTS_SCHEMA, .parameters = LIST_QUERY},
    {"POST", OF_SANDBOX "/fork", fork_sandbox,
     "New sandboxes that begin with its disk as it is now: all of them, or none",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX, .request_schema = FORK_SCHEMA,
     .reply_schema = FORKED_SCHEMA},
    {"POST", OF_SANDBOX "/rollback", roll_back,
     "Its disk becomes what it was; what it is now is kept as a snapshot", .access = ACCESS_WRITE,
     .request_schema = ROLLBACK_SCHEMA, .reply_schema = ROLLED_BACK_SCHEMA},
    {"GET", OF_SANDBOX "/diff", diff_sandbox, "What changed since a snapshot",
     .access = ACCESS_READ, .reply_schema = DIFF_SCHEMA,
     .parameters = QUERY("from", "a snapshot, by id or name")},
    {"GET", SNAPSHOTS, list_snapshots, "List snapshots, the newest first", .access = ACCESS_READ,
     .reply_schema = SNAPSHOTS_SCHEMA, .parameters = LIST_QUERY},
    {"GET", SNAPSHOT, get_snapshot, "Read one, by id or name", .access = ACCESS_READ,
     .reply_schema = SNAPSHOT_SCHEMA},
    {"DELETE", SNAPSHOT, delete_snapshot, "Delete it; sandboxes made from it stay",
     .access = ACCESS_WRITE},
    {"POST", SNAPSHOT "/fork", fork_snapshot,
     "New sandboxes that begin with this disk: all of them, or none", .access = ACCESS_WRITE,
     .body_limit = SPEC_MAX, .request_schema = FORK_SCHEMA, .reply_schema = FORKED_SCHEMA},
    {"GET", SNAPSHOT "/diff", diff_snapshot,
     "What changed since this one, until another or until now", .access = ACCESS_READ,
     .reply_schema = DIFF_SCHEMA,
     .parameters = QUERY("against", "a snapshot; without it the sandbox as it is now")},
};

struct http_mount snapshots_mount(struct api *api)
{
    return (struct http_mount){
        .name = "native",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = error_body_write,
    };
}
