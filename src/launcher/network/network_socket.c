#include "launcher/network/network_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/auto.h"
#include "launcher/network/network_namespace.h"
#include "sys/file/sys_file.h"

#define BACKLOG 4096

int network_sockets(int inside, int home, int family, int *ret_fds, size_t count, struct error *err)
{
    size_t made = 0;
    int result;

    if (count > NETWORK_SOCKETS_MAX)
        return error_set(err, ERR_INVALID, 0, "%zu sockets, at most %d are made at once", count,
                         NETWORK_SOCKETS_MAX);
    result = network_namespace_enter(inside);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "enter the sandbox's network");
    while (made < count) {
        ret_fds[made] = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (ret_fds[made] < 0) {
            result = -errno;
            break;
        }
        made++;
    }
    network_namespace_return(home);
    if (result == 0)
        return 0;
    while (made > 0)
        ret_fds[made - 1] = fd_close(ret_fds[made - 1]), made--;
    return error_set(err, error_code_from_errno(result), result, "make a socket in the sandbox");
}

int network_agent_folder(const char *path, uid_t user, gid_t group, int *ret_folder,
                         struct error *err)
{
    AUTO(close) int folder = -EBADF;
    struct stat status;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set(err, error_code_from_errno(errno), errno, "make folder '%s'", path);
    folder = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (folder < 0)
        return error_set(err, error_code_from_errno(folder), folder, "open folder '%s'", path);
    if (fstat(folder, &status) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "look at folder '%s'", path);
    /* Made just now, or before we could give it away; a third owner is none of ours. */
    if (status.st_uid != user && status.st_uid != geteuid())
        return error_set(err, ERR_CONFLICT, 0, "folder '%s' belongs to user %u", path,
                         status.st_uid);
    if (fchown(folder, user, group) < 0 || fchmod(folder, 0700) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "give folder '%s' to user %u",
                         path, user);
    *ret_folder = TAKE_FD(folder);
    return 0;
}

void network_agent_name(const struct id *id, char ret_name[static NETWORK_AGENT_NAME_SIZE])
{
    (void) snprintf(ret_name, NETWORK_AGENT_NAME_SIZE, "%s.sock", id->text);
}

/* Whose rights on files we had. */
struct identity {
    uid_t user;
    gid_t group;
    mode_t mask;
};

/* Take on the user's rights on files; root's power over all files goes with its file system uid.
 * These calls report no failure: asking with an impossible id tells. */
static int become(uid_t user, gid_t group, struct identity *ret_old)
{
    struct identity old = {.group = (gid_t) setfsgid(group)};

    old.user = (uid_t) setfsuid(user);
    if ((gid_t) setfsgid((gid_t) -1) != group || (uid_t) setfsuid((uid_t) -1) != user) {
        (void) setfsuid(old.user);
        (void) setfsgid(old.group);
        return -EPERM;
    }
    old.mask = umask(0177);
    *ret_old = old;
    return 0;
}

static void become_again(const struct identity *old)
{
    (void) umask(old->mask);
    (void) setfsuid(old->user);
    (void) setfsgid(old->group);
}

static int remove_file(int folder, const char *name)
{
    return unlinkat(folder, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Through /proc, because bind takes no folder and only short paths. */
static int bind_in_folder(int fd, int folder, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length =
        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", folder, name);

    if (length < 0 || (size_t) length >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    return bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
}

int network_agent_listen(int folder, uid_t user, gid_t group, const struct id *id, int *ret_fd,
                         struct error *err)
{
    AUTO(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char name[NETWORK_AGENT_NAME_SIZE];
    struct identity old;
    int result;

    if (fd < 0)
        return error_set(err, error_code_from_errno(errno), errno, "make the agent's socket");
    network_agent_name(id, name);
    result = become(user, group, &old);
    if (result == 0) {
        result = remove_file(folder, name);
        if (result == 0)
            result = bind_in_folder(fd, folder, name);
        become_again(&old);
    }
    if (result == 0 && listen(fd, BACKLOG) < 0)
        result = -errno;
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "listen at %s", name);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int network_agent_remove(int folder, uid_t user, gid_t group, const struct id *id,
                         struct error *err)
{
    char name[NETWORK_AGENT_NAME_SIZE];
    struct identity old;
    int result;

    network_agent_name(id, name);
    result = become(user, group, &old);
    if (result == 0) {
        result = remove_file(folder, name);
        become_again(&old);
    }
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "remove %s", name);
    return 0;
}
