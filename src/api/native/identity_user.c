/* Users, as they are shown. */
#include <string.h>

#include "api/native/handlers.h"
#include "api/native/identity_internal.h"
#include "base/auto.h"
#include "domain/event/audit.h"

/* A key for one sandbox has nothing to do with people. */
static bool identity_user_is_seen(const struct caller *caller, const struct owner *owner)
{
    return caller->scope != CALLER_SANDBOX && caller->scope != CALLER_PORT &&
           caller_sees_owner(caller, &owner->id);
}

struct owner *identity_user_of(struct http_request *request, const char *text, struct error *err)
{
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct owner *owner = strcmp(text, "me") == 0 ? owner_find(domain, &caller->owner)
                                                  : owner_named(domain, text, NULL);

    if (owner && identity_user_is_seen(caller, owner))
        return owner;
    (void) error_set(err, ERR_NOT_FOUND, 0, "no such user");
    if (owner && err)
        audit_add(domain, caller, "user.find", owner->id.text, err);
    return NULL;
}

static void write_quotas(struct json_writer *json, const struct quota *quota)
{
    AUTO(text) struct text text = TEXT_INIT(4096);

    quota_write_api(quota, &text);
    json_put_raw(json, text_string(&text), text.length);
}

void identity_write_user(struct json_writer *json, const struct owner *owner)
{
    json_begin_object(json);
    json_add_text(json, "id", owner->id.text);
    json_add_text(json, "name", owner->name);
    json_add_text(json, "email", owner->email);
    json_add_text(json, "role", owner->is_admin ? "admin" : "user");
    json_add_boolean(json, "disabled", owner->is_disabled);
    json_add_boolean(json, "hasPassword", owner->password != NULL);
    json_key(json, "quotas");
    write_quotas(json, &owner->quota);
    identity_add_time(json, "createdAt", owner->created_ms);
    identity_add_time(json, "updatedAt", owner->updated_ms);
    json_end_object(json);
}

struct identity_user_listing {
    struct identity_page page;
    const struct caller *caller;
};

static void identity_user_list_one(void *context, struct owner *owner)
{
    struct identity_user_listing *listing = context;

    if (identity_user_is_seen(listing->caller, owner) &&
        identity_page_takes(&listing->page, &owner->id))
        identity_write_user(&listing->page.answer.json, owner);
}

void native_list_users(struct http_request *request)
{
    struct identity_user_listing listing = {.caller = request_caller(request)};
    struct error err = ERROR_INIT;

    if (identity_page_begin(&listing.page, request, "users", &err) == 0)
        owner_each(api_of(request)->domain, identity_user_list_one, &listing);
    identity_page_end(&listing.page, request, &err);
}

void native_get_user(struct http_request *request)
{
    AUTO(native_answer) struct native_answer answer;
    struct error err = ERROR_INIT;
    const struct owner *owner =
        identity_user_of(request, http_request_parameter(request, "user"), &err);

    native_answer_begin_value(&answer);
    if (!owner) {
        http_reply_error(request, &err);
        return;
    }
    identity_write_user(&answer.json, owner);
    native_answer_send(&answer, request, 200);
}
