/* From a sandbox to here. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "cli/copy/copy.h"
#include "cli/copy/tar_pipe.h"
#include "json/json_read.h"
#include "sys/file/sys_file.h"

#define FILE_MODE   0666 /* before the umask */
#define FOLDER_MODE 0777
#define PERMISSIONS 0777
#define OCTAL       8

struct copy_out_download {
    struct copy *copy;
    int fd; /* borrowed */
    const char *what;
    bool has_begun;
};

static int copy_out_take(void *context, const struct client_reply *reply, const char *bytes,
                         size_t length, struct error *err)
{
    struct copy_out_download *download = context;
    int r;

    if (!download->has_begun)
        copy_show(download->copy, download->copy->from.path, reply->length);
    download->has_begun = true;
    r = sys_file_write_full(download->fd, bytes, length);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "write %s", download->what);
    progress_add(&download->copy->progress, length);
    return 0;
}

static int copy_out_receive(struct copy *copy, int fd, const char *what, const char *path,
                            struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    struct copy_out_download download = {.copy = copy, .fd = fd, .what = what};
    const struct client_stream stream = {
        .method = "GET", .path = path, .take = copy_out_take, .context = &download};
    int r = client_stream(copy->client, &stream, &reply, err);

    progress_end(&copy->progress);
    return r;
}

/* The permissions of a file there, without what this side may not trust; FILE_MODE when they cannot
 * be learned. */
static mode_t mode_there(struct copy *copy, const char *path)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_pack("{s:[s,s,s,s,s]}", "argv", "stat", "-Lc", "%a", "--", path);
    const char *target = client_sandbox_path(copy->client, copy->sandbox, "/exec"), *answer;
    unsigned long mode;
    char *end;

    if (client_call(copy->client, "POST", target, body, &reply, NULL) < 0)
        return FILE_MODE;
    answer = json_string_value(json_object_get(reply.json, "stdout"));
    mode = answer ? strtoul(answer, &end, OCTAL) : 0;
    return answer && end != answer ? (mode_t) mode & PERMISSIONS : FILE_MODE;
}

/* Beside its place first: what is there is replaced as a whole or stays. */
static int receive_file(struct copy *copy, const char *path, const char *target, struct error *err)
{
    struct pool *pool = &copy->client->pool;
    char name[SYS_FILE_NAME_SIZE];
    AUTO(close) int fd = -EBADF;
    const char *temporary;
    int r = sys_file_temporary_name(name);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "find a name for %s", target);
    temporary =
        pool_format(pool, "%.*s%s", (int) (strlen(target) - strlen(copy_place_name(target, pool))),
                    target, name);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_there(copy, path));
    if (fd < 0)
        return error_set(err, error_code_from_errno(errno), errno, "%s", target);
    r = copy_out_receive(copy, fd, target, copy_file_path(copy, path, ""), err);
    if (r == 0 && rename(temporary, target) < 0)
        r = error_set(err, error_code_from_errno(errno), errno, "%s", target);
    if (r < 0)
        (void) unlink(temporary);
    return r;
}

/* What is no file (a pipe, a device) is written to as it is. */
static int receive_special(struct copy *copy, const char *path, const char *target,
                           struct error *err)
{
    AUTO(close) int fd = open(target, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return error_set(err, error_code_from_errno(errno), errno, "%s", target);
    return copy_out_receive(copy, fd, target, copy_file_path(copy, path, ""), err);
}

static int receive_folder(struct copy *copy, const char *path, const char *target,
                          struct error *err)
{
    AUTO(tar_pipe) struct tar_pipe tar = TAR_PIPE_INIT;
    int r = sys_file_make_directories(AT_FDCWD, target, FOLDER_MODE);

    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "%s", target);
    if (tar_pipe_unpack(&tar, target, err) < 0 ||
        copy_out_receive(copy, tar.fd, target, copy_archive_path(copy, path), err) < 0)
        return -1;
    return tar_pipe_finish(&tar, err);
}

int copy_out(struct copy *copy, struct error *err)
{
    struct pool *pool = &copy->client->pool;
    const char *path = copy_place_resolve(copy->folder, copy->from.path, pool);
    const char *target = copy->to.path;
    int is_folder = copy_is_folder_there(copy, path, err);
    struct stat status = {.st_mode = 0};
    bool is_there;

    if (is_folder < 0)
        return -1;
    if (copy->to.kind == COPY_STREAM)
        return copy_out_receive(
            copy, STDOUT_FILENO, "stdout",
            is_folder ? copy_archive_path(copy, path) : copy_file_path(copy, path, ""), err);
    is_there = stat(target, &status) == 0;
    if (is_there ? S_ISDIR(status.st_mode) : copy_place_is_folder(target)) {
        if (!copy_place_is_content(copy->from.path))
            target = copy_place_join(target, copy_place_name(path, pool), pool);
        is_there = stat(target, &status) == 0;
    }
    if (is_folder)
        return receive_folder(copy, path, target, err);
    if (is_there && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return receive_special(copy, path, target, err);
    return receive_file(copy, path, target, err);
}
