#include "launcher/image/image_layers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/image/folder_registry.h"
#include "launcher/image/image_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"
#include "sys/file/sys_tree.h"

#define LAYERS ".layers"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

int image_layers_open(struct image_registry *registry, struct error *err)
{
    int r = sys_file_make_directories(registry->names.folder, LAYERS, 0700);

    if (r == 0)
        r = sys_file_open(registry->names.folder, LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "open the layers of images") : r;
}

int image_layer_open(struct image_registry *registry, const char *digest, struct error *err)
{
    AUTO(close) int layers = -EBADF;
    int layer;

    if (!wire_image_is_digest(digest))
        return error_set(err, ERR_INVALID, 0, "'%.80s' is no layer", digest);
    layers = sys_file_open(registry->names.folder, LAYERS, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    layer =
        layers < 0 ? layers : sys_file_open(layers, digest, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (layer == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "layer %.12s is gone; import the image again",
                         digest);
    return layer < 0 ? error_set(err, ERR_INTERNAL, layer, "open layer %.12s", digest) : layer;
}

static int hold(struct image_registry *registry, enum sys_lock_kind kind, int timeout_ms,
                struct error *err)
{
    AUTO(close) int layers = image_layers_open(registry, err);
    int r = layers < 0 ? 0 : sys_lock_take(layers, kind, timeout_ms);

    if (layers < 0)
        return -1;
    if (r == -ETIMEDOUT)
        return error_set(err, ERR_CONFLICT, 0,
                         "an image is built, imported or pulled: try again when it is done");
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "lock the layers of images") : TAKE_FD(layers);
}

int image_layers_hold(struct image_registry *registry, struct error *err)
{
    return hold(registry, SYS_LOCK_SHARED, -1, err);
}

int image_layers_hold_alone(struct image_registry *registry, struct error *err)
{
    return hold(registry, SYS_LOCK_EXCLUSIVE, 0, err);
}

/* --- taking away ---------------------------------------------------------------------------- */

struct digests {
    char (*texts)[WIRE_IMAGE_DIGEST_LENGTH + 1]; /* owned */
    size_t count;
};

static void digests_done(struct digests *digests)
{
    free(digests->texts);
}

AUTO_DEFINE(digests, struct digests, digests_done);

static void add_layers(struct digests *used, const struct wire_image *image)
{
    const struct wire_image_words *layers = &image->by_key[WIRE_IMAGE_LAYER];

    used->texts = mem_resize(used->texts, (used->count + layers->count) * sizeof(*used->texts));
    for (size_t i = 0; i < layers->count; i++)
        memcpy(used->texts[used->count++], layers->words[i], sizeof(*used->texts));
}

/* The layers of one entry. One that is neither an image nor a folder may be an image that was
 * damaged, whose layers would look unused. */
static int add_entry(struct image_registry *registry, const char *name, struct digests *used,
                     struct error *err)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    char path[PATH_MAX];

    if (image_read(registry, name, &image, err) == 0) {
        add_layers(used, &image);
        return 0;
    }
    if (err->code == ERR_NOT_FOUND || folder_registry_read(&registry->names, name, path, NULL) == 0)
        return 0; /* removed meanwhile, or a folder */
    return error_set(err, ERR_CONFLICT, 0,
                     "image '%s' cannot be read, so its layers are not known: repair its entry, or "
                     "remove it with `burrow image rm`",
                     name);
}

/* Not by image_list, which leaves out what it cannot read and ends somewhere. A file that has the
 * name of the built-in image is never looked at. */
static int find_used(struct image_registry *registry, struct digests *used, struct error *err)
{
    int fd = sys_file_open(registry->names.folder, ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
    AUTO(closedir) DIR *files = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *file;

    if (!files) {
        (void) fd_close(fd);
        return error_set(err, ERR_INTERNAL, fd < 0 ? fd : errno, "list the images");
    }
    while (r == 0 && (errno = 0, file = readdir(files))) {
        if (image_name_is_valid(file->d_name) && strcmp(file->d_name, IMAGE_HOST) != 0)
            r = add_entry(registry, file->d_name, used, err);
    }
    return r == 0 && errno ? error_set(err, ERR_INTERNAL, errno, "list the images") : r;
}

static bool is_used(const struct digests *used, const char *name)
{
    for (size_t i = 0; i < used->count; i++) {
        if (strcmp(used->texts[i], name) == 0)
            return true;
    }
    return false;
}

int image_layers_prune(struct image_registry *registry, size_t *ret_count, struct error *err)
{
    AUTO(digests) struct digests used = {.count = 0};
    int layers = image_layers_open(registry, err), r;
    AUTO(closedir) DIR *entries = layers < 0 ? NULL : fdopendir(layers);
    struct dirent *entry;

    *ret_count = 0;
    if (layers < 0)
        return -1;
    if (!entries) {
        (void) fd_close(layers);
        return error_set(err, ERR_INTERNAL, errno, "list the layers of images");
    }
    if (find_used(registry, &used, err) < 0)
        return -1;
    /* Before their layers: a step whose layers are gone is none. */
    r = sys_tree_delete(registry->names.folder, IMAGE_STEPS);
    if (r < 0 && r != -ENOENT)
        return error_set(err, error_code_from_errno(r), r, "forget what builds have made");
    r = 0;
    while (r == 0 && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            is_used(&used, entry->d_name))
            continue;
        r = sys_tree_delete(layers, entry->d_name);
        *ret_count += r == 0;
    }
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "delete a layer") : 0;
}
