#include "agent/file/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/exec/account.h"

struct file_owner file_owner_find(const struct agent *agent)
{
    struct file_owner owner = FILE_OWNER_AGENT;
    struct account account;

    if (agent->execs.user && account_read_owner(agent->execs.user, &account) == 0)
        owner = (struct file_owner){.uid = account.uid, .gid = account.gid};
    return owner;
}

bool file_owner_is_agent(const struct file_owner *owner)
{
    return owner->uid == SYS_FILE_SAME_OWNER;
}

int file_owner_make_folder(const struct file_owner *owner, int at, const char *path, mode_t mode)
{
    if (mkdirat(at, path, mode) < 0)
        return -errno;
    if (!file_owner_is_agent(owner) &&
        fchownat(at, path, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

int file_owner_make_folders(const struct file_owner *owner, int at, const char *path, mode_t mode)
{
    return sys_file_make_directories_for(at, path, mode, owner->uid, owner->gid);
}
