#include "launcher/image/folder_registry.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/image/folder_rules.h"
#include "sys/file/sys_file.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

int folder_registry_init(struct folder_registry *registry, const char *path, const char *noun,
                         struct error *err)
{
    int r;

    *registry = (struct folder_registry){.folder = -EBADF, .noun = noun};
    if (path[0] != '/' || strlen(path) >= sizeof(registry->path))
        return error_set(err, ERR_INVALID, 0, "the path of the %ss must be absolute", noun);
    (void) snprintf(registry->path, sizeof(registry->path), "%s", path);
    r = sys_file_make_directories(AT_FDCWD, path, 0700);
    if (r == 0)
        r = registry->folder = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "open the %ss in '%s'", noun, path);
    if (!folder_is_ours(registry->folder))
        return error_set(err, ERR_FORBIDDEN, 0, "the %ss in '%s' can be changed by other users",
                         noun, path);
    return 0;
}

void folder_registry_done(struct folder_registry *registry)
{
    registry->folder = fd_close(registry->folder);
}

static bool is_name_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (!is_first && (c == '.' || c == '_' || c == '-'));
}

bool folder_name_is_valid(const char *name)
{
    size_t length = strnlen(name, FOLDER_NAME_MAX + 1);

    for (size_t i = 0; i < length; i++) {
        if (!is_name_char(name[i], i == 0))
            return false;
    }
    return length > 0 && length <= FOLDER_NAME_MAX;
}

static const char *article(const char *noun)
{
    return strchr("aeiou", noun[0]) ? "an" : "a";
}

int folder_registry_check_name(const struct folder_registry *registry, const char *name,
                               struct error *err)
{
    if (folder_name_is_valid(name))
        return 0;
    return error_set(err, ERR_INVALID, 0,
                     "the name of %s %s has up to %d of a-z 0-9 . _ - and starts with a letter or "
                     "digit",
                     article(registry->noun), registry->noun, FOLDER_NAME_MAX);
}

/* Checked, O_PATH. */
static int open_folder(const struct folder_registry *registry, const char *path, struct error *err)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    char list[FOLDER_TEXT_MAX], noun[FOLDER_TEXT_MAX];
    struct folder_place own = {.fd = registry->folder, .text = list};

    if (folder < 0)
        return error_set(err, folder == -ENOENT ? ERR_NOT_FOUND : ERR_INVALID, folder,
                         "open the folder '%s'", path);
    (void) snprintf(list, sizeof(list), "the list of %ss", registry->noun);
    (void) snprintf(noun, sizeof(noun), "%s %s", article(registry->noun), registry->noun);
    if (folder_check(FOLDER_REGISTERED, folder, path, noun, &own, 1, err) < 0)
        return -1;
    return TAKE_FD(folder);
}

int folder_registry_add(struct folder_registry *registry, const char *name, const char *folder,
                        struct error *err)
{
    AUTO(close) int fd = -EBADF;
    AUTO(free) char *real = NULL;
    char line[PATH_MAX + 1];
    int length, r;

    if (folder_registry_check_name(registry, name, err) < 0)
        return -1;
    if (folder[0] != '/')
        return error_set(err, ERR_INVALID, 0, "give the folder from / on, not '%s'", folder);
    real = realpath(folder, NULL);
    if (!real)
        return error_set(err, error_code_from_errno(errno), errno, "the folder '%s'", folder);
    if (strchr(real, '\n'))
        return error_set(err, ERR_INVALID, 0, "the folder has a line break in its name");
    fd = open_folder(registry, real, err);
    if (fd < 0)
        return -1;
    length = snprintf(line, sizeof(line), "%s\n", real);
    r = sys_file_replace(registry->folder, name, line, (size_t) length, 0600);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "register %s '%s'", registry->noun,
                         name);
    return 0;
}

int folder_registry_remove(struct folder_registry *registry, const char *name, struct error *err)
{
    int r;

    if (folder_registry_check_name(registry, name, err) < 0)
        return -1;
    r = unlinkat(registry->folder, name, 0) < 0 ? -errno : 0;
    if (r == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no %s '%s'", registry->noun, name);
    if (r == 0)
        r = sys_file_sync_parent(registry->folder, name);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "remove %s '%s'", registry->noun, name);
    return 0;
}

int folder_registry_read(const struct folder_registry *registry, const char *name,
                         char ret_path[static PATH_MAX], struct error *err)
{
    AUTO(close)
    int file = sys_file_open(registry->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    ssize_t length = file;

    if (file == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no %s '%s'", registry->noun, name);
    if (file >= 0 && !folder_is_ours(file))
        return error_set(err, ERR_FORBIDDEN, 0, "the entry of %s '%s' is not root's",
                         registry->noun, name);
    if (file >= 0)
        length = sys_file_read_full(file, ret_path, PATH_MAX);
    if (length < 0)
        return error_set(err, ERR_INTERNAL, (int) length, "read the entry of %s '%s'",
                         registry->noun, name);
    if (length < 2 || length == PATH_MAX || ret_path[0] != '/' || ret_path[length - 1] != '\n' ||
        memchr(ret_path, '\n', (size_t) length) != ret_path + length - 1)
        return error_set(err, ERR_INVALID, 0, "the entry of %s '%s' is not one path",
                         registry->noun, name);
    ret_path[length - 1] = '\0';
    return 0;
}

int folder_registry_open(const struct folder_registry *registry, const char *name, int *ret_fd,
                         struct error *err)
{
    char path[PATH_MAX];
    int fd;

    if (folder_registry_check_name(registry, name, err) < 0 ||
        folder_registry_read(registry, name, path, err) < 0)
        return -1;
    fd = open_folder(registry, path, err);
    if (fd < 0)
        return error_wrap(err, "%s '%s'", registry->noun, name);
    *ret_fd = fd;
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    return strcmp(((const struct folder_entry *) left)->name,
                  ((const struct folder_entry *) right)->name);
}

int folder_registry_list(const struct folder_registry *registry, struct folder_entry **ret_entries,
                         size_t *ret_count, struct error *err)
{
    int fd = sys_file_open(registry->folder, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *files = fd < 0 ? NULL : fdopendir(fd);
    AUTO(free) struct folder_entry *entries = NULL;
    struct dirent *file;
    size_t count = 0;

    if (!files) {
        (void) fd_close(fd);
        return error_set(err, ERR_INTERNAL, fd < 0 ? fd : errno, "list the %ss", registry->noun);
    }
    while ((file = readdir(files)) && count < FOLDERS_MAX) {
        if (!folder_name_is_valid(file->d_name))
            continue;
        entries = mem_resize(entries, (count + 1) * sizeof(*entries));
        (void) snprintf(entries[count].name, sizeof(entries[count].name), "%.*s", FOLDER_NAME_MAX,
                        file->d_name);
        if (folder_registry_read(registry, file->d_name, entries[count].folder, NULL) == 0)
            count++;
    }
    if (count > 0)
        qsort(entries, count, sizeof(*entries), compare_entries);
    *ret_entries = TAKE_PTR(entries);
    *ret_count = count;
    return 0;
}
