/* Sandboxes as objects: made, listed, changed, put to sleep, destroyed. */
#include "domain/sandbox/sandboxes.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/idempotency.h"
#include "api/http/long_reads.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/sandbox_fields.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/snapshot/template.h"
#include "model/spec_json.h"

#define LIST_DEFAULT 100

/* One sandbox as a whole answer; too small ever to overflow. */
static void write_sandbox(struct text *body, const struct sandbox *sandbox,
                          const struct caller *caller)
{
    struct json_writer json;

    json_writer_init_text(&json, body);
    sandbox_fields_write(&json, sandbox, caller);
    (void) json_writer_finish(&json);
}

static void answer_sandbox(struct http_request *request, int status, const struct sandbox *sandbox)
{
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);

    write_sandbox(&body, sandbox, request_caller(request));
    http_reply(request, status, "application/json", text_string(&body), body.length);
}

/* --- create ---------------------------------------------------------------------------------- */

/* Goes on when the client leaves: the answer is kept for its return. */
struct sandbox_creation_answer {
    struct pending *pending;
    struct idempotency_entry *entry; /* may be NULL */
    struct caller caller;
};

static void keep_answer(const struct sandbox_creation_answer *creation,
                        const struct sandbox *sandbox, int status)
{
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);

    write_sandbox(&body, sandbox, &creation->caller);
    idempotency_keep(creation->entry, status, text_string(&body), body.length);
}

static void sandboxes_created(void *context, const struct error *failure, struct sandbox *sandbox,
                              bool is_new)
{
    AUTO(free) struct sandbox_creation_answer *creation = context;
    struct http_request *request = pending_take(creation->pending);
    int status = is_new ? 201 : 200;

    if (!request && failure) {
        idempotency_drop(creation->entry);
    } else if (!request) {
        keep_answer(creation, sandbox, status);
    } else if (failure) {
        http_reply_error(request, failure);
    } else {
        (void) http_reply_header(
            request, "Location",
            pool_format(&request->pool, "/burrow/v1/sandboxes/%s", sandbox->id.text));
        answer_sandbox(request, status, sandbox);
    }
}

/* What the template says, over which the body is read, and the snapshot it begins with. A sandbox
 * of that name that is there already is found, as without a template. */
static int read_template(struct http_request *request, const struct json_place *body,
                         struct sandbox_spec *spec, struct snapshot **ret_snapshot,
                         struct error *err)
{
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const struct template *template;
    const char *name = NULL, *known = NULL;
    struct error ignored;

    if (json_field_text(body, "template", JSON_OPTIONAL, TEMPLATE_NAME_MAX, &name, err) < 0 ||
        json_field_text(body, "name", JSON_OPTIONAL, SANDBOX_NAME_MAX, &known, err) < 0)
        return -1;
    if (!name)
        return 0;
    template = template_find(domain, caller, name, err);
    if (!template || template_spec(template, spec, err) < 0)
        return -1;
    if (!*template->snapshot.text || (known && sandbox_find(domain, caller, known, &ignored)))
        return 0;
    *ret_snapshot = snapshot_find(domain, caller, template->snapshot.text, err);
    return *ret_snapshot ? 0 : error_wrap(err, "the template '%s'", name);
}

static int read_create(struct http_request *request, const struct json_place *body,
                       struct error *err)
{
    const struct caller *caller = request_caller(request);
    struct domain *domain = api_of(request)->domain;
    static const char *const more[] = {"template", NULL};
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct snapshot *snapshot = NULL;
    struct sandbox_creation_answer *creation;

    if (read_template(request, body, &spec, &snapshot, err) < 0 ||
        sandbox_spec_read_api(body, SPEC_CREATE, more, &spec, NULL, err) < 0)
        return -1;
    free(spec.kind);
    spec.kind = mem_copy_text("native");
    creation = mem_alloc(sizeof(*creation));
    creation->caller = *caller;
    creation->entry = idempotency_adopt(request);
    creation->pending = pending_new(request);
    if (snapshot)
        sandbox_create_from_snapshot(domain, caller, snapshot, &spec, sandboxes_created, creation);
    else
        sandbox_create(domain, caller, &spec, sandboxes_created, creation);
    return 0;
}

void native_create_sandbox(struct http_request *request)
{
    native_take(request, read_create);
}

/* --- list ------------------------------------------------------------------------------------ */

struct sandboxes_listing {
    struct native_answer answer;
    const struct caller *caller;
};

static void sandboxes_list_one(void *context, struct sandbox *sandbox)
{
    struct sandboxes_listing *listing = context;

    sandbox_fields_write_brief(&listing->answer.json, sandbox, listing->caller);
}

static int sandboxes_read_status(const char *text, struct sandbox_filter *filter, struct error *err)
{
    AUTO(text) struct text known = TEXT_INIT(ERROR_MESSAGE_MAX);

    if (strcmp(text, "sleeping") == 0) {
        filter->is_asleep = true;
        return 0;
    }
    if (sandbox_status_from_text(text, &filter->status) == 0)
        return 0;
    for (unsigned int i = 0; i < SANDBOX_STATUS_COUNT; i++)
        text_format(&known, "%s%s", i ? ", " : "", sandbox_status_text((enum sandbox_status) i));
    return error_set(err, ERR_INVALID, 0, "unknown status '%.32s'; one of %s or sleeping", text,
                     text_string(&known));
}

/* "name" or "name=value". */
static void read_label(struct http_request *request, const char *text,
                       struct sandbox_filter *filter)
{
    const char *equals = strchr(text, '=');

    filter->label = equals ? pool_copy_bytes(&request->pool, text, (size_t) (equals - text)) : text;
    filter->value = equals ? equals + 1 : NULL;
}

static int read_owner(struct http_request *request, const char *text, struct sandbox_filter *filter,
                      struct error *err)
{
    struct id *owner = pool_alloc(&request->pool, sizeof(*owner));

    if (!id_is_valid(text))
        return error_set(err, ERR_INVALID, 0, "'owner' must be an owner's id");
    memcpy(owner->text, text, ID_SIZE);
    filter->owner = owner;
    return 0;
}

static int read_filter(struct http_request *request, struct sandbox_filter *filter,
                       struct error *err)
{
    const char *status = http_request_query(request, "status");
    const char *label = http_request_query(request, "label");
    const char *owner = http_request_query(request, "owner");
    int64_t count = LIST_DEFAULT;

    *filter = (struct sandbox_filter){
        .status = SANDBOX_STATUS_COUNT,
        .name_prefix = http_request_query(request, "prefix"),
        .after = http_request_query(request, "cursor"),
    };
    if (native_read_limit(request, SANDBOX_LIST_MAX, &count, err) < 0)
        return -1;
    filter->limit = (size_t) count;
    if (label)
        read_label(request, label, filter);
    if (owner && read_owner(request, owner, filter, err) < 0)
        return -1;
    return status ? sandboxes_read_status(status, filter, err) : 0;
}

void native_list_sandboxes(struct http_request *request)
{
    struct sandboxes_listing listing = {.caller = request_caller(request)};
    struct error error = ERROR_INIT;
    struct sandbox_filter filter;
    const char *next = NULL;
    int r;

    if (read_filter(request, &filter, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (!long_read_begin(request, native_list_sandboxes))
        return;
    native_answer_begin_list(&listing.answer, "sandboxes");
    filter.is_full = native_answer_is_full;
    filter.full_context = &listing.answer;
    r = sandbox_list(api_of(request)->domain, listing.caller, &filter, &request->pool,
                     sandboxes_list_one, &listing, &next, &error);
    json_end_array(&listing.answer.json);
    json_add_text(&listing.answer.json, "nextCursor", next);
    if (r < 0)
        http_reply_error(request, &error);
    else
        native_answer_send(&listing.answer, request, 200);
    native_answer_done(&listing.answer);
}

/* --- one ------------------------------------------------------------------------------------- */

void native_get_sandbox(struct http_request *request)
{
    const struct sandbox *sandbox = native_find_sandbox(request);

    if (sandbox)
        answer_sandbox(request, 200, sandbox);
}

static void sandboxes_done(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        answer_sandbox(request, 200, sandbox);
}

static int sandboxes_read_change(struct http_request *request, const struct json_place *body,
                                 struct error *err)
{
    struct api *api = api_of(request);
    const struct caller *caller = request_caller(request);
    AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
    struct sandbox *sandbox =
        sandbox_find(api->domain, caller, http_request_parameter(request, "id"), err);

    if (!sandbox ||
        sandbox_spec_read_api(body, SPEC_CHANGE, NULL, &change.spec, &change.fields, err) < 0)
        return -1;
    sandbox_update(api->domain, caller, sandbox, &change, sandboxes_done, pending_new(request));
    return 0;
}

void native_change_sandbox(struct http_request *request)
{
    native_take(request, sandboxes_read_change);
}

static void sandboxes_destroyed(void *context, const struct error *failure, struct sandbox *sandbox)
{
    (void) sandbox;
    pending_end(context, failure);
}

typedef void sandbox_act(struct domain *domain, const struct caller *caller,
                         struct sandbox *sandbox, sandbox_done *done, void *context);

static void sandboxes_act(struct http_request *request, sandbox_act *what, sandbox_done *answer)
{
    struct sandbox *sandbox = native_find_sandbox(request);

    if (sandbox)
        what(api_of(request)->domain, request_caller(request), sandbox, answer,
             pending_new(request));
}

void native_destroy_sandbox(struct http_request *request)
{
    sandboxes_act(request, sandbox_destroy, sandboxes_destroyed);
}

void native_start_sandbox(struct http_request *request)
{
    sandboxes_act(request, sandbox_start, sandboxes_done);
}

void native_stop_sandbox(struct http_request *request)
{
    sandboxes_act(request, sandbox_stop, sandboxes_done);
}

void native_sleep_sandbox(struct http_request *request)
{
    sandboxes_act(request, sandbox_sleep, sandboxes_done);
}

void native_wake_sandbox(struct http_request *request)
{
    sandboxes_act(request, sandbox_wake, sandboxes_done);
}

void native_touch_sandbox(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);

    if (!sandbox)
        return;
    if (!caller_may_enter(request_caller(request))) {
        api_fail(request, ERR_FORBIDDEN, "this key may look and not change anything");
        return;
    }
    sandbox_touch(api_of(request)->domain, sandbox);
    answer_sandbox(request, 200, sandbox);
}
