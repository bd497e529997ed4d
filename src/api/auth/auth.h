/* /api/auth: accounts and logins as AgentPod's clients know them (the routes and shapes of Better
 * Auth): sign-up/email, sign-in/email, sign-out, get-session, signup-status.
 *
 * A login is a cookie (credential.h) or, as Authorization: Bearer, the token in the answer. Who may
 * make an account is a setting: only the first person, who becomes the administrator; anybody; or
 * nobody. The first account is made from this machine or with the administrator's key, so that on a
 * fresh daemon no stranger is quicker.
 *
 * Tries are throttled by address and by email, wrong ones look all alike and take equally long. */
#pragma once

#include "api/access/password.h"
#include "api/http/api.h"

struct admission;
struct auth;

enum auth_sign_up { AUTH_SIGN_UP_FIRST, AUTH_SIGN_UP_OPEN, AUTH_SIGN_UP_CLOSED };

/* Tries of one address, and for one email. */
#define AUTH_ADDRESS_BURST    10
#define AUTH_ADDRESS_A_MINUTE 10
#define AUTH_EMAIL_BURST      20
#define AUTH_EMAIL_A_MINUTE   20

struct auth_options {
    struct api *api;                   /* borrowed; its `auth` is set */
    const struct admission *admission; /* borrowed */
    enum auth_sign_up sign_up;
    struct password_cost cost;
};

/* "first", "open", "closed". Returns 0, or -1 with ERR_INVALID. */
int auth_sign_up_from_text(const char *text, enum auth_sign_up *ret_sign_up, struct error *err);

struct auth *auth_new(const struct auth_options *options);

/* After the server has drained and before the domain is closed. `done` (may be NULL) when all is
 * gone. Accepts NULL. */
void auth_close(struct auth *auth, void (*done)(void *context), void *context);

/* For others who make users. */
struct passwords *auth_passwords(struct auth *auth);

/* One more try to guess a password: by the client's address, and for `name` (an email or a user's
 * id; NULL: none). -1 with ERR_RATE_LIMITED, and the reply says when to come again. */
int auth_take_try(struct http_request *request, const char *name, struct error *err);

/* The table, with `api` as its context (borrowed). */
struct http_mount auth_mount(struct api *api);
