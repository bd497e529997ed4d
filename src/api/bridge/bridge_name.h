/* The names a client of the bridge may choose, each with its own rule. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BRIDGE_SANDBOX_MAX ((size_t) 128)
#define BRIDGE_SESSION_MAX ((size_t) 128)
#define BRIDGE_TUNNEL_MAX  ((size_t) 63)

/* [a-z2-7]{1,128}: ids as POST /v1/sandbox gives them, and any other text of that alphabet. */
bool bridge_name_is_sandbox(const char *name);

/* [a-zA-Z0-9._-]{1,128} without "..". */
bool bridge_name_is_session(const char *name);

/* A DNS label: [a-z0-9] and inner hyphens, 1 to 63. */
bool bridge_name_is_tunnel(const char *name);
