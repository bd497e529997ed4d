#include "wall_target.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount_path.h"

#define PLACE       "/srv"
#define ABSTRACT    "burrow-lab"
#define PORT        7001
#define SHARED_KEY  0x1ab
#define HOSTNAME    "lab-host"
#define LEAK_LOWEST 200
#define TARGET_PID  30001
#define PIPE        "/usr/local/burrow-lab-pipe"
#define LOOK_NS     5000000

static int make_file(int folder, const char *name, mode_t mode)
{
    return sys_file_replace(folder, name, "burrow-lab\n", 11, mode);
}

static int make_files(struct wall_target *target)
{
    AUTO(close) int folder = -EBADF;
    int r;

    if (mkdir(target->folder, 0755) < 0)
        return -errno;
    folder = sys_file_open(AT_FDCWD, target->folder, O_RDONLY | O_DIRECTORY, 0);
    r = folder < 0 ? folder : make_file(folder, "public", 0644);
    if (r == 0)
        r = make_file(folder, "private", 0600);
    if (r < 0)
        return r;
    target->leak = fcntl(folder, F_DUPFD, LEAK_LOWEST);
    return target->leak < 0 ? -errno : 0;
}

/* Both listeners live until the lab ends; nobody accepts, the kernel answers. */
static int listen_at(int family, const void *address, socklen_t length)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    return bind(fd, address, length) < 0 || listen(fd, 16) < 0 ? -errno : 0;
}

static int make_listeners(void)
{
    struct sockaddr_un unix_address = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int r;

    memcpy(unix_address.sun_path + 1, ABSTRACT, strlen(ABSTRACT));
    r = listen_at(AF_UNIX, &unix_address,
                  (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ABSTRACT)));
    return r < 0 ? r : listen_at(AF_INET, &address, sizeof(address));
}

/* With a pid that nothing in a young pid namespace has. */
static int make_process(void)
{
    pid_t wanted = TARGET_PID;
    struct clone_args how = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t) (uintptr_t) &wanted, .set_tid_size = 1};
    long pid = syscall(SYS_clone3, &how, sizeof(how));

    if (pid == 0) {
        for (;;)
            (void) pause();
    }
    return pid < 0 ? -errno : (int) pid;
}

/* Somebody on the host who looks where the host's programs are. */
static _Noreturn void look_for_pipe(void)
{
    static const struct timespec moment = {.tv_nsec = LOOK_NS};

    for (;;) {
        int fd = open(PIPE, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

        (void) nanosleep(&moment, NULL);
        (void) fd_close(fd);
    }
}

static int make_looker(void)
{
    pid_t pid = fork();

    if (pid == 0)
        look_for_pipe();
    return pid < 0 ? -errno : 0;
}

int wall_target_make(const char *folder, struct wall_target *ret_target, struct error *err)
{
    int r;

    (void) snprintf(ret_target->folder, sizeof(ret_target->folder), "%s/target", folder);
    r = make_files(ret_target);
    /* Shown at a place that sandboxes have as well, and that none of their stages covers. */
    if (r == 0)
        r = sys_mount_path_bind(ret_target->folder, PLACE, 0, false);
    (void) snprintf(ret_target->folder, sizeof(ret_target->folder), PLACE);
    if (r == 0)
        r = make_listeners();
    if (r == 0 && shmget(SHARED_KEY, 4096, IPC_CREAT | 0666) < 0)
        r = -errno;
    if (r == 0)
        r = make_looker();
    if (r == 0)
        r = ret_target->pid = make_process();
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "make the targets") : 0;
}

const char *wall_target_variable(const struct wall_target *target, size_t index,
                                 const struct id *id, char *ret_value, size_t size)
{
    char pid[16];
    const struct {
        const char *name, *value;
    } variables[WALL_TARGETS_MAX] = {
        {"TARGET_FOLDER", target->folder}, {"TARGET_PID", pid},
        {"TARGET_ABSTRACT", ABSTRACT},     {"TARGET_PORT", "7001"},
        {"TARGET_SHARED", "427"},          {"TARGET_HOSTNAME", HOSTNAME},
        {"TARGET_GROUP", target->group},   {"TARGET_POOL", target->pool},
        {"TARGET_ID", id ? id->text : ""}, {"TARGET_PIPE", PIPE},
    };

    (void) snprintf(pid, sizeof(pid), "%d", target->pid);
    (void) snprintf(ret_value, size, "%s", variables[index].value);
    return variables[index].name;
}

_Static_assert(PORT == 7001 && SHARED_KEY == 427, "as the variables say");
