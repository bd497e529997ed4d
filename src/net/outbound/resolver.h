/* Names to addresses, off the loop: getaddrinfo on threads of its own.
 *
 * Those who ask share the threads fairly: of one asker at most RESOLVER_RUNNING_MAX lookups run at
 * a time, the others wait, so that one with slow name servers does not hold up the rest. Answers
 * come on the loop's thread, once, never from inside a call of this module. */
#pragma once

#include <stddef.h>

#include "net/loop.h"
#include "sys/network/sys_address.h"

#define RESOLVER_THREADS_MAX   8
#define RESOLVER_RUNNING_MAX   2    /* of one asker */
#define RESOLVER_WAITING_MAX   4096 /* of all; more find nothing */
#define RESOLVER_ADDRESSES_MAX 8    /* of one name; more are not looked at */

struct resolver;
struct resolver_query;

struct resolver *resolver_new(struct loop *loop);

/* No answer comes any more; a lookup that runs ends by itself. */
void resolver_close(struct resolver *resolver, void (*on_closed)(void *context), void *context);

/* `asker` is compared, never looked at. None found: `count` is 0. Port 0 in all of them. */
typedef void resolver_answer(void *context, const struct sys_address *addresses, size_t count);
struct resolver_query *resolver_ask(struct resolver *resolver, const void *asker, const char *name,
                                    resolver_answer *done, void *context);

/* The answer is not wanted any more, and will not come. */
void resolver_forget(struct resolver_query *query);
