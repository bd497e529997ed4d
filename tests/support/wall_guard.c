#include "wall_guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/cgroup/cgroup.h"
#include "launcher/network/network.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_process.h"

#define PREFIX          "burrow-lab-"
#define PLACE           "/var/tmp" /* on a disk, where /tmp is often in memory */
#define GROUP_DEPTH_MAX 8
#define STORE_SIZE      "768M"
#define REMOVE_TRIES    250
#define LAB_NAMESPACES  (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

/* --- groups --------------------------------------------------------------------------------- */

/* A group and all beneath it; they are empty of processes. */
static void remove_group(const char *path, int depth)
{
    DIR *entries = depth < GROUP_DEPTH_MAX ? opendir(path) : NULL;
    struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        char beneath[PATH_MAX];

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            snprintf(beneath, sizeof(beneath), "%s/%s", path, entry->d_name) >= PATH_MAX)
            continue;
        remove_group(beneath, depth + 1);
    }
    if (entries)
        (void) closedir(entries);
    (void) rmdir(path);
}

/* The dead take a moment to leave. */
static void remove_whole_group(const char *path)
{
    for (int i = 0; i < REMOVE_TRIES && access(path, F_OK) == 0; i++) {
        static const struct timespec moment = {.tv_nsec = 20000000};

        if (i > 0)
            (void) nanosleep(&moment, NULL);
        remove_group(path, 0);
    }
}

/* Whether `name` is that of a lab that ended: of one that was killed hard. */
static bool is_left_over(const char *name)
{
    char digits[16];
    int64_t pid;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    (void) snprintf(digits, sizeof(digits), "%.*s", (int) strcspn(name + strlen(PREFIX), "-"),
                    name + strlen(PREFIX));
    return number_parse(digits, 1, INT_MAX, &pid) == 0 && kill((pid_t) pid, 0) < 0 &&
           errno == ESRCH;
}

static void sweep(const char *parent, void (*take_away)(const char *path))
{
    DIR *entries = opendir(parent);
    struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        char path[PATH_MAX];

        if (is_left_over(entry->d_name) &&
            snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) < PATH_MAX)
            take_away(path);
    }
    if (entries)
        (void) closedir(entries);
}

static void sweep_groups(const char *ours)
{
    char parent[PATH_MAX];
    const char *name;

    if (sys_file_split(ours, parent, sizeof(parent), &name) == 0)
        sweep(parent, remove_whole_group);
}

static void each_place(const struct cgroup_host *host, void (*use)(const char *path))
{
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
        const char *place = cgroup_host_place(host, i);

        if (place)
            use(place);
    }
}

static int make_group(const struct wall_guard *guard, struct cgroup_host **ret_host,
                      struct cgroup *ret_group, struct error *err)
{
    struct limits limits = {
        .memory_bytes = guard->memory, .pids = guard->pids, .cpu_millis = guard->cpu};
    struct id id = id_new();
    char name[64];
    struct cgroup_host_options options = {.name = name};

    (void) snprintf(name, sizeof(name), PREFIX "%d", (int) getpid());
    if (cgroup_host_open(&options, ret_host, err) < 0)
        return -1;
    each_place(*ret_host, sweep_groups);
    return cgroup_create(*ret_host, &id, &limits, ret_group, err);
}

/* --- the child ------------------------------------------------------------------------------ */

/* In cgroup v2 pages of a file in memory are counted for the sandbox whose disk it is, so that a
 * full disk would look like too much memory. There the pool is a file on the host's disk, as users
 * have it. */
static int mount_store(const char *folder)
{
    static const struct sys_mount_option size[] = {{"size", STORE_SIZE}, {NULL, NULL}};
    char store[96];

    (void) snprintf(store, sizeof(store), "%s/store", folder);
    return sys_mount_path_new("tmpfs", "tmpfs", store, 0, size);
}

static int enter(const struct cgroup_entry *entry, const struct wall_guard *guard)
{
    int r = cgroup_enter(entry->work, entry->work_count);

    if (r == 0)
        r = sys_mount_path_propagate("/", MS_PRIVATE, true);
    /* As systemd has it on every host; the groups are the lab's own. */
    if (r == 0)
        r = sys_mount_path_propagate("/", MS_SHARED, true);
    if (r == 0)
        r = sys_mount_path_new("proc", "proc", "/proc", 0, NULL);
    if (r == 0 && guard->is_in_memory)
        r = mount_store(guard->folder);
    if (r == 0)
        r = network_loopback_up();
    if (r == 0 && sethostname("lab-host", 8) < 0)
        r = -errno;
    return r;
}

static _Noreturn void be_lab(const struct wall_guard *guard, const struct cgroup_entry *entry,
                             int (*lab)(void *context), void *context)
{
    sigset_t none;
    int r = sys_process_die_with_parent(SIGKILL, 0);

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    if (r == 0)
        r = enter(entry, guard);
    if (r < 0) {
        (void) fprintf(stderr, "wall_lab: make the guard: %s\n", strerrordesc_np(-r));
        _exit(125);
    }
    r = lab(context);
    (void) fflush(NULL);
    _exit(r);
}

/* --- the parent ----------------------------------------------------------------------------- */

static void block_signals(sigset_t *ret_set)
{
    (void) sigemptyset(ret_set);
    (void) sigaddset(ret_set, SIGCHLD);
    (void) sigaddset(ret_set, SIGINT);
    (void) sigaddset(ret_set, SIGTERM);
    (void) sigprocmask(SIG_BLOCK, ret_set, NULL);
}

static int wait_for_lab(int pidfd, const sigset_t *signals, unsigned seconds)
{
    time_t end = time(NULL) + (time_t) seconds;
    struct sys_exit ended;
    int status = 0;

    while (sys_process_wait(pidfd, 0, &ended) == -ETIMEDOUT) {
        struct timespec left = {.tv_sec = end - time(NULL)};
        int number = left.tv_sec > 0 ? sigtimedwait(signals, NULL, &left) : -1;

        if (number == SIGCHLD || (number < 0 && left.tv_sec > 0))
            continue;
        status = number < 0 ? 124 : 128 + number;
        (void) sys_process_kill(pidfd, SIGKILL);
        (void) sys_process_wait(pidfd, -1, &ended);
        return status;
    }
    return ended.kind == SYS_EXIT_STATUS ? ended.value : 128 + ended.value;
}

static int run(struct wall_guard *guard, struct cgroup *group, int (*lab)(void *), void *context,
               const sigset_t *signals, struct error *err)
{
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.flags = LAB_NAMESPACES, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    pid_t pid;

    if (cgroup_entry_open(group, false, &entry, err) < 0)
        return -1;
    pid = sys_clone(&how);
    if (pid == 0)
        be_lab(guard, &entry, lab, context);
    if (pid < 0)
        return error_set(err, ERR_UNAVAILABLE, pid, "make the guard's namespaces");
    return wait_for_lab(pidfd, signals, guard->seconds);
}

static void remove_folder(const char *path)
{
    AUTO(close) int parent = sys_file_open(AT_FDCWD, PLACE, O_RDONLY | O_DIRECTORY, 0);

    if (parent >= 0)
        (void) sys_tree_delete(parent, path + strlen(PLACE "/"));
}

static int make_folder(struct wall_guard *guard, struct error *err)
{
    char path[96];

    sweep(PLACE, remove_folder);
    (void) snprintf(guard->folder, sizeof(guard->folder), PLACE "/" PREFIX "%d-XXXXXX",
                    (int) getpid());
    if (!mkdtemp(guard->folder) || chmod(guard->folder, 0755) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a folder");
    (void) snprintf(path, sizeof(path), "%s/store", guard->folder);
    return mkdir(path, 0755) < 0 ? error_set(err, ERR_INTERNAL, errno, "make a folder") : 0;
}

int wall_guard_run(struct wall_guard *guard, int (*lab)(void *context), void *context,
                   struct error *err)
{
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup group = {0};
    sigset_t signals;
    int status = -1;

    block_signals(&signals);
    if (make_folder(guard, err) == 0 && make_group(guard, &host, &group, err) == 0) {
        guard->is_in_memory = cgroup_host_version(host, CGROUP_MEMORY) != CGROUP_V2;
        status = run(guard, &group, lab, context, &signals, err);
    }
    if (host)
        each_place(host, remove_whole_group);
    if (guard->folder[0])
        remove_folder(guard->folder);
    return status;
}
