/* burrow-keeper: one job on one disk, started and confined by the launcher. Wiring only; see
 * keeper/job.h. Its paths come from the launcher and are trusted; what lies beneath is not. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "keeper/job.h"
#include "sys/sys_file.h"
#include "sys/sys_process.h"
#include "sys/sys_signal.h"

#define EXIT_USAGE 2

static const char usage[] =
    "usage: burrow-keeper delete|measure|list FOLDER\n"
    "       burrow-keeper copy FOLDER TARGET\n"
    "\n"
    "Works on a folder that strangers filled and tells about it in lines\n"
    "of JSON. The launcher starts it; alone it has all rights of its user.\n";

static int open_folder(const char *path, struct error *err)
{
    int fd = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "open '%s'", path);
    return fd;
}

static int run(const struct job_kind *kind, char **paths, struct output *output, struct error *err)
{
    AUTO(close) int folder = open_folder(paths[0], err);
    AUTO(close) int target = -EBADF;

    if (folder < 0)
        return job_fail(output, err);
    if (kind->has_target)
        target = open_folder(paths[1], err);
    if (kind->has_target && target < 0)
        return job_fail(output, err);
    return job_run(kind, folder, target, output, err);
}

int main(int argc, char **argv)
{
    const struct job_kind *kind = argc > 1 ? job_find(argv[1]) : NULL;
    struct error err = ERROR_INIT;
    static struct output output;
    int status;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void) puts("burrow-keeper " BURROW_VERSION);
        return 0;
    }
    if (!kind || argc != 3 + kind->has_target) {
        (void) fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void) sys_process_set_dumpable(false);
    (void) sys_signal_ignore(SIGPIPE);
    if (output_end_with_reader() < 0)
        return EXIT_FAILURE;
    output_init(&output, STDOUT_FILENO);
    status = run(kind, argv + 2, &output, &err);
    if (status != EXIT_SUCCESS)
        (void) fprintf(stderr, "burrow-keeper: %s\n", err.message);
    return status;
}
