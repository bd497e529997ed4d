#include "api/auth/auth.h"

#include <string.h>

#include "api/access/access.h"
#include "api/auth/auth_internal.h"
#include "base/auto.h"
#include "base/memory.h"

int auth_sign_up_from_text(const char *text, enum auth_sign_up *ret_sign_up, struct error *err)
{
    static const struct {
        const char *text;
        enum auth_sign_up sign_up;
    } words[] = {
        {"closed", AUTH_SIGN_UP_CLOSED},
        {"first", AUTH_SIGN_UP_CLOSED},
        {"open", AUTH_SIGN_UP_OPEN},
    };

    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strcmp(words[i].text, text) == 0) {
            *ret_sign_up = words[i].sign_up;
            return 0;
        }
    }
    return error_set(err, ERR_INVALID, 0, "sign-up is closed or open");
}

struct auth *auth_new(const struct auth_options *options)
{
    struct auth *auth = mem_alloc(sizeof(*auth));

    auth->api = options->api;
    auth->admission = options->admission;
    auth->sign_up = options->sign_up;
    auth->passwords = passwords_new(options->api->loop, options->cost);
    throttle_init(&auth->addresses, AUTH_ADDRESS_BURST, AUTH_ADDRESS_A_MINUTE);
    throttle_init(&auth->names, AUTH_EMAIL_BURST, AUTH_EMAIL_A_MINUTE);
    throttle_init(&auth->pairs, AUTH_PAIR_BURST, AUTH_PAIR_A_MINUTE);
    options->api->auth = auth;
    return auth;
}

static void passwords_closed(void *context)
{
    struct auth *auth = context;
    void (*closed)(void *) = auth->closed;
    void *closed_context = auth->closed_context;

    throttle_done(&auth->addresses);
    throttle_done(&auth->names);
    throttle_done(&auth->pairs);
    free(auth);
    if (closed)
        closed(closed_context);
}

void auth_close(struct auth *auth, void (*done)(void *context), void *context)
{
    if (!auth) {
        if (done)
            done(context);
        return;
    }
    auth->api->auth = NULL;
    auth->closed = done;
    auth->closed_context = context;
    passwords_close(auth->passwords, passwords_closed, auth);
}

struct passwords *auth_passwords(struct auth *auth)
{
    return auth->passwords;
}

void auth_client(const struct auth *auth, const struct http_request *request,
                 struct client_address *ret_from)
{
    client_address_find(&auth->admission->proxies, request, ret_from);
}

#define USER_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},\"name\":{\"type\":"        \
    "\"string\"},\"email\":{\"type\":[\"string\",\"null\"]},\"role\":{\"type\":\"string\"},"       \
    "\"createdAt\":{\"type\":\"string\"},\"updatedAt\":{\"type\":\"string\"}}}"
#define LOGIN_SCHEMA                                                                               \
    "{\"type\":\"object\",\"properties\":{\"token\":{\"type\":\"string\"},"                        \
    "\"user\":" USER_SCHEMA "}}"
#define SIGN_IN_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"email\",\"password\"],\"properties\":{"                  \
    "\"email\":{\"type\":\"string\"},\"password\":{\"type\":\"string\"}}}"
#define SIGN_UP_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"name\",\"email\",\"password\"],\"properties\":{"         \
    "\"name\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"},"                              \
    "\"password\":{\"type\":\"string\",\"minLength\":8,\"maxLength\":128}}}"
#define SESSION_SCHEMA                                                                             \
    "{\"type\":[\"object\",\"null\"],\"properties\":{\"session\":{\"type\":\"object\"},"           \
    "\"user\":" USER_SCHEMA "}}"

/* All are public: they are how one gets a credential, or learns that one has none. */
static const struct http_route routes[] = {
    {"POST", "/api/auth/sign-up/email", auth_sign_up, "Make an account and log in",
     .access = ACCESS_PUBLIC, .request_schema = SIGN_UP_SCHEMA, .reply_schema = LOGIN_SCHEMA},
    {"POST", "/api/auth/sign-in/email", auth_sign_in, "Log in", .access = ACCESS_PUBLIC,
     .request_schema = SIGN_IN_SCHEMA, .reply_schema = LOGIN_SCHEMA},
    {"POST", "/api/auth/sign-out", auth_sign_out, "Log out", .access = ACCESS_PUBLIC},
    {"GET", "/api/auth/get-session", auth_get_session, "Who is logged in, or null",
     .access = ACCESS_PUBLIC, .reply_schema = SESSION_SCHEMA},
    {"GET", "/api/auth/session", auth_get_session, "The same", .access = ACCESS_PUBLIC,
     .reply_schema = SESSION_SCHEMA},
    {"GET", "/api/auth/signup-status", auth_get_sign_up, "Whether accounts can be made",
     .access = ACCESS_PUBLIC},
};

struct http_mount auth_mount(struct api *api)
{
    return (struct http_mount){
        .name = "auth",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = auth_encode_error,
    };
}
