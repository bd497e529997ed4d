#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/file/file_copy.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_request.h"
#include "agent/file_open.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define BODY_MAX (1024 + 18 * FILE_PATH_MAX)

/* Entries that are deleted in one turn of the loop. */
#define DELETE_ENTRIES 64

/* A name in a folder. */
struct spot {
    int parent; /* owned */
    char name[NAME_MAX + 1];
};

static void spot_done(struct spot *spot)
{
    spot->parent = fd_close(spot->parent);
}

AUTO_DEFINE(spot, struct spot, spot_done);

/* A move to another filesystem. */
struct move {
    struct loop *loop;
    struct call *call;     /* NULL: the client has left */
    char *path, *new_path; /* owned: as the client gave them */
    struct spot source, target;
    char temporary[SYS_FILE_NAME_SIZE];
    struct file_copy *copy; /* owned */
    bool is_deleting;       /* the source; or after an error what was copied */
    int error;
    struct loop_task task;
};

/* --- answering ------------------------------------------------------------------------------ */

static void answer(struct call *call, const char *path, const char *new_path)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "path", path);
    json_add_text(&json, "oldPath", path);
    json_add_text(&json, "newPath", new_path);
    call_finish_success(call, &json, &body);
}

/* --- by copying ----------------------------------------------------------------------------- */

static void move_free(struct move *move)
{
    loop_task_cancel(&move->task);
    file_copy_free(move->copy);
    spot_done(&move->source);
    spot_done(&move->target);
    free(move->path);
    free(move->new_path);
    free(move);
}

static void end_move(struct move *move)
{
    struct call *call = move->call;

    if (call && move->error < 0)
        file_error_fail(call, move->new_path, move->error);
    else if (call)
        answer(call, move->path, move->new_path);
    move_free(move);
}

/* What was copied takes its place, or has failed. */
static void end_copy(struct move *move, int error)
{
    file_copy_free(TAKE_PTR(move->copy));
    if (error == 0 &&
        renameat(move->target.parent, move->temporary, move->target.parent, move->target.name) < 0)
        error = -errno;
    move->error = error;
    move->is_deleting = true;
}

/* Returns whether there is more to do. */
static bool delete_some(struct move *move)
{
    const struct spot *spot = move->error < 0 ? &move->target : &move->source;
    const char *name = move->error < 0 ? move->temporary : move->source.name;
    int r = sys_tree_delete_small(spot->parent, name, DELETE_ENTRIES);

    if (r == -E2BIG)
        return true;
    if (r < 0 && move->error == 0)
        move->error = r; /* it is there now, but also still where it was */
    return false;
}

static void move_on(struct loop_task *task)
{
    struct move *move = CONTAINER_OF(task, struct move, task);
    bool more = true;

    if (move->is_deleting) {
        more = delete_some(move);
    } else {
        int r = file_copy_step(move->copy);

        if (r <= 0)
            end_copy(move, r);
    }
    if (more)
        loop_defer(move->loop, &move->task);
    else
        end_move(move);
}

static void client_left(struct call *call)
{
    struct move *move = call->data;

    move->call = NULL;
}

static void move_by_copying(struct call *call, struct spot *source, struct spot *target,
                            const char *path, const char *new_path)
{
    struct move *move = mem_alloc(sizeof(*move));

    *move = (struct move){
        .loop = &call->agent->loop,
        .call = call,
        .path = mem_copy_text(path),
        .new_path = mem_copy_text(new_path),
        .source = *source,
        .target = *target,
    };
    source->parent = target->parent = -EBADF; /* taken */
    loop_task_init(&move->task, move_on);
    call->data = move;
    call->on_gone = client_left;
    move->error = sys_file_temporary_name(move->temporary);
    if (move->error < 0) {
        end_move(move);
        return;
    }
    move->copy =
        file_copy_new(move->source.parent, move->source.name, move->target.parent, move->temporary);
    loop_defer(move->loop, &move->task);
}

/* --- where from and where to ---------------------------------------------------------------- */

/* "a/" is a as well; "/" and ".." have no name. */
static int find_spot(const struct file_place *place, struct spot *spot)
{
    char path[FILE_PATH_MAX + 1], parent[FILE_PATH_MAX + 1];
    size_t length = strlen(place->path);
    const char *name;
    int r;

    while (length > 1 && place->path[length - 1] == '/')
        length--;
    memcpy(path, place->path, length);
    path[length] = '\0';
    r = sys_file_split(path, parent, sizeof(parent), &name);
    if (r < 0)
        return r == -EINVAL ? -EBUSY : r;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    (void) snprintf(spot->name, sizeof(spot->name), "%s", name);
    spot->parent = file_open(place->base, parent, O_PATH | O_DIRECTORY, 0);
    return spot->parent < 0 ? spot->parent : 0;
}

/* A folder that is there: the source gets its own name in it. */
static int find_target(const struct file_place *place, const struct spot *source,
                       struct spot *target)
{
    int fd = file_open(place->base, place->path, O_PATH | O_DIRECTORY, 0);

    if (fd < 0)
        return find_spot(place, target);
    target->parent = fd;
    memcpy(target->name, source->name, sizeof(target->name));
    return 0;
}

/* A copy must not replace what a rename would not: a folder, or a file by a folder. */
static int check_target(const struct spot *source, const struct spot *target)
{
    struct stat from, to;

    if (fstatat(source->parent, source->name, &from, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (fstatat(target->parent, target->name, &to, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(to.st_mode) && !S_ISDIR(from.st_mode))
        return -EISDIR;
    return S_ISDIR(from.st_mode) && !S_ISDIR(to.st_mode) ? -ENOTDIR : 0;
}

/* One name in one folder, seen through two mounts: what takes its place would be deleted as the
 * source. rename(2) of a name to itself does nothing. */
static bool is_itself(const struct spot *source, const struct spot *target)
{
    struct stat from, to;

    return strcmp(source->name, target->name) == 0 && fstat(source->parent, &from) == 0 &&
           fstat(target->parent, &to) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino;
}

/* Two names of one file: rename(2) leaves both. */
static int rename_spot(const struct spot *source, const struct spot *target)
{
    struct stat from, to;

    if (fstatat(source->parent, source->name, &from, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(from.st_mode) && from.st_nlink > 1 && strcmp(source->name, target->name) != 0 &&
        fstatat(target->parent, target->name, &to, AT_SYMLINK_NOFOLLOW) == 0 &&
        from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return unlinkat(source->parent, source->name, 0) < 0 ? -errno : 0;
    return renameat(source->parent, source->name, target->parent, target->name) < 0 ? -errno : 0;
}

static bool exists(const struct spot *spot)
{
    struct stat status;

    return spot->parent >= 0 &&
           fstatat(spot->parent, spot->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void move_places(struct call *call, const struct file_place *from,
                        const struct file_place *to)
{
    AUTO(spot) struct spot source = {.parent = -EBADF}, target = {.parent = -EBADF};
    int r = find_spot(from, &source);

    if (r == 0)
        r = find_target(to, &source, &target);
    if (r == 0)
        r = rename_spot(&source, &target);
    if (r == -EXDEV && is_itself(&source, &target))
        r = 0;
    if (r == -EXDEV)
        r = check_target(&source, &target) < 0 ? check_target(&source, &target) : -EXDEV;
    if (r == -EXDEV)
        move_by_copying(call, &source, &target, from->path, to->path);
    else if (r < 0) /* name the path that it is about */
        file_error_fail(call, exists(&source) ? to->path : from->path, r);
    else
        answer(call, from->path, to->path);
}

static void move_fields(struct call *call, const char *from_field, const char *to_field)
{
    AUTO(file_place) struct file_place from = FILE_PLACE_INIT;
    AUTO(file_place) struct file_place to = FILE_PLACE_INIT;

    if (file_request_place(call, from_field, &from) == 0 &&
        file_request_place(call, to_field, &to) == 0)
        move_places(call, &from, &to);
}

void file_move(struct call *call)
{
    move_fields(call, "sourcePath", "destinationPath");
}

void file_rename(struct call *call)
{
    move_fields(call, "oldPath", "newPath");
}
