/* Making, changing and removing users. Hashing a password and comparing the old one happen on the
 * way, off the loop:
 *
 *     read -> [old password right?] -> [hash the new one] -> keep -> answer */
#include <string.h>

#include "api/auth/auth.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "api/native/handlers.h"
#include "api/native/identity_internal.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/audit.h"

struct user_change {
    struct pool pool; /* all texts */
    struct api *api;
    struct pending *pending;
    struct caller caller;
    bool is_new;
    struct id owner; /* of an update */
    struct owner_spec spec;
    int is_disabled;
    const char *password, *old_password; /* in clear, wiped with the pool; may be NULL */
};

static void wipe(const char *text)
{
    if (text)
        explicit_bzero((char *) (uintptr_t) text, strlen(text));
}

static void change_free(struct user_change *change)
{
    wipe(change->password);
    wipe(change->old_password);
    pool_done(&change->pool);
    free(change);
}

static void user_change_refuse(struct user_change *change, const struct error *failure)
{
    struct http_request *request = pending_take(change->pending);

    if (request)
        http_reply_error(request, failure);
    change_free(change);
}

static void user_change_kept(void *context, const struct error *failure, struct owner *owner)
{
    struct user_change *change = context;
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request;

    native_answer_begin_value(&answer);
    if (failure) {
        user_change_refuse(change, failure);
        return;
    }
    request = pending_take(change->pending);
    if (request) {
        identity_write_user(&answer.json, owner);
        native_answer_send(&answer, request, change->is_new ? 201 : 200);
    }
    change_free(change);
}

static void user_change_keep(struct user_change *change)
{
    struct domain *domain = change->api->domain;
    struct owner *owner = change->is_new ? NULL : owner_find(domain, &change->owner);
    struct error gone = ERROR_INIT;

    if (change->is_new) {
        owner_create(domain, &change->caller, &change->spec, user_change_kept, change);
    } else if (owner) {
        owner_update(domain, &change->caller, owner, &change->spec, change->is_disabled,
                     user_change_kept, change);
    } else {
        (void) error_set(&gone, ERR_NOT_FOUND, 0, "no such user");
        user_change_refuse(change, &gone);
    }
}

static void user_change_made(void *context, const struct error *failure, const char *encoded)
{
    struct user_change *change = context;

    if (failure) {
        user_change_refuse(change, failure);
        return;
    }
    change->spec.password = encoded; /* borrowed for this call, in which it is copied */
    user_change_keep(change);
}

static void make_password(struct user_change *change)
{
    if (change->password)
        password_make(auth_passwords(change->api->auth), change->password, user_change_made,
                      change);
    else
        user_change_keep(change);
}

static void verified(void *context, const struct error *failure, bool is_right)
{
    struct user_change *change = context;
    struct error wrong = ERROR_INIT;

    if (failure || !is_right) {
        (void) error_set(&wrong, ERR_FORBIDDEN, 0, "currentPassword is not the right one");
        if (!failure)
            audit_add(change->api->domain, &change->caller, "user.password", change->owner.text,
                      &wrong);
        user_change_refuse(change, failure ? failure : &wrong);
        return;
    }
    make_password(change);
}

/* A key that is not an administrator's is no proof of knowing the password: else a key that was
 * lent for a day would become a login for ever. */
static int user_change_begin(struct user_change *change, struct http_request *request,
                             const struct owner *owner, struct error *err)
{
    if (!change->password || !owner || change->caller.scope >= CALLER_ADMIN) {
        make_password(change);
        return 0;
    }
    if (!owner->password)
        return error_set(err, ERR_FORBIDDEN, 0, "only administrators give a first password");
    if (!change->old_password)
        return error_set(err, ERR_INVALID, 0, "a new password needs currentPassword");
    if (auth_take_try(request, owner, NULL, NULL, err) < 0)
        return -1;
    password_verify(auth_passwords(change->api->auth), change->old_password, owner->password,
                    verified, change);
    return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static const char *keep_text(struct user_change *change, const char *text)
{
    return text ? pool_copy_text(&change->pool, text) : NULL;
}

static int read_role(struct user_change *change, const struct json_place *body, struct error *err)
{
    const char *role = NULL;

    if (json_field_text(body, "role", JSON_OPTIONAL, 16, &role, err) < 0)
        return -1;
    if (role && strcmp(role, "admin") != 0 && strcmp(role, "user") != 0)
        return error_set(err, ERR_INVALID, 0, "field 'role' must be admin or user");
    change->spec.is_admin = role ? strcmp(role, "admin") == 0 : change->is_new ? 0 : -1;
    return 0;
}

static int read_quotas(struct user_change *change, const struct json_place *body, struct error *err)
{
    struct json_place quotas;
    AUTO(free) char *text = NULL;

    if (json_field_object(body, "quotas", JSON_OPTIONAL, &quotas, err) < 0)
        return -1;
    if (!quotas.value)
        return 0;
    if (quota_from_api(&quotas, &text, err) < 0)
        return -1;
    change->spec.quotas = keep_text(change, text);
    return 0;
}

static int user_change_read_fields(struct user_change *change, const struct json_place *body,
                                   struct error *err)
{
    static const char *const known[] = {
        "name", "role", "quotas", "email", "password", "currentPassword", "disabled"};
    size_t count = change->is_new ? ARRAY_COUNT(known) - 2 : ARRAY_COUNT(known);
    const char *name = NULL, *email = NULL, *password = NULL, *old = NULL;
    enum json_need need = change->is_new ? JSON_REQUIRED : JSON_OPTIONAL;
    bool is_disabled = false;

    if (json_known_fields(body, known, count, err) < 0 ||
        json_field_text(body, "name", need, OWNER_NAME_MAX, &name, err) < 0 ||
        json_field_text(body, "email", JSON_OPTIONAL, OWNER_EMAIL_MAX, &email, err) < 0 ||
        json_field_text(body, "password", JSON_OPTIONAL, PASSWORD_MAX, &password, err) < 0 ||
        json_field_text(body, "currentPassword", JSON_OPTIONAL, PASSWORD_MAX, &old, err) < 0 ||
        json_field_boolean(body, "disabled", JSON_OPTIONAL, &is_disabled, err) < 0 ||
        read_role(change, body, err) < 0 || read_quotas(change, body, err) < 0)
        return -1;
    if (password && password_check_form(password, err) < 0)
        return -1;
    change->spec.name = keep_text(change, name);
    change->spec.email = keep_text(change, email);
    change->password = keep_text(change, password);
    change->old_password = keep_text(change, old);
    change->is_disabled = json_object_get(body->value, "disabled") ? is_disabled : -1;
    return 0;
}

static struct user_change *change_new(struct http_request *request, const struct owner *owner)
{
    struct user_change *change = mem_alloc(sizeof(*change));

    change->api = api_of(request);
    change->caller = *request_caller(request);
    change->is_new = !owner;
    change->is_disabled = -1;
    if (owner)
        change->owner = owner->id;
    return change;
}

static int user_change_read_change(struct http_request *request, const struct owner *owner,
                                   const struct json_place *body, struct error *err)
{
    struct user_change *change = change_new(request, owner);

    if (user_change_read_fields(change, body, err) < 0) {
        change_free(change);
        return -1;
    }
    change->pending = pending_new(request);
    if (user_change_begin(change, request, owner, err) == 0)
        return 0;
    (void) pending_take(change->pending);
    change_free(change);
    return -1;
}

static int read_create(struct http_request *request, const struct json_place *body,
                       struct error *err)
{
    return user_change_read_change(request, NULL, body, err);
}

static int read_update(struct http_request *request, const struct json_place *body,
                       struct error *err)
{
    const struct owner *owner =
        identity_user_of(request, http_request_parameter(request, "user"), err);

    return owner ? user_change_read_change(request, owner, body, err) : -1;
}

void native_create_user(struct http_request *request)
{
    json_body_take(request, read_create);
}

void native_update_user(struct http_request *request)
{
    json_body_take(request, read_update);
}

/* --- removing -------------------------------------------------------------------------------- */

static void user_change_removed(void *context, const struct error *failure, struct owner *owner)
{
    (void) owner;
    pending_end(context, failure);
}

void native_delete_user(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct owner *owner = identity_user_of(request, http_request_parameter(request, "user"), &err);

    if (!owner) {
        http_reply_error(request, &err);
        return;
    }
    owner_delete(api_of(request)->domain, request_caller(request), owner, user_change_removed,
                 pending_new(request));
}
