/* What an imported image is: its layers, and what its maker wants for programs in it.
 *
 * The keeper writes it, who read the archive; the launcher reads it as strictly as anything that a
 * confined process says, and keeps it in the registry (launcher/image/image.h). Lines of text, so
 * that it can be read and repaired by hand:
 *
 *     burrow-image 1
 *     base host
 *     layer 5d0da3dc976460b72c77d94c8a1ad043720b0416bfc16c52c45d4847e53fadb6
 *     env PATH=/usr/local/bin:/usr/bin:/bin
 *     user 1000
 *     workdir /srv
 *     entrypoint /bin/tini
 *     cmd --
 *     port 8080/tcp
 *
 * Layers are named by the SHA-256 of their uncompressed tar, the lowest first; layers that were
 * built by that of their bytes (launcher/image_build.h). They lie on each other, and on the base
 * where there is one: `host`, or a folder that was registered. A word that has a backslash or a
 * line break in it has it as \\ or \n. Owned texts; nothing here blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/text.h"

/* Docker has 127, the kernel's overlay 500. */
#define WIRE_IMAGE_LAYERS_MAX 128
#define WIRE_IMAGE_WORDS_MAX  256 /* of any other kind */
#define WIRE_IMAGE_WORD_MAX   ((size_t) 32 * 1024)
#define WIRE_IMAGE_TEXT_MAX   ((size_t) 256 * 1024)

#define WIRE_IMAGE_DIGEST_LENGTH 64

enum wire_image_key {
    WIRE_IMAGE_BASE,
    WIRE_IMAGE_LAYER,
    WIRE_IMAGE_ENV, /* NAME=VALUE */
    WIRE_IMAGE_USER,
    WIRE_IMAGE_WORKDIR,
    WIRE_IMAGE_ENTRYPOINT,
    WIRE_IMAGE_CMD,
    WIRE_IMAGE_PORT,
    WIRE_IMAGE_KEYS
};

struct wire_image_words {
    char **words; /* owned */
    size_t count;
};

struct wire_image {
    struct wire_image_words by_key[WIRE_IMAGE_KEYS];
};

#define WIRE_IMAGE_INIT                                                                            \
    {                                                                                              \
        .by_key = { {.count = 0} }                                                                 \
    }

/* Accepts WIRE_IMAGE_INIT. */
void wire_image_done(struct wire_image *image);

AUTO_DEFINE(wire_image, struct wire_image, wire_image_done);

/* 64 digits, lower case. */
bool wire_image_is_digest(const char *text);

/* One word more of a kind. 0, or -1 with ERR_INVALID for one that cannot be, ERR_TOO_LARGE for one
 * too many or too long. */
int wire_image_add(struct wire_image *image, enum wire_image_key key, const char *word,
                   struct error *err);

/* Forget all words of a kind. */
void wire_image_clear(struct wire_image *image, enum wire_image_key key);

/* The first word of a kind, borrowed; "" without one. */
const char *wire_image_word(const struct wire_image *image, enum wire_image_key key);

/* Whether `bytes` begin as an image does; a path never does. */
bool wire_image_is_one(const char *bytes, size_t length);

/* Read the whole text of one. 0, or -1 with ERR_INVALID or ERR_TOO_LARGE and nothing in
 * `ret_image`. */
int wire_image_read(const char *bytes, size_t length, struct wire_image *ret_image,
                    struct error *err);

/* Append the text. 0, or -1 with ERR_TOO_LARGE: above WIRE_IMAGE_TEXT_MAX it could not be read. */
int wire_image_write(const struct wire_image *image, struct text *out, struct error *err);
