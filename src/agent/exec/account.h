/* Users of the sandbox (base/format/account.h), from its own files. */
#pragma once

#include "base/format/account.h"

#define ACCOUNT_FILE     "/etc/passwd"
#define GROUP_FILE       "/etc/group"
#define ACCOUNT_FILE_MAX (1 << 20)

/* account_find and account_find_owner of ACCOUNT_FILE and GROUP_FILE. Also -errno when one cannot
 * be read; for account_read_owner one that is missing is empty. May block. */
int account_read(uid_t uid, struct account *ret_account);
int account_read_owner(const char *owner, struct account *ret_account);
