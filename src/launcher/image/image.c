#include "launcher/image/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "launcher/image/folder_rules.h"
#include "launcher/image/image_ground.h"
#include "launcher/image/image_internal.h"
#include "launcher/image/image_layers.h"
#include "sys/file/sys_file.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

/* Of a path in the registry's folder. */
#define ENTRY_SIZE (sizeof(IMAGE_STEPS "/") + IMAGE_NAME_MAX)

/* What the kernel takes as one variable, NUL included, is 128 KiB. */
#define COMMAND_MAX ((size_t) 128 * 1024 - 1)

/* How long a folder that was checked is taken at its word, when neither it nor the list changed. */
#define IMAGE_TRUST_NS UINT64_C(1000000000)

void image_view_done(struct image_view *view)
{
    for (size_t i = 0; i < view->lower_count; i++)
        view->lowers[i] = fd_close(view->lowers[i]);
    view->lower_count = 0;
    for (char **variable = view->environment; variable && *variable; variable++)
        free(*variable);
    free(view->environment);
    view->environment = NULL;
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

bool image_name_is_step(const char *name)
{
    size_t prefix = strlen(IMAGE_STEP_PREFIX);

    return strncmp(name, IMAGE_STEP_PREFIX, prefix) == 0 &&
           strspn(name + prefix, "0123456789abcdef") == IMAGE_STEP_DIGITS &&
           name[prefix + IMAGE_STEP_DIGITS] == '\0';
}

static int refuse_host(const char *name, struct error *err)
{
    if (strcmp(name, IMAGE_HOST) == 0)
        return error_set(err, ERR_INVALID, 0, "'" IMAGE_HOST "' is the built-in image");
    return 0;
}

/* Where the entry of a name lies in the folder of the registry. */
static void find_entry(const char *name, char ret_path[static ENTRY_SIZE])
{
    (void) snprintf(ret_path, ENTRY_SIZE, "%s%.*s", image_name_is_step(name) ? IMAGE_STEPS "/" : "",
                    IMAGE_NAME_MAX, name);
}

int image_check_name(const struct image_registry *registry, const char *name, struct error *err)
{
    if (refuse_host(name, err) < 0)
        return -1;
    if (image_name_is_step(name))
        return error_set(err, ERR_INVALID, 0, "names like this one are those of builds");
    return folder_registry_check_name(&registry->names, name, err);
}

int image_add(struct image_registry *registry, const char *name, const char *folder,
              struct error *err)
{
    if (image_check_name(registry, name, err) < 0)
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

    for (size_t i = 0; i < view.lower_count; i++) {
        view.lowers[i] = fcntl(from->lowers[i], F_DUPFD_CLOEXEC, 3);
        failed |= view.lowers[i] < 0;
    }
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

/* --- imported ones -------------------------------------------------------------------------- */

int image_put(struct image_registry *registry, const char *name, const struct wire_image *image,
              struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    char path[ENTRY_SIZE];
    int r = 0;

    if (refuse_host(name, err) < 0 || folder_registry_check_name(&registry->names, name, err) < 0 ||
        wire_image_write(image, &text, err) < 0)
        return -1;
    find_entry(name, path);
    if (image_name_is_step(name))
        r = sys_file_make_directories(registry->names.folder, IMAGE_STEPS, 0700);
    if (r == 0)
        r = sys_file_replace(registry->names.folder, path, text.data, text.length, 0600);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "register image '%s'", name) : 0;
}

/* Whether the entry of that name is one that was imported, and what it says. 1, 0, -1. */
static int read_imported(const struct image_registry *registry, const char *name,
                         struct wire_image *ret_image, struct error *err)
{
    AUTO(close) int file = -EBADF;
    AUTO(free) char *bytes = NULL;
    char path[ENTRY_SIZE];
    ssize_t length;

    find_entry(name, path);
    file = sys_file_open(registry->names.folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no image '%s'", name);
    if (file < 0 || !folder_is_ours(file))
        return 0; /* the registry of folders says why not */
    bytes = mem_alloc(WIRE_IMAGE_TEXT_MAX + 1);
    length = sys_file_read_full(file, bytes, WIRE_IMAGE_TEXT_MAX + 1);
    if (length < 0 || !wire_image_is_one(bytes, (size_t) length))
        return 0;
    if (wire_image_read(bytes, (size_t) length, ret_image, err) < 0)
        return error_wrap(err, "image '%s'", name);
    return 1;
}

int image_read(struct image_registry *registry, const char *name, struct wire_image *ret_image,
               struct error *err)
{
    int r;

    if (folder_registry_check_name(&registry->names, name, err) < 0)
        return -1;
    r = read_imported(registry, name, ret_image, err);
    if (r == 0)
        return error_set(err, ERR_INVALID, 0, "image '%s' was not imported", name);
    return r < 0 ? -1 : 0;
}

static bool is_our_setting(const char *variable)
{
    return strncmp(variable, "BURROW_", strlen("BURROW_")) == 0;
}

static char *make_setting(const char *name, const char *value)
{
    AUTO(text) struct text setting = TEXT_INIT(WIRE_IMAGE_WORD_MAX + 64);

    text_format(&setting, "%s=%s", name, value);
    return text_take(&setting);
}

static void append_words(struct text *out, const struct wire_image_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        text_append(out, out->length ? "\n" : "BURROW_COMMAND=");
        for (const char *at = words->words[i]; *at; at++) {
            if (*at == '\\' || *at == '\n')
                text_append_char(out, '\\');
            text_append_char(out, *at == '\n' ? 'n' : *at);
        }
    }
}

/* What agent/exec/image_command.h reads; NULL without a command. */
static char *make_command(const struct wire_image *image)
{
    AUTO(text) struct text command = TEXT_INIT(COMMAND_MAX);

    append_words(&command, &image->by_key[WIRE_IMAGE_ENTRYPOINT]);
    append_words(&command, &image->by_key[WIRE_IMAGE_CMD]);
    return command.length && !command.overflowed ? text_take(&command) : NULL;
}

/* What the agent is started with, and gives to programs. Its own settings are not an image's to
 * make, but for the folder to work in, the user, and the command that it names; and a HOME that it
 * names is that of every user. */
static char **make_environment(const struct wire_image *image)
{
    const struct wire_image_words *variables = &image->by_key[WIRE_IMAGE_ENV];
    const char *folder = wire_image_word(image, WIRE_IMAGE_WORKDIR);
    const char *user = wire_image_word(image, WIRE_IMAGE_USER);
    char **environment = mem_alloc_array(variables->count + 5, sizeof(*environment));
    bool has_home = false;
    size_t count = 0;

    for (size_t i = 0; i < variables->count; i++) {
        if (!is_our_setting(variables->words[i]))
            environment[count++] = mem_copy_text(variables->words[i]);
        has_home |= strncmp(variables->words[i], "HOME=", strlen("HOME=")) == 0;
    }
    if (has_home)
        environment[count++] = make_setting("BURROW_KEEP_HOME", "yes");
    if (*folder)
        environment[count++] = make_setting("BURROW_DIRECTORY", folder);
    if (*user)
        environment[count++] = make_setting("BURROW_USER", user);
    environment[count] = make_command(image); /* the last: it may be none */
    return environment;
}

/* What layers that were built lie on: `host` or a folder, with its mounts; without a base nothing.
 */
static int open_base(struct image_registry *registry, const char *name, struct image_view *ret_view,
                     struct error *err)
{
    int lower;

    if (!*name)
        return 0;
    if (strcmp(name, IMAGE_HOST) == 0)
        return image_open(registry, name, ret_view, err);
    if (open_registered(registry, name, &lower, err) < 0)
        return -1;
    ret_view->lowers[ret_view->lower_count++] = lower;
    return 0;
}

/* The lower layers of a base, below those that are there. */
static int add_lowers(struct image_view *view, struct image_view *base, struct error *err)
{
    /* A base is one folder: a folder, or the skeleton of `host`. */
    if (view->lower_count + base->lower_count >= IMAGE_LOWERS_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d layers", WIRE_IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < base->lower_count; i++)
        view->lowers[view->lower_count++] = TAKE_FD(base->lowers[i]);
    for (; view->mount_count < base->mount_count; view->mount_count++) {
        view->mounts[view->mount_count] = base->mounts[view->mount_count];
        base->mounts[view->mount_count].source = -EBADF;
    }
    return 0;
}

/* Below everything, once the base is there too. */
static int add_ground(struct image_registry *registry, struct image_view *view, struct error *err)
{
    int ground = image_ground_open(registry, err);

    if (ground < 0)
        return -1;
    view->lowers[view->lower_count++] = ground;
    return 0;
}

static int open_imported(struct image_registry *registry, const char *name,
                         const struct wire_image *image, struct image_view *ret_view,
                         struct error *err)
{
    const struct wire_image_words *layers = &image->by_key[WIRE_IMAGE_LAYER];
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT, base = IMAGE_VIEW_INIT;

    if (open_base(registry, wire_image_word(image, WIRE_IMAGE_BASE), &base, err) < 0)
        return error_wrap(err, "image '%s'", name);
    for (size_t i = layers->count; i > 0; i--) {
        int layer = image_layer_open(registry, layers->words[i - 1], err);

        if (layer < 0)
            return error_wrap(err, "image '%s'", name);
        view.lowers[view.lower_count++] = layer;
    }
    if (add_lowers(&view, &base, err) < 0 ||
        (image_name_is_step(name) && add_ground(registry, &view, err) < 0))
        return error_wrap(err, "image '%s'", name);
    view.environment = make_environment(image);
    *ret_view = image_view_take(&view);
    return 0;
}

/* --- all of them ---------------------------------------------------------------------------- */

int image_open(struct image_registry *registry, const char *name, struct image_view *ret_view,
               struct error *err)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    int lower, imported;

    if (strcmp(name, IMAGE_HOST) == 0) {
        if (!registry->host.lower_count)
            return error_set(err, ERR_UNAVAILABLE, 0, "image '" IMAGE_HOST "' is not prepared");
        return copy_view(&registry->host, ret_view, err);
    }
    if (folder_registry_check_name(&registry->names, name, err) < 0)
        return -1;
    imported = is_still_right(registry, name, clock_monotonic_ns(clock_system()))
                   ? 0
                   : read_imported(registry, name, &image, err);
    if (imported < 0)
        return -1;
    if (imported)
        return open_imported(registry, name, &image, ret_view, err);
    if (open_registered(registry, name, &lower, err) < 0)
        return -1;
    *ret_view = (struct image_view){.lowers = {lower}, .lower_count = 1};
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    return strcmp(((const struct folder_entry *) left)->name,
                  ((const struct folder_entry *) right)->name);
}

/* Those of the imported. */
static int list_imported(struct image_registry *registry, struct folder_entry **entries,
                         size_t *count, struct error *err)
{
    int fd = sys_file_open(registry->names.folder, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *files = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *file;

    if (!files) {
        (void) fd_close(fd);
        return error_set(err, ERR_INTERNAL, fd < 0 ? fd : errno, "list the images");
    }
    while ((file = readdir(files)) && *count < FOLDERS_MAX) {
        AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;

        if (!folder_name_is_valid(file->d_name) ||
            read_imported(registry, file->d_name, &image, NULL) != 1)
            continue;
        *entries = mem_resize(*entries, (*count + 1) * sizeof(**entries));
        (*entries)[*count] = (struct folder_entry){.folder = ""};
        (void) snprintf((*entries)[*count].name, sizeof((*entries)[*count].name), "%.*s",
                        FOLDER_NAME_MAX, file->d_name);
        *count += 1;
    }
    return 0;
}

int image_list(struct image_registry *registry, struct folder_entry **ret_entries,
               size_t *ret_count, struct error *err)
{
    AUTO(free) struct folder_entry *registered = NULL;
    struct folder_entry *entries;
    size_t count, kept = 1;

    if (folder_registry_list(&registry->names, &registered, &count, err) < 0 ||
        list_imported(registry, &registered, &count, err) < 0)
        return -1;
    if (count > 0)
        qsort(registered, count, sizeof(*registered), compare_entries);
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
