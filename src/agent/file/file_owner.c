#include "agent/file/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/exec/account.h"
#include "agent/file_open.h"

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

/* What is there of the path leads through no magic link. */
static int check_way(int at, const char *path)
{
    AUTO(close) int fd = file_open(at, path, O_PATH | O_DIRECTORY, 0);

    return fd == -ELOOP ? fd : 0;
}

int file_owner_make_folder(const struct file_owner *owner, int at, const char *path, mode_t mode)
{
    int r = check_way(at, path);

    if (r < 0)
        return r;
    if (mkdirat(at, path, mode) < 0)
        return -errno;
    if (!file_owner_is_agent(owner) &&
        fchownat(at, path, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

int file_owner_make_folders(const struct file_owner *owner, int at, const char *path, mode_t mode)
{
    int r = check_way(at, path);

    return r < 0 ? r : sys_file_make_directories_for(at, path, mode, owner->uid, owner->gid);
}
