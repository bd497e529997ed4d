#include "launcher/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "launcher/image_internal.h"

/* How long a folder that was checked is taken at its word, when neither it nor the list changed. */
#define IMAGE_TRUST_NS UINT64_C(1000000000)

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

    registry->host = (struct image_view) IMAGE_VIEW_INIT;
    registry->last.folder = -EBADF;
    if (folder_registry_init(&registry->names, path, "image", err) < 0)
        return -1;
    *ret_registry = TAKE_PTR(registry);
    return 0;
}

void image_registry_free(struct image_registry *registry)
{
    if (!registry)
        return;
    image_view_done(&registry->host);
    (void) fd_close(registry->last.folder);
    folder_registry_done(&registry->names);
    free(registry);
}

bool image_name_is_valid(const char *name)
{
    return folder_name_is_valid(name);
}

static int refuse_host(const char *name, struct error *err)
{
    if (strcmp(name, IMAGE_HOST) == 0)
        return error_set(err, ERR_INVALID, 0, "'" IMAGE_HOST "' is the built-in image");
    return 0;
}

int image_add(struct image_registry *registry, const char *name, const char *folder,
              struct error *err)
{
    if (refuse_host(name, err) < 0)
        return -1;
    return folder_registry_add(&registry->names, name, folder, err);
}

int image_remove(struct image_registry *registry, const char *name, struct error *err)
{
    if (refuse_host(name, err) < 0)
        return -1;
    return folder_registry_remove(&registry->names, name, err);
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

static bool is_same_time(const struct timespec *left, const struct timespec *right)
{
    return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

/* When the list of names and the folder itself were last changed. */
static bool read_times(const struct image_registry *registry, int folder,
                       struct image_seen *ret_seen)
{
    struct stat list, status;

    if (fstat(registry->names.folder, &list) < 0 || fstat(folder, &status) < 0)
        return false;
    ret_seen->list_changed = list.st_mtim;
    ret_seen->folder_changed = status.st_ctim;
    return true;
}

static bool is_still_right(const struct image_registry *registry, const char *name, uint64_t now)
{
    const struct image_seen *last = &registry->last;
    struct image_seen seen;

    return last->folder >= 0 && strcmp(last->name, name) == 0 &&
           now - last->checked_ns < IMAGE_TRUST_NS && read_times(registry, last->folder, &seen) &&
           is_same_time(&seen.list_changed, &last->list_changed) &&
           is_same_time(&seen.folder_changed, &last->folder_changed);
}

/* A registered folder, O_PATH and the caller's. The check walks up from it to the root several
 * times; sandboxes that start one after the other share one. */
static int open_registered(struct image_registry *registry, const char *name, int *ret_folder,
                           struct error *err)
{
    uint64_t now = clock_monotonic_ns(clock_system());
    struct image_seen seen = {.checked_ns = now};

    if (!is_still_right(registry, name, now)) {
        registry->last.folder = fd_close(registry->last.folder);
        if (folder_registry_open(&registry->names, name, &seen.folder, err) < 0)
            return -1;
        (void) snprintf(seen.name, sizeof(seen.name), "%s", name);
        if (!read_times(registry, seen.folder, &seen)) {
            *ret_folder = seen.folder;
            return 0;
        }
        registry->last = seen;
    }
    *ret_folder = fcntl(registry->last.folder, F_DUPFD_CLOEXEC, 3);
    return *ret_folder < 0 ? error_set(err, ERR_UNAVAILABLE, errno, "open image '%s'", name) : 0;
}

int image_open(struct image_registry *registry, const char *name, struct image_view *ret_view,
               struct error *err)
{
    int lower;

    if (strcmp(name, IMAGE_HOST) == 0) {
        if (registry->host.lower < 0)
            return error_set(err, ERR_UNAVAILABLE, 0, "image '" IMAGE_HOST "' is not prepared");
        return copy_view(&registry->host, ret_view, err);
    }
    if (open_registered(registry, name, &lower, err) < 0)
        return -1;
    *ret_view = (struct image_view){.lower = lower};
    return 0;
}

int image_list(struct image_registry *registry, struct folder_entry **ret_entries,
               size_t *ret_count, struct error *err)
{
    AUTO(free) struct folder_entry *registered = NULL;
    struct folder_entry *entries;
    size_t count, kept = 1;

    if (folder_registry_list(&registry->names, &registered, &count, err) < 0)
        return -1;
    entries = mem_alloc_array(count + 1, sizeof(*entries));
    memcpy(entries[0].name, IMAGE_HOST, sizeof(IMAGE_HOST));
    for (size_t i = 0; i < count; i++) {
        /* A file of that name was put there by hand and is never looked at. */
        if (strcmp(registered[i].name, IMAGE_HOST) != 0)
            entries[kept++] = registered[i];
    }
    *ret_entries = entries;
    *ret_count = kept;
    return 0;
}
