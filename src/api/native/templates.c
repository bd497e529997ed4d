#include <string.h>

#include "api/http/long_reads.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "domain/snapshot/template.h"
#include "model/spec_json.h"

#define LIST_DEFAULT 1000 /* an owner has fewer; what is long ends a page sooner */

/* --- shown ----------------------------------------------------------------------------------- */

/* As one of a list: without variables and commands where those are long, which "brief" says. */
static void write_template(struct json_writer *json, const struct template *template,
                           const struct caller *caller, bool is_one_of_many)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    bool is_brief = false;
    int r = is_one_of_many ? template_spec_brief(template, &spec, &is_brief, NULL)
                           : template_spec(template, &spec, NULL);

    json_begin_object(json);
    json_add_text(json, "name", template->name);
    json_add_text(json, "snapshot", *template->snapshot.text ? template->snapshot.text : NULL);
    if (r == 0)
        sandbox_spec_write_api(json, &spec, caller_may_enter(caller) && !is_brief);
    if (is_brief)
        json_add_boolean(json, "brief", true);
    native_add_time(json, "createdAt", template->created_ms);
    native_add_time(json, "updatedAt", template->updated_ms);
    json_end_object(json);
}

static void answer_template(struct http_request *request, const struct template *template)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    write_template(&answer.json, template, request_caller(request), false);
    native_answer_send(&answer, request, 200);
}

struct templates_listing {
    struct native_answer answer;
    const struct caller *caller;
};

static void templates_list_one(void *context, const struct template *template)
{
    struct templates_listing *listing = context;

    write_template(&listing->answer.json, template, listing->caller, true);
}

void native_list_templates(struct http_request *request)
{
    struct templates_listing listing = {.caller = request_caller(request)};
    struct template_filter filter = {.after = http_request_query(request, "cursor"),
                                     .is_full = native_answer_is_full,
                                     .full_context = &listing.answer};
    struct error err = ERROR_INIT;
    int64_t count = LIST_DEFAULT;
    const char *next = NULL;
    int r = native_read_limit(request, TEMPLATE_LIST_MAX, &count, &err);

    if (!long_read_begin(request, native_list_templates))
        return;
    native_answer_begin_list(&listing.answer, "templates");
    filter.limit = (size_t) count;
    if (r == 0)
        r = template_list(api_of(request)->domain, listing.caller, &filter, &request->pool,
                          templates_list_one, &listing, &next, &err);
    json_end_array(&listing.answer.json);
    json_add_text(&listing.answer.json, "nextCursor", next);
    if (r < 0)
        http_reply_error(request, &err);
    else
        native_answer_send(&listing.answer, request, 200);
    native_answer_done(&listing.answer);
}

void native_get_template(struct http_request *request)
{
    struct error err = ERROR_INIT;
    const struct template *template =
        template_find(api_of(request)->domain, request_caller(request),
                      http_request_parameter(request, "name"), &err);

    if (template)
        answer_template(request, template);
    else
        http_reply_error(request, &err);
}

/* --- changed --------------------------------------------------------------------------------- */

static void templates_put(void *context, const struct error *failure,
                          const struct template *template)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        answer_template(request, template);
}

static int read_put(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const more[] = {"snapshot", NULL};
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct snapshot *snapshot = NULL;
    const char *name = NULL;

    if (sandbox_spec_read_api(body, SPEC_TEMPLATE, more, &spec, NULL, err) < 0 ||
        json_field_text(body, "snapshot", JSON_OPTIONAL, SNAPSHOT_NAME_MAX, &name, err) < 0)
        return -1;
    if (name) {
        snapshot = snapshot_find(domain, caller, name, err);
        if (!snapshot)
            return -1;
    }
    template_put(domain, caller, http_request_parameter(request, "name"), &spec, snapshot,
                 templates_put, pending_new(request));
    return 0;
}

void native_put_template(struct http_request *request)
{
    native_take(request, read_put);
}

static void templates_gone(void *context, const struct error *failure,
                           const struct template *template)
{
    (void) template;
    pending_end(context, failure);
}

void native_delete_template(struct http_request *request)
{
    template_delete(api_of(request)->domain, request_caller(request),
                    http_request_parameter(request, "name"), templates_gone, pending_new(request));
}
