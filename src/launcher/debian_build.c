#include "launcher/debian_build.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/sys_clone.h"
#include "sys/sys_close_range.h"
#include "sys/sys_file.h"
#include "sys/sys_mount_path.h"
#include "sys/sys_namespace.h"
#include "sys/sys_process.h"
#include "sys/sys_signal.h"
#include "sys/sys_tree.h"

#define PROGRAM    "/usr/bin/mmdebstrap"
#define WORK_PLACE "/var/tmp"
#define WORK_NAME  "burrow-debian-XXXXXX"
#define WORDS_MAX  12
#define TEXT_SIZE  4096

/* What mmdebstrap copies from this machine is nobody's business. */
#define FORGET_HOST "--customize-hook=rm -f \"$1/etc/hostname\" \"$1/etc/resolv.conf\""

/* Not PID: mmdebstrap makes one itself, for what it runs in the new root. */
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

/* Where this machine says what Debian is to it; the first that is there. */
static const char *const sources[] = {"/etc/apt/sources.list.d/debian.sources",
                                      "/etc/apt/sources.list"};

/* Folders that a build has no business in. */
static const char *const hidden[] = {"/home", "/root", "/srv", "/mnt", "/media"};

struct child {
    const struct debian_build *build;
    const char *const *words;
    const char *const *environment;
    int go; /* closed by the parent when the ids are mapped */
    int parents_go;
    pid_t parent;
};

/* --- the child ------------------------------------------------------------------------------ */

static int hide_folders(void)
{
    int r = sys_mount_path_propagate("/", MS_PRIVATE, true);

    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(hidden); i++) {
        if (access(hidden[i], F_OK) == 0)
            r = sys_mount_path_new("tmpfs", "tmpfs", hidden[i], MOUNT_ATTR_NOSUID, NULL);
    }
    return r;
}

/* Plain calls: glibc's own would signal threads that do not exist here (see sys_clone.h). */
static int become_root(void)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

static int prepare(const struct child *child)
{
    char byte;
    int r;

    (void) close(child->parents_go);
    if (read(child->go, &byte, 1) < 0)
        return -errno;
    r = become_root();
    if (r == 0)
        r = sys_process_die_with_parent(SIGKILL, child->parent);
    if (r == 0)
        r = hide_folders();
    if (r == 0)
        r = sys_process_set_no_new_privileges();
    if (r == 0)
        r = sys_signal_reset();
    if (r == 0 && (dup2(child->build->archive, STDOUT_FILENO) < 0 || chdir("/") < 0))
        r = -errno;
    return r < 0 ? r : sys_close_range(STDERR_FILENO + 1, ~0u, false);
}

_Noreturn static void run_child(const struct child *child)
{
    static const char complaint[] = "burrow image: the child that builds could not be confined\n";

    if (prepare(child) == 0)
        (void) execve(PROGRAM, (char *const *) (uintptr_t) child->words,
                      (char *const *) (uintptr_t) child->environment);
    (void) sys_file_write_full(STDERR_FILENO, complaint, strlen(complaint));
    _exit(127);
}

/* --- the parent ----------------------------------------------------------------------------- */

struct work {
    char path[sizeof(WORK_PLACE "/" WORK_NAME)]; /* "": none */
};

static void work_done(struct work *work)
{
    AUTO(close) int place = sys_file_open(AT_FDCWD, WORK_PLACE, O_RDONLY | O_DIRECTORY, 0);

    if (work->path[0] && place >= 0)
        (void) sys_tree_delete(place,
                               work->path + strlen(WORK_PLACE "/")); /* /var/tmp is cleaned */
}

AUTO_DEFINE(work, struct work, work_done);

/* A folder that the child may write to. */
static int work_make(struct work *work, const struct id_range *ids, struct error *err)
{
    (void) snprintf(work->path, sizeof(work->path), "%s", WORK_PLACE "/" WORK_NAME);
    if (!mkdtemp(work->path)) {
        work->path[0] = '\0';
        return error_set(err, ERR_INTERNAL, errno, "make a folder in " WORK_PLACE);
    }
    if (chown(work->path, ids->first, ids->first) < 0 || chmod(work->path, 0755) < 0)
        return error_set(err, ERR_INTERNAL, errno, "give a folder away");
    return 0;
}

static int map_ids(pid_t pid, const struct id_range *ids, struct error *err)
{
    const struct sys_id_range range = {.inside = 0, .outside = ids->first, .count = ids->count};
    int r = sys_namespace_map_users(pid, &range, 1);

    if (r == 0)
        r = sys_namespace_map_groups(pid, &range, 1);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "map the ids of the build") : 0;
}

static const char *find_source(const struct debian_build *build)
{
    if (*build->source)
        return build->source;
    for (size_t i = 0; i < ARRAY_COUNT(sources); i++) {
        if (access(sources[i], R_OK) == 0)
            return sources[i];
    }
    return NULL; /* mmdebstrap knows where Debian is */
}

static int wait_for(int pidfd, struct error *err)
{
    struct sys_exit ended = {0};
    int r;

    (void) sys_signal_ignore(SIGINT); /* we clean up behind it */
    r = sys_process_wait(pidfd, -1, &ended);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "wait for mmdebstrap");
    if (ended.kind != SYS_EXIT_STATUS || ended.value != 0)
        return error_set(err, ERR_INVALID, 0, "mmdebstrap failed, for the reasons above");
    return 0;
}

static int run(struct id_range_table *ids, const struct id *id, const struct id_range *range,
               struct child *child, struct error *err)
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.flags = NAMESPACES, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    int ends[2], r;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe");
    AUTO(close) int theirs = ends[0], go = ends[1];
    child->go = theirs;
    child->parents_go = go;
    pid = sys_clone(&how);
    if (pid == 0)
        run_child(child);
    if (pid < 0)
        return error_set(err, error_code_from_errno(pid), pid, "clone a child that builds");
    r = map_ids(pid, range, err);
    if (r == 0)
        r = id_range_hand_over(ids, id, pid, err);
    if (r < 0)
        (void) sys_process_kill(pidfd, SIGKILL);
    (void) fd_close(TAKE_FD(go));
    return wait_for(pidfd, r < 0 ? NULL : err) < 0 || r < 0 ? -1 : 0;
}

static int build_in(struct id_range_table *ids, const struct debian_build *build,
                    const struct id *id, const struct id_range *range, struct error *err)
{
    AUTO(work) struct work work = {.path = ""};
    char temporary[sizeof(work.path) + 16], include[TEXT_SIZE];
    const char *proxy = getenv("http_proxy");
    char proxy_text[TEXT_SIZE];
    const char *words[WORDS_MAX] = {PROGRAM, "--mode=unshare", "--variant=apt", "--format=tar",
                                    FORGET_HOST};
    const char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                 "HOME=/",
                                 "LC_ALL=C.UTF-8",
                                 temporary,
                                 proxy ? proxy_text : NULL,
                                 NULL};
    struct child child = {
        .build = build, .words = words, .environment = environment, .parent = getpid()};
    size_t count = 5;

    if (work_make(&work, range, err) < 0)
        return -1;
    (void) snprintf(temporary, sizeof(temporary), "TMPDIR=%s", work.path);
    (void) snprintf(proxy_text, sizeof(proxy_text), "http_proxy=%s", proxy ? proxy : "");
    if (snprintf(include, sizeof(include), "--include=%s", build->packages) >=
        (int) sizeof(include))
        return error_set(err, ERR_INVALID, 0, "too many packages");
    if (*build->packages)
        words[count++] = include;
    words[count++] = build->suite;
    words[count++] = "-";
    words[count] = find_source(build);
    return run(ids, id, range, &child, err);
}

int debian_build(struct id_range_table *ids, const struct debian_build *build, struct error *err)
{
    struct id id = id_new();
    struct id_range range;
    int r;

    if (access(PROGRAM, X_OK) < 0)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no mmdebstrap: apt install mmdebstrap");
    if (id_range_take(ids, &id, &range, err) < 0)
        return -1;
    r = build_in(ids, build, &id, &range, err);
    (void) id_range_release(ids, &id, NULL); /* the next launcher finds it otherwise */
    return r;
}
