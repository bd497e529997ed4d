#include <stdlib.h>
#include <string.h>

#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/order.h"
#include "api/native/sandbox_fields.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/snapshot/snapshot.h"
#include "json/json_measure.h"
#include "model/spec_json.h"

#define LIST_DEFAULT   100
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

static struct snapshot *snapshots_find(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct snapshot *snapshot = snapshot_find(api_of(request)->domain, request_caller(request),
                                              http_request_parameter(request, "snapshot"), &err);

    if (!snapshot)
        http_reply_error(request, &err);
    return snapshot;
}

void native_get_snapshot(struct http_request *request)
{
    const struct snapshot *snapshot = snapshots_find(request);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (!snapshot)
        return;
    write_snapshot(&answer.json, snapshot, NULL);
    native_answer_send(&answer, request, 200);
}

/* --- listed ---------------------------------------------------------------------------------- */

static void snapshots_list_one(void *context, struct snapshot *snapshot)
{
    write_snapshot(context, snapshot, NULL);
}

static void snapshots_list(struct http_request *request, const struct id *sandbox)
{
    AUTO(native_answer) struct native_answer answer;
    const char *next = NULL;
    struct snapshot_filter filter = {.sandbox = sandbox,
                                     .after = http_request_query(request, "cursor"),
                                     .is_full = native_answer_is_full,
                                     .full_context = &answer};
    struct error err = ERROR_INIT;
    int64_t count = LIST_DEFAULT;
    int r;

    native_answer_begin_list(&answer, "snapshots");
    r = native_read_limit(request, SNAPSHOT_LIST_MAX, &count, &err);
    filter.limit = (size_t) count;
    if (r == 0)
        r = snapshot_list(api_of(request)->domain, request_caller(request), &filter, &request->pool,
                          snapshots_list_one, &answer.json, &next, &err);
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", next);
    if (r < 0)
        http_reply_error(request, &err);
    else
        native_answer_send(&answer, request, 200);
}

void native_list_snapshots(struct http_request *request)
{
    snapshots_list(request, NULL);
}

/* Also of a sandbox that is gone, by its id. */
void native_list_sandbox_snapshots(struct http_request *request)
{
    const char *name = http_request_parameter(request, "id");
    struct id id = {.text = ""};
    const struct sandbox *sandbox;

    if (id_is_valid(name)) {
        memcpy(id.text, name, ID_SIZE);
        snapshots_list(request, &id);
        return;
    }
    sandbox = native_find_sandbox(request);
    if (sandbox)
        snapshots_list(request, &sandbox->id);
}

/* --- made and deleted ------------------------------------------------------------------------ */

static void snapshots_made(void *context, const struct error *failure, struct snapshot *snapshot,
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
                         struct error *err)
{
    static const char *const known[] = {"name", "freeze", "ttl"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct snapshot_options options = {.reason = SNAPSHOT_MANUAL};
    struct sandbox *sandbox;
    bool freeze = true;

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "name", JSON_OPTIONAL, SNAPSHOT_NAME_MAX, &options.name, err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0 ||
        native_read_expiry(request, body, "ttl", &options.expires_ms, err) < 0)
        return -1;
    options.no_freeze = !freeze;
    sandbox = sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    if (!sandbox)
        return -1;
    snapshot_make(domain, caller, sandbox, &options, snapshots_made, order_new(request));
    return 0;
}

void native_make_snapshot(struct http_request *request)
{
    native_take(request, read_snapshot);
}

static void snapshots_gone(void *context, const struct error *failure)
{
    pending_end(context, failure);
}

void native_delete_snapshot(struct http_request *request)
{
    struct snapshot *snapshot = snapshots_find(request);

    if (snapshot)
        snapshot_delete(api_of(request)->domain, request_caller(request), snapshot, snapshots_gone,
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
        json_document_begin(&json, &body);
        json_begin_array_at(&json, "sandboxes");
        for (size_t i = 0; i < count; i++)
            sandbox_fields_write_brief(&json, sandboxes[i], order_caller(order));
        json_end_array(&json);
        json_add_thousandths(&json, "pauseMs", how ? how->pause_us : 0);
        (void) json_document_end(&json);
    }
    order_end(order, failure, 201, &body);
}

/* Its argument is NULL: of a snapshot. */
static int read_fork(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const more[] = {"count", "freeze", NULL};
    AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct fork_options options = {.change = &change};
    struct snapshot *snapshot = NULL;
    struct sandbox *sandbox = NULL;
    int64_t count = 1;
    bool freeze = true;

    if (sandbox_spec_read_api(body, SPEC_CHANGE, more, &change.spec, &change.fields, err) < 0 ||
        json_field_integer(body, "count", JSON_OPTIONAL, 1, SNAPSHOT_FORKS_MAX, &count, err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0)
        return -1;
    options.no_freeze = !freeze;
    options.count = (size_t) count;
    options.name = change.spec.name;
    if (native_argument(request))
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

void native_fork_snapshot(struct http_request *request)
{
    native_take(request, read_fork);
}

void native_fork_sandbox(struct http_request *request)
{
    native_take_with(request, read_fork, "sandbox");
}

/* --- rollback -------------------------------------------------------------------------------- */

static void rolled_back(void *context, const struct error *failure, struct sandbox *sandbox,
                        struct snapshot *saved)
{
    struct order *order = context;
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!failure) {
        json_document_begin(&json, &body);
        json_key(&json, "sandbox");
        sandbox_fields_write(&json, sandbox, order_caller(order));
        json_key(&json, "saved");
        write_snapshot(&json, saved, NULL);
        (void) json_document_end(&json);
    }
    order_end(order, failure, 200, &body);
}

static int read_rollback(struct http_request *request, const struct json_place *body,
                         struct error *err)
{
    static const char *const known[] = {"snapshot"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const char *name = NULL;
    struct snapshot *snapshot;
    struct sandbox *sandbox;

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

void native_roll_back(struct http_request *request)
{
    native_take(request, read_rollback);
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
static void snapshots_take_line(void *context, const char *line, size_t length)
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

    native_answer_begin_list(&diffing->answer, "changes");
    diffing->pending = pending_new(request);
    snapshot_diff(api_of(request)->domain, request_caller(request), older, newer,
                  snapshots_take_line, diffed, diffing);
}

/* From the snapshot to another, or to its sandbox as it is now. */
void native_diff_snapshot(struct http_request *request)
{
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const char *against = http_request_query(request, "against");
    struct snapshot_place older = {.snapshot = snapshots_find(request)}, newer = {.snapshot = NULL};
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
void native_diff_sandbox(struct http_request *request)
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
