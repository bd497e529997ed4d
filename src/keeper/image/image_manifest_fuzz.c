/* Any bytes as an archive, and any documents in one: an error that has a reason, or a manifest
 * whose layers have digests, each once, and whose description can be read again.
 *
 * The input is an archive when it looks like one; otherwise documents, split at bytes of zero,
 * which are put where the reader looks for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/format/tar_header.h"
#include "keeper/image/image_manifest.h"
#include "sys/file/sys_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void add(struct text *tar, const char *name, const void *bytes, size_t length)
{
    static const char zeros[TAR_BLOCK];
    const struct tar_entry entry = {
        .type = TAR_FILE, .path = name, .link = "", .size = length, .mode = 0644};

    tar_header_append(tar, &entry);
    text_append_bytes(tar, bytes, length);
    text_append_bytes(tar, zeros, tar_padding(length));
}

/* The first is the index or the list of docker; the others are blobs, and "config.json", too. */
static void add_documents(struct text *tar, const uint8_t *data, size_t size)
{
    const char *const names[] = {data[0] % 2 ? "index.json" : "manifest.json", "config.json"};
    size_t number = 0;

    for (size_t at = 1; at <= size && number < 8; number++) {
        const uint8_t *end = at < size ? memchr(data + at, 0, size - at) : NULL;
        size_t length = end ? (size_t) (end - data) - at : size - at;
        char name[128] = "blobs/sha256/";
        uint8_t sum[SHA256_SIZE];

        sha256_bytes(data + at, length, sum);
        (void) hex_encode(sum, sizeof(sum), name + strlen(name));
        add(tar, name, data + at, length);
        if (number < ARRAY_COUNT(names))
            add(tar, names[number], data + at, length);
        at += length + 1;
    }
}

static void check_manifest(const struct image_manifest *manifest)
{
    AUTO(wire_image) struct wire_image again = WIRE_IMAGE_INIT;
    AUTO(text) struct text text = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    struct error err = ERROR_INIT;

    must(manifest->layer_count > 0 && manifest->layer_count <= WIRE_IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < manifest->layer_count; i++) {
        must(wire_image_is_digest(manifest->layers[i].digest));
        for (size_t j = 0; j < i; j++)
            must(strcmp(manifest->layers[i].digest, manifest->layers[j].digest) != 0);
    }
    if (wire_image_write(&manifest->image, &text, &err) == 0)
        must(wire_image_read(text.data, text.length, &again, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(close) int file = memfd_create("archive", MFD_CLOEXEC);
    AUTO(text) struct text tar = TEXT_INIT((size_t) 8 << 20);
    AUTO(image_source) struct image_source *source = NULL;
    AUTO(image_manifest) struct image_manifest manifest = IMAGE_MANIFEST_INIT;
    static const char zeros[TAR_END_SIZE];
    struct error err = ERROR_INIT;

    if (!size || size > 100000)
        return 0;
    if (size >= TAR_BLOCK && memcmp(data + 257, "ustar", 5) == 0) {
        text_append_bytes(&tar, data, size);
    } else {
        add_documents(&tar, data, size);
        text_append_bytes(&tar, zeros, sizeof(zeros));
    }
    must(file >= 0 && sys_file_pwrite_full(file, text_string(&tar), tar.length, 0) == 0);
    if (image_source_archive(file, &source, &err) < 0 ||
        image_manifest_read(source, &manifest, &err) < 0) {
        must(err.code != ERR_NONE && err.message[0]);
        return 0;
    }
    check_manifest(&manifest);
    return 0;
}
