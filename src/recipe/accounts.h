/* Who a name is, in the texts of passwd and group of an image, which are somebody's: for COPY
 * --chown. Pure. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* "user", "user:group", ":group", names or numbers. A user without a group has the one of its
 * account, a number without an account the group of the same number. The texts may be "". 0, or -1
 * with ERR_NOT_FOUND for a name that is not there, ERR_INVALID. */
int accounts_find(const char *owner, const char *passwd, const char *group, uid_t *ret_uid,
                  gid_t *ret_gid, struct error *err);
