/* What on this host would keep sandboxes from the network, in sentences for `burrow doctor`.
 *
 * nftables runs every base chain of a hook: a packet that we accept is lost when anybody else's
 * chain drops it, and Docker, ufw, firewalld and hand-made firewalls commonly set the policy of
 * their forward chain to drop. We never touch other tables, so we say what to do. Looks at the
 * caller's network namespace, changes nothing, needs CAP_NET_ADMIN. */
#pragma once

#include "base/text.h"

/* Room for all sentences. */
#define ROUTER_DOCTOR_MAX 8192

/* Append one line per finding, each with what to do; nothing when all is well. `name` is that of
 * our link and table. */
void router_doctor(const char *name, const char *resolver_file, const char *resolver_fallback,
                   struct text *report);
