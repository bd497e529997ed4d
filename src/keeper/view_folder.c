#include "keeper/view_folder.h"

#include <fcntl.h>
#include <string.h>

#include "json/name_escape.h"
#include "sys/file/sys_open_beneath.h"

int view_folder_name(const struct json_place *object, const char *key, size_t maximum,
                     struct text *ret_name, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(object, key, JSON_REQUIRED, maximum * NAME_ESCAPE_FACTOR, &text, err) < 0)
        return -1;
    text_clear(ret_name);
    if (!name_unescape(ret_name, text, strlen(text)))
        return json_refuse_field(object, key, "an escaped name", err);
    if (ret_name->overflowed || ret_name->length > maximum || ret_name->length == 0 ||
        strlen(text_string(ret_name)) != ret_name->length)
        return json_refuse_field(object, key, "a name without NUL, not empty and not too long",
                                 err);
    return 0;
}

int view_folder_open(int view, const struct json_place *options, struct error *err)
{
    AUTO(text) struct text path = TEXT_INIT(VIEW_FOLDER_PATH_MAX);
    int fd;

    if (view_folder_name(options, "folder", VIEW_FOLDER_PATH_MAX, &path, err) < 0)
        return -1;
    if (*text_string(&path) != '/')
        return json_refuse_field(options, "folder", "an absolute path", err);
    fd = sys_open_in_root(view, text_string(&path), O_RDONLY | O_DIRECTORY, 0);
    if (fd == -ENOTDIR)
        return error_set(err, ERR_INVALID, fd, "open the folder");
    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "open the folder");
    return fd;
}
