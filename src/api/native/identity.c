#include <string.h>

#include "api/http/pending.h"
#include "api/native/handlers.h"
#include "api/native/identity_internal.h"
#include "base/auto.h"
#include "base/number.h"
#include "domain/event/audit.h"
#include "domain/identity/api_key.h"

/* --- shapes ---------------------------------------------------------------------------------- */

void identity_add_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(wall_ms, text);
    json_add_text(json, key, wall_ms ? text : NULL);
}

int identity_page_begin(struct identity_page *page, struct http_request *request, const char *name,
                        struct error *err)
{
    page->left = IDENTITY_PAGE_DEFAULT;
    page->after = http_request_query(request, "after");
    native_answer_begin_list(&page->answer, name);
    if (page->after && !id_is_valid(page->after))
        return error_set(err, ERR_INVALID, 0,
                         "'after' must be the id of the last one that was seen");
    return native_read_limit(request, IDENTITY_PAGE_MAX, &page->left, err);
}

bool identity_page_takes(struct identity_page *page, const struct id *id)
{
    if (page->after) {
        if (strcmp(page->after, id->text) == 0)
            page->after = NULL;
        return false;
    }
    if (!page->left || native_answer_is_full(&page->answer)) {
        page->has_more = true;
        return false;
    }
    page->left--;
    page->last = id->text;
    return true;
}

void identity_page_end(struct identity_page *page, struct http_request *request,
                       const struct error *failure)
{
    json_end_array(&page->answer.json);
    json_add_text(&page->answer.json, "next", page->has_more ? page->last : NULL);
    if (failure->code != ERR_NONE)
        http_reply_error(request, failure);
    else
        native_answer_send(&page->answer, request, 200);
    native_answer_done(&page->answer);
}

/* --- who am I -------------------------------------------------------------------------------- */

void native_get_whoami(struct http_request *request)
{
    const struct caller *caller = request_caller(request);
    struct domain *domain = api_of(request)->domain;
    const struct owner *owner = owner_find(domain, &caller->owner);
    const struct api_key *key = api_key_find(domain, caller, caller->credential.text, NULL);
    AUTO(native_answer) struct native_answer answer;
    struct json_writer *json = &answer.json;

    native_answer_begin(&answer);
    json_add_text(json, "scope", api_key_scope_text(caller->scope));
    json_add_text(json, "credential", !*caller->credential.text ? "none" : key ? "key" : "login");
    json_add_text(json, "credentialId", *caller->credential.text ? caller->credential.text : NULL);
    if (*caller->sandbox.text)
        json_add_text(json, "sandboxId", caller->sandbox.text);
    if (caller->port)
        json_add_integer(json, "port", caller->port);
    json_key(json, "user");
    if (owner)
        identity_write_user(json, owner);
    else
        json_put_null(json);
    native_answer_send(&answer, request, 200);
}

/* --- the audit log --------------------------------------------------------------------------- */

static void write_entry(struct json_writer *json, const struct audit_entry *entry)
{
    json_begin_object(json);
    json_add_integer(json, "number", entry->number);
    identity_add_time(json, "time", entry->time_ms);
    json_add_text(json, "userId", entry->owner);
    json_add_text(json, "credentialId", entry->credential);
    json_add_text(json, "address", entry->address);
    json_add_text(json, "requestId", entry->request);
    json_add_text(json, "action", entry->action);
    json_add_text(json, "object", entry->object);
    json_add_text(json, "outcome", entry->outcome);
    json_add_text(json, "detail", entry->detail);
    json_end_object(json);
}

static void audit_found(void *context, const struct error *failure,
                        const struct audit_entry *entries, size_t count)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "entries");
    if (!request)
        return;
    for (size_t i = 0; i < count; i++)
        write_entry(&answer.json, &entries[i]);
    json_end_array(&answer.json);
    if (count)
        json_add_integer(&answer.json, "next", entries[count - 1].number);
    else
        json_add_null(&answer.json, "next");
    native_answer_send(&answer, request, 200);
}

void native_get_audit(struct http_request *request)
{
    const char *before_text = http_request_query(request, "before");
    const char *limit_text = http_request_query(request, "limit");
    int64_t before = 0, limit = 100;

    if ((before_text && number_parse(before_text, 1, INT64_MAX, &before) < 0) ||
        (limit_text && number_parse(limit_text, 1, AUDIT_PAGE_MAX, &limit) < 0)) {
        api_fail(request, ERR_INVALID, "before is an entry's number, limit one from 1 to %d",
                 AUDIT_PAGE_MAX);
        return;
    }
    audit_page(api_of(request)->domain, request_caller(request), before, (size_t) limit,
               audit_found, pending_new(request));
}
