#include "launcher/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/image_internal.h"
#include "sys/sys_file.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

void image_view_done(struct image_view *view)
{
    view->lower = fd_close(view->lower);
    for (size_t i = 0; i < view->mount_count; i++)
        view->mounts[i].source = fd_close(view->mounts[i].source);
    view->mount_count = 0;
}

int image_registry_open(const char *path, struct image_registry **ret_registry, struct error *err)
{
    AUTO(image_registry) struct image_registry *registry = mem_alloc(sizeof(*registry));
    int r = sys_file_make_directories(AT_FDCWD, path, 0700);

    registry->folder = -EBADF;
    registry->host = (struct image_view) IMAGE_VIEW_INIT;
    if (path[0] != '/' || strlen(path) >= sizeof(registry->path))
        return error_set(err, ERR_INVALID, 0, "the path of the images must be absolute");
    (void) snprintf(registry->path, sizeof(registry->path), "%s", path);
    if (r == 0)
        r = registry->folder = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "open the images in '%s'", path);
    if (!image_is_ours(registry->folder))
        return error_set(err, ERR_FORBIDDEN, 0, "the images in '%s' can be changed by other users",
                         path);
    *ret_registry = TAKE_PTR(registry);
    return 0;
}

void image_registry_free(struct image_registry *registry)
{
    if (!registry)
        return;
    image_view_done(&registry->host);
    registry->folder = fd_close(registry->folder);
    free(registry);
}

static bool is_name_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (!is_first && (c == '.' || c == '_' || c == '-'));
}

bool image_name_is_valid(const char *name)
{
    size_t length = strnlen(name, IMAGE_NAME_MAX + 1);

    for (size_t i = 0; i < length; i++) {
        if (!is_name_char(name[i], i == 0))
            return false;
    }
    return length > 0 && length <= IMAGE_NAME_MAX;
}

/* A name that may be registered. */
static int check_name(const char *name, struct error *err)
{
    if (!image_name_is_valid(name))
        return error_set(
            err, ERR_INVALID, 0,
            "an image's name has up to %d of a-z 0-9 . _ - and starts with a letter or "
            "digit",
            IMAGE_NAME_MAX);
    if (strcmp(name, IMAGE_HOST) == 0)
        return error_set(err, ERR_INVALID, 0, "'" IMAGE_HOST "' is the built-in image");
    return 0;
}

static int open_folder(const struct image_registry *registry, const char *path, struct error *err)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

    if (folder < 0)
        return error_set(err, folder == -ENOENT ? ERR_NOT_FOUND : ERR_INVALID, folder,
                         "open the image's folder '%s'", path);
    if (image_check_folder(registry, folder, path, err) < 0)
        return -1;
    return TAKE_FD(folder);
}

int image_add(struct image_registry *registry, const char *name, const char *folder,
              struct error *err)
{
    AUTO(close) int fd = -EBADF;
    AUTO(free) char *real = NULL;
    char line[PATH_MAX + 1];
    int length, r;

    if (check_name(name, err) < 0)
        return -1;
    if (folder[0] != '/')
        return error_set(err, ERR_INVALID, 0, "give the image's folder from / on, not '%s'",
                         folder);
    real = realpath(folder, NULL);
    if (!real)
        return error_set(err, error_code_from_errno(errno), errno, "the image's folder '%s'",
                         folder);
    if (strchr(real, '\n'))
        return error_set(err, ERR_INVALID, 0, "the image's folder has a line break in its name");
    fd = open_folder(registry, real, err);
    if (fd < 0)
        return -1;
    length = snprintf(line, sizeof(line), "%s\n", real);
    r = sys_file_replace(registry->folder, name, line, (size_t) length, 0600);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "register image '%s'", name) : 0;
}

int image_remove(struct image_registry *registry, const char *name, struct error *err)
{
    int r;

    if (check_name(name, err) < 0)
        return -1;
    r = unlinkat(registry->folder, name, 0) < 0 ? -errno : 0;
    if (r == 0)
        r = sys_file_sync_parent(registry->folder, name);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "remove image '%s'", name);
    return 0;
}

/* The path in a file of the registry. */
static int read_entry(struct image_registry *registry, const char *name,
                      char ret_path[static PATH_MAX], struct error *err)
{
    AUTO(close)
    int file = sys_file_open(registry->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    ssize_t length = file;

    if (file == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no image '%s'", name);
    if (file >= 0 && !image_is_ours(file))
        return error_set(err, ERR_FORBIDDEN, 0, "the entry of image '%s' is not root's", name);
    if (file >= 0)
        length = sys_file_read_full(file, ret_path, PATH_MAX);
    if (length < 0)
        return error_set(err, ERR_INTERNAL, (int) length, "read the entry of image '%s'", name);
    if (length < 2 || length == PATH_MAX || ret_path[0] != '/' || ret_path[length - 1] != '\n' ||
        memchr(ret_path, '\n', (size_t) length) != ret_path + length - 1)
        return error_set(err, ERR_INVALID, 0, "the entry of image '%s' is not one path", name);
    ret_path[length - 1] = '\0';
    return 0;
}

/* Descriptors of one's own for everything in it. */
static int copy_view(const struct image_view *from, struct image_view *ret_view, struct error *err)
{
    AUTO(image_view) struct image_view view = *from;
    bool failed = false;

    view.lower = fcntl(from->lower, F_DUPFD_CLOEXEC, 3);
    failed |= view.lower < 0;
    for (size_t i = 0; i < view.mount_count; i++) {
        if (from->mounts[i].source < 0)
            continue;
        view.mounts[i].source = fcntl(from->mounts[i].source, F_DUPFD_CLOEXEC, 3);
        failed |= view.mounts[i].source < 0;
    }
    if (failed)
        return error_set(err, ERR_UNAVAILABLE, EMFILE, "open image '" IMAGE_HOST "'");
    *ret_view = image_view_take(&view);
    return 0;
}

int image_open(struct image_registry *registry, const char *name, struct image_view *ret_view,
               struct error *err)
{
    char path[PATH_MAX];
    int lower;

    if (!image_name_is_valid(name))
        return check_name(name, err);
    if (strcmp(name, IMAGE_HOST) == 0) {
        if (registry->host.lower < 0)
            return error_set(err, ERR_UNAVAILABLE, 0, "image '" IMAGE_HOST "' is not prepared");
        return copy_view(&registry->host, ret_view, err);
    }
    if (read_entry(registry, name, path, err) < 0)
        return -1;
    lower = open_folder(registry, path, err);
    if (lower < 0)
        return error_wrap(err, "image '%s'", name);
    *ret_view = (struct image_view){.lower = lower};
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    return strcmp(((const struct image_entry *) left)->name,
                  ((const struct image_entry *) right)->name);
}

int image_list(struct image_registry *registry, struct image_entry **ret_entries, size_t *ret_count,
               struct error *err)
{
    int fd = sys_file_open(registry->folder, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *files = fd < 0 ? NULL : fdopendir(fd);
    AUTO(free) struct image_entry *entries = mem_alloc(sizeof(*entries));
    struct dirent *file;
    size_t count = 1;

    if (!files) {
        (void) fd_close(fd);
        return error_set(err, ERR_INTERNAL, fd < 0 ? fd : errno, "list the images");
    }
    memcpy(entries[0].name, IMAGE_HOST, sizeof(IMAGE_HOST));
    while ((file = readdir(files)) && count < IMAGES_MAX) {
        if (check_name(file->d_name, NULL) < 0)
            continue;
        entries = mem_resize(entries, (count + 1) * sizeof(*entries));
        (void) snprintf(entries[count].name, sizeof(entries[count].name), "%.*s", IMAGE_NAME_MAX,
                        file->d_name);
        if (read_entry(registry, file->d_name, entries[count].folder, NULL) == 0)
            count++;
    }
    qsort(entries + 1, count - 1, sizeof(*entries), compare_entries);
    *ret_entries = TAKE_PTR(entries);
    *ret_count = count;
    return 0;
}
