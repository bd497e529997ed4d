#include "launcher/image/debian_build.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/loop/child_words.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define PROGRAM    "/usr/bin/mmdebstrap"
#define WORK_PLACE "/var/tmp"
#define WORK_NAME  "burrow-debian-XXXXXX"
#define WORDS_MAX  12
#define TEXT_SIZE  4096
#define CHUNK_SIZE 4096
#define SILENCE_MS 1000

#define SOURCES_MAX   ((size_t) 1 << 20)
#define STATUS_KILLED 126
#define STATUS_UNABLE 127

/* What mmdebstrap copies from this machine is nobody's business. */
#define FORGET_HOST "--customize-hook=rm -f \"$1/etc/hostname\" \"$1/etc/resolv.conf\""

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID)

/* Where this machine says what Debian is to it; the first that is there. */
static const char *const sources[] = {"/etc/apt/sources.list.d/debian.sources",
                                      "/etc/apt/sources.list"};

/* Folders that a build has no business in. */
static const char *const hidden[] = {"/home", "/root", "/srv", "/mnt", "/media"};

struct child {
    const struct debian_build *build;
    const char *program;
    const char *const *words;
    const char *const *environment;
    int go[2];   /* a byte comes when the ids are mapped; the parent's end is open while it lives */
    int says[2]; /* its stderr, read by the parent */
    int nothing; /* /dev/null */
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

/* The parent is never to be missed: from a PID namespace it cannot be seen that it is gone. */
static int follow_parent(const struct child *child)
{
    int r = sys_process_die_with_parent(SIGKILL, 0);

    if (r == 0)
        r = sys_file_poll(child->go[0], POLLIN, 0);
    return r > 0 ? -ESRCH : r;
}

static int take_descriptors(const struct child *child)
{
    if (dup2(child->nothing, STDIN_FILENO) < 0 || dup2(child->build->archive, STDOUT_FILENO) < 0 ||
        dup2(child->says[1], STDERR_FILENO) < 0)
        return -errno;
    return sys_close_range(STDERR_FILENO + 1, ~0u, false);
}

static int prepare(const struct child *child)
{
    char byte;
    int r;

    (void) close(child->go[1]);
    if (read(child->go[0], &byte, 1) != 1)
        return -ESRCH;
    r = become_root();
    if (r == 0)
        r = follow_parent(child);
    if (r == 0)
        r = hide_folders();
    /* Where the machine's own is not all to be seen, it stays. */
    (void) sys_mount_path_new("proc", "proc", "/proc",
                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, NULL);
    if (r == 0)
        r = sys_process_set_no_new_privileges();
    if (r == 0)
        r = sys_signal_reset();
    if (r == 0 && (setsid() < 0 || chdir("/") < 0)) /* no terminal is ours */
        r = -errno;
    return r < 0 ? r : take_descriptors(child);
}

/* PID 1 of the build: whatever its program leaves behind ends with it. */
static int reap_until(pid_t program)
{
    int status = 0;
    pid_t pid;

    do
        pid = waitpid(-1, &status, 0);
    while (pid != program && (pid >= 0 || errno == EINTR));
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_KILLED;
}

_Noreturn static void run_child(const struct child *child)
{
    static const char complaint[] = "burrow image: the child that builds could not be confined\n";
    const struct sys_clone how = {.exit_signal = SIGCHLD};
    pid_t pid = prepare(child) < 0 ? -ECANCELED : sys_clone(&how);

    if (pid > 0)
        _exit(reap_until(pid));
    if (pid == 0)
        (void) execve(child->program, (char *const *) (uintptr_t) child->words,
                      (char *const *) (uintptr_t) child->environment);
    (void) sys_file_write_full(STDERR_FILENO, complaint, strlen(complaint));
    _exit(STATUS_UNABLE);
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

/* The signals that end a build; blocked meanwhile, since we clean up behind it. */
struct interruption {
    int signals; /* owned */
    sigset_t before;
    bool came;
};

static void interruption_done(struct interruption *interruption)
{
    if (interruption->signals < 0)
        return;
    interruption->signals = fd_close(interruption->signals);
    (void) sys_signal_restore(&interruption->before);
}

AUTO_DEFINE(interruption, struct interruption, interruption_done);

static int interruption_open(struct interruption *interruption, struct error *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    (void) sigprocmask(SIG_BLOCK, NULL, &interruption->before); /* only asks */
    interruption->signals = sys_signal_open(signals, ARRAY_COUNT(signals));
    return interruption->signals < 0
               ? error_set(err, ERR_INTERNAL, interruption->signals, "wait for signals")
               : 0;
}

/* Show what it says until nobody is left to say anything, which a signal to us sees to. */
static void pass_on(const struct debian_build *build, int says, int pidfd,
                    struct interruption *interruption)
{
    struct child_words words = {.matched = 0};
    char bytes[CHUNK_SIZE], harmless[CHILD_WORDS_GROWTH * CHUNK_SIZE];

    for (;;) {
        struct pollfd waiting[] = {{.fd = says, .events = POLLIN},
                                   {.fd = interruption->signals, .events = POLLIN}};
        struct sys_signal signal;
        ssize_t got;
        int ready = poll(waiting, ARRAY_COUNT(waiting), SILENCE_MS);

        if (ready == 0)
            build->show(build->context, "", 0);
        if (ready <= 0)
            continue;
        if (waiting[1].revents && sys_signal_read(interruption->signals, &signal) == 0) {
            interruption->came = true;
            (void) sys_process_kill(pidfd, SIGKILL); /* PID 1: all of them */
        }
        if (!waiting[0].revents)
            continue;
        got = read(says, bytes, sizeof(bytes));
        if (got == 0)
            return;
        if (got > 0)
            build->show(build->context, harmless,
                        child_words_make_harmless(&words, bytes, (size_t) got, harmless));
    }
}

static int wait_for(int pidfd, const struct interruption *interruption, struct error *err)
{
    struct sys_exit ended = {0};
    int r = sys_process_wait(pidfd, -1, &ended);

    if (interruption->came)
        return error_set(err, ERR_INVALID, 0, "interrupted");
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "wait for mmdebstrap");
    if (ended.kind != SYS_EXIT_STATUS || ended.value != 0)
        return error_set(err, ERR_INVALID, 0, "mmdebstrap failed, for the reasons above");
    return 0;
}

/* Let it begin, and see it to its end. `pid` waits for its ids. */
static int attend(struct id_range_table *ids, const struct id *id, const struct id_range *range,
                  struct child *child, pid_t pid, int pidfd, struct interruption *interruption,
                  struct error *err)
{
    struct error ignored = ERROR_INIT;
    int r = map_ids(pid, range, err);

    if (r == 0)
        r = id_range_hand_over(ids, id, pid, err);
    if (r < 0 || sys_file_write_full(child->go[1], "", 1) < 0)
        (void) sys_process_kill(pidfd, SIGKILL);
    child->says[1] = fd_close(child->says[1]); /* or it would never end */
    pass_on(child->build, child->says[0], pidfd, interruption);
    return wait_for(pidfd, interruption, r < 0 ? &ignored : err) < 0 || r < 0 ? -1 : 0;
}

static void child_done(struct child *child)
{
    for (size_t i = 0; i < 2; i++) {
        child->go[i] = fd_close(child->go[i]);
        child->says[i] = fd_close(child->says[i]);
    }
    child->nothing = fd_close(child->nothing);
}

AUTO_DEFINE(child, struct child, child_done);

static int run(struct id_range_table *ids, const struct id *id, const struct id_range *range,
               struct child *child, struct error *err)
{
    AUTO(interruption) struct interruption interruption = {.signals = -EBADF};
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.flags = NAMESPACES, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    pid_t pid;

    child->nothing = sys_file_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
    if (child->nothing < 0 || pipe2(child->go, O_CLOEXEC) < 0 || pipe2(child->says, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make pipes");
    if (interruption_open(&interruption, err) < 0)
        return -1;
    pid = sys_clone(&how);
    if (pid == 0)
        run_child(child);
    if (pid < 0)
        return error_set(err, error_code_from_errno(pid), pid, "clone a child that builds");
    return attend(ids, id, range, child, pid, pidfd, &interruption, err);
}

/* A file of sources may be where the child cannot see it. */
static int copy_sources(const struct work *work, const char *from, char *ret_path, size_t size,
                        struct error *err)
{
    AUTO(free) char *bytes = NULL;
    const char *ending = strrchr(from, '.');
    size_t length = 0;
    int r = sys_file_read_all(AT_FDCWD, from, SOURCES_MAX, &bytes, &length);

    (void) snprintf(ret_path, size, "%s/burrow%s", work->path,
                    ending && strcmp(ending, ".sources") == 0 ? ending : ".list");
    if (r == 0)
        r = sys_file_replace(AT_FDCWD, ret_path, bytes, length, 0644);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "read '%s'", from) : 0;
}

/* The last word of mmdebstrap; NULL: it knows where Debian is. */
static int find_source(const struct debian_build *build, const struct work *work, char *buffer,
                       size_t size, const char **ret_source, struct error *err)
{
    struct stat status;

    *ret_source = NULL;
    for (size_t i = 0; !*build->source && !*ret_source && i < ARRAY_COUNT(sources); i++) {
        if (access(sources[i], R_OK) == 0)
            *ret_source = sources[i];
    }
    if (!*build->source)
        return 0;
    *ret_source = build->source;
    if (stat(build->source, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    *ret_source = buffer;
    return copy_sources(work, build->source, buffer, size, err);
}

static int build_in(struct id_range_table *ids, const struct debian_build *build,
                    const struct id *id, const struct id_range *range, struct error *err)
{
    AUTO(work) struct work work = {.path = ""};
    char temporary[sizeof(work.path) + 16], include[TEXT_SIZE], source[TEXT_SIZE];
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
    AUTO(child)
    struct child child = {
        .build = build,
        .program = build->program ? build->program : PROGRAM,
        .words = words,
        .environment = environment,
        .go = {-EBADF, -EBADF},
        .says = {-EBADF, -EBADF},
        .nothing = -EBADF,
    };
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
    if (find_source(build, &work, source, sizeof(source), &words[count], err) < 0)
        return -1;
    return run(ids, id, range, &child, err);
}

int debian_build(struct id_range_table *ids, const struct debian_build *build, struct error *err)
{
    struct id id = id_new();
    struct id_range range;
    int r;

    if (!build->program && access(PROGRAM, X_OK) < 0)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no mmdebstrap: apt install mmdebstrap");
    if (id_range_take(ids, &id, &range, err) < 0)
        return -1;
    r = build_in(ids, build, &id, &range, err);
    (void) id_range_release(ids, &id, NULL); /* the next launcher finds it otherwise */
    return r;
}
