#include <string.h>

#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "domain/snapshot/template.h"
#include "model/spec_json.h"

/* --- shown ----------------------------------------------------------------------------------- */

static void write_template(struct json_writer *json, const struct template *template,
                           const struct caller *caller)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    json_begin_object(json);
    json_add_text(json, "name", template->name);
    json_add_text(json, "snapshot", *template->snapshot.text ? template->snapshot.text : NULL);
    if (template_spec(template, &spec, NULL) == 0)
        sandbox_spec_write_api(json, &spec, caller_may_enter(caller));
    native_add_time(json, "createdAt", template->created_ms);
    native_add_time(json, "updatedAt", template->updated_ms);
    json_end_object(json);
}

static void answer_template(struct http_request *request, const struct template *template)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    write_template(&answer.json, template, request_caller(request));
    native_answer_send(&answer, request, 200);
}

struct templates_listing {
    struct native_answer answer;
    const struct caller *caller;
};

static void templates_list_one(void *context, const struct template *template)
{
    struct templates_listing *listing = context;

    write_template(&listing->answer.json, template, listing->caller);
}

void native_list_templates(struct http_request *request)
{
    struct templates_listing listing = {.caller = request_caller(request)};

    native_answer_begin_list(&listing.answer, "templates");
    template_each(api_of(request)->domain, listing.caller, templates_list_one, &listing);
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
