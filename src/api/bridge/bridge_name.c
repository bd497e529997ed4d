#include <string.h>

#include "api/bridge/bridge_internal.h"

#define DIGITS      "0123456789"
#define LOWER       "abcdefghijklmnopqrstuvwxyz"
#define UPPER       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define BASE32      LOWER "234567"
#define LABEL       LOWER DIGITS "-"
#define SESSION_SET LOWER UPPER DIGITS "._-"

static bool is_of(const char *name, const char *set, size_t maximum)
{
    size_t length = strspn(name, set);

    return length && length <= maximum && !name[length];
}

bool bridge_name_is_sandbox(const char *name)
{
    return is_of(name, BASE32, BRIDGE_SANDBOX_MAX);
}

bool bridge_name_is_session(const char *name)
{
    return is_of(name, SESSION_SET, BRIDGE_SESSION_MAX) && !strstr(name, "..");
}

bool bridge_name_is_tunnel(const char *name)
{
    return is_of(name, LABEL, BRIDGE_TUNNEL_MAX) && name[0] != '-' && name[strlen(name) - 1] != '-';
}
