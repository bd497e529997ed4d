#include "agent/exec/account.h"

#include <errno.h>
#include <fcntl.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

int account_read(uid_t uid, struct account *ret_account)
{
    AUTO(free) char *passwd = NULL;
    size_t length;
    int r = sys_file_read_all(AT_FDCWD, ACCOUNT_FILE, ACCOUNT_FILE_MAX, &passwd, &length);

    return r < 0 ? r : account_find(passwd, uid, ret_account);
}

/* What is missing is empty: a number needs no account. */
static int account_read_text(const char *path, char **ret_text)
{
    size_t length;
    int r = sys_file_read_all(AT_FDCWD, path, ACCOUNT_FILE_MAX, ret_text, &length);

    if (r == -ENOENT)
        *ret_text = mem_copy_text("");
    return r == -ENOENT ? 0 : r;
}

int account_read_owner(const char *owner, struct account *ret_account)
{
    AUTO(free) char *passwd = NULL, *group = NULL;
    int r = account_read_text(ACCOUNT_FILE, &passwd);

    if (r == 0)
        r = account_read_text(GROUP_FILE, &group);
    return r < 0 ? r : account_find_owner(passwd, group, owner, ret_account);
}
