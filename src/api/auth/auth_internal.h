/* Between the files of this folder. */
#pragma once

#include "api/access/admission.h"
#include "api/access/throttle.h"
#include "api/auth/auth.h"
#include "base/encoding/sha256.h"
#include "domain/identity/login.h"
#include "domain/identity/owner.h"
#include "json/json_write.h"

struct auth {
    struct api *api;
    const struct admission *admission;
    enum auth_sign_up sign_up;
    struct passwords *passwords;      /* owned */
    struct throttle addresses, names; /* of strangers, each counted in both */
    struct throttle pairs;            /* of a user and where somebody is logged in as him */
    uint8_t first_hash[SHA256_SIZE];  /* of the one-time token */
    uint64_t first_until_ns;          /* 0: there is none */
    bool is_first_under_way;          /* somebody is becoming the administrator */
    void (*closed)(void *context);
    void *closed_context;
};

/* Whether this request may make the first account now. */
enum auth_first {
    AUTH_FIRST_NO,
    AUTH_FIRST_STALE, /* it shows a one-time token that is not good, or not any more */
    AUTH_FIRST_YES,
};
enum auth_first auth_first_check(struct auth *auth, struct http_request *request);

/* The one-time token is used up. */
void auth_first_end(struct auth *auth);

/* Handlers, by the file they are in. */
void auth_sign_in(struct http_request *request);     /* auth_sign_in.c */
void auth_sign_up(struct http_request *request);     /* auth_sign_up.c */
void auth_sign_out(struct http_request *request);    /* auth_session.c */
void auth_get_session(struct http_request *request); /* auth_session.c */
void auth_get_sign_up(struct http_request *request); /* auth_sign_up.c */

/* The login is there: tell the browser, and answer in the shape of Better Auth. */
void auth_reply_login(struct http_request *request, const struct owner *owner,
                      const struct login *login, const char *token);

/* Set-Cookie; `token` NULL: forget it. */
void auth_set_cookie(struct http_request *request, const char *token, bool is_secure);

/* The object that is called user. */
void auth_write_user(struct json_writer *json, const struct owner *owner);

/* Whether the client uses TLS, and from where. */
void auth_client(const struct auth *auth, const struct http_request *request,
                 struct client_address *ret_from);

/* Errors as {error, message, code}, and retryAfter for those that may come again. */
void auth_encode_error(const struct http_request *request, const struct error *error,
                       struct text *body, const char **ret_content_type);
