#include "api/native/identity.h"

#include <string.h>

#include "api/access/access.h"
#include "api/http/error_body.h"
#include "api/http/pending.h"
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

void identity_reply(struct http_request *request, int status, struct json_writer *json,
                    struct text *body)
{
    if (json_writer_finish(json) < 0)
        api_fail(request, ERR_INTERNAL, "the answer does not fit");
    else
        http_reply(request, status, "application/json", text_string(body), body->length);
}

int identity_page_begin(struct identity_page *page, struct http_request *request, const char *name,
                        struct text *body, struct error *err)
{
    const char *limit = http_request_query(request, "limit");

    *page = (struct identity_page){.left = IDENTITY_PAGE_DEFAULT};
    page->after = http_request_query(request, "after");
    if (limit && number_parse(limit, 1, IDENTITY_PAGE_MAX, &page->left) < 0)
        return error_set(err, ERR_INVALID, 0, "limit is a number from 1 to %d", IDENTITY_PAGE_MAX);
    if (page->after && !id_is_valid(page->after))
        return error_set(err, ERR_INVALID, 0, "after is the id of the last one that was seen");
    json_writer_init_text(&page->json, body);
    json_begin_object(&page->json);
    json_key(&page->json, name);
    json_begin_array(&page->json);
    return 0;
}

bool identity_page_takes(struct identity_page *page, const struct id *id)
{
    if (page->after) {
        if (strcmp(page->after, id->text) == 0)
            page->after = NULL;
        return false;
    }
    if (!page->left) {
        page->has_more = true;
        return false;
    }
    page->left--;
    page->last = id->text;
    return true;
}

void identity_page_end(struct identity_page *page, struct http_request *request, struct text *body)
{
    json_end_array(&page->json);
    json_add_text(&page->json, "next", page->has_more ? page->last : NULL);
    json_end_object(&page->json);
    identity_reply(request, 200, &page->json, body);
}

/* --- who am I -------------------------------------------------------------------------------- */

static void get_whoami(struct http_request *request)
{
    const struct caller *caller = request_caller(request);
    struct domain *domain = api_of(request)->domain;
    const struct owner *owner = owner_find(domain, &caller->owner);
    const struct api_key *key = api_key_find(domain, caller, caller->credential.text, NULL);
    AUTO(text) struct text body = TEXT_INIT(IDENTITY_REPLY_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_add_text(&json, "scope", api_key_scope_text(caller->scope));
    json_add_text(&json, "credential", !*caller->credential.text ? "none" : key ? "key" : "login");
    json_add_text(&json, "credentialId", *caller->credential.text ? caller->credential.text : NULL);
    if (*caller->sandbox.text)
        json_add_text(&json, "sandboxId", caller->sandbox.text);
    if (caller->port)
        json_add_integer(&json, "port", caller->port);
    json_key(&json, "user");
    if (owner)
        identity_write_user(&json, owner);
    else
        json_put_null(&json);
    json_end_object(&json);
    identity_reply(request, 200, &json, &body);
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
    AUTO(text) struct text body = TEXT_INIT(IDENTITY_REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_key(&json, "entries");
    json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        write_entry(&json, &entries[i]);
    json_end_array(&json);
    if (count)
        json_add_integer(&json, "next", entries[count - 1].number);
    else
        json_add_null(&json, "next");
    json_end_object(&json);
    identity_reply(request, 200, &json, &body);
}

static void get_audit(struct http_request *request)
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

/* --- the table ------------------------------------------------------------------------------- */

#define TEXT_FIELD(name) "\"" name "\":{\"type\":\"string\"}"
#define USER_FIELDS                                                                                \
    TEXT_FIELD("name")                                                                             \
    "," TEXT_FIELD("email") "," TEXT_FIELD(                                                        \
        "password") ","                                                                            \
                    "\"role\":{\"enum\":[\"admin\",\"user\"]},\"quotas\":{\"type\":\"object\"}"
#define CREATE_USER_SCHEMA                                                                         \
    "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{" USER_FIELDS "}}"
#define UPDATE_USER_SCHEMA                                                                         \
    "{\"type\":\"object\",\"properties\":{" USER_FIELDS                                            \
    "," TEXT_FIELD("currentPassword") ",\"disabled\":{\"type\":\"boolean\"}}}"
#define CREATE_KEY_SCHEMA                                                                          \
    "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{" TEXT_FIELD(                    \
        "name") ","                                                                                \
                "\"scope\":{\"enum\":[\"admin\",\"write\",\"read\",\"sandbox\",\"port\"]}"         \
                "," TEXT_FIELD(                                                                    \
                    "sandbox") ",\"port\":{\"type\":\"integer\"},"                                 \
                               "\"expiresIn\":{\"type\":[\"string\",\"integer\"]}," TEXT_FIELD(    \
                                   "user") "}}"

static const struct http_route routes[] = {
    {"GET", "/burrow/v1/whoami", get_whoami, "Whom the key or login belongs to, and its scope",
     .access = ACCESS_SIGNED_IN},
    {"GET", "/burrow/v1/users", identity_list_users, "List users", .access = ACCESS_READ},
    {"POST", "/burrow/v1/users", identity_create_user, "Make a user", .access = ACCESS_ADMIN,
     .request_schema = CREATE_USER_SCHEMA},
    {"GET", "/burrow/v1/users/{user}", identity_get_user, "Read one user; me is oneself",
     .access = ACCESS_READ},
    {"PATCH", "/burrow/v1/users/{user}", identity_update_user, "Change a user",
     .access = ACCESS_WRITE, .request_schema = UPDATE_USER_SCHEMA},
    {"DELETE", "/burrow/v1/users/{user}", identity_delete_user,
     "Remove a user that owns no sandbox any more", .access = ACCESS_ADMIN},
    {"GET", "/burrow/v1/keys", identity_list_keys, "List keys", .access = ACCESS_READ},
    {"POST", "/burrow/v1/keys", identity_create_key, "Make a key; its secret is told only here",
     .access = ACCESS_WRITE, .request_schema = CREATE_KEY_SCHEMA},
    {"DELETE", "/burrow/v1/keys/{key}", identity_revoke_key, "Revoke a key by id or prefix",
     .access = ACCESS_WRITE},
    {"GET", "/burrow/v1/audit", get_audit, "The audit log, newest first", .access = ACCESS_ADMIN},
};

struct http_mount identity_mount(struct api *api)
{
    return (struct http_mount){
        .name = "identity",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = error_body_write,
    };
}
