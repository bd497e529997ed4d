/* Passwords: Argon2id (RFC 9106), on the thread pool, a few at a time.
 *
 * One hash takes 64 MiB and a tenth of a second on purpose. So at most PASSWORDS_AT_ONCE run and
 * PASSWORDS_WAITING_MAX wait; more are refused (ERR_UNAVAILABLE), and whoever lets strangers ask
 * throttles them before (throttle.h).
 *
 * Answers come exactly once, from the loop, never from inside a call. Passwords are copied, and
 * wiped when they are done with. Only the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

#define PASSWORD_MIN          8
#define PASSWORD_MAX          128
#define PASSWORDS_AT_ONCE     2
#define PASSWORDS_WAITING_MAX 32

struct password_cost {
    uint32_t memory_kib;
    uint32_t passes;
};

#define PASSWORD_COST_DEFAULT                                                                      \
    (struct password_cost)                                                                         \
    {                                                                                              \
        .memory_kib = 64 * 1024, .passes = 3                                                       \
    }

struct passwords;

struct passwords *passwords_new(struct loop *loop, struct password_cost cost);

/* What waits is answered with ERR_UNAVAILABLE; `done` (may be NULL) when all is gone. */
void passwords_close(struct passwords *passwords, void (*done)(void *context), void *context);

/* Returns 0, or -1 with ERR_INVALID: too short, too long. */
int password_check_form(const char *password, struct error *err);

/* The encoded hash, with its salt and cost: what is kept. */
typedef void password_made(void *context, const struct error *failure, const char *encoded);
void password_make(struct passwords *passwords, const char *password, password_made *done,
                   void *context);

/* Whether it is the one behind `encoded`. With NULL (nobody has that name) it is not, and takes as
 * long, so that time tells nobody who is there. */
typedef void password_verified(void *context, const struct error *failure, bool is_right);
void password_verify(struct passwords *passwords, const char *password, const char *encoded,
                     password_verified *done, void *context);
