#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/call.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_owner.h"
#include "agent/file/file_request.h"
#include "agent/file_open.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"

#define BODY_MAX (1024 + 6 * FILE_PATH_MAX)

static void begin(struct json_writer *json, struct text *body, const struct file_place *place)
{
    call_begin_success(json, body);
    json_add_text(json, "path", place->path);
}

/* --- delete --------------------------------------------------------------------------------- */

static void fail_directory(struct call *call, const char *path)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_context(&api, call->operation->name, path);
    api_error_fill(&api, API_IS_DIRECTORY,
                   "Cannot delete directory with deleteFile() at '%.256s'. Use "
                   "exec('rm -rf <path>') instead.",
                   path);
    call_fail(call, &api);
}

/* unlink(2) of a folder says EISDIR on Linux, but EPERM where POSIX had its way. */
static bool is_directory(const struct file_place *place)
{
    struct stat status;

    return fstatat(place->base, place->path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

static int delete_file(const struct file_place *place)
{
    char parent[FILE_PATH_MAX + 1];
    const char *name = place->path;
    AUTO(close) int folder = -EBADF;
    int r = sys_file_split(place->path, parent, sizeof(parent), &name);

    if (r < 0 && r != -EINVAL)
        return r;
    if (r == -EINVAL) /* "a/", "..": never a file, and the kernel has the words for it */
        return unlinkat(place->base, place->path, 0) < 0 ? -errno : 0;
    folder = file_open(place->base, parent, O_PATH | O_DIRECTORY, 0);
    if (folder < 0)
        return folder;
    return unlinkat(folder, name, 0) < 0 ? -errno : 0;
}

void file_delete(struct call *call)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;
    int r;

    if (file_request_place(call, "path", &place) < 0)
        return;
    r = delete_file(&place);
    if ((r == -EISDIR || r == -EPERM) && is_directory(&place)) {
        fail_directory(call, place.path);
    } else if (r < 0) {
        file_error_fail(call, place.path, r);
    } else {
        begin(&json, &body, &place);
        call_finish_success(call, &json, &body);
    }
}

/* --- mkdir ---------------------------------------------------------------------------------- */

/* What clients have always been told, in its words. */
static void fail_existing(struct call *call, const char *path)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_context(&api, call->operation->name, path);
    api_error_fill(&api, API_FILESYSTEM_ERROR, "mkdir operation failed with exit code 1");
    api.suggestion = "It exists already; with recursive: true that is no error";
    call_fail(call, &api);
}

void file_make_directory(struct call *call)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;
    struct file_owner owner;
    bool recursive;
    int r;

    if (file_request_place(call, "path", &place) < 0 ||
        file_request_flag(call, call->arguments, "recursive", &recursive) < 0)
        return;
    owner = file_owner_find(call->agent);
    if (recursive)
        r = file_owner_make_folders(&owner, place.base, place.path, 0777);
    else
        r = file_owner_make_folder(&owner, place.base, place.path, 0777);
    if (r == -EEXIST) {
        fail_existing(call, place.path);
    } else if (r < 0) {
        file_error_fail(call, place.path, r);
    } else {
        begin(&json, &body, &place);
        json_add_boolean(&json, "recursive", recursive);
        call_finish_success(call, &json, &body);
    }
}

/* --- exists --------------------------------------------------------------------------------- */

void file_exists(struct call *call)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    AUTO(close) int found = -EBADF;
    struct json_writer json;

    if (file_request_place(call, "path", &place) < 0)
        return;
    begin(&json, &body, &place);
    found = file_open(place.base, place.path, O_PATH, 0);
    json_add_boolean(&json, "exists", found >= 0);
    call_finish_success(call, &json, &body);
}
