/* POST /api/auth/sign-in/email */
#include <string.h>

#include "api/auth/auth_internal.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/audit.h"

struct sign_in {
    struct auth *auth;
    struct pending *pending;
    struct caller caller; /* who asks: nobody yet */
    struct auth_try try;
    char *program;   /* owned, may be NULL */
    char *encoded;   /* owned, may be NULL: the password that was compared with */
    struct id owner; /* empty: nobody has that email */
};

static void sign_in_free(struct sign_in *sign_in)
{
    free(sign_in->program);
    free(sign_in->encoded);
    free(sign_in);
}

/* One answer for whatever is wrong. */
static void sign_in_refuse(struct sign_in *sign_in, const struct error *failure)
{
    struct domain *domain = sign_in->auth->api->domain;
    struct http_request *request = pending_take(sign_in->pending);
    struct error error = ERROR_INIT;

    if (!failure)
        (void) error_set(&error, ERR_UNAUTHENTICATED, 0, "Invalid email or password");
    audit_add(domain, &sign_in->caller, "login.create", sign_in->owner.text,
              failure ? failure : &error);
    if (request)
        http_reply_error(request, failure ? failure : &error);
    sign_in_free(sign_in);
}

static void sign_in_created(void *context, const struct error *failure, struct login *login,
                            const char *token)
{
    struct sign_in *sign_in = context;
    struct api *api = sign_in->auth->api;
    const struct owner *owner = failure ? NULL : owner_find(api->domain, &login->owner);
    struct http_request *request;

    if (!owner) {
        sign_in_refuse(sign_in, failure);
        return;
    }
    sign_in->caller.owner = login->owner;
    sign_in->caller.credential = login->id;
    audit_add(api->domain, &sign_in->caller, "login.create", login->owner.text, NULL);
    auth_give_back_try(sign_in->auth, &sign_in->try);
    request = pending_take(sign_in->pending);
    if (request)
        auth_reply_login(request, owner, login, token);
    sign_in_free(sign_in);
}

static void verified(void *context, const struct error *failure, bool is_right)
{
    struct sign_in *sign_in = context;
    struct domain *domain = sign_in->auth->api->domain;
    struct owner *owner = owner_find(domain, &sign_in->owner);

    /* The user may have been disabled or given another password meanwhile. */
    if (failure || !is_right || !owner || owner->is_disabled || !owner->password ||
        strcmp(owner->password, sign_in->encoded) != 0) {
        sign_in_refuse(sign_in, failure);
        return;
    }
    login_create(domain, &sign_in->caller, owner, sign_in->program, sign_in_created, sign_in);
}

static int sign_in_read_body(struct http_request *request, const struct json_place *body,
                             struct error *err)
{
    struct api *api = api_of(request);
    const char *program = http_request_header(request, "user-agent");
    const char *email, *password;
    struct auth_try try;
    const struct owner *owner;
    struct sign_in *sign_in;

    if (json_field_text(body, "email", JSON_REQUIRED, OWNER_EMAIL_MAX, &email, err) < 0 ||
        json_field_text(body, "password", JSON_REQUIRED, PASSWORD_MAX, &password, err) < 0)
        return -1;
    if (!api->domain)
        return error_set(err, ERR_UNAVAILABLE, 0, "the daemon is starting or shutting down");
    owner = owner_find_email(api->domain, email);
    /* Counted by the owner, not by how the email is written. */
    if (auth_take_try(request, owner, email, &try, err) < 0) {
        audit_add(api->domain, request_caller(request), "login.create", owner ? owner->id.text : "",
                  err);
        return -1;
    }
    sign_in = mem_alloc(sizeof(*sign_in));
    sign_in->auth = api->auth;
    sign_in->caller = *request_caller(request);
    sign_in->try = try;
    sign_in->program = program ? mem_copy_text(program) : NULL;
    sign_in->pending = pending_new(request);
    if (owner) {
        sign_in->owner = owner->id;
        sign_in->encoded = owner->password ? mem_copy_text(owner->password) : NULL;
    }
    password_verify(api->auth->passwords, password, sign_in->encoded, verified, sign_in);
    return 0;
}

void auth_sign_in(struct http_request *request)
{
    json_body_take(request, sign_in_read_body);
}
