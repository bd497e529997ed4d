#include "programs/admin/verb_image_build.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/image/image_host.h"
#include "launcher/image/image_import.h"
#include "launcher/image/image_layers.h"
#include "programs/admin/image_tools.h"
#include "sys/file/sys_file.h"

static int check_layers(struct image_registry *images, const struct wire_image *image,
                        struct error *err)
{
    const struct wire_image_words *layers = &image->by_key[WIRE_IMAGE_LAYER];

    for (size_t i = 0; i < layers->count; i++) {
        AUTO(close) int layer = image_layer_open(images, layers->words[i], err);

        if (layer < 0)
            return -1;
    }
    return 0;
}

static int print_image(const struct wire_image *image, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);

    if (wire_image_write(image, &text, err) < 0)
        return -1;
    (void) fputs(text_string(&text), stdout);
    return 0;
}

/* One that has no layers of its own. */
static int print_base(struct image_registry *images, const char *name, struct error *err)
{
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;

    if (strcmp(name, IMAGE_HOST) != 0 && image_open(images, name, &view, err) < 0)
        return -1;
    if (wire_image_add(&image, WIRE_IMAGE_BASE, name, err) < 0)
        return -1;
    return print_image(&image, err);
}

int verb_image_show(struct image_registry *images, char **words, struct error *err)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    int r;

    if (strcmp(words[0], IMAGE_HOST) == 0)
        return print_base(images, words[0], err);
    r = image_read(images, words[0], &image, err);
    if (r < 0 && err->code == ERR_INVALID && !image_name_is_step(words[0]))
        return print_base(images, words[0], err);
    if (r == 0)
        r = check_layers(images, &image, err);
    if (r < 0)
        return image_name_is_step(words[0]) ? 0 : -1;
    return print_image(&image, err);
}

/* A folder by where it is and when its top was changed: what lies in it is not read. */
static int print_folder(int folder, struct error *err)
{
    char link[32], path[PATH_MAX];
    struct stat status;
    ssize_t length;

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
    length = readlink(link, path, sizeof(path) - 1);
    if (length < 0 || fstat(folder, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the folder of an image");
    path[length] = '\0';
    (void) printf("%llu %llu %lld.%09ld %s\n", (unsigned long long) status.st_dev,
                  (unsigned long long) status.st_ino, (long long) status.st_ctim.tv_sec,
                  status.st_ctim.tv_nsec, path);
    return 0;
}

int verb_image_identify(struct image_registry *images, char **words, struct error *err)
{
    static const struct image_host_options options = {.with_usr_local = false};
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    char digest[IMAGE_DIGEST_SIZE];

    if (strcmp(words[0], IMAGE_HOST) == 0) {
        if (image_host_identify(&options, digest, err) < 0)
            return -1;
        (void) puts(digest);
        return 0;
    }
    if (image_open(images, words[0], &view, err) < 0)
        return -1;
    for (size_t i = 0; i < view.lower_count; i++) {
        if (print_folder(view.lowers[i], err) < 0)
            return -1;
    }
    return 0;
}

int verb_image_set(struct image_registry *images, char **words, struct error *err)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    AUTO(free) char *bytes = mem_alloc(WIRE_IMAGE_TEXT_MAX + 1);
    ssize_t length = sys_file_read_full(STDIN_FILENO, bytes, WIRE_IMAGE_TEXT_MAX + 1);

    if (length < 0)
        return error_set(err, ERR_INVALID, (int) length, "read the image");
    if (wire_image_read(bytes, (size_t) length, &image, err) < 0 ||
        check_layers(images, &image, err) < 0)
        return -1;
    return image_put(images, words[0], &image, err);
}

int verb_image_layer(struct image_registry *images, const char *run, struct error *err)
{
    AUTO(image_tools) struct image_tools tools = IMAGE_TOOLS_INIT;
    char digest[IMAGE_DIGEST_SIZE];

    if (image_tools_open(&tools, run, err) < 0 ||
        image_layer_add(images, &tools.host, STDIN_FILENO, digest, err) < 0)
        return -1;
    (void) puts(digest);
    return 0;
}
