/* burrow-keeper: one job on disks, started and confined by the launcher. Wiring only; see
 * keeper/job.h. Its paths come from the launcher and are trusted; what lies beneath is not. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/trace.h"
#include "keeper/job.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define EXIT_USAGE 2

static const char usage[] = "usage: burrow-keeper JOB FOLDER...\n"
                            "Works on folders that strangers filled and tells about it in lines of "
                            "JSON. Input is descriptor\n"
                            "0, what a job makes beside its report goes to descriptor 3. The "
                            "launcher starts it; alone it has\n"
                            "all rights of its user.\n";

static int open_folder(const char *path, int *ret_fd, struct error *err)
{
    int fd = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "open '%s'", path);
    *ret_fd = fd;
    return 0;
}

/* "/a:/b:/c": the topmost first. The first of them is `*ret_fd`. */
static int open_tree(const struct job_kind *kind, char *paths, struct tree *tree, int *ret_fd,
                     struct error *err)
{
    char *path;

    while ((path = strsep(&paths, kind->takes_stacks ? ":" : ""))) {
        if (tree->count == TREE_LAYERS_MAX)
            return error_set(err, ERR_INVALID, 0, "more than %d layers", TREE_LAYERS_MAX);
        if (open_folder(path, &tree->layers[tree->count], err) < 0)
            return -1;
        tree->count++;
    }
    *ret_fd = tree->layers[0];
    return 0;
}

static void close_tree(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        (void) fd_close(tree->layers[i]);
    tree->count = 0;
}

/* Of the folders that follow each other on the command line only a base can be missing. */
static int run(const struct job_kind *kind, char **paths, int count, struct output *output,
               struct error *err)
{
    bool has_base = kind->has_base && count == job_folders_max(kind);
    AUTO(close) int target = -EBADF;
    struct job job = {
        .disk = -EBADF, .base = -EBADF, .input = STDIN_FILENO, .data = -EBADF, .output = output};
    int status;

    if ((kind->has_disk && open_tree(kind, *paths++, &job.disk_tree, &job.disk, err) < 0) ||
        (has_base && open_tree(kind, *paths++, &job.base_tree, &job.base, err) < 0) ||
        (kind->has_target && open_folder(*paths, &target, err) < 0)) {
        status = job_fail(output, err);
    } else {
        job.target = target;
        if (kind->has_data)
            job.data = JOB_DATA_FD;
        status = job_run(kind, &job, err);
    }
    close_tree(&job.disk_tree);
    close_tree(&job.base_tree);
    return status;
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
    if (!kind || argc - 2 < job_folders_min(kind) || argc - 2 > job_folders_max(kind)) {
        (void) fputs(usage, stderr);
        job_print_usage();
        return EXIT_USAGE;
    }
    /* Of the launcher's, which reads it when we have ended; without it the ring is for ourselves. */
    if (trace_start_in("keeper", KEEPER_TRACE_ENTRIES, TRACE_FILE_FD) == 0)
        (void) close(TRACE_FILE_FD);
    (void) sys_process_set_dumpable(false);
    (void) sys_signal_ignore(SIGPIPE);
    if (output_end_with_reader() < 0)
        return EXIT_FAILURE;
    output_init(&output, STDOUT_FILENO);
    status = run(kind, argv + 2, argc - 2, &output, &err);
    if (status != EXIT_SUCCESS)
        (void) fprintf(stderr, "burrow-keeper: %s\n", err.message);
    return status;
}
