/* Keys: list, make, revoke. */
#include <string.h>

#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "api/native/handlers.h"
#include "api/native/identity_internal.h"
#include "base/auto.h"
#include "domain/identity/api_key.h"
#include "domain/sandbox/sandboxes.h"

/* --- shown ----------------------------------------------------------------------------------- */

static void write_key(struct json_writer *json, const struct api_key *key, const char *secret)
{
    json_begin_object(json);
    json_add_text(json, "id", key->id.text);
    json_add_text(json, "name", key->name);
    json_add_text(json, "prefix", key->prefix);
    json_add_text(json, "scope", api_key_scope_text(key->scope));
    json_add_text(json, "userId", key->owner.text);
    json_add_text(json, "sandboxId", *key->sandbox.text ? key->sandbox.text : NULL);
    if (key->port)
        json_add_integer(json, "port", key->port);
    identity_add_time(json, "createdAt", key->created_ms);
    identity_add_time(json, "expiresAt", key->expires_ms);
    identity_add_time(json, "revokedAt", key->revoked_ms);
    identity_add_time(json, "usedAt", key->used_ms);
    if (secret)
        json_add_text(json, "key", secret);
    json_end_object(json);
}

struct identity_key_listing {
    struct identity_page page;
    const struct owner *owner; /* NULL: of everybody that is seen */
};

static void identity_key_list_one(void *context, struct api_key *key)
{
    struct identity_key_listing *listing = context;

    if ((!listing->owner || strcmp(listing->owner->id.text, key->owner.text) == 0) &&
        identity_page_takes(&listing->page, &key->id))
        write_key(&listing->page.answer.json, key, NULL);
}

void native_list_keys(struct http_request *request)
{
    const char *user = http_request_query(request, "user");
    struct identity_key_listing listing = {.owner = NULL};
    struct error err = ERROR_INIT;

    if (user)
        listing.owner = identity_user_of(request, user, &err);
    if (identity_page_begin(&listing.page, request, "keys", &err) == 0 && (!user || listing.owner))
        api_key_each(api_of(request)->domain, request_caller(request), identity_key_list_one,
                     &listing);
    identity_page_end(&listing.page, request, &err);
}

/* --- made ------------------------------------------------------------------------------------ */

static void identity_key_made(void *context, const struct error *failure, struct api_key *key,
                              const char *secret)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (!request)
        return;
    write_key(&answer.json, key, secret);
    (void) http_reply_header(request, "Cache-Control", "no-store");
    native_answer_send(&answer, request, 201);
    explicit_bzero(answer.body.data, answer.body.capacity);
}

static int read_place(struct http_request *request, const struct json_place *body,
                      struct api_key_spec *spec, struct error *err)
{
    const char *sandbox_text = NULL, *user = NULL;
    const struct sandbox *sandbox;
    const struct owner *owner;
    int64_t port = 0;

    if (json_field_text(body, "sandbox", JSON_OPTIONAL, SANDBOX_NAME_MAX, &sandbox_text, err) < 0 ||
        json_field_text(body, "user", JSON_OPTIONAL, OWNER_EMAIL_MAX, &user, err) < 0 ||
        json_field_integer(body, "port", JSON_OPTIONAL, 1, UINT16_MAX, &port, err) < 0)
        return -1;
    if (sandbox_text) {
        sandbox = sandbox_find(api_of(request)->domain, request_caller(request), sandbox_text, err);
        if (!sandbox)
            return -1;
        spec->sandbox = sandbox->id;
    }
    if (user) {
        owner = identity_user_of(request, user, err);
        if (!owner)
            return -1;
        spec->owner = owner->id;
    }
    spec->port = (uint16_t) port;
    return 0;
}

/* What is not said follows from what is: a key for a sandbox is for that, others may write. */
static int read_scope(const struct json_place *body, struct api_key_spec *spec, struct error *err)
{
    const char *scope = spec->port ? "port" : *spec->sandbox.text ? "sandbox" : "write";

    if (json_field_text(body, "scope", JSON_OPTIONAL, 16, &scope, err) < 0)
        return -1;
    return api_key_scope_from_text(scope, &spec->scope, err);
}

static int read_key(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const known[] = {"name", "scope", "sandbox", "port", "expiresIn", "user"};
    struct api_key_spec spec = {.scope = CALLER_WRITE};

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "name", JSON_REQUIRED, API_KEY_NAME_MAX, &spec.name, err) < 0 ||
        read_place(request, body, &spec, err) < 0 || read_scope(body, &spec, err) < 0 ||
        native_read_expiry(request, body, "expiresIn", &spec.expires_ms, err) < 0)
        return -1;
    api_key_create(api_of(request)->domain, request_caller(request), &spec, identity_key_made,
                   pending_new(request));
    return 0;
}

void native_create_key(struct http_request *request)
{
    json_body_take(request, read_key);
}

/* --- revoked --------------------------------------------------------------------------------- */

static void revoked(void *context, const struct error *failure, struct api_key *key,
                    const char *secret)
{
    (void) key;
    (void) secret;
    pending_end(context, failure);
}

void native_revoke_key(struct http_request *request)
{
    const struct api *api = api_of(request);
    struct error err = ERROR_INIT;
    struct api_key *key = api_key_find(api->domain, request_caller(request),
                                       http_request_parameter(request, "key"), &err);

    if (!key) {
        http_reply_error(request, &err);
        return;
    }
    api_key_revoke(api->domain, request_caller(request), key, revoked, pending_new(request));
}
