#include "keeper/image/image_import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "keeper/image/image_manifest.h"
#include "sys/file/sys_file.h"

#define CHUNK_SIZE ((size_t) 256 * 1024)

struct importing {
    const struct image_import *import;
    struct image_source *source; /* borrowed */
    struct image_counts counts;
    uint64_t fresh;
    struct output *output;
};

static int check_sum(const char *what, const char *wanted, const char *found, struct error *err)
{
    if (!*wanted || strcmp(wanted, found) == 0)
        return 0;
    return error_set(err, ERR_INVALID, 0, "%s is damaged: its digest is %.12s, not %.12s", what,
                     found, wanted);
}

/* All of a blob into the tree. */
static int pour(struct importing *importing, struct image_blob *blob, int folder, struct error *err)
{
    AUTO(image_tree)
    struct image_tree *tree =
        image_tree_new(folder, &importing->import->limits, &importing->counts);
    AUTO(free) char *chunk = mem_alloc(CHUNK_SIZE);
    uint64_t padding = 0;
    ssize_t got;

    while ((got = image_blob_read(blob, chunk, CHUNK_SIZE, err)) > 0) {
        uint64_t before = importing->counts.bytes;

        if (image_tree_feed(tree, chunk, (size_t) got, err) < 0)
            return -1;
        /* Heads, and what follows the end: no file, but work all the same. */
        padding += (uint64_t) got - (importing->counts.bytes - before);
        if (padding > importing->import->limits.bytes)
            return error_set(err, ERR_TOO_LARGE, 0, "the image is too large");
    }
    return got < 0 ? -1 : image_tree_finish(tree, err);
}

static int unpack(struct importing *importing, const struct image_layer *layer, int folder,
                  struct error *err)
{
    AUTO(image_blob) struct image_blob *blob = NULL;
    char raw[2 * SHA256_SIZE + 1], plain[2 * SHA256_SIZE + 1];
    struct image_place place;

    if (image_source_find(importing->source, layer->name, &place, err) < 0)
        return -1;
    blob = image_blob_new(&place);
    if (pour(importing, blob, folder, err) < 0 || image_blob_sums(blob, raw, plain, err) < 0 ||
        check_sum("it", layer->raw, raw, err) < 0)
        return -1;
    return check_sum("what it holds", layer->digest, plain, err);
}

static bool is_here(const struct importing *importing, const char *digest)
{
    struct stat status;

    return fstatat(importing->import->layers, digest, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

static int make_layer(struct importing *importing, const struct image_layer *layer,
                      struct error *err)
{
    AUTO(close) int folder = -EBADF;
    int target = importing->import->target;

    /* Layers that say nothing of their top mean an ordinary one. */
    if (mkdirat(target, layer->digest, 0755) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "make the folder of a layer");
    folder = sys_file_open(target, layer->digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (folder < 0)
        return error_set(err, ERR_INTERNAL, folder, "open the folder of a layer");
    importing->fresh++;
    return unpack(importing, layer, folder, err);
}

static void tell_layer(const struct importing *importing, const struct image_manifest *manifest,
                       size_t index, bool is_new)
{
    struct json_writer json;

    output_begin(importing->output, &json);
    json_key(&json, "layer");
    json_begin_object(&json);
    json_add_text(&json, "digest", manifest->layers[index].digest);
    output_add_count(&json, "number", index + 1);
    output_add_count(&json, "of", manifest->layer_count);
    json_add_boolean(&json, "new", is_new);
    json_end_object(&json);
    output_end(importing->output, &json);
    (void) output_flush(importing->output); /* who does not listen ends us otherwise */
}

static int make_layers(struct importing *importing, const struct image_manifest *manifest,
                       struct error *err)
{
    for (size_t i = 0; i < manifest->layer_count; i++) {
        const struct image_layer *layer = &manifest->layers[i];
        bool is_new = !is_here(importing, layer->digest);

        if (is_new && make_layer(importing, layer, err) < 0)
            return error_wrap(err, "layer %zu of %zu", i + 1, manifest->layer_count);
        tell_layer(importing, manifest, i, is_new);
    }
    return 0;
}

static int write_image(const struct importing *importing, const struct wire_image *image,
                       struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    int target = importing->import->target, r;
    AUTO(close) int file = -EBADF;

    if (wire_image_write(image, &text, err) < 0)
        return -1;
    r = file = sys_file_open(target, IMAGE_IMPORT_FILE, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (r >= 0)
        r = sys_file_write_full(file, text.data, text.length);
    if (r >= 0 && syncfs(target) < 0)
        r = -errno;
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "write the image") : 0;
}

static void tell(const struct importing *importing, const struct image_manifest *manifest)
{
    struct json_writer json;

    output_begin(importing->output, &json);
    json_key(&json, "imported");
    json_begin_object(&json);
    output_add_count(&json, "layers", manifest->layer_count);
    output_add_count(&json, "new", importing->fresh);
    output_add_count(&json, "entries", importing->counts.entries);
    output_add_count(&json, "bytes", importing->counts.bytes);
    output_add_count(&json, "devices_left_out", importing->counts.devices);
    json_end_object(&json);
    output_end(importing->output, &json);
}

int image_import(const struct image_import *import, struct output *output, struct error *err)
{
    AUTO(image_source) struct image_source *source = NULL;
    AUTO(image_manifest) struct image_manifest manifest = IMAGE_MANIFEST_INIT;
    struct importing importing = {.import = import, .output = output};

    (void) umask(0);
    if ((import->layout >= 0 ? image_source_folder(import->layout, &source, err)
                             : image_source_archive(import->archive, &source, err)) < 0)
        return -1;
    importing.source = source;
    if (image_manifest_read(source, &manifest, err) < 0 ||
        make_layers(&importing, &manifest, err) < 0 ||
        write_image(&importing, &manifest.image, err) < 0)
        return -1;
    tell(&importing, &manifest);
    return 0;
}
