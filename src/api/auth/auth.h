/* /api/auth: accounts and logins as AgentPod's clients know them (the routes and shapes of Better
 * Auth): sign-up/email, sign-in/email, sign-out, get-session, signup-status.
 *
 * A login is a cookie (credential.h) or, as Authorization: Bearer, the token in the answer. Who may
 * make an account is a setting: nobody, or anybody, who becomes a plain user. As long as no
 * administrator has a password, whoever shows the administrator's key, or the one-time token that
 * the operator was shown, makes the first account and is the administrator. Nothing else is proof of
 * that, least of all an address.
 *
 * Tries are throttled by address and by account, wrong ones look all alike and take equally long.
 * Whoever is logged in already, or comes from where somebody is logged in as that user, has tries
 * of his own: strangers who go on guessing lock out strangers. */
#pragma once

#include "api/access/client_address.h"
#include "api/access/password.h"
#include "api/access/throttle.h"
#include "api/http/api.h"
#include "domain/identity/owner.h"

struct admission;
struct auth;

enum auth_sign_up { AUTH_SIGN_UP_CLOSED, AUTH_SIGN_UP_OPEN };

/* The one-time token: a bearer that makes the first account and opens nothing else. */
#define AUTH_FIRST_PREFIX CALLER_SECRET_PREFIX "first_"
#define AUTH_FIRST_SIZE   (sizeof(AUTH_FIRST_PREFIX) + 64)
#define AUTH_FIRST_HOURS  24
#define AUTH_FIRST_NS     ((uint64_t) AUTH_FIRST_HOURS * 3600 * 1000000000)

/* Tries of one address of strangers, and of all strangers for one account. */
#define AUTH_ADDRESS_BURST    10
#define AUTH_ADDRESS_A_MINUTE 10
#define AUTH_EMAIL_BURST      20
#define AUTH_EMAIL_A_MINUTE   20

/* Of one address, or one login, that is known for the account: of at most LOGINS_PER_OWNER each. */
#define AUTH_PAIR_BURST    10
#define AUTH_PAIR_A_MINUTE 10

struct auth_options {
    struct api *api;                   /* borrowed; its `auth` is set */
    const struct admission *admission; /* borrowed */
    enum auth_sign_up sign_up;
    struct password_cost cost;
};

/* "closed", "open"; "first" is what closed was called. Returns 0, or -1 with ERR_INVALID. */
int auth_sign_up_from_text(const char *text, enum auth_sign_up *ret_sign_up, struct error *err);

struct auth *auth_new(const struct auth_options *options);

/* After the server has drained and before the domain is closed. `done` (may be NULL) when all is
 * gone. Accepts NULL. */
void auth_close(struct auth *auth, void (*done)(void *context), void *context);

/* A new one-time token, in place of the last one; kept as a hash, in memory. It is good until it is
 * used, until AUTH_FIRST_HOURS are over, and until an administrator has a password. False: one has.
 * The domain must be open. */
bool auth_first_offer(struct auth *auth, char ret_token[static AUTH_FIRST_SIZE]);

/* For others who make users. */
struct passwords *auth_passwords(struct auth *auth);

/* Where a try was counted. */
#define AUTH_TRY_NAME (OWNER_EMAIL_MAX + CLIENT_ADDRESS_SIZE)
struct auth_try {
    struct throttle *throttles[2];
    char names[2][AUTH_TRY_NAME];
    size_t count;
};

/* One more try to guess a password: that of `owner`, or of nobody's account `name` (an email), or a
 * try that is about no account (both NULL). -1 with ERR_RATE_LIMITED, and the reply says when to
 * come again. `ret_try` may be NULL. */
int auth_take_try(struct http_request *request, const struct owner *owner, const char *name,
                  struct auth_try *ret_try, struct error *err);

/* It was right: it does not count. */
void auth_give_back_try(struct auth *auth, const struct auth_try *try);

/* The table, with `api` as its context (borrowed). */
struct http_mount auth_mount(struct api *api);
