/* What the documents of an image say: which layers it has, where they lie, and what its maker wants
 * for programs in it. Two kinds, both as found in the wild:
 *
 *     OCI layout       index.json -> (index ->) manifest -> config, blobs named by their digest
 *     docker save      manifest.json -> config, layers named by path
 *
 * An archive with both is read as a layout. Of several platforms the one of this machine is taken.
 * Every document that has a digest is checked against it. */
#pragma once

#include "base/auto.h"
#include "base/error.h"
#include "keeper/image/image_source.h"
#include "wire/wire_image.h"

/* Of one document. */
#define IMAGE_DOCUMENT_MAX ((size_t) 4 << 20)

struct image_layer {
    char name[IMAGE_FILE_NAME_MAX + 1];        /* in the source */
    char raw[WIRE_IMAGE_DIGEST_LENGTH + 1];    /* of the bytes as they lie; "" when not known */
    char digest[WIRE_IMAGE_DIGEST_LENGTH + 1]; /* of the uncompressed tar */
};

struct image_manifest {
    struct image_layer *layers; /* owned; the lowest first, each once */
    size_t layer_count;
    struct wire_image image;
};

#define IMAGE_MANIFEST_INIT                                                                        \
    {                                                                                              \
        .image = WIRE_IMAGE_INIT                                                                   \
    }

/* Accepts IMAGE_MANIFEST_INIT. */
void image_manifest_done(struct image_manifest *manifest);

AUTO_DEFINE(image_manifest, struct image_manifest, image_manifest_done);

/* 0, or -1 with `err`: ERR_INVALID for what is no image, is damaged, is for another machine, or is
 * several; ERR_NOT_FOUND for a part that is missing; ERR_TOO_LARGE. */
int image_manifest_read(struct image_source *source, struct image_manifest *ret_manifest,
                        struct error *err);
