#include "wall_bare.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "json/json_write.h"
#include "launcher/wall/capability.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

#define ALL_NAMESPACES (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define ANSWER_MAX     ((size_t) 1 << 20)
#define RUN_MS         3600000 /* the guard has a deadline */
#define FAILED         125

struct bare {
    const struct wall_stage *stage;
    const struct wall_set *without;
    const char *const *argv;
    struct seccomp_filter filter;
    int program; /* O_PATH */
    int output;  /* the writing end */
    int go;      /* readable when the ids are mapped */
};

static bool is_on(const struct bare *bare, uint32_t wall)
{
    return !(bare->without->sandbox & wall);
}

/* --- the child ------------------------------------------------------------------------------ */

static int become_root(const struct bare *bare)
{
    char byte;

    if (sys_file_read_full(bare->go, &byte, 1) != 1)
        return -EPIPE;
    if (bare->without->namespaces & CLONE_NEWUSER)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

/* Empty but for /proc, which has walls of its own. */
static int change_root(void)
{
    int r = sys_mount_path_new("tmpfs", "tmpfs", "/tmp", MOUNT_ATTR_NODEV, NULL);

    if (r == 0 && (chdir("/tmp") < 0 || mkdir("proc", 0555) < 0 || mkdir("tmp", 01777) < 0))
        r = -errno;
    if (r == 0)
        r = sys_mount_path_bind("/proc", "proc", 0, true);
    if (r == 0)
        r = sys_mount_pivot_root(".", ".");
    if (r == 0)
        r = sys_mount_unmount(".", SYS_UNMOUNT_DETACH);
    return r == 0 && chdir("/") < 0 ? -errno : r;
}

static int change_mounts(const struct bare *bare)
{
    int r = sys_mount_path_propagate("/", MS_PRIVATE, true);

    if (r == 0 && is_on(bare, SANDBOX_WALL_BIT(READ_ONLY_PROC)))
        r = sys_mount_path_bind("/proc/sys", "/proc/sys", MOUNT_ATTR_RDONLY, false);
    if (r == 0 && !bare->without->root)
        r = change_root();
    return r;
}

/* As the launcher's child does it: the right that loading asks for goes last. */
static int give_up_rights(const struct bare *bare)
{
    bool fixed = is_on(bare, SANDBOX_WALL_BIT(NO_NEW_PRIVILEGES));
    uint64_t kept = capability_kept() | bare->without->capabilities;
    int r = 0;

    if (is_on(bare, SANDBOX_WALL_BIT(PROCESS_LIMITS)))
        r = process_limits_apply(&bare->stage->limits);
    if (r == 0)
        r = capability_confine(kept | (fixed ? 0 : capability_bit("sys_admin")));
    if (r == 0 && fixed)
        r = sys_process_set_no_new_privileges();
    if (r == 0)
        r = seccomp_filter_load(&bare->filter);
    return r < 0 || fixed ? r : capability_confine(kept);
}

static void fill_environment(const struct bare *bare, char texts[][600], char **ret_environment)
{
    for (size_t i = 0; i < WALL_TARGETS_MAX; i++) {
        char value[512];
        const char *name =
            wall_target_variable(&bare->stage->target, i, NULL, value, sizeof(value));

        (void) snprintf(texts[i], 600, "%s=%s", name, value);
        ret_environment[i] = texts[i];
    }
    ret_environment[WALL_TARGETS_MAX] = NULL;
}

static _Noreturn void be_bare(const struct bare *bare)
{
    static char texts[WALL_TARGETS_MAX][600];
    char *environment[WALL_TARGETS_MAX + 1];
    int r = become_root(bare);

    if (r == 0)
        r = change_mounts(bare);
    if (r == 0 && (dup2(bare->output, 1) < 0 || dup2(bare->output, 2) < 0))
        r = -errno;
    fill_environment(bare, texts, environment);
    if (r == 0)
        r = give_up_rights(bare);
    if (r == 0)
        r = (int) syscall(SYS_execveat, bare->program, "", bare->argv, environment, AT_EMPTY_PATH);
    (void) dprintf(bare->output, "wall_lab: %s\n", strerrordesc_np(r == -1 ? errno : -r));
    _exit(FAILED);
}

/* --- the parent ----------------------------------------------------------------------------- */

static int open_program(const struct wall_box_options *options, const char *path)
{
    for (size_t i = 0; i < options->bind_count; i++) {
        size_t length = strlen(options->binds[i].place);

        if (strncmp(path, options->binds[i].place, length) == 0 && path[length] == '/')
            return sys_file_open(options->binds[i].source, path + length + 1, O_PATH, 0);
    }
    return sys_file_open(AT_FDCWD, path, O_PATH, 0);
}

static int map_ids(pid_t pid)
{
    static const struct sys_id_range range = {.inside = 0, .outside = 0x6fff0000, .count = 65536};
    int r = sys_namespace_map_users(pid, &range, 1);

    return r < 0 ? r : sys_namespace_map_groups(pid, &range, 1);
}

static void collect(int output, struct text *text)
{
    char piece[4096];
    ssize_t got;

    while ((got = read(output, piece, sizeof(piece))) > 0)
        text_append_bytes(text, piece, (size_t) got);
}

static void answer(const struct text *output, const struct sys_exit *ended, struct text *ret_answer)
{
    struct json_writer json;

    json_writer_init_text(&json, ret_answer);
    json_begin_object(&json);
    json_add_text(&json, "stdout", text_string(output));
    json_add_text(&json, "stderr", "");
    json_add_integer(&json, "exitCode",
                     ended->kind == SYS_EXIT_STATUS ? ended->value : 128 + ended->value);
    json_end_object(&json);
    (void) json_writer_finish(&json);
}

static int run(struct bare *bare, int output, int go, struct text *ret_answer, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(ANSWER_MAX);
    AUTO(close) int pidfd = -EBADF;
    uint64_t namespaces = (ALL_NAMESPACES & ~bare->without->namespaces) | CLONE_NEWNS;
    struct sys_clone how = {.flags = namespaces, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended = {0};
    pid_t pid = sys_clone(&how);
    int r = pid < 0 ? (int) pid : 0;

    if (pid == 0)
        be_bare(bare);
    if (r == 0 && namespaces & CLONE_NEWUSER)
        r = map_ids(pid);
    if (r == 0)
        r = sys_file_write_full(go, "g", 1);
    if (r < 0)
        (void) sys_process_kill(pidfd, SIGKILL);
    bare->output = fd_close(bare->output);
    collect(output, &text);
    if (pid > 0)
        (void) sys_process_wait(pidfd, RUN_MS, &ended);
    if (r < 0 || (ended.kind == SYS_EXIT_STATUS && ended.value == FAILED))
        return error_set(err, ERR_INTERNAL, r, "run beside a sandbox: %s", text_string(&text));
    answer(&text, &ended, ret_answer);
    return 0;
}

int wall_bare_execute(struct wall_stage *stage, const struct wall_set *without,
                      const char *const *argv, struct text *ret_answer, struct error *err)
{
    struct bare bare = {.stage = stage, .without = without, .argv = argv, .output = -EBADF};
    AUTO(close) int output = -EBADF, go = -EBADF;
    int ends[2], starts[2], r;

    if (seccomp_filter_init(&bare.filter, SECCOMP_WALLS_ALL & ~without->seccomp) < 0)
        return error_set(err, ERR_INTERNAL, 0, "compile the filter");
    bare.program = open_program(stage->options, argv[0]);
    if (bare.program < 0)
        return error_set(err, ERR_NOT_FOUND, bare.program, "open %s", argv[0]);
    if (pipe2(ends, O_CLOEXEC) < 0 || pipe2(starts, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe");
    output = ends[0];
    bare.output = ends[1];
    bare.go = starts[0];
    go = starts[1];
    r = run(&bare, output, go, ret_answer, err);
    (void) fd_close(bare.output);
    (void) fd_close(bare.go);
    (void) fd_close(bare.program);
    return r;
}
