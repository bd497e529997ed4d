#include "cli/copy/tar_pipe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sys/process/sys_process.h"
#include "sys/process/sys_spawn.h"

/* The shell looks for tar in PATH for us. */
#define SHELL  "/bin/sh"
#define SCRIPT "exec tar \"$@\""

static int tar_pipe_start(struct tar_pipe *pipe_end, const char *const *arguments, bool reads,
                          struct error *err)
{
    int ends[2];
    int r = pipe2(ends, O_CLOEXEC);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe");
    {
        const struct sys_spawn_descriptor descriptors[] = {
            {.from = ends[reads ? 1 : 0], .to = reads ? STDOUT_FILENO : STDIN_FILENO},
            {.from = STDERR_FILENO, .to = STDERR_FILENO},
        };
        const struct sys_spawn how = {
            .path = SHELL,
            .arguments = arguments,
            .environment = (const char *const *) environ,
            .descriptors = descriptors,
            .descriptor_count = ARRAY_COUNT(descriptors),
        };

        r = sys_spawn(&how, NULL);
    }
    (void) fd_close(ends[reads ? 1 : 0]);
    pipe_end->fd = ends[reads ? 0 : 1];
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "start tar");
    pipe_end->pidfd = r;
    return 0;
}

int tar_pipe_pack(struct tar_pipe *pipe_end, const char *folder, struct error *err)
{
    const char *const arguments[] = {
        "sh",        "-c",        SCRIPT, "tar",  "--create", "--file=-", "--format=posix",
        "--owner=0", "--group=0", "-C",   folder, "--",       ".",        NULL};

    return tar_pipe_start(pipe_end, arguments, true, err);
}

int tar_pipe_unpack(struct tar_pipe *pipe_end, const char *folder, struct error *err)
{
    const char *const arguments[] = {"sh",
                                     "-c",
                                     SCRIPT,
                                     "tar",
                                     "--extract",
                                     "--file=-",
                                     "--no-same-owner",
                                     "--no-same-permissions",
                                     "-C",
                                     folder,
                                     NULL};

    /* Counts for what we start, not for us; without root there is nothing to drop. */
    (void) prctl(PR_CAPBSET_DROP, CAP_MKNOD, 0, 0, 0);
    return tar_pipe_start(pipe_end, arguments, false, err);
}

int tar_pipe_finish(struct tar_pipe *pipe_end, struct error *err)
{
    struct sys_exit end = {.kind = SYS_EXIT_UNKNOWN};

    pipe_end->fd = fd_close(pipe_end->fd);
    (void) sys_process_wait(pipe_end->pidfd, -1, &end);
    if (end.kind == SYS_EXIT_STATUS && end.value == 127)
        return error_set(err, ERR_NOT_FOUND, 0,
                         "copying folders needs the program tar; install it");
    if (end.kind != SYS_EXIT_STATUS || end.value != 0)
        return error_set(err, ERR_INTERNAL, 0, "tar did not copy everything");
    return 0;
}

void tar_pipe_done(struct tar_pipe *pipe_end)
{
    pipe_end->fd = fd_close(pipe_end->fd);
    pipe_end->pidfd = fd_close(pipe_end->pidfd);
}
