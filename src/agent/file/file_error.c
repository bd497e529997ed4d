#include "agent/file/file_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_write.h"

/* A path may be long: the message shows its end, the context all of it. */
#define PATH_SHOWN 300

static const struct {
    int error;
    enum api_code code;
    const char *text;
    const char *suggestion;
} rows[] = {
    {ENOENT, API_FILE_NOT_FOUND, "File not found",
     "Check the path; listFiles() shows what is there"},
    {EACCES, API_PERMISSION_DENIED, "Permission denied", "Check the owner and mode of the path"},
    {EPERM, API_PERMISSION_DENIED, "Operation not permitted",
     "Check the owner and mode of the path"},
    {EISDIR, API_IS_DIRECTORY, "Is a directory", "Name a file, not a directory"},
    {ENOTDIR, API_NOT_DIRECTORY, "Not a directory", "A part of the path is a file"},
    {EEXIST, API_FILE_EXISTS, "File exists", "Choose another name, or delete it first"},
    {ENOTEMPTY, API_FILE_EXISTS, "Directory not empty", "Choose another name, or empty it first"},
    {ENOSPC, API_NO_SPACE, "No space left on device", "Delete files, or use a larger disk"},
    {EDQUOT, API_NO_SPACE, "Disk quota exceeded", "Delete files, or raise the quota"},
    {EFBIG, API_FILE_TOO_LARGE, "File too large", NULL},
    {ENAMETOOLONG, API_NAME_TOO_LONG, "Path or name too long",
     "A name has at most 255 bytes, a path 4096"},
    {ELOOP, API_TOO_MANY_LINKS, "Too many levels of symbolic links",
     "A link leads back to itself, or to what only a process itself may use (/proc)"},
    {EMLINK, API_TOO_MANY_LINKS, "Too many links", NULL},
    {EMFILE, API_TOO_MANY_FILES, "Too many open files", "Close files, then try again"},
    {ENFILE, API_TOO_MANY_FILES, "Too many open files in the system", NULL},
    {EROFS, API_READ_ONLY, "Read-only filesystem", "Write somewhere else, such as /workspace"},
    {EBUSY, API_RESOURCE_BUSY, "Resource busy", "Wait until nobody uses it"},
    {ETXTBSY, API_RESOURCE_BUSY, "The program is running", "Stop the program first"},
    {FILE_ERROR_NOT_REGULAR, API_FILESYSTEM_ERROR, "Not a regular file",
     "Pipes, sockets and devices cannot be used as files"},
    {FILE_ERROR_TOO_DEEP, API_NAME_TOO_LONG, "Too many folders inside each other", NULL},
};

static const char *shown(const char *path)
{
    size_t length = strlen(path);

    return length > PATH_SHOWN ? path + length - PATH_SHOWN : path;
}

void file_error_context(struct api_error *api, const char *operation, const char *path)
{
    struct json_writer json;

    text_clear(&api->context);
    json_document_begin(&json, &api->context);
    json_add_text(&json, "path", path);
    json_add_text(&json, "operation", operation);
    (void) json_document_end(&json); /* a path is far shorter than the limit */
}

enum api_code file_error_code(int error)
{
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].error == abs(error))
            return rows[i].code;
    }
    return API_FILESYSTEM_ERROR;
}

void file_error_fill(struct api_error *api, const char *operation, const char *path, int error)
{
    file_error_context(api, operation, path);
    api->operation = operation;
    error = abs(error);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].error != error)
            continue;
        api_error_fill(api, rows[i].code, "%s: %s", rows[i].text, shown(path));
        api->suggestion = rows[i].suggestion;
        return;
    }
    api_error_fill(api, API_FILESYSTEM_ERROR, "%s: %s", strerror(error), shown(path));
}

void file_error_fail(struct call *call, const char *path, int error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_fill(&api, call->operation->name, path, error);
    call_fail(call, &api);
}

void file_error_fail_size(struct call *call, const char *path, uint64_t maximum, uint64_t actual)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;
    struct json_writer json;

    json_document_begin(&json, &api.context);
    json_add_text(&json, "path", path);
    json_add_text(&json, "operation", call->operation->name);
    json_add_integer(&json, "maxSize", (int64_t) maximum);
    json_add_integer(&json, "actualSize", (int64_t) actual);
    (void) json_document_end(&json); /* a path is far shorter than the limit */
    api_error_fill(&api, API_FILE_TOO_LARGE,
                   "File too large: %s has %" PRIu64 " bytes, the limit is %" PRIu64, shown(path),
                   actual, maximum);
    api.suggestion = "Use a stream, which has no limit";
    call_fail(call, &api);
}
