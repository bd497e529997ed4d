/* Images: the read-only roots that sandboxes start from.
 *
 * Root registers folders by name, or imports images (image_import.h); a plan names the image and
 * never a path. The registry is a root-owned folder with one small file per image, so that it can
 * be read, backed up and repaired by hand:
 *
 *     DATA/images/debian-12         "/srv/images/debian-12\n", or what wire/wire_image.h says
 *     DATA/images/.host/<digest>/   skeletons of the built-in image `host`, see image_host.h
 *     DATA/images/.layers/<digest>/ trees of imported layers, shared by images: image_layers.h
 *     DATA/images/.steps/step-<key> what builds have made so far: images too, but not listed
 *     DATA/images/.ground/          what lies below them: image_ground.h
 *
 * A view is what the executor needs to build a root from an image:
 *
 *     lowers     the overlay's lower layers, which become idmapped, read-only copies of mounts
 *     mounts     what is then attached in the merged root, in this order
 *
 * Overlay cannot show a folder at another place than its own (a layer's /usr is the merged /usr)
 * and does not look into mounts beneath a layer. So the host's /usr is not a layer but a mount of
 * its own on top; that also spares a lookup in two layers for every file of it.
 *
 * All functions return 0, or -1 with `err` filled. One thread uses a registry. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/error.h"
#include "launcher/image/folder_registry.h"
#include "wire/wire_image.h"

#define IMAGE_NAME_MAX FOLDER_NAME_MAX

/* The built-in one; cannot be registered. */
#define IMAGE_HOST "host"

/* Images between two steps of a build (`burrow image build`): the prefix and 56 hexadecimal digits.
 * They are read and put like others, and forgotten with their layers by image_layers_prune. */
#define IMAGE_STEP_PREFIX "step-"
#define IMAGE_STEP_DIGITS 56

#define IMAGE_MOUNTS_MAX  12
#define IMAGE_LOWERS_MAX  (WIRE_IMAGE_LAYERS_MAX + 2) /* its base, and image_ground.h */
#define IMAGE_DIGEST_SIZE 65

/* One thing to attach in the merged root. */
struct image_mount {
    int source;         /* owned: O_PATH of a folder of the host; or -EBADF, then: */
    const char *inside; /* a folder of the merged root, which is shown at `target` too */
    const char *target; /* a folder of the merged root; open it beneath that root, without links */
    bool read_only;
};

struct image_view {
    int lowers[IMAGE_LOWERS_MAX]; /* owned, O_PATH; the topmost first */
    size_t lower_count;
    /* Owned: what programs in it find in their environment, NULL at its end; NULL: nothing. */
    char **environment;
    struct image_mount mounts[IMAGE_MOUNTS_MAX];
    size_t mount_count;
    char digest[IMAGE_DIGEST_SIZE]; /* identity in hex, "" when it has none */
};

#define IMAGE_VIEW_INIT                                                                            \
    {                                                                                              \
        .lower_count = 0                                                                           \
    }

void image_view_done(struct image_view *view);

AUTO_DEFINE(image_view, struct image_view, image_view_done);

struct image_registry;

/* Open the registry at `path` (absolute, trusted; made 0700 when missing). ERR_FORBIDDEN when
 * others than root could change it. */
int image_registry_open(const char *path, struct image_registry **ret_registry, struct error *err);

/* Accepts NULL. */
void image_registry_free(struct image_registry *registry);

AUTO_DEFINE_PTR(image_registry, struct image_registry, image_registry_free);

bool image_name_is_valid(const char *name);
bool image_name_is_step(const char *name);

/* Whether an image may be given that name: a valid one that is neither `host` nor that of a step.
 * ERR_INVALID. */
int image_check_name(const struct image_registry *registry, const char *name, struct error *err);

/* Register `folder` (absolute; links in it are resolved now) under `name`, in place of what has
 * that name. Acknowledged means on disk. ERR_INVALID: the name, or a folder that is refused: see
 * "registered" in folder_rules.h. */
int image_add(struct image_registry *registry, const char *name, const char *folder,
              struct error *err);

/* Forget a name; the folder or the layers, and running sandboxes, stay. ERR_NOT_FOUND. */
int image_remove(struct image_registry *registry, const char *name, struct error *err);

/* Register what was imported or built, its layers being there: image_import.h. Acknowledged means
 * on disk. */
int image_put(struct image_registry *registry, const char *name, const struct wire_image *image,
              struct error *err);

/* What was imported or built under a name. ERR_NOT_FOUND: nothing; ERR_INVALID: it is a folder, or
 * its entry is damaged. */
int image_read(struct image_registry *registry, const char *name, struct wire_image *ret_image,
               struct error *err);

/* What an image needs now; its folder is checked again as in image_add, at most once a second.
 * ERR_NOT_FOUND: no such name, or its folder or a layer is gone; ERR_UNAVAILABLE: `host` before
 * image_host_prepare. Inline: a microsecond for `host`, some 0.2 ms for a folder. */
int image_open(struct image_registry *registry, const char *name, struct image_view *ret_view,
               struct error *err);

/* All images by name, `host` first. Only those that are folders have one, others "". The caller
 * frees the array. */
int image_list(struct image_registry *registry, struct folder_entry **ret_entries,
               size_t *ret_count, struct error *err);
