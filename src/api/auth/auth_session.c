/* The login that a request brings along, and how it is told. */
#include <string.h>

#include "api/access/credential.h"
#include "api/auth/auth_internal.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "domain/event/audit.h"
#include "domain/identity/api_key.h"

#define REPLY_MAX ((size_t) 16 * 1024)

/* --- cookies --------------------------------------------------------------------------------- */

void auth_set_cookie(struct http_request *request, const char *token, bool is_secure)
{
    const char *value = pool_format(
        &request->pool, "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
        is_secure ? CREDENTIAL_COOKIE_SECURE : CREDENTIAL_COOKIE_PLAIN, token ? token : "",
        token ? (long long) (LOGIN_LIFETIME_MS / 1000) : 0, is_secure ? "; Secure" : "");

    (void) http_reply_header(request, "Set-Cookie", value);
}

/* --- shapes ---------------------------------------------------------------------------------- */

static void add_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(wall_ms, text);
    json_add_text(json, key, text);
}

void auth_write_user(struct json_writer *json, const struct owner *owner)
{
    json_begin_object(json);
    json_add_text(json, "id", owner->id.text);
    json_add_text(json, "name", owner->name);
    json_add_text(json, "email", owner->email);
    json_add_boolean(json, "emailVerified", false);
    json_add_null(json, "image");
    json_add_text(json, "role", owner->is_admin ? "admin" : "user");
    add_time(json, "createdAt", owner->created_ms);
    add_time(json, "updatedAt", owner->updated_ms);
    json_end_object(json);
}

static void reply_json(struct http_request *request, struct json_writer *json, struct text *body)
{
    if (json_writer_finish(json) < 0) {
        api_fail(request, ERR_INTERNAL, "the answer does not fit");
        return;
    }
    (void) http_reply_header(request, "Cache-Control", "no-store");
    http_reply(request, 200, "application/json", text_string(body), body->length);
}

void auth_reply_login(struct http_request *request, const struct owner *owner,
                      const struct login *login, const char *token)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct client_address from;
    struct json_writer json;

    auth_client(api_of(request)->auth, request, &from);
    auth_set_cookie(request, token, from.is_secure);
    /* Where clients that keep the token themselves look for it. */
    (void) http_reply_header(request, "set-auth-token", token);
    json_document_begin(&json, &body);
    json_add_boolean(&json, "redirect", false);
    json_add_text(&json, "token", token);
    add_time(&json, "expiresAt", login->expires_ms);
    json_key(&json, "user");
    auth_write_user(&json, owner);
    json_end_object(&json);
    reply_json(request, &json, &body);
    explicit_bzero(body.data, body.capacity);
}

/* --- handlers -------------------------------------------------------------------------------- */

/* The login behind the request, or NULL: there is none, or a key. */
static struct login *login_of(struct http_request *request, const char **ret_token)
{
    const struct api *api = api_of(request);
    struct caller ignored = {.scope = CALLER_NOBODY};
    struct client_address from;
    struct credential credential;
    struct login *login = NULL;

    auth_client(api->auth, request, &from);
    credential = credential_find(request->head, url_span(NULL, 0), from.is_secure, &request->pool);
    *ret_token = credential.source == CREDENTIAL_COOKIE ? credential.secret : NULL;
    if (!credential.secret ||
        login_check(api->domain, credential.secret, &ignored, &login, NULL) < 0)
        return NULL;
    return login;
}

static void write_session(struct json_writer *json, struct domain *domain,
                          const struct caller *caller, const struct login *login)
{
    const struct api_key *key =
        login ? NULL : api_key_find(domain, caller, caller->credential.text, NULL);
    int64_t expires_ms = login ? login->expires_ms : key ? key->expires_ms : 0;

    json_begin_object(json);
    json_add_text(json, "id", caller->credential.text);
    json_add_text(json, "userId", caller->owner.text);
    if (expires_ms)
        add_time(json, "expiresAt", expires_ms);
    else
        json_add_null(json, "expiresAt");
    if (login || key) {
        add_time(json, "createdAt", login ? login->created_ms : key->created_ms);
        add_time(json, "updatedAt", login ? login->created_ms : key->created_ms);
    }
    json_add_text(json, "ipAddress", login ? login->address : NULL);
    json_add_text(json, "userAgent", login ? login->program : NULL);
    json_end_object(json);
}

void auth_get_session(struct http_request *request)
{
    const struct api *api = api_of(request);
    const struct caller *caller = request_caller(request);
    const struct owner *owner = caller->scope == CALLER_NOBODY || !api->domain
                                    ? NULL
                                    : owner_find(api->domain, &caller->owner);
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct client_address from;
    struct json_writer json;
    const struct login *login;
    const char *cookie;

    if (!owner) {
        (void) http_reply_header(request, "Cache-Control", "no-store");
        http_reply_text(request, 200, "application/json", "null");
        return;
    }
    login = login_of(request, &cookie);
    if (login && cookie) {
        /* It may have been prolonged just now: so is the cookie. */
        auth_client(api->auth, request, &from);
        auth_set_cookie(request, cookie, from.is_secure);
    }
    json_document_begin(&json, &body);
    json_key(&json, "session");
    write_session(&json, api->domain, caller, login);
    json_key(&json, "user");
    auth_write_user(&json, owner);
    json_end_object(&json);
    reply_json(request, &json, &body);
}

static void reply_signed_out(struct http_request *request)
{
    struct client_address from;

    auth_client(api_of(request)->auth, request, &from);
    auth_set_cookie(request, NULL, from.is_secure);
    http_reply_text(request, 200, "application/json", "{\"success\":true}");
}

static void auth_session_ended(void *context, const struct error *failure, struct login *login,
                               const char *token)
{
    struct http_request *request = pending_take_good(context, failure);

    (void) login;
    (void) token;
    if (request)
        reply_signed_out(request);
}

void auth_sign_out(struct http_request *request)
{
    const struct api *api = api_of(request);
    const struct caller *caller = request_caller(request);
    const char *cookie;
    struct login *login = caller->scope == CALLER_NOBODY ? NULL : login_of(request, &cookie);

    /* Whoever is not logged in is logged out. A key stays a key: it is revoked, not logged out. */
    if (!login) {
        reply_signed_out(request);
        return;
    }
    audit_add(api->domain, caller, "login.end", login->id.text, NULL);
    login_end(api->domain, login, auth_session_ended, pending_new(request));
}
