/* From here into a sandbox. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/copy/copy.h"
#include "cli/copy/tar_pipe.h"
#include "json/json_read.h"

#define PERMISSIONS 0777
#define EXECUTABLE  0111

struct copy_into_upload {
    struct copy *copy;
    int fd;       /* borrowed */
    int64_t left; /* bytes that were announced; negative: nobody did */
};

static ssize_t copy_into_next(void *context, char *buffer, size_t size, struct error *err)
{
    struct copy_into_upload *upload = context;
    ssize_t got;

    if (upload->left >= 0 && (uint64_t) upload->left < size)
        size = (size_t) upload->left; /* one that grows meanwhile is cut */
    if (!size)
        return 0;
    do
        got = read(upload->fd, buffer, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set(err, ERR_INTERNAL, errno, "read %s", upload->copy->from.path);
    if (got == 0 && upload->left > 0)
        return error_set(err, ERR_CONFLICT, 0, "%s became shorter meanwhile",
                         upload->copy->from.path);
    if (upload->left >= 0)
        upload->left -= got;
    progress_add(&upload->copy->progress, (uint64_t) got);
    return got;
}

static int copy_into_send_bytes(struct copy *copy, int fd, int64_t length, const char *path,
                                const char *type, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    struct copy_into_upload upload = {.copy = copy, .fd = fd, .left = length};
    const struct client_stream stream = {
        .method = "PUT",
        .path = path,
        .type = type,
        .body_length = length < 0 ? HTTP_LENGTH_UNKNOWN : length,
        .next = copy_into_next,
        .context = &upload,
    };
    int r;

    copy_show(copy, copy->from.path, length);
    r = client_stream(copy->client, &stream, &reply, err);
    progress_end(&copy->progress);
    return r;
}

static int send_file(struct copy *copy, int fd, int64_t length, const char *target,
                     struct error *err)
{
    return copy_into_send_bytes(copy, fd, length, copy_file_path(copy, target, ""),
                                "application/octet-stream", err);
}

static int send_archive(struct copy *copy, int fd, const char *target, struct error *err)
{
    return copy_into_send_bytes(copy, fd, -1, copy_archive_path(copy, target), "application/x-tar",
                                err);
}

/* The API sets no modes: a program shall stay one. */
static int set_mode(struct copy *copy, const char *target, mode_t mode, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = NULL;
    char number[8];

    if (!(mode & EXECUTABLE))
        return 0;
    (void) snprintf(number, sizeof(number), "%o", (unsigned int) mode & PERMISSIONS);
    body = json_pack("{s:[s,s,s,s]}", "argv", "chmod", number, "--", target);
    return client_call(copy->client, "POST",
                       client_sandbox_path(copy->client, copy->sandbox, "/exec"), body, &reply,
                       err);
}

static int copy_folder(struct copy *copy, const char *target, struct error *err)
{
    AUTO(tar_pipe) struct tar_pipe tar = TAR_PIPE_INIT;

    if (tar_pipe_pack(&tar, copy->from.path, err) < 0 ||
        send_archive(copy, tar.fd, target, err) < 0)
        return -1;
    return tar_pipe_finish(&tar, err);
}

/* Where it goes: a folder that is there takes it in. */
static int find_target(struct copy *copy, const char **ret_target, struct error *err)
{
    struct pool *pool = &copy->client->pool;
    const char *target = copy_place_resolve(copy->folder, copy->to.path, pool);
    int is_folder = copy_place_is_folder(copy->to.path);

    if (!is_folder)
        is_folder = copy_is_folder_there(copy, target, err);
    if (is_folder < 0)
        return -1;
    if (is_folder && !copy_place_is_content(copy->from.path)) {
        AUTO(free) char *real = realpath(copy->from.path, NULL);

        target = copy_place_join(target, copy_place_name(real ? real : "", pool), pool);
    }
    *ret_target = target;
    return 0;
}

static int copy_stream(struct copy *copy, struct error *err)
{
    const char *target = copy_place_resolve(copy->folder, copy->to.path, &copy->client->pool);

    if (copy_place_is_folder(copy->to.path))
        return send_archive(copy, STDIN_FILENO, target, err);
    return send_file(copy, STDIN_FILENO, -1, target, err);
}

int copy_into(struct copy *copy, struct error *err)
{
    AUTO(close) int fd = -EBADF;
    struct stat status;
    const char *target;

    if (copy->from.kind == COPY_STREAM)
        return copy_stream(copy, err);
    fd = open(copy->from.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "%s", copy->from.path);
    if (find_target(copy, &target, err) < 0)
        return -1;
    if (S_ISDIR(status.st_mode))
        return copy_folder(copy, target, err);
    if (send_file(copy, fd, S_ISREG(status.st_mode) ? (int64_t) status.st_size : -1, target, err) <
        0)
        return -1;
    return set_mode(copy, target, status.st_mode, err);
}
