/* POST /api/auth/sign-up/email, GET /api/auth/signup-status */
#include <stdio.h>
#include <string.h>

#include "api/auth/auth_internal.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/audit.h"

struct sign_up {
    struct auth *auth;
    struct pending *pending;
    struct caller caller;
    bool is_first;
    char *name, *email, *program; /* owned; program may be NULL */
};

/* --- who may --------------------------------------------------------------------------------- */

static int check_permission(struct auth *auth, struct http_request *request, bool *ret_is_first,
                            struct error *err)
{
    enum auth_first first = auth_first_check(auth, request);

    *ret_is_first = first == AUTH_FIRST_YES;
    if (first == AUTH_FIRST_STALE)
        return error_set(err, ERR_FORBIDDEN, 0,
                         "this one-time token was used or is too old: the next start of `burrow "
                         "serve` shows another, or show the administrator's key");
    if (*ret_is_first || auth->sign_up == AUTH_SIGN_UP_OPEN)
        return 0;
    return error_set(
        err, ERR_FORBIDDEN, 0,
        "sign-up is closed: an administrator makes accounts with `burrow user create`, "
        "or opens it to everybody with the setting sign-up=open; the first account is "
        "made with the administrator's key, or the one-time token that `burrow serve` "
        "shows at a terminal, as Authorization: Bearer");
}

void auth_get_sign_up(struct http_request *request)
{
    struct auth *auth = api_of(request)->auth;
    bool is_first = auth->api->domain && auth_first_check(auth, request) == AUTH_FIRST_YES;
    bool is_open = auth->sign_up == AUTH_SIGN_UP_OPEN || is_first;
    char body[96];

    (void) snprintf(body, sizeof(body), "{\"enabled\":%s,\"signupEnabled\":%s,\"isFirstUser\":%s}",
                    is_open ? "true" : "false", is_open ? "true" : "false",
                    is_first ? "true" : "false");
    http_reply_text(request, 200, "application/json", body);
}

/* --- doing it -------------------------------------------------------------------------------- */

static void sign_up_finish(struct sign_up *sign_up)
{
    if (sign_up->is_first)
        sign_up->auth->is_first_under_way = false;
    free(sign_up->name);
    free(sign_up->email);
    free(sign_up->program);
    free(sign_up);
}

static void sign_up_refuse(struct sign_up *sign_up, const struct error *failure)
{
    struct http_request *request = pending_take(sign_up->pending);

    if (request)
        http_reply_error(request, failure);
    sign_up_finish(sign_up);
}

static void logged_in(void *context, const struct error *failure, struct login *login,
                      const char *token)
{
    struct sign_up *sign_up = context;
    const struct owner *owner =
        failure ? NULL : owner_find(sign_up->auth->api->domain, &login->owner);
    struct error gone = ERROR_INIT;
    struct http_request *request;

    if (!owner) {
        (void) error_set(&gone, ERR_CONFLICT, 0, "this user was removed just now");
        sign_up_refuse(sign_up, failure ? failure : &gone);
        return;
    }
    request = pending_take(sign_up->pending);
    if (request)
        auth_reply_login(request, owner, login, token);
    sign_up_finish(sign_up);
}

static void owned(void *context, const struct error *failure, struct owner *owner)
{
    struct sign_up *sign_up = context;
    struct domain *domain = sign_up->auth->api->domain;

    audit_add(domain, &sign_up->caller, "user.signup", failure ? "" : owner->id.text, failure);
    if (failure) {
        sign_up_refuse(sign_up, failure);
        return;
    }
    if (sign_up->is_first)
        auth_first_end(sign_up->auth);
    login_create(domain, &sign_up->caller, owner, sign_up->program, logged_in, sign_up);
}

/* The first person becomes the administrator that holds the first key, so that what was made with
 * that key is theirs. */
static void sign_up_made(void *context, const struct error *failure, const char *encoded)
{
    struct sign_up *sign_up = context;
    struct domain *domain = sign_up->auth->api->domain;
    struct owner *admin = sign_up->is_first ? owner_first_admin(domain) : NULL;
    struct caller system = sign_up->caller;
    struct owner_spec spec = {.name = sign_up->name,
                              .email = sign_up->email,
                              .password = encoded,
                              .is_admin = sign_up->is_first};

    system.scope = CALLER_SYSTEM; /* it is the setting that allows it, not the caller */
    if (failure) {
        sign_up_refuse(sign_up, failure);
    } else if (admin && !admin->password) {
        owner_update(domain, &system, admin, &spec, -1, owned, sign_up);
    } else {
        owner_create(domain, &system, &spec, owned, sign_up);
    }
}

static struct sign_up *sign_up_begin(struct http_request *request, const char *name,
                                     const char *email, bool is_first)
{
    const char *program = http_request_header(request, "user-agent");
    struct sign_up *sign_up = mem_alloc(sizeof(*sign_up));

    sign_up->auth = api_of(request)->auth;
    sign_up->caller = *request_caller(request);
    sign_up->is_first = is_first;
    sign_up->auth->is_first_under_way |= is_first;
    sign_up->name = mem_copy_text(name);
    sign_up->email = mem_copy_text(email);
    sign_up->program = program ? mem_copy_text(program) : NULL;
    sign_up->pending = pending_new(request);
    return sign_up;
}

static int sign_up_read_body(struct http_request *request, const struct json_place *body,
                             struct error *err)
{
    struct api *api = api_of(request);
    const char *name, *email, *password;
    bool is_first;

    if (json_field_text(body, "name", JSON_REQUIRED, OWNER_NAME_MAX, &name, err) < 0 ||
        json_field_text(body, "email", JSON_REQUIRED, OWNER_EMAIL_MAX, &email, err) < 0 ||
        json_field_text(body, "password", JSON_REQUIRED, PASSWORD_MAX, &password, err) < 0 ||
        password_check_form(password, err) < 0)
        return -1;
    if (!api->domain)
        return error_set(err, ERR_UNAVAILABLE, 0, "the daemon is starting or shutting down");
    if (check_permission(api->auth, request, &is_first, err) < 0 ||
        auth_take_try(request, NULL, NULL, NULL, err) < 0) {
        audit_add(api->domain, request_caller(request), "user.signup", "", err);
        return -1;
    }
    password_make(api->auth->passwords, password, sign_up_made,
                  sign_up_begin(request, name, email, is_first));
    return 0;
}

void auth_sign_up(struct http_request *request)
{
    json_body_take(request, sign_up_read_body);
}
