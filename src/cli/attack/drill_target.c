#include "cli/attack/drill_target.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"

#define LOOK_NS     5000000
#define SHARED_SIZE 4096

static const struct {
    const char *attempt, *target;
} needs[] = {
    {"read_public_file", "TARGET_FOLDER"},
    {"read_private_file", "TARGET_FOLDER"},
    {"read_file_above_chroot", "TARGET_FOLDER"},
    {"read_file_by_process", "TARGET_FOLDER"},
    {"mount_on_host", "TARGET_PIPE"},
    {"write_group", "TARGET_GROUP"},
    {"signal_outside", "TARGET_PID"},
    {"trace_outside", "TARGET_PID"},
    {"connect_abstract", "TARGET_ABSTRACT"},
    {"connect_loopback", "TARGET_PORT"},
    {"use_shared_memory", "TARGET_SHARED"},
    {"see_host_name", "TARGET_HOSTNAME"},
};

const char *drill_target_of(const char *attempt)
{
    for (size_t i = 0; i < ARRAY_COUNT(needs); i++) {
        if (strcmp(needs[i].attempt, attempt) == 0)
            return needs[i].target;
    }
    return "";
}

static int target_file(const char *folder, const char *name, mode_t mode)
{
    char path[128];
    int fd;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    return write(fd, "target\n", 7) == 7 && close(fd) == 0 ? 0 : -EIO;
}

static int target_folder(struct drill_target *target)
{
    int r;

    if (mkdir(target->folder, 0755) < 0)
        return -errno;
    r = target_file(target->folder, "public", 0644);
    return r < 0 ? r : target_file(target->folder, "private", 0600);
}

/* A socket that somebody listens at; the kernel answers. */
static int target_listener(const void *address, socklen_t length, int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && (bind(fd, address, length) < 0 || listen(fd, 1) < 0))
        return fd_close(fd), -errno;
    return fd < 0 ? -errno : fd;
}

static int target_listeners(struct drill_target *target, uint16_t *ret_port)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(loopback);

    memcpy(local.sun_path + 1, target->abstract, strlen(target->abstract));
    target->listeners[0] = target_listener(
        &local, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(target->abstract)),
        AF_UNIX);
    target->listeners[1] = target_listener(&loopback, sizeof(loopback), AF_INET);
    if (target->listeners[0] < 0 || target->listeners[1] < 0 ||
        getsockname(target->listeners[1], (struct sockaddr *) &loopback, &length) < 0)
        return -EADDRNOTAVAIL;
    *ret_port = ntohs(loopback.sin_port);
    return 0;
}

/* Somebody of the host who looks where the host's programs are. */
static pid_t target_looker(const char *path)
{
    static const struct timespec moment = {.tv_nsec = LOOK_NS};
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

        (void) nanosleep(&moment, NULL);
        (void) fd_close(fd);
    }
}

static void target_write_texts(struct drill_target *target, uint16_t port, int key)
{
    static const char *const files[] = {"/sys/fs/cgroup/cgroup.procs",
                                        "/sys/fs/cgroup/memory/cgroup.procs"};
    char host[65] = "";
    size_t at = 0;

#define TARGET(...) (void) snprintf(target->texts[at++], sizeof(target->texts[0]), __VA_ARGS__)
    (void) gethostname(host, sizeof(host) - 1);
    TARGET("TARGET_FOLDER=%s", target->folder);
    TARGET("TARGET_PIPE=%s", target->pipe);
    TARGET("TARGET_ABSTRACT=%s", target->abstract);
    TARGET("TARGET_PORT=%u", port);
    TARGET("TARGET_SHARED=%d", key);
    TARGET("TARGET_HOSTNAME=%s", host);
    TARGET("TARGET_PID=%d", (int) target->looker);
    TARGET("TARGET_GROUP=%s", files[access(files[0], F_OK) != 0]);
    TARGET("TARGET_POOL=/workspace"); /* inside: the disk is on the pool */
#undef TARGET
}

/* A key of its own for each drill: the end of its mark are random digits. */
static int target_key(const char *mark)
{
    const char *digits = strrchr(mark, '-');

    return (int) (strtoul(digits ? digits + 1 : mark, NULL, 16) & INT32_MAX);
}

int drill_target_make(struct drill_target *ret_target, const char *mark, struct error *err)
{
    struct drill_target *target = ret_target;
    uint16_t port = 0;
    int r;

    *target = (struct drill_target){.listeners = {-EBADF, -EBADF}};
    (void) snprintf(target->folder, sizeof(target->folder), "/var/tmp/%.40s", mark);
    (void) snprintf(target->pipe, sizeof(target->pipe), "/usr/local/%.40s", mark);
    (void) snprintf(target->abstract, sizeof(target->abstract), "%.40s", mark);
    (void) snprintf(target->mark, sizeof(target->mark), "%.40s", mark);
    r = target_folder(target);
    if (r == 0)
        r = target_listeners(target, &port);
    if (r == 0) {
        (void) shmget(target_key(mark), SHARED_SIZE, IPC_CREAT | IPC_EXCL | 0666);
        target->looker = target_looker(target->pipe);
        target_write_texts(target, port, target_key(mark));
        return 0;
    }
    drill_target_remove(target);
    return error_set(err, ERR_INTERNAL, r, "make what sandboxes are to reach");
}

void drill_target_sweep(const char *mark)
{
    static const char *const files[] = {"/public", "/private", ""};
    int shared = shmget(target_key(mark), SHARED_SIZE, 0);
    char path[128];

    if (shared >= 0)
        (void) shmctl(shared, IPC_RMID, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        (void) snprintf(path, sizeof(path), "/var/tmp/%.40s%s", mark, files[i]);
        (void) remove(path);
    }
}

void drill_target_remove(struct drill_target *target)
{
    if (target->looker > 0) {
        (void) kill(target->looker, SIGKILL);
        (void) waitpid(target->looker, NULL, 0);
    }
    (void) fd_close(target->listeners[0]);
    (void) fd_close(target->listeners[1]);
    drill_target_sweep(target->mark);
}
